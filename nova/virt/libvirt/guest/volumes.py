"""Guests' disks on volumes (``nova.virt.interface.Volumes``): connect, attach, detach, extend.

A running guest's disk is found by its alias, which has the volume's id: the target name may be reused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial

from nova import errors, failures
from nova.model.guest.orders import VolumeOrder
from nova.model.server.states import PowerState
from nova.model.volumes import Connector, VolumeCounts, VolumeDisk
from nova.virt.libvirt.guest.diagnostics import disk_uses
from nova.virt.libvirt.guest.release import Released
from nova.virt.libvirt.guest.volume_files import LibvirtVolumeFiles
from nova.virt.libvirt.guest.volume_swaps import LibvirtVolumeSwaps
from nova.virt.libvirt.hypervisor import Definitions
from nova.virt.libvirt.volumes import luks
from nova.virt.libvirt.xml import disks as xml

LOG = logging.getLogger(__name__)

GIB = 1 << 30


class LibvirtVolumes(LibvirtVolumeSwaps, LibvirtVolumeFiles):
    def connector(self) -> Connector:
        """Return os-brick's properties; without os-brick, those for the kinds of volumes that do not need it."""
        system = os.uname()
        return {"platform": system.machine, "os_type": system.sysname.lower(), "multipath": False,
                **self._initiators(), "ip": self.settings.storage_ip, "host": system.nodename, "do_local_attach": False}

    def _initiators(self) -> Connector:
        """Return the host's initiators. Errors are only logged: only the back ends that need the data then refuse the
        host."""
        brick = self.connections.tools.brick
        with failures.best_effort(LOG, "could not read this host's initiators; back ends that need them will refuse "
                "it: %s", on=errors.host.Brick, level=logging.ERROR):
            return brick.properties() if brick is not None else {}
        return {}

    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk]) -> None:
        self.connections.connect(server_uuid, volumes)

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        self.connections.disconnect(server_uuid, keep)

    def attach_volume(self, order: VolumeOrder) -> PowerState:
        uuid, volume_id = order.server_uuid, order.disk.device.volume_id
        found, find = self.releases.definitions(uuid), partial(_find, volume_id)
        there = [find(text) is not None for text in found if text is not None]
        if not there or not all(there):
            with failures.on_failure(lambda: self._revert(order)):
                self.connections.connect(uuid, [order.disk])
                self._plug_in(order, found)
        self.folders.of(uuid).keep_order(order.build)
        return self.state_or_none(uuid)

    def detach_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        uuid, volume_id, folder = order.server_uuid, order.disk.device.volume_id, self.folders.of(order.server_uuid)
        find = partial(_find, volume_id)
        released = self.releases.ask(uuid, find, stopped)
        if released is Released.NO:
            raise errors.guest.KeepsVolume(uuid=uuid, volume=volume_id, seconds=self.releases.total_timeout_s)
        if released is Released.STOPPED:
            raise errors.guest.KeepsVolumeStopped(uuid=uuid, volume=volume_id)
        self.releases.drop(uuid, find)
        self.connections.release(uuid, volume_id)
        if folder.exists():
            folder.keep_order(order.build)
        return self.state_or_none(uuid)

    def given_up(self, server_uuid: str) -> frozenset[str]:
        running, kept = self.releases.definitions(server_uuid)
        if running is None or kept is None:
            return frozenset()
        return frozenset(xml.volume_targets(kept).keys() - xml.volume_targets(running).keys())

    def volume_counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        running = self.releases.definitions(server_uuid).running
        if running is None:
            return ()
        uses = {one.device: one for one in disk_uses(self.hypervisor.stats(server_uuid))}
        return tuple(VolumeCounts(server_uuid=server_uuid, volume_id=volume_id,
                                  reads=use.read_requests or 0, read_bytes=use.read_bytes or 0,
                                  writes=use.write_requests or 0, write_bytes=use.write_bytes or 0)
                     for volume_id, name in xml.volume_targets(running).items() if (use := uses.get(name)) is not None)

    def extend_volume(self, order: VolumeOrder) -> PowerState:
        uuid, device, folder = order.server_uuid, order.disk.device, self.folders.of(order.server_uuid)
        self.connections.extend(uuid, device.volume_id)
        running = self.releases.definitions(uuid).running
        disk = xml.find(running, device.volume_id) if running is not None else None
        if disk is not None and device.size_gb:
            header = sum(luks.header_bytes(one) for one in folder.volumes() if one.volume_id == device.volume_id)
            self.hypervisor.resize_disk(uuid, xml.target_of(disk), device.size_gb * GIB - header)
        if folder.exists():
            folder.keep_order(order.build)
        return self.state_or_none(uuid)

    # --- internal

    def _plug_in(self, order: VolumeOrder, found: Definitions) -> None:
        uuid, volume_id = order.server_uuid, order.disk.device.volume_id
        [record] = [one for one in self.folders.of(uuid).volumes() if one.volume_id == volume_id]
        spec = self.spec(order.build, order.disk.device, record, found)
        self.folders.of(uuid).note_targets({volume_id: spec.target})
        for text, running in ((found.kept, False), (found.running, True)):
            if text is not None and xml.find(text, volume_id) is None:
                self.hypervisor.attach_device(uuid, xml.device_xml(spec, text), running)

    def _revert(self, order: VolumeOrder) -> None:
        """Undo a failed attach. If the guest keeps the volume, it stays connected until the guest is removed."""
        uuid, volume_id = order.server_uuid, order.disk.device.volume_id
        find = partial(_find, volume_id)
        with failures.best_effort(LOG, "could not undo the failed attach of a volume: %s", extra={"server": uuid}):
            self.releases.take_back(uuid, find)
            if all(find(text) is None for text in self.releases.definitions(uuid) if text is not None):
                self.connections.release(uuid, volume_id)


def _find(volume_id: str, definition: str) -> xml.Element | None:
    return xml.find(definition, volume_id)
