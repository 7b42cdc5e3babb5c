"""``default_access_ip_network_name``: a new server's addresses on that network become those that it is shown with."""

from __future__ import annotations

from collections.abc import Iterable

from nova.conductor.workflow import Op
from nova.model.networks import Interface


def write(ops: Iterable[Op], label: str | None) -> None:
    """Of each server that has interfaces on the network of that label; what the user chose stands."""
    for op in ops if label else ():
        found = first_of(op.server.interfaces or (), str(label))
        fresh = {name: address for name, address in found.items() if not getattr(op.server, name)}
        if fresh and op.entry.action == "create":
            op.write(**fresh)


def first_of(interfaces: Iterable[Interface], label: str) -> dict[str, str]:
    """By the column's name, the first address of each family there."""
    found: dict[str, str] = {}
    for one in interfaces:
        for address in one.addresses if one.label == label else ():
            found.setdefault(f"access_ip_v{address.version}", address.address)
    return found


__all__ = ["first_of", "write"]
