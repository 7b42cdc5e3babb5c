"""Hard policies of server groups at the claim: whatever is tried in whatever order, they hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nova import errors
from nova.db.models import api as tables
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.sql.engine import Database
from nova.model.base import Scope
from nova.model.server.server_groups import AFFINITY, ANTI_AFFINITY, NewServerGroup
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import SMALL, add_ledger, add_provider, new_uuid
from tests.sampling import examples

HOSTS = ("h0", "h1", "h2")


def add_group(api: Database, policy: str, **rules: int) -> tuple[str, int]:
    group = NewServerGroup(uuid=new_uuid(), name="g", policy=policy, rules=rules)
    api.transact(lambda tx: server_groups.insert(tx, group, "demo", "joe"))
    return group.uuid, api.transact(lambda tx: server_groups.room_for(tx, group.uuid, Scope(), "joe"))[0]


def add_members(api: Database, key: int, count: int) -> list[str]:
    uuids = add_ledger(api, count)
    api.transact(lambda tx: server_groups.join(tx, key, uuids, "joe"))
    return uuids


def claim(api: Database, *pairs: tuple[str, int], epoch: int = 1, grouped: bool = True) -> dict[str, Any]:
    wanted = [claims.Claim(uuid, epoch, provider, SMALL, grouped) for uuid, provider in pairs]
    return api.transact(lambda tx: claims.claim(tx, wanted))[0]


def places(api: Database) -> dict[str, str]:
    claimed, given = tables.allocations, tables.providers
    with api.reading() as tx:
        return {row.consumer: row.host for row in tx.execute(sa.select(claimed.c.consumer, given.c.host).join_from(
            claimed, given, given.c.id == claimed.c.provider_id).distinct())}


def test_anti_affinity_within_one_call_then_the_second_is_refused(api):
    provider, (_, key) = add_provider(api), add_group(api, ANTI_AFFINITY)
    first, second = add_members(api, key, 2)
    results = claim(api, (first, provider), (second, provider))
    assert results[first] is None and isinstance(results[second], errors.host.ClaimGroup)
    assert "1 of its members are on that host" in results[second].message and places(api) == {first: "host1"}


def test_two_nodes_of_one_host_are_one_host(api):
    one, other = add_provider(api, "h"), add_provider(api, "h")
    _, key = add_group(api, ANTI_AFFINITY)
    first, second = add_members(api, key, 2)
    assert claim(api, (first, one))[first] is None
    assert isinstance(claim(api, (second, other))[second], errors.host.ClaimGroup)


def test_affinity_when_the_first_does_not_fit_then_the_next_decides_where(api):
    full, free = add_provider(api, "h0", vcpus=1), add_provider(api, "h1")
    _, key = add_group(api, AFFINITY)
    orphan, first, second = *add_ledger(api), *add_members(api, key, 2)
    assert claim(api, (orphan, full), grouped=False)[orphan] is None
    assert isinstance(claim(api, (first, full))[first], errors.host.ClaimNotEnough)
    assert claim(api, (second, free))[second] is None
    assert isinstance(claim(api, (first, full))[first], errors.host.ClaimGroup)
    assert claim(api, (first, free))[first] is None


def test_claim_when_it_is_repeated_then_its_own_place_does_not_count_against_it(api):
    provider, (_, key) = add_provider(api), add_group(api, ANTI_AFFINITY)
    [uuid] = add_members(api, key, 1)
    assert claim(api, (uuid, provider)) == claim(api, (uuid, provider), epoch=2) == {uuid: None}


def test_claim_when_the_group_is_gone_or_soft_then_nothing_is_refused(api):
    provider, (gone, key), (_, soft) = add_provider(api), add_group(api, ANTI_AFFINITY), add_group(api, "soft-affinity")
    left, tender = add_members(api, key, 2), add_members(api, soft, 2)
    api.transact(lambda tx: server_groups.delete(tx, gone, Scope()))
    assert set(claim(api, *[(uuid, provider) for uuid in (*left, *tender)]).values()) == {None}


def test_close_when_it_is_repeated_or_late_then_the_group_is_left_once(api):
    _, key = add_group(api, AFFINITY)
    [uuid] = add_members(api, key, 1)
    api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: 5}))
    members = sa.select(sa.func.count()).select_from(tables.server_group_members)

    def count() -> int:
        with api.reading() as tx:
            return int(tx.execute(members).scalar_one())
    api.transact(lambda tx: ledger.close(tx, {uuid: 4}))
    assert count() == 1
    for _ in range(2):
        api.transact(lambda tx: ledger.close(tx, {uuid: 5}))
        assert count() == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """One database for all examples: each makes providers and servers of its own."""
    folder: Path = tmp_path_factory.mktemp("groups")
    database = QuickDatabase(folder / "api")
    tables.metadata.create_all(database.engine)
    yield database
    database.dispose()


steps = st.lists(st.one_of(
    st.tuples(st.just("claim"), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=4,
                                         unique_by=lambda pair: pair[0])),
    st.tuples(st.just("release"), st.integers(0, 5))), min_size=1, max_size=12)


@settings(max_examples=examples(20, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=st.sampled_from([AFFINITY, ANTI_AFFINITY]), most=st.integers(1, 3), story=steps)
def test_policy_holds_after_every_step(shared: Database, policy: str, most: int, story: list[Any]) -> None:
    shared.transact(lambda tx: [tx.execute(sa.delete(table)) for table in (
        tables.allocations, tables.ledger, tables.providers, tables.inventories)])
    rules = {"max_server_per_host": most} if policy == ANTI_AFFINITY else {}
    providers = [add_provider(shared, host, vcpus=4) for host in HOSTS]
    _, key = add_group(shared, policy, **rules)
    uuids, epochs = add_members(shared, key, 6), Counter[str]()
    for what, arguments in story:
        before = places(shared)
        if what == "release":
            uuid = uuids[arguments]
            epochs[uuid] += 1
            shared.transact(lambda tx, uuid=uuid: ledger.release(tx, {uuid: 10 + epochs[uuid]}, {}))
        else:
            wanted = [claims.Claim(uuids[server], 10 + epochs[uuids[server]], providers[host], SMALL, True)
                      for server, host in arguments if uuids[server] not in before]
            results = shared.transact(lambda tx, wanted=wanted: claims.claim(tx, wanted))[0] if wanted else {}
            check_refusals(policy, most, before, results, {uuids[server]: HOSTS[host] for server, host in arguments})
        crowd = Counter(places(shared).values())
        assert len(crowd) <= 1 if policy == AFFINITY else max(crowd.values(), default=0) <= most


def check_refusals(policy: str, most: int, before: dict[str, str], results: dict[str, Any],
                   asked: dict[str, str]) -> None:
    """Nobody is refused whom the policy would have let in: by what was there before, and came in this call earlier."""
    now = dict(before)
    for uuid, refused in results.items():
        crowd = Counter(now.values())
        fine = not crowd or asked[uuid] in crowd if policy == AFFINITY else crowd[asked[uuid]] < most
        if isinstance(refused, errors.host.ClaimGroup):
            assert not fine
        elif refused is None:
            assert fine
            now[uuid] = asked[uuid]
