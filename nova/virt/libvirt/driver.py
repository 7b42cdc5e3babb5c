"""KVM and QEMU guests, through libvirt: the driver as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from nova.model.diagnostics import Diagnostics
from nova.model.hosts import Node
from nova.model.orders import GuestState
from nova.model.states import PowerState
from nova.privileged.qemu_img import Limits, QemuImg
from nova.privileged.runner import Runner, SystemRunner
from nova.virt.interface import PowerListener
from nova.virt.libvirt import consoles
from nova.virt.libvirt.diagnostics import diagnostics_of
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.events import Events
from nova.virt.libvirt.folders import Folders
from nova.virt.libvirt.guest import CONSOLE_LOG
from nova.virt.libvirt.host import Host
from nova.virt.libvirt.hypervisor import Hypervisor, NoGuest
from nova.virt.libvirt.lifecycle import LibvirtLifecycle, Tools
from nova.virt.libvirt.settings import Settings, settings_of
from nova.virt.libvirt.vifs import bridge
from nova.virt.libvirt.xml.domain import NOTES

LOG = logging.getLogger(__name__)

DISK_TOOL_TIMEOUT_S = 1200.0


def image_tool(settings: Settings, timeout_s: float = DISK_TOOL_TIMEOUT_S) -> QemuImg:
    """qemu-img within the operator's limits: for guests' disks, and for the host's image cache."""
    return QemuImg(Limits(cpu_s=settings.tool_cpu_s, memory_mb=settings.tool_memory_mb), timeout_s)


def from_conf(conf: Any, host: str) -> LibvirtDriver:
    """The driver as ``nova.conf`` says. Invalid names an option that can't be."""
    return LibvirtDriver(settings_of(conf, conf.libvirt, conf.vnc, conf.compute))


class LibvirtDriver(LibvirtLifecycle):
    """Driver, Lifecycle, Consoles, Diagnosis, Uptime. ``hypervisor`` and ``runner_of`` (from a timeout) are real by
    default."""

    needs_images = True

    def __init__(self, settings: Settings, hypervisor: Hypervisor | None = None,
                 runner_of: Callable[[float], Runner] = SystemRunner) -> None:
        if hypervisor is None:
            from nova.virt.libvirt.connection import Connection  # the library is loaded where it is needed
            hypervisor = Connection(settings.uri, settings.keepalive_s)
        folders = Folders(settings.instances_path)
        self._host = Host(hypervisor, settings, folders, runner_of(settings.kvm_probe_timeout_s))
        self._runner = runner_of(30.0)
        super().__init__(Tools(
            hypervisor=hypervisor, settings=settings, folders=folders, facts=self._host.facts,
            disks=DiskMaker(settings, image_tool(settings), runner_of(DISK_TOOL_TIMEOUT_S)),
            config_drive=ConfigDrive(settings.config_drive_format, settings.config_drive_limit_mb, runner_of(120.0))))
        self._events = Events(hypervisor.reopen, self.guests, self._is_ours)

    # --- Driver

    def connect(self) -> None:
        root = self._tools.settings.instances_path
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711)
        self._tools.hypervisor.open(self._events.wire.put)
        self._host.look()
        self._events.start()
        LOG.info("libvirt runs %s guests here", self._host.facts().virt_type)

    def nodes(self) -> tuple[Node, ...]:
        return (self._host.node(),)

    def guests(self) -> tuple[GuestState, ...]:
        known = set(self._tools.folders.uuids())
        states = {uuid: state for uuid, state in self._tools.hypervisor.states().items()
                  if uuid in known or self._tools.hypervisor.noted(uuid, NOTES)}
        return tuple(GuestState(server_uuid=uuid, power_state=states.get(uuid, PowerState.NOSTATE),
                                epoch=self._epoch(uuid))
                     for uuid in sorted(known | set(states)))

    def on_power_change(self, listener: PowerListener) -> None:
        self._events.listen(listener)

    def close(self) -> None:
        self._events.stop()
        self._tools.hypervisor.close()

    # --- Consoles, Diagnosis, Uptime

    def console_output(self, server_uuid: str, lines: int | None) -> str:
        text = consoles.tail(self._folder(server_uuid).file(CONSOLE_LOG), lines)
        if text is None:
            if self.power_state(server_uuid) is None:
                raise NoGuest(uuid=server_uuid)
            raise consoles.NoLog(uuid=server_uuid)
        return text

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        state = self.power_state(server_uuid)
        if state is None:
            raise NoGuest(uuid=server_uuid)
        order = self._folder(server_uuid).order()
        macs = {bridge.tap_name(one): one.mac for one in order.interfaces} if order else {}
        stats = self._tools.hypervisor.stats(server_uuid)
        return diagnostics_of(stats, state, self._host.facts().virt_type, macs)

    def uptime(self) -> str:
        return self._runner.run(["uptime"]).stdout.strip()

    # --- the image cache

    def images_in_use(self) -> frozenset[str]:
        """Ids of the images that guests of this host were made from: their cached files are needed."""
        orders = (self._tools.folders.of(uuid).order() for uuid in self._tools.folders.uuids())
        return frozenset(image.id for order in orders if order is not None
                         for image in (order.image, order.kernel, order.ramdisk) if image is not None)

    # --- inside

    def _epoch(self, server_uuid: str) -> int:
        order = self._folder(server_uuid).order()
        return order.fence.epoch if order is not None else 0

    def _is_ours(self, server_uuid: str) -> bool:
        return self._folder(server_uuid).exists() or self._tools.hypervisor.noted(server_uuid, NOTES)
