"""Create a server: the checks on the request, the ledger's rows, the servers in BUILD, and the workflow that builds
them.

All names in a request are resolved before anything is created. An invalid name is therefore a 400 error that names the
field, and not a server in ERROR.
"""

from __future__ import annotations

import random
import re
import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import context, errors, failures
from nova.conductor import steps, zones
from nova.conductor.actions import checks
from nova.conductor.actions.checks import check_flavor, check_items, keypair, usable_image, wants_drive
from nova.conductor.actions.volume import create_volumes
from nova.conductor.actions.volume.create_volumes import VolumesOfCreate, WantedVolumes
from nova.conductor.engine.begin import builtins
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import CreateArguments, Op
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.networking.back_end import Admitted, NetworkRequest
from nova.conductor.quota import quota
from nova.conductor.steps import volume_keys
from nova.db import flavors
from nova.db.host import hosts, services
from nova.db.network import security_groups
from nova.db.quota import ledger
from nova.db.server import server_groups, servers, states
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import utc_now
from nova.model.base import Scope
from nova.model.block_device import block_devices
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk
from nova.model.image.images import Image
from nova.model.quota.counting import classes
from nova.model.quota.quotas import UNLIMITED
from nova.model.server.server_groups import hinted
from nova.model.server.servers import STOP, CreatedServers, LocalDisk, NewServer, ServerFacts, ServerMemo
from nova.model.server.states import PowerState, TaskState, VmState
from nova.model.volumes import BlockDevice, as_large_as_root, local, root_of


def check_place(tx: Connection, order: NewServer) -> None:
    """Check that the requested host and node exist, with one statement (of the cell) for each that is named."""
    if order.host and order.host not in services.compute_hosts(tx):
        raise errors.server.NoSuchHost(host=order.host)
    if order.node:
        rows = hosts.node_rows(tx, hosts.NodesWanted(host=order.host, name_part=order.node))
        if not any(row.name == order.node for row in rows):
            raise errors.server.NoSuchNode(node=order.node, where=f" on host {order.host}" if order.host else "")


class Joining(NamedTuple):
    """A server group's key, locked, and how many servers may still join it (None: no limit)."""

    key: int
    remaining: int | None


def joining(tx: Connection, order: NewServer, who: context.RequestContext, limits: Mapping[str, int]) -> Joining | None:
    """Lock the requested group; return None if the request names no group.

    Raises server.BadGroup, or OverQuota if fewer than ``min_count`` servers may join.
    """
    name = hinted(order.scheduler_hints)
    if name is None:
        return None
    scope = Scope() if who.is_admin else Scope(project_id=who.project_id)
    with failures.replaced((errors.server.ServerGroupNotFound, ValueError),
            lambda _: errors.server.BadGroup(group=name)):
        key, count = server_groups.room_for(tx, str(uuids.UUID(str(name))), scope, str(who.user_id))
    limit = limits.get("server_group_members", UNLIMITED)
    remaining = quota.remaining(limit, count, 1)
    if remaining is not None and remaining < order.min_count:
        raise errors.quota.TooMany(what="too many servers in group", limit=limit)
    return Joining(key, remaining)


def join(tx: Connection, group: Joining | None, server_uuids: list[str], who: context.RequestContext) -> None:
    """Add the servers to the group, in the transaction that opens their ledger rows."""
    if group is not None:
        server_groups.join(tx, group.key, server_uuids, str(who.user_id))


ROOT_NAME = "/dev/vda"
MAX_HOSTNAME = 63
MAX_NAME = 255
MOST_AT_ONCE = 1000  # servers of one request


class LookedUp(NamedTuple):
    """The objects that the names in a request resolve to."""

    flavor: Flavor
    image: Image | None
    local: tuple[LocalDisk, ...]
    network: Admitted
    public_key: str | None
    key_type: str
    limits: Mapping[str, int]
    project_limits: Mapping[str, int]
    each: Mapping[str, int]  # quota usage of one server
    volumes: WantedVolumes


