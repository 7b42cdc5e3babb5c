"""Allocation candidates: of every tree that can, of what is shared, and cheap where a few are enough."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from nova import errors
from nova.model.host.aggregates import NewAggregate
from nova.model.placement.providers import CandidateQuery, Candidates, RequestGroup, ResourceRequest
from tests.fakes.placement import Placement, allocation_write
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud, node_id


@pytest.fixture
def placement(cloud: SmallCloud) -> Placement:
    return Placement(cloud)


def ask(placement: Placement, *groups: RequestGroup, limit: int | None = None, nested: bool = True,
        **fields: Any) -> Candidates:
    request = ResourceRequest(groups=groups, **fields)
    return placement.rpc.list_candidates(CandidateQuery(request=request, limit=limit, nested=nested))


def named(placement: Placement, found: Candidates) -> list[dict[str, dict[str, int]]]:
    """Candidates by the names of their providers."""
    return [{placement.get(each.provider_uuid).name: dict(each.resources) for each in one.allocations}
            for one in found.candidates]


def test_candidates_when_hosts_have_room_then_each_is_one_with_all_it_has_in_the_summary(
        cloud: SmallCloud, placement: Placement) -> None:
    found = ask(placement, RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 64}))
    assert named(placement, found) == [{"a": {"VCPU": 1, "MEMORY_MB": 64}}, {"b": {"VCPU": 1, "MEMORY_MB": 64}}]
    assert found.candidates[0].mappings == {"": (node_id("a"),)}
    assert found.candidates[0].allocations[0].mappings == ("",)
    [a, b] = found.summaries
    assert (a.uuid, a.root_uuid, a.parent_uuid, set(a.amounts)) == (
        node_id("a"), node_id("a"), None, {"VCPU", "MEMORY_MB", "DISK_GB"})
    assert b.amounts["VCPU"].capacity == 400 and b.amounts["VCPU"].used == 0
    assert named(placement, ask(placement, RequestGroup(resources={"VCPU": 1}), limit=1)) == [{"a": {"VCPU": 1}}]
    assert ask(placement, RequestGroup(resources={"VCPU": 101})) == Candidates()
    assert ask(placement, RequestGroup(resources={"VGPU": 1})) == Candidates()


@pytest.mark.parametrize("asked", [
    {"groups": (RequestGroup(resources={"CUSTOM_NONE": 1}),)},
    {"groups": (RequestGroup(resources={"VCPU": 1}, required=(("CUSTOM_NONE", "HW_CPU_X86_AVX2"),)),)},
    {"groups": (RequestGroup(resources={"VCPU": 1}, forbidden=("CUSTOM_NONE",)),)},
    {"groups": (RequestGroup(resources={"VCPU": 1}),), "root_required": ("CUSTOM_NONE",)}])
def test_candidates_when_nobody_knows_a_name_then_it_is_a_mistake_that_is_told(placement: Placement, asked) -> None:
    with pytest.raises(errors.Invalid, match="CUSTOM_NONE"):
        placement.rpc.list_candidates(CandidateQuery(request=ResourceRequest(**asked)))


def test_candidates_when_what_is_left_is_too_little_then_there_are_none(placement: Placement) -> None:
    one, two = placement.make("one", VGPU=2), placement.make("two", VGPU=2)
    placement.rpc.set_allocations((allocation_write(new_uuid(), {one: {"VGPU": 1}, two: {"VGPU": 2}}),))
    for limit in (None, 5):
        assert named(placement, ask(placement, RequestGroup(resources={"VGPU": 1}), limit=limit)) == [
            {"one": {"VGPU": 1}}]
        assert named(placement, ask(placement, RequestGroup(resources={"VGPU": 2}), limit=limit)) == []


def test_candidates_when_trees_are_nested_then_groups_choose_their_providers(placement: Placement) -> None:
    root = placement.make("root", VCPU=8)
    for number in (1, 2):
        placement.make(f"nic{number}", root, traits=(f"CUSTOM_NET{number}",), SRIOV_NET_VF=4)
    vcpu = RequestGroup(resources={"VCPU": 1})
    vf = {"SRIOV_NET_VF": 1}
    found = ask(placement, vcpu, RequestGroup(suffix="_P", resources=vf, required=(("CUSTOM_NET2",),)))
    assert named(placement, found) == [{"nic2": vf, "root": {"VCPU": 1}}]
    assert len(found.summaries) == 3
    assert {placement.get(uuid).name for uuid in found.candidates[0].mappings["_P"]} == {"nic2"}
    two = [RequestGroup(suffix=suffix, resources=vf) for suffix in ("1", "2")]
    assert len(ask(placement, vcpu, *two).candidates) == 4
    assert len(ask(placement, vcpu, *two, group_policy="isolate").candidates) == 2
    assert ask(placement, vcpu, RequestGroup(suffix="1", resources=vf), nested=False).candidates == ()
    assert len(ask(placement, RequestGroup(resources={"VCPU": 8}), nested=False).summaries) == 3  # a, b and the root


def test_candidates_when_not_nested_then_they_are_of_one_provider_of_a_tree_be_it_the_root_or_not(
        placement: Placement) -> None:
    rack = new_uuid()
    root = placement.make("root", aggregates=(rack,), MEMORY_MB=64)
    nics = [placement.make(f"nic{number}", root, SRIOV_NET_VF=4, VGPU=1) for number in (1, 2)]
    vf, gpu = {"SRIOV_NET_VF": 1}, {"VGPU": 1}
    found = ask(placement, RequestGroup(resources={**vf, **gpu}), nested=False)
    assert named(placement, found) == [{"nic1": {**vf, **gpu}}, {"nic2": {**vf, **gpu}}]
    assert {one.uuid for one in found.summaries} == set(nics)
    assert len(ask(placement, RequestGroup(resources=vf, member_of=((rack,),)), nested=False).candidates) == 2
    assert len(ask(placement, RequestGroup(resources=vf), nested=False, limit=1).candidates) == 1
    for groups in ([RequestGroup(resources={"MEMORY_MB": 1, **vf})],
                   [RequestGroup(suffix="1", resources={"VGPU": 1}), RequestGroup(suffix="2", resources={"VGPU": 1})]):
        assert ask(placement, *groups, nested=False).candidates == ()


def test_candidates_when_not_nested_then_a_tree_that_shares_gives_by_one_provider_too(placement: Placement) -> None:
    rack, share = new_uuid(), ("MISC_SHARES_VIA_AGGREGATE",)
    near = placement.make("near", aggregates=(rack,))
    placement.make("cpus", near, VCPU=4)
    store = placement.make("store")
    placement.make("disks", store, traits=share, aggregates=(rack,), VGPU=100)
    placement.make("lines", store, traits=share, aggregates=(rack,), FPGA=100)
    cpu, gpu = {"VCPU": 1}, {"VGPU": 5}
    both = RequestGroup(resources={**cpu, **gpu}, in_tree=None)
    assert {"cpus": cpu, "disks": gpu} in named(placement, ask(placement, both, nested=False))
    three = RequestGroup(resources={**cpu, **gpu, "FPGA": 1})
    assert len(ask(placement, three).candidates) == 1
    assert ask(placement, three, nested=False).candidates == ()


def test_candidates_when_a_subtree_is_asked_for_then_other_combinations_are_left_out(placement: Placement) -> None:
    root = placement.make("root", VCPU=8)
    for number in (1, 2):
        cell = placement.make(f"cell{number}", root, traits=("HW_NUMA_ROOT",), MEMORY_MB=100)
        placement.make(f"fpga{number}", cell, FPGA=1)
    groups = (RequestGroup(suffix="_M", resources={"MEMORY_MB": 10}), RequestGroup(suffix="_F", resources={"FPGA": 1}))
    assert len(ask(placement, *groups).candidates) == 4
    found = ask(placement, *groups, same_subtree=(("_M", "_F"),))
    assert [sorted(one) for one in named(placement, found)] == [["cell1", "fpga1"], ["cell2", "fpga2"]]
    bare = RequestGroup(suffix="_N", required=(("HW_NUMA_ROOT",),))
    found = ask(placement, RequestGroup(suffix="_F", resources={"FPGA": 1}), bare, same_subtree=(("_N", "_F"),))
    assert [sorted(one) for one in named(placement, found)] == [["fpga1"], ["fpga2"]]
    assert [placement.get(one.mappings["_N"][0]).name for one in found.candidates] == ["cell1", "cell2"]


def test_candidates_when_a_provider_shares_in_an_aggregate_then_it_gives_to_its_trees(placement: Placement) -> None:
    rack = new_uuid()
    near = placement.make("near", aggregates=(rack,), VCPU=4)
    placement.make("far", VCPU=4)
    placement.rpc.create_class("CUSTOM_STORE")
    placement.make("store", traits=("MISC_SHARES_VIA_AGGREGATE",), aggregates=(rack,), CUSTOM_STORE=100)
    found = ask(placement, RequestGroup(resources={"VCPU": 1, "CUSTOM_STORE": 5}))
    assert named(placement, found) == [{"near": {"VCPU": 1}, "store": {"CUSTOM_STORE": 5}}]
    assert {one.root_uuid for one in found.summaries} == {near, *(one.provider_uuid for one in
                                                                  found.candidates[0].allocations)}
    assert named(placement, ask(placement, RequestGroup(resources={"CUSTOM_STORE": 5}))) == [
        {"store": {"CUSTOM_STORE": 5}}]


def test_candidates_when_a_host_is_in_an_aggregate_then_it_is_a_member(cloud: SmallCloud,
                                                                      placement: Placement) -> None:
    made = cloud.control.create_aggregate(NewAggregate(name="rack"))
    cloud.control.add_aggregate_host(made.id, "b")
    vcpu = {"VCPU": 1}
    assert named(placement, ask(placement, RequestGroup(resources=vcpu, member_of=((made.uuid,),)))) == [{"b": vcpu}]
    assert named(placement, ask(placement, RequestGroup(resources=vcpu, not_member_of=(made.uuid,)))) == [{"a": vcpu}]
    assert named(placement, ask(placement, RequestGroup(resources=vcpu, in_tree=node_id("b")))) == [{"b": vcpu}]


def test_candidates_when_the_root_must_be_so_then_others_are_left_out(placement: Placement) -> None:
    one = placement.make("one", traits=("CUSTOM_GOOD",), VGPU=1)
    placement.make("below", one, traits=("CUSTOM_BAD",), VGPU=1)
    placement.make("two", traits=("CUSTOM_GOOD", "CUSTOM_BAD"), VGPU=1)
    gpu = RequestGroup(resources={"VGPU": 1})
    found = ask(placement, gpu, root_required=("CUSTOM_GOOD",), root_forbidden=("CUSTOM_BAD",))
    assert named(placement, found) == [{"one": {"VGPU": 1}}, {"below": {"VGPU": 1}}]
    either = RequestGroup(resources={"VGPU": 1}, required=(("CUSTOM_BAD",),))
    assert named(placement, ask(placement, either)) == [{"below": {"VGPU": 1}}, {"two": {"VGPU": 1}}]


def test_candidates_when_there_are_many_hosts_then_they_cost_no_more_statements(cloud: SmallCloud,
                                                                               placement: Placement) -> None:
    asked: list[str] = []
    for number in range(40):
        placement.make(f"gpu{number:02}", VGPU=1)
    event.listen(cloud.api.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    for limit in (2, None):
        asked.clear()
        found = ask(placement, RequestGroup(resources={"VGPU": 1}), limit=limit)
        assert len(found.candidates) == len(found.summaries) == (limit or 40)
        assert len(asked) == 6  # sharing ones, roots, providers, amounts, traits, aggregates
