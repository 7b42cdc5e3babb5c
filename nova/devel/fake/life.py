"""Fake guests paused, suspended, held and rescued, with a guest agent that always answers."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.devel.fake.hypervisor import OFF, UP, Part, knobbed
from nova.model.guest.orders import BuildOrder, RescueOrder
from nova.model.server.states import PowerState
from nova.virt.interface import LocalImages


class FakePausing(Part):
    @knobbed
    def pause(self, server_uuid: str) -> PowerState:
        return self._turn(server_uuid, PowerState.RUNNING, PowerState.PAUSED)

    @knobbed
    def unpause(self, server_uuid: str) -> PowerState:
        return self._turn(server_uuid, PowerState.PAUSED, PowerState.RUNNING)

    # --- suspended

    @knobbed
    def suspend(self, server_uuid: str) -> PowerState:
        found = self._hypervisor.defined(server_uuid)
        if found.saved:
            return PowerState.SUSPENDED
        if found.power_state not in UP:
            raise errors.guest.WrongPower(uuid=server_uuid, state=PowerState(found.power_state).name)
        with self._hypervisor.changed(server_uuid) as guest:
            guest.saved = True
        return self._hypervisor.change_power(server_uuid, PowerState.SUSPENDED, "suspended")

    @knobbed
    def resume(self, order: BuildOrder) -> PowerState:
        if self._hypervisor.define(order) == PowerState.RUNNING:
            return PowerState.RUNNING
        with self._hypervisor.changed(order) as guest:
            if guest.saved:
                guest.saved, guest.power_state = False, PowerState.RUNNING
                guest.say(f"{guest.name}: resumed")
            else:
                self._hypervisor.boot(guest)
        return self._hypervisor.notify(order.server_uuid, PowerState.RUNNING)

    # --- held

    @knobbed
    def start_held(self, server_uuid: str) -> PowerState:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        if state not in OFF:
            return state
        self._hypervisor.take_time()
        with self._hypervisor.changed(server_uuid) as guest:
            self._hypervisor.boot(guest)
            guest.power_state = PowerState.PAUSED
        return self._hypervisor.notify(server_uuid, PowerState.PAUSED)

    @knobbed
    def resume_held(self, order: BuildOrder) -> PowerState:
        state = self._hypervisor.define(order)
        if state not in OFF and state != PowerState.SUSPENDED:
            return state
        with self._hypervisor.changed(order) as guest:
            if guest.saved:
                guest.saved = False
            else:
                self._hypervisor.boot(guest)
            guest.power_state = PowerState.PAUSED
        return self._hypervisor.notify(order.server_uuid, PowerState.PAUSED)

    def _turn(self, server_uuid: str, before: PowerState, after: PowerState) -> PowerState:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        if state not in (before, after):
            raise errors.guest.WrongPower(uuid=server_uuid, state=state.name)
        return state if state == after else self._hypervisor.change_power(server_uuid, after, after.name.lower())


class FakeRescuing(Part):
    @knobbed
    def rescue(self, order: RescueOrder, images: LocalImages | None, files: Mapping[str, bytes] | None) -> PowerState:
        found = self._hypervisor.store.find(order.server_uuid)
        if found is not None and found.rescue_image == order.image.id and found.power_state == PowerState.RUNNING:
            return PowerState.RUNNING
        if found is not None and found.power_state in UP:
            raise errors.guest.WrongPower(uuid=order.server_uuid, state=PowerState(found.power_state).name)
        self._hypervisor.define(order.build)
        with self._hypervisor.changed(order.build) as guest:
            guest.rescue_image, guest.rescue_drive = order.image.id, dict(files or {})
            self._hypervisor.boot(guest)
            guest.say(f"[    0.000002] fake init: booted from rescue image {order.image.id}")
        return self._hypervisor.notify(order.server_uuid, PowerState.RUNNING)

    @knobbed
    def unrescue(self, order: BuildOrder) -> PowerState:
        found = self._hypervisor.store.find(order.server_uuid)
        if found is not None and not found.rescue_image and found.power_state == PowerState.RUNNING:
            return PowerState.RUNNING
        self._hypervisor.define(order)
        with self._hypervisor.changed(order) as guest:
            guest.rescue_image, guest.rescue_drive = "", {}
            self._hypervisor.boot(guest)
        return self._hypervisor.notify(order.server_uuid, PowerState.RUNNING)


class FakeAgent(Part):
    @knobbed
    def set_password(self, server_uuid: str, user: str, password: str) -> None:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        if state != PowerState.RUNNING:
            raise errors.guest.WrongPower(uuid=server_uuid, state=state.name)
        self._hypervisor.take_time()
        with self._hypervisor.changed(server_uuid) as guest:
            guest.passwords = {**guest.passwords, user: password}

    @knobbed
    def crash(self, server_uuid: str) -> None:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        if state in OFF or state == PowerState.SUSPENDED:
            raise errors.guest.WrongPower(uuid=server_uuid, state=state.name)
        with self._hypervisor.changed(server_uuid) as guest:
            guest.crashes += 1
            guest.say("[    9.000000] fake kernel: NMI received, dumping memory")