class CreateAdmission:
    """The ``create_servers`` call of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps, self._volumes = deps, VolumesOfCreate(deps)

    def create_servers(self, order: NewServer) -> CreatedServers:
        """Create the servers: they are in the journal when this returns. A redelivered message gets the first result.

        Every check is made before anything is created. Raises server.BadImage, server.BadFlavor, server.BadNetwork,
        server.BadKeypair, aggregate.ZoneNotAvailable and other errors of the kind Invalid; OverQuota; Forbidden without
        a user and a project; Unavailable, with the name of the service that did not answer.
        """
        who = context.current()
        if not who.project_id or not who.user_id:
            raise errors.Forbidden("A create needs a user and a project.")
        if order.hostname and order.max_count > 1:
            raise errors.server.OneHostname(hostname=order.hostname, count=order.max_count)
        image = usable_image(self.deps, order.image_id) if order.image_id else None
        disk_config = checks.disk_config(order, image)
        zones.check(self.deps, order.availability_zone)
        parts = None
        try:
            parts = self._look_up(order, who.user_id, who.project_id, image)
            count, uuid_list = self._open_ledger(order, parts, who)
        except (errors.daemon.LedgerOpen, errors.OverQuota, errors.server.BadGroup, errors.server.FixedIpInUse,
                errors.volume.NotAvailable):
            if made_before := self._made_before(order):
                return msgspec.structs.replace(made_before, disk_config=disk_config,
                                               security_groups=parts.network.security_groups if parts else None)
            raise
        passphrases = volume_keys.of_user(self.deps, parts.volumes.devices)
        taken = self._take_volumes(parts.volumes, uuid_list)
        rows = [{**row, "disk_config": disk_config, "volumes": taken[row["uuid"]] or None}
                for row in _rows(self.deps, order, parts, uuid_list, who)]
        entries = [_entry(self.deps, order, row, who, parts.network.group_ids) for row in rows]

        def insert(tx: Connection) -> tuple[states.Entry, ...]:
            made = servers.insert(tx, rows, entries, order.metadata, order.tags)
            security_groups.join_new(tx, parts.network.members_of, uuid_list)
            create_volumes.written(tx, taken)
            return made
        with failures.on_failure(lambda: self._volumes.give_back(taken), on=errors.NovaError):
            made = self.deps.cell.transact(insert)
        self.deps.runner.start(made, secrets={"admin_password": order.admin_password, **passphrases})
        assert count == len(made)
        return CreatedServers(reservation_id=rows[0]["reservation_id"], uuids=tuple(uuid_list), disk_config=disk_config,
                              security_groups=parts.network.security_groups)

    def _take_volumes(self, wanted: WantedVolumes, uuid_list: list[str]) -> Mapping[str, tuple[BlockDevice, ...]]:
        """Reserve the volumes, as the last step that can be refused: the servers' ledger rows are closed again then."""
        def close(tx: Connection) -> None:
            ledger.close(tx, dict.fromkeys(uuid_list, 2**62))
        with failures.on_failure(lambda: self.deps.api.transact(close), on=errors.NovaError):
            return self._volumes.take(wanted, uuid_list)

    def _made_before(self, order: NewServer) -> CreatedServers | None:
        """Return the result of the first delivery, if this message is a redelivery."""
        with self.deps.api.reading() as tx:
            known = ledger.opened(tx, [_uuid(order, index) for index in range(min(order.max_count, MOST_AT_ONCE))])
        return CreatedServers(reservation_id=_reservation(order), uuids=tuple(known)) if known else None

    def _look_up(self, order: NewServer, user_id: str, project_id: str, image: Image | None) -> LookedUp:
        whose = quota.owner(self.deps, project_id, user_id)
        with self.deps.api.reading() as tx:
            with failures.replaced(errors.NotFound, lambda _: errors.server.BadFlavor(flavor_id=order.flavor_id)):
                flavor = flavors.get(tx, order.flavor_id, Scope(project_id=project_id))
            key = keypair(tx, user_id, order.key_name)
        disks = block_devices.merged(order.disks, order.volumes, image.properties if image else {}, flavor,
                                     order.unmapped)
        most, count = self.deps.settings.max_local_block_devices, block_devices.count_local(*disks, flavor)
        if 0 <= most < count:
            raise errors.server.TooManyLocalDisks(count=count, most=most)
        wanted = self._volumes.look_up(create_volumes.named(disks.volumes, ROOT_NAME, count), _zone(self.deps, order))
        if root_of(wanted.devices) is not None:  # the volume's contents are no longer an image's data
            image = msgspec.structs.replace(wanted.image or image or Image(id=""), id="")
        with self.deps.api.reading() as tx:
            each = self.deps.quotas.counted(local(flavor, wanted.devices), image.properties if image else {})
            project_limits, limits = quota.effective(self.deps, tx, whose, each)
        checks.check_disk_of(image)
        check_flavor(as_large_as_root(flavor, wanted.devices), image, order)
        checks.check_needs(self.deps, flavor, image)
        check_items(order.metadata, order.files, limits)
        admitted = self._admit(order, project_id, project_limits)
        return LookedUp(flavor, image, disks.local, admitted, key.public_key if key else None,
                        key.type if key else "ssh", limits, project_limits, each, wanted)

    def _admit(self, order: NewServer, project_id: str, limits: Mapping[str, int]) -> Admitted:
        """Check the networks and security groups of the request, and the requested host and node."""
        if order.host or order.node:
            with self.deps.cell.reading() as tx:
                check_place(tx, order)
        return self.deps.networking.admit(NetworkRequest(project_id, order.networks, order.security_groups,
                                                       order.make_network, order.max_count, limits,
                                                       order.may_use_external))

    def _open_ledger(self, order: NewServer, parts: LookedUp, who: context.RequestContext) -> tuple[int, list[str]]:
        """Open ledger rows for as many servers as quota allows, between min_count and max_count. Raises OverQuota if it
        allows fewer than min_count."""
        facts = ServerFacts(flavor=_kept(parts.flavor), image_id=parts.image.id if parts.image else "",
                            availability_zone=parts.volumes.zone)

        needed = classes(local(parts.flavor, parts.volumes.devices), parts.image.properties if parts.image else {})

        def write(tx: Connection) -> list[str]:
            ledger.lock_owner(tx, str(who.project_id))
            group = joining(tx, order, who, parts.limits)
            count = self._fitting(tx, order, parts, who)
            if group is not None and group.remaining is not None:
                count = min(count, group.remaining)
            uuid_list = [_uuid(order, index) for index in range(count)]
            ledger.open_rows(tx, [{"server_uuid": uuid, "project_id": who.project_id, "user_id": who.user_id,
                                   "vcpus": parts.flavor.vcpus, "memory_mb": parts.flavor.memory_mb, "facts": facts,
                                   "classes": needed}
                                  for uuid in uuid_list])
            join(tx, group, uuid_list, who)
            return uuid_list
        uuid_list = self.deps.api.transact(write)
        return len(uuid_list), uuid_list

    def _fitting(self, tx: Connection, order: NewServer, parts: LookedUp, who: context.RequestContext) -> int:
        used, each = self.deps.quotas.usage(tx, str(who.project_id), who.user_id), parts.each
        both = ((parts.project_limits, used["project"]), (parts.limits, used["user"]))
        remaining = [quota.remaining(limits.get(name, -1), now.get(name, 0), amount) for limits, now in both
                     for name, amount in each.items()]
        count = min([order.max_count, *[most for most in remaining if most is not None]])
        if count < order.min_count:
            for limits, now in both:
                quota.check(limits, now, {name: order.min_count * amount for name, amount in each.items()})
        if count > MOST_AT_ONCE:
            raise errors.Invalid(f"Invalid max_count: at most {MOST_AT_ONCE} servers can be made by one request.")
        return count


