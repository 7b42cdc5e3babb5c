"""Servers: what a create asks for, what a query gives back, what an action is told."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Scope, Time, Value
from nova.model.flavor.flavors import Flavor
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.server.states import PowerState, TaskState, VmState
from nova.model.volumes import BlockDevice


class Fault(Value):
    """Why a server is in ERROR. ``details`` are for admins."""

    code: int = 500
    message: str
    details: str | None = None
    created_at: Time | None = None


class AttachedVolume(Value):
    """``device``: where the guest is believed to see it; ``is_root``: the server boots from it."""

    id: str
    delete_on_termination: bool = False
    device: str | None = None
    is_root: bool = False


#: What becomes of a server whose guest shuts itself down (EC2's instance-initiated shutdown behavior).
STOP, TERMINATE = "stop", "terminate"


class ServerDetail(Value):
    """A server, whole: all that any view of it shows at any version, and nothing behind it.

    ``host_status`` is UP, DOWN, UNKNOWN, MAINTENANCE or empty. ``up`` of the host is decided by the conductor.
    ``unknown``: its cell does not answer, and known is only whose it is, since when, and (of a single server, not in
    lists) what :class:`ServerFacts` has, and its group.
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
    """What is known of a server outside of its cell, beside whose it is: how it was asked for."""

    flavor: Flavor
    image_id: str = ""
    availability_zone: str | None = None


class ServerMemo(Value):
    """What a server's next actions must know of the past ones.

    ``vm_state``: what it was before its resize or migration, which confirming and reverting give back; ``move``: that
    migration's uuid. ``shelved_*``: of a shelved server. ``soft_deleted_at``: from when on it waits to be reclaimed.
    ``rescue_image_id``: what it was rescued with. ``deleted_from``: what it was before its soft delete.
    ``destroying``: hosts were ordered to leave nothing of it, so that it may be whole no more. ``client_token``,
    ``shutdown_behavior``: as its create said by EC2's API; None: STOP.
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


class ServerSummary(Value):
    """What a list without detail shows. ``unknown``: its cell does not answer, and its name is not known."""

    uuid: str
    name: str
    unknown: bool = False


class ServerTarget(Value):
    """What an action must know before policy can be asked: whose it is, where, and in which state."""

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
    """Names one server. A scope it is not in is NotFound, as if it did not exist. ``with_unknown``: while its cell
    does not answer, it is shown as an unknown one. ``as_kept``: as its row has it; the network service is not asked.
    """

    uuid: str
    scope: Scope = Scope()
    with_deleted: bool = False
    with_unknown: bool = False
    as_kept: bool = False


class Condition(Value):
    """One filter of a list: ``column`` is a field of the servers table's public names.

    ``op``: eq, in, not_in, regex, is_null, ge, le. Values are text, or a list of text for in and not_in.
    """

    column: str
    op: str = "eq"
    value: str | None = None
    values: tuple[str, ...] = ()


class ServerListQuery(Value):
    """A page of servers, filtered and sorted. Nothing in it knows an API version.

    ``silent_cells``: what comes of servers whose cell does not answer. fail: the call does; skip: they are left out;
    show: they come as unknown ones, for a query that asks for no more than a scope and a limit.
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
    soft_deleted: bool = False  # SOFT_DELETED ones too, which are not shown else, but by a filter on their state
    sort: tuple[tuple[str, str], ...] = ()  # (column, asc|desc); empty: newest first
    page: Page = Page()
    silent_cells: str = "fail"  # fail, skip, show


class ServerPage(Value):
    """Rows of one page; ``servers`` where detail was asked for, else ``summaries``."""

    servers: tuple[ServerDetail, ...] = ()
    summaries: tuple[ServerSummary, ...] = ()


class LocalDisk(Value):
    """A disk of the host's that a create asks for, within what the flavor has. ``kind``: ephemeral (size in GB) or
    swap (size in MB); ``size`` None: all the flavor gives. ``format``: a file system's name, for ephemeral disks.
    """

    kind: str
    size: int | None = None
    format: str | None = None


class NewServer(Value):
    """What one create request asks for, version differences already translated away.

    ``user_data`` is base64 text. ``host``/``node`` are a requested destination; ``forced`` says it came as
    ``zone:host:node``, which skips the filters. ``networks`` None means "all the project may use" (auto), an empty
    tuple "none". ``admin_password`` reaches the guest through its config drive only, and is in no log. ``key`` is a
    uuid of the request's own: a broker may hand a message out twice, and the servers are made once.
    """

    name: str
    flavor_id: str
    image_id: str = ""
    min_count: int = 1
    max_count: int = 1
    metadata: Mapping[str, str] = {}
    networks: tuple[RequestedNetwork, ...] | None = None
    make_network: bool = False  # the word auto: where the project has no network, one is made for it
    security_groups: tuple[str, ...] = ()
    availability_zone: str | None = None
    host: str | None = None
    node: str | None = None
    forced: bool = False
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    disk_config: str = "AUTO"
    disk_config_asked: bool = True  # False: the image's word counts, if it has one
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
    disks: tuple[LocalDisk, ...] = ()  # ephemeral and swap disks asked for one by one; empty: as the flavor has them
    volumes: tuple[BlockDevice, ...] = ()  # disks on volumes, without ids: of each server
    unmapped: tuple[str, ...] = ()  # names of devices, without /dev/, that the image's mapping does not count for
    client_token: str | None = None  # by which EC2's clients find what they asked for
    shutdown_behavior: str = STOP
    kernel_id: str | None = None  # in the place of the image's own; None: that one
    ramdisk_id: str | None = None


class CreatedServers(Value):
    """The answer to a create: the request's reservation id and each server's uuid."""

    reservation_id: str
    uuids: tuple[str, ...]
    disk_config: str = ""  # what came of it; empty: as asked for
    security_groups: tuple[str, ...] | None = None  # that their new ports will have; None: as asked for


class ServerUpdate(Value):
    """New values for a server's own fields; ``fields`` names which of them to write (None is a value)."""

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

    ``delete`` is a soft one where the conductor keeps deleted servers for a while, unless its argument ``force`` is
    ``true``.
    """

    uuid: str
    action: str
    arguments: Mapping[str, str] = {}


class LockChange(Value):
    """Lock (as ``by``: owner or admin) or, with ``by`` None, unlock. ``unless``: whose lock, if it is there by now,
    is left alone."""

    uuid: str
    by: str | None = None
    reason: str | None = None
    unless: tuple[str, ...] = ()


class MetadataChange(Value):
    """``replace`` False merges ``items`` in; True makes them all there is. ``delete`` names keys to take out."""

    uuid: str
    items: Mapping[str, str] = {}
    replace: bool = False
    delete: tuple[str, ...] = ()


class ConsoleQuery(Value):
    """The last ``length`` lines of the console log; None means all of it."""

    uuid: str
    length: int | None = None
