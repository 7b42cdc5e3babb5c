"""What an open connection keeps in memory."""

from __future__ import annotations

import types

import pytest
import sqlalchemy as sa

from nova.db.sql import engine


def connected(**attributes: object) -> types.SimpleNamespace:
    """Return a driver's connection after nova's event for a new one."""
    made = sa.create_engine("mysql+pymysql://nova@127.0.0.1:1/cell")
    engine._configure_server(made)
    cursor = types.SimpleNamespace(execute=lambda _statement: None, close=lambda: None)
    connection = types.SimpleNamespace(cursor=lambda: cursor, **attributes)
    record = types.SimpleNamespace(info={})
    *_of_the_dialect, ours = made.pool.dispatch.connect
    ours(connection, record)
    return connection


@pytest.mark.parametrize("context", [object(), None])
def test_connection_when_pymysql_is_connected_then_its_certificates_are_dropped(context: object) -> None:
    assert connected(ctx=context).ctx is None


def test_connection_when_another_driver_is_connected_then_it_is_unchanged() -> None:
    assert not hasattr(connected(), "ctx")
