"""What becomes of one guest on one host: build, destroy, start, stop, reboot.

Each function does one order and returns the guest's power state, or raises; batches, joining and fencing are around
it (``batches.py``, ``orders.py``). Nothing here is remembered: what a kill leaves is found again by uuid and mark.
"""

from __future__ import annotations

import contextlib
import logging
import time

from nova import errors
from nova.compute.guests import build as steps
from nova.compute.guests.build import Build, BuildStep, BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import BuildOrder, GuestOrder
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

BUILD: tuple[BuildStep, ...] = (
    steps.Reserve(),
    steps.FetchImages(),
    steps.MakeDisks(),
    steps.PlugInterfaces(),
    steps.ConnectGuestVolumes(),
    steps.WriteConfigDrive(),
    steps.FilterPackets(),
    steps.StartGuest(),
)


class Guests:
    """The guests of this host, one order at a time for each (the caller sees to that)."""

    def __init__(self, tools: BuildTools) -> None:
        self._tools, self._driver = tools, tools.driver

    def build(self, order: BuildOrder, work: Work, gate: BatchGate) -> PowerState:
        """Make the guest and start it; what failed is undone before the error goes on."""
        uuid = order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None and (state == PowerState.RUNNING or not self._tools.markers.has(uuid)):
            LOG.info("guest %s was built before", order.instance_name, extra={"server": uuid})
            self._tools.markers.clear(uuid)
            return state
        build = Build(order, self._tools, work, gate)
        _run(BUILD, build)
        self._tools.markers.clear(uuid)
        return build.power_state

    def destroy(self, order: GuestOrder, work: Work, gate: BatchGate) -> PowerState:
        """Leave nothing of the guest."""
        gate.pass_(order.server_uuid)
        self.remove(order.server_uuid, order.build, order.keep_disks, order.fence.operation_id)
        return PowerState.NOSTATE

    def remove(self, server_uuid: str, order: BuildOrder | None = None, keep_disks: bool = False,
               operation_id: int = 0) -> None:
        """Domain, taps and disks (the source copy's, too), without asking: whoever calls has an explicit record
        that the guest is gone. ``keep_disks``: the server's new host uses them; but not those that this very operation
        had made here."""
        made_for = self._made_for(server_uuid, operation_id)
        keep_disks = keep_disks and not self._are_copies(server_uuid) and not made_for
        self._driver.lifecycle.destroy(server_uuid)  # a guest that cannot be stopped keeps its disks
        self._tools.guard.drop(server_uuid)
        self._tools.volumes.disconnect(server_uuid)  # it goes by what is kept beside the disks
        try:
            self._driver.interfaces.unplug(server_uuid, order)
        finally:
            if keep_disks:
                self._driver.disks.leave_disks(server_uuid)
            else:
                self._driver.disks.remove_disks(server_uuid, frozenset(), made_for)
        if not keep_disks:
            self.forget(server_uuid)
        self._tools.arrived.clear(server_uuid)
        self._tools.markers.clear(server_uuid)

    def _are_copies(self, server_uuid: str) -> bool:
        """Whether the disks here were made for a guest that has not arrived: whoever gives up its live migration may
        not know (when our answer was lost) that they are not the guest's own, and this host does."""
        mark = self._tools.markers.get(server_uuid)
        return mark is not None and mark.own_disks and self._driver.lifecycle.power_state(server_uuid) is None

    def _made_for(self, server_uuid: str, operation_id: int) -> bool:
        """Whether the disks here were made by an evacuation that is now undone: its conductor may not know (when our
        answer was lost) that the host shares no storage, and this host does; also when it died before the guest was
        whole."""
        marks = (self._tools.arrived.get(server_uuid), self._tools.markers.get(server_uuid))
        return any(mark is not None and mark.own_disks and not mark.live and mark.operation_id == operation_id
                   for mark in marks)

    def forget(self, server_uuid: str) -> None:
        """Remove the guest's source copy, without asking."""
        if self._driver.cold_moves is not None:
            self._driver.cold_moves.forget(server_uuid)
        self._tools.source_marks.clear(server_uuid)
        if self._driver.lifecycle.power_state(server_uuid) is None:  # a restart read the rules of what may come back
            self._tools.guard.drop(server_uuid)

    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        if self._driver.snapshots is not None and image_id:
            self._driver.snapshots.drop_snapshot(server_uuid, image_id, given)

    def hurry(self, order: GuestOrder, work: Work, gate: BatchGate) -> None:
        """Before a destroy waits for its turn: don't let it wait for a guest that was asked to shut down kindly."""
        with contextlib.suppress(Exception):  # the destroy itself tries again, and tells
            if any(kind.migrates for kind in work.overtook) and self._driver.live_moves is not None:
                gate.pass_(order.server_uuid)
                self._driver.live_moves.abort(order.server_uuid)
            elif any(kind.asks for kind in work.overtook):
                gate.pass_(order.server_uuid)
                self._driver.lifecycle.destroy(order.server_uuid)

    def start(self, order: GuestOrder, work: Work, gate: BatchGate) -> PowerState:
        """Power on, defined anew from the order: as this host's configuration is now, whether or not it still was."""
        uuid = order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state == PowerState.RUNNING:
            return PowerState.RUNNING
        if order.build is not None:
            steps.renew_base(self._tools, order.build)
        gate.pass_(uuid)
        work.check()
        if order.build is not None:
            self._driver.interfaces.plug(order.build)  # a host that was rebooted has no taps, bridges and mounts
            self._tools.volumes.connect(order.build)
            self._define_anew(order.build, known=state is not None)
            return self._tools.starter.again(order.build, work)
        return self._driver.lifecycle.start(uuid)

    def _define_anew(self, build: BuildOrder, known: bool) -> None:
        """A guest that is ``known`` and cannot be what the order says any more, on this host, stays what it was."""
        if not known:
            LOG.warning("guest %s was not defined any more, and is again", build.instance_name,
                        extra={"server": build.server_uuid})
        try:
            self._driver.lifecycle.define(build)
        except (errors.HostRefused, errors.Invalid) as error:
            if not known:
                raise
            LOG.warning("guest %s cannot be defined anew here, and starts as it was: %s", build.instance_name, error,
                        extra={"server": build.server_uuid})

    def stop(self, order: GuestOrder, work: Work, gate: BatchGate) -> PowerState:
        """Ask the guest to shut down, and power it off after the order's time. One that isn't defined is off."""
        work.check()
        if self._driver.lifecycle.power_state(order.server_uuid) is None:
            if self._tools.markers.has(order.server_uuid):
                raise errors.guest.HalfBuilt(uuid=order.server_uuid, host=self._tools.host)
            LOG.warning("guest %s is not defined, so it counts as stopped", order.instance_name,
                        extra={"server": order.server_uuid})
            return PowerState.SHUTDOWN
        return self._driver.lifecycle.shut_down(order.server_uuid, order.timeout_s)

    def reboot(self, order: GuestOrder, work: Work, gate: BatchGate) -> PowerState:
        """Soft: ask the guest; when it doesn't, or for a hard one: stop, define anew from the order, start."""
        if order.build is not None:
            steps.renew_base(self._tools, order.build)
        gate.pass_(order.server_uuid)  # a soft reboot may stop and start the guest, too
        work.check()
        if order.reboot == "soft" and self._reboot_softly(order):
            return self._driver.lifecycle.power_state(order.server_uuid) or PowerState.RUNNING
        gate.pass_(order.server_uuid)
        work.check()
        if order.build is None:
            self._driver.lifecycle.shut_down(order.server_uuid, 0)
            return self._driver.lifecycle.start(order.server_uuid)
        self._driver.lifecycle.destroy(order.server_uuid)
        self._tools.events.forget(order.server_uuid)
        self._restore_stranded(order)
        self._driver.interfaces.plug(order.build)
        self._tools.volumes.drop_others(order.build)
        self._tools.volumes.connect(order.build)
        self._tools.drives.renew(order.build)
        state = self._tools.starter.new(order.build, work)
        self._tools.markers.clear(order.server_uuid)  # whatever was left undone before, it is whole enough to run
        return state

    def _restore_stranded(self, order: GuestOrder) -> None:
        """A move that ended in ERROR may have left the guest's source copy here, and nothing else of it: who reboots it
        hard wants that."""
        uuid, moves = order.server_uuid, self._driver.cold_moves
        if moves is not None and uuid in moves.kept_sources() and \
                uuid not in {guest.server_uuid for guest in self._driver.guests()}:
            LOG.warning("guest %s was put aside by a move that failed, and is taken back", order.instance_name,
                        extra={"server": uuid})
            moves.restore_source(uuid)
            self._tools.source_marks.clear(uuid)

    def _reboot_softly(self, order: GuestOrder) -> bool:
        try:
            done = self._driver.lifecycle.reboot(order.server_uuid, order.timeout_s)
        except (errors.NotFound, errors.Conflict, errors.NotSupported) as error:
            LOG.info("a soft reboot is not possible (%s)", error, extra={"server": order.server_uuid})
            done = False
        if not done:
            LOG.info("guest %s did not reboot by itself within %d s: the hard way", order.instance_name,
                     order.timeout_s, extra={"server": order.server_uuid})
        return done


def _run(steps_: tuple[BuildStep, ...], build: Build) -> None:
    """All steps in order; on an error undo backwards from the failing one, included, and raise it."""
    for number, step in enumerate(steps_):
        started = time.monotonic()
        try:
            build.work.check()
            step.do(build)
        except Exception as error:
            LOG.info("building %s stops in '%s': %s", build.order.instance_name, step.name, error,
                     extra={"server": build.uuid})
            _undo(steps_[:number + 1], build)
            raise
        LOG.debug("%s: %s took %.1f ms", build.order.instance_name, step.name, 1000 * (time.monotonic() - started),
                  extra={"server": build.uuid})


def _undo(done: tuple[BuildStep, ...], build: Build) -> None:
    """Undo what was done, backwards. What can't be undone stays marked, for the conductor's destroy and our start."""
    clean = True
    for step in reversed(done):
        if step.name == steps.Reserve.name and not clean:
            return
        try:
            step.undo(build)
        except Exception:
            clean = False
            LOG.exception("undoing '%s' of %s failed; the guest stays marked as half built", step.name,
                          build.order.instance_name, extra={"server": build.uuid})
            if step.name == steps.StartGuest.name:
                return  # a guest that may still run keeps its taps and disks
