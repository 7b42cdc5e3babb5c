"""Cases that any driver passes. A test module makes a class of :class:`DriverConformance` with a fixture ``rig``."""

from __future__ import annotations

import datetime
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from nova import errors
from nova.model.base import utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Disk, Fence, GuestState
from nova.model.image.images import Image
from nova.model.network.networks import FixedAddress, Interface
from nova.model.server.states import PowerState
from nova.virt.interface import LocalImages
from tests.contract.driver_console_cases import ConsoleCases
from tests.contract.driver_hotplug_cases import HeldCases, HotPlugCases
from tests.contract.driver_life_cases import LifeCases
from tests.contract.driver_move_cases import MoveCases
from tests.contract.driver_packing_cases import PackingCases
from tests.contract.driver_place_cases import PlaceCases
from tests.contract.driver_volume_cases import VolumeCases

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN
IMAGE_ID = "70a599e0-31e7-49b7-b260-868f441e862b"


class Rig(Protocol):
    """A driver that is connected, and what is needed to try it. ``timeout_s``: how long a power event may take.

    Optional: ``other``, ``mark`` and ``marked`` (see ``driver_move_cases``), ``consoles`` (``driver_console_cases``),
    ``gives_up`` (``driver_hotplug_cases``).
    """

    driver: Any
    images: LocalImages | None
    bridge: str
    timeout_s: float

    def left_over(self, order: BuildOrder) -> list[str]:
        """What can still be found of a guest on the host, in words; [] when there is nothing."""


def make_order(bridge: str = "br100", **changes: Any) -> BuildOrder:
    """An order for a small guest with every kind of disk and one interface."""
    server_uuid, number = str(uuid.uuid4()), uuid.uuid4().int % (1 << 31)
    vif = str(uuid.uuid4())
    octets = ":".join(f"{byte:02x}" for byte in uuid.uuid4().bytes[:3])
    return BuildOrder(**{
        "server_uuid": server_uuid, "id": number, "instance_name": f"instance-{number:08x}", "name": "vm",
        "hostname": "vm", "project_id": "p" * 32, "user_id": "u" * 32, "fence": Fence(operation_id=1, epoch=3),
        "flavor": Flavor(flavorid="1", name="m1.tiny", memory_mb=64, vcpus=1, root_gb=1, ephemeral_gb=1, swap_mb=8),
        "image": Image(id=IMAGE_ID, disk_format="qcow2", container_format="bare"),
        "disks": (Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=1), Disk(kind="swap", size_mb=8)),
        "interfaces": (Interface(id=vif, mac=f"fa:16:3e:{octets}", network_id=str(uuid.uuid4()), label="private",
                                 bridge=bridge, addresses=(FixedAddress(address="10.0.0.2"),), cidr="10.0.0.0/24",
                                 should_create_bridge=True),),
        "config_drive": True, "created_at": datetime.datetime(2025, 1, 1), **changes})


def build(rig: Rig, order: BuildOrder) -> PowerState:
    rig.driver.disks.create_disks(order, rig.images)
    rig.driver.interfaces.plug(order)
    rig.driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
    return rig.driver.lifecycle.start_new(order)


