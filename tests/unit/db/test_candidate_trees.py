"""Candidates out of a database against the bare rule over all trees: what SQL leaves out beforehand would never do."""

from __future__ import annotations

import random

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from nova.db.models import api as tables
from nova.db.placement import candidate_trees, candidates, provider_trees
from nova.db.sql.engine import Database
from nova.db.sql.statements import insert_all
from nova.model.placement.candidates import Sharing, shared_with, solutions
from nova.model.placement.providers import CandidateQuery, Candidates, ProviderState, ResourceRequest
from tests.fakes.rows import new_uuid
from tests.unit.model import test_candidate_rule as made_up

TREES = 12
DISABLED = "COMPUTE_STATUS_DISABLED"


def plant(api: Database, chooser: random.Random) -> None:
    """Trees of made-up providers; some of them hosts', some that share."""
    rack = {name: name for name in made_up.AGGREGATES}

    def write(tx: sa.Connection) -> None:
        for number in range(TREES):
            tree = made_up.a_tree(chooser, number * 10 + 1)
            host = f"host{number}" if chooser.random() < 0.5 else ""
            for one in tree:
                insert(tx, one, tree[0].id, host, chooser)
            if host and chooser.random() < 0.5:
                insert_all(tx, tables.aggregate_hosts, [{"aggregate_id": 1, "host": host}])
        tx.execute(sa.insert(tables.aggregates).values(id=1, uuid=rack["g1"], name="rack",
                                                       created_at=sa.func.current_timestamp()))
    api.transact(write)


def insert(tx: sa.Connection, one: ProviderState, root: int, host: str, chooser: random.Random) -> None:
    tx.execute(sa.insert(tables.providers).values(
        id=one.id, uuid=one.uuid, name=one.uuid, host=host, host_id="", parent_id=one.parent_id,
        root_id=None if one.id == root else root))
    traits = [*one.traits, *(["MISC_SHARES_VIA_AGGREGATE"] if chooser.random() < 0.1 else [])]
    insert_all(tx, tables.provider_traits, [{"provider_id": one.id, "trait": trait} for trait in traits])
    insert_all(tx, tables.provider_aggregates, [{"provider_id": one.id, "aggregate_uuid": uuid}
                                                for uuid in one.aggregates])
    for name, have in one.amounts.items():
        tx.execute(sa.insert(tables.inventories).values(
            provider_id=one.id, resource_class=name, total=have.capacity, min_unit=have.min_unit,
            max_unit=have.max_unit, step_size=have.step_size))
        insert_all(tx, tables.allocations, [{"provider_id": one.id, "consumer": new_uuid(), "resource_class": name,
                                             "used": have.used}] if have.used else [])


def by_the_rule(planted: list[list[ProviderState]], request: ResourceRequest) -> set[object]:
    """Every tree asked, with all that share with it."""
    sharing = [Sharing(one, tree[0], frozenset(each.uuid for each in tree)) for tree in planted for one in tree
               if "MISC_SHARES_VIA_AGGREGATE" in one.traits]
    uuids = {one.id: one.uuid for tree in planted for one in tree}
    return {(frozenset((uuids[key], name, amount) for key, given in one.amounts.items()
                       for name, amount in given.items()),
             frozenset((suffix, frozenset(uuids[key] for key in ids)) for suffix, ids in one.mappings.items()))
            for tree in planted for one in solutions(tree, request, shared_with(tree, sharing))}


def shown(found: Candidates) -> list[object]:
    return [(frozenset((each.provider_uuid, name, amount) for each in one.allocations
                       for name, amount in each.resources.items()),
             frozenset((suffix, frozenset(uuids)) for suffix, uuids in one.mappings.items()))
            for one in found.candidates]


@pytest.mark.parametrize("seed", range(3))
def test_candidates_when_a_database_chooses_the_trees_then_none_is_left_out(api: Database, seed: int) -> None:
    chooser, met = random.Random(seed), 0
    plant(api, chooser)
    disabled = {f"host{number}" for number in range(0, TREES, 3)}
    for _ in range(40):
        request = made_up.a_request(chooser)
        if chooser.random() < 0.2:
            request = ResourceRequest(groups=request.groups, root_forbidden=(DISABLED,))
        with api.reading() as tx:
            planted = candidate_trees.load(tx, [number * 10 + 1 for number in range(TREES)], disabled)
            whole = candidates.select(tx, CandidateQuery(request=request), disabled)
            few = candidates.select(tx, CandidateQuery(request=request, limit=3), disabled)
        wanted, found = by_the_rule(planted, request), shown(whole)
        assert set(found) == wanted and len(found) == len(wanted), request
        assert len(few.candidates) == min(3, len(found)) and set(shown(few)) <= wanted
        roots = {one.root_uuid for one in whole.summaries}
        assert {one.uuid for one in whole.summaries} == {one.uuid for tree in planted if tree[0].uuid in roots
                                                         for one in tree}
        met += bool(found)
    assert met > 10


def test_load_when_a_host_is_closed_then_its_node_alone_says_so(api: Database) -> None:
    def write(tx: sa.Connection) -> None:
        for key, root in ((1, None), (2, 1), (3, None)):
            tx.execute(sa.insert(tables.providers).values(id=key, uuid=f"u{key}", name=f"u{key}", host_id="",
                                                          host="h" if key < 3 else "", parent_id=root, root_id=root))
    api.transact(write)
    with api.reading() as tx:
        found = candidate_trees.load(tx, [3, 1, 99], {"h"})
    assert [[(one.uuid, one.traits) for one in tree] for tree in found] == [
        [("u3", ())], [("u1", (DISABLED,)), ("u2", ())]]


def test_beyond_when_all_trees_are_asked_for_then_no_ids_are_bound(api: Database) -> None:
    chooser, bound = random.Random(7), []
    plant(api, chooser)
    event.listen(api.engine, "before_cursor_execute", lambda *args: bound.append(len(args[3])))
    with api.reading() as tx:
        found = provider_trees.tree_facts(tx)
    assert sum(len(one.children) for one in found.values()) > 5 and max(bound) <= 1
    assert any(each.traits for one in found.values() for each in one.children)
