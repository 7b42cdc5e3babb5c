"""Nodes of the bare metal service, which old versions passed on: no such service is behind this API."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request


def index(req: Request) -> None:
    """Always host.BaremetalUnavailable (501): no bare metal service is behind this API."""
    raise errors.host.BaremetalUnavailable


def show(req: Request, node_id: str) -> None:
    """Always host.BaremetalUnavailable (501): no bare metal service is behind this API."""
    raise errors.host.BaremetalUnavailable


def create(req: Request) -> None:
    """Always host.BaremetalNotHere (400): nodes are made at the bare metal service itself."""
    raise errors.host.BaremetalNotHere(command="node create")


def delete(req: Request, node_id: str) -> None:
    """Always host.BaremetalNotHere (400): nodes are deleted at the bare metal service itself."""
    raise errors.host.BaremetalNotHere(command="node delete")


def add_interface(req: Request, node_id: str) -> None:
    """Always host.BaremetalNotHere (400): ports of nodes are made at the bare metal service itself."""
    raise errors.host.BaremetalNotHere(command="port create")


def remove_interface(req: Request, node_id: str) -> None:
    """Always host.BaremetalNotHere (400): ports of nodes are deleted at the bare metal service itself."""
    raise errors.host.BaremetalNotHere(command="port delete")
