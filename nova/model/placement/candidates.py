"""Match of a resource request with a tree of providers: the one rule for the scheduler, for claims, and for Placement's
list of allocation candidates.

Source: the public reference of the Placement API, and its documents on nested providers and request groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nova.model.placement.providers import ProviderState, RequestGroup, ResourceRequest

Tree = Sequence[ProviderState]  # a root, followed by its descendants in any order

STEPS = 200_000  # limit of steps to find the solutions in one tree: a fraction of a second


class Solution(NamedTuple):
    """A way to meet a request. ``amounts``: provider id -> class -> amount; ``mappings``: suffix -> ids of the
    providers that meet the group."""

    amounts: Mapping[int, Mapping[str, int]]
    mappings: Mapping[str, tuple[int, ...]]


class Sharing(NamedTuple):
    """A provider that shares its resources with the trees of its aggregates. ``root`` and ``tree`` (uuids) are the
    provider's own."""

    provider: ProviderState
    root: ProviderState
    tree: frozenset[str]


class _Slot(NamedTuple):
    """Resources that one provider must supply: a named group, or one class of the unnamed group. ``twin``: the index of
    an earlier, identical slot; -1 for none."""

    group: RequestGroup
    resources: Mapping[str, int]
    twin: int = -1


class _Place(NamedTuple):
    """A provider that may meet a slot. ``aggregates``: of its root; ``tree``: the uuids of its tree."""

    one: ProviderState
    aggregates: tuple[str, ...]
    tree: Collection[str]
    local: bool = True


def first(tree: Tree, request: ResourceRequest) -> Solution | None:
    """Return one way to meet the request; None if there is none."""
    return ParsedRequest(request).first(tree)


def solutions(tree: Tree, request: ResourceRequest, shared: Sequence[Sharing] = ()) -> Iterator[Solution]:
    """Yield all ways to meet the request, each once, in the order of the tree's providers."""
    return ParsedRequest(request).solutions(tree, shared)


def why_not(tree: Tree, request: ResourceRequest) -> str:
    """Return the reason why the tree has no solution, as a short text without names of providers."""
    return ParsedRequest(request).why_not(tree)


def shared_with(tree: Tree, sharing: Iterable[Sharing]) -> list[Sharing]:
    """Return the sharing providers for this tree: those with a provider of the tree in one of their aggregates."""
    mine = {one.id for one in tree}
    members = {uuid for one in tree for uuid in one.aggregates}
    return [one for one in sharing if one.provider.id not in mine and not members.isdisjoint(one.provider.aggregates)]


