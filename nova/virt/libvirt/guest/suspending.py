"""Guests whose memory lies on the host's disk (``nova.virt.interface.Suspending``), by libvirt's managed save.

A suspended guest is off to the hypervisor, so its power state is SHUTDOWN; that it goes on from saved memory at its
next start is known to libvirt alone.
"""

from __future__ import annotations

import logging

from nova import errors
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.virt.libvirt.base import OFF, Room

LOG = logging.getLogger(__name__)


class LibvirtSuspending(Room):
    def suspend(self, server_uuid: str) -> PowerState:
        hypervisor = self._tools.hypervisor
        if self._state(server_uuid) not in OFF:
            hypervisor.save(server_uuid)
        if not hypervisor.has_saved(server_uuid):  # it was off before, or went off by itself
            raise errors.guest.NotRunning(uuid=server_uuid)
        return self._state(server_uuid)

    def resume(self, order: BuildOrder) -> PowerState:
        self._resume(order, held=False)
        self._tools.hypervisor.unpause(order.server_uuid)  # saved memory may be that of a guest that stood still
        return self._state(order.server_uuid)

    # --- held

    def resume_held(self, order: BuildOrder) -> PowerState:
        self._resume(order, held=True)
        return self._state(order.server_uuid)

    def start_held(self, server_uuid: str) -> PowerState:
        self._tools.hypervisor.start(server_uuid, held=True)
        return self._state(server_uuid)

    # --- inside

    def _resume(self, order: BuildOrder, held: bool) -> None:
        state = self._tools.hypervisor.state(order.server_uuid)
        if state is None or state in OFF:
            for interface in order.interfaces:
                self._prepare(order, interface)  # a rebooted host has no bridges; taps are libvirt's
            self._go_on(order, state is not None, held)

    def _go_on(self, order: BuildOrder, defined: bool, held: bool) -> None:
        hypervisor, uuid = self._tools.hypervisor, order.server_uuid
        try:
            if defined and hypervisor.has_saved(uuid):
                hypervisor.restore(uuid, held)
                return
            reason = "it is gone"
        except errors.guest.BrokenSave as error:
            reason = str(error)
        LOG.warning("guest %s can not go on from its saved memory and is started: %s", order.instance_name, reason,
                    extra={"server": uuid})
        self._define(order)
        hypervisor.start(uuid, held)
