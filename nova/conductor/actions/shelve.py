"""Shelve a server: store its disk as an image and remove it from its host, immediately or later; unshelve restores
it."""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors, failures
from nova.conductor import steps, zones
from nova.conductor.actions.endings import powered, remembering
from nova.conductor.actions.snapshot import SNAPSHOT, begin_with_image, holding
from nova.conductor.actions.snapshot import origin_of as _origin
from nova.conductor.engine.begin import SHELVED, begin, locked, metadata_of, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, Result
from nova.conductor.engine.workflow import Retry, Step, Workflow
from nova.conductor.steps.guests import (
    ORDERS,
    BuildGuests,
    StopGuests,
    add_destroy_cleanup,
    build_order,
    destroy,
    fence,
    guest_order,
)
from nova.conductor.steps.images import ACTIVE, ImageArguments, discard, offloading
from nova.conductor.steps.placement import cleanup_hosts, taken
from nova.conductor.steps.volumes import connected
from nova.db.host import services
from nova.db.quota import ledger
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.db.sql.types import utc_now
from nova.model.base import utcnow
from nova.model.guest.orders import BuildOrder
from nova.model.image.images import Image, NewImage
from nova.model.server.server_orders import UnshelveServer
from nova.model.server.servers import ServerMemo
from nova.model.server.states import PowerState, TaskState, VmState
from nova.model.volumes import root_of


class Unshelving:
    """The unshelve call of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def unshelve_server(self, order: UnshelveServer) -> None:
        """Start to unshelve a server.

        Raises server.NotFound, server.WrongState; aggregate.ZoneNotAvailable, server.NoSuchHost; volume.OutOfZone.
        """
        zones.check(self.deps, order.availability_zone)
        if order.availability_zone and not self.deps.settings.cross_az_attach:
            self._check_volumes(order)
        entry = self.deps.cell.transact(lambda tx: self._unshelve(tx, order))
        self.deps.runner.start([entry])

    def _check_volumes(self, order: UnshelveServer) -> None:
        for device in row_of(self.deps, order.uuid).volumes or ():
            zone = self.deps.volumes.get(device.volume_id, as_user=True).availability_zone
            if zone != order.availability_zone:
                raise errors.volume.OutOfZone(volume=device.volume_id, zone=zone, server_zone=order.availability_zone)

    def _unshelve(self, tx: Connection, order: UnshelveServer) -> states.Entry:
        """Start the operation. A requested zone pins the server, a null zone unpins it. Only an offloaded server is
        scheduled."""
        row = locked(tx, order.uuid)
        if order.fields and row.vm_state in SHELVED and row.vm_state != VmState.SHELVED_OFFLOADED.value:
            raise errors.server.WrongState(action="unshelve", server=order.uuid, attribute="vm_state",
                                           value=row.vm_state)
        if order.host is not None and order.host not in services.compute_hosts(tx):
            raise errors.server.NoSuchHost(host=order.host)
        away = row.host is None
        entry = begin(self.deps, tx, "unshelve", order.uuid, Unshelve(
            offloaded=away, on_host=not away, host=order.host, metadata=metadata_of(tx, row)))
        if "availability_zone" in order.fields:
            servers.update(tx, order.uuid, {"pinned_availability_zone": order.availability_zone})
        return entry


def shelve(deps: Deps, uuid: str) -> None:
    """Start to shelve a server, and to offload it if shelved_offload_time is 0.

    A server that boots from a volume is always offloaded and needs no image, because the volume service has its disk.
    """
    def arguments(row: ServerRow) -> Shelve:
        if root_of(row.volumes or ()) is not None:
            return Shelve(offload=True)
        image = NewImage(id=str(uuids.uuid4()), name=f"{row.name}-shelved"[:255], properties=_origin(row, SNAPSHOT))
        return Shelve(**holding(deps, row, image), offload=deps.settings.shelved_offload_time == 0)
    begin_with_image(deps, "shelve", uuid, arguments)


LOG = logging.getLogger(__name__)

IMAGE = "snapshot_image_id"  # condition of the steps for a server whose disk is on its host
_IN_MEMORY = (VmState.PAUSED.value, VmState.SUSPENDED.value)
_OFF: dict[str, Any] = {"host": None, "node": None, "availability_zone": None}


class Shelve(ImageArguments):
    """Arguments of a shelve. ``offload``: the server leaves its host immediately."""

    offload: bool = False


class Unshelve(PlacementArguments):
    """Arguments of an unshelve: the server is still on its host, or it was offloaded."""

    offloaded: bool = False
    on_host: bool = False


class StopForShelve(StopGuests):
    """Stop the guests. Undo: start active ones again; paused or suspended ones become stopped, because their memory is
    lost."""

    formerly = "SetAsideGuests"

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        lost = [op for op in ops if _has_stopped(op) and not offloading(op) and op.server.vm_state in _IN_MEMORY]
        return {"vm_state": PerServer(dict.fromkeys([op.uuid for op in lost], VmState.STOPPED.value))} if lost else {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            host = op.server.host
            if not host or op.server.vm_state != VmState.ACTIVE.value or offloading(op):
                continue
            with failures.best_effort(LOG, "shelve failed and the guest could not be started again: %s",
                    but=errors.Overtaken, extra={"server": op.uuid}):  # the host's next report shows it as stopped
                deps.compute.start_guests(host, (guest_order(deps, op, fence(op), self.reboot),))


def _has_stopped(op: Op) -> bool:
    return op.progress.power_state == int(PowerState.SHUTDOWN)


class CheckShelvedImage(Step):
    """Check that the image service has the disk: only then may the host's be removed."""

    uses = ("images",)
    pure = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._check(deps, op) for op in ops]

    @staticmethod
    def _check(deps: Deps, op: Op) -> Result:
        image_id = shelved_image(op)
        if not image_id:
            return errors.server.NoShelvedImage(server=op.uuid, reason="it has no shelved image")
        try:
            status = deps.images.show(image_id).status
        except errors.NotFound:
            return errors.server.NoShelvedImage(server=op.uuid, reason=f"its shelved image {image_id} does not exist")
        return {} if status == ACTIVE else errors.server.NoShelvedImage(server=op.uuid,
                                                                        reason=f"its shelved image is {status}")