def sane_hostname(name: str, fallback: str) -> str:
    """Return a host name derived from a display name: lower case letters, digits and dashes (RFC 1123), at most 63.

    Dots become dashes too: ``web.1`` is not a host ``web`` in a domain ``1``.
    """
    ascii_name = name.encode("ascii", "ignore").decode()
    words = re.sub(r"[^\w-]+", "", re.sub(r"[ _.]", "-", ascii_name)).lower().strip("-")
    return words[:MAX_HOSTNAME].strip("-") or fallback


def _names(order: NewServer, uuid_list: Sequence[str]) -> list[tuple[str, str]]:
    """(name, host name) of each server: several get the suffix ``-1``, ``-2`` ... on both, and cannot set a host
    name."""
    if order.max_count == 1:
        return [(order.name, order.hostname or sane_hostname(order.name, f"Server-{uuid_list[0]}"))]
    base = sane_hostname(order.name, "")
    return [(_numbered(order.name, index, MAX_NAME),
             _numbered(base, index, MAX_HOSTNAME) if base else f"Server-{uuid}")
            for index, uuid in enumerate(uuid_list, 1)]


def _numbered(text: str, index: int, most: int) -> str:
    """Return ``text-index``, with the text cut so that the result is at most ``most`` characters long."""
    return f"{text[:most - len(str(index)) - 1]}-{index}"


