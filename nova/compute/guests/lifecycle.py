"""The basic lifecycle of one guest on one host: build, destroy, start, stop, reboot.

Each function carries out one order and returns the guest's power state, or raises. The callers (``batches.py``,
``orders.py``) do batching, joining and fencing. No state is kept in memory: leftovers of a kill are found again by UUID
and mark.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time

from nova import errors, failures
from nova.compute.guests import build as steps
from nova.compute.guests.build import Build, BuildStep, BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
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
    """The guests of this host. The caller ensures that each guest has one order at a time."""

    def __init__(self, tools: BuildTools) -> None:
        self._tools, self._driver = tools, tools.driver

    def build(self, order: BuildOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Build the guest and start it; a failure is undone before the error is raised."""
        uuid = order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None and (state == PowerState.RUNNING or not self._tools.markers.has(uuid)):
            LOG.info("guest %s has already been built", order.instance_name, extra={"server": uuid})
            self._tools.markers.clear(uuid)
            return state
        build = Build(order, self._tools, work, permission)
        _run(BUILD, build)
        self._tools.markers.clear(uuid)
        return build.power_state

    def destroy(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Remove everything of the guest."""
        permission.pass_(order.server_uuid)
        self.remove(order.server_uuid, order.build, order.keep_disks, order.fence.operation_id)
        return PowerState.NOSTATE

    def remove(self, server_uuid: str, order: BuildOrder | None = None, keep_disks: bool = False,
               operation_id: int = 0) -> None:
        """Remove domain, taps and disks, including the source copy's, without asking: the caller has an explicit record
        that the guest is gone. ``keep_disks``: keep the disks that the server's new host uses, but not disks that this
        very operation had made here."""
        made_for = self._made_for(server_uuid, operation_id)
        keep_disks = keep_disks and not self._are_copies(server_uuid) and not made_for
        self._driver.lifecycle.destroy(server_uuid)  # a guest that cannot be stopped keeps its disks
        self._tools.guard.drop(server_uuid)
        self._tools.volumes.disconnect(server_uuid)  # uses the records that are kept next to the disks
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
        """True if the disks here were made for a guest that has not arrived. A conductor that gives up the live
        migration may not know that they are copies, if this host's answer was lost; this host does."""
        mark = self._tools.markers.get(server_uuid)
        return mark is not None and mark.own_disks and self._driver.lifecycle.power_state(server_uuid) is None

    def _made_for(self, server_uuid: str, operation_id: int) -> bool:
        """True if the disks here were made by an evacuation that is now undone. Its conductor may not know that the
        host shares no storage, if this host's answer was lost; this host does, even if it died before the guest was
        complete."""
        marks = (self._tools.arrived.get(server_uuid), self._tools.markers.get(server_uuid))
        return any(mark is not None and mark.own_disks and not mark.live and mark.operation_id == operation_id
                   for mark in marks)

    def forget(self, server_uuid: str) -> None:
        """Remove the guest's source copy, without asking."""
        if self._driver.cold_moves is not None:
            self._driver.cold_moves.forget(server_uuid)
        self._tools.source_marks.clear(server_uuid)
        if self._driver.lifecycle.power_state(server_uuid) is None:  # rules of guests that may come back were loaded
            self._tools.guard.drop(server_uuid)

    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        if self._driver.snapshots is not None and image_id:
            self._driver.snapshots.drop_snapshot(server_uuid, image_id, given)

    def expedite(self, order: GuestOrder, work: Work, permission: BatchPermission) -> None:
        """Prepare a destroy before it waits for its turn: abort a migration or power off a guest, so that the destroy
        does not wait for a graceful shutdown."""
        with contextlib.suppress(Exception):  # the destroy itself tries again, and reports errors
            if any(kind.migrates for kind in work.overtook) and self._driver.live_moves is not None:
                permission.pass_(order.server_uuid)
                self._driver.live_moves.abort(order.server_uuid)
            elif any(kind.asks for kind in work.overtook):
                permission.pass_(order.server_uuid)
                self._driver.lifecycle.destroy(order.server_uuid)

    def start(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Start the guest, redefined from the order: it gets this host's current configuration, whether or not it was
        still defined."""
        uuid = order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state == PowerState.RUNNING:
            return PowerState.RUNNING
        if order.build is not None:
            steps.renew_base(self._tools, order.build)
        permission.pass_(uuid)
        work.check()
        if order.build is not None:
            self._driver.interfaces.plug(order.build)  # a rebooted host has no taps, bridges and mounts
            self._tools.volumes.connect(order.build)
            self._redefine(order.build, known=state is not None)
            return self._tools.starter.again(order.build, work)
        return self._driver.lifecycle.start(uuid)

    def _redefine(self, build: BuildOrder, known: bool) -> None:
        """Define the guest from the order. If it is ``known``, and this host can no longer run what the order
        describes, the guest keeps its old definition."""
        if not known:
            LOG.warning("guest %s was missing from libvirt; redefined it", build.instance_name,
                        extra={"server": build.server_uuid})
        try:
            self._driver.lifecycle.define(build)
        except (errors.HostRefused, errors.Invalid) as error:
            if not known:
                raise
            LOG.warning("guest %s cannot be redefined here; starting it with its old definition: %s",
                        build.instance_name, error, extra={"server": build.server_uuid})

    def stop(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Ask the guest to shut down, and power it off after the order's timeout. A guest that is not defined counts as
        off."""
        work.check()
        if self._driver.lifecycle.power_state(order.server_uuid) is None:
            if self._tools.markers.has(order.server_uuid):
                raise errors.guest.HalfBuilt(uuid=order.server_uuid, host=self._tools.host)
            LOG.warning("guest %s is not defined; treating it as stopped", order.instance_name,
                        extra={"server": order.server_uuid})
            return PowerState.SHUTDOWN
        return self._driver.lifecycle.shut_down(order.server_uuid, order.timeout_s)

    def reboot(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Reboot the guest. Soft: ask the guest to reboot. Hard, or if the soft reboot fails: stop it, redefine it from
        the order, and start it."""
        if order.build is not None:
            steps.renew_base(self._tools, order.build)
        permission.pass_(order.server_uuid)  # a soft reboot may stop and start the guest, too
        work.check()
        if order.reboot == "soft" and self._reboot_softly(order):
            return self._driver.lifecycle.power_state(order.server_uuid) or PowerState.RUNNING
        permission.pass_(order.server_uuid)
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
        self._tools.markers.clear(order.server_uuid)  # complete enough to run
        return state

    def _restore_stranded(self, order: GuestOrder) -> None:
        """Restore the source copy of a guest that has nothing else here, which a move that ended in ERROR may have
        left. A hard reboot implies that the guest is wanted here."""
        uuid, moves = order.server_uuid, self._driver.cold_moves
        if moves is not None and uuid in moves.kept_sources() and \
                uuid not in {guest.server_uuid for guest in self._driver.guests()}:
            LOG.warning("guest %s was left as a source copy by a failed move; restoring it", order.instance_name,
                        extra={"server": uuid})
            moves.restore_source(uuid)
            self._tools.source_marks.clear(uuid)

    def _reboot_softly(self, order: GuestOrder) -> bool:
        try:
            done = self._driver.lifecycle.reboot(order.server_uuid, order.timeout_s)
        except (errors.NotFound, errors.Conflict, errors.NotSupported) as error:
            LOG.info("soft reboot is not possible: %s", error, extra={"server": order.server_uuid})
            done = False
        if not done:
            LOG.info("guest %s did not reboot within %d s; doing a hard reboot", order.instance_name,
                     order.timeout_s, extra={"server": order.server_uuid})
        return done


def _run(steps_: tuple[BuildStep, ...], build: Build) -> None:
    """Run all steps in order. On an error, undo backwards from the failing step, included, and raise the error."""
    for number, step in enumerate(steps_):
        started = time.monotonic()
        failed = functools.partial(_failed, steps_[:number + 1], build)
        with failures.reported_to(failed, on=Exception):
            build.work.check()
            step.do(build)
        LOG.debug("%s: %s took %.1f ms", build.order.instance_name, step.name, 1000 * (time.monotonic() - started),
                  extra={"server": build.uuid})


def _failed(done: tuple[BuildStep, ...], build: Build, error: Exception) -> None:
    LOG.info("building %s failed in step '%s': %s", build.order.instance_name, done[-1].name, error,
             extra={"server": build.uuid})
    _undo(done, build)


def _undo(done: tuple[BuildStep, ...], build: Build) -> None:
    """Undo the steps backwards. A step that cannot be undone stays marked, for the conductor's destroy and for this
    host's next start."""
    clean = True
    for step in reversed(done):
        if step.name == steps.Reserve.name and not clean:
            return
        if error := failures.failure_of(step.undo, build):
            clean = False
            LOG.error("undoing step '%s' of %s failed; the guest stays marked as half built", step.name,
                      build.order.instance_name, extra={"server": build.uuid}, exc_info=error)
            if step.name == steps.StartGuest.name:
                return  # a guest that may still run keeps its taps and disks
