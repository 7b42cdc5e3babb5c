"""Audits of allocations on each database for real: what is found, cured, and safe beside claims and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.placement import audits, claims
from nova.db.quota import ledger
from nova.db.sql.engine import Database
from nova.model.placement.audits import EXTRA, MISSING, ORPHAN, TOO_MUCH, WRONG
from tests.fakes.racing import together
from tests.fakes.rows import SMALL, add_ledger, add_provider, add_servers, new_uuid, server_row
from tests.functional.backends import KINDS, Absent
from tests.functional.test_databases import WRITERS

pytestmark = pytest.mark.in_turn(0, 10)

ALLOCATIONS = api_models.allocations


@pytest.fixture(scope="module", params=list(KINDS))
def stores(backends, request: pytest.FixtureRequest) -> Iterator[Stores]:
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = []
    for name, models in (("api", api_models), ("cell", cell_models)):
        made.append(Database(server.create(f"audits_{name}"), pool_size=2 * WRITERS))
        models.metadata.create_all(made[-1].engine)
    yield Stores(*made)
    for database in made:
        database.dispose()


@pytest.fixture
def host(stores: Stores) -> str:
    """A host of the test's own, and none of what tests before it left."""
    for database, table in ((stores.api, ALLOCATIONS), (stores.api, api_models.ledger),
                            (stores.cell, cell_models.servers)):
        database.transact(lambda tx, table=table: tx.execute(sa.delete(table)))
    return f"host-{new_uuid()[:8]}"


def place(stores: Stores, host: str, count: int) -> tuple[int, list[str]]:
    """Servers with their claims on a host: (its provider, their uuids)."""
    provider, uuids = add_provider(stores.api, host, vcpus=100), add_ledger(stores.api, count)
    add_servers(stores.cell, *(server_row(uuid=uuid, host=host, node=host) for uuid in uuids))
    results, _usages = claims.take(stores.api, [claims.Claim(uuid, 1, provider, SMALL) for uuid in uuids])
    assert set(results.values()) == {None}
    return provider, uuids


def found(stores: Stores, **given: Any) -> list[tuple[str, str]]:
    return sorted((one.kind, one.server) for uuid in allocation_audit.review(stores, **given)
                  for one in allocation_audit.audit(stores, uuid).differences)


def cure(stores: Stores, *kinds: str) -> None:
    for uuid in allocation_audit.review(stores):
        assert allocation_audit.audit(stores, uuid, kinds or allocation_audit.ALL).failed is None


def test_review_when_each_kind_is_there_then_each_is_found_and_cured(stores: Stores, host: str) -> None:
    provider, (right, lost, wrong, twice) = place(stores, host, 4)
    other, gone = add_provider(stores.api, f"{host}-2"), new_uuid()
    assert found(stores) == []
    rows = [{"provider_id": key, "consumer": who, "resource_class": "VCPU", "used": 1, "moving": None, "packing": None}
            for key, who in ((other, twice), (other, gone))]
    stores.api.transact(lambda tx: [
        tx.execute(sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.consumer == lost)),
        tx.execute(sa.update(ALLOCATIONS).where(ALLOCATIONS.c.consumer == wrong).values(used=7)),
        tx.execute(sa.insert(ALLOCATIONS), rows)])
    assert found(stores) == sorted([(MISSING, lost), (WRONG, wrong), (EXTRA, twice), (ORPHAN, gone)])
    assert found(stores, tree=other) == sorted([(EXTRA, twice), (ORPHAN, gone)])
    cure(stores, *TOO_MUCH)
    assert found(stores) == sorted([(MISSING, lost), (WRONG, wrong)])
    cure(stores)
    assert found(stores) == []
    with stores.api.reading() as tx:
        assert set(audits.held(tx, [right, lost, wrong, twice])) == {right, lost, wrong, twice}
        assert audits.overused(tx, host) == []
        assert audits.root_at(tx, audits.NodeHolder(host, host, right)) == provider


def test_overused_when_a_host_has_less_than_it_gave_then_it_is_named(stores: Stores, host: str) -> None:
    provider, _uuids = place(stores, host, 3)
    table = api_models.inventories
    stores.api.transact(lambda tx: tx.execute(sa.update(table).where(
        table.c.provider_id == provider, table.c.resource_class == "VCPU").values(total=2)))
    with stores.api.reading() as tx:
        assert audits.overused(tx, host) == [(host, host, "VCPU", 3, 2)]


def test_judge_when_it_cures_beside_claims_and_deletes_then_what_is_held_is_what_is_there(stores: Stores,
                                                                                          host: str) -> None:
    provider, uuids = place(stores, host, WRITERS * 3)
    stores.api.transact(lambda tx: tx.execute(sa.delete(ALLOCATIONS)))

    def delete(uuid: str) -> None:
        stores.cell.transact(lambda tx: tx.execute(sa.update(cell_models.servers).where(
            cell_models.servers.c.uuid == uuid).values(task_state="deleting")))
        stores.api.transact(lambda tx: (ledger.release(tx, {uuid: 2}, {}), ledger.close(tx, {uuid: 2})))
        stores.cell.transact(lambda tx: tx.execute(sa.update(cell_models.servers).where(
            cell_models.servers.c.uuid == uuid).values(deleted=cell_models.servers.c.id, host=None)))

    def heal(number: int) -> None:
        for uuid in uuids[number::2]:
            assert allocation_audit.audit(stores, uuid, allocation_audit.ALL).failed is None

    gone = uuids[::3]
    acts: list[Any] = [lambda number=number: heal(number % 2) for number in range(4)]
    acts += [lambda mine=gone[start::4]: [delete(uuid) for uuid in mine] for start in range(4)]
    assert [one for one in together(acts) if isinstance(one, Exception)] == []
    cure(stores)
    with stores.api.reading() as tx:
        held = audits.held(tx, uuids)
    assert set(held) == set(uuids) - set(gone)
    assert found(stores) == []
