"""Attach and detach interfaces of guests (``nova.virt.interface.HotPlug``).

A running guest is asked to release an interface like any device: see :mod:`~nova.virt.libvirt.guest.release`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from nova import errors, failures
from nova.model.guest.orders import InterfaceOrder
from nova.model.server.states import PowerState
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.guest.definition import vif_specs
from nova.virt.libvirt.guest.release import Find, Released, Releases
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.properties import requested_properties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces
from nova.virt.libvirt.xml import interfaces as xml
from nova.virt.libvirt.xml.specs import VifSpec

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LibvirtHotPlug:
    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    interfaces: LibvirtInterfaces
    facts: Callable[[], HypervisorFacts]
    releases: Releases

    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        uuid = order.server_uuid
        self.interfaces.note(uuid, [vifs.record(order.interface)])
        with failures.on_failure(lambda: self._revert(order)):
            self.interfaces.prepare(order.build.server_uuid, [order.interface])
            found, spec = self.releases.definitions(uuid), self._spec(order)
            for text, running in ((found.kept, False), (found.running, True)):
                if text is not None and xml.find(text, spec) is None:
                    self.hypervisor.attach_device(uuid, xml.device_xml(spec, text), running)
        self.folders.of(uuid).keep_order(order.build)
        return self._state_or_none(uuid)

    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        uuid, folder = order.server_uuid, self.folders.of(order.server_uuid)
        find = self._find(order)
        released = self.releases.ask(uuid, find, stopped)
        if released is Released.NO:
            raise errors.guest.KeepsInterface(uuid=uuid, interface=order.interface.id,
                                              seconds=self.releases.total_timeout_s)
        if released is Released.STOPPED:
            raise errors.guest.DetachStopped(uuid=uuid, interface=order.interface.id)
        self.releases.drop(uuid, find)
        self.interfaces.unplug_one(uuid, order.interface)
        if folder.exists():
            folder.keep_order(order.build)
        return self._state_or_none(uuid)

    # --- internal

    def _revert(self, order: InterfaceOrder) -> None:
        """Undo a failed attach; what remains is removed when the guest is unplugged as a whole."""
        with failures.best_effort(LOG, "could not undo the failed attach of an interface: %s",
                extra={"server": order.server_uuid}):
            self.releases.take_back(order.server_uuid, self._find(order))
            self.interfaces.unplug_one(order.server_uuid, order.interface)

    def _state_or_none(self, server_uuid: str) -> PowerState:
        state = self.hypervisor.state(server_uuid)
        return PowerState.NOSTATE if state is None else state

    def _spec(self, order: InterfaceOrder) -> VifSpec:
        build = msgspec.structs.replace(order.build, interfaces=(order.interface,))
        asked = requested_properties(build.image.properties if build.image else {}, build.flavor.extra_specs)
        [spec] = vif_specs(build, asked, self.settings, self.facts().virt_type == "kvm")
        return spec

    def _find(self, order: InterfaceOrder) -> Find:
        """Return a finder of the interface; by MAC address only if its port's data has become invalid."""
        spec = VifSpec(mac=order.interface.mac)
        with contextlib.suppress(errors.HostRefused):
            spec = self._spec(order)
        return lambda definition: xml.find(definition, spec)
