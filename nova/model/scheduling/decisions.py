"""What the scheduler is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value
from nova.model.host.hosts import HostState
from nova.model.numa.topology import Wanted
from nova.model.placement.providers import ResourceRequest


class Resources(Value):
    """An amount a server needs. Memory in MB, disk in GB (root + ephemeral + swap, rounded up)."""

    vcpus: int
    memory_mb: int
    disk_gb: int


class HostRequirements(Value):
    """What a server asks of a host beyond so many vcpus, MB and GB of the node itself. ``request``: all the resources
    it needs (those three too), traits and aggregates, in groups; ``topology``: of its cells and devices."""

    request: ResourceRequest = ResourceRequest()
    topology: Wanted = Wanted()


class PlacementGroup(Value):
    """The server group of a request's servers. ``hosts``: host -> how many other members are there (or on their way).
    ``max_per_host``: how many of an anti-affinity group may share a host."""

    uuid: str
    policy: str
    max_per_host: int = 1
    hosts: Mapping[str, int] = {}


class PlacementRequest(Value):
    """Where may these servers (alike, but for their uuids) run?

    ``force`` skips the filters but not the capacity; ``exclude`` are hosts that already refused.
    """

    server_uuids: tuple[str, ...]
    project_id: str = ""
    user_id: str = ""
    resources: Resources
    flavor_name: str = ""
    extra_specs: Mapping[str, str] = {}
    image_properties: Mapping[str, str] = {}
    image_id: str = ""
    availability_zone: str | None = None
    host: str | None = None
    node: str | None = None
    force: bool = False
    exclude: tuple[str, ...] = ()
    hints: Mapping[str, object] = {}
    alternates: int = 2
    group: PlacementGroup | None = None
    wishes: HostRequirements | None = None
    rebuild: bool = False  # on the host where it is: only filters about images are asked, and nothing is claimed
    source_host: str | None = None  # where a server that moves comes from
    image_disk_format: str = ""
    busy: Mapping[str, int] = {}  # host -> servers there on which something works that costs it I/O
    server_hosts: Mapping[str, str] = {}  # servers that hints name -> where they are
    #: host -> a sum over its servers: how much each image property counts that the server's image shares with this one
    image_matches: Mapping[str, float] = {}
    tenant_aggregates: bool = False  # some aggregate names the project in ``filter_tenant_id`` (asked where it matters)


class HostChoice(Value):
    host: str
    node: str
    provider_id: int


class Refusal(Value):
    """How many hosts one filter took out, and what the one that missed it least lacks (empty: nothing to measure).
    ``reasons``: why -> how many. None of it names a host."""

    filter: str
    hosts: int
    reasons: Mapping[str, int] = {}
    nearest: str = ""


class NoHost(Value):
    """Why no host was found, as the journal keeps it: of ``asked`` hosts. ``details`` is for admins and names hosts."""

    asked: int = 0
    refusals: tuple[Refusal, ...] = ()
    details: str = ""


class Selection(Value):
    """One server's hosts, the best first; empty when none is valid, and ``reason`` says why not.

    ``reason`` is for users and names no host; ``details`` is for admins and does.
    """

    server_uuid: str
    hosts: tuple[HostChoice, ...] = ()
    reason: str = ""
    details: str = ""
    asked: int = 0  # how many hosts there were to choose from
    refusals: tuple[Refusal, ...] = ()


class ClaimRefused(Value):
    """The current states of hosts whose resources turned out to be taken: fed back to the scheduler."""

    states: tuple[HostState, ...] = ()
