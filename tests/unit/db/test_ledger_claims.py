"""What quota counts and what hosts gave away: claims are exact, fenced, and safe to repeat."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from nova import errors
from nova.db.models import api as tables
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.sql.engine import Database
from nova.model.scheduling.decisions import Resources
from tests.fakes.rows import SMALL, add_ledger, add_provider, new_uuid


def claim(api: Database, provider: int, *uuids: str, epoch: int = 1) -> dict[str, Any]:
    """Server -> None, or why it was refused."""
    wanted = [claims.Claim(uuid, epoch, provider, SMALL) for uuid in uuids]
    return api.transact(lambda tx: claims.claim(tx, wanted))[0]


def release(api: Database, uuid: str, epoch: int) -> list[int]:
    return api.transact(lambda tx: ledger.release(tx, {uuid: epoch}, {}))


def claimed(api: Database) -> dict[str, int]:
    """Server -> vcpus it holds."""
    table = tables.allocations
    with api.reading() as tx:
        return {row.consumer: row.used for row in tx.execute(sa.select(table).where(table.c.resource_class == "VCPU"))}


def generation(api: Database, provider: int) -> int:
    with api.reading() as tx:
        return int(tx.execute(sa.select(tables.providers.c.generation).where(tables.providers.c.id == provider))
                   .scalar_one())


def test_claim_when_there_is_room_for_some_then_just_those_get_it(api):
    provider, uuids = add_provider(api, vcpus=3), add_ledger(api, 5)
    results = claim(api, provider, *uuids)
    assert [results[uuid] is None for uuid in uuids] == [True, True, True, False, False]
    refused = results[uuids[3]]
    assert isinstance(refused, errors.ClaimConflict) and "has 0 VCPU left, but 1 are needed" in refused.message
    assert claimed(api) == dict.fromkeys(uuids[:3], 1)


def test_claim_when_it_is_repeated_then_nothing_is_taken_twice(api):
    provider, uuids = add_provider(api, vcpus=2), add_ledger(api, 2)
    assert set(claim(api, provider, *uuids).values()) == {None}
    assert set(claim(api, provider, *uuids, epoch=2).values()) == {None}
    assert claimed(api) == dict.fromkeys(uuids, 1)


def test_claim_when_one_server_wants_more_than_the_host_is_then_overcommit_does_not_help(api):
    provider, [uuid] = add_provider(api, vcpus=2, cpu_allocation_ratio=16.0), add_ledger(api)
    wanted = claims.Claim(uuid, 1, provider, Resources(vcpus=3, memory_mb=1, disk_gb=0))
    refused = api.transact(lambda tx: claims.claim(tx, [wanted]))[0][uuid]
    assert isinstance(refused, errors.ClaimConflict) and "has 2 VCPU left, but 3 are needed" in refused.message


def test_claim_when_the_provider_is_gone_then_it_is_a_conflict(api):
    [uuid] = add_ledger(api)
    assert isinstance(claim(api, 4711, uuid)[uuid], errors.ClaimConflict)


def test_claim_when_a_newer_epoch_owns_the_row_then_it_is_overtaken_and_takes_nothing(api):
    provider, [uuid] = add_provider(api), add_ledger(api)
    assert api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: 5})) == {uuid}
    assert isinstance(claim(api, provider, uuid, epoch=4)[uuid], errors.Overtaken)
    assert claimed(api) == {}
    assert claim(api, provider, uuid, epoch=5) == {uuid: None}


def test_claim_when_the_row_is_closed_then_it_is_refused(api):
    provider, [uuid] = add_provider(api), add_ledger(api)
    api.transact(lambda tx: ledger.close(tx, {uuid: 1}))
    assert claim(api, provider, uuid, epoch=2)[uuid] is not None and claimed(api) == {}


def test_release_when_asked_twice_or_by_who_was_overtaken_then_it_happens_once(api):
    provider, [uuid] = add_provider(api), add_ledger(api)
    claim(api, provider, uuid, epoch=2)
    assert release(api, uuid, 1) == [] and claimed(api) == {uuid: 1}
    assert release(api, uuid, 2) == [provider] and claimed(api) == {}
    assert release(api, uuid, 2) == []


def test_generation_when_claims_come_and_go_then_it_counts_up_each_time(api):
    provider, [uuid] = add_provider(api), add_ledger(api)
    seen = [generation(api, provider)]
    claim(api, provider, uuid)
    seen.append(generation(api, provider))
    release(api, uuid, 1)
    seen.append(generation(api, provider))
    assert seen == [seen[0], seen[0] + 1, seen[0] + 2]


def test_close_when_asked_twice_or_with_an_older_epoch_then_quota_is_given_back_once(api):
    [uuid, _other] = add_ledger(api, 2, vcpus=2)
    api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: 3}))

    def used() -> dict[str, int]:
        with api.reading() as tx:
            return ledger.usage(tx, "demo", None)["project"]
    api.transact(lambda tx: ledger.close(tx, {uuid: 2}))
    assert used() == {"instances": 2, "cores": 4, "ram": 1024}
    for _ in range(2):
        api.transact(lambda tx: ledger.close(tx, {uuid: 3}))
        assert used() == {"instances": 1, "cores": 2, "ram": 512}


def test_usage_when_users_share_a_project_then_both_sums_are_right(api):
    add_ledger(api, 2)
    add_ledger(api, 1, user_id="ann", vcpus=4)
    add_ledger(api, 9, project_id="other")
    with api.reading() as tx:
        assert ledger.usage(tx, "demo", "ann") == {"project": {"instances": 3, "cores": 6, "ram": 1536},
                                                   "user": {"instances": 1, "cores": 4, "ram": 512}}


def test_grown_when_rows_are_open_and_old_enough_then_they_come_page_by_page(api):
    uuids = add_ledger(api, 3)
    closed = add_ledger(api)[0]
    api.transact(lambda tx: ledger.close(tx, {closed: 1}))
    with api.reading() as tx:
        first = ledger.grown(tx, 0, -1, 2)
        rest = ledger.grown(tx, max(first.values()), -1, 2)
        assert [*first, *rest] == uuids
        assert ledger.grown(tx, 0, 600, 10) == {}


def test_lock_owner_when_the_owner_is_new_then_its_row_is_made(api):
    owner = new_uuid()
    for _ in range(2):
        api.transact(lambda tx: ledger.lock_owner(tx, owner))
    with api.reading() as tx:
        assert tx.execute(sa.select(tables.quota_locks.c.turns)).scalar_one() == 2
