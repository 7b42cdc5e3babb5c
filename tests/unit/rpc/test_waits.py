"""How long connections wait for messages: they do not poll after each one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from oslo_messaging._drivers import amqpdriver, impl_rabbit

from nova.rpc.conductor_listener import IDLE_S, SETTLE_S, ConductorListener
from nova.rpc.passive_publishing import WAIT_S, PassivePublisher


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The waits that the library is asked for; there is no broker."""
    seen: list[float | None] = []
    monkeypatch.setattr(impl_rabbit.Connection, "__init__", lambda self: None)
    monkeypatch.setattr(impl_rabbit.Connection, "consume", lambda self, timeout: seen.append(timeout))
    return seen


@pytest.mark.parametrize(("asked", "waited"), [
    (amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN, WAIT_S), (2 * WAIT_S, 2 * WAIT_S), (None, None)])
def test_connection_when_the_library_polls_then_it_waits_longer(
        waits: list[float | None], asked: float | None, waited: float | None) -> None:
    PassivePublisher().consume(asked)
    assert waits == [waited]


def test_connection_when_messages_are_settled_then_it_waits_as_briefly_as_that_needs(
        waits: list[float | None]) -> None:
    driver = SimpleNamespace(prefetch_size=1, hosts=frozenset())
    connection = PassivePublisher()
    listener = ConductorListener(driver, connection)  # type: ignore[arg-type]
    connection.consume(SETTLE_S)
    assert waits == [SETTLE_S]
    driver.hosts = frozenset({"h1"})
    assert listener._current_timeout == SETTLE_S, "its consumers change"


class Polled(ConductorListener):
    """A listener whose library asks for a short poll."""

    def poll_s(self) -> float:
        """Return the seconds that it waits instead."""
        self._hosts, self._current_timeout = self.driver.hosts, amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN
        return self._current_timeout


def test_conductor_listener_when_a_message_came_then_it_does_not_poll(waits: list[float | None]) -> None:
    driver = SimpleNamespace(prefetch_size=1, hosts=frozenset())
    assert Polled(driver, PassivePublisher()).poll_s() == IDLE_S  # type: ignore[arg-type]
