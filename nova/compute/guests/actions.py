"""Guest actions other than power: pause, suspend, rescue, rebuild, and requests to the guest agent.

As in ``lifecycle.py``, each function carries out one order and returns the guest's power state, or raises.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors, failures
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools, cache_images, ready_images, renew_base, root_gb_of
from nova.compute.guests.lifecycle import Guests
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import (
    BuildOrder,
    GuestArrival,
    GuestOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
)
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.image_clones import CloneParent
from nova.virt.interface import Rescuing

LOG = logging.getLogger(__name__)

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})
#: Disk kinds that a rebuild with preserved ephemeral disks keeps: all but the root disk.
KEPT_IN_REBUILD = frozenset({"ephemeral", "swap"})
#: Kept records of volumes: the volumes that the rebuilt guest keeps stay connected.
VOLUMES = frozenset({"volume"})


class GuestActions:
    def __init__(self, tools: BuildTools, guests: Guests) -> None:
        self._tools, self._driver, self._guests = tools, tools.driver, guests

    # --- pause and suspend

    def pause(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        pausing = able(self._driver.pausing, self._tools.host, "pause guests")
        work.check()
        return pausing.pause(order.server_uuid)

    def unpause(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Unpause the guest, or start it if it went down with its host while it was paused."""
        pausing = able(self._driver.pausing, self._tools.host, "pause guests")
        state = self._driver.lifecycle.power_state(order.server_uuid)
        if (state is None or state in OFF) and order.build is not None:
            LOG.warning("paused guest %s is no longer in memory; starting it", order.instance_name,
                        extra={"server": order.server_uuid})
            return self._guests.start(order, work, permission)
        permission.pass_(order.server_uuid)
        work.check()
        return pausing.unpause(order.server_uuid)

    def suspend(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        suspending = able(self._driver.suspending, self._tools.host, "suspend guests")
        work.check()
        return suspending.suspend(order.server_uuid)

    def resume(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        suspending = able(self._driver.suspending, self._tools.host, "suspend guests")
        build = _build_of(order, "resume")
        if self._driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING:
            return PowerState.RUNNING
        renew_base(self._tools, build)
        permission.pass_(order.server_uuid)
        work.check()
        self._driver.interfaces.plug(build)  # a rebooted host has no taps, bridges and mounts
        self._tools.volumes.connect(build)
        return self._tools.starter.resumed(suspending, build, work)

    # --- rescue

    def rescue(self, order: RescueOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Boot the guest from a rescue image. The image is fetched first, so that an unusable image does not affect the
        guest. That includes one larger than the guest's own disk, because no user pays for the additional space. A
        later failure restarts the guest."""
        rescuing, uuid = self._rescuing(), order.server_uuid
        cache_images(self._tools, (order.image, *self._parts_of(order.image)), root_gb_of(order.build))
        permission.pass_(uuid)
        work.check()
        state = self._driver.lifecycle.power_state(uuid)

        def undo() -> None:
            if state == PowerState.RUNNING:
                self._back_from_rescue(order, work, permission)
        with failures.on_failure(undo):
            if state is not None:
                self._driver.lifecycle.shut_down(uuid, order.timeout_s)
            work.check()
            self._driver.interfaces.plug(order.build)
            self._tools.volumes.connect(order.build)
            permission.pass_(uuid)
            state = rescuing.rescue(order, self._tools.images, self._files(order.build, order.admin_password))
            self._tools.markers.clear(uuid)
            return state

    def _parts_of(self, image: Image) -> tuple[Image, ...]:
        """Return the kernel and ramdisk that an image names."""
        store = self._tools.store if self._tools.driver.needs_images else None
        return tuple(store.show(one) for one in (image.kernel_id, image.ramdisk_id) if one and store is not None)

    def _back_from_rescue(self, order: RescueOrder, work: Work, permission: BatchPermission) -> None:
        with failures.keep_running(LOG, "guest %s could not be rescued, and could not be restarted: %s",
                order.instance_name, level=logging.WARNING, extra={"server": order.server_uuid}):
            work.check()
            permission.pass_(order.server_uuid)
            self._rescuing().unrescue(order.build)

    def unrescue(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        rescuing = self._rescuing()
        build = _build_of(order, "unrescue")
        renew_base(self._tools, build)
        permission.pass_(order.server_uuid)
        work.check()
        self._driver.interfaces.plug(build)
        self._tools.volumes.connect(build)
        return rescuing.unrescue(build)

    def _rescuing(self) -> Rescuing:
        return able(self._driver.rescuing, self._tools.host, "rescue guests")

    # --- rebuild

    def rebuild(self, order: RebuildOrder, work: Work, permission: BatchPermission) -> PowerState | Outcome:
        """Rebuild the guest. Until the old disks are removed, a failure leaves the guest as it was; after that, it is
        off and marked as half built, because it must not run while its operation counts as failed. If the order asks
        the host whether it shares the server's disks, the outcome answers that, also when the order is repeated."""
        uuid, asked = order.server_uuid, order.keep_disks is None
        mark, state = self._tools.arrived.get(uuid), self._driver.lifecycle.power_state(uuid)
        if asked and state is not None and mark is not None and mark.operation_id == order.fence.operation_id:
            return _arrived(uuid, state, not mark.own_disks or self._driver.disks.pooled(order.build))
        pooled = self._are_pooled(order)
        shared = pooled or self._shares_disks(order)
        own_disks = pooled or asked and not shared
        state = self._recreate(order, shared, own_disks, work, permission)
        if not asked and not pooled:
            return state
        self._tools.arrived.set(order.build, order.fence, own_disks=own_disks)
        self._tools.markers.clear(uuid)
        return _arrived(uuid, state, shared)

    def _recreate(self, order: RebuildOrder, shared: bool, own_disks: bool, work: Work, permission: BatchPermission
                  ) -> PowerState:
        build, uuid = order.build, order.server_uuid
        self._tools.volumes.check(build)
        parent = ready_images(self._tools, build)
        permission.pass_(uuid)
        work.check()
        self._tools.markers.set(build, order.fence, own_disks=own_disks)
        self._driver.lifecycle.destroy(uuid)
        with failures.on_failure(lambda: self._driver.lifecycle.destroy(uuid), quiet=True):
            self._tools.volumes.drop_others(build)  # uses the records that are kept next to the disks
            self._make_disks(order, shared, parent)
            work.check()
            self._driver.interfaces.plug(build)
            self._tools.volumes.connect(build)
            self._tools.drives.write(build)
            self._tools.drives.write_places(build)
            permission.pass_(uuid)
            work.check()
            state = self._tools.starter.new(build, work) if order.start else self._driver.lifecycle.define(build)
        if order.keep_disks is not None:
            self._tools.markers.clear(uuid)
        return state

    def _make_disks(self, order: RebuildOrder, shared: bool, parent: CloneParent | None) -> None:
        if not shared:
            kept = KEPT_IN_REBUILD if order.keep_ephemeral else frozenset()
            self._driver.disks.remove_disks(order.server_uuid, kept | (VOLUMES if order.build.volumes else kept))
        self._driver.disks.create_disks(order.build, self._tools.images, parent)

    def _are_pooled(self, order: RebuildOrder) -> bool:
        """True if the guest's disks are in a shared pool and the guest has no directory here. If this fails, the host
        must not remove the disks, but must remove all else."""
        mark, uuid = self._tools.markers.get(order.server_uuid), order.server_uuid
        tried = mark is not None and mark.own_disks and mark.operation_id == order.fence.operation_id
        known = uuid in {guest.server_uuid for guest in self._driver.guests()}
        return (tried or not known) and self._driver.disks.pooled(order.build)

    def _shares_disks(self, order: RebuildOrder) -> bool:
        """True if the server's disks are already here. Raises guest.NoSharedDisks if the order says so and they are
        not: an empty disk would replace the owner's data."""
        if order.keep_disks is False:
            return False
        mark, uuid = self._tools.markers.get(order.server_uuid), order.server_uuid
        made_here = mark is not None and mark.own_disks  # by this operation's first attempt
        there = not made_here and uuid in {guest.server_uuid for guest in self._driver.guests()}
        if order.keep_disks and not there:
            raise errors.guest.NoSharedDisks(uuid=uuid, host=self._tools.host)
        return there

    def _files(self, build: BuildOrder, admin_password: str | None) -> Mapping[str, bytes] | None:
        """Return the contents of a config drive; None for a guest without one."""
        return self._tools.drives.files(msgspec.structs.replace(build, admin_password=admin_password))

    # --- guest agent

    def set_password(self, order: PasswordOrder, work: Work, permission: BatchPermission) -> PowerState:
        agent = able(self._driver.agent, self._tools.host, "set a guest's password")
        work.check()
        agent.set_password(order.server_uuid, order.user, order.password)
        return self._state(order.server_uuid)

    def crash(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        crash_dumps = able(self._driver.crash_dumps, self._tools.host, "trigger a crash dump in guests")
        permission.pass_(order.server_uuid)
        work.check()
        crash_dumps.crash(order.server_uuid)
        return self._state(order.server_uuid)

    def _state(self, server_uuid: str) -> PowerState:
        return self._driver.lifecycle.power_state(server_uuid) or PowerState.NOSTATE


def _arrived(server_uuid: str, state: PowerState, shared: bool) -> Outcome:
    return Outcome(server_uuid=server_uuid, power_state=state, arrival=GuestArrival(shared=shared))


def _build_of(order: GuestOrder, what: str) -> BuildOrder:
    if order.build is None:
        raise errors.host.OrderIncomplete(what=what, uuid=order.server_uuid)
    return order.build
