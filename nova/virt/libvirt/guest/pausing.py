"""Paused guests: in memory (``nova.virt.interface.Pausing``), before their first instruction (``HeldStarts``), or saved
on the host's disk by libvirt's managed save (``Suspending``); and the interrupt that makes a guest write its crash dump
(``CrashDumps``).

To the hypervisor a suspended guest is off, so its power state is SHUTDOWN; only libvirt knows that its next start
resumes from saved memory.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState
from nova.virt.libvirt.guest.definer import Definer
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LibvirtPausing:
    hypervisor: LibvirtHypervisor
    definer: Definer
    interfaces: LibvirtInterfaces

    def pause(self, server_uuid: str) -> PowerState:
        if state_of(self.hypervisor, server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self.hypervisor.pause(server_uuid)
        return state_of(self.hypervisor, server_uuid)

    def unpause(self, server_uuid: str) -> PowerState:
        if state_of(self.hypervisor, server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self.hypervisor.unpause(server_uuid)
        return state_of(self.hypervisor, server_uuid)

    # --- suspend

    def suspend(self, server_uuid: str) -> PowerState:
        if state_of(self.hypervisor, server_uuid) not in OFF:
            self.hypervisor.save(server_uuid)
        if not self.hypervisor.has_saved(server_uuid):  # the guest was off before, or stopped on its own
            raise errors.guest.NotRunning(uuid=server_uuid)
        return state_of(self.hypervisor, server_uuid)

    def resume(self, order: BuildOrder) -> PowerState:
        self._resume(order, held=False)
        self.hypervisor.unpause(order.server_uuid)  # saved memory may be that of a paused guest
        return state_of(self.hypervisor, order.server_uuid)

    # --- held start

    def resume_held(self, order: BuildOrder) -> PowerState:
        self._resume(order, held=True)
        return state_of(self.hypervisor, order.server_uuid)

    def start_held(self, server_uuid: str) -> PowerState:
        self.hypervisor.start(server_uuid, held=True)
        return state_of(self.hypervisor, server_uuid)

    # --- crash dump

    def crash(self, server_uuid: str) -> None:
        if state_of(self.hypervisor, server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self.hypervisor.interrupt(server_uuid)

    # --- internal

    def _resume(self, order: BuildOrder, held: bool) -> None:
        state = self.hypervisor.state(order.server_uuid)
        if state is None or state in OFF:
            # a rebooted host has no bridges; libvirt creates taps
            self.interfaces.prepare(order.server_uuid, order.interfaces)
            self._go_on(order, state is not None, held)

    def _go_on(self, order: BuildOrder, defined: bool, held: bool) -> None:
        hypervisor, uuid = self.hypervisor, order.server_uuid
        try:
            if defined and hypervisor.has_saved(uuid):
                hypervisor.restore(uuid, held)
                return
            reason = "it does not exist"
        except errors.guest.BrokenSave as error:
            reason = str(error)
        LOG.warning("guest %s cannot resume from its saved memory; booting it: %s", order.instance_name, reason,
                    extra={"server": uuid})
        self.definer.define(order)
        hypervisor.start(uuid, held)
