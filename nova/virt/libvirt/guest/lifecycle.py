"""Guests made, started, stopped and unmade (``nova.virt.interface.Lifecycle``), from an order and this host's facts.

Whoever calls sees to it that one guest has one caller at a time. What was done is on disk before it counts: see
:mod:`nova.virt.libvirt.disks.folders`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping

from nova import errors
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.privileged import disk_exports
from nova.virt import image_files
from nova.virt.interface import LocalImages
from nova.virt.libvirt import vifs
from nova.virt.libvirt.base import OFF, Room, Tools, as_refusals, base_of
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.guest.definition import KERNEL, RAMDISK

__all__ = ["LibvirtLifecycle", "Tools"]

LOG = logging.getLogger(__name__)

POLL_S = 0.2


class LibvirtLifecycle(Room):
    """All of Lifecycle."""

    # --- disks

    def create_disks(self, order: BuildOrder, images: LocalImages | None) -> None:
        folder = self._folder(order.server_uuid)
        base = base_of(order.image, images)
        if base is not None and order.image is not None and order.image.disk_format != "iso":
            root_gb = next((disk.size_gb for disk in plan.wanted_disks(order) if disk.kind == "root"), 0)
            if root_gb:
                image_files.check_size(order.image, base.size_bytes, root_gb)
        with as_refusals():
            folder.make()
            folder.keep_order(order)
            made = {disk.name: disk for disk in folder.disks() if self._tools.disks.exists(folder, disk)}
            disks = tuple(made.get(disk.name, disk) for disk in plan.plan(order, self._tools.settings, base))
            folder.keep_disks(disks)
            self._tools.disks.make(order, folder, disks, base)
            for image, name in ((order.kernel, KERNEL), (order.ramdisk, RAMDISK)):
                if image is not None and images is not None and not folder.file(name).exists():
                    self._tools.disks.copy(images.path(image.id), folder, name)

    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        folder = self._folder(server_uuid)
        self._tools.tpms.remove(server_uuid, folder)
        if not folder.owned:  # on storage that hosts share, it is another one's guest now
            return folder.leave()
        disk_exports.withdraw(folder.path)
        with as_refusals():
            self._tools.disks.remove(folder, keep)
        if keep:
            folder.keep_only(keep)
        else:
            folder.remove()

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        folder = self._folder(order.server_uuid)
        with as_refusals():
            folder.make()
            size = self._tools.config_drive.write(folder.file(plan.CONFIG_NAME), files)
        others = tuple(disk for disk in folder.disks() if disk.kind != "config")
        folder.keep_disks((*others, plan.config_drive(self._tools.settings, size)))

    # --- interfaces

    def plug(self, order: BuildOrder) -> None:
        folder = self._folder(order.server_uuid)
        plugs = vifs.records(order.interfaces)
        folder.make()
        known = {plug.device: plug for plug in (*folder.plugs(), *plugs)}
        folder.keep_plugs(tuple(known.values()))  # before anything is plugged: it is what unplug goes by
        for interface in order.interfaces:
            self._prepare(order, interface)

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        folder = self._folder(server_uuid)
        plugs = {plug.device: plug for plug in folder.plugs()}
        for plug in vifs.known_records(order.interfaces) if order is not None else ():
            plugs.setdefault(plug.device, plug)
        for plug in plugs.values():
            vifs.unplug(plug, self._tools.hands)
        if folder.exists():
            folder.keep_plugs(())
            folder.leave()

    # --- the guest

    def start_new(self, order: BuildOrder) -> PowerState:
        if self.define(order) in OFF:
            self._tools.hypervisor.start(order.server_uuid)
        return self._state(order.server_uuid)

    def define(self, order: BuildOrder) -> PowerState:
        if self._tools.hypervisor.state(order.server_uuid) in OFF | {None}:
            self._define(order)
        return self._state(order.server_uuid)

    def destroy(self, server_uuid: str) -> None:
        self._tools.hypervisor.stop_now(server_uuid)
        self._tools.hypervisor.undefine(server_uuid)
        self._tools.lines.clear(server_uuid)

    def start(self, server_uuid: str) -> PowerState:
        self._tools.hypervisor.start(server_uuid)
        return self._state(server_uuid)

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        deaf = self._state(server_uuid) == PowerState.PAUSED  # it hears no button: waiting would be for nothing
        if timeout_s > 0 and not deaf and not self._stops_by_itself(server_uuid, timeout_s):
            LOG.info("the guest did not shut down within %d s and is powered off", timeout_s,
                     extra={"server": server_uuid})
        self._tools.hypervisor.stop_now(server_uuid)
        return self._state(server_uuid)

    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        if self._state(server_uuid) != PowerState.RUNNING or not self._stops_by_itself(server_uuid, timeout_s):
            return False
        self._tools.hypervisor.start(server_uuid)
        return True

    def power_state(self, server_uuid: str) -> PowerState | None:
        return self._tools.hypervisor.state(server_uuid)

    # --- inside

    def _stops_by_itself(self, server_uuid: str, timeout_s: int) -> bool:
        """Press the power button, again from time to time (a guest that boots doesn't hear it), and wait.

        NoGuest when the guest is not defined (any more: a newer order took it away).
        """
        hypervisor, clock = self._tools.hypervisor, self._tools.clock
        deadline, ask_at = clock.now() + timeout_s, 0.0
        while True:
            if self._state(server_uuid) in OFF:
                return True
            now = clock.now()
            if now >= deadline:
                return False
            if now >= ask_at:
                with contextlib.suppress(errors.HostRefused):  # a paused guest can not be asked: time will tell
                    hypervisor.ask_to_stop(server_uuid)
                ask_at = now + self._tools.settings.shutdown_retry_s
            clock.sleep(max(0.0, min(POLL_S, deadline - now)))
