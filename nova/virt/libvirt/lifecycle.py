"""Guests made, started, stopped and unmade (``nova.virt.interface.Lifecycle``), from an order and this host's facts.

Whoever calls sees to it that one guest has one caller at a time. What was done is on disk before it counts: see
:mod:`nova.virt.libvirt.folders`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from nova import concurrency, errors
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.privileged.runner import CommandFailed
from nova.virt import image_files
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.folders import Folder, Folders
from nova.virt.libvirt.guest import KERNEL, RAMDISK, HostFacts, guest_spec
from nova.virt.libvirt.hypervisor import Hypervisor, NoGuest
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.vifs import bridge
from nova.virt.libvirt.xml.domain import domain_xml

LOG = logging.getLogger(__name__)

POLL_S = 0.2
OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})


class NoDisks(errors.Conflict):
    code, message = "guest.no_disks", "The disks of guest {uuid} are not there."


class HostCannot(errors.HostRefused):
    code, message = "host.command_failed", "{reason}"


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What the driver works with. ``facts`` is called when the host's facts are needed: they need a connection."""

    hypervisor: Hypervisor
    settings: Settings
    folders: Folders
    disks: DiskMaker
    config_drive: ConfigDrive
    facts: Callable[[], HostFacts]


class LibvirtLifecycle:
    """Base of the driver: all of Lifecycle."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    # --- disks

    def create_disks(self, order: BuildOrder, images: LocalImages | None) -> None:
        folder = self._folder(order.server_uuid)
        base = _base(order, images)
        if base is not None and order.image is not None and order.image.disk_format != "iso":
            root_gb = next((disk.size_gb for disk in plan.wanted_disks(order) if disk.kind == "root"), 0)
            if root_gb:
                image_files.check_size(order.image, base.size_bytes, root_gb)
        with _as_refusals():
            folder.make()
            folder.keep_order(order)
            disks = plan.plan(order, self._tools.settings, base)
            folder.keep_disks(disks)
            self._tools.disks.make(order, folder, disks, base)
            for image, name in ((order.kernel, KERNEL), (order.ramdisk, RAMDISK)):
                if image is not None and images is not None and not folder.file(name).exists():
                    self._tools.disks.copy(images.path(image.id), folder, name)

    def remove_disks(self, server_uuid: str) -> None:
        self._folder(server_uuid).remove()

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        folder = self._folder(order.server_uuid)
        with _as_refusals():
            folder.make()
            size = self._tools.config_drive.write(folder.file(plan.CONFIG_NAME), files)
        others = tuple(disk for disk in folder.disks() if disk.kind != "config")
        folder.keep_disks((*others, plan.config_drive(self._tools.settings, size)))

    # --- interfaces

    def plug(self, order: BuildOrder) -> None:
        folder = self._folder(order.server_uuid)
        plugs = bridge.records(order.interfaces)
        folder.make()
        known = {plug.device: plug for plug in (*folder.plugs(), *plugs)}
        folder.keep_plugs(tuple(known.values()))  # before anything is plugged: it is what unplug goes by
        for interface in order.interfaces:
            bridge.prepare(interface)

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        folder = self._folder(server_uuid)
        plugs = {plug.device: plug for plug in folder.plugs()}
        for interface in order.interfaces if order is not None else ():
            with contextlib.suppress(bridge.NotBridged):
                plug = bridge.record(interface)
                plugs.setdefault(plug.device, plug)
        for plug in plugs.values():
            bridge.unplug(plug)
        if folder.exists():
            folder.keep_plugs(())

    # --- the guest

    def start_new(self, order: BuildOrder) -> PowerState:
        folder, hypervisor = self._folder(order.server_uuid), self._tools.hypervisor
        if hypervisor.state(order.server_uuid) not in OFF | {None}:
            return self._state(order.server_uuid)
        disks = folder.disks()
        if not all(folder.file(disk.name).exists() for disk in disks) or not folder.exists():
            raise NoDisks(uuid=order.server_uuid)
        folder.keep_order(order)
        spec = guest_spec(order, disks, folder.path, self._tools.facts(), self._tools.settings)
        hypervisor.define(domain_xml(spec))
        hypervisor.start(order.server_uuid)
        return self._state(order.server_uuid)

    def destroy(self, server_uuid: str) -> None:
        self._tools.hypervisor.stop_now(server_uuid)
        self._tools.hypervisor.undefine(server_uuid)

    def start(self, server_uuid: str) -> PowerState:
        self._tools.hypervisor.start(server_uuid)
        return self._state(server_uuid)

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        if timeout_s > 0 and not self._stops_by_itself(server_uuid, timeout_s):
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

    def _folder(self, server_uuid: str) -> Folder:
        return self._tools.folders.of(server_uuid)

    def _state(self, server_uuid: str) -> PowerState:
        state = self._tools.hypervisor.state(server_uuid)
        if state is None:
            raise NoGuest(uuid=server_uuid)
        return state

    def _stops_by_itself(self, server_uuid: str, timeout_s: int) -> bool:
        """Press the power button, again from time to time (a guest that boots doesn't hear it), and wait.

        NoGuest when the guest is not defined (any more: a newer order took it away).
        """
        hypervisor, deadline, ask_at = self._tools.hypervisor, time.monotonic() + timeout_s, 0.0
        while True:
            if self._state(server_uuid) in OFF:
                return True
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= ask_at:
                with contextlib.suppress(errors.HostRefused):  # a paused guest can not be asked: time will tell
                    hypervisor.ask_to_stop(server_uuid)
                ask_at = now + self._tools.settings.shutdown_retry_s
            concurrency.sleep(max(0.0, min(POLL_S, deadline - now)))


def _base(order: BuildOrder, images: LocalImages | None) -> plan.Base | None:
    if order.image is None or images is None:
        return None
    try:
        path = images.path(order.image.id)
    except KeyError:
        raise HostCannot(reason=f"Image {order.image.id} is not in this host's cache (any more).") from None
    return plan.Base(path, image_files.format_of(path), image_files.virtual_bytes(path))


@contextlib.contextmanager
def _as_refusals() -> Iterator[None]:
    """A tool that fails on this host need not fail on the next."""
    try:
        yield
    except CommandFailed as error:
        raise HostCannot(reason=str(error)) from error
