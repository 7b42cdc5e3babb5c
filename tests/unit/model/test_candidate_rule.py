"""The rule by which trees of providers meet requests, against one that tries everything and one that checks by hand."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from nova.model.placement import candidates
from nova.model.placement.candidates import ParsedRequest, Sharing, Solution
from nova.model.placement.providers import Amount, ProviderState, RequestGroup, ResourceRequest

CLASSES, TRAITS, AGGREGATES = ("VCPU", "MEMORY_MB", "VGPU"), ("T0", "T1", "T2"), ("g0", "g1")


def provider(key: int, parent: int | None = None, **fields: Any) -> ProviderState:
    amounts = {name: one if isinstance(one, Amount) else Amount(capacity=one, max_unit=one)
               for name, one in fields.pop("amounts", {}).items()}
    return ProviderState(id=key, uuid=f"u{key}", parent_id=parent, amounts=amounts, **fields)


def group(suffix: str = "", **fields: Any) -> RequestGroup:
    return RequestGroup(suffix=suffix, **fields)


def asks(*groups: RequestGroup, **fields: Any) -> ResourceRequest:
    return ResourceRequest(groups=groups, **fields)


def shown(found: Solution) -> Any:
    """A solution as a value that can be in a set."""
    return (frozenset((key, name, amount) for key, given in found.amounts.items() for name, amount in given.items()),
            frozenset((suffix, frozenset(ids)) for suffix, ids in found.mappings.items()))


# -- everything tried, and checked as the API's reference says it

def brute(tree: list[ProviderState], request: ResourceRequest, shared: list[Sharing]) -> Iterator[Solution]:
    every = [*tree, *(one.provider for one in shared)]
    parts = [(one, one.resources) for one in request.groups if one.suffix]
    parts += [(one, {name: amount}) for one in request.groups if not one.suffix
              for name, amount in one.resources.items()]
    for chosen in itertools.product(every, repeat=len(parts)):
        pairs = [(part, wanted, one) for (part, wanted), one in zip(parts, chosen, strict=True)]
        if right(tree, request, shared, pairs):
            amounts: dict[int, Counter[str]] = {}
            mappings: dict[str, list[int]] = {}
            for part, wanted, one in pairs:
                mappings.setdefault(part.suffix, []).append(one.id)
                if wanted:
                    amounts.setdefault(one.id, Counter()).update(wanted)
            yield Solution(amounts, {suffix: tuple(dict.fromkeys(ids)) for suffix, ids in mappings.items()})


def right(tree: list[ProviderState], request: ResourceRequest, shared: list[Sharing], pairs: list[Any]) -> bool:
    root, outside = tree[0], {one.provider.id: one for one in shared}
    if not set(request.root_required) <= set(root.traits) or set(request.root_forbidden) & set(root.traits):
        return False
    total: Counter[tuple[int, str]] = Counter()
    for _part, wanted, one in pairs:
        for name, amount in wanted.items():
            total[one.id, name] += amount
            have = one.amounts.get(name)
            if have is None or amount < have.min_unit or amount % have.step_size:
                return False
            if have.used + total[one.id, name] > have.capacity or total[one.id, name] > have.max_unit:
                return False
    for part, wanted, one in pairs:
        home = outside[one.id].root if one.id in outside else root
        uuids = outside[one.id].tree if one.id in outside else {each.uuid for each in tree}
        mine = set(one.aggregates) if part.suffix else {*one.aggregates, *home.aggregates}
        if set(part.forbidden) & set(one.traits) or set(part.not_member_of) & mine:
            return False
        if any(not mine & set(any_of) for any_of in part.member_of) or part.in_tree not in (None, *uuids):
            return False
        if part.suffix and any(not set(one.traits) & set(any_of) for any_of in part.required):
            return False
        if not wanted and one.id in outside:
            return False
    for part in request.groups:
        have = {trait for each, _wanted, one in pairs if each is part for trait in one.traits}
        if not part.suffix and any(not have & set(any_of) for any_of in part.required):
            return False
    alone = [one.id for part, _wanted, one in pairs if part.suffix]
    if request.group_policy == "isolate" and len(alone) != len(set(alone)):
        return False
    return all(one_subtree(tree, [one for part, _wanted, one in pairs if part.suffix in suffixes])
               for suffixes in request.same_subtree)


def one_subtree(tree: list[ProviderState], chosen: list[ProviderState]) -> bool:
    parents = {one.id: one.parent_id for one in tree}

    def above(key: int | None) -> list[int]:
        return [] if key is None else [key, *above(parents.get(key))]
    return not chosen or any(all(top.id in above(one.id) for one in chosen) for top in chosen)


# -- made-up trees and requests

def some(chooser: random.Random, of: tuple[str, ...], most: int) -> tuple[str, ...]:
    return tuple(sorted(chooser.sample(of, chooser.randint(0, min(most, len(of))))))


def a_provider(chooser: random.Random, key: int, parent: int | None) -> ProviderState:
    amounts = {}
    for name in chooser.sample(CLASSES, chooser.randint(1, 3)):
        amounts[name] = Amount(capacity=chooser.randint(0, 8), used=chooser.choice([0, 0, 1]),
                               max_unit=chooser.randint(1, 8),
                               min_unit=chooser.choice([1] * 7 + [2]), step_size=chooser.choice([1] * 7 + [2]))
    return provider(key, parent, amounts=amounts, traits=some(chooser, TRAITS, 2),
                    aggregates=some(chooser, AGGREGATES, 1))


def a_tree(chooser: random.Random, first: int = 1) -> list[ProviderState]:
    tree = [a_provider(chooser, first, None)]
    for key in range(first + 1, first + chooser.randint(1, 4)):
        tree.append(a_provider(chooser, key, chooser.choice(tree).id))
    return tree


def a_group(chooser: random.Random, suffix: str) -> RequestGroup:
    names = some(chooser, CLASSES, 2) or ("VCPU",)
    rare = chooser.random() < 0.4
    return group(suffix, resources={name: chooser.choice([1, 1, 2]) for name in names},
                 required=tuple(chooser.choice([(one,), (one, "T0")]) for one in some(chooser, TRAITS, 1) if rare),
                 forbidden=some(chooser, TRAITS, 1) if rare else (),
                 member_of=((chooser.choice(AGGREGATES),),) if chooser.random() < 0.15 else (),
                 not_member_of=some(chooser, AGGREGATES, 1) if chooser.random() < 0.1 else (),
                 in_tree=chooser.choice(["u2", "u50"]) if chooser.random() < 0.1 else None)


def a_request(chooser: random.Random) -> ResourceRequest:
    suffixes = ("", "1", "2", "_N")[:chooser.randint(1, 4)]
    groups = [a_group(chooser, suffix) for suffix in suffixes]
    named = [suffix for suffix in suffixes if suffix]
    together: tuple[tuple[str, ...], ...] = ()
    if len(named) > 1 and chooser.random() < 0.3:
        together = (tuple(named[:2]),)
        if chooser.random() < 0.4:
            groups[1] = group(named[0], required=groups[1].required)
    if len(named) > 1 and chooser.random() < 0.3:
        groups[-1] = group(named[-1], resources=groups[1].resources, required=groups[1].required)  # twins
    return asks(*groups, group_policy=chooser.choice(["none", "isolate"]), same_subtree=together,
                root_required=some(chooser, TRAITS, 1) if chooser.random() < 0.15 else (),
                root_forbidden=some(chooser, TRAITS, 1) if chooser.random() < 0.1 else ())


@pytest.mark.parametrize("seed", range(8))
def test_solutions_when_trees_and_requests_are_made_up_then_they_are_all_there_are(seed: int) -> None:
    chooser, met = random.Random(seed), 0
    for _ in range(150):
        tree, other = a_tree(chooser), a_tree(chooser, 50)
        sharing = [Sharing(one, other[0], frozenset(each.uuid for each in other)) for one in other
                   if chooser.random() < 0.4]
        shared, request = candidates.shared_with(tree, sharing), a_request(chooser)
        found = [shown(one) for one in candidates.solutions(tree, request, shared)]
        assert len(found) == len(set(found)), request
        assert set(found) == {shown(one) for one in brute(tree, request, shared)}, (tree, shared, request)
        alone = {shown(one) for one in brute(tree, request, [])}
        first = candidates.first(tree, request)
        assert (first is None) == (not alone) and (first is None or shown(first) in alone), (tree, request)
        met += bool(found)
        for one in tree:  # as a tree of its own: there is a shorter way
            root = provider(one.id, amounts=one.amounts, traits=one.traits, aggregates=one.aggregates)
            alone, first = {shown(each) for each in brute([root], request, [])}, candidates.first([root], request)
            assert alone == ({shown(first)} if first else set()), (root, request)
    assert met > 20  # it is no proof when nothing fits


# -- by example

HOST = [provider(1, amounts={"VCPU": 8, "MEMORY_MB": 1024}, traits=("T0",), aggregates=("g0",)),
        provider(2, 1, amounts={"VGPU": 1}, traits=("T1",)), provider(3, 1, amounts={"VGPU": 1}, traits=("T2",))]


def test_solutions_when_groups_are_alike_then_each_way_to_give_them_is_one() -> None:
    request = asks(group("1", resources={"VGPU": 1}), group("2", resources={"VGPU": 1}), group_policy="isolate")
    assert [one.mappings for one in candidates.solutions(HOST, request)] == [
        {"1": (2,), "2": (3,)}, {"1": (3,), "2": (2,)}]


def test_first_when_more_devices_are_asked_for_than_there_are_then_it_does_not_search_for_ever() -> None:
    tree = [provider(1), *(provider(key, 1, amounts={"VGPU": 1}) for key in range(2, 22))]
    many = [group(str(number), resources={"VGPU": 1}) for number in range(21)]
    assert candidates.first(tree, asks(*many)) is None
    assert candidates.first(tree, asks(*many, group_policy="isolate")) is None
    found = candidates.first(tree, asks(*many[1:], group_policy="isolate"))
    assert found is not None and len(found.amounts) == 20


def test_solutions_when_there_are_millions_then_the_search_ends() -> None:
    tree = [provider(1), *(provider(key, 1, amounts={"VGPU": 1}) for key in range(2, 14))]
    request = asks(*[group(str(number), resources={"VGPU": 1}) for number in range(12)])
    assert 0 < sum(1 for _ in ParsedRequest(request, steps=5000).solutions(tree)) < 5000


def test_solutions_when_another_tree_shares_in_an_aggregate_then_it_gives_too() -> None:
    store = provider(9, amounts={"DISK_GB": 100}, aggregates=("g0",))
    sharing = [Sharing(store, store, frozenset({"u9"}))]
    request = asks(group(resources={"VCPU": 1, "DISK_GB": 5}))
    assert candidates.first(HOST, request) is None
    [found] = candidates.solutions(HOST, request, candidates.shared_with(HOST, sharing))
    assert found.amounts == {1: {"VCPU": 1}, 9: {"DISK_GB": 5}}
    assert candidates.shared_with([provider(5)], sharing) == []


WHY = [
    (asks(group(resources={"VCPU": 9})), "not enough VCPU"),
    (asks(group(resources={"PGPU": 1})), "no PGPU"),
    (asks(group(resources={"VCPU": 1}, member_of=(("g1",),))), "not in a requested aggregate"),
    (asks(group(resources={"VCPU": 1}), root_required=("T9",)), "no trait T9"),
    (asks(group(resources={"VCPU": 1}), root_forbidden=("T0",)), "trait T0 is forbidden"),
    (asks(group(member_of=(("g1",),)), group("1", resources={"VCPU": 1})), "not in a requested aggregate"),
    (asks(group(required=(("T1", "T2"),)), group("1", resources={"VCPU": 1})), "no trait T1|T2"),
    (asks(group("1", resources={"VGPU": 1}, required=(("T0",),))), "no provider with T0, VGPU"),
    (asks(group("1", resources={"VCPU": 1}, forbidden=("T0",))), "no provider with VCPU without T0"),
    (asks(*[group(str(one), resources={"VGPU": 1}) for one in range(3)]), "no combination of its providers fits"),
    (asks(group(resources={"VCPU": 1}, required=(("T1",),))), "no combination of its providers fits")]


@pytest.mark.parametrize(("request_", "words"), WHY, ids=[words for _, words in WHY])
def test_why_not_when_nothing_fits_then_it_names_what_is_missing(request_: ResourceRequest, words: str) -> None:
    assert candidates.first(HOST, request_) is None
    assert candidates.why_not(HOST, request_) == words
