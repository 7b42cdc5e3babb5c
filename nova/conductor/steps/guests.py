"""Orders to compute hosts about guests: written from a server's row, fenced and sent; failures become pending
cleanups."""

from __future__ import annotations

import datetime
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from nova import errors, failures
from nova.conductor import ec2_numbers
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps.cleanups import cleanup_of
from nova.conductor.steps.placement import taken
from nova.conductor.steps.volumes import connected
from nova.db.host import host_cleanups
from nova.db.placement import claims
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import instance_name
from nova.model.base import Time, utcnow
from nova.model.guest.orders import (
    START_BY_S,
    BuildOrder,
    Disk,
    Fence,
    GuestOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
)
from nova.model.image.images import Image
from nova.model.network.port_requests import KINDS
from nova.model.numa.topology import TopologyClaim
from nova.model.scheduling.requirements import may_hold
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import VolumeDisk, root_of
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

UNREACHABLE = (errors.Unavailable,)
#: Members of Deps that are needed to write and send an order.
ORDERS = ("api", "cell", "cell_uuid", "cells", "compute", "settings", "volumes", "volume_keys")


def disks_of(server: ServerRow) -> tuple[Disk, ...]:
    """Return the local disks: the requested ones, else the flavor's root, ephemeral and swap disks. A server that boots
    from a volume has no local root."""
    from_volume = root_of(server.volumes or ()) is not None
    if server.disks:
        return tuple(disk for disk in server.disks if not (from_volume and disk.kind == "root"))
    flavor = server.flavor
    disks = [] if from_volume else [Disk(kind="root", size_gb=flavor.root_gb)]
    if flavor.ephemeral_gb:
        disks.append(Disk(kind="ephemeral", size_gb=flavor.ephemeral_gb))
    if flavor.swap_mb:
        disks.append(Disk(kind="swap", size_mb=flavor.swap_mb))
    return tuple(disks)


def build_order(deps: Deps, server: ServerRow, op: Op, fence: Fence, host: str = "",
                leaving: bool = False) -> BuildOrder:
    """Return the order to build this guest on its host, or on ``host``. ``leaving``: the server's claim there belongs
    to a move that will end."""
    settings, secrets = deps.settings, op.secrets
    return BuildOrder(
        server_uuid=server.uuid, id=server.id, name=server.name, hostname=server.hostname or "",
        instance_name=instance_name(settings.instance_name_template, server),
        project_id=server.project_id, user_id=server.user_id, fence=fence, flavor=server.flavor, image=server.image,
        kernel=_part(server.kernel_id, "aki"), ramdisk=_part(server.ramdisk_id, "ari"),
        node=op.progress.node or server.node or "", disks=disks_of(server), interfaces=server.interfaces or (),
        metadata=_metadata(deps, server, op), key_name=server.key_name, public_key=server.public_key,
        key_type=server.key_type, user_data=server.user_data,
        config_drive=server.config_drive,
        admin_password=secrets.get("admin_password"), availability_zone=server.availability_zone,
        launch_index=server.launch_index, reservation_id=server.reservation_id,
        security_groups=server.security_groups or (), files=server.files or {}, created_at=server.created_at,
        packing=topology_claim_at(deps, server, host or op.progress.host or server.host or "", leaving),
        volumes=tuple(VolumeDisk(device=device) for device in server.volumes or ()),
        ec2_numbers=ec2_numbers.of_guest(deps, server) if server.config_drive else {})


def _metadata(deps: Deps, server: ServerRow, op: Op) -> Mapping[str, str]:
    """Return the user's metadata for a config drive: the operation's arguments if they have it, else the database's."""
    begun_with: Mapping[str, str] | None = op.asked(Arguments).metadata
    if begun_with is not None or not server.config_drive:
        return begun_with or {}
    with deps.cell.reading() as tx:
        return servers.children(tx, [server.uuid])[0].get(server.uuid, {})


def guarded(deps: Deps, orders: Sequence[BuildOrder], servers: Sequence[ServerRow]) -> tuple[BuildOrder, ...]:
    """Return the orders with the guests' firewall rules, for a host that has no rules of them yet. ``servers``: their
    rows."""
    filters = deps.networking.firewalls_of(servers)
    return tuple(msgspec.structs.replace(order, firewall=filters.get(order.server_uuid)) for order in orders)


def topology_claim_at(deps: Deps, server: ServerRow, host: str, leaving: bool = False) -> TopologyClaim | None:
    """Return the server's PCI and NUMA claim on the host. The database is only read if it can have one."""
    direct = any(one.vnic_type in KINDS for one in server.port_demands or ())
    if not direct and not may_hold(server.flavor, server.image.properties if server.image else {}):
        return None
    with deps.api.reading() as tx:
        return claims.topology_claim_at(tx, server.uuid, host, leaving)


def guest_order(deps: Deps, op: Op, fence: Fence, reboot: str = "soft", leaving: bool = False) -> GuestOrder:
    """Return an order for an existing guest, with its description, so that the host can define it again."""
    server, settings = op.server, deps.settings
    return GuestOrder(
        server_uuid=server.uuid, fence=fence, reboot=reboot, timeout_s=settings.shutdown_timeout,
        instance_name=instance_name(settings.instance_name_template, server),
        build=build_order(deps, server, op, fence, server.host, leaving) if server.host else None,
        interfaces=server.interfaces or ())


def _part(image_id: str, kind: str) -> Image | None:
    return Image(id=image_id, disk_format=kind, container_format=kind) if image_id else None


def fence(op: Op) -> Fence:
    """Return this operation's permission to give orders, which expires after START_BY_S seconds."""
    return Fence(operation_id=op.entry.id, epoch=op.entry.epoch, start_by=start_by())