class OffloadGuests(Step):
    """Remove the guests from their host. This cannot be undone: a removal that fails becomes a pending cleanup."""

    uses = (*ORDERS, "feed", "journal", "networking")
    event = "compute_shelve_offload_instance"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            host = op.server.host
            if host:  # else it was released by a conductor that then died
                op.note(left=host)
                self._leave(deps, host, op)
        return [{"power_state": int(PowerState.SHUTDOWN)} for _ in ops]

    @staticmethod
    def _leave(deps: Deps, host: str, op: Op) -> None:
        def park(error: errors.NovaError) -> None:
            if not isinstance(error, errors.host.NoAnswer):
                LOG.error("host %s failed to remove a shelved guest: %s", host, error.message,
                          extra={"server": op.uuid})
            add_destroy_cleanup(deps, host, op, error)
        with failures.parked(park, on=errors.NovaError, but=errors.Overtaken):
            destroy(deps, host, op)

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Set the server to offloaded, after any failure: it has no host, and its disk is in its image."""
        memos = {}
        for op in ops:
            op.note(left=op.server.host or op.progress.left)
            image_id = op.asked(ImageArguments).snapshot_image_id or shelved_image(op)
            memos[op.uuid] = msgspec.structs.replace(op.server.memo or ServerMemo(), shelved_image_id=image_id)
            op.see(**_OFF, vm_state=VmState.SHELVED_OFFLOADED.value, memo=memos[op.uuid])
        return {**_OFF, "vm_state": VmState.SHELVED_OFFLOADED.value, "memo": PerServer(memos)}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Finish the removal, or leave it as a pending cleanup, and release the claim: an offload cannot be undone."""
        for op in ops:
            if op.progress.left:
                self._leave(deps, op.progress.left, op)
        release(deps, ops)


class ReleaseHost(Step):
    """Remove the servers from their host and release their claims there. They keep addresses and quota."""

    uses = ("api", "cell", "cell_uuid", "cells", "feed", "networking")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            op.see(**_OFF)
        return _OFF

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        release(deps, ops)
        return [{} for _ in ops]


def release(deps: Deps, ops: Sequence[Op]) -> None:
    """Unbind the servers' interfaces, and release their claims, except on hosts with pending cleanups of theirs."""
    deps.networking.leave_host(ops)
    epochs, kept = {op.uuid: op.entry.epoch for op in ops}, cleanup_hosts(deps, ops)
    deps.feed.after_release(deps.api.transact(lambda tx: ledger.release(tx, epochs, kept)))


class PlaceOnHost(Step):
    """Assign the servers to the host of their claim, with the addresses they kept; undo: remove them from it."""

    uses = ("networking", "settings")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        zone = ops[0].progress.zone or deps.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            op.see(host=op.progress.host, node=op.progress.node, availability_zone=zone)
            deps.networking.follow(tx, op, taken(op).host)
        return {"host": ops[0].progress.host, "availability_zone": zone,
                "node": PerServer({op.uuid: op.progress.node for op in ops})}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._bound(deps, op) for op in ops]

    @staticmethod
    def _bound(deps: Deps, op: Op) -> Result:
        try:
            deps.networking.bind_to(op, taken(op).host)
        except (DatabaseUnavailable, errors.daemon.WorkflowNotYet):
            raise
        except errors.NovaError as error:
            return error
        return {}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            op.see(**_OFF)
        return _OFF

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        deps.networking.leave_host(ops)


