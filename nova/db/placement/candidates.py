"""Allocation candidates: the rule of ``nova.model.placement.candidates`` applied to the trees that may match."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from sqlalchemy.engine import Connection

from nova.db.placement import candidate_trees
from nova.db.placement.candidate_trees import Tree
from nova.model.placement.candidates import ParsedRequest, Sharing, Solution, shared_with
from nova.model.placement.providers import (
    Candidate,
    CandidateQuery,
    Candidates,
    ProviderAllocation,
    ProviderState,
    ProviderSummary,
)

A_TREE = 1000  # limit of solutions from one tree: a dozen equal devices have millions


class _Found(NamedTuple):
    solution: Solution
    trees: tuple[Tree, ...]  # its own, and those of the sharing providers in it


def select(tx: Connection, query: CandidateQuery, disabled: Collection[str] = ()) -> Candidates:
    """Return the solutions in the order of their trees' creation, and summaries of all providers in these trees (if not
    ``nested``: only of the providers used)."""
    wanted = candidate_trees.WantedProviders(query.request, disabled, query.limit)
    found = list(islice(_once(_all(tx, wanted, query.nested)), query.limit))
    named = {key for one in found for ids in one.solution.mappings.values() for key in ids}
    known: dict[int, ProviderState] = {}
    roots: dict[int, str] = {}
    for tree in {tree[0].id: tree for one in found for tree in one.trees}.values():
        for provider in tree:
            if query.nested or provider.id in named:
                known[provider.id], roots[provider.id] = provider, tree[0].uuid
    return Candidates(candidates=tuple(_candidate(one.solution, known) for one in found),
                      summaries=tuple(_summary(one, known, roots[key]) for key, one in known.items()))


def _all(tx: Connection, wanted: candidate_trees.WantedProviders, nested: bool) -> Iterator[_Found]:
    sharing = candidate_trees.sharing(tx, wanted.disabled)
    homes = {one.provider.id: tree for tree in candidate_trees.load(tx, sorted({one.root.id for one in sharing}),
                                                                    wanted.disabled)
             for one in sharing if one.root.id == tree[0].id} if sharing else {}
    rule = ParsedRequest(wanted.request)
    for page in candidate_trees.pages(tx, wanted, sharing):
        for tree in page:
            for only in [None] if nested else tree:
                yield from _of(rule, tree, {one.provider.id: one for one in shared_with(tree, sharing)}, homes, only)


def _of(rule: ParsedRequest, tree: Tree, shared: Mapping[int, Sharing], homes: Mapping[int, Tree],
        only: ProviderState | None,
        ) -> Iterator[_Found]:
    """Yield one tree's solutions. ``only``: use at most one provider of each tree, and no other than this of its
    own."""
    for solution in islice(rule.solutions(tree, list(shared.values()), only), A_TREE):
        given = {key for ids in solution.mappings.values() for key in ids}
        if only and len({shared[key].root.id for key in given & shared.keys()}) < len(given & shared.keys()):
            continue
        others = tuple(homes[key] for key in sorted(given & shared.keys()))
        yield _Found(solution, (tree, *others) if given - shared.keys() else others)


def _once(found: Iterator[_Found]) -> Iterator[_Found]:
    """Drop repeated solutions: those of sharing providers alone are found from each tree that they share with."""
    seen = set()
    for one in found:
        amounts = frozenset((key, name, amount) for key, given in one.solution.amounts.items()
                            for name, amount in given.items())
        mappings = frozenset((suffix, frozenset(ids)) for suffix, ids in one.solution.mappings.items())
        if (amounts, mappings) not in seen:
            seen.add((amounts, mappings))
            yield one


# -- values

def _candidate(solution: Solution, known: Mapping[int, ProviderState]) -> Candidate:
    met: dict[int, list[str]] = {}
    for suffix, ids in solution.mappings.items():
        for key in ids:
            met.setdefault(key, []).append(suffix)
    return Candidate(
        allocations=tuple(ProviderAllocation(provider_uuid=known[key].uuid, resources=dict(given),
                                             mappings=tuple(met.get(key, ())))
                          for key, given in solution.amounts.items()),
        mappings={suffix: tuple(known[key].uuid for key in ids) for suffix, ids in solution.mappings.items()})


def _summary(one: ProviderState, known: Mapping[int, ProviderState], root: str) -> ProviderSummary:
    parent = known.get(one.parent_id) if one.parent_id is not None else None
    return ProviderSummary(uuid=one.uuid, parent_uuid=parent.uuid if parent else None, root_uuid=root,
                           amounts=one.amounts, traits=one.traits)
