"""What a host offers, and when it says so."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from nova.compute.host import Host
from nova.compute.reports.inventory import InventoryReports, offered
from nova.conf import compute as compute_options
from nova.model.host.hosts import HostUptime, Node
from nova.model.placement.traits import is_trait
from nova.virt import interface
from tests.fakes.compute import HOST, FakeClock, options
from tests.fakes.conductor_host import FakeConductorHost

NODE = Node(name=HOST, uuid="6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11", hypervisor_type="fake", vcpus=8, memory_mb=16384,
            local_gb=100, memory_mb_used=1000, local_gb_used=10)


class Nodes(interface.Driver):
    def __init__(self) -> None:
        self.now = (NODE,)

    def nodes(self):
        return self.now


@pytest.fixture
def driver():
    return Nodes()


@pytest.fixture
def make(driver, tmp_path):
    conductor = FakeConductorHost()

    def make():
        reports = InventoryReports(driver, conductor.client(HOST), options(compute_options),
                                   Host(HOST, tmp_path, "10.0.0.7", FakeClock()))
        reports.conductor = conductor
        return reports
    return make


def test_offered_when_nothing_is_set_then_the_initial_ratios_and_usual_reservation():
    node = offered(NODE, options(compute_options), "10.0.0.7")
    assert (node.cpu_allocation_ratio, node.ram_allocation_ratio, node.disk_allocation_ratio) == (4.0, 1.0, 1.0)
    assert (node.reserved_vcpus, node.reserved_memory_mb, node.reserved_disk_gb) == (0, 512, 0)
    assert node.host_ip == "10.0.0.7" and node.memory_mb == 16384


def test_offered_when_the_operator_sets_them_then_those():
    node = offered(NODE, options(compute_options, cpu_allocation_ratio=16.0, ram_allocation_ratio=0.0,
                                 reserved_host_disk_mb=1025, reserved_host_cpus=2))
    assert (node.cpu_allocation_ratio, node.ram_allocation_ratio) == (16.0, 1.0)
    assert (node.reserved_disk_gb, node.reserved_vcpus) == (2, 2)


def test_send_when_nothing_changed_then_nothing_is_sent(make, driver):
    reports = make()
    assert reports.send("id") and not reports.send("id") and reports.send("id", always=True)
    driver.now = (msgspec.structs.replace(NODE, memory_mb_used=1100),)
    assert not reports.send("id")


@pytest.mark.parametrize("change", [{"vcpus": 4}, {"memory_mb_used": 1300}, {"local_gb_used": 11},
                                    {"disk_available_least_gb": 50}, {"traits": ("CUSTOM_X",)}])
def test_send_when_something_changed_then_it_is_sent_whole(make, driver, change):
    reports = make()
    reports.send("id")
    driver.now = (msgspec.structs.replace(NODE, **change),)
    assert reports.send("id")
    assert len(reports.conductor.inventories) == 2


def test_send_when_a_node_came_or_went_then_it_is_sent(make, driver):
    reports = make()
    reports.send("id")
    driver.now = ()
    assert reports.send("id")


def test_version_when_restarted_then_it_grows_on(make):
    for _ in range(3):
        make().send("id")
    assert [inventory.version for inventory in make().conductor.inventories] == [1, 2, 3]


def test_version_when_its_file_is_damaged_then_it_still_grows(make, tmp_path):
    reports = make()
    reports.send("id")
    (tmp_path / "inventory_version").write_text("")
    reports.send("id", always=True)
    assert reports.conductor.inventories[1].version > 1_000_000_000


def test_send_when_the_conductor_is_away_then_it_is_sent_the_next_time(make):
    reports = make()
    reports.conductor.away = True
    with pytest.raises(Exception, match="did not answer"):
        reports.send("id")
    reports.conductor.away = False
    assert reports.send("id")


def test_traits_when_a_driver_implements_a_protocol_then_the_node_has_its_standard_trait(world):
    (inventory,) = world.conductor.inventories
    wanted = {"COMPUTE_NODE", "COMPUTE_SAME_HOST_COLD_MIGRATE", "COMPUTE_RESCUE_BFV", "COMPUTE_VOLUME_ATTACH",
              "COMPUTE_VOLUME_ATTACH_WITH_TAG", "COMPUTE_VOLUME_EXTEND", "COMPUTE_VOLUME_MULTI_ATTACH"}
    assert wanted <= set(inventory.nodes[0].traits)
    assert all(is_trait(trait) for trait in inventory.nodes[0].traits)


def test_traits_when_a_driver_moves_no_guests_then_it_has_not_got_that_trait(make, driver):
    reports = make()
    reports.send("id")
    assert reports.conductor.inventories[0].nodes[0].traits == ("COMPUTE_NODE",)


class Up(Nodes):
    """A driver that tells its host's uptime."""

    def __init__(self) -> None:
        super().__init__()
        self.host_uptime = self
        self.reported = HostUptime(booted_at=datetime.datetime(2026, 1, 1), load=(9.0, 9.0, 1.0))

    def uptime(self) -> HostUptime:
        return self.reported


@pytest.mark.parametrize("driver", [Up()])
def test_uptime_when_told_then_it_is_in_the_inventory_and_news_only_when_the_load_has_moved_for_long(make, driver):
    reports = make()
    assert reports.send("id") and reports.conductor.inventories[-1].nodes[0].uptime == driver.reported
    driver.reported = HostUptime(booted_at=datetime.datetime(2026, 1, 1, 0, 0, 1), users=3, load=(0.0, 0.0, 2.9))
    assert not reports.send("id")
    driver.reported = HostUptime(booted_at=datetime.datetime(2026, 1, 1), load=(0.0, 0.0, 3.0))  # of 8 processors
    assert reports.send("id")


def test_uptime_when_the_driver_has_none_then_there_is_none(make):
    reports = make()
    assert reports.send("id") and reports.conductor.inventories[-1].nodes[0].uptime is None
