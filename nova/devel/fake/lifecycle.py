"""Lifecycle of fake guests: define, start, stop and undefine."""

from __future__ import annotations

from nova.devel.fake.arrivals import Arrivals
from nova.devel.fake.hypervisor import FakeHypervisor, Part, knobbed
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState


class FakeLifecycle(Part):
    def __init__(self, hypervisor: FakeHypervisor, arrivals: Arrivals) -> None:
        super().__init__(hypervisor)
        self._arrivals = arrivals

    @knobbed
    def start_new(self, order: BuildOrder) -> PowerState:
        if self._hypervisor.define(order) == PowerState.RUNNING:
            return PowerState.RUNNING
        self._hypervisor.take_time()
        with self._hypervisor.changed(order) as guest:
            self._hypervisor.boot(guest)
        return self._hypervisor.notify(order.server_uuid, PowerState.RUNNING)

    @knobbed
    def define(self, order: BuildOrder) -> PowerState:
        return self._hypervisor.define(order)

    @knobbed
    def destroy(self, server_uuid: str) -> None:
        found = self._hypervisor.store.find(server_uuid)
        ran = found is not None and found.power_state == PowerState.RUNNING
        self._arrivals.drop(server_uuid)
        with self._hypervisor.changed(server_uuid) as guest:
            guest.defined, guest.power_state = False, PowerState.NOSTATE
            guest.saved = guest.arriving = False
            guest.vcpus = guest.memory_mb = 0
        if ran:
            self._hypervisor.notify(server_uuid, PowerState.SHUTDOWN)

    @knobbed
    def start(self, server_uuid: str) -> PowerState:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        if state in (PowerState.RUNNING, PowerState.PAUSED):
            return state
        self._hypervisor.take_time()
        with self._hypervisor.changed(server_uuid) as guest:
            self._hypervisor.boot(guest)
        return self._hypervisor.notify(server_uuid, PowerState.RUNNING)

    @knobbed
    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        if self._hypervisor.defined(server_uuid).power_state == PowerState.SHUTDOWN:
            return PowerState.SHUTDOWN
        with self._hypervisor.changed(server_uuid) as guest:
            guest.saved = False
        return self._hypervisor.change_power(server_uuid, PowerState.SHUTDOWN, "halted" if timeout_s else "powered off")

    @knobbed
    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        if self._hypervisor.defined(server_uuid).power_state != PowerState.RUNNING:
            return False
        self._hypervisor.take_time()
        with self._hypervisor.changed(server_uuid) as guest:
            shown = guest.display_of == self._hypervisor.boot_of(guest)
            self._hypervisor.boot(guest)
            if shown:  # the hypervisor's process and its ports stay the same
                guest.display_of = self._hypervisor.boot_of(guest)
        return True

    def power_state(self, server_uuid: str) -> PowerState | None:
        self._arrivals.absorb(server_uuid)
        return self._hypervisor.power_state(server_uuid)