class ParsedRequest:
    """A request, parsed once for many trees."""

    def __init__(self, request: ResourceRequest, steps: int = STEPS) -> None:
        self.request, self.steps = request, steps
        self.slots = _slots(request)
        wanted = dict.fromkeys(name for slot in self.slots for name in slot.resources)
        self._sums = [(name, sum(parts), parts) for name in wanted
                      if (parts := [slot.resources[name] for slot in self.slots if name in slot.resources])]
        self._choosy = any(slot.group.required or slot.group.forbidden or slot.group.member_of
                           or slot.group.not_member_of or slot.group.in_tree for slot in self.slots)
        self._alone = [number for number, slot in enumerate(self.slots) if slot.group.suffix] if (
            request.group_policy == "isolate") else []
        self._bare = [group for group in request.groups if not group.suffix and not any(group.resources.values())]
        self._spread = [group for group in request.groups if not group.suffix and group.required
                        and group not in self._bare]

    def first(self, tree: Tree) -> Solution | None:
        """Return one way to meet the request; None if there is none."""
        if len(tree) == 1:
            return self._from_one(tree[0])
        return next(self._search(tree, (), True), None)

    def _from_one(self, one: ProviderState) -> Solution | None:
        """Return the only possible solution of a tree with one provider, without a search. Most hosts of most clouds
        are such."""
        for name, total, parts in self._sums:
            have = one.amounts.get(name)
            if have is None or not have.has_room(total) or len(parts) > 1 and not all(map(have.allows, parts)):
                return None
        if len(self._alone) > 1 or not self._root_fits(one):
            return None
        if self._choosy:
            place = _Place(one, one.aggregates, (one.uuid,))
            if not all(_may(place, slot) for slot in self.slots):
                return None
            have_traits = set(one.traits)
            if not all(_has_traits(have_traits, group) for group in self._spread):
                return None
        return Solution({one.id: {name: total for name, total, _ in self._sums}} if self._sums else {},
                        {slot.group.suffix: (one.id,) for slot in self.slots})

    def solutions(self, tree: Tree, shared: Sequence[Sharing] = (), only: ProviderState | None = None,
                  ) -> Iterator[Solution]:
        """Yield all ways to meet the request, each once; the steps are limited, so later ones may be missing. ``only``:
        use no other provider of the tree."""
        return self._search(tree, shared, False, only)

    def why_not(self, tree: Tree) -> str:
        """Return the reason why the tree has no solution, as a short text without names of providers."""
        if not self._root_fits(tree[0]):
            return self._root_lacks(tree[0])
        places = _places(tree, ())
        for slot in self.slots:
            if not any(_may(place, slot) for place in places):
                return _lacks(places, slot)
        have = {trait for place in places for trait in place.one.traits}
        for group in self.request.groups:
            missing = [" or ".join(any_of) for any_of in group.required if have.isdisjoint(any_of)]
            if missing:
                return f"no trait {', '.join(missing)}"
        return "no combination of its providers fits"

    def _search(self, tree: Tree, shared: Sequence[Sharing], one_is_enough: bool, only: ProviderState | None = None,
                ) -> Iterator[Solution]:
        if not self._root_fits(tree[0]):
            return
        places = [place for place in _places(tree, shared) if only is None or not place.local or place.one is only]
        fitting: list[list[ProviderState]] = []
        for slot in self.slots:
            able = fitting[slot.twin] if slot.twin >= 0 else [place.one for place in places if _may(place, slot)]
            if not able:
                return
            fitting.append(able)
        if self._can_be(places, fitting):
            yield from _Search(self, tree, fitting, one_is_enough).run()

    def _can_be(self, places: Sequence[_Place], fitting: Sequence[Sequence[ProviderState]]) -> bool:
        """Return False if the sums already show that a search cannot succeed."""
        for name, total, parts in self._sums:
            if len(parts) > 1 and total > sum(max(0, have.capacity - have.used) for place in places
                                              if (have := place.one.amounts.get(name)) is not None):
                return False
        if len(self._alone) > 1 and len({one.id for at in self._alone for one in fitting[at]}) < len(self._alone):
            return False
        for group in self._spread:
            able = {trait for slot, ones in zip(self.slots, fitting, strict=True) if slot.group is group
                    for one in ones for trait in one.traits}
            if not _has_traits(able, group):
                return False
        return True

    def _root_fits(self, root: ProviderState) -> bool:
        """Return whether the root meets the requirements on it, including those of an unnamed group without
        resources."""
        request = self.request
        if not request.root_required and not request.root_forbidden and not self._bare:
            return True
        have = set(root.traits)
        return (have.issuperset(request.root_required) and have.isdisjoint(request.root_forbidden)
                and all(have.isdisjoint(group.forbidden) and _has_traits(have, group)
                        and _member(set(root.aggregates), group) for group in self._bare))

    def _root_lacks(self, root: ProviderState) -> str:
        have = set(root.traits)
        missing = sorted(set(self.request.root_required) - have)
        if missing:
            return f"no trait {', '.join(missing)}"
        unwanted = sorted(have & {*self.request.root_forbidden, *(trait for group in self._bare
                                                                  for trait in group.forbidden)})
        if unwanted:
            return f"trait {', '.join(unwanted)} is forbidden"
        for group in self._bare:
            if not _has_traits(have, group):
                return f"no trait {', '.join(sorted('|'.join(any_of) for any_of in group.required))}"
        return _OUTSIDE


# -- parts of a request

def _slots(request: ResourceRequest) -> list[_Slot]:
    """Return the slots of a request, named groups first: they have the fewest options."""
    found: list[_Slot] = []
    seen: list[tuple[tuple[object, ...], int]] = []
    for group in request.groups:
        if group.suffix:
            resources = {name: amount for name, amount in group.resources.items() if amount}
            alike = (resources, group.required, group.forbidden, group.member_of, group.not_member_of, group.in_tree,
                     [number for number, suffixes in enumerate(request.same_subtree) if group.suffix in suffixes])
            twin = next((at for known, at in reversed(seen) if known == alike), -1)
            seen.append((alike, len(found)))
            found.append(_Slot(group, resources, twin))
    return found + [_Slot(group, {name: amount}) for group in request.groups if not group.suffix
                    for name, amount in group.resources.items() if amount]


def _places(tree: Tree, shared: Sequence[Sharing]) -> list[_Place]:
    aggregates, uuids = tree[0].aggregates, {one.uuid for one in tree}
    return [_Place(one, aggregates, uuids) for one in tree] + [
        _Place(one.provider, one.root.aggregates, one.tree, False) for one in shared]


# -- one provider for one part

def _may(place: _Place, slot: _Slot) -> bool:
    """Return whether this provider alone meets the slot. Another provider may have the traits of the unnamed
    group."""
    group, one = slot.group, place.one
    for name, amount in slot.resources.items():
        have = one.amounts.get(name)
        if have is None or not have.has_room(amount):
            return False
    return ((not group.forbidden or set(group.forbidden).isdisjoint(one.traits))
            and (place.local or bool(slot.resources))
            and (not group.suffix or not group.required or _has_traits(set(one.traits), group))
            and (group.in_tree is None or group.in_tree in place.tree)
            and _is_member(place, group))


def _has_traits(have: set[str], group: RequestGroup) -> bool:
    return all(not have.isdisjoint(any_of) for any_of in group.required)


def _is_member(place: _Place, group: RequestGroup) -> bool:
    """Return whether the place is in the group's aggregates. For the unnamed group, the root's aggregates count for the
    whole tree; for a named group, each provider's own."""
    if not group.member_of and not group.not_member_of:
        return True
    return _member({*place.one.aggregates, *(() if group.suffix else place.aggregates)}, group)


