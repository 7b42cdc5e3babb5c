"""Define, start, stop and undefine guests (``nova.virt.interface.Lifecycle``), from an order and this host's facts.

The caller must serialize calls for one guest. Changes are written to disk before they take effect: see
:mod:`nova.virt.libvirt.disks.folders`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from nova import errors
from nova.concurrency import Clock
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState
from nova.virt.libvirt.guest.definer import Definer
from nova.virt.libvirt.guest.serial_ports import SerialPortAllocator
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of

LOG = logging.getLogger(__name__)

POLL_S = 0.2


@dataclass(frozen=True, kw_only=True)
class LibvirtLifecycle:
    """The lifecycle of guests. ``retry_s``: the interval of requests to a guest to stop. ``let_go``: ends the proxy
    process of a guest's live migration."""

    hypervisor: LibvirtHypervisor
    definer: Definer
    lines: SerialPortAllocator
    clock: Clock
    retry_s: float
    let_go: Callable[[str], None]

    def start_new(self, order: BuildOrder) -> PowerState:
        if self.define(order) in OFF:
            self.hypervisor.start(order.server_uuid)
        return state_of(self.hypervisor, order.server_uuid)

    def define(self, order: BuildOrder) -> PowerState:
        if self.hypervisor.state(order.server_uuid) in OFF | {None}:
            self.definer.define(order)
        return state_of(self.hypervisor, order.server_uuid)

    def destroy(self, server_uuid: str) -> None:
        self.hypervisor.power_off(server_uuid)
        self.hypervisor.undefine(server_uuid)
        self.lines.clear(server_uuid)
        self.let_go(server_uuid)

    def start(self, server_uuid: str) -> PowerState:
        self.hypervisor.start(server_uuid)
        return state_of(self.hypervisor, server_uuid)

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        # a paused guest does not see the power button: do not wait
        deaf = state_of(self.hypervisor, server_uuid) == PowerState.PAUSED
        if timeout_s > 0 and not deaf and not self._stops_by_itself(server_uuid, timeout_s):
            LOG.info("the guest did not shut down within %d s; powering it off", timeout_s,
                     extra={"server": server_uuid})
        self.hypervisor.power_off(server_uuid)
        return state_of(self.hypervisor, server_uuid)

    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        runs = state_of(self.hypervisor, server_uuid) == PowerState.RUNNING
        if not runs or not self._stops_by_itself(server_uuid, timeout_s):
            return False
        self.hypervisor.start(server_uuid)
        return True

    def power_state(self, server_uuid: str) -> PowerState | None:
        return self.hypervisor.state(server_uuid)

    # --- internal

    def _stops_by_itself(self, server_uuid: str, timeout_s: int) -> bool:
        """Press the power button, repeatedly (a guest ignores it while it boots), and wait; return whether it stopped.

        Raises guest.NotDefined if the guest is not defined (any more: a newer order removed it).
        """
        deadline, ask_at = self.clock.now() + timeout_s, 0.0
        while True:
            if state_of(self.hypervisor, server_uuid) in OFF:
                return True
            now = self.clock.now()
            if now >= deadline:
                return False
            if now >= ask_at:
                with contextlib.suppress(errors.HostRefused):  # a paused guest cannot be asked: wait for the deadline
                    self.hypervisor.request_shutdown(server_uuid)
                ask_at = now + self.retry_s
            self.clock.sleep(max(0.0, min(POLL_S, deadline - now)))
