"""Parts of a server: tags, password, topology, state reset, and external events."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

MOST_TAGS = 50


class TagChange(Value):
    """Change of tags. ``replace`` False adds ``add`` and removes ``remove``; True replaces all tags by ``add``.
    Removing a tag that the server does not have is NotFound."""

    uuid: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False

    @property
    def verb(self) -> str:
        """Description of the change."""
        return "update tag" if self.add else "delete tag"


class TagSet(Value):
    """All tags after a change, and whether there was a change."""

    tags: tuple[str, ...]
    changed: bool


class ServerPassword(Value):
    """The password that a guest posted, encrypted with its key; empty if there is none. With the owner, for the policy
    check."""

    project_id: str
    user_id: str
    password: str = ""


class NumaNode(Value):
    """A NUMA node of a guest. ``cpu_pinning``: virtual CPU -> host CPU; empty if not pinned."""

    memory_mb: int
    vcpus: tuple[int, ...]
    siblings: tuple[tuple[int, ...], ...] = ()
    host_node: int | None = None
    cpu_pinning: Mapping[int, int] = {}


class ServerTopology(Value):
    """A server's NUMA nodes; empty without a NUMA topology. With the owner, for the policy check."""

    project_id: str
    user_id: str
    nodes: tuple[NumaNode, ...] = ()
    page_kb: int | None = None


class StateReset(Value):
    """Reset of a server's state. ``state``: active or error."""

    uuid: str
    state: str


class ExternalEvent(Value):
    """Event of another service about a server. ``status``: completed, failed or in-progress; ``tag`` names the port or
    volume or, for power-update, the action (POWER_ON, POWER_OFF)."""

    name: str
    server_uuid: str
    status: str = "completed"
    tag: str | None = None
