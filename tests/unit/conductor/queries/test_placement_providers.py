"""Providers by Placement's API: made, moved, filled, described, found; hosts' own stay the hosts'."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models.cell import services
from nova.model.host.aggregates import NewAggregate
from nova.model.host.hosts import NodeStamp
from nova.model.placement.providers import (
    ClassInventory,
    NewProvider,
    ProviderAggregates,
    ProviderInventories,
    ProviderQuery,
    ProviderTraits,
    ProviderUpdate,
    RequestGroup,
    TraitQuery,
)
from tests.fakes.placement import Placement
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud, node_id

CONCURRENT = ("conflict", "placement.concurrent_update")
NOBODY = ("not_found", "placement.resource_provider.not_found")
BAD_PARENT = ("invalid", "placement.resource_provider.bad_parent")
HOSTS_OWN = ("conflict", "placement.resource_provider.hosts_own")
A = node_id("a")


@pytest.fixture
def placement(cloud: SmallCloud) -> Placement:
    return Placement(cloud)


def found(placement: Placement, **fields: Any) -> list[str]:
    """Names of the providers that a query finds."""
    own = {name: fields.pop(name) for name in ("name", "uuid") if name in fields}
    return [one.name for one in placement.rpc.list_providers(ProviderQuery(**own, group=RequestGroup(**fields)))]


def reported(cloud: SmallCloud) -> list[str]:
    """Hosts that the schedulers heard of since this was last asked."""
    hosts = [state.host for states in cloud.scheduler.received for state in states.states]
    cloud.scheduler.calls.clear()
    return hosts


# -- making, renaming, moving, deleting

def test_provider_when_made_then_it_is_a_root_at_generation_0(placement: Placement) -> None:
    made = placement.get(placement.make("one"))
    assert (made.name, made.generation, made.parent_uuid, made.root_uuid) == ("one", 0, None, made.uuid)
    assert made.updated_at is not None


def test_provider_when_its_name_or_uuid_is_taken_then_it_is_a_conflict(placement: Placement) -> None:
    taken = placement.make("one")
    for new in (NewProvider(uuid=new_uuid(), name="one"), NewProvider(uuid=taken, name="two")):
        assert placement.trouble("create_provider", new) == ("conflict", "placement.duplicate_name")
    other = placement.make("two")
    assert placement.trouble("update_provider", ProviderUpdate(uuid=other, name="one")) == (
        "conflict", "placement.duplicate_name")
    assert placement.rpc.update_provider(ProviderUpdate(uuid=other, name="three")).name == "three"


def test_provider_when_its_parent_cannot_be_then_it_is_refused(placement: Placement) -> None:
    uuid = new_uuid()
    for parent in (new_uuid(), uuid):
        assert placement.trouble("create_provider", NewProvider(uuid=uuid, name="x", parent_uuid=parent)) == BAD_PARENT


def test_tree_when_a_part_moves_then_all_below_it_goes_along_and_loops_are_refused(placement: Placement) -> None:
    root, other = placement.make("root"), placement.make("other")
    middle = placement.make("middle", root)
    leaf = placement.make("leaf", middle)

    def move(uuid: str, parent: str | None, may: bool = True) -> ProviderUpdate:
        return ProviderUpdate(uuid=uuid, name=placement.get(uuid).name, parent_uuid=parent, parent_asked=True,
                              may_reparent=may)
    assert placement.get(leaf).root_uuid == root
    for change in (move(root, leaf), move(middle, middle), move(middle, new_uuid()), move(middle, other, may=False),
                   move(middle, None, may=False)):
        assert placement.trouble("update_provider", change) == BAD_PARENT
    placement.rpc.update_provider(move(middle, root, may=False))  # where it is
    placement.rpc.update_provider(move(middle, other))
    assert [(placement.get(one).parent_uuid, placement.get(one).root_uuid) for one in (middle, leaf)] == [
        (other, other), (middle, other)]
    placement.rpc.update_provider(move(middle, None))
    assert [placement.get(one).root_uuid for one in (middle, leaf)] == [middle, middle]
    placement.rpc.update_provider(move(middle, root, may=False))  # its first parent: always allowed
    assert found(placement, in_tree=leaf) == ["root", "middle", "leaf"]


def test_delete_when_it_has_children_or_allocations_then_it_is_refused(placement: Placement) -> None:
    root = placement.make("root", VCPU=4)
    child = placement.make("child", root)
    assert placement.trouble("delete_provider", root) == (
        "conflict", "placement.resource_provider.cannot_delete_parent")
    placement.rpc.delete_provider(child)
    consumer = placement.allocate(root, VCPU=1)
    assert placement.trouble("delete_provider", root) == ("conflict", "placement.resource_provider.inuse")
    placement.rpc.delete_allocations(consumer)
    placement.rpc.delete_provider(root)
    assert placement.trouble("delete_provider", root) == NOBODY
    assert placement.trouble("get_inventories", root) == NOBODY


def test_hosts_provider_when_it_is_to_be_renamed_moved_or_deleted_then_it_is_refused(placement: Placement) -> None:
    other = placement.make("other")
    assert placement.trouble("delete_provider", A) == HOSTS_OWN
    assert placement.trouble("update_provider", ProviderUpdate(uuid=A, name="new")) == HOSTS_OWN
    assert placement.trouble("update_provider", ProviderUpdate(
        uuid=A, name="a", parent_uuid=other, parent_asked=True, may_reparent=True)) == HOSTS_OWN
    assert placement.rpc.update_provider(ProviderUpdate(uuid=A, name="a", parent_asked=True)).name == "a"


def test_hosts_provider_when_its_host_is_no_more_then_what_was_left_of_it_may_be_deleted(cloud: SmallCloud,
                                                                                        placement: Placement) -> None:
    cloud.write("cell", sa.update(services).where(services.c.host == "a").values(deleted=services.c.id))
    placement.rpc.delete_provider(A)
    assert found(placement) == ["b"]


@pytest.mark.parametrize("call", ["get_provider", "get_inventories", "get_usages", "get_provider_traits",
                                  "get_provider_aggregates", "get_provider_allocations", "delete_provider"])
def test_read_when_there_is_no_such_provider_then_it_is_not_found(placement: Placement, call: str) -> None:
    assert placement.trouble(call, new_uuid()) == NOBODY


# -- inventories

def test_inventories_when_another_generation_was_read_then_nothing_changes(placement: Placement) -> None:
    uuid = placement.make("one", VCPU=4)
    stale = ProviderInventories(uuid=uuid, generation=0)
    assert placement.trouble("set_inventories", stale) == CONCURRENT
    assert placement.trouble("set_inventory", uuid, 0, ClassInventory(resource_class="VCPU", total=1), False
                             ) == CONCURRENT
    now = placement.rpc.get_inventories(uuid)
    assert (now.generation, [one.resource_class for one in now.inventories]) == (1, ["VCPU"])
    assert placement.rpc.set_inventories(ProviderInventories(uuid=uuid, generation=1)).generation == 2


def test_inventory_of_one_class_when_set_then_it_must_be_there_or_not(placement: Placement) -> None:
    uuid = placement.make("one")
    vcpu = ClassInventory(resource_class="VCPU", total=4, max_unit=4, allocation_ratio=2.0)
    assert placement.trouble("set_inventory", uuid, None, vcpu, False) == ("invalid", "placement.inventory.missing")
    assert placement.rpc.set_inventory(uuid, 0, vcpu, True).inventories == (vcpu,)
    assert placement.trouble("set_inventory", uuid, None, vcpu, True) == ("conflict", "placement.inventory.exists")
    assert placement.rpc.set_inventory(uuid, 1, vcpu, False).generation == 2
    placement.rpc.delete_inventory(uuid, "VCPU")
    assert placement.trouble("delete_inventory", uuid, "VCPU") == ("not_found", "placement.inventory.not_found")


BAD = [{"resource_class": "CUSTOM_UNKNOWN"}, {"reserved": 5}, {"step_size": 0}, {"min_unit": 9, "max_unit": 2},
       {"allocation_ratio": 0.0}, {"total": -1}, {"total": 2**31, "max_unit": 1}]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_inventory_when_it_cannot_be_then_it_is_refused(placement: Placement, bad: dict[str, Any]) -> None:
    wrong = ClassInventory(**{"resource_class": "VCPU", "total": 4, **bad})
    uuid = placement.make("one")
    assert placement.trouble("set_inventories", ProviderInventories(uuid=uuid, generation=0, inventories=(wrong,))) == (
        "invalid", "placement.inventory.invalid")


def test_inventory_when_in_use_then_it_may_shrink_but_not_go(placement: Placement) -> None:
    uuid = placement.make("one", VCPU=4, MEMORY_MB=100)
    consumer = placement.allocate(uuid, VCPU=3)
    in_use = ("conflict", "placement.inventory.inuse")
    assert placement.trouble("delete_inventory", uuid, "VCPU") == in_use
    assert placement.trouble("set_inventories", ProviderInventories(uuid=uuid)) == in_use
    placement.fill(uuid, VCPU=2)
    assert placement.used(uuid) == {"VCPU": 3}
    placement.rpc.delete_allocations(consumer)
    placement.rpc.delete_inventory(uuid, "VCPU")


def test_hosts_inventory_when_changed_then_schedulers_hear_and_the_next_report_sets_it_right(
        cloud: SmallCloud, placement: Placement) -> None:
    before = placement.rpc.get_inventories(A)
    reported(cloud)
    more = ClassInventory(resource_class="CUSTOM_LICENSE", total=5, max_unit=5)
    placement.rpc.create_class("CUSTOM_LICENSE")
    changed = tuple(one if one.resource_class != "VCPU" else ClassInventory(resource_class="VCPU", total=1, max_unit=1)
                    for one in before.inventories)
    placement.rpc.set_inventories(ProviderInventories(uuid=A, generation=before.generation,
                                                      inventories=(*changed, more)))
    assert reported(cloud) == ["a"]
    totals = {one.resource_class: one.total for one in placement.rpc.get_inventories(A).inventories}
    assert totals["VCPU"] == 1 and totals["CUSTOM_LICENSE"] == 5
    cloud.report("a", ["a"], version=2)
    totals = {one.resource_class: one.total for one in placement.rpc.get_inventories(A).inventories}
    assert totals["VCPU"] == 100 and totals["CUSTOM_LICENSE"] == 5


def test_child_of_a_host_when_it_changes_then_the_hosts_generation_says_so(cloud: SmallCloud,
                                                                           placement: Placement) -> None:
    reported(cloud)
    seen = [placement.get(A).generation]
    child = placement.make("agent", A)
    seen.append(placement.get(A).generation)
    placement.fill(child, NET_BW_EGR_KILOBIT_PER_SEC=1000)
    seen.append(placement.get(A).generation)
    consumer = placement.allocate(child, NET_BW_EGR_KILOBIT_PER_SEC=10)
    seen.append(placement.get(A).generation)
    placement.rpc.delete_allocations(consumer)
    placement.rpc.delete_provider(child)
    seen.append(placement.get(A).generation)
    assert sorted(set(seen)) == seen and set(reported(cloud)) == {"a"}


class Broken:
    """A feed without the cell's database; or a conductor that dies when it has committed."""

    def host_changed(self, host: str) -> None:
        raise errors.Unavailable("the cell's database does not answer")


