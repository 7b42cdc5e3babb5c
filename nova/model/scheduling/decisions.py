"""Requests to the scheduler, and its answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import Value
from nova.model.host.hosts import HostState
from nova.model.numa.topology import Wanted
from nova.model.placement.providers import ResourceRequest


class Resources(Value):
    """Resources that a server needs. Memory in MB, disk in GB (root + ephemeral + swap, rounded up)."""

    vcpus: int
    memory_mb: int
    disk_gb: int


class HostRequirements(Value):
    """Requirements of a server on a host in addition to vcpus, MB and GB of the node itself. ``request``: all resources
    (including those three), traits and aggregates, in groups; ``topology``: NUMA cells and devices."""

    request: ResourceRequest = ResourceRequest()
    topology: Wanted = Wanted()


class PlacementGroup(Value):
    """The server group of a request's servers. ``hosts``: host -> number of other members there (or scheduled there).
    ``max_per_host``: how many members of an anti-affinity group may share a host."""

    uuid: str
    policy: str
    max_per_host: int = 1
    hosts: Mapping[str, int] = {}


class PlacementRequest(Value):
    """A request for hosts of these servers, which differ only by their uuids.

    ``force`` skips the filters but not the capacity check; ``exclude`` contains hosts that already refused.
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
    requirements: HostRequirements | None = msgspec.field(default=None, name="wishes")
    rebuild: bool = False  # on the current host: only image filters apply, and no resources are claimed
    source_host: str | None = None  # current host of a server that moves
    image_disk_format: str = ""
    cell: str = ""  # UUID of the only cell whose hosts may be selected; empty: any
    closed_cells: tuple[str, ...] = ()  # UUIDs of the cells that get no new servers
    source_cell: str = ""  # UUID of the cell of ``source_host``, of a server that may leave it
    busy: Mapping[str, int] = {}  # host -> number of its servers with I/O-intensive tasks in progress
    server_hosts: Mapping[str, str] = {}  # servers in hints -> their hosts
    #: host -> sum over its servers of the weights of image properties shared with this request's image
    image_matches: Mapping[str, float] = {}
    tenant_aggregates: bool = False  # some aggregate names the project in ``filter_tenant_id`` (set if needed)


class HostChoice(Value):
    host: str
    node: str
    provider_id: int


class Refusal(Value):
    """The hosts that one filter removed. ``reasons``: reason -> number of hosts. ``nearest``: the shortage of the host
    that came closest (empty if it cannot be measured). No text names a host."""

    filter: str
    hosts: int
    reasons: Mapping[str, int] = {}
    nearest: str = ""


class NoHost(Value):
    """Reason for "no valid host" among ``asked`` hosts, as stored in the journal. ``details`` is for administrators and
    names hosts."""

    asked: int = 0
    refusals: tuple[Refusal, ...] = ()
    details: str = ""


class Selection(Value):
    """Hosts of one server, the best first; empty without a valid host, with the reason in ``reason``.

    ``reason`` is for users and names no host; ``details`` is for administrators and names hosts.
    """

    server_uuid: str
    hosts: tuple[HostChoice, ...] = ()
    reason: str = ""
    details: str = ""
    asked: int = 0  # number of candidate hosts
    refusals: tuple[Refusal, ...] = ()


class ClaimRefused(Value):
    """Current states of hosts whose resources were already taken, to update the scheduler."""

    states: tuple[HostState, ...] = ()
