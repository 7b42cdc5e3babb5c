"""Nodes of the bare metal service, which old versions proxied: this API has no such service."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request


def index(req: Request) -> None:
    """Refuse the list of nodes: always host.BaremetalUnavailable (501), without a bare metal service."""
    raise errors.host.BaremetalUnavailable


def show(req: Request, node_id: str) -> None:
    """Refuse to show a node: always host.BaremetalUnavailable (501), without a bare metal service."""
    raise errors.host.BaremetalUnavailable


def create(req: Request) -> None:
    """Refuse to create a node: always host.BaremetalNotHere (400); use the bare metal service."""
    raise errors.host.BaremetalNotHere(command="node create")


def delete(req: Request, node_id: str) -> None:
    """Refuse to delete a node: always host.BaremetalNotHere (400); use the bare metal service."""
    raise errors.host.BaremetalNotHere(command="node delete")


def add_interface(req: Request, node_id: str) -> None:
    """Refuse to add a port to a node: always host.BaremetalNotHere (400); use the bare metal service."""
    raise errors.host.BaremetalNotHere(command="port create")


def remove_interface(req: Request, node_id: str) -> None:
    """Refuse to remove a port of a node: always host.BaremetalNotHere (400); use the bare metal service."""
    raise errors.host.BaremetalNotHere(command="port delete")