def test_hosts_tree_when_schedulers_cannot_be_told_then_the_change_stands_and_the_next_sweep_tells_it(
        cloud: SmallCloud, placement: Placement) -> None:
    child = placement.make("agent", A, VGPU=1)
    feed, cloud.deps.feed = cloud.deps.feed, Broken()
    for change in (lambda: placement.fill(A, VCPU=3, MEMORY_MB=64), lambda: placement.fill(child, VGPU=2),
                   lambda: placement.allocate(child, VGPU=1), lambda: placement.rpc.set_provider_traits(
                       ProviderTraits(uuid=child, traits=("HW_NUMA_ROOT",))), lambda: placement.make("more", child)):
        known = [NodeStamp(host=one.host, node=one.node, generation=one.generation, service_version=one.service_version,
                           aggregates_version=one.aggregates_version) for one in feed.states().states]
        change()
        assert [one.host for one in feed.states(known, everything=False).states] == ["a"]


# -- traits and classes

def test_traits_when_set_then_these_and_no_others_are_there(placement: Placement) -> None:
    uuid = placement.make("one")
    assert placement.rpc.create_trait("CUSTOM_FAST") and not placement.rpc.create_trait("CUSTOM_FAST")
    wanted = ProviderTraits(uuid=uuid, generation=0, traits=("CUSTOM_FAST", "HW_CPU_X86_AVX2"))
    assert placement.rpc.set_provider_traits(wanted) == ProviderTraits(uuid=uuid, generation=1, traits=wanted.traits)
    assert placement.trouble("set_provider_traits", wanted) == CONCURRENT
    again = ProviderTraits(uuid=uuid, generation=1, traits=wanted.traits)
    assert placement.rpc.set_provider_traits(again).generation == 1  # nothing changed
    assert placement.trouble("set_provider_traits", ProviderTraits(uuid=uuid, traits=("CUSTOM_NONE",))) == (
        "invalid", "placement.trait.unknown")
    assert placement.trouble("delete_trait", "CUSTOM_FAST") == ("conflict", "placement.name.inuse")
    placement.rpc.set_provider_traits(ProviderTraits(uuid=uuid))
    placement.rpc.delete_trait("CUSTOM_FAST")
    assert placement.trouble("delete_trait", "CUSTOM_FAST") == ("not_found", "placement.name.not_found")


