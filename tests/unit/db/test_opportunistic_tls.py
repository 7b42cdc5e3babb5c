"""What a new connection does when the server has changed its TLS."""

from __future__ import annotations

import types
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa

from nova.db.sql import opportunistic_tls

URL = "mysql+pymysql://nova@127.0.0.1:1/cell"
CONTEXT = object()


class FakeServer:
    """A dialect whose server answers as told, and the options of each attempt."""

    def __init__(self, *answers: object) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()
        self.loaded_dbapi = pymysql

    def connect(self, **options: object) -> object:
        self.asked.append(options)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def offered(known: bool | None) -> opportunistic_tls._OfferedTls:
    made = opportunistic_tls._OfferedTls(sa.create_engine(URL))
    made.options = None if known is None else {"ssl": CONTEXT} if known else {"ssl_disabled": True}
    return made


def connect(state: opportunistic_tls._OfferedTls, server: FakeServer) -> object:
    return state._connect(server, types.SimpleNamespace(), (), {"host": "h"})  # type: ignore[arg-type]


def test_connection_when_nothing_is_known_then_the_driver_finds_out() -> None:
    server = FakeServer()
    assert connect(offered(None), server) is None and server.asked == []


@pytest.mark.parametrize(("known", "option"), [(True, "ssl"), (False, "ssl_disabled")])
def test_connection_when_the_server_is_known_then_as_it_offers(known: bool, option: str) -> None:
    server = FakeServer("connection")
    assert connect(offered(known), server) == "connection"
    assert set(server.asked[0]) == {"host", option}


@pytest.mark.parametrize("code", opportunistic_tls.CHANGED)
def test_connection_when_the_server_has_changed_then_the_driver_finds_out_again(code: int) -> None:
    state = offered(True)
    assert connect(state, FakeServer(pymysql.err.OperationalError(code, "refused"))) is None
    assert state.options is None


def test_connection_when_the_server_does_not_answer_then_it_is_asked_once() -> None:
    state, server = offered(False), FakeServer(pymysql.err.OperationalError(2003, "refused"))
    with pytest.raises(pymysql.err.OperationalError):
        connect(state, server)
    assert state.options == {"ssl_disabled": True} and len(server.asked) == 1


@pytest.mark.parametrize("more", ["?ssl_ca=/x.pem", "?read_default_file=/etc/my.cnf", "?ssl_disabled=true"])
def test_engine_when_its_url_has_options_then_it_is_left_alone(more: str) -> None:
    engine = sa.create_engine(URL + more)
    before = len(list(engine.dialect.dispatch.do_connect))
    opportunistic_tls.arrange(engine)
    assert len(list(engine.dialect.dispatch.do_connect)) == before