def _uuid(order: NewServer, index: int) -> str:
    """Return a server's UUID, which is the same for each delivery of the request."""
    return str(uuids.uuid5(uuids.UUID(order.key), str(index))) if order.key else str(uuids.uuid4())


def _reservation(order: NewServer) -> str:
    """Return the request's reservation id: ``r-`` and eight letters or digits."""
    chosen = random.Random(order.key or None)
    return f"r-{''.join(chosen.choices('abcdefghijklmnopqrstuvwxyz0123456789', k=8))}"


def _kept(flavor: Flavor) -> Flavor:
    """Return the flavor as stored with its servers, independent of later changes to the flavor."""
    return msgspec.structs.replace(flavor, projects=())


def _zone(deps: Deps, order: NewServer) -> str | None:
    """Return the requested availability zone, or the default zone."""
    return order.availability_zone or deps.settings.default_schedule_zone


def _rows(deps: Deps, order: NewServer, parts: LookedUp, uuid_list: Sequence[str], who: context.RequestContext
         ) -> list[dict[str, Any]]:
    image = parts.image
    common = {
        "project_id": who.project_id, "user_id": who.user_id, "description": order.description,
        "vm_state": VmState.BUILDING.value, "task_state": TaskState.SCHEDULING.value,
        "pinned_availability_zone": parts.volumes.zone,
        "flavor": _kept(parts.flavor), "flavorid": parts.flavor.flavorid,
        "image": image, "image_id": image.id if image else "",
        "kernel_id": order.kernel_id or (image.kernel_id if image else None) or "",
        "ramdisk_id": order.ramdisk_id or (image.ramdisk_id if image else None) or "", "memo": _memo(order),
        "requested_networks": parts.network.networks,
        "port_demands": parts.network.demands or None,
        "disks": _disks(parts.local, parts.flavor), "security_groups": parts.network.security_groups,
        "root_device_name": ROOT_NAME, "config_drive": (
            order.config_drive or wants_drive(image) or deps.settings.force_config_drive),
        "disk_config": order.disk_config, "key_name": order.key_name, "public_key": parts.public_key,
        "key_type": parts.key_type, "user_data": order.user_data, "files": order.files or None,
        "reservation_id": _reservation(order), "scheduler_hints": order.scheduler_hints or None,
        "trusted_certs": order.trusted_certs, "access_ip_v4": order.access_ip_v4, "access_ip_v6": order.access_ip_v6}
    return [{**common, "uuid": uuid, "name": name, "hostname": hostname, "launch_index": index}
            for index, (uuid, (name, hostname)) in enumerate(zip(uuid_list, _names(order, uuid_list), strict=True))]


