"""Table of all orders that this host accepts: for each kind, its handler and the wrappers around it.

An order is a call of ComputeRPC for many guests. ``nova.compute.orders`` admits, joins and fences orders, and gives
each guest its own outcome. The differences between kinds are defined only here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nova.compute.guests.actions import GuestActions
from nova.compute.guests.cold_moves import Moves
from nova.compute.guests.interfaces import Plugging
from nova.compute.guests.lifecycle import Guests
from nova.compute.guests.live_moves import LiveGuests
from nova.compute.guests.snapshots import SnapshotsOfGuests
from nova.compute.guests.volumes import VolumeOrders
from nova.compute.orders.kind import OrderKind, OrderT, ResourceUse
from nova.model.base import HostName
from nova.model.guest.orders import (
    BuildOrder,
    GuestOrder,
    InterfaceOrder,
    LiveOrder,
    MoveOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    SnapshotOrder,
    VolumeOrder,
    VolumeSnapshotOrder,
)
from nova.rpc.contracts.compute import ComputeRPC


class OrderHandlers(NamedTuple):
    """The handlers of orders. Each takes an order, its work and its batch's admission check, and returns the guest's
    power state, or a whole outcome if there is more to report. It raises errors."""

    guests: Guests
    life: GuestActions
    snapshots: SnapshotsOfGuests
    moves: Moves
    live: LiveGuests
    plugging: Plugging
    volumes: VolumeOrders


BUILD = OrderKind[BuildOrder]("build", ComputeRPC.build_guests, lambda by: by.guests.build, pool="builds", makes=True,
                              chosen=True, plugs=True, counts=True, place=ResourceUse.NEW)
DESTROY = OrderKind[GuestOrder]("destroy", ComputeRPC.destroy_guests, lambda by: by.guests.destroy, pool="destroys",
                                undoes=True, closes=True)
START = OrderKind[GuestOrder]("start", ComputeRPC.start_guests, lambda by: by.guests.start, starts=True, plugs=True,
                              place=ResourceUse.SAME, redefines=True)
STOP = OrderKind[GuestOrder]("stop", ComputeRPC.stop_guests, lambda by: by.guests.stop, asks=True)
REBOOT = OrderKind[GuestOrder]("reboot", ComputeRPC.reboot_guests, lambda by: by.guests.reboot, asks=True, starts=True,
                               plugs=True, place=ResourceUse.SAME, in_memory=lambda order: order.reboot == "soft")
PAUSE = OrderKind[GuestOrder]("pause", ComputeRPC.pause_guests, lambda by: by.life.pause)
UNPAUSE = OrderKind[GuestOrder]("unpause", ComputeRPC.unpause_guests, lambda by: by.life.unpause, starts=True,
                                plugs=True, place=ResourceUse.SAME, in_memory=lambda order: True)
SUSPEND = OrderKind[GuestOrder]("suspend", ComputeRPC.suspend_guests, lambda by: by.life.suspend)
RESUME = OrderKind[GuestOrder]("resume", ComputeRPC.resume_guests, lambda by: by.life.resume, starts=True, plugs=True,
                               place=ResourceUse.SAME)
RESCUE = OrderKind[RescueOrder]("rescue", ComputeRPC.rescue_guests, lambda by: by.life.rescue, asks=True, starts=True,
                                plugs=True, place=ResourceUse.SAME)
UNRESCUE = OrderKind[GuestOrder]("unrescue", ComputeRPC.unrescue_guests, lambda by: by.life.unrescue, starts=True,
                                 plugs=True, place=ResourceUse.SAME)
REBUILD = OrderKind[RebuildOrder]("rebuild", ComputeRPC.rebuild_guests, lambda by: by.life.rebuild, pool="builds",
                                  makes=True, starts=True, plugs=True, place=ResourceUse.NEW)
SET_PASSWORD = OrderKind[PasswordOrder]("set the password of", ComputeRPC.set_passwords,
                                        lambda by: by.life.set_password)
CRASH = OrderKind[GuestOrder]("crash", ComputeRPC.crash_guests, lambda by: by.life.crash)
SNAPSHOT = OrderKind[SnapshotOrder]("snapshot", ComputeRPC.snapshot_guests, lambda by: by.snapshots.take,
                                    pool="snapshots", lasts=True)
UPLOAD = OrderKind[SnapshotOrder]("upload a snapshot of", ComputeRPC.upload_snapshots, lambda by: by.snapshots.upload,
                                  pool="snapshots", lasts=True)
DROP_SNAPSHOT = OrderKind[SnapshotOrder]("drop a snapshot of", ComputeRPC.drop_snapshots, lambda by: by.snapshots.drop,
                                         undoes=True)
LEAVE = OrderKind[GuestOrder]("leave", ComputeRPC.leave_guests, lambda by: by.moves.leave, asks=True)
FETCH = OrderKind[MoveOrder]("fetch", ComputeRPC.fetch_guests, lambda by: by.moves.fetch, pool="copies", makes=True,
                             lasts=True, chosen=True, place=ResourceUse.NEW)
FINISH = OrderKind[MoveOrder]("finish the move of", ComputeRPC.finish_guests, lambda by: by.moves.finish, makes=True,
                              chosen=True, starts=True, plugs=True, place=ResourceUse.NEW)
RETURN = OrderKind[MoveOrder]("take back", ComputeRPC.return_guests, lambda by: by.moves.restore_source, makes=True,
                              undoes=True, returns=True, starts=True, plugs=True)
FORGET = OrderKind[GuestOrder]("forget", ComputeRPC.forget_guests, lambda by: by.moves.forget)
DESCRIBE = OrderKind[GuestOrder]("describe", ComputeRPC.describe_guests, lambda by: by.live.describe)
PREPARE = OrderKind[MoveOrder]("prepare for", ComputeRPC.prepare_arrivals, lambda by: by.live.prepare, makes=True,
                               chosen=True, starts=True, place=ResourceUse.NEW)
MIGRATE = OrderKind[LiveOrder]("migrate", ComputeRPC.migrate_guests, lambda by: by.live.migrate, pool="migrations",
                               lasts=True, migrates=True)
LAND = OrderKind[MoveOrder]("land", ComputeRPC.land_guests, lambda by: by.live.finish_arrival, makes=True, starts=True,
                            plugs=True)
ATTACH = OrderKind[InterfaceOrder]("plug an interface into", ComputeRPC.attach_interfaces,
                                   lambda by: by.plugging.attach, starts=True, plugs=True)
DETACH = OrderKind[InterfaceOrder]("unplug an interface of", ComputeRPC.detach_interfaces,
                                   lambda by: by.plugging.detach)
ATTACH_VOLUME = OrderKind[VolumeOrder]("attach a volume to", ComputeRPC.attach_volumes, lambda by: by.volumes.attach)
DETACH_VOLUME = OrderKind[VolumeOrder]("detach a volume of", ComputeRPC.detach_volumes, lambda by: by.volumes.detach)
EXTEND_VOLUME = OrderKind[VolumeOrder]("extend a volume of", ComputeRPC.extend_volumes, lambda by: by.volumes.extend)
SWAP_VOLUME = OrderKind[VolumeOrder]("swap a volume of", ComputeRPC.swap_volumes, lambda by: by.volumes.swap,
                                     pool="copies", lasts=True)
UNSWAP_VOLUME = OrderKind[VolumeOrder]("stop the swap of a volume of", ComputeRPC.unswap_volumes,
                                       lambda by: by.volumes.unswap, undoes=True)
SNAPSHOT_VOLUME = OrderKind[VolumeSnapshotOrder]("snapshot a volume of", ComputeRPC.snapshot_volumes,
                                                 lambda by: by.volumes.snapshot, pool="copies", lasts=True)
MERGE_VOLUME = OrderKind[VolumeSnapshotOrder]("merge a snapshot of a volume of", ComputeRPC.merge_volume_snapshots,
                                              lambda by: by.volumes.merge, pool="copies", lasts=True)

KINDS = (BUILD, DESTROY, START, STOP, REBOOT, PAUSE, UNPAUSE, SUSPEND, RESUME, RESCUE, UNRESCUE, REBUILD,
         SET_PASSWORD, CRASH, SNAPSHOT, UPLOAD, DROP_SNAPSHOT, LEAVE, FETCH, FINISH, RETURN, FORGET, DESCRIBE,
         PREPARE, MIGRATE, LAND, ATTACH, DETACH, ATTACH_VOLUME, DETACH_VOLUME, EXTEND_VOLUME, SWAP_VOLUME,
         UNSWAP_VOLUME, SNAPSHOT_VOLUME, MERGE_VOLUME)


class TakesOrders:
    """Mixin for ``ComputeService`` that accepts orders; its methods, one for each row of the table, are generated
    below."""

    def _order(self, kind: OrderKind[OrderT], host: HostName, orders: tuple[OrderT, ...]) -> tuple[Outcome, ...]:
        raise NotImplementedError


def _call(kind: OrderKind[OrderT]) -> Callable[[TakesOrders, HostName, tuple[OrderT, ...]], tuple[Outcome, ...]]:
    def call(self: TakesOrders, host: HostName, orders: tuple[OrderT, ...]) -> tuple[Outcome, ...]:
        return self._order(kind, host, orders)
    return call


for _kind in KINDS:
    setattr(TakesOrders, _kind.call.__name__, _call(_kind))
