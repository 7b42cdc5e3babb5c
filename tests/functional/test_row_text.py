"""TextRows that the database encodes as JSON have the values that the driver reads, on each database for real."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.server import server_lists, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Database
from nova.db.sql.row_text import TextRows
from nova.db.sql.types import Json, ident, key, long_text, moment, text, utc_now
from nova.model.base import Time, utcnow
from nova.model.server.servers import Condition, ServerListQuery
from nova.model.server.states import ACTIONS
from tests.fakes.rows import add_servers, new_uuid, server_row

VALUES = sa.Table(
    "row_text_values", sa.MetaData(), sa.Column("id", key(), primary_key=True), sa.Column("uuid", ident()),
    sa.Column("name", text()), sa.Column("note", long_text()), sa.Column("number", sa.Integer),
    sa.Column("big", sa.BigInteger), sa.Column("flag", sa.Boolean), sa.Column("at", moment()),
    sa.Column("facts", Json(dict[str, Any])), sa.Column("words", Json(tuple[str, ...])))


class ValueRow(NamedTuple):
    id: int
    uuid: str | None
    name: str | None
    note: str | None
    number: int | None
    big: int | None
    flag: bool | None
    at: Time | None
    facts: dict[str, Any] | None
    words: tuple[str, ...] | None


ROWS = TextRows(ValueRow, list(VALUES.c))
#: Every letter that JSON escapes, SQL quotes or drivers format, some of each length in UTF-8, and what looks like JSON.
TEXTS = ["", " ", "null", "true", "0", "[1]", '{"a": "b"}', "NULL", "'", '"', "\\", "\\\\\"", "%", "%s", "%%(a)s", ":a",
         *(chr(code) for code in range(1, 32)), "\x7f", "\x80", "é", "\u2028", "\ufeff", "日本語", "😀", "a\nb\tc\rd",
         "\\u0041", "x" * 255]
LONGEST = "é\"\\" * 5000


@pytest.fixture(scope="module")
def table(cell: Database) -> sa.Table:
    VALUES.create(cell.engine)
    return VALUES


def both(cell: Database, *where: sa.ColumnElement[bool]) -> tuple[list[ValueRow], list[ValueRow]]:
    """The rows as JSON, and as the driver reads them."""
    with cell.reading() as tx:
        encoded = ROWS.of(tx.execute(sa.select(ROWS.text).where(*where).order_by(VALUES.c.id)))
        read = tx.execute(sa.select(VALUES).where(*where).order_by(VALUES.c.id))
        return encoded, list(map(ValueRow._make, read))


def add(cell: Database, *rows: dict[str, Any]) -> None:
    cell.transact(lambda tx: (tx.execute(sa.delete(VALUES)), tx.execute(sa.insert(VALUES), list(rows))))


def test_row_text_when_texts_are_any_then_as_the_driver_reads_them(cell: Database, table: sa.Table) -> None:
    add(cell, *({"name": one, "note": one, "facts": {one: [one, {"a": one}]}, "words": [one, one]} for one in TEXTS))
    encoded, read = both(cell)
    assert encoded == read
    assert [one.name for one in encoded] == [one.note for one in encoded] == TEXTS
    assert [one.words for one in encoded] == [(one, one) for one in TEXTS]


def test_row_text_when_values_are_missing_then_none(cell: Database, table: sa.Table) -> None:
    add(cell, {"name": None, "flag": None, "words": None, "at": None, "number": None})
    encoded, read = both(cell)
    assert encoded == read == [ValueRow(read[0].id, *[None] * 9)]


@pytest.mark.parametrize("at", [datetime.datetime(2026, 11, 30, 1, 2, 3, 4), datetime.datetime(1970, 1, 1),
                                datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29)])
def test_row_text_when_numbers_and_times_are_extreme_then_as_the_driver_reads_them(
        cell: Database, table: sa.Table, at: datetime.datetime) -> None:
    add(cell, *({"number": sign * (2**31 - 1), "big": sign * (2**63 - 1), "flag": sign > 0, "at": at,
                 "uuid": new_uuid()} for sign in (1, -1)))
    encoded, read = both(cell)
    assert encoded == read
    assert [(one.number, one.big, one.flag, one.at) for one in encoded] == [
        (2**31 - 1, 2**63 - 1, True, at), (1 - 2**31, 1 - 2**63, False, at)]


def test_row_text_when_a_row_is_large_then_whole(cell: Database, table: sa.Table) -> None:
    add(cell, {"note": LONGEST, "facts": {"a": LONGEST * 20}})
    encoded, read = both(cell)
    assert encoded == read
    assert encoded[0].note == LONGEST and encoded[0].facts == {"a": LONGEST * 20}


def test_row_text_when_a_value_does_not_match_then_the_error_names_its_row_and_column(cell: Database, table: sa.Table
                                                                                     ) -> None:
    add(cell, {"words": ["a"]}, {"words": ["a", 1]})
    with cell.reading() as tx:
        found = list(tx.execute(sa.select(ROWS.text).order_by(VALUES.c.id)))
        damaged = tx.scalar(sa.select(sa.func.max(VALUES.c.id)))
    with pytest.raises(errors.daemon.DamagedRow) as refused:
        ROWS.of(found)
    assert refused.value.message == (f"The row with row_text_values.id = {damaged} is damaged: "
                                     "row_text_values.words[1]: Expected `str`, got `int`")


def test_row_text_when_a_text_is_no_json_or_missing_then_the_error_says_what_to_do() -> None:
    with pytest.raises(errors.daemon.DamagedRow, match="row_text_values.id = 7 is damaged"):
        ROWS.value('[7,"x')
    with pytest.raises(errors.daemon.RowTooLong, match="of row_text_values, which is longer than its max_allowed"):
        ROWS.value(None)


def test_begin_when_the_servers_row_is_damaged_then_the_error_names_it_and_nothing_changes(cell: Database) -> None:
    [uuid] = add_servers(cell, server_row())
    row = servers.servers.c
    begin = states.Begin(ACTIONS["reset_state"], uuid, {}, "req-1", None, None, 1, "")
    cell.transact(lambda tx: tx.execute(sa.text("UPDATE servers SET flavor = '{}' WHERE uuid = :uuid"), {"uuid": uuid}))
    with pytest.raises(errors.daemon.DamagedRow, match="servers.flavor: .* missing required field"):
        cell.transact(lambda tx: states.begin(tx, begin))
    with cell.reading() as tx:
        assert tx.scalar(sa.select(row.epoch).where(row.uuid == uuid)) == 1


def test_clock_when_in_a_row_text_then_a_time(cell: Database) -> None:
    class Now(NamedTuple):
        at: Time

    now = TextRows(Now, [utc_now()])
    with cell.reading() as tx:
        found = now.of(tx.execute(sa.select(now.text)))
    assert abs(found[0].at - utcnow()) < datetime.timedelta(minutes=5)


def test_servers_when_read_as_text_then_equal_to_their_columns(cell: Database) -> None:
    uuids = add_servers(cell, *(server_row(name=one[:200], description=one, user_data="aGk=") for one in TEXTS))
    columns = [servers.servers.c[name] for name in ServerRow.__struct_fields__]
    with cell.reading() as tx:
        encoded = servers.rows_of(tx, uuids)
        read = {row.uuid: ServerRow(*row) for row in
                tx.execute(sa.select(*columns).where(servers.servers.c.uuid.in_(uuids)))}
        listed = server_lists.select(tx, ServerListQuery(
            conditions=(Condition(column="name", op="eq", value="\\"),)), 10)
    assert encoded == read
    assert [one.description for one in listed] == ["\\"]
    assert [(one.host_disabled, one.host_seen_at) for one in listed] == [(None, None)]
