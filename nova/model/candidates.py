"""How a tree of providers can meet a request: the one rule for the scheduler, for claims, and for Placement's list of
allocation candidates.

Source: the public reference of the Placement API, and its documents on nested providers and request groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nova.model.providers import Amount, ProviderState, RequestGroup, ResourceRequest

Tree = Sequence[ProviderState]  # a root, and what is below it in any order


class Solution(NamedTuple):
    """``amounts``: provider id -> class -> amount; ``mappings``: suffix -> ids of the providers that meet the group."""

    amounts: Mapping[int, Mapping[str, int]]
    mappings: Mapping[str, tuple[int, ...]]


class _Slot(NamedTuple):
    """What one provider must give: a named group, or one class of the unnamed one."""

    group: RequestGroup
    resources: Mapping[str, int]


def first(tree: Tree, request: ResourceRequest) -> Solution | None:
    """A way to meet the request; None when there is none."""
    return next(solutions(tree, request), None)


def solutions(tree: Tree, request: ResourceRequest) -> Iterator[Solution]:
    """All ways to meet the request, each once, those of providers named first coming first."""
    if not _root_fits(tree[0], request):
        return
    slots = _slots(request)
    fitting = [[one for one in tree if _may(one, tree[0], slot)] for slot in slots]
    if all(fitting) and all(_in_tree(tree, group) for group in request.groups):
        yield from _assign(tree, request, slots, fitting)


def why_not(tree: Tree, request: ResourceRequest) -> str:
    """Why there is no solution, in a few words without a name of any provider."""
    root = tree[0]
    if not _root_fits(root, request):
        return _root_lacks(root, request)
    for slot in _slots(request):
        if not any(_may(one, root, slot) for one in tree):
            return _lacks(tree, root, slot)
    return "its parts do not fit together"


# -- parts of a request

def _slots(request: ResourceRequest) -> list[_Slot]:
    """Named groups first: they have the least choice."""
    named = [_Slot(group, group.resources) for group in request.groups if group.suffix]
    return named + [_Slot(group, {name: amount}) for group in request.groups if not group.suffix
                    for name, amount in group.resources.items() if amount]


def _root_fits(root: ProviderState, request: ResourceRequest) -> bool:
    have = set(root.traits)
    return have.issuperset(request.root_required) and have.isdisjoint(request.root_forbidden)


def _root_lacks(root: ProviderState, request: ResourceRequest) -> str:
    missing = sorted(set(request.root_required) - set(root.traits))
    return f"no trait {', '.join(missing)}" if missing else (
        f"trait {', '.join(sorted(set(request.root_forbidden) & set(root.traits)))} is forbidden")


def _in_tree(tree: Tree, group: RequestGroup) -> bool:
    return group.in_tree is None or any(one.uuid == group.in_tree for one in tree)


# -- one provider for one part

def _may(one: ProviderState, root: ProviderState, slot: _Slot) -> bool:
    """Whether this provider alone could be the slot's. Of the unnamed group, what is required may be on another."""
    group = slot.group
    return (not any(trait in group.forbidden for trait in one.traits)
            and (not group.suffix or _has_traits(set(one.traits), group))
            and _member(one, root, group)
            and all(_room(one.amounts.get(name), amount) for name, amount in slot.resources.items()))


def _has_traits(have: set[str], group: RequestGroup) -> bool:
    return all(not have.isdisjoint(any_of) for any_of in group.required)


def _member(one: ProviderState, root: ProviderState, group: RequestGroup) -> bool:
    """A tree whose root is in an aggregate is so as a whole for the unnamed group; of a named one, each for itself."""
    mine = {*one.aggregates, *(() if group.suffix else root.aggregates)}
    return all(not mine.isdisjoint(any_of) for any_of in group.member_of) and mine.isdisjoint(group.not_member_of)


def _room(have: Amount | None, amount: int) -> bool:
    return (have is not None and have.used + amount <= have.capacity
            and have.min_unit <= amount <= have.max_unit and amount % have.step_size == 0)


# -- providers for all parts

def _assign(tree: Tree, request: ResourceRequest, slots: Sequence[_Slot],
            fitting: Sequence[Sequence[ProviderState]]) -> Iterator[Solution]:
    chosen: list[ProviderState] = []
    taken: Counter[tuple[int, str]] = Counter()

    def at(place: int) -> Iterator[Solution]:
        if place == len(slots):
            if _together(tree, request, slots, chosen):
                yield _solution(slots, chosen)
            return
        for one in fitting[place]:
            if not _has_room(one, slots[place], taken):
                continue
            wanted = Counter({(one.id, name): amount for name, amount in slots[place].resources.items()})
            taken.update(wanted)
            chosen.append(one)
            yield from at(place + 1)
            chosen.pop()
            taken.subtract(wanted)
    yield from at(0)


def _has_room(one: ProviderState, slot: _Slot, taken: Mapping[tuple[int, str], int]) -> bool:
    """Beside what other parts of the same request take of it."""
    return all(_room(one.amounts.get(name), amount + taken[one.id, name]) for name, amount in slot.resources.items())


def _together(tree: Tree, request: ResourceRequest, slots: Sequence[_Slot], chosen: Sequence[ProviderState]) -> bool:
    pairs = list(zip(slots, chosen, strict=True))
    if request.group_policy == "isolate":
        named = [one.id for slot, one in pairs if slot.group.suffix and slot.resources]
        if len(named) != len(set(named)):
            return False
    for group in request.groups:
        if not group.suffix:
            givers = {trait for slot, one in pairs if slot.group is group for trait in one.traits}
            if not _has_traits(givers if group.resources else givers | set(tree[0].traits), group):
                return False
    return all(_same_subtree(tree, [one for slot, one in pairs if slot.group.suffix in suffixes])
               for suffixes in request.same_subtree)


def _same_subtree(tree: Tree, chosen: Sequence[ProviderState]) -> bool:
    """One of them is an ancestor of all the others."""
    parents = {one.id: one.parent_id for one in tree}
    return not chosen or any(all(top.id in _line(parents, one.id) for one in chosen) for top in chosen)


def _line(parents: Mapping[int, int | None], key: int | None) -> set[int]:
    """The provider and all above it."""
    found: set[int] = set()
    while key is not None and key not in found:
        found.add(key)
        key = parents.get(key)
    return found


def _solution(slots: Sequence[_Slot], chosen: Sequence[ProviderState]) -> Solution:
    amounts: dict[int, Counter[str]] = {}
    mappings: dict[str, dict[int, None]] = {}
    for slot, one in zip(slots, chosen, strict=True):
        mappings.setdefault(slot.group.suffix, {})[one.id] = None
        if slot.resources:
            amounts.setdefault(one.id, Counter()).update(slot.resources)
    return Solution(amounts, {suffix: tuple(ids) for suffix, ids in mappings.items()})


# -- words

def _lacks(tree: Tree, root: ProviderState, slot: _Slot) -> str:
    group = slot.group
    able = [one for one in tree if _member(one, root, group)]
    if not able:
        return "not in an aggregate that is asked for"
    for name, amount in slot.resources.items():
        most = max((min(have.capacity - have.used, have.max_unit) for one in able
                    if (have := one.amounts.get(name)) is not None), default=None)
        if most is None:
            return f"no {name}"
        if most < amount:
            return f"not enough {name}"
    wanted = sorted({"|".join(any_of) for any_of in group.required})
    return f"no provider with {', '.join([*wanted, *slot.resources])}" + (
        f" without {', '.join(sorted(group.forbidden))}" if group.forbidden else "")


__all__ = ["Solution", "Tree", "first", "solutions", "why_not"]
