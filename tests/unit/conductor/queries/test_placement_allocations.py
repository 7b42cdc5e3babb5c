"""Allocations by Placement's API: exact, all or none, fenced by generations; servers' stay the servers'."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import hosts
from nova.db.models import api as tables
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.model.placement.providers import (
    ClassInventory,
    ConsumerAllocations,
    PlacementUsageQuery,
    ProviderAllocation,
    ProviderInventories,
    Reshape,
)
from nova.model.scheduling.decisions import Resources
from tests.fakes.placement import Placement, allocation_write
from tests.fakes.rows import add_ledger, new_uuid
from tests.fakes.small_cloud import SmallCloud, node_id

CHANGED = ("conflict", "placement.consumer.changed")
NO_ROOM = ("conflict", "placement.allocation.no_room")
SERVERS = ("conflict", "placement.allocation.servers")
A = node_id("a")


@pytest.fixture
def placement(cloud: SmallCloud) -> Placement:
    return Placement(cloud)


def server(cloud: SmallCloud, **fields: Any) -> str:
    """A server that holds 2 VCPU and 512 MB of host a."""
    [uuid] = add_ledger(cloud.api, 1, epoch=3, **fields)
    key = next(one.provider_id for one in cloud.scheduler.choices if one.host == "a")
    claim = claims.Claim(uuid, 3, key, Resources(vcpus=2, memory_mb=512, disk_gb=0))
    assert cloud.api.transact(lambda tx: claims.claim(tx, [claim]))[0] == {uuid: None}
    return uuid


def held(placement: Placement, consumer: str) -> dict[str, dict[str, int]]:
    return {one.provider_uuid: dict(one.resources) for one in placement.rpc.get_allocations(consumer).allocations}


# -- writing

def test_allocations_when_written_then_they_are_read_with_owner_and_generation(placement: Placement) -> None:
    one, two = placement.make("one", VCPU=4, MEMORY_MB=100), placement.make("two", DISK_GB=10)
    consumer = new_uuid()
    wanted = ConsumerAllocations(
        consumer=consumer, generation=None, project_id="demo", user_id="joe", consumer_type="JOB", allocations=(
            ProviderAllocation(provider_uuid=one, resources={"MEMORY_MB": 10, "VCPU": 2}, mappings=("", "_A")),
            ProviderAllocation(provider_uuid=two, resources={"DISK_GB": 3}, mappings=("_B",))))
    placement.rpc.set_allocations((wanted,))
    found = placement.rpc.get_allocations(consumer)
    assert (found.project_id, found.user_id, found.consumer_type, found.generation) == ("demo", "joe", "JOB", 1)
    assert [(each.provider_uuid, dict(each.resources), each.mappings, each.generation) for each in found.allocations
            ] == [(one, {"MEMORY_MB": 10, "VCPU": 2}, ("", "_A"), 2), (two, {"DISK_GB": 3}, ("_B",), 2)]
    assert placement.used(one) == {"MEMORY_MB": 10, "VCPU": 2}
    of_one = placement.rpc.get_provider_allocations(one)
    assert (of_one.generation, [each.consumer for each in of_one.consumers]) == (2, [consumer])
    assert [each.provider_uuid for each in of_one.consumers[0].allocations] == [one]


def test_allocations_when_written_again_then_they_replace_and_the_generation_counts(placement: Placement) -> None:
    one, two = placement.make("one", VCPU=4), placement.make("two", VCPU=4)
    consumer = placement.allocate(one, VCPU=4)
    placement.rpc.set_allocations((allocation_write(consumer, {two: {"VCPU": 1}}, 1, project_id="other"),))
    found = placement.rpc.get_allocations(consumer)
    assert held(placement, consumer) == {two: {"VCPU": 1}} and placement.used(one) == {"VCPU": 0}
    assert (found.generation, found.project_id) == (2, "other")


@pytest.mark.parametrize("generation", [None, 0, 2])
def test_allocations_when_another_generation_was_read_then_nothing_changes(placement: Placement,
                                                                           generation: int | None) -> None:
    one = placement.make("one", VCPU=4)
    consumer = placement.allocate(one, VCPU=1)
    assert placement.trouble("set_allocations",
                             (allocation_write(consumer, {one: {"VCPU": 2}}, generation),)) == CHANGED
    assert held(placement, consumer) == {one: {"VCPU": 1}}
    placement.rpc.set_allocations((allocation_write(consumer, {one: {"VCPU": 2}}, -1),
                                   ))  # before there were generations
    assert placement.rpc.get_allocations(consumer).generation == 2


def test_allocations_when_the_consumer_is_new_then_no_generation_but_none_will_do(placement: Placement) -> None:
    one, consumer = placement.make("one", VCPU=4), new_uuid()
    assert placement.trouble("set_allocations", (allocation_write(consumer, {one: {"VCPU": 2}}, 1),)) == CHANGED
    assert placement.rpc.get_allocations(consumer) == ConsumerAllocations(consumer=consumer, generation=None)
    assert consumers(placement) == 0


def consumers(placement: Placement) -> int:
    return len(placement.cloud.rows("api", sa.select(tables.consumers)))


def test_allocations_when_given_back_then_the_consumer_is_gone(placement: Placement) -> None:
    one = placement.make("one", VCPU=4)
    for clear in ("delete", "empty"):
        consumer = placement.allocate(one, VCPU=1)
        if clear == "delete":
            placement.rpc.delete_allocations(consumer)
        else:
            placement.rpc.set_allocations((allocation_write(consumer, {}, 1),))
        assert placement.used(one) == {"VCPU": 0} and consumers(placement) == 0
        assert placement.trouble("delete_allocations", consumer) == ("not_found", "placement.allocation.not_found")
    placement.rpc.set_allocations((allocation_write(new_uuid(), {}, None),))
    assert consumers(placement) == 0


LIMITS = [({"VCPU": 9}, NO_ROOM), ({"VCPU": 3}, NO_ROOM), ({"VCPU": 2, "DISK_GB": 1}, NO_ROOM), ({"VCPU": 8}, NO_ROOM),
          ({"VCPU": 1}, NO_ROOM), ({"CUSTOM_NONE": 1}, ("invalid", "placement.resource_class.unknown")),
          ({"VCPU": 0}, ("invalid", "placement.allocation.invalid"))]


@pytest.mark.parametrize(("amounts", "trouble"), LIMITS, ids=str)
def test_allocations_when_they_do_not_fit_then_nothing_is_given(placement: Placement, amounts: dict[str, int],
                                                                trouble: tuple[str, str]) -> None:
    uuid = placement.make("one")
    placement.rpc.set_inventories(ProviderInventories(uuid=uuid, inventories=(ClassInventory(
        resource_class="VCPU", total=4, reserved=1, allocation_ratio=3.0, min_unit=2, max_unit=6, step_size=2),)))
    placement.allocate(uuid, VCPU=6)
    wanted = {"VCPU": 4} if amounts == {"VCPU": 8} else amounts  # 9 in all, 6 used
    assert placement.trouble("set_allocations", (allocation_write(new_uuid(), {uuid: wanted}),)) == trouble
    assert placement.used(uuid) == {"VCPU": 6} and consumers(placement) == 1


def test_allocations_when_the_provider_is_unknown_then_it_is_invalid(placement: Placement) -> None:
    assert placement.trouble("set_allocations", (allocation_write(new_uuid(), {new_uuid(): {"VCPU": 1}}),)) == (
        "invalid", "placement.allocation.unknown_provider")


def test_allocations_when_a_provider_shrank_below_its_use_then_they_shrink_and_pass_on_but_never_grow(
        placement: Placement) -> None:
    one = placement.make("one", VCPU=4)
    first, second = placement.allocate(one, VCPU=2), placement.allocate(one, VCPU=2)
    placement.fill(one, VCPU=2)
    assert placement.trouble("set_allocations", (allocation_write(first, {one: {"VCPU": 3}}, 1),)) == NO_ROOM
    placement.rpc.set_allocations((allocation_write(first, {one: {"VCPU": 2}}, 1),))
    placement.rpc.set_allocations((allocation_write(first, {one: {"VCPU": 1}}, 2),))
    third = new_uuid()
    placement.rpc.set_allocations((allocation_write(second, {}, 1), allocation_write(third, {one: {"VCPU": 2}})))
    assert placement.used(one) == {"VCPU": 3} and held(placement, third) == {one: {"VCPU": 2}}


def test_allocations_of_several_when_one_does_not_fit_then_none_is_written(placement: Placement) -> None:
    one, two = placement.make("one", VCPU=4), placement.make("two", VCPU=1)
    old, new = placement.allocate(one, VCPU=4), new_uuid()
    swap = (allocation_write(old, {two: {"VCPU": 1}}, 1), allocation_write(new, {one: {"VCPU": 4}}))
    assert placement.trouble("set_allocations", (*swap, allocation_write(new_uuid(), {two: {"VCPU": 1}}))) == NO_ROOM
    assert held(placement, old) == {one: {"VCPU": 4}} and held(placement, new) == {}
    placement.rpc.set_allocations(swap)
    assert (held(placement, old), held(placement, new)) == ({two: {"VCPU": 1}}, {one: {"VCPU": 4}})


def test_consumer_when_its_last_provider_went_with_its_host_then_it_begins_anew(cloud: SmallCloud,
                                                                                placement: Placement) -> None:
    consumer = placement.allocate(A, VCPU=1)
    key = next(one.provider_id for one in cloud.scheduler.choices if one.host == "a")
    cloud.api.transact(lambda tx: hosts.drop_providers(tx, {key: placement.get(A).generation}))
    assert placement.rpc.get_allocations(consumer).generation is None
    other = placement.make("other", VCPU=1)
    placement.allocate(other, consumer, None, VCPU=1)
    assert held(placement, consumer) == {other: {"VCPU": 1}}


# -- servers

def test_servers_allocations_when_read_then_ledger_and_move_say_whose_they_are(cloud: SmallCloud,
                                                                              placement: Placement) -> None:
    uuid, move = server(cloud), new_uuid()
    found = placement.rpc.get_allocations(uuid)
    assert (found.project_id, found.user_id, found.consumer_type, found.generation) == ("demo", "joe", "INSTANCE", 3)
    assert held(placement, uuid) == {A: {"MEMORY_MB": 512, "VCPU": 2}}
    cloud.api.transact(lambda tx: ledger.begin_move(tx, uuid, 4, move))
    found = placement.rpc.get_allocations(move)
    assert (found.project_id, found.consumer_type, found.generation) == ("demo", "MIGRATION", 4)
    assert held(placement, uuid) == {}


def test_servers_allocations_when_they_are_to_be_written_then_it_is_refused(cloud: SmallCloud,
                                                                            placement: Placement) -> None:
    uuid, move = server(cloud), new_uuid()
    ours = placement.make("one", VCPU=4)
    cloud.api.transact(lambda tx: ledger.begin_move(tx, uuid, 4, move))
    before = cloud.claims()
    for consumer in (uuid, move):
        assert placement.trouble("set_allocations", (allocation_write(new_uuid(), {ours: {"VCPU": 1}}),
                                                     allocation_write(consumer, {ours: {"VCPU": 1}}, 4))) == SERVERS
        assert placement.trouble("delete_allocations", consumer) == SERVERS
        assert placement.trouble("reshape", Reshape(allocations=(allocation_write(consumer, {}, 4),))) == SERVERS
    with pytest.raises(errors.Conflict, match="placement audit"):
        placement.rpc.delete_allocations(uuid)
    assert cloud.claims() == before and consumers(placement) == 0


def test_allocations_on_a_host_when_written_then_claims_count_them_and_schedulers_hear(cloud: SmallCloud,
                                                                                      placement: Placement) -> None:
    placement.fill(A, VCPU=3, MEMORY_MB=4096)
    server(cloud)
    cloud.scheduler.calls.clear()
    placement.allocate(A, VCPU=1)
    assert [(one.host, one.vcpus_used) for states in cloud.scheduler.received for one in states.states] == [("a", 3)]
    [uuid] = add_ledger(cloud.api)
    key = next(one.provider_id for one in cloud.scheduler.choices if one.host == "a")
    claim = claims.Claim(uuid, 1, key, Resources(vcpus=1, memory_mb=1, disk_gb=0))
    assert isinstance(cloud.api.transact(lambda tx: claims.claim(tx, [claim]))[0][uuid], errors.ClaimConflict)


# -- usages

def test_project_usages_when_consumers_are_of_many_kinds_then_each_counts_once(cloud: SmallCloud,
                                                                               placement: Placement) -> None:
    one = placement.make("one", VCPU=10, MEMORY_MB=10)
    moved, move = server(cloud), new_uuid()
    server(cloud, user_id="ann")
    server(cloud, project_id="other")
    cloud.api.transact(lambda tx: ledger.begin_move(tx, moved, 4, move))
    placement.allocate(one, VCPU=1, MEMORY_MB=2)
    placement.rpc.set_allocations((allocation_write(new_uuid(), {one: {"VCPU": 1}}, consumer_type="JOB"),))

    def usages(**fields: Any) -> dict[str, tuple[int, dict[str, int]]]:
        query = PlacementUsageQuery(project_id=fields.pop("project_id", "demo"), **fields)
        return {each.consumer_type: (each.consumers, dict(each.used)) for each in
                placement.rpc.get_project_usages(query)}
    each = {"INSTANCE": (1, {"MEMORY_MB": 512, "VCPU": 2}), "MIGRATION": (1, {"MEMORY_MB": 512, "VCPU": 2}),
            "JOB": (1, {"VCPU": 1}), "unknown": (1, {"MEMORY_MB": 2, "VCPU": 1})}
    assert usages(consumer_type=None) == each
    assert usages() == {"all": (4, {"MEMORY_MB": 1026, "VCPU": 6})}
    assert usages(consumer_type="JOB") == {"JOB": each["JOB"]}
    assert usages(consumer_type="unknown", user_id="joe") == {"unknown": each["unknown"]}
    assert usages(consumer_type=None, user_id="ann") == {"INSTANCE": each["INSTANCE"]}
    assert usages(project_id="none") == {}


# -- reshape

def test_reshape_when_all_is_right_then_inventory_and_allocations_move_together(placement: Placement) -> None:
    root = placement.make("root", VCPU=4, VGPU=2)
    child = placement.make("child", root)
    consumer = placement.allocate(root, VCPU=1, VGPU=2)

    def inventory(uuid: str, generation: int, **totals: int) -> ProviderInventories:
        return ProviderInventories(uuid=uuid, generation=generation, inventories=tuple(
            ClassInventory(resource_class=name, total=total, max_unit=total) for name, total in totals.items()))
    moved = allocation_write(consumer, {root: {"VCPU": 1}, child: {"VGPU": 2}}, 1)
    for wrong, trouble in (
            (Reshape(inventories=(inventory(root, 1, VCPU=4), inventory(child, 0, VGPU=2)), allocations=(moved,)),
             ("conflict", "placement.concurrent_update")),
            (Reshape(inventories=(inventory(root, 2, VCPU=4), inventory(child, 0, VGPU=2))),
             ("conflict", "placement.inventory.inuse")),
            (Reshape(inventories=(inventory(root, 2, VCPU=4), inventory(child, 0, VGPU=1)), allocations=(moved,)),
             NO_ROOM),
            (Reshape(inventories=(inventory(new_uuid(), 0, VCPU=4),)),
             ("invalid", "placement.allocation.unknown_provider"))):
        assert placement.trouble("reshape", wrong) == trouble
        assert held(placement, consumer) == {root: {"VCPU": 1, "VGPU": 2}}
        assert [one.resource_class for one in placement.rpc.get_inventories(root).inventories] == ["VCPU", "VGPU"]
    placement.rpc.reshape(Reshape(inventories=(inventory(root, 2, VCPU=4), inventory(child, 0, VGPU=2)),
                                  allocations=(moved,)))
    assert held(placement, consumer) == {root: {"VCPU": 1}, child: {"VGPU": 2}}
    assert (placement.get(root).generation, placement.get(child).generation) == (5, 3)


# -- generations, as Placement counts them

def generations(placement: Placement, *uuids: str) -> list[int]:
    return [placement.get(uuid).generation for uuid in uuids]


def test_generation_when_allocations_are_replaced_then_the_providers_named_count_by_one(placement: Placement) -> None:
    one, two = placement.make("one", VCPU=4, MEMORY_MB=9), placement.make("two", VCPU=4)
    consumer = placement.allocate(one, VCPU=1, MEMORY_MB=2)
    assert generations(placement, one, two) == [2, 1]
    placement.allocate(two, consumer, 1, VCPU=1)
    assert generations(placement, one, two) == [2, 2]  # what it has no more is not counted
    placement.rpc.set_allocations((allocation_write(consumer, {}, 2),))
    assert generations(placement, one, two) == [2, 3]  # what it gives back by asking for nothing is


def test_generation_when_allocations_are_deleted_then_it_stays_but_of_a_hosts_root(placement: Placement) -> None:
    one = placement.make("one", VCPU=4)
    placement.rpc.delete_allocations(placement.allocate(one, VCPU=1))
    assert generations(placement, one) == [2]
    consumer, before = placement.allocate(A, VCPU=1), placement.get(A).generation
    placement.rpc.delete_allocations(consumer)
    assert generations(placement, A) == [before + 1]  # it is the schedulers' stamp


# -- reshaping, judged by what there is then

def reshaped(provider: str, generation: int, consumers: tuple[ConsumerAllocations, ...], **vcpu: Any) -> Reshape:
    inventory = ClassInventory(resource_class="VCPU", **{"total": 8, **vcpu})
    return Reshape(inventories=(ProviderInventories(uuid=provider, generation=generation, inventories=(inventory,)),),
                   allocations=consumers)


@pytest.mark.parametrize("units", [
    {"min_unit": 4}, {"max_unit": 2}, {"step_size": 2}, {"total": 2}, {"reserved": 6}, {"allocation_ratio": 0.25}],
    ids=str)
def test_reshape_when_unchanged_allocations_break_the_new_units_then_nothing_changes(
        placement: Placement, units: dict[str, Any]) -> None:
    one = placement.make("one", VCPU=8)
    consumer = placement.allocate(one, VCPU=3)
    same = (allocation_write(consumer, {one: {"VCPU": 3}}, 1),)
    assert placement.trouble("reshape", reshaped(one, 2, same, **units)) == NO_ROOM
    assert placement.rpc.get_inventories(one).inventories[0].max_unit == 8 and generations(placement, one) == [2]
    placement.rpc.reshape(reshaped(one, 2, same, total=3))


def test_reshape_when_done_then_generations_count_what_it_takes_in_single_writes(placement: Placement) -> None:
    old, new, bare = placement.make("old", VCPU=8), placement.make("new"), placement.make("bare", VCPU=8)
    consumer = placement.allocate(old, VCPU=3)
    inventory = ClassInventory(resource_class="VCPU", total=8)
    placement.rpc.reshape(Reshape(
        inventories=(ProviderInventories(uuid=old, generation=2),
                     ProviderInventories(uuid=new, generation=0, inventories=(inventory,)),
                     ProviderInventories(uuid=bare, generation=1, inventories=(inventory,))),
        allocations=(allocation_write(consumer, {new: {"VCPU": 3}}, 1),)))
    assert generations(placement, old, new, bare) == [3, 3, 3]
    assert placement.rpc.get_allocations(consumer).generation == 2