@pytest.mark.parametrize(("call", "arguments", "code"), [
    ("create_trait", ("HW_CPU_X86_AVX2",), "standard"), ("create_trait", ("CUSTOM_a",), "invalid"),
    ("create_trait", ("CUSTOM_" + "A" * 250,), "invalid"), ("delete_trait", ("HW_CPU_X86_AVX2",), "standard"),
    ("create_class", ("VCPU",), "standard"), ("create_class", ("GOLD",), "invalid"),
    ("delete_class", ("VCPU",), "standard"), ("rename_class", ("VCPU", "CUSTOM_X"), "standard"),
    ("rename_class", ("CUSTOM_X", "VCPU"), "standard")])
def test_names_when_they_are_standard_or_wrong_then_they_stay(placement: Placement, call: str, arguments: Any,
                                                              code: str) -> None:
    assert placement.trouble(call, *arguments) == ("invalid", f"placement.name.{code}")


def test_list_traits_when_asked_by_name_prefix_or_use_then_just_those_come(placement: Placement) -> None:
    placement.make("one", traits=("CUSTOM_USED", "STORAGE_DISK_SSD"))
    placement.rpc.create_trait("CUSTOM_FREE")
    assert placement.rpc.list_traits(TraitQuery(prefix="CUSTOM_")) == ("CUSTOM_FREE", "CUSTOM_USED")
    assert placement.rpc.list_traits(TraitQuery(names=("CUSTOM_FREE", "NONE"))) == ("CUSTOM_FREE",)
    assert "STORAGE_DISK_SSD" in placement.rpc.list_traits(TraitQuery(associated=True))
    free = placement.rpc.list_traits(TraitQuery(associated=False))
    assert "CUSTOM_FREE" in free and "STORAGE_DISK_HDD" in free and "CUSTOM_USED" not in free


