"""What databases can take, what their errors may tell, and keys that never come again."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from nova import errors
from nova.db.host import host_cleanups
from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.network import networks
from nova.db.server import server_lists, servers
from nova.db.sql import engine
from nova.db.sql.engine import Database, DatabaseBusy, DatabaseUnavailable
from nova.db.sql.statements import insert_all, update_where
from nova.db.sql.types import utc_now
from nova.model.base import Page
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import Condition, ServerListQuery
from tests.fakes.rows import add_network, add_servers, new_uuid, server_row


def count(database: Database, table: sa.Table) -> int:
    with database.reading() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_insert_when_there_are_more_values_than_a_statement_binds_then_all_rows_are_there(cell: Database) -> None:
    """Hundreds of servers with all the metadata they may have."""
    rows = [{"server_uuid": new_uuid(), "key": f"k{key}", "value": "v"} for _ in range(300) for key in range(128)]
    cell.transact(lambda tx: insert_all(tx, tables.server_metadata, rows))
    assert count(cell, tables.server_metadata) == len(rows) > 32_766  # which is what SQLite binds at most


def test_insert_of_a_hundred_rows_is_one_statement(api: Database) -> None:
    seen: list[str] = []
    sa.event.listen(api.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    rows = [{"provider_id": number, "consumer": new_uuid(), "resource_class": "VCPU", "used": 1}
            for number in range(100)]
    api.transact(lambda tx: insert_all(tx, api_tables.allocations, rows))
    assert len([text for text in seen if text.startswith("INSERT")]) == 1


def test_update_when_its_shape_was_seen_before_then_values_are_its_own(cell: Database) -> None:
    """The statement is built once; a NULL, a column and the clock are parts of its shape or its values alike."""
    first, second = add_servers(cell, server_row(), server_row())
    for uuid, task in ((first, "spawning"), (second, None)):
        changed = cell.transact(lambda tx, uuid=uuid, task=task: update_where(
            tx, tables.servers, {"uuid": uuid, "epoch": 1},
            {"task_state": task, "deleted": tables.servers.c.id, "updated_at": utc_now()}))
        assert changed == 1
    with cell.reading() as tx:
        rows = servers.rows_of(tx, [first, second], with_deleted=True)
    assert (rows[first].task_state, rows[second].task_state) == ("spawning", None)
    assert all(row.deleted == row.id and row.updated_at is not None for row in rows.values())


def test_error_of_a_statement_names_no_values(cell: Database) -> None:
    uuid, = add_servers(cell, server_row())
    with pytest.raises(exc.IntegrityError) as error:
        add_servers(cell, server_row(uuid=uuid, user_data="the owner's password"))
    assert "the owner's password" not in str(error.value)


class MySQLError(Exception):
    """As PyMySQL raises it: the number first, and the state beside."""

    def __init__(self, number: int, text: str, sqlstate: str) -> None:
        super().__init__(number, text)
        self.sqlstate = sqlstate


class PostgreSQLError(Exception):
    sqlstate = "40P01"


@pytest.mark.parametrize("original", [
    MySQLError(1213, "Deadlock found", "40001"), MySQLError(1205, "Lock wait timeout exceeded", "HY000"),
    MySQLError(1020, "Record has changed since last read", "HY000"), PostgreSQLError("deadlock detected"),
    Exception("database is locked")])
def test_transaction_when_it_always_loses_then_busy_and_nothing_is_raw(cell: Database, monkeypatch, original) -> None:
    monkeypatch.setattr(engine.time, "sleep", lambda _seconds: None)
    tried: list[int] = []

    def lose(_tx: object) -> None:
        tried.append(1)
        raise exc.OperationalError("UPDATE", {}, original)
    with pytest.raises(DatabaseBusy):
        cell.transact(lose)
    assert len(tried) == engine.TRIES and issubclass(DatabaseBusy, DatabaseUnavailable)  # operations wait, and go on


@pytest.mark.parametrize("schema, name", [
    ("cell", "runners"), ("cell", "operations"), ("cell", "owed"), ("cell", "servers"), ("cell", "services"),
    ("api", "ledger"), ("api", "resource_providers")])
def test_key_of_a_row_that_is_gone_never_comes_again(api: Database, cell: Database, schema: str, name: str) -> None:
    """Debts, leases and providers are told apart by it, and sweeps go by it."""
    with (api if schema == "api" else cell).reading() as tx:
        made = tx.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE name = '{name}'").scalar_one()
    assert re.search(r"\bid INTEGER\b.*AUTOINCREMENT", made)
    models = tables.metadata if schema == "cell" else api_tables.metadata
    assert models.tables[name].dialect_options["sqlite"]["autoincrement"]


# -- filters

@pytest.mark.parametrize("value", ["99999999999999999999", "\N{SUPERSCRIPT TWO}", "1.5", "", "-", "40000"])
@pytest.mark.parametrize("column", ["id", "power_state", "launch_index"])
def test_filter_when_the_value_is_no_such_number_then_nothing_matches(cell: Database, column: str, value: str) -> None:
    add_servers(cell, server_row())
    query = ServerListQuery(conditions=(Condition(column=column, value=value),), page=Page())
    with cell.reading() as tx:
        assert server_lists.select(tx, query, 10) == []


def test_filter_when_the_pattern_is_no_expression_then_invalid(cell: Database) -> None:
    add_servers(cell, server_row())
    query = ServerListQuery(conditions=(Condition(column="name", op="regex", value="[a"),))
    with cell.reading() as tx, pytest.raises(errors.api.PageBadRegex):
        server_lists.select(tx, query, 10)


# -- networks

def test_network_when_an_address_is_a_servers_then_it_and_its_pool_stay(cell: Database) -> None:
    network = add_network(cell)
    before = count(cell, tables.fixed_addresses)
    server, wanted = new_uuid(), (RequestedNetwork(network_id=network),)
    cell.transact(lambda tx: networks.bind(tx, [networks.AddressRequest(server, "vm", wanted)]))
    with pytest.raises(errors.network.InUse, match="1 of its addresses"):
        cell.transact(lambda tx: networks.delete(tx, network))
    assert count(cell, tables.fixed_addresses) == before
    cell.transact(lambda tx: networks.unbind(tx, [server]))
    cell.transact(lambda tx: networks.delete(tx, network))
    assert count(cell, tables.fixed_addresses) == count(cell, tables.networks) == 0


# -- versions in use

def test_children_of_no_server_ask_nothing(cell: Database) -> None:
    with cell.reading() as tx:
        assert servers.children(tx, []) == ({}, {}) and host_cleanups.hosts_with_pending(tx) == set()
