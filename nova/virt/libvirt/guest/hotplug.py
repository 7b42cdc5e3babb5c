"""Interfaces that are plugged into guests, and taken out of them, while they live (``nova.virt.interface.HotPlug``).

A running guest is asked for a device back, and may take its time, or not hear it (while it boots, say): it is asked
again. Whether it has given it up, its definition tells, which no lost event can change.
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from nova import errors
from nova.concurrency import Clock
from nova.model.orders import InterfaceOrder
from nova.model.states import PowerState
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.guest.definition import vif_specs
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import Definitions, LibvirtHypervisor
from nova.virt.libvirt.properties import requested_properties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces
from nova.virt.libvirt.xml import interfaces as xml
from nova.virt.libvirt.xml.specs import VifSpec

LOG = logging.getLogger(__name__)

POLL_S = 0.1
NOWHERE = Definitions(None, None)


@dataclass(frozen=True, kw_only=True)
class LibvirtHotPlug:
    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    interfaces: LibvirtInterfaces
    facts: Callable[[], HypervisorFacts]
    clock: Clock

    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        uuid = order.server_uuid
        self.interfaces.note(uuid, [vifs.record(order.interface)])
        try:
            self.interfaces.prepare(order.build.server_uuid, [order.interface])
            found, spec = self._definitions(uuid), self._spec(order)
            for text, running in ((found.kept, False), (found.running, True)):
                if text is not None and xml.find(text, spec) is None:
                    self.hypervisor.attach_device(uuid, xml.device_xml(spec, text), running)
        except Exception:
            self._revert(order)
            raise
        self.folders.of(uuid).keep_order(order.build)
        return self._state_or_none(uuid)

    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        uuid, folder = order.server_uuid, self.folders.of(order.server_uuid)
        spec = self._spec_to_find(order)
        self._ask_for(order, spec, stopped)
        kept = self._definitions(uuid).kept
        element = xml.find(kept, spec) if kept is not None else None
        if element is not None:
            self.hypervisor.detach_device(uuid, ET.tostring(element, encoding="unicode"), False)
        self.interfaces.unplug_one(uuid, order.interface)
        if folder.exists():
            folder.keep_order(order.build)
        return self._state_or_none(uuid)

    # --- inside

    def _ask_for(self, order: InterfaceOrder, spec: VifSpec, stopped: Callable[[], bool]) -> None:
        """Of the guest as it runs. guest.KeepsInterface, guest.DetachStopped: it has it still."""
        settings, clock, uuid = self.settings, self.clock, order.server_uuid
        for _ in range(settings.detach_attempts):
            text = self._definitions(uuid).running
            element = xml.find(text, spec) if text is not None else None
            if element is None:
                return
            try:
                self.hypervisor.detach_device(uuid, ET.tostring(element, encoding="unicode"), True)
            except errors.host.LibvirtRefused as error:  # it is asked already, say
                LOG.info("asking for an interface: %s", error, extra={"server": uuid})
            deadline = clock.now() + settings.detach_timeout_s
            while clock.now() < deadline:
                text = self._definitions(uuid).running
                if text is None or xml.find(text, spec) is None:
                    return
                if stopped():
                    raise errors.guest.DetachStopped(uuid=uuid, interface=order.interface.id)
                clock.sleep(POLL_S)
        raise errors.guest.KeepsInterface(uuid=uuid, interface=order.interface.id,
                                          seconds=settings.detach_attempts * settings.detach_timeout_s)

    def _revert(self, order: InterfaceOrder) -> None:
        """After an attach that failed; what can't be taken back is so when the guest is unplugged as a whole."""
        try:
            spec = self._spec_to_find(order)
            found = self._definitions(order.server_uuid)
            for text, running in ((found.running, True), (found.kept, False)):
                element = xml.find(text, spec) if text is not None else None
                if element is not None:
                    self.hypervisor.detach_device(order.server_uuid, ET.tostring(element, encoding="unicode"),
                                                         running)
            self.interfaces.unplug_one(order.server_uuid, order.interface)
        except errors.NovaError as error:
            LOG.warning("an interface that could not be plugged in was not taken back: %s", error,
                        extra={"server": order.server_uuid})

    def _definitions(self, server_uuid: str) -> Definitions:
        try:
            return self.hypervisor.definitions_of(server_uuid)
        except errors.guest.NotDefined:
            return NOWHERE

    def _state_or_none(self, server_uuid: str) -> PowerState:
        state = self.hypervisor.state(server_uuid)
        return PowerState.NOSTATE if state is None else state

    def _spec(self, order: InterfaceOrder) -> VifSpec:
        build = msgspec.structs.replace(order.build, interfaces=(order.interface,))
        asked = requested_properties(build.image.properties if build.image else {}, build.flavor.extra_specs)
        [spec] = vif_specs(build, asked, self.settings, self.facts().virt_type == "kvm")
        return spec

    def _spec_to_find(self, order: InterfaceOrder) -> VifSpec:
        """Of a port whose owner has changed it meanwhile at least what the guest knows it by."""
        try:
            return self._spec(order)
        except errors.HostRefused:
            return VifSpec(mac=order.interface.mac)
