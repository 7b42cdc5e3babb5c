"""Live migration: running guests leave this host, or arrive (``nova.virt.interface.LiveMoves``)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from nova import decoding, errors, failures
from nova.migrationproxy import Channel, libvirt_uri, socket_uri
from nova.model.guest.orders import BuildOrder, GuestArrival, GuestOnSource, LiveOrder, MoveOrder
from nova.model.server.states import PowerState
from nova.privileged import disk_exports
from nova.privileged.qemu_img import Overlay, QemuImg
from nova.virt.interface import LocalImages, ProgressListener
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.backends.files import whole
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.disks.tpm import Tpms
from nova.virt.libvirt.guest.definer import Definer
from nova.virt.libvirt.guest.numa_placement import placement_of
from nova.virt.libvirt.guest.serial_ports import SerialPortAllocator
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import OFF, CpuComparison, LibvirtHypervisor, MigrationParams, state_of
from nova.virt.libvirt.moves import source_info, tpm_transfer
from nova.virt.libvirt.moves.file_transfer import FileTransfer, only
from nova.virt.libvirt.moves.job import MigrationJob, MigrationJobs, MigrationListeners
from nova.virt.libvirt.moves.pooled import PooledDisks
from nova.virt.libvirt.moves.proxies import MigrationProxies
from nova.virt.libvirt.moves.source_info import SourceInfo
from nova.virt.libvirt.moves.watch import MigrationWatch
from nova.virt.libvirt.properties import requested_properties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces
from nova.virt.libvirt.volumes.connections import VolumeConnections
from nova.virt.libvirt.xml.arrival import (
    ArrivalPaths,
    InterfaceWire,
    arrival_xml,
    check_alike,
    copied_disks,
    cpu_of,
    has_direct_volumes,
    shape_of,
)
from nova.virt.libvirt.xml.consoles import GuestScreens, serials_of
from nova.virt.libvirt.xml.disks import remote_sources, volume_targets
from nova.virt.libvirt.xml.specs import PlacementSpec, SerialLine

LOG = logging.getLogger(__name__)
T = TypeVar("T")

MIB = 1 << 20
NO_POST_COPY = "Postcopy is not supported"  # QEMU's message


@dataclass(frozen=True, kw_only=True)
class LibvirtLiveMoves:
    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    facts: Callable[[], HypervisorFacts]
    definer: Definer
    interfaces: LibvirtInterfaces
    images: QemuImg
    tpms: Tpms
    carrier: FileTransfer
    lines: SerialPortAllocator
    proxies: MigrationProxies
    connections: VolumeConnections
    pooled: PooledDisks
    migrations: MigrationJobs = field(default_factory=MigrationJobs)

    # --- source

    def describe(self, server_uuid: str) -> GuestOnSource:
        state, folder = state_of(self.hypervisor, server_uuid), self.folders.of(server_uuid)
        if state in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        kept = folder.order()
        held = devices_held(kept) if kept is not None else ()
        if held:
            raise errors.move.Devices(uuid=server_uuid, devices=", ".join(held))
        source_info.check_files(folder, server_uuid)
        tpm_transfer.pack(self.tpms, server_uuid, folder, live=True)
        definition = self.hypervisor.definition(server_uuid)
        cpu, arch, machine, virt_type = cpu_of(definition)
        offer = source_info.offer_of(folder, self.settings.moves,
                                     live=True) if source_info.files_of(folder, live=True) else None
        disks, facts = source_info.describe(folder, offer.names if offer else {})
        facts |= {"arch": arch, "machine": machine or "", "virt_type": virt_type, "shape": shape_of(definition),
                  "serials": str(serials_of(definition)), "targets": _encoded(volume_targets(definition))}
        return GuestOnSource(address=offer.address if offer else "", port=offer.port if offer else 0,
                             probe=source_info.probe_of(folder), cpu=cpu, disks=disks, power_state=state, facts=facts)

    def migrate(self, order: LiveOrder, listener: ProgressListener, stopped: Callable[[], bool]) -> None:
        uuid, folder = order.server_uuid, self.folders.of(order.server_uuid)
        if self.hypervisor.migrated(uuid):
            self.hypervisor.undefine(uuid)
        else:
            self._send(order, MigrationListeners(listener, stopped), self.settings.moves.post_copy)
        self.pooled.hand_over(folder)
        self.proxies.close(uuid)
        disk_exports.withdraw(folder.path)
        tpm_transfer.drop(folder)

    def abort(self, server_uuid: str) -> None:
        self._under_way(server_uuid).abort()

    def force(self, server_uuid: str) -> None:
        self._under_way(server_uuid).force()

    # --- destination

    def prepare_arrival(self, order: MoveOrder, images: LocalImages | None) -> GuestArrival:
        uuid, source = order.server_uuid, order.source or GuestOnSource()
        folder, source_files = self.folders.of(uuid), SourceInfo(source)
        shared = source_info.sees(self.folders.root, source.probe)
        self.pooled.check(uuid, source_files.records)
        seen = shared or bool(source_files.records) and all(disk.pooled for disk in source_files.records)
        if order.block is not None and order.block == seen:
            raise (errors.move.SharedStorage if seen else errors.move.NoSharedStorage)()
        self._compare(source)
        placement = placement_of(order.build, self.facts())
        if "shape" in source.facts:
            check_alike(source.facts["shape"], placement)
        if self.hypervisor.state(uuid) is None:  # otherwise it already arrives

            def undo() -> None:
                self.connections.disconnect(uuid)
                if not shared and folder.copy_of() == source.probe:
                    self.tpms.remove(uuid, folder)
                    folder.remove()
            with failures.on_failure(undo):
                with convert_tool_errors():
                    self._make_room(order, folder, source_files, images, shared)
                self.interfaces.plug(order.build)
                self._connect(order.build, source)
                lines = self._reserved(order, folder, source)
        else:
            lines = self._reserved(order, folder, source)
        return self._arrival(order.build, folder, shared, _Place(placement, lines))

    def finish_arrival(self, order: MoveOrder) -> PowerState:
        uuid, hypervisor, folder = order.server_uuid, self.hypervisor, self.folders.of(order.server_uuid)
        state = state_of(self.hypervisor, uuid)
        job = hypervisor.job(uuid)
        if job is not None and job.incoming:
            raise errors.move.StillArrives(uuid=uuid)
        if state in OFF:
            LOG.warning("the guest is off after its live migration", extra={"server": uuid})
        self.definer.define(order.build)
        self.pooled.own(folder)
        folder.keep_copy_of(None)
        self.proxies.close(uuid)
        return state_of(self.hypervisor, uuid)

    # --- internal: source

    def _send(self, order: LiveOrder, listeners: MigrationListeners, post_copy: bool) -> None:
        """Send the guest, without post-copy if a host does not support it, which only an attempt shows."""
        uuid = order.server_uuid
        try:
            self.migrations.run(uuid, lambda: self._departing(order, post_copy), listeners)
        except errors.move.MigrationFailed as error:  # the guest is here; after other errors it may still be under way
            self.proxies.close(uuid)
            if not post_copy or NO_POST_COPY not in error.message:
                raise
            LOG.warning("the hosts do not support post-copy; migrating without it. A QEMU that is not root needs "
                        "sysctl vm.unprivileged_userfaultfd=1 on both", extra={"server": uuid})
            self._send(order, listeners, False)

    def _under_way(self, server_uuid: str) -> MigrationJob:
        job = self.migrations.of(server_uuid)
        if job is not None:
            return job
        found = self.hypervisor.job(server_uuid)
        if found is None or found.incoming:
            raise errors.move.MigrationNone(uuid=server_uuid)
        return self._watched(server_uuid, None, 0)

    def _departing(self, order: LiveOrder, post_copy: bool) -> MigrationJob:
        """Return a new migration job, or a job that watches an earlier process's migration."""
        uuid, hypervisor, there = order.server_uuid, self.hypervisor, order.arrival
        state, found = state_of(self.hypervisor, uuid), hypervisor.job(uuid)
        if found is not None and not found.incoming:
            return self._watched(uuid, None, found.progress.memory_total_bytes + found.progress.disk_total_bytes)
        if state in OFF:
            raise errors.guest.NotRunning(uuid=uuid)
        if there.gate is None:
            raise errors.move.BadDestination(reason="it has no listener: its nova-compute is of an older release")
        moves, text, directory = self.settings.moves, hypervisor.migratable_xml(uuid), self.proxies.directory(uuid)
        self.proxies.open_tunnel(uuid, there.gate)
        disks = () if there.shared else copied_disks(text)
        folder = self.folders.of(uuid)
        departure = MigrationParams(
            uri=libvirt_uri(directory), memory_uri=socket_uri(directory, Channel.MEMORY),
            disks_uri=socket_uri(directory, Channel.DISKS), disks=disks,
            shared=there.shared or has_direct_volumes(text),
            auto_converge=moves.auto_converge, post_copy=post_copy and state == PowerState.RUNNING,
            bandwidth_mib=moves.bandwidth_mib, xml=arrival_xml(text, str(folder.path), _places(there)))
        kept = folder.order()
        amount = kept.flavor.memory_mb * MIB if kept else 0
        amount += sum(disk.size_bytes for disk in folder.disks() if not disk.pooled) if disks else 0
        return self._watched(uuid, departure, amount)

    def _watched(self, uuid: str, departure: MigrationParams | None, amount: int) -> MigrationJob:
        moves = self.settings.moves
        post_copy = departure.post_copy if departure is not None else moves.post_copy
        return MigrationJob(self.hypervisor, uuid, departure, MigrationWatch(moves, amount), post_copy)

    # --- internal: destination

    def _compare(self, source: GuestOnSource) -> None:
        """Compare processors. Raises move.Cpu with the missing flags."""
        facts = source.facts
        if not source.cpu:
            return
        question = CpuComparison(facts.get("arch", ""), facts.get("machine") or None, facts.get("virt_type", ""),
                                 source.cpu)
        with failures.translated(errors.host.LibvirtRefused, lambda error: errors.move.Cpu(reason=str(error))):
            reason = self.hypervisor.cpu_incompatibility(question)
        if reason:
            raise errors.move.Cpu(reason=reason)

    def _connect(self, build: BuildOrder, source: GuestOnSource) -> None:
        """Connect the guest's volumes, with the same target names as on the source."""
        targets = decoding.from_json(source.facts.get("targets", "{}"), dict[str, str])
        if build.volumes:
            self.connections.connect(build.server_uuid, build.volumes, targets)

    def _make_room(self, order: MoveOrder, folder: Folder, source_files: SourceInfo, images: LocalImages | None,
                         shared: bool) -> None:
        uuid, carrier = order.server_uuid, self.carrier
        if shared:
            folder.keep_order(order.build)
            if folder.file(tpm_transfer.SECRET).exists():
                self.tpms.bring(uuid, folder.file(tpm_transfer.SECRET).read_bytes())
            return
        root = self.folders.root
        need = sum(source_files.used(disk.name) if order.over_commit else disk.size_bytes
                   for disk in source_files.records if not disk.pooled)
        if _free(root) < need:
            raise errors.host.DiskFull(what="the guest's disks", host=os.uname().nodename)
        source = order.source or GuestOnSource()
        carrier.open(folder, source.probe, uuid)
        folder.keep_order(order.build)
        origin, records = carrier.from_host(source, source_files), []
        for disk in source_files.records:
            if disk.pooled:
                records.append(disk)
            elif disk.kind == "config":
                carrier.bring(origin, folder, source_files, disk.name)
                records.append(disk)
            else:
                records.append(carrier.over_base_here(origin, folder, source_files, disk, only(images, order.build)))
                self._make_empty(folder, records[-1])
        for extra in source_files.extras():
            if extra.export:
                carrier.bring(origin, folder, source_files, extra.name)
        tpm_transfer.unpack(self.tpms, uuid, folder)
        folder.keep_disks(tuple(records))

    def _make_empty(self, folder: Folder, disk: DiskRecord) -> None:
        """Create an empty disk, replacing the data of a failed migration."""
        with whole(folder.file(disk.name)) as part:
            if disk.backing:
                self.images.create_overlay(
                    Overlay(str(part), disk.backing, disk.backing_format or "raw", disk.size_bytes))
            else:
                self.images.create(str(part), disk.format, disk.size_bytes)

    def _reserved(self, order: MoveOrder, folder: Folder, source: GuestOnSource) -> tuple[SerialLine, ...]:
        """Reserve the guest's serial ports on this host, until it lands or its preparation is undone."""
        build = order.build
        asked = requested_properties(build.image.properties if build.image else {},
                                     build.flavor.extra_specs).serial_ports
        with self.lines.choose(order.server_uuid, int(source.facts.get("serials", asked))) as lines:
            folder.reserve_ports(tuple(line.port for line in lines if line.port))
            return lines

    def _arrival(self, build: BuildOrder, folder: Folder, shared: bool, place: _Place) -> GuestArrival:
        settings = self.settings
        bases = {disk.name: [disk.backing, disk.backing_format or "raw"] for disk in folder.disks() if disk.backing}
        plugs = {one.mac: vifs.record(one) for one in build.interfaces}
        pairs = {mac: [plug.bridge, plug.device] for mac, plug in plugs.items()}
        wires = wires_of(build, settings)
        definition = self.definer.arriving(build, place.lines)
        gate = self.proxies.open_listener(build.server_uuid, definition)
        return GuestArrival(
            gate=gate, shared=shared,
            facts={"folder": str(folder.path), "vnc_listen": settings.vnc_listen or "",
                   "bases": json.dumps(bases), "vifs": json.dumps(pairs), "wires": _encoded(wires),
                   "placement": _encoded(place.placement),
                   "screens": _encoded(GuestScreens(vnc=settings.vnc_listen, spice=settings.consoles.spice)),
                   "lines": _encoded(place.lines), "volumes": _encoded(remote_sources(definition))})


