"""The libvirt driver for KVM and QEMU guests, composed of its parts."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from nova import concurrency, errors, failures
from nova.conf._options import Options
from nova.model.guest.orders import GuestState
from nova.model.host.hosts import Node
from nova.model.server.states import PowerState
from nova.privileged import sandbox
from nova.privileged.brick import Brick, HostWords, is_installed
from nova.privileged.client import in_use
from nova.privileged.mounts import Mounts
from nova.privileged.os_vif_plugs import OsVif
from nova.privileged.ovs import OpenVSwitch
from nova.privileged.qemu_img import QemuImg, ToolLimits
from nova.privileged.runner import CommandRunner, PrivateRunner
from nova.virt import interface
from nova.virt.libvirt.ceph_secrets import ensure_secret
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.disks.guest_disks import LibvirtDisks
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.tpm import Tpms
from nova.virt.libvirt.guest.agent import LibvirtAgent
from nova.virt.libvirt.guest.console_log import LibvirtConsoles
from nova.virt.libvirt.guest.definer import Definer
from nova.virt.libvirt.guest.diagnostics import LibvirtDiagnosis
from nova.virt.libvirt.guest.hotplug import LibvirtHotPlug
from nova.virt.libvirt.guest.lifecycle import LibvirtLifecycle
from nova.virt.libvirt.guest.pausing import LibvirtPausing
from nova.virt.libvirt.guest.release import Releases
from nova.virt.libvirt.guest.remote_consoles import LibvirtRemoteConsoles
from nova.virt.libvirt.guest.rescue import LibvirtRescuing
from nova.virt.libvirt.guest.serial_ports import SerialPortAllocator
from nova.virt.libvirt.guest.snapshots import LibvirtSnapshots
from nova.virt.libvirt.guest.volume_jobs import DiskJobs
from nova.virt.libvirt.guest.volumes import LibvirtVolumes
from nova.virt.libvirt.host.events import DomainEvents
from nova.virt.libvirt.host.report import LibvirtHost, node_uuid
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.moves.cold import LibvirtColdMoves
from nova.virt.libvirt.moves.file_transfer import FileTransfer
from nova.virt.libvirt.moves.live import LibvirtLiveMoves
from nova.virt.libvirt.moves.pooled import PooledDisks
from nova.virt.libvirt.moves.proxies import MigrationProxies
from nova.virt.libvirt.settings import LibvirtSettings, settings_of
from nova.virt.libvirt.settings.bricks import brick_settings_of, check_locks
from nova.virt.libvirt.settings.consoles import console_settings_of
from nova.virt.libvirt.vifs import PlugTools
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces
from nova.virt.libvirt.volumes.common import VolumeTools
from nova.virt.libvirt.volumes.connections import VolumeConnections
from nova.virt.libvirt.xml.domain import NOTES

LOG = logging.getLogger(__name__)

DISK_TOOL_TIMEOUT_S = 1200.0
BRICK_TIMEOUT_S = 300.0  # os-brick scans for a device repeatedly, with growing pauses
MOUNT_TIMEOUT_S = 150.0  # mount(8) tries an NFS server that does not answer for two minutes


def image_tool(settings: LibvirtSettings, timeout_s: float = DISK_TOOL_TIMEOUT_S,
                      runner_of: Callable[[float], CommandRunner] = PrivateRunner) -> QemuImg:
    """Return qemu-img with the operator's limits, for guests' disks and for the host's image cache."""
    return QemuImg(ToolLimits(cpu_s=settings.tool_cpu_s, memory_mb=settings.tool_memory_mb), timeout_s, runner_of)


def brick_of(settings: LibvirtSettings, runner: CommandRunner) -> Brick | None:
    """Return the os-brick adapter; None if the library is not installed."""
    own = settings.brick
    host = HostWords(lock_path=str(settings.state_path / own.lock_path), multipath=own.multipath,
                     enforce_multipath=own.enforce_multipath, debug=own.debug, address=settings.storage_ip)
    return Brick(runner, host) if is_installed() else None


def from_conf(conf: Options, host: str) -> LibvirtDriver:
    """Return the driver that ``nova.conf`` configures. Raises Invalid, which names the option."""
    settings = settings_of(conf, conf.libvirt, conf.vnc, conf.compute, conf.pci)
    return LibvirtDriver(replace(settings, consoles=console_settings_of(conf.spice, conf.serial_console),
                                 brick=brick_settings_of(conf)))


@dataclass(frozen=True, kw_only=True)
class DriverTools:
    """The tools from which the driver's parts are built; each part receives only its own."""

    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    host: LibvirtHost
    disks: DiskMaker
    images: QemuImg
    config_drive: ConfigDrive
    tpms: Tpms
    carrier: FileTransfer
    lines: SerialPortAllocator
    plug_tools: PlugTools
    runner: CommandRunner
    mount_runner: CommandRunner
    brick: Brick | None
    clock: concurrency.Clock


def tools_of(settings: LibvirtSettings, hypervisor: LibvirtHypervisor, runner_of: Callable[[float], CommandRunner],
             clock: concurrency.Clock) -> DriverTools:
    """Return the tools that the driver's parts share. ``runner_of``: returns a command runner for a timeout in
    seconds."""
    own_uuid = functools.partial(node_uuid, settings)
    folders = Folders(settings.instances_path, functools.cache(own_uuid))
    images = image_tool(settings, runner_of=runner_of)
    disks = DiskMaker(settings, images, runner_of(DISK_TOOL_TIMEOUT_S), own_uuid, clock)
    return DriverTools(
        hypervisor=hypervisor, settings=settings, folders=folders, disks=disks, images=images, clock=clock,
        runner=runner_of(30.0), mount_runner=runner_of(MOUNT_TIMEOUT_S),
        brick=brick_of(settings, runner_of(BRICK_TIMEOUT_S)),
        host=LibvirtHost(hypervisor, settings, folders, runner_of(settings.kvm_probe_timeout_s), disks.space),
        config_drive=ConfigDrive(settings.config_drive_format, settings.config_drive_limit_mb, runner_of(120.0)),
        tpms=Tpms(hypervisor, settings.tpm_path),
        carrier=FileTransfer(settings.moves, settings.tool_memory_mb, runner_of(settings.moves.copy_timeout_s)),
        lines=SerialPortAllocator(settings.consoles.serial, hypervisor, folders),
        plug_tools=PlugTools(OpenVSwitch(runner_of(35.0)), OsVif(settings.state_path / "locks")))


def _connection(settings: LibvirtSettings) -> LibvirtHypervisor:
    """Return the connection; imports libvirt on first use. Raises service.CannotStart if it or its C library is
    missing."""
    with failures.replaced(ImportError, lambda error: errors.service.CannotStart(
            reason=f"libvirt cannot be used ({error}): install Debian's packages libvirt-daemon and qemu-system-x86, "
                   "and the package's extra libvirt")):
        from nova.virt.libvirt.connection import LibvirtConnection
    return LibvirtConnection(settings.uri, settings.keepalive_s)