def _member(mine: set[str], group: RequestGroup) -> bool:
    return all(not mine.isdisjoint(any_of) for any_of in group.member_of) and mine.isdisjoint(group.not_member_of)


# -- providers for all parts

class _Search:
    """Search that chooses one provider per slot. If one solution is enough, identical slots take providers in ascending
    order: every other solution only exchanges identical slots."""

    def __init__(self, rule: ParsedRequest, tree: Tree, fitting: Sequence[Sequence[ProviderState]],
                 ordered: bool) -> None:
        self.rule, self.slots, self.fitting, self.ordered = rule, rule.slots, fitting, ordered
        self.tree = tree
        self.left = rule.steps
        self.chosen: list[int] = []  # index of the chosen option, for each slot
        self.taken: Counter[tuple[int, str]] = Counter()
        suffixes = [slot.group.suffix for slot in rule.slots]
        self.ends = {number: max(at for at, suffix in enumerate(suffixes) if suffix in together)
                     for number, together in enumerate(rule.request.same_subtree)
                     if not set(together).isdisjoint(suffixes)}

    def run(self) -> Iterator[Solution]:
        at = len(self.chosen)
        if at == len(self.slots):
            if self._has_all_traits():
                yield self._solution()
            return
        slot, alone = self.slots[at], at in self.rule._alone
        begin = self.chosen[slot.twin] if self.ordered and slot.twin >= 0 else 0
        for number in range(begin, len(self.fitting[at])):
            one = self.fitting[at][number]
            self.left -= 1
            if self.left < 0:
                return
            if not self._fits(one, slot) or alone and self._is_taken(one, at):
                continue
            self.chosen.append(number)
            if self._is_together(at):
                wanted = {(one.id, name): amount for name, amount in slot.resources.items()}
                self.taken.update(wanted)
                yield from self.run()
                self.taken.subtract(wanted)
            self.chosen.pop()

    def provider(self, at: int) -> ProviderState:
        return self.fitting[at][self.chosen[at]]

    def _fits(self, one: ProviderState, slot: _Slot) -> bool:
        """Return whether the provider has the slot's amounts, in addition to those for other parts of the request."""
        return all(not (more := self.taken[one.id, name]) or one.amounts[name].has_room(amount + more)
                   for name, amount in slot.resources.items())

    def _is_taken(self, one: ProviderState, at: int) -> bool:
        return any(self.provider(other).id == one.id for other in self.rule._alone if other < at)

    def _is_together(self, at: int) -> bool:
        """Return whether the groups of each subtree are in one subtree; checked once the last of them is chosen."""
        return all(self._same_subtree([self.provider(place) for place, slot in enumerate(self.slots[:at + 1])
                                       if slot.group.suffix in self.rule.request.same_subtree[number]])
                   for number, end in self.ends.items() if end == at)

    def _same_subtree(self, chosen: Sequence[ProviderState]) -> bool:
        """Return whether one of the providers is an ancestor of all others."""
        parents = {one.id: one.parent_id for one in self.tree}
        return any(all(top.id in _line(parents, one.id) for one in chosen) for top in chosen)

    def _has_all_traits(self) -> bool:
        """Return whether the providers of the unnamed group together have all traits that it requires."""
        return all(_has_traits({trait for at, slot in enumerate(self.slots) if slot.group is group
                                for trait in self.provider(at).traits}, group) for group in self.rule._spread)

    def _solution(self) -> Solution:
        amounts: dict[int, Counter[str]] = {}
        mappings: dict[str, dict[int, None]] = {}
        for at, slot in enumerate(self.slots):
            key = self.provider(at).id
            mappings.setdefault(slot.group.suffix, {})[key] = None
            if slot.resources:
                amounts.setdefault(key, Counter()).update(slot.resources)
        return Solution(amounts, {suffix: tuple(ids) for suffix, ids in mappings.items()})


def _line(parents: Mapping[int, int | None], key: int | None) -> set[int]:
    """Return the provider and all its ancestors."""
    found: set[int] = set()
    while key is not None and key not in found:
        found.add(key)
        key = parents.get(key)
    return found


# -- messages

_OUTSIDE = "not in a requested aggregate"


def _lacks(places: Sequence[_Place], slot: _Slot) -> str:
    group = slot.group
    able = [place.one for place in places if _is_member(place, group)]
    if not able:
        return _OUTSIDE
    for name, amount in slot.resources.items():
        have = [one.amounts[name] for one in able if name in one.amounts]
        if not have:
            return f"no {name}"
        if max(min(each.capacity - each.used, each.max_unit) for each in have) < amount:
            return f"not enough {name}"
    wanted = sorted({"|".join(any_of) for any_of in group.required})
    return f"no provider with {', '.join([*wanted, *slot.resources])}" + (
        f" without {', '.join(sorted(group.forbidden))}" if group.forbidden else "")


__all__ = ["STEPS", "ParsedRequest", "Sharing", "Solution", "Tree", "first", "shared_with", "solutions", "why_not"]
