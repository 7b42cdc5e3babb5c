"""What belongs to a server beyond itself: tags, its password, its topology, its reset, and what it was told from
outside."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

MOST_TAGS = 50


class TagChange(Value):
    """``replace`` False adds ``add`` and takes ``remove`` out; True makes ``add`` all there is. ``remove`` of a tag
    that the server does not have is NotFound."""

    uuid: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False

    @property
    def verb(self) -> str:
        """What it does, in words."""
        return "update tag" if self.add else "delete tag"


class TagSet(Value):
    """All tags after a change, and whether it changed anything."""

    tags: tuple[str, ...]
    changed: bool


class ServerPassword(Value):
    """The password a guest posted, encrypted with its key; empty when it posted none. Whose it is, for policy."""

    project_id: str
    user_id: str
    password: str = ""


class NumaNode(Value):
    """A NUMA node as a guest sees it. ``cpu_pinning``: virtual processor -> the host's; empty when not pinned."""

    memory_mb: int
    vcpus: tuple[int, ...]
    siblings: tuple[tuple[int, ...], ...] = ()
    host_node: int | None = None
    cpu_pinning: Mapping[int, int] = {}


class ServerTopology(Value):
    """A server's NUMA nodes; none when it has no NUMA topology. Whose it is, for policy."""

    project_id: str
    user_id: str
    nodes: tuple[NumaNode, ...] = ()
    page_kb: int | None = None


class StateReset(Value):
    """``state``: active or error."""

    uuid: str
    state: str


class ExternalEvent(Value):
    """What another service says of a server. ``status``: completed, failed or in-progress; ``tag`` says of which part
    (a port, a volume) or, for power-update, of what (POWER_ON, POWER_OFF)."""

    name: str
    server_uuid: str
    status: str = "completed"
    tag: str | None = None
