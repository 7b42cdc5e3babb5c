"""What is believed of the room that a host claims."""

from __future__ import annotations

import pytest

from nova.model.placement import accepted_capacity
from nova.model.placement.providers import ClassInventory


def inventory(total: int, reserved: int = 0, ratio: float = 1.0, name: str = "VCPU") -> ClassInventory:
    return ClassInventory(resource_class=name, total=total, reserved=reserved, allocation_ratio=ratio, max_unit=total)


@pytest.mark.parametrize(("claim", "beyond"), [
    ({"VCPU": 8}, ()), ({"VCPU": 9}, ("VCPU",)), ({"VCPU": 1}, ()), ({}, ()), ({"VCPU": 4, "VGPU": 99}, ())])
def test_claim_when_it_is_more_than_twice_the_mark_then_beyond(claim: dict[str, int], beyond: tuple[str, ...]) -> None:
    assert accepted_capacity.beyond({"VCPU": 4}, claim) == beyond


def test_mark_when_a_host_shrinks_grows_or_has_something_new_then_only_the_new_is_added() -> None:
    mark = accepted_capacity.marked({}, {"VCPU": 4, "DISK_GB": 0})
    assert mark == {"VCPU": 4}  # of nothing everything would be too much
    for claim in ({"VCPU": 1}, {"VCPU": 8}, {"VCPU": 400}):
        assert accepted_capacity.marked(mark, claim) == mark
    assert accepted_capacity.marked(mark, {"DISK_GB": 7}) == {"VCPU": 4, "DISK_GB": 7}


@pytest.mark.parametrize("liars", [
    [inventory(1000)], [inventory(4, ratio=250.0)], [inventory(6), inventory(994)], [inventory(1)] * 1000,
    [inventory(2000, reserved=1000)]])
def test_inventories_when_they_claim_too_much_then_the_bound_is_left_however_it_is_claimed(
        liars: list[ClassInventory]) -> None:
    left = accepted_capacity.limits({"VCPU": 4})
    believed = [accepted_capacity.within(one, left) for one in liars]
    assert accepted_capacity.claimed(liars) == {"VCPU": 1000} and accepted_capacity.claimed(believed) == {"VCPU": 8}
    assert all(one.max_unit >= 1 and one.max_unit <= 8 for one in believed if one.total)


def test_inventories_when_they_are_within_the_bound_or_have_none_then_they_stay() -> None:
    left = accepted_capacity.limits({"VCPU": 4})
    for one in (inventory(2, reserved=1, ratio=4.0), inventory(4), inventory(9, name="VGPU")):
        assert accepted_capacity.within(one, left) is one