def devices_held(order: BuildOrder) -> tuple[str, ...]:
    """Return the addresses of the host's devices that the guest holds, for itself or for its interfaces."""
    of_ports = [plug.device for plug in vifs.known_records(order.interfaces) if plug.kind == "direct"]
    own = [one.address for one in order.packing.devices] if order.packing is not None else []
    return tuple(dict.fromkeys([*own, *of_ports]))


def wires_of(build: BuildOrder, settings: LibvirtSettings) -> dict[str, InterfaceWire]:
    """Return the host side of each interface on this host, by MAC."""
    asked = vifs.VifRequirements(requested_properties({}, {}), settings, False, 1, {})
    found = {one.mac: vifs.spec(one, asked) for one in build.interfaces}
    return {mac: InterfaceWire(type=one.type, source={"bridge": one.bridge} if one.bridge else dict(one.source),
                               device=one.device, port_id=one.port_id) for mac, one in found.items() if not one.pci}


class _Place(NamedTuple):
    """The placement and serial ports of an arriving guest."""

    placement: PlacementSpec
    lines: tuple[SerialLine, ...]


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _places(there: GuestArrival) -> ArrivalPaths:
    facts, pairs = there.facts, dict[str, tuple[str, str]]

    def source_files(name: str, kind: type[T]) -> T | None:
        return decoding.from_json(facts[name], kind) if name in facts else None
    with failures.translated((KeyError, msgspec.DecodeError), lambda error: errors.move.BadDestination(
            reason=f"its paths for the guest are missing or invalid ({error})")):
        return ArrivalPaths(folder=facts["folder"], vnc_listen=facts.get("vnc_listen") or None,
                            bases=decoding.from_json(facts["bases"], pairs),
                            vifs=decoding.from_json(facts["vifs"], pairs),
                            placement=source_files("placement", PlacementSpec),
                            wires=source_files("wires", dict[str, InterfaceWire]) or {},
                            screens=source_files("screens", GuestScreens),
                            lines=source_files("lines", tuple[SerialLine, ...]) or (),
                            volumes=source_files("volumes", dict[str, str]) or {})


def _free(path: Path) -> int:
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize
