"""Define guests in libvirt from their orders and the records in their folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.virt.libvirt.disks import plan, volume_files
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.disks.tpm import Tpms
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.guest.firmware import COMMAND_LINE
from nova.virt.libvirt.guest.serial_ports import SerialPortAllocator
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import specs
from nova.virt.libvirt.xml.disks import with_chains
from nova.virt.libvirt.xml.domain import domain_xml


@dataclass(frozen=True, kw_only=True)
class Definer:
    """Definer of guests. ``facts`` is called on demand, because the host's facts need a connection."""

    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    disks: DiskMaker
    tpms: Tpms
    lines: SerialPortAllocator
    facts: Callable[[], HypervisorFacts]

    def define(self, order: BuildOrder) -> None:
        """Define the guest, which is off, from the order; as a rescued one if its folder says so. Drops saved
        memory."""
        folder = self.folders.of(order.server_uuid)
        disks = folder.shown_disks()
        self._check_disks(order, folder, disks)
        folder.own()
        folder.keep_copy_of(None)
        folder.keep_order(order)
        spec = self._spec(order, disks, folder)
        if spec.devices.tpm is not None:
            self.tpms.prepare(order.server_uuid, folder)
        with self.lines.choose(order.server_uuid, spec.devices.serial_ports) as lines:
            self.hypervisor.define(_xml(spec, folder, lines))
        folder.note_targets({disk.serial: disk.target for disk in spec.disks if disk.serial is not None})
        folder.reserve_ports(())
        self.hypervisor.drop_saved(order.server_uuid)  # otherwise the next start would resume from it

    def arriving(self, order: BuildOrder, lines: tuple[specs.SerialLine, ...]) -> str:
        """Return the definition that the guest would have here, to which an arriving guest is compared; with the
        backing chains of its volumes' files, as their headers say now. Raises guest.DiskUnsafe."""
        folder = self.folders.of(order.server_uuid)
        spec = self._spec(order, folder.shown_disks(), folder)
        ports = max(spec.devices.serial_ports, len(lines))  # a running guest keeps its ports
        made = _xml(replace(spec, devices=replace(spec.devices, serial_ports=ports)), folder, lines)
        chains = {one.volume_id: volume_files.chain(one.path, one.format)[1:] for one in folder.volumes()
                  if one.format != "raw"}
        return with_chains(made, chains) if chains else made

    def _spec(self, order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Folder) -> specs.GuestSpec:
        return guest_spec(order, disks, folder.path, self.facts(), self.settings, folder.volumes())

    def _check_disks(self, order: BuildOrder, folder: Folder, disks: tuple[DiskRecord, ...]) -> None:
        """Check that the ordered disks are recorded and that all recorded disks exist, so that a guest never runs with
        empty disks. Raises guest.NoDisks, which names the missing ones."""
        recorded = {disk.name for disk in folder.disks()}
        wanted = {disk.name for disk in plan.plan(order, self.settings, None)}
        missing = (wanted - recorded) | {disk.name for disk in disks if not self.disks.exists(folder, disk)}
        if not folder.exists() or missing:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names=", ".join(sorted(missing)) or "all")


def _xml(spec: specs.GuestSpec, folder: Folder, lines: tuple[specs.SerialLine, ...]) -> str:
    return domain_xml(_rescued(replace(spec, devices=replace(spec.devices, lines=lines)), folder))


def _rescued(spec: specs.GuestSpec, folder: Folder) -> specs.GuestSpec:
    """Replace the boot source of a rescued guest with the rescue system's kernel, if it has one; never the guest's
    own."""
    record = folder.rescue()
    if record is None:
        return spec
    kernel, ramdisk = (str(folder.file(name)) if name else None for name in (record.kernel, record.ramdisk))
    command_line = (record.command_line or COMMAND_LINE) if kernel else None
    return replace(spec, boot=replace(spec.boot, kernel=kernel, ramdisk=ramdisk, command_line=command_line))