def _memo(order: NewServer) -> ServerMemo | None:
    if order.client_token is None and order.shutdown_behavior == STOP:
        return None
    return ServerMemo(client_token=order.client_token, shutdown_behavior=order.shutdown_behavior)


def _disks(local_disks: Sequence[LocalDisk], flavor: Flavor) -> tuple[Disk, ...] | None:
    """Return the ephemeral and swap disks of the request or its image, within the flavor's limits; None: the
    flavor's."""
    if not local_disks:
        return None
    ephemeral = [disk for disk in local_disks if disk.kind == "ephemeral"]
    swap = [disk for disk in local_disks if disk.kind == "swap"]
    sizes = [disk.size or flavor.ephemeral_gb for disk in ephemeral]
    if sum(sizes) > flavor.ephemeral_gb:
        raise errors.Invalid(f"Ephemeral disks requested are larger than the instance type allows: {sum(sizes)} GB "
                             f"of {flavor.ephemeral_gb} GB.")
    if sum(disk.size or flavor.swap_mb for disk in swap) > flavor.swap_mb:
        raise errors.Invalid(f"Swap drive requested is larger than instance type allows ({flavor.swap_mb} MB).")
    made = [Disk(kind="root", size_gb=flavor.root_gb)]
    made += [Disk(kind="ephemeral", index=index, size_gb=size, format=disk.format)
             for index, (size, disk) in enumerate(zip(sizes, ephemeral, strict=True))]
    made += [Disk(kind="swap", size_mb=disk.size or flavor.swap_mb) for disk in swap]
    return tuple(made)


def _entry(deps: Deps, order: NewServer, row: Mapping[str, object], who: context.RequestContext,
           group_ids: tuple[str, ...]) -> dict[str, object]:
    arguments = builtins(CreateArguments(host=order.host, node=order.node, forced=order.forced,
                                         metadata=order.metadata, group_ids=group_ids))
    return {"server_uuid": row["uuid"], "action": "create", "epoch": 1,
            "runner_id": deps.journal.runner_id, "arguments": arguments, "data": {}, "history": (),
            "step": "", "direction": "do", "attempt": 1, "request_id": who.request_id, "user_id": who.user_id,
            "project_id": who.project_id, "finished_at": None, "outcome": None, "fault": None}


def launched(ops: Sequence[Op]) -> Mapping[str, object]:
    """Record the power states that the hosts reported. The default is RUNNING: if a host no longer answers, it had
    already reported the guests as running."""
    reported = {op.uuid: op.progress.power_state for op in ops}
    return {"launched_at": utc_now(), "power_state": PerServer({
        uuid: PowerState.RUNNING.value if state is None else state for uuid, state in reported.items()})}


take_host = steps.SelectNextHost()                              # the selected host first, then its alternates
CREATE_SERVER = Workflow(
    "create",                                                 # a row of model.states.ACTIONS
    steps.AwaitVolumes(),                                     # create and reserve; undo: release, delete the created
    steps.SelectHosts(),                                      # SchedulerRPC.select_hosts: hosts and alternates
    take_host,                                                # --- the steps below depend on the host ---
    steps.ClaimResources(),                                   # one api-db transaction; undo: release
    steps.ConnectVolumes(task=TaskState.BLOCK_DEVICE_MAPPING),  # allow the host to use them; undo: only reserve
    steps.BindNetworks(task=TaskState.NETWORKING),            # addresses; undo: return them
    steps.BuildGuests(task=TaskState.SPAWNING),               # ComputeRPC.build_guests; undo: destroy_guests
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),                           # retry while the scheduler is unavailable
    ending=launched,
    asks=CreateArguments,
)
