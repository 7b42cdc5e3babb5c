"""The bus without a broker: who is asked, and that a message shows a process to hear."""

from __future__ import annotations

import time
import types
from collections.abc import Iterator

import pytest

from nova.rpc.client import Peers
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.hearing import Hearing
from nova.rpc.in_process import Exchange, InProcessBus, InProcessServer


class Answers:
    """A receiver that says what it was asked."""

    def handle(self, name: str, envelope: dict[str, object]) -> str:
        return name


@pytest.fixture
def served() -> Iterator[InProcessServer]:
    server = InProcessServer(Exchange(), ComputeRPC, "host1", Answers(), 1, Hearing())  # type: ignore[arg-type]
    server.start()
    yield server
    server.stop()
    server.wait()


def test_server_when_a_message_comes_that_was_expected_then_its_process_hears(served: InProcessServer) -> None:
    served.hearing.expect()
    time.sleep(0.01)
    assert served.hearing.silent_s > 0
    method = next(iter(ComputeRPC.methods.values()))
    assert served.take(method, {}).result(10) == method.name
    assert served.hearing.silent_s == 0


def test_bus_when_an_echo_is_sent_to_a_host_then_that_host_hears_and_no_other() -> None:
    conf = types.SimpleNamespace(hosts_transport_url="in-process:echo")
    one, two = (InProcessBus(conf, host, Peers({})) for host in ("host1", "host2"))  # type: ignore[arg-type]
    servers = [bus._serving(ComputeRPC, Answers(), 1) for bus in (one, two)]  # type: ignore[arg-type]
    try:
        for bus, server in zip((one, two), servers, strict=True):
            server.start()
            bus.hearing.expect()
        time.sleep(0.01)
        one.send_echo(ComputeRPC, "host2")
        assert (one.hearing.silent_s > 0, two.hearing.silent_s) == (True, 0)
    finally:
        for server in servers:
            server.stop()
            server.wait()
