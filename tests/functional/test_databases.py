"""What the design promises of rows, on each database for real: many writers at once, and one order of lists."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.network import networks
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import server_lists, states
from nova.db.sql.engine import Database
from nova.model.base import Page
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import ServerListQuery
from nova.model.server.states import ACTIONS
from tests.fakes.racing import together
from tests.fakes.rows import BORN, SMALL, add_ledger, add_network, add_provider, add_servers, server_row
from tests.functional.backends import KINDS, Absent

WRITERS = 8


@pytest.fixture(scope="module", params=list(KINDS))
def stores(backends, request: pytest.FixtureRequest) -> Iterator[tuple[Database, Database]]:
    """(api, cell) with empty schemas."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = []
    for name, models in (("api", api_models), ("cell", cell_models)):
        database = Database(server.create(f"rows_{name}"), pool_size=WRITERS)
        models.metadata.create_all(database.engine)
        made.append(database)
    yield made[0], made[1]
    for database in made:
        database.dispose()


@pytest.fixture
def api(stores) -> Database:
    return stores[0]


@pytest.fixture
def cell(stores) -> Database:
    return stores[1]


def test_claims_when_they_race_for_the_last_room_then_it_is_given_out_exactly(api: Database) -> None:
    provider, uuids = add_provider(api, vcpus=10), add_ledger(api, 24)

    def take(mine: list[str]) -> Any:
        return api.transact(lambda tx: claims.claim(tx, [claims.Claim(one, 1, provider, SMALL) for one in mine]))[0]
    results: dict[str, Any] = {}
    for part in together([lambda mine=uuids[start::WRITERS]: take(mine) for start in range(WRITERS)]):
        results |= part
    assert sum(result is None for result in results.values()) == 10
    assert all(isinstance(result, errors.ClaimConflict) for result in results.values() if result is not None)
    with api.reading() as tx:
        table = api_models.allocations
        assert tx.execute(sa.select(sa.func.sum(table.c.used)).where(
            table.c.provider_id == provider, table.c.resource_class == "VCPU")).scalar_one() == 10


def test_claims_when_they_lock_many_providers_then_none_fails(api: Database) -> None:
    keys = [add_provider(api, f"many{number}", vcpus=100) for number in range(4)]
    uuids = add_ledger(api, WRITERS * 4)

    def take(number: int) -> Any:
        order = keys if number % 2 else keys[::-1]
        requests = [claims.Claim(uuid, 1, key, SMALL) for uuid, key in
                    zip(uuids[number * 4:number * 4 + 4], order, strict=True)]
        return api.transact(lambda tx: claims.claim(tx, requests))[0]
    for result in together([lambda number=number: take(number) for number in range(WRITERS)]):
        assert set(result.values()) == {None}, result


def test_quota_when_it_is_counted_under_its_lock_then_it_is_never_exceeded(api: Database) -> None:
    def admit() -> bool:
        def write(tx: Any) -> bool:
            ledger.lock_owner(tx, "racing")
            if ledger.usage(tx, "racing", None)["project"]["instances"] >= 5:
                return False
            ledger.open_rows(tx, [{"server_uuid": uuid.pop(), "project_id": "racing", "user_id": "joe", "vcpus": 1,
                                   "memory_mb": 1}])
            return True
        import uuid as uuids

        uuid = [str(uuids.uuid4())] * 10  # for as often as the transaction is tried
        return api.transact(write)
    answers = [answer for _round in range(2) for answer in together([admit] * WRITERS)]
    assert answers.count(True) == 5
    with api.reading() as tx:
        assert ledger.usage(tx, "racing", None)["project"]["instances"] == 5


def test_bind_when_many_servers_want_addresses_at_once_then_each_gets_its_own(cell: Database) -> None:
    network = add_network(cell, "10.9.0.0/26")
    uuids = add_servers(cell, *(server_row() for _ in range(WRITERS * 3)))

    def take(mine: list[str]) -> Any:
        requests = [networks.AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),)) for uuid in mine]
        return cell.transact(lambda tx: networks.bind(tx, requests))
    bound = together([lambda mine=uuids[start::WRITERS]: take(mine) for start in range(WRITERS)])
    addresses = [one[0].addresses[0].address for part in bound for one in part.values()]
    assert len(addresses) == len(set(addresses)) == len(uuids)
    cell.transact(lambda tx: networks.unbind(tx, uuids))


def test_begin_when_it_is_asked_many_times_at_once_then_it_begins_once(cell: Database) -> None:
    [uuid] = add_servers(cell, server_row(launched_at=BORN))
    request = states.Begin(ACTIONS["stop"], uuid, {}, "req-1", "joe", "demo", 1, "")
    answers = together([lambda: cell.transact(lambda tx: states.begin(tx, request))] * WRITERS)
    assert sum(not isinstance(answer, errors.NovaError) for answer in answers) == 1
    assert {type(answer) for answer in answers if isinstance(answer, errors.NovaError)} == {errors.server.WrongState}


def test_take_over_when_many_runners_want_an_orphan_then_one_gets_it(cell: Database) -> None:
    [uuid] = add_servers(cell, server_row(launched_at=BORN))
    wanted = states.Begin(ACTIONS["stop"], uuid, {}, "req-2", "joe", "demo", 1, "")
    entry, *_ = cell.transact(lambda tx: states.begin(tx, wanted))
    answers = together([lambda runner=runner: cell.transact(lambda tx: states.take_over(tx, entry, runner))
                        for runner in range(100, 100 + WRITERS)])
    assert sum(isinstance(answer, states.Entry) for answer in answers) == 1


def test_pages_when_columns_have_nulls_then_the_order_is_the_same_on_every_database(cell: Database, seed: int) -> None:
    chooser = random.Random(seed)
    cell.transact(lambda tx: tx.execute(sa.delete(cell_models.servers)))
    rows = [server_row(id=number, name=chooser.choice("aBb"), host=chooser.choice([None, "a", "B", "b", "ä"]),
                       task_state=chooser.choice([None, "rebooting"]), launched_at=chooser.choice([None, BORN]))
            for number in range(1, 41)]
    add_servers(cell, *rows)
    for _ in range(12):
        columns = chooser.sample(["name", "host", "task_state", "launched_at"], 2)
        sort = tuple((column, chooser.choice(["asc", "desc"])) for column in columns)
        query, limit = ServerListQuery(sort=sort), chooser.randint(1, 7)
        whole, found = select(cell, query, 100), []
        while page := select(cell, msgspec.structs.replace(query, page=Page(
                limit=limit, marker=found[-1] if found else None)), limit):
            found += page
        assert found == whole == in_order(rows, sort), sort


def select(cell: Database, query: ServerListQuery, limit: int) -> list[str]:
    with cell.reading() as tx:
        return [row.uuid for row in server_lists.select(tx, query, limit)]


def in_order(rows: list[dict[str, Any]], sort: tuple[tuple[str, str], ...]) -> list[str]:
    """As Python sorts: text by bytes, None before all."""
    ordered = list(rows)
    for name, direction in reversed((*sort, ("id", sort[-1][1]))):
        def key(row: dict[str, Any], name: str = name) -> Any:
            value = row[name]
            return (False,) if value is None else (True, value.encode() if isinstance(value, str) else value)
        ordered.sort(key=key, reverse=direction == "desc")
    return [row["uuid"] for row in ordered]
