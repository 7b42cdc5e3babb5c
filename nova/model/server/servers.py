"""Servers: requests to create them, queries and their results, and arguments of actions."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Scope, Time, Value
from nova.model.flavor.flavors import Flavor
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.server.states import PowerState, TaskState, VmState
from nova.model.volumes import BlockDevice


class Fault(Value):
    """Cause of a server's ERROR state. ``details`` are for administrators."""

    code: int = 500
    message: str
    details: str | None = None
    created_at: Time | None = None


class AttachedVolume(Value):
    """A volume of a server. ``device``: its expected name in the guest; ``is_root``: the server boots from it."""

    id: str
    delete_on_termination: bool = False
    device: str | None = None
    is_root: bool = False


#: Actions on a server whose guest shuts itself down (EC2's instance-initiated shutdown behavior).
STOP, TERMINATE = "stop", "terminate"


class ServerDetail(Value):
    """A complete server: all fields of every view at every API version, without further queries.

    ``host_status`` is UP, DOWN, UNKNOWN, MAINTENANCE or empty. The conductor decides whether the host is up.
    ``unknown``: its cell does not answer. Then only owner and creation time are valid; for a single server (not in
    lists), also the fields of :class:`ServerFacts` and its group.
    """

    uuid: str
    id: int
    name: str
    project_id: str
    user_id: str
    created_at: Time
    updated_at: Time | None = None
    launched_at: Time | None = None
    terminated_at: Time | None = None
    deleted: bool = False
    vm_state: VmState
    task_state: TaskState | None = None
    power_state: PowerState = PowerState.NOSTATE
    progress: int = 0
    reservation_id: str = ""
    launch_index: int = 0
    host: str | None = None
    node: str | None = None
    host_status: str = ""
    availability_zone: str | None = None
    pinned_availability_zone: str | None = None
    flavor: Flavor
    image_id: str = ""
    image_properties: Mapping[str, str] = {}
    kernel_id: str = ""
    ramdisk_id: str = ""
    hostname: str | None = None
    root_device_name: str | None = None
    user_data: str | None = None  # base64
    key_name: str | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    config_drive: bool = False
    disk_config: str = "MANUAL"
    locked: bool = False
    locked_by: str | None = None  # owner or admin
    locked_reason: str | None = None
    description: str | None = None
    metadata: Mapping[str, str] = {}
    tags: tuple[str, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    security_groups: tuple[str, ...] = ()
    volumes: tuple[AttachedVolume, ...] = ()
    fault: Fault | None = None
    trusted_certs: tuple[str, ...] | None = None
    scheduler_hints: Mapping[str, object] = {}
    server_groups: tuple[str, ...] = ()
    instance_name: str = ""
    unknown: bool = False
    client_token: str | None = None
    shutdown_behavior: str = STOP


class ServerFacts(Value):
    """Facts about a server that are stored outside of its cell, in addition to its owner: its create request."""

    flavor: Flavor
    image_id: str = ""
    availability_zone: str | None = None


class ServerMemo(Value):
    """Facts that later actions of a server need.

    ``vm_state``: state before its resize or migration, restored by confirm and revert; ``move``: uuid of that
    migration. ``shelved_*``: of a shelved server. ``soft_deleted_at``: start of the time until reclaim.
    ``rescue_image_id``: image of its rescue. ``deleted_from``: state before its soft delete. ``destroying``: hosts were
    ordered to destroy its guest, which may be incomplete. ``client_token``, ``shutdown_behavior``: set by a create of
    EC2's API; None: STOP. ``moved_cells``: the server moved between cells, so hosts of other cells may hold resources
    for it.
    """

    vm_state: str | None = None
    move: str | None = None
    shelved_image_id: str | None = None
    shelved_host: str | None = None
    shelved_at: Time | None = None
    soft_deleted_at: Time | None = None
    rescue_image_id: str | None = None
    deleted_from: str | None = None
    destroying: bool = False
    client_token: str | None = None
    shutdown_behavior: str | None = None
    moved_cells: bool = False


class ServerSummary(Value):
    """An entry of a list without detail. ``unknown``: its cell does not answer, so its name is not available."""

    uuid: str
    name: str
    unknown: bool = False


class ServerTarget(Value):
    """Facts for an action's policy check: owner, host and state of the server."""

    uuid: str
    project_id: str
    user_id: str
    host: str | None = None
    node: str | None = None
    vm_state: VmState
    task_state: TaskState | None = None
    power_state: PowerState = PowerState.NOSTATE
    locked: bool = False
    locked_by: str | None = None
    launched: bool = False
    key_name: str | None = None
    availability_zone: str | None = None


class ServerQuery(Value):
    """Query for one server. A server outside of the scope is NotFound, like a missing one. ``with_unknown``: while its
    cell does not answer, return it as unknown. ``as_kept``: return the row's data without a query to the network
    service."""

    uuid: str
    scope: Scope = Scope()
    with_deleted: bool = False
    with_unknown: bool = False
    as_kept: bool = False


class Condition(Value):
    """A filter of a server list: ``column`` is a public name of a field of the servers table.

    ``op``: eq, in, not_in, regex, is_null, ge, le. Values are text, or a list of text for in and not_in.
    """

    column: str
    op: str = "eq"
    value: str | None = None
    values: tuple[str, ...] = ()


class ServerListQuery(Value):
    """A page of servers, filtered and sorted. Independent of API versions.

    ``silent_cells``: treatment of servers whose cell does not answer. fail: the call fails; skip: they are left out;
    show: they are returned as unknown, in a query with only a scope and a limit.
    """

    scope: Scope = Scope()
    detail: bool = True
    deleted: str = "live"  # live, deleted, any
    conditions: tuple[Condition, ...] = ()
    statuses: tuple[str, ...] = ()  # names of states.STATUS; an unknown one matches nothing
    metadata: Mapping[str, str] = {}
    ip_regex: str | None = None
    ip6_regex: str | None = None
    tags_all: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    not_tags_all: tuple[str, ...] = ()
    not_tags_any: tuple[str, ...] = ()
    changes_since: Time | None = None
    changes_before: Time | None = None
    locked: bool | None = None
    soft_deleted: bool = False  # include SOFT_DELETED servers, otherwise only shown by a filter on state
    sort: tuple[tuple[str, str], ...] = ()  # (column, asc|desc); empty: newest first
    page: Page = Page()
    silent_cells: str = "fail"  # fail, skip, show


class ServerPage(Value):
    """Rows of one page: ``servers`` with detail, otherwise ``summaries``."""

    servers: tuple[ServerDetail, ...] = ()
    summaries: tuple[ServerSummary, ...] = ()


class LocalDisk(Value):
    """A local disk in a create request, within the flavor's sizes. ``kind``: ephemeral (size in GB) or swap (size in
    MB); ``size`` None: the flavor's whole size. ``format``: a file system, for ephemeral disks."""

    kind: str
    size: int | None = None
    format: str | None = None


class NewServer(Value):
    """A create request, independent of API versions.

    ``user_data`` is base64 text. ``host``/``node`` are a requested destination; ``forced``: it was given as
    ``zone:host:node``, which skips the filters. ``networks`` None means "all networks available to the project" (auto),
    an empty tuple "none". ``admin_password`` is only passed to the guest in its config drive, and never logged. ``key``
    is a uuid of the request: if the broker delivers a message twice, the servers are created only once.
    """

    name: str
    flavor_id: str
    image_id: str = ""
    min_count: int = 1
    max_count: int = 1
    metadata: Mapping[str, str] = {}
    networks: tuple[RequestedNetwork, ...] | None = None
    make_network: bool = False  # requested as auto: create a network if the project has none
    security_groups: tuple[str, ...] = ()
    availability_zone: str | None = None
    host: str | None = None
    node: str | None = None
    forced: bool = False
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    disk_config: str = "AUTO"
    disk_config_asked: bool = True  # False: the image's value is used, if it has one
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    admin_password: str | None = None
    description: str | None = None
    hostname: str | None = None
    tags: tuple[str, ...] = ()
    trusted_certs: tuple[str, ...] | None = None
    scheduler_hints: Mapping[str, object] = {}
    files: Mapping[str, str] = {}  # path -> base64 contents (personality)
    key: str = ""
    may_zero_disk: bool = True  # policy servers:create:zero_disk_flavor passed
    may_use_external: bool = False  # policy network:attach_external_network passed
    disks: tuple[LocalDisk, ...] = ()  # requested ephemeral and swap disks; empty: the flavor's
    volumes: tuple[BlockDevice, ...] = ()  # volumes without ids, for each server
    unmapped: tuple[str, ...] = ()  # device names, without /dev/, whose mapping in the image is ignored
    client_token: str | None = None  # with which EC2 clients find a repeated request
    shutdown_behavior: str = STOP
    kernel_id: str | None = None  # overrides the image's kernel; None: the image's
    ramdisk_id: str | None = None


class CreatedServers(Value):
    """Result of a create: the request's reservation id and each server's uuid."""

    reservation_id: str
    uuids: tuple[str, ...]
    disk_config: str = ""  # effective value; empty: as requested
    security_groups: tuple[str, ...] | None = None  # groups of their new ports; None: as requested


class ServerUpdate(Value):
    """New values of a server's own fields; ``fields`` names the ones to write (None is a value)."""

    uuid: str
    scope: Scope = Scope()
    fields: tuple[str, ...] = ()  # of: name, description, access_ip_v4, access_ip_v6, disk_config, hostname,
    # pinned_availability_zone
    name: str | None = None
    description: str | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str | None = None
    hostname: str | None = None
    pinned_availability_zone: str | None = None


class ServerOrder(Value):
    """An action on one server: a row name of ``states.ACTIONS`` and its arguments.

    ``delete`` is a soft delete if the conductor keeps deleted servers for a while, unless its argument ``force`` is
    ``true``.
    """

    uuid: str
    action: str
    arguments: Mapping[str, str] = {}


class LockChange(Value):
    """Lock (as ``by``: owner or admin) or, with ``by`` None, unlock. An existing lock by one of ``unless`` is not
    changed."""

    uuid: str
    by: str | None = None
    reason: str | None = None
    unless: tuple[str, ...] = ()


class MetadataChange(Value):
    """Change of metadata. ``replace`` False merges ``items``; True replaces all metadata by them. ``delete`` names keys
    to remove."""

    uuid: str
    items: Mapping[str, str] = {}
    replace: bool = False
    delete: tuple[str, ...] = ()


class ConsoleQuery(Value):
    """Query for the last ``length`` lines of the console log; None means all lines."""

    uuid: str
    length: int | None = None
