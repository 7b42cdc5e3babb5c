"""Hard policies of server groups on each database for real: many claims, joins and leaves at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from nova import errors
from nova.db.models import api as api_models
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.sql.engine import Database
from nova.model.base import Scope
from nova.model.server.server_groups import AFFINITY, ANTI_AFFINITY
from tests.fakes.racing import together
from tests.fakes.rows import SMALL, add_ledger, add_provider
from tests.functional.backends import KINDS, Absent
from tests.functional.test_databases import WRITERS
from tests.unit.db.test_server_group_claims import add_group, add_members, places


@pytest.fixture(scope="module", params=list(KINDS))
def api(backends, request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty schema."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    database = Database(server.create("server_group_races_api"), pool_size=WRITERS)
    api_models.metadata.create_all(database.engine)
    yield database
    database.dispose()


@pytest.fixture
def hosts(api: Database) -> list[int]:
    """Providers of three hosts of the test's own."""
    made = add_ledger(api)[0][:8]
    return [add_provider(api, f"{made}-{number}", vcpus=100) for number in range(3)]


def settle(database: Database, uuid: str, providers: list[int]) -> Any:
    """Claim on one host after the other, as a create does; None, or why not even the last."""
    refused: Any = None
    for provider in providers:
        wanted = [claims.Claim(uuid, 1, provider, SMALL, True)]
        refused = database.transact(lambda tx, wanted=wanted: claims.claim(tx, wanted))[0][uuid]
        if refused is None:
            break
    return refused


def rotated(providers: list[int], by: int) -> list[int]:
    by %= len(providers)
    return providers[by:] + providers[:by]


@pytest.mark.parametrize("most", [1, 2])
def test_anti_affinity_when_claims_race_then_every_place_is_taken_once(api: Database, hosts: list[int],
                                                                       most: int) -> None:
    _, key = add_group(api, ANTI_AFFINITY, max_server_per_host=most)
    uuids = add_members(api, key, WRITERS)
    results = together([lambda uuid=uuid, at=at: settle(api, uuid, rotated(hosts, at // 3))
                        for at, uuid in enumerate(uuids)])
    mine = {uuid: host for uuid, host in places(api).items() if uuid in uuids}
    assert results.count(None) == len(mine) == 3 * most
    assert set(Counter(mine.values()).values()) == {most}
    assert all(isinstance(one, errors.host.ClaimGroup) for one in results if one is not None)


def test_affinity_when_claims_race_then_all_are_on_one_host(api: Database, hosts: list[int]) -> None:
    _, key = add_group(api, AFFINITY)
    uuids = add_members(api, key, WRITERS)
    results = together([lambda uuid=uuid, at=at: settle(api, uuid, rotated(hosts, at)) for at, uuid in
                        enumerate(uuids)])
    assert results == [None] * WRITERS
    assert len({host for uuid, host in places(api).items() if uuid in uuids}) == 1


def test_claims_leaves_and_the_groups_end_when_they_race_then_nothing_fails(api: Database,
                                                                            hosts: list[int]) -> None:
    name, key = add_group(api, ANTI_AFFINITY, max_server_per_host=100)
    uuids = add_members(api, key, WRITERS)

    def leave(uuid: str) -> None:
        api.transact(lambda tx: ledger.release(tx, {uuid: 2}, {}))
        api.transact(lambda tx: ledger.close(tx, {uuid: 2}))

    def act(number: int) -> Any:
        if number == 3:
            return api.transact(lambda tx: server_groups.delete(tx, name, Scope()))
        return leave(uuids[number]) if number % 2 else settle(api, uuids[number], rotated(hosts, number))
    results = together([lambda number=number: act(number) for number in range(WRITERS)])
    assert results == [None] * WRITERS
    with pytest.raises(errors.NotFound), api.reading() as tx:
        server_groups.get(tx, name, Scope())