def test_classes_when_made_renamed_and_deleted_then_the_list_follows(placement: Placement) -> None:
    assert placement.rpc.create_class("CUSTOM_GOLD") and not placement.rpc.create_class("CUSTOM_GOLD")
    uuid = placement.make("one", CUSTOM_GOLD=3)
    assert placement.trouble("delete_class", "CUSTOM_GOLD") == ("conflict", "placement.name.inuse")
    placement.rpc.create_class("CUSTOM_TIN")
    assert placement.trouble("rename_class", "CUSTOM_GOLD", "CUSTOM_TIN") == ("conflict", "placement.name.taken")
    placement.rpc.rename_class("CUSTOM_GOLD", "CUSTOM_SILVER")
    assert [one.resource_class for one in placement.rpc.get_inventories(uuid).inventories] == ["CUSTOM_SILVER"]
    assert placement.rpc.list_classes()[-2:] == ("CUSTOM_SILVER", "CUSTOM_TIN")
    placement.rpc.delete_class("CUSTOM_TIN")
    for call in (("delete_class", "CUSTOM_TIN"), ("rename_class", "CUSTOM_TIN", "CUSTOM_X")):
        assert placement.trouble(*call) == ("not_found", "placement.name.not_found")


def test_host_when_its_service_is_disabled_then_its_node_has_the_trait(cloud: SmallCloud,
                                                                       placement: Placement) -> None:
    close(cloud, "a", True)
    mark = "COMPUTE_STATUS_DISABLED"
    shown = placement.rpc.get_provider_traits(A)
    assert mark in shown.traits and mark not in placement.rpc.get_provider_traits(node_id("b")).traits
    assert found(placement, required=((mark,),)) == ["a"]
    assert found(placement, forbidden=(mark,)) == ["b"]
    assert mark in placement.rpc.list_traits(TraitQuery(associated=True))
    written = placement.rpc.set_provider_traits(ProviderTraits(uuid=A, traits=(*shown.traits, "HW_NUMA_ROOT")))
    assert {mark, "HW_NUMA_ROOT"} <= set(written.traits)
    close(cloud, "a", False)
    assert mark not in placement.rpc.get_provider_traits(A).traits


