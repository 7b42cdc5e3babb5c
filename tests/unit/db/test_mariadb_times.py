"""Times as MariaDB sends them: PyMySQL parses them with functions that nova gives it."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pymysql
import pytest
from pymysql.constants import FIELD_TYPE

from nova.db.sql.engine import Database, DatabaseUnavailable


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """The function for times that a connection is given."""
    given: dict[object, Callable[[str], object]] = {}

    def connect(**options: dict[object, Callable[[str], object]]) -> None:
        given.update(options["conv"])
        raise pymysql.OperationalError(2003, "no server")
    monkeypatch.setattr(pymysql, "connect", connect)
    with pytest.raises(DatabaseUnavailable), Database("mysql://nova@127.0.0.1:1/cell").reading():
        pass
    assert given[FIELD_TYPE.LONG]("7") == 7, "the others are PyMySQL's"
    return given[FIELD_TYPE.DATETIME]


@pytest.mark.parametrize(("text", "time"), [
    ("2013-09-03 04:01:32", datetime.datetime(2013, 9, 3, 4, 1, 32)),
    ("2013-09-03 04:01:32.774549", datetime.datetime(2013, 9, 3, 4, 1, 32, 774549)),
    ("2013-09-03 04:01:32.500", datetime.datetime(2013, 9, 3, 4, 1, 32, 500000)),
    ("0000-00-00 00:00:00", "0000-00-00 00:00:00")])
def test_time_when_mariadb_sends_it_then_it_is_parsed_as_by_pymysql(
        parse: Callable[[str], object], text: str, time: object) -> None:
    assert parse(text) == time == pymysql.converters.convert_datetime(text)
