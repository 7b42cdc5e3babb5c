"""What every room of the driver works with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nova import errors
from nova.concurrency import Clock
from nova.model.images import Image
from nova.model.networks import Interface
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.privileged.qemu_img import QemuImg
from nova.virt import image_files
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.folders import DiskRecord, Folder, Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.guest.firmware import COMMAND_LINE
from nova.virt.libvirt.guest.serial_ports import SerialLines
from nova.virt.libvirt.guest.tpm import Tpms
from nova.virt.libvirt.host.facts import HostFacts
from nova.virt.libvirt.hypervisor import Hypervisor
from nova.virt.libvirt.moves.file_transfer import Carrier
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.vifs import Hands, Place, prepare
from nova.virt.libvirt.xml import specs
from nova.virt.libvirt.xml.domain import domain_xml

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What the driver works with. ``facts`` is called when the host's facts are needed: they need a connection."""

    hypervisor: Hypervisor
    settings: Settings
    folders: Folders
    disks: DiskMaker
    images: QemuImg
    config_drive: ConfigDrive
    tpms: Tpms
    carrier: Carrier
    lines: SerialLines
    hands: Hands
    facts: Callable[[], HostFacts]
    clock: Clock


class Room:
    """Base of the driver's rooms."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def _folder(self, server_uuid: str) -> Folder:
        return self._tools.folders.of(server_uuid)

    def _state(self, server_uuid: str) -> PowerState:
        state = self._tools.hypervisor.state(server_uuid)
        if state is None:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return state

    def _prepare(self, order: BuildOrder, interface: Interface) -> None:
        """The host's side of one interface. HostRefused."""
        prepare(interface, Place(order.server_uuid, self._tools.settings, self._tools.hands))

    def _define(self, order: BuildOrder) -> None:
        """Define the guest (that is off) from the order, rescued when its folder says so, for a start from scratch."""
        folder, hypervisor = self._folder(order.server_uuid), self._tools.hypervisor
        disks = folder.shown_disks()
        self._check_disks(order, folder, disks)
        folder.own()
        folder.keep_copy_of(None)
        folder.keep_order(order)
        spec = guest_spec(order, disks, folder.path, self._tools.facts(), self._tools.settings)
        if spec.devices.tpm is not None:
            self._tools.tpms.prepare(order.server_uuid, folder)
        with self._tools.lines.choose(order.server_uuid, spec.devices.serial_ports) as lines:
            spec = replace(spec, devices=replace(spec.devices, lines=lines))
            hypervisor.define(domain_xml(_rescued(spec, folder)))
        folder.reserve_ports(())
        hypervisor.drop_saved(order.server_uuid)  # or its next start would go on from there

    def _check_disks(self, order: BuildOrder, folder: Folder, disks: tuple[DiskRecord, ...]) -> None:
        """Those that the order asks for are in the record, and all of the record are there: a guest without its disks
        is an error, and never one that runs empty. guest.NoDisks, which names them."""
        recorded = {disk.name for disk in folder.disks()}
        wanted = {disk.name for disk in plan.plan(order, self._tools.settings, None)}
        missing = (wanted - recorded) | {disk.name for disk in disks if not self._tools.disks.exists(folder, disk)}
        if not folder.exists() or missing:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names=", ".join(sorted(missing)) or "all")


def _rescued(spec: specs.GuestSpec, folder: Folder) -> specs.GuestSpec:
    """A rescued guest starts from the rescue system's kernel, if it has one, and never from the guest's own."""
    record = folder.rescue()
    if record is None:
        return spec
    kernel, ramdisk = (str(folder.file(name)) if name else None for name in (record.kernel, record.ramdisk))
    command_line = (record.command_line or COMMAND_LINE) if kernel else None
    return replace(spec, boot=replace(spec.boot, kernel=kernel, ramdisk=ramdisk, command_line=command_line))


def base_of(image: Image | None, images: LocalImages | None) -> plan.Base | None:
    """The image as it lies in this host's cache; None for none. host.CouldNot."""
    if image is None or images is None:
        return None
    try:
        path = images.path(image.id)
    except KeyError:
        raise errors.host.CouldNot(reason=f"Image {image.id} is not in this host's cache (any more).") from None
    return plan.Base(path, image_files.format_of(path), image_files.virtual_bytes(path))


@contextlib.contextmanager
def as_refusals() -> Iterator[None]:
    """A tool that fails on this host need not fail on the next."""
    try:
        yield
    except errors.host.CommandFailed as error:
        raise errors.host.CouldNot(reason=str(error)) from error
