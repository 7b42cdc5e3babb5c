"""KVM and QEMU guests, through libvirt: the driver as a whole."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nova import concurrency, errors
from nova.model.diagnostics import Diagnostics
from nova.model.guests import DevicePlace
from nova.model.hosts import HostUptime, Node
from nova.model.orders import BuildOrder, GuestState
from nova.model.states import PowerState
from nova.model.topology import Packing
from nova.privileged.ovs import OpenVSwitch
from nova.privileged.qemu_img import Limits, QemuImg
from nova.privileged.runner import Runner, SystemRunner
from nova.virt.interface import PowerListener
from nova.virt.libvirt.base import Tools
from nova.virt.libvirt.console_settings import console_settings_of
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.events import Events
from nova.virt.libvirt.guest import console_log
from nova.virt.libvirt.guest.definition import CONSOLE_LOG
from nova.virt.libvirt.guest.diagnostics import diagnostics_of
from nova.virt.libvirt.guest.hotplug import LibvirtHotPlug
from nova.virt.libvirt.guest.lifecycle import LibvirtLifecycle
from nova.virt.libvirt.guest.pausing import LibvirtPausing
from nova.virt.libvirt.guest.remote_consoles import LibvirtRemoteConsoles
from nova.virt.libvirt.guest.rescue import LibvirtRescuing
from nova.virt.libvirt.guest.serial_ports import SerialLines
from nova.virt.libvirt.guest.snapshots import LibvirtSnapshots
from nova.virt.libvirt.guest.suspending import LibvirtSuspending
from nova.virt.libvirt.guest.tpm import Tpms
from nova.virt.libvirt.host import uptime
from nova.virt.libvirt.host.report import Host, node_uuid
from nova.virt.libvirt.hypervisor import Hypervisor
from nova.virt.libvirt.moves.cold import LibvirtColdMoves
from nova.virt.libvirt.moves.file_transfer import Carrier
from nova.virt.libvirt.moves.live import LibvirtLiveMoves
from nova.virt.libvirt.settings import Settings, settings_of
from nova.virt.libvirt.vifs import Hands, tap_name
from nova.virt.libvirt.vifs.os_vif_plugs import OsVif
from nova.virt.libvirt.xml import running
from nova.virt.libvirt.xml.domain import NOTES

LOG = logging.getLogger(__name__)

DISK_TOOL_TIMEOUT_S = 1200.0


def image_tool(settings: Settings, timeout_s: float = DISK_TOOL_TIMEOUT_S,
               runner_of: Callable[[float], Runner] = SystemRunner) -> QemuImg:
    """qemu-img within the operator's limits: for guests' disks, and for the host's image cache."""
    return QemuImg(Limits(cpu_s=settings.tool_cpu_s, memory_mb=settings.tool_memory_mb), timeout_s, runner_of)


def from_conf(conf: Any, host: str) -> LibvirtDriver:
    """The driver as ``nova.conf`` says. Invalid names an option that can't be."""
    settings = settings_of(conf, conf.libvirt, conf.vnc, conf.compute, conf.pci)
    return LibvirtDriver(replace(settings, consoles=console_settings_of(conf.spice, conf.serial_console)))


class LibvirtDriver(LibvirtLifecycle, LibvirtPausing, LibvirtSuspending, LibvirtRescuing, LibvirtSnapshots,
                    LibvirtColdMoves, LibvirtLiveMoves, LibvirtRemoteConsoles, LibvirtHotPlug):
    """Driver, Lifecycle, Consoles, Diagnosis, Uptime, and the protocols of its rooms. ``hypervisor`` and ``runner_of``
    (from a timeout) are real by default, and so is the ``clock`` by which guests are waited for."""

    needs_images = True

    def __init__(self, settings: Settings, hypervisor: Hypervisor | None = None,
                 runner_of: Callable[[float], Runner] = SystemRunner, clock: concurrency.Clock | None = None) -> None:
        if hypervisor is None:
            from nova.virt.libvirt.connection import Connection  # the library is loaded where it is needed
            hypervisor = Connection(settings.uri, settings.keepalive_s)
        folders = Folders(settings.instances_path, functools.cache(lambda: node_uuid(settings.state_path)))
        tool = image_tool(settings, runner_of=runner_of)
        disks = DiskMaker(settings, tool, runner_of(DISK_TOOL_TIMEOUT_S))
        self._host = Host(hypervisor, settings, folders, runner_of(settings.kvm_probe_timeout_s), disks.space)
        super().__init__(Tools(
            hypervisor=hypervisor, settings=settings, folders=folders, facts=self._host.facts, images=tool,
            clock=clock or concurrency.Clock(),
            carrier=Carrier(settings.moves, settings.tool_memory_mb, runner_of(settings.moves.copy_timeout_s)),
            tpms=Tpms(hypervisor, settings.tpm_path),
            lines=SerialLines(settings.consoles.serial, hypervisor, folders),
            hands=Hands(OpenVSwitch(runner_of(35.0)), OsVif(settings.state_path / "locks")),
            disks=disks,
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
        concurrency.spawn(self.thaw_left_over, name="thaw")
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
        text = console_log.tail(self._folder(server_uuid).file(CONSOLE_LOG), lines)
        if text is None:
            if self.power_state(server_uuid) is None:
                raise errors.guest.NotDefined(uuid=server_uuid)
            raise errors.guest.NoConsoleLog(uuid=server_uuid)
        return text

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        state = self.power_state(server_uuid)
        if state is None:
            raise errors.guest.NotDefined(uuid=server_uuid)
        order = self._folder(server_uuid).order()
        macs = {tap_name(one): one.mac for one in order.interfaces} if order else {}
        stats = self._tools.hypervisor.stats(server_uuid)
        return diagnostics_of(stats, state, self._host.facts().virt_type, macs)

    def device_places(self, server_uuid: str) -> dict[str, DevicePlace]:
        return running.places(self._tools.hypervisor.definition(server_uuid))

    def uptime(self) -> HostUptime:
        return uptime.read()

    # --- what guests hold of the host

    def packings(self, node: str = "", aside: bool = False) -> dict[str, Packing]:
        folders = self._tools.folders
        of, uuids = (folders.aside, folders.put_aside()) if aside else (folders.of, folders.uuids())
        orders = {uuid: of(uuid).order() for uuid in uuids}
        return {uuid: order.packing for uuid, order in orders.items() if order is not None and order.packing}

    def packing(self, server_uuid: str) -> Packing | None:
        order = self._folder(server_uuid).order()
        return order.packing if order is not None else None

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        return self._folder(server_uuid).order()

    # --- the image cache

    def images_in_use(self) -> frozenset[str]:
        """Ids of the images that guests were made from, put aside or not: their cached files are needed. Those of other
        hosts, too, which share the directory."""
        found: set[str] = set()
        for folder in self._tools.folders.all():
            for order in folder.orders():
                found |= {image.id for image in (order.image, order.kernel, order.ramdisk) if image is not None}
            rescue = folder.rescue()
            if rescue is not None:
                found |= set(rescue.image_ids)
        return frozenset(found)

    def bases(self, server_uuid: str) -> frozenset[str]:
        return frozenset(disk.backing for disk in self._folder(server_uuid).disks() if disk.backing)

    # --- inside

    def _epoch(self, server_uuid: str) -> int:
        order = self._folder(server_uuid).order()
        return order.fence.epoch if order is not None else 0

    def _is_ours(self, server_uuid: str) -> bool:
        return self._folder(server_uuid).exists() or self._tools.hypervisor.noted(server_uuid, NOTES)