def unbuild(rig: Rig, order: BuildOrder, known: bool = True) -> None:
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.interfaces.unplug(order.server_uuid, order if known else None)
    rig.driver.disks.remove_disks(order.server_uuid)


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class DriverConformance(LifeCases, MoveCases, PackingCases, PlaceCases, ConsoleCases, HotPlugCases, HeldCases,
                        VolumeCases):
    @pytest.fixture
    def order(self, rig: Rig):
        order = make_order(rig.bridge)
        yield order
        unbuild(rig, order)

    def states(self, rig: Rig) -> dict[str, PowerState]:
        return {guest.server_uuid: guest.power_state for guest in rig.driver.guests()}

    def test_nodes_of_a_host_say_what_it_has(self, rig):
        nodes = rig.driver.nodes()
        assert nodes and all(node.vcpus and node.memory_mb and node.local_gb for node in nodes)
        assert all(uuid.UUID(node.uuid) for node in nodes) and len({node.uuid for node in nodes}) == len(nodes)
        assert all(node.name and node.hypervisor_type and node.supported and node.cpu_info for node in nodes)
        assert [node.uuid for node in rig.driver.nodes()] == [node.uuid for node in nodes]

    def test_build_gives_a_guest_that_runs(self, rig, order):
        assert build(rig, order) == RUNNING
        assert rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING
        assert self.states(rig)[order.server_uuid] == RUNNING

    def test_build_of_the_same_order_again_changes_nothing(self, rig, order):
        build(rig, order)
        assert build(rig, order) == RUNNING
        assert list(self.states(rig)).count(order.server_uuid) == 1

    def test_build_that_was_cut_off_after_each_part_goes_on(self, rig, order):
        rig.driver.disks.create_disks(order, rig.images)
        rig.driver.disks.create_disks(order, rig.images)
        rig.driver.interfaces.plug(order)
        rig.driver.interfaces.plug(order)
        rig.driver.disks.write_config_drive(order, {"a": b"1"})
        assert build(rig, order) == RUNNING

    def test_start_new_without_disks_is_a_conflict(self, rig, order):
        with pytest.raises(errors.Conflict):
            rig.driver.lifecycle.start_new(order)

    def test_unbuild_leaves_nothing(self, rig, order):
        build(rig, order)
        unbuild(rig, order)
        assert rig.left_over(order) == []
        assert order.server_uuid not in self.states(rig)
        assert rig.driver.lifecycle.power_state(order.server_uuid) is None

    def test_unbuild_by_uuid_alone_leaves_nothing(self, rig, order):
        build(rig, order)
        unbuild(rig, order, known=False)
        assert rig.left_over(order) == []

    def test_unbuild_twice_is_harmless(self, rig, order):
        build(rig, order)
        unbuild(rig, order)
        unbuild(rig, order)
        assert rig.left_over(order) == []

    def test_unbuild_of_what_never_was_is_harmless(self, rig, order):
        unbuild(rig, order)
        unbuild(rig, order, known=False)
        assert rig.left_over(order) == []

    @pytest.mark.parametrize("parts", [1, 2, 3])
    def test_unbuild_of_a_part_leaves_nothing(self, rig, order, parts):
        for part in (lambda: rig.driver.disks.create_disks(order, rig.images),
                     lambda: rig.driver.interfaces.plug(order),
                     lambda: rig.driver.disks.write_config_drive(order, {"a": b"1"}))[:parts]:
            part()
        unbuild(rig, order, known=parts % 2 == 0)
        assert rig.left_over(order) == []

    def test_destroy_keeps_the_disks_and_start_new_uses_them(self, rig, order):
        build(rig, order)
        rig.driver.lifecycle.destroy(order.server_uuid)
        assert rig.driver.lifecycle.power_state(order.server_uuid) is None
        assert rig.driver.lifecycle.start_new(order) == RUNNING

    def test_power_off_and_start_change_the_power_state(self, rig, order):
        build(rig, order)
        assert rig.driver.lifecycle.shut_down(order.server_uuid, 0) == SHUTDOWN
        assert rig.driver.lifecycle.power_state(order.server_uuid) == SHUTDOWN
        assert self.states(rig)[order.server_uuid] == SHUTDOWN
        assert rig.driver.lifecycle.shut_down(order.server_uuid, 0) == SHUTDOWN
        assert rig.driver.lifecycle.start(order.server_uuid) == RUNNING
        assert rig.driver.lifecycle.start(order.server_uuid) == RUNNING

    def test_start_new_of_a_stopped_guest_starts_it(self, rig, order):
        build(rig, order)
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
        assert rig.driver.lifecycle.start_new(order) == RUNNING

    def test_reboot_of_a_stopped_guest_is_left_to_the_caller(self, rig, order):
        build(rig, order)
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
        assert rig.driver.lifecycle.reboot(order.server_uuid, 1) is False

    @pytest.mark.parametrize("call", ["start", "shut_down", "reboot", "console_output"])
    def test_call_about_an_unknown_guest_is_not_found(self, rig, call):
        arguments = {"start": (), "shut_down": (1,), "reboot": (1,), "console_output": (None,)}[call]
        part = rig.driver.consoles if call == "console_output" else rig.driver.lifecycle
        with pytest.raises(errors.NotFound):
            getattr(part, call)(str(uuid.uuid4()), *arguments)

    def test_power_state_of_an_unknown_guest_is_none(self, rig):
        assert rig.driver.lifecycle.power_state(str(uuid.uuid4())) is None

    def test_power_changes_are_told_to_the_listener(self, rig, order):
        reported: list[GuestState] = []
        rig.driver.on_power_change(reported.append)
        try:
            build(rig, order)
            rig.driver.lifecycle.shut_down(order.server_uuid, 0)

            def said() -> list[PowerState]:
                return [state.power_state for state in reported if state.server_uuid == order.server_uuid]
            assert eventually(lambda: said()[:1] == [RUNNING] and said()[-1:] == [SHUTDOWN], rig.timeout_s), said()
        finally:
            rig.driver.on_power_change(lambda state: None)

    def test_guests_are_built_side_by_side(self, rig):
        orders = [make_order(rig.bridge) for _ in range(3)]
        failures: list[Exception] = []

        def work(order: BuildOrder) -> None:
            try:
                build(rig, order)
            except Exception as error:
                failures.append(error)
        threads = [threading.Thread(target=work, args=(order,)) for order in orders]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert not failures
            assert {self.states(rig).get(order.server_uuid) for order in orders} == {RUNNING}
        finally:
            for order in orders:
                unbuild(rig, order)
        assert [rig.left_over(order) for order in orders] == [[], [], []]

    def test_console_output_of_a_guest_is_text(self, rig, order):
        if rig.driver.consoles is None:
            pytest.skip("the driver has no consoles")
        build(rig, order)
        assert isinstance(rig.driver.consoles.console_output(order.server_uuid, None), str)
        assert rig.driver.consoles.console_output(order.server_uuid, 0) == ""

    def test_diagnostics_of_a_guest_that_runs_and_that_is_off(self, rig, order):
        if rig.driver.diagnosis is None:
            pytest.skip("the driver has no diagnostics")
        with pytest.raises(errors.NotFound):
            rig.driver.diagnosis.diagnostics(order.server_uuid)
        build(rig, order)
        reported = rig.driver.diagnosis.diagnostics(order.server_uuid)
        assert reported.power_state == RUNNING and reported.driver in ("libvirt", "vmwareapi", "xenapi", "ironic")
        assert len(reported.cpus) == 1 and len(reported.nics) == 1 and len(reported.disks) >= 3
        assert reported.memory_max_mb == 64 and reported.disks[0].read_bytes is not None
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
        off = rig.driver.diagnosis.diagnostics(order.server_uuid)
        assert off.power_state == SHUTDOWN and len(off.cpus) == 1 and len(off.disks) == len(reported.disks)
        assert len(off.nics) == 1 and off.memory_max_mb == 64

    def test_uptime_tells_since_when_its_host_is_up(self, rig):
        if rig.driver.host_uptime is None:
            pytest.skip("the driver has no uptime")
        reported = rig.driver.host_uptime.uptime()
        assert reported.booted_at <= utcnow() and len(reported.load) == 3