def close(cloud: SmallCloud, host: str, disabled: bool) -> None:
    cloud.write("cell", sa.update(services).where(services.c.host == host).values(disabled=disabled))


# -- aggregates

def test_aggregates_when_a_host_is_in_one_then_it_is_shown_and_stays(cloud: SmallCloud, placement: Placement) -> None:
    made = cloud.control.create_aggregate(NewAggregate(name="rack"))
    cloud.control.add_aggregate_host(made.id, "a")
    given = new_uuid()
    before = placement.rpc.get_provider_aggregates(A)
    assert before.aggregates == (made.uuid,)
    both = tuple(sorted((made.uuid, given)))
    after = placement.rpc.set_provider_aggregates(ProviderAggregates(uuid=A, generation=before.generation,
                                                                     aggregates=both))
    assert after.aggregates == both and after.generation == (before.generation or 0) + 1
    assert placement.trouble("set_provider_aggregates", before) == CONCURRENT
    assert placement.rpc.set_provider_aggregates(ProviderAggregates(uuid=A)).aggregates == (made.uuid,)
    cloud.control.remove_aggregate_host(made.id, "a")
    assert placement.rpc.get_provider_aggregates(A).aggregates == ()


# -- lists

def test_list_when_asked_with_conditions_then_those_come_that_meet_them_all(placement: Placement) -> None:
    rack, row = new_uuid(), new_uuid()
    big = placement.make("big", VCPU=8, DISK_GB=10, traits=("CUSTOM_A", "CUSTOM_B"), aggregates=(rack, row))
    placement.make("small", VCPU=2, traits=("CUSTOM_A",), aggregates=(rack,))
    placement.make("below", big, traits=("CUSTOM_B",))
    placement.allocate(big, VCPU=5)
    assert found(placement, name="big") == found(placement, uuid=big) == ["big"]
    assert found(placement, resources={"VCPU": 2}, in_tree=big) == ["big"]
    assert found(placement, resources={"VCPU": 2}, member_of=((rack,),)) == ["big", "small"]
    assert found(placement, resources={"VCPU": 4}, member_of=((rack,),)) == []
    assert found(placement, resources={"VCPU": 1, "DISK_GB": 1}, member_of=((rack,),)) == ["big"]
    assert found(placement, required=(("CUSTOM_A",), ("CUSTOM_B",))) == ["big"]
    assert found(placement, required=(("CUSTOM_A", "CUSTOM_B"),)) == ["big", "small", "below"]
    assert found(placement, required=(("CUSTOM_B",),), forbidden=("CUSTOM_A",)) == ["below"]
    assert found(placement, member_of=((rack,),), not_member_of=(row,)) == ["small"]
    assert found(placement, in_tree=new_uuid()) == [] == found(placement, name="none")
    assert found(placement) == ["a", "b", "big", "small", "below"]


def test_aggregates_when_no_generation_is_given_then_it_stays_but_of_a_hosts_root(placement: Placement) -> None:
    uuid, before = placement.make("one"), placement.get(A).generation
    for provider in (uuid, A):
        placement.rpc.set_provider_aggregates(ProviderAggregates(uuid=provider, aggregates=(new_uuid(),)))
    assert (placement.get(uuid).generation, placement.get(A).generation) == (0, before + 1)
    placement.rpc.set_provider_aggregates(ProviderAggregates(uuid=uuid, generation=0, aggregates=(new_uuid(),)))
    assert placement.get(uuid).generation == 1