def start_by() -> Time:
    """Return the time by which an order that is sent now must start."""
    return utcnow() + datetime.timedelta(seconds=START_BY_S)


def results_of(ops: Sequence[Op], outcomes: Sequence[Outcome]) -> list[Result]:
    """Return a result for each op, from the host's outcomes (in any order)."""
    by_uuid = {outcome.server_uuid: outcome for outcome in outcomes}
    results: list[Result] = []
    for op in ops:
        outcome = by_uuid.get(op.uuid)
        if outcome is None:
            results.append(errors.Bug(f"the host returned no outcome for server {op.uuid}"))
        elif outcome.ok:
            results.append({"power_state": int(outcome.power_state)})
        else:
            if outcome.details:
                op.note(fault_details=outcome.details)
            results.append(errors.from_wire(outcome.error_kind, outcome.error_code, outcome.error_message, {}))
    return results


class BuildGuests(Step):
    """Build the guests, with one call for each host. Undo: destroy them; a host that cannot gets a pending cleanup."""

    uses: ClassVar[tuple[str, ...]] = (*ORDERS, "journal", "networking")
    event = "compute__do_build_and_run_instance"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        host = taken(ops[0]).host
        try:
            orders = guarded(deps, [self.order(deps, op) for op in ops], [op.server for op in ops])
            return results_of(ops, deps.compute.build_guests(host, orders))
        except UNREACHABLE as error:
            return self._without_answer(deps, ops, error)

    def order(self, deps: Deps, op: Op) -> BuildOrder:
        """Return the order to build a guest. A subclass may choose another source for its disks."""
        return connected(deps, op, build_order(deps, op.server, op, fence(op)))

    def _without_answer(self, deps: Deps, ops: Sequence[Op], error: errors.NovaError) -> list[Result]:
        """Return success for guests that the host reported before it stopped answering: their owners may use them
        already."""
        rows = deps.journal.servers([op.entry for op in ops])
        up = {uuid: row for uuid, row in rows.items() if row.vm_state == VmState.ACTIVE.value}
        return [{"power_state": up[op.uuid].power_state} if op.uuid in up else error for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Destroy the guests. A failure on the host becomes a pending cleanup, so that the server does not stay in
        BUILD."""
        for op in ops:
            host = op.progress.host
            if not host:
                continue
            with failures.parked(functools.partial(add_destroy_cleanup, deps, host, op), on=errors.NovaError,
                                 but=errors.Overtaken):
                destroy(deps, host, op)


def destroy(deps: Deps, host: str, op: Op) -> None:
    """Order the host to destroy the guest. Raises host.NoAnswer if it cannot be reached; its own errors keep their
    kind."""
    order = guest_order(deps, op, fence(op))
    with failures.replaced(UNREACHABLE, lambda error: errors.host.NoAnswer(error.message)):
        outcomes = deps.compute.destroy_guests(host, (order,))
    for result in results_of([op], outcomes):
        if isinstance(result, errors.NovaError):
            raise result


def add_destroy_cleanup(deps: Deps, host: str, op: Op, why: errors.NovaError) -> None:
    """Write a pending cleanup for the host and continue; orders that the host received before are fenced off."""
    LOG.warning("host %s could not destroy a guest; the cleanup is pending: %s", host, why.message,
                extra={"server": op.uuid})
    cleanup = cleanup_of(deps, op, host)
    op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: host_cleanups.add(tx, [cleanup]))


class GuestStep(Step):
    """A step that sends one order for existing guests to their host. ``plugs``: it may start them, so it first waits
    for their network."""

    uses = (*ORDERS, "networking")
    call: ClassVar[Callable[..., tuple[Outcome, ...]]]  # of ComputeRPC
    plugs: ClassVar[bool] = False

    def __init__(self, task: TaskState | None = None, reboot: str = "soft", *, event: str | None = None,
                 when: str | None = None) -> None:
        super().__init__(task, event=event, when=when)
        self.reboot = reboot

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].server.host
        if not host:
            return [errors.server.NoHost(server=op.uuid) for op in ops]
        if self.plugs:
            deps.networking.recheck_networks(ops)
        orders = tuple(self.order(deps, op) for op in ops)
        outcomes = getattr(deps.compute, self.call.__name__)(host, orders)
        return [{**result, "host": host} if not isinstance(result, errors.NovaError) else result
                for result in results_of(ops, outcomes)]

    def order(self, deps: Deps, op: Op) -> GuestOrder | RescueOrder | RebuildOrder | PasswordOrder:
        """Return a server's order, fenced. An error in it fails the whole call."""
        order = guest_order(deps, op, fence(op), self.reboot)
        if not (self.plugs and order.build):
            return order
        return msgspec.structs.replace(order, build=connected(deps, op, order.build))


class StartGuests(GuestStep):
    call, event, plugs = ComputeRPC.start_guests, "compute_start_instance", True


class StopGuests(GuestStep):
    call, event = ComputeRPC.stop_guests, "compute_stop_instance"



class StopIfThere(StopGuests):
    """Stop the guests of deleted servers, and succeed also if the host is down or missing."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        try:
            results = super().do(deps, ops)
        except errors.Unavailable as error:
            results = [error] * len(ops)
        return [self._tolerant(op, result) for op, result in zip(ops, results, strict=True)]

    @staticmethod
    def _tolerant(op: Op, result: Result) -> Result:
        if not isinstance(result, errors.Unavailable | errors.NotFound | errors.server.NoHost):
            return result
        LOG.warning("the guest of a deleted server could not be stopped: %s", result.message, extra={"server": op.uuid})
        return {}
