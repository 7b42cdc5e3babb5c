"""Rows of floating IPs and of the fixed addresses that they are associated with."""

from __future__ import annotations

from typing import NamedTuple


class FloatingRow(NamedTuple):
    """A floating IP; its fields are the columns of that name."""

    id: int
    address: str
    pool: str
    interface: str | None
    project_id: str | None
    fixed_address_id: int | None
    host: str | None
    auto_assigned: bool


class FixedRow(NamedTuple):
    """A server's IPv4 address with its network."""

    id: int
    address: str
    host: str | None
    network: str
    multi_host: bool
    network_host: str | None