class RespawnGuests(BuildGuests):
    """Build the guests from their shelved images, or on the volumes that they boot from."""

    uses = (*ORDERS, "images", "journal", "networking")
    event = "compute_unshelve_instance"

    def order(self, deps: Deps, op: Op) -> BuildOrder:
        """Return the order to build from the shelved image's data, with the properties of the server's own image."""
        if root_of(op.server.volumes or ()) is not None:
            return super().order(deps, op)
        image_id = shelved_image(op)
        if not image_id:
            raise errors.server.NoShelvedImage(server=op.uuid, reason="it has no shelved image")
        image: Image = deps.images.show(image_id)
        if op.server.image is not None:
            image = msgspec.structs.replace(image, properties=op.server.image.properties)
        return connected(deps, op, msgspec.structs.replace(build_order(deps, op.server, op, fence(op)), image=image,
                                                           image_goes=True))


class DropShelvedImage(Step):
    """Delete the shelved image: the server has its disk again."""

    uses = ("images",)
    ignores_errors = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            if image_id := shelved_image(op):
                discard(deps, image_id)
        return [{} for _ in ops]


def shelved_image(op: Op) -> str | None:
    """Return the id of the image with the server's disk, or None if the server is not shelved."""
    memo = op.server.memo
    return memo.shelved_image_id if memo is not None else None


def shelved(ops: Sequence[Op]) -> Mapping[str, object]:
    """Set the state after a shelve. (One server: no request shelves several.)"""
    asked = ops[0].asked(Shelve)
    state = VmState.SHELVED_OFFLOADED if asked.offload else VmState.SHELVED
    return {**powered(ops), "vm_state": state.value, **remembering(
        ops, shelved_image_id=asked.snapshot_image_id, shelved_host=ops[0].progress.host,
        shelved_at=utcnow())}


def unshelved(ops: Sequence[Op]) -> Mapping[str, object]:
    """Clear the shelve from the servers' memos. A server that was offloaded gets a new launch time."""
    launched = {"launched_at": utc_now()} if ops[0].asked(Unshelve).offloaded else {}
    return {**powered(ops), **launched,
            **remembering(ops, shelved_image_id=None, shelved_host=None, shelved_at=None)}


SHELVE_SERVER = Workflow(
    "shelve",
    steps.HoldImage(when=IMAGE),                              # its record, created with the request; undo: delete it
    StopForShelve(event=""),                                  # stop; undo: start it again if it ran
    steps.TakeSnapshots(task=TaskState.SHELVING_IMAGE_PENDING_UPLOAD, event="compute_shelve_instance", when=IMAGE),
    steps.UploadSnapshots(task=TaskState.SHELVING_IMAGE_UPLOADING, when=IMAGE),
    OffloadGuests(task=TaskState.SHELVING_OFFLOADING, when="offload"),  # shelved_offload_time 0, or boot from volume
    steps.ReserveVolumes(when="offload"),
    ReleaseHost(when="offload"),
    ending=shelved,
    asks=Shelve,
)

SHELVE_OFFLOAD_SERVER = Workflow(
    "shelveOffload",
    CheckShelvedImage(),                                      # the disk is stored
    OffloadGuests(),                                          # remove the guest, or pending cleanup
    steps.ReserveVolumes(),                                   # disconnect volumes, but keep them reserved
    ReleaseHost(),                                            # claim, host and node; keep addresses and quota
    again_on=(errors.Unavailable,),
    ending=powered,
)

take_host = steps.SelectNextHost(when="offloaded")
UNSHELVE_SERVER = Workflow(
    "unshelve",
    steps.StartGuests(when="on_host", event="compute_unshelve_instance"),  # the only step if it was not offloaded
    steps.SelectHosts(when="offloaded"),
    take_host,                                                # --- the steps below depend on the host ---
    steps.ClaimResources(when="offloaded"),                   # undo: release
    steps.ConnectVolumes(when="offloaded"),                   # allow the host to use them; undo: only reserve
    PlaceOnHost(when="offloaded"),                            # set the row's host; undo: clear it
    RespawnGuests(task=TaskState.SPAWNING, when="offloaded"),  # undo: destroy_guests
    DropShelvedImage(),                                       # the host has the disk again
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=unshelved,
    asks=Unshelve,
)