class LibvirtDriver(interface.Driver):
    """The libvirt driver. ``hypervisor``, ``runner_of`` (from a timeout) and the ``clock`` for waits on guests are real
    by default."""

    needs_images = True

    def __init__(self, settings: LibvirtSettings, hypervisor: LibvirtHypervisor | None = None,
                        runner_of: Callable[[float], CommandRunner] = PrivateRunner,
                 clock: concurrency.Clock | None = None) -> None:
        if hypervisor is None:
            hypervisor = _connection(settings)
        self.tools = tools_of(settings, hypervisor, runner_of, clock or concurrency.Clock())
        self._events = DomainEvents(hypervisor.reopen, self.guests, self._is_ours)
        self._agent = LibvirtAgent(hypervisor, self.tools.folders)
        self._compose(self.tools)

    def _compose(self, tools: DriverTools) -> None:
        """Build the parts from the tools and from each other."""
        hypervisor, settings, folders, facts = tools.hypervisor, tools.settings, tools.folders, tools.host.facts
        interfaces = LibvirtInterfaces(settings=settings, folders=folders, tools=tools.plug_tools)
        definer = Definer(hypervisor=hypervisor, settings=settings, folders=folders, disks=tools.disks,
                          tpms=tools.tpms, lines=tools.lines, facts=facts)
        proxies = MigrationProxies(settings=settings.moves, owner=lambda: facts().qemu_owner,
                                   libvirt_uri=settings.uri)
        self.disks = LibvirtDisks(settings=settings, folders=folders, maker=tools.disks,
                                  config_drive=tools.config_drive, tpms=tools.tpms)
        self.interfaces = interfaces
        self.lifecycle = LibvirtLifecycle(hypervisor=hypervisor, definer=definer, lines=tools.lines,
                                          clock=tools.clock, retry_s=settings.shutdown_retry_s, let_go=proxies.close)
        pausing = LibvirtPausing(hypervisor=hypervisor, definer=definer, interfaces=interfaces)
        self.pausing = self.suspending = self.held_starts = self.crash_dumps = pausing
        self.rescuing = LibvirtRescuing(hypervisor=hypervisor, definer=definer, settings=settings, folders=folders,
                                        disks=tools.disks, config_drive=tools.config_drive)
        self.agent = self._agent
        self.snapshots = LibvirtSnapshots(hypervisor=hypervisor, agent=self._agent, folders=folders,
                                          disks=tools.disks, images=tools.images, format=settings.snapshot_format,
                                          direct=tools.disks.backends.snapshots())
        self.direct_snapshots = self.snapshots if self.snapshots.direct is not None else None
        releases = Releases(hypervisor=hypervisor, attempts=settings.detach_attempts,
                            timeout_s=settings.detach_timeout_s, clock=tools.clock)
        connections = VolumeConnections(
            settings=settings, folders=folders,
            tools=VolumeTools(hypervisor, Mounts(tools.mount_runner), settings.rbd_conf, tools.brick, settings.brick))
        self.hot_plug = LibvirtHotPlug(hypervisor=hypervisor, settings=settings, folders=folders,
                                       interfaces=interfaces, facts=facts, releases=releases)
        self.volumes = LibvirtVolumes(hypervisor=hypervisor, settings=settings, folders=folders, facts=facts,
                                      connections=connections, releases=releases,
                                      jobs=DiskJobs(hypervisor=hypervisor, clock=tools.clock),
                                      agent=self._agent, images=tools.images)
        pooled = PooledDisks(tools.disks.backends, settings)
        self.cold_moves = LibvirtColdMoves(
            hypervisor=hypervisor, settings=settings, folders=folders, disks=tools.disks, tpms=tools.tpms,
            carrier=tools.carrier, interfaces=interfaces, pooled=pooled)
        self.live_moves = LibvirtLiveMoves(
            hypervisor=hypervisor, settings=settings, folders=folders, facts=facts, definer=definer,
            interfaces=interfaces, images=tools.images, tpms=tools.tpms, carrier=tools.carrier, lines=tools.lines,
            proxies=proxies, connections=connections, pooled=pooled)
        self.consoles = LibvirtConsoles(hypervisor, folders)
        self.remote_consoles = LibvirtRemoteConsoles(hypervisor, settings.consoles.spice)
        self.diagnosis = self.device_places = LibvirtDiagnosis(hypervisor, folders, facts)
        self.packed = self.kept_orders = self.image_users = folders
        self.host_uptime = tools.host
        self.image_clones = tools.disks.backends.image_clones()

    def connect(self) -> None:
        sandbox.check(self.tools.runner)
        root = self.tools.folders.root
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711)
        if self.tools.brick is not None and in_use() is None:  # a privileged helper has its own locks
            check_locks(self.tools.settings.state_path / self.tools.settings.brick.lock_path)
        self.tools.hypervisor.open(self._events.wire.put)
        if self.tools.settings.store == "rbd" and self.tools.settings.rbd_user:
            settings = self.tools.settings
            ensure_secret(self.tools.hypervisor, settings.rbd_user, settings.rbd_secret, settings.rbd_conf)
        self.tools.disks.backends.begin()
        self.tools.host.look()
        self._events.start()
        concurrency.spawn(self._agent.thaw_left_over, name="thaw")
        LOG.info("libvirt runs %s guests on this host", self.tools.host.facts().virt_type)

    def check_alive(self) -> None:
        self.tools.hypervisor.hostname()

    def nodes(self) -> tuple[Node, ...]:
        return (self.tools.host.node(),)

    def guests(self) -> tuple[GuestState, ...]:
        known = set(self.tools.folders.uuids())
        states = {uuid: state for uuid, state in self.tools.hypervisor.states().items()
                  if uuid in known or self.tools.hypervisor.noted(uuid, NOTES)}
        return tuple(GuestState(server_uuid=uuid, power_state=states.get(uuid, PowerState.NOSTATE),
                                epoch=self._epoch(uuid))
                     for uuid in sorted(known | set(states)))

    def on_power_change(self, listener: interface.PowerListener) -> None:
        self._events.listen(listener)

    def close(self) -> None:
        self._events.stop()
        self.tools.hypervisor.close()

    # --- internal

    def _epoch(self, server_uuid: str) -> int:
        order = self.tools.folders.of(server_uuid).order()
        return order.fence.epoch if order is not None else 0

    def _is_ours(self, server_uuid: str) -> bool:
        return self.tools.folders.of(server_uuid).exists() or self.tools.hypervisor.noted(server_uuid, NOTES)
