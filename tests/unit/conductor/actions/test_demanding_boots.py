"""Servers that wish for more than vcpus, memory and disk: compute hosts, scheduler and Placement as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nova.conductor.queries.placement import placement_service
from nova.db import flavors
from nova.model.base import Scope
from nova.model.flavor.flavors import NewFlavor
from nova.model.placement.providers import ClassInventory, ProviderQuery, ProviderTraits
from nova.model.server.servers import ServerQuery
from nova.scheduler.service import SchedulerService
from tests.fakes import living_cloud
from tests.fakes.living_cloud import LivingCloud
from tests.fakes.walking_cloud import IMAGES, walking_cloud

HOSTS = ("host1", "host2")


@pytest.fixture
def cloud(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingCloud]:
    living_cloud.impatient(monkeypatch)
    with walking_cloud(tmp_path, templates, HOSTS) as made:
        yield made


def flavor(cloud: LivingCloud, name: str, specs: Mapping[str, str], vcpus: int = 4) -> str:
    """Its id."""
    cloud.api.transact(lambda tx: flavors.insert(tx, NewFlavor(name=name, flavorid=name, memory_mb=128, vcpus=vcpus,
                                                               root_gb=1)))
    cloud.api.transact(lambda tx: flavors.set_specs(tx, name, specs))
    return name


def boot(cloud: LivingCloud, flavor_id: str, count: int = 1, **fields) -> list:
    uuids = cloud.boot(count, image_id=IMAGES[0], flavor_id=flavor_id, **fields)
    cloud.settle(*uuids)
    return [cloud.server(uuid) for uuid in uuids]


def provider_of(cloud: LivingCloud, host: str) -> str:
    [found] = placement_service(cloud.deps).list_providers(ProviderQuery(name=host))
    return found.uuid


def test_boot_when_processors_are_dedicated_then_hosts_fill_up_and_the_next_is_told_what_is_missing(cloud):
    """Each host has two cells with eight processors to pin: four guests of four."""
    pinned = flavor(cloud, "pinned", {"hw:cpu_policy": "dedicated"})
    made = boot(cloud, pinned, 8)
    assert [row.vm_state for row in made] == ["active"] * 8
    assert sorted(row.host for row in made) == ["host1"] * 4 + ["host2"] * 4
    [last] = boot(cloud, pinned)
    assert last.vm_state == "error" and "No valid host" in last.fault.message and "PCPU" in last.fault.message
    cloud.delete(made[0].uuid)
    cloud.settle()
    [again] = boot(cloud, pinned)
    assert (again.vm_state, again.host) == ("active", made[0].host)


def test_boot_when_a_cell_has_too_few_left_then_the_cells_say_no_and_not_the_sum(cloud):
    """Six in one cell twice leave two in each: four are left, but in no cell."""
    six = flavor(cloud, "six", {"hw:cpu_policy": "dedicated"}, vcpus=6)
    assert [row.vm_state for row in boot(cloud, six, 4)] == ["active"] * 4
    [last] = boot(cloud, flavor(cloud, "four", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}))
    assert last.vm_state == "error" and "not enough dedicated CPUs in one cell" in last.fault.message
    assert "no cell has 4 free dedicated CPUs" in last.fault.details  # which only admins see
    [split] = boot(cloud, flavor(cloud, "split", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}))
    assert split.vm_state == "active"


def test_topology_when_processors_are_pinned_then_it_is_shown_as_the_guest_has_it(cloud):
    [row] = boot(cloud, flavor(cloud, "wide", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}))
    shown = cloud.control.get_server_topology(ServerQuery(uuid=row.uuid, scope=Scope()))
    guest = cloud.computes[row.host].driver.hypervisor.inspect(row.uuid)
    assert [dict(node.cpu_pinning) for node in shown.nodes] == [dict(cell.pins) for cell in guest.packing.cells]
    assert [node.vcpus for node in shown.nodes] == [(0, 1), (2, 3)]


def test_boot_when_placement_gives_a_host_a_trait_then_flavors_that_require_it_go_there_alone(cloud):
    placement, gold = placement_service(cloud.deps), flavor(cloud, "gold", {"trait:CUSTOM_GOLD": "required"}, vcpus=1)
    [none] = boot(cloud, gold)
    assert none.vm_state == "error" and "no trait CUSTOM_GOLD" in none.fault.message
    placement.create_trait("CUSTOM_GOLD")
    uuid = provider_of(cloud, "host2")
    before = placement.get_provider_traits(uuid)
    placement.set_provider_traits(ProviderTraits(uuid=uuid, generation=before.generation,
                                                 traits=(*before.traits, "CUSTOM_GOLD")))
    assert {row.host for row in boot(cloud, gold, 4)} == {"host2"}
    lead = flavor(cloud, "lead", {"trait:CUSTOM_GOLD": "forbidden"}, vcpus=1)
    assert {row.host for row in boot(cloud, lead, 4)} == {"host1"}


def test_boot_when_placement_gives_a_host_a_class_then_it_is_given_out_until_none_is_left(cloud):
    placement, uuid = placement_service(cloud.deps), provider_of(cloud, "host1")
    placement.create_class("CUSTOM_LICENSE")
    placement.set_inventory(uuid, placement.get_inventories(uuid).generation,
                            ClassInventory(resource_class="CUSTOM_LICENSE", total=2, max_unit=2), True)
    licensed = flavor(cloud, "licensed", {"resources:CUSTOM_LICENSE": "1"}, vcpus=1)
    assert [row.host for row in boot(cloud, licensed, 2)] == ["host1", "host1"]
    [last] = boot(cloud, licensed)
    assert last.vm_state == "error" and "CUSTOM_LICENSE" in last.fault.message
    assert placement.get_usages(uuid).used["CUSTOM_LICENSE"] == 2


def test_boot_when_the_scheduler_knows_less_than_the_claim_then_the_refusal_teaches_it_and_another_host_is_taken(cloud):
    """Two schedulers: what the other one decided is not known here until the claim says so."""
    full = flavor(cloud, "full", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}, vcpus=16)
    living: SchedulerService = cloud.living
    why_not_receiving = living.update_hosts
    told = []
    living.update_hosts = told.append  # type: ignore[method-assign]
    [first] = boot(cloud, full)
    cloud.living._hosts.forget((first.uuid,))
    living.update_hosts = why_not_receiving  # type: ignore[method-assign]
    [second] = boot(cloud, full)
    assert (first.vm_state, second.vm_state) == ("active", "active") and first.host != second.host
    [third] = boot(cloud, full)
    assert third.vm_state == "error" and "No valid host" in third.fault.message


def test_boot_when_others_took_all_the_proposed_hosts_then_one_more_is_looked_for_while_there_is_room(cloud):
    """A scheduler that hears nothing proposes full hosts: the claims' refusals are no attempts to build."""
    cloud.set(max_attempts=1)
    full = flavor(cloud, "all", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}, vcpus=16)
    hear, cloud.living.update_hosts = cloud.living.update_hosts, lambda states: None
    [first] = boot(cloud, full)
    cloud.living._hosts.forget((first.uuid,))
    [second] = boot(cloud, full)
    assert (first.vm_state, second.vm_state) == ("active", "active") and first.host != second.host
    cloud.living._hosts.forget((second.uuid,))
    [third] = boot(cloud, full)
    assert third.vm_state == "error" and third.host is None
    cloud.living.update_hosts = hear
