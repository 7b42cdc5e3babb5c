"""Attempts of connections: the library prepares retries only for those that fail."""

from __future__ import annotations

from collections.abc import Callable

import oslo_messaging
import pytest
from oslo_messaging._drivers import amqp, common, impl_rabbit

from nova.rpc.passive_publishing import PassivePublisher


class Library:
    """Stands for the library's connection; ``asked``: its calls."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def ensure(self, method: Callable[[], object], retry: int | None = None, **callbacks: object) -> object:
        """Retry once."""
        self.asked.append((retry, callbacks))
        try:
            return method()
        except OSError as error:
            self.asked.append(error)
            return method()

    def set_transport_socket_timeout(self, timeout: float | None = None) -> None:
        self.asked.append(timeout)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(impl_rabbit.Connection, "__init__", lambda self: None)
    for name in ("ensure", "set_transport_socket_timeout"):
        of_library = getattr(made, name)
        monkeypatch.setattr(impl_rabbit.Connection, name,
                            lambda self, *args, of_library=of_library, **kwargs: of_library(*args, **kwargs))
    return made


@pytest.fixture
def connection(library: Library) -> PassivePublisher:
    made = PassivePublisher()
    made.channel, made.heartbeat_timeout_threshold = "channel", 30
    return made


class Method:
    """A method whose first attempts end with these errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.attempts = list(errors), 0

    def __call__(self) -> str:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_attempt_when_it_succeeds_then_no_retry_is_prepared(connection: PassivePublisher, library: Library) -> None:
    assert (connection.ensure(Method()), library.asked) == ("done", [])


def test_attempt_when_the_connection_was_lost_then_it_counts_as_the_librarys_first(
        connection: PassivePublisher, library: Library) -> None:
    lost, method = ConnectionResetError("lost"), Method(ConnectionResetError("lost"))
    method.errors = [lost]
    assert connection.ensure(method, 5, error_callback=print) == "done"
    assert library.asked == [(5, {"error_callback": print}), lost] and method.attempts == 2


@pytest.mark.parametrize("error", [
    amqp.AMQPDestinationNotFound("exchange"), common.Timeout(),
    oslo_messaging.MessageUndeliverable(ValueError(), "exchange", "key", "message")])
def test_attempt_when_its_error_is_a_result_then_it_is_raised_at_once(
        connection: PassivePublisher, library: Library, error: Exception) -> None:
    method = Method(error)
    with pytest.raises(type(error)):
        connection.ensure(method)
    assert (method.attempts, library.asked) == (1, [])


def test_attempt_when_the_library_gives_up_then_its_error_is_raised(
        connection: PassivePublisher, library: Library) -> None:
    with pytest.raises(ValueError, match="a bug"):
        connection.ensure(Method(ValueError("a bug")))
    assert library.asked == [(None, {})]


def test_attempt_when_there_is_no_channel_then_the_library_makes_it(
        connection: PassivePublisher, library: Library) -> None:
    connection.channel = None
    assert (connection.ensure(Method()), library.asked) == ("done", [(None, {})])


def test_timeout_when_it_is_set_already_then_it_is_not_set_again(
        connection: PassivePublisher, library: Library) -> None:
    for timeout in (None, 60, None, 15, 15, None):
        connection.set_transport_socket_timeout(timeout)
    assert library.asked == [None, 15, None], "heartbeats limit it to 30"
    connection.channel = "channel of a new connection"
    connection.set_transport_socket_timeout()
    assert library.asked == [None, 15, None, None]


def test_timeout_when_there_are_no_heartbeats_then_it_is_the_callers(
        connection: PassivePublisher, library: Library) -> None:
    connection.heartbeat_timeout_threshold = 0
    for timeout in (None, 60, None):
        connection.set_transport_socket_timeout(timeout)
    assert library.asked == [None, 60, None]
