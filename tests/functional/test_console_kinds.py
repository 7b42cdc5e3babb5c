"""Tokens of consoles on each kind of database for real: kept, ended, used up by one, dropped; against what begins."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.server import consoles, servers, states
from nova.db.sql.engine import Database
from nova.model.guest.consoles import ConsoleAddress, token_hash
from nova.model.server.states import ACTIONS
from tests.fakes.racing import together
from tests.fakes.rows import add_servers, server_row

TOKENS = tables.console_tokens
AT = ConsoleAddress(access_url_base="http://proxy/é?a=b", host="10.0.0.1", port=5900)
AT_ONCE, ROUNDS = 8, 15


@pytest.fixture
def uuid(cell: Database) -> str:
    cell.transact(lambda tx: tx.execute(sa.delete(TOKENS)))
    return add_servers(cell, server_row(host="h1", launched_at=server_row()["created_at"]))[0]


def keep(cell: Database, uuid: str, token: str = "t", **fields: Any) -> bool:
    what = consoles.KeptToken(**{"token_hash": token_hash(token), "console_type": "novnc", "server_uuid": uuid,
                                 "host": "h1",
                                 "epoch": 1, "user_id": "joe", "address": AT, "ttl_s": 60, **fields})
    return cell.transact(lambda tx: consoles.keep(tx, what))


def find(cell: Database, token: str = "t") -> Any:
    with cell.reading() as tx:
        return consoles.find(tx, token_hash(token))


def begin(cell: Database, uuid: str, action: str = "stop") -> None:
    cell.transact(lambda tx: states.begin(tx, states.Begin(
        action=ACTIONS[action], server_uuid=uuid, arguments={}, request_id="req", user_id=None, project_id=None,
        runner_id=1, step="x")))


def count(cell: Database) -> int:
    with cell.reading() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(TOKENS)).scalar_one())


def test_token_kept_then_found_with_its_server_and_the_database_s_time(cell: Database, uuid: str) -> None:
    assert keep(cell, uuid)
    row = find(cell)
    assert (row.address, row.server_host, row.project_id, row.console_epoch, row.used_at) == (AT, "h1", "demo", 0, None)
    assert 55 <= row.expires_at - consoles.epoch_seconds(row.clock) <= 60
    assert find(cell, "T") is None
    with cell.reading() as tx:
        place = consoles.place(tx, uuid)
        assert (place.host, place.epoch, place.forced_down) == ("h1", 1, None)
        with pytest.raises(errors.server.NotFound):
            consoles.place(tx, "99999999-0000-4000-8000-00000000000é")


@pytest.mark.parametrize("fields", [{"host": "h2"}, {"host": "H1"}, {"epoch": 0}])
def test_token_of_another_place_or_time_then_not_kept(cell: Database, uuid: str, fields: dict[str, Any]) -> None:
    cell.transact(lambda tx: tx.execute(sa.update(tables.servers).where(tables.servers.c.uuid == uuid)
                                        .values(console_epoch=1)))
    assert not keep(cell, uuid, **fields) and count(cell) == 0


def test_token_when_what_ends_consoles_begins_at_the_same_time_then_it_is_not_kept_or_is_dead(cell: Database) -> None:
    for _ in range(ROUNDS):
        [uuid] = add_servers(cell, server_row(host="h1", launched_at=server_row()["created_at"]))
        results = together([lambda uuid=uuid: keep(cell, uuid, uuid), lambda uuid=uuid: begin(cell, uuid)])
        assert results[1] is None, results
        row = find(cell, uuid)
        assert (row is not None) == results[0] and (row is None or row.console_epoch > row.epoch)


def test_token_ended_then_it_is_older_than_any_server(cell: Database, uuid: str) -> None:
    keep(cell, uuid)
    keep(cell, uuid, "other")
    cell.transact(lambda tx: consoles.end(tx, find(cell).id))
    assert find(cell).epoch < find(cell).console_epoch == 0 == find(cell, "other").epoch - 1


def test_token_redeemed_by_many_at_once_then_by_one(cell: Database, uuid: str) -> None:
    keep(cell, uuid)
    key = find(cell).id
    used = together([lambda: cell.transact(lambda tx: consoles.redeem(tx, key))] * AT_ONCE)
    assert sorted(used) == [False] * (AT_ONCE - 1) + [True] and find(cell).used_at is not None


def test_tokens_of_one_server_asked_for_at_once_then_all_are_kept_up_to_the_bound(cell: Database, uuid: str) -> None:
    for number in range(consoles.MOST_OF_A_SERVER - 2):
        keep(cell, uuid, f"before {number}")
    made = together([lambda number=number: keep(cell, uuid, f"at once {number}") for number in range(AT_ONCE)])
    assert made == [True] * AT_ONCE and count(cell) == consoles.MOST_OF_A_SERVER
    assert all(find(cell, f"at once {number}") for number in range(AT_ONCE)) and find(cell, "before 0") is None


def test_expired_tokens_then_dropped_a_batch_at_a_time(cell: Database, uuid: str) -> None:
    other = add_servers(cell, server_row(host="h1"))[0]
    for number in range(5):
        keep(cell, add_servers(cell, server_row(host="h1"))[0], f"old {number}", ttl_s=0)
    keep(cell, uuid), keep(cell, other, "other")
    dropped = [cell.transact(lambda tx: consoles.drop_expired(tx, 3)) for _ in range(3)]
    assert dropped == [3, 2, 0] and count(cell) == 2


def test_server_deleted_then_its_token_is_nobody_s_and_goes_with_it(cell: Database, uuid: str) -> None:
    keep(cell, uuid)
    cell.transact(lambda tx: tx.execute(sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(
        deleted=tables.servers.c.id, deleted_at=sa.text("'2000-01-01 00:00:00'"))))
    assert find(cell).server_host is None
    assert cell.transact(lambda tx: servers.purge(tx, 60, 10)) == 1
    assert count(cell) == 0
