"""Guests told to libvirt, from their orders, and from what lies beside them."""

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
from nova.virt.libvirt.guest.serial_ports import SerialLines
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import specs
from nova.virt.libvirt.xml.disks import with_chains
from nova.virt.libvirt.xml.domain import domain_xml


@dataclass(frozen=True, kw_only=True)
class Definer:
    """``facts`` is called when the host's facts are needed: they need a connection."""

    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    disks: DiskMaker
    tpms: Tpms
    lines: SerialLines
    facts: Callable[[], HypervisorFacts]

    def define(self, order: BuildOrder) -> None:
        """Define the guest (that is off) from the order, rescued when its folder says so, for a start from scratch."""
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
        self.hypervisor.drop_saved(order.server_uuid)  # or its next start would go on from there

    def arriving(self, order: BuildOrder, lines: tuple[specs.SerialLine, ...]) -> str:
        """The guest as it would be defined here, for what comes of it from elsewhere to be compared with; with all that
        lies under its volumes' files, as their headers say now. guest.DiskUnsafe."""
        folder = self.folders.of(order.server_uuid)
        spec = self._spec(order, folder.shown_disks(), folder)
        ports = max(spec.devices.serial_ports, len(lines))  # a guest keeps those that it has
        made = _xml(replace(spec, devices=replace(spec.devices, serial_ports=ports)), folder, lines)
        chains = {one.volume_id: volume_files.chain(one.path, one.format)[1:] for one in folder.volumes()
                  if one.format != "raw"}
        return with_chains(made, chains) if chains else made

    def _spec(self, order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Folder) -> specs.GuestSpec:
        return guest_spec(order, disks, folder.path, self.facts(), self.settings, folder.volumes())

    def _check_disks(self, order: BuildOrder, folder: Folder, disks: tuple[DiskRecord, ...]) -> None:
        """Those that the order asks for are in the record, and all of the record are there: a guest without its disks
        is an error, and never one that runs empty. guest.NoDisks, which names them."""
        recorded = {disk.name for disk in folder.disks()}
        wanted = {disk.name for disk in plan.plan(order, self.settings, None)}
        missing = (wanted - recorded) | {disk.name for disk in disks if not self.disks.exists(folder, disk)}
        if not folder.exists() or missing:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names=", ".join(sorted(missing)) or "all")


def _xml(spec: specs.GuestSpec, folder: Folder, lines: tuple[specs.SerialLine, ...]) -> str:
    return domain_xml(_rescued(replace(spec, devices=replace(spec.devices, lines=lines)), folder))


def _rescued(spec: specs.GuestSpec, folder: Folder) -> specs.GuestSpec:
    """A rescued guest starts from the rescue system's kernel, if it has one, and never from the guest's own."""
    record = folder.rescue()
    if record is None:
        return spec
    kernel, ramdisk = (str(folder.file(name)) if name else None for name in (record.kernel, record.ramdisk))
    command_line = (record.command_line or COMMAND_LINE) if kernel else None
    return replace(spec, boot=replace(spec.boot, kernel=kernel, ramdisk=ramdisk, command_line=command_line))
