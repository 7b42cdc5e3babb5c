"""Rows of services as values, and the columns that tell whether a service is up."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nova.model.base import Time
from nova.model.host.services import ContractVersion, DatabaseConnections


class ServiceRow(NamedTuple):
    """A service; its fields are the columns of that name."""

    id: int
    uuid: str
    host: str
    binary: str
    topic: str | None
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_at: Time | None
    created_at: Time
    updated_at: Time | None
    release: str
    version: int = 1
    host_id: str = ""
    contracts: tuple[ContractVersion, ...] | None = None
    connections: DatabaseConnections | None = None
    clock_off_s: float | None = None


class HeartbeatRow(Protocol):
    """The columns that tell whether a service is up. ``clock``: the database's time."""

    @property
    def last_seen_at(self) -> Time | None:
        """The time of the last report; None: never, or no service."""
        ...

    @property
    def forced_down(self) -> bool | None:
        """True if the service counts as down anyway."""
        ...

    @property
    def clock(self) -> Time | str:
        """The database's time."""
        ...


class HostHeartbeat(NamedTuple):
    """The heartbeat of a host's service."""

    host: str
    last_seen_at: Time | None
    forced_down: bool
    clock: Time | str
