"""ComputeRPC's orders: all of them batches, whose kinds say what is done (``kinds.py``)."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.compute.guests.live_moves import LiveGuests
from nova.compute.host import Host
from nova.compute.orders.batches import Batches
from nova.compute.orders.orders import (
    BUILD,
    CRASH,
    DESCRIBE,
    DESTROY,
    DROP_SNAPSHOT,
    FETCH,
    FINISH,
    FORGET,
    LAND,
    LEAVE,
    MIGRATE,
    PAUSE,
    PREPARE,
    REBOOT,
    REBUILD,
    RESCUE,
    RESUME,
    RETURN,
    SET_PASSWORD,
    SNAPSHOT,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    UNRESCUE,
    UPLOAD,
)
from nova.model.base import HostName
from nova.model.orders import (
    BuildOrder,
    GuestOrder,
    LiveOrder,
    MoveOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    SnapshotOrder,
)


class Ordered:
    """The part of the service that takes orders; base of ``ComputeService``, which sets the attributes."""

    _host: Host
    _batches: Batches
    _live: LiveGuests

    def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(BUILD, host, orders)

    def destroy_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DESTROY, host, orders)

    def start_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(START, host, orders)

    def stop_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(STOP, host, orders)

    def reboot_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(REBOOT, host, orders)

    # --- in a server's life

    def pause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(PAUSE, host, orders)

    def unpause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UNPAUSE, host, orders)

    def suspend_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SUSPEND, host, orders)

    def resume_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RESUME, host, orders)

    def rescue_guests(self, host: HostName, orders: tuple[RescueOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RESCUE, host, orders)

    def unrescue_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UNRESCUE, host, orders)

    def rebuild_guests(self, host: HostName, orders: tuple[RebuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(REBUILD, host, orders)

    def set_passwords(self, host: HostName, orders: tuple[PasswordOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SET_PASSWORD, host, orders)

    def crash_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(CRASH, host, orders)

    def snapshot_guests(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SNAPSHOT, host, orders)

    def upload_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UPLOAD, host, orders)

    def drop_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DROP_SNAPSHOT, host, orders)

    # --- from host to host

    def leave_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(LEAVE, host, orders)

    def fetch_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FETCH, host, orders)

    def finish_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FINISH, host, orders)

    def return_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RETURN, host, orders)

    def forget_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FORGET, host, orders)

    def describe_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DESCRIBE, host, orders)

    def prepare_arrivals(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(PREPARE, host, orders)

    def migrate_guests(self, host: HostName, orders: tuple[LiveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(MIGRATE, host, orders)

    def land_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(LAND, host, orders)

    def abort_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        self._check_host(host)
        self._live.abort(server_uuid, epoch)

    def force_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        self._check_host(host)
        self._live.force(server_uuid, epoch)

    # --- within

    def _batch(self, kind: str, host: HostName, orders: tuple[Any, ...]) -> tuple[Outcome, ...]:
        self._check_host(host)
        return self._batches.run(kind, orders)

    def _check_host(self, given: HostName) -> None:
        if given != self._host.name:
            raise errors.host.Misaddressed(host=self._host.name, given=given)
