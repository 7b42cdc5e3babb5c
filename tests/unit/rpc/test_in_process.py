"""The bus within one process: as over a broker, whatever a caller or a server does."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.rpc import bus as buses
from nova.rpc.buses import control_bus, hosts_bus
from nova.rpc.in_process import InProcessBus, exchange
from nova.rpc.interface import Contract, Timeout, call, cast

SECRET = "s" * 64


class Office(Contract):
    topic, version = "office", "1.0"

    @call(timeout=Timeout.SHORT)
    def add(self, one: int, other: int) -> int:
        """The sum."""

    @call(timeout=Timeout.SHORT)
    def wait(self) -> str:
        """Some time."""

    @cast(fanout=True)
    def tell(self, word: str) -> None:
        """Everybody."""


class HostOffice(Contract):
    topic, version, addressed_by, with_hosts = "host-office", "1.0", "host", True

    @call(timeout=Timeout.LONG)
    def work(self, host: str) -> str:
        """Which host worked."""


class Clerk:
    def __init__(self, name: str = "") -> None:
        self.name, self.go, self.heard = name, threading.Event(), []

    def add(self, one: int, other: int) -> int:
        return one + other

    def wait(self) -> str:
        self.go.wait(10)
        return self.name

    def tell(self, word: str) -> None:
        self.heard.append(word)

    def work(self, host: str) -> str:
        self.go.wait(10)
        return f"{host}: {self.name}"


@pytest.fixture
def conf(tmp_path: Any) -> Any:
    class Conf(SimpleNamespace):
        def __contains__(self, name: str) -> bool:
            return False
    return Conf(hosts_transport_url=f"local://{tmp_path}", long_rpc_timeout=60, long_rpc_silence=4)


@pytest.fixture
def keys() -> Any:
    return lambda host, introducing=False: (SECRET,)


def serve(bus: Any, contract: type[Contract], clerk: Clerk, size: int = 8) -> Any:
    server = bus.server(contract, clerk, size)
    server.start()
    return server


def host(conf: Any, keys: Any, name: str, clerk: Clerk) -> Any:
    bus = hosts_bus(conf, name, keys)
    serve(bus, HostOffice, clerk)
    return bus


def test_call_when_the_url_is_local_then_it_is_answered_without_a_broker(conf) -> None:
    bus = control_bus(conf, "ctl")
    serve(bus, Office, Clerk())
    assert isinstance(bus, InProcessBus)
    assert control_bus(conf, "other").client(Office).add(2, 3) == 5


def test_call_when_two_clouds_are_in_one_process_then_they_do_not_meet(conf, monkeypatch) -> None:
    monkeypatch.setattr(buses, "ABSENT_S", 0)
    serve(control_bus(conf, "ctl"), Office, Clerk())
    other = type(conf)(**{**vars(conf), "hosts_transport_url": "local://other"})
    with pytest.raises(errors.daemon.RpcNotDelivered):
        control_bus(other, "ctl").client(Office).add(1, 1)


def test_call_when_an_argument_is_of_another_type_then_it_is_refused_as_over_the_wire(conf) -> None:
    bus = control_bus(conf, "ctl")
    serve(bus, Office, Clerk())
    with pytest.raises(errors.Bug, match="contract"):
        bus.client(Office).add("2", 3)


def test_call_when_the_server_comes_later_then_it_is_answered(conf) -> None:
    bus = control_bus(conf, "ctl")
    threading.Timer(0.3, lambda: serve(bus, Office, Clerk())).start()
    assert bus.client(Office).add(1, 2) == 3


def test_call_when_its_time_is_over_then_nobody_waits_longer(conf, monkeypatch) -> None:
    monkeypatch.setattr(buses, "SHORT_S", 1)
    clerk, bus = Clerk(), control_bus(conf, "ctl")
    serve(bus, Office, clerk)
    with pytest.raises(errors.daemon.RpcNoAnswer):
        bus.client(Office).wait()
    clerk.go.set()


def test_calls_when_two_serve_then_they_take_turns(conf) -> None:
    clerks = [Clerk("one"), Clerk("two")]
    for clerk in clerks:
        clerk.go.set()
        serve(control_bus(conf, clerk.name), Office, clerk)
    client = control_bus(conf, "ctl").client(Office)
    assert {client.wait() for _ in range(2)} == {"one", "two"}


def test_fanout_when_two_serve_then_both_hear_it(conf) -> None:
    clerks = [Clerk("one"), Clerk("two")]
    for clerk in clerks:
        serve(control_bus(conf, clerk.name), Office, clerk)
    control_bus(conf, "ctl").client(Office).tell("news")
    until = time.monotonic() + 5
    while not all(clerk.heard for clerk in clerks) and time.monotonic() < until:
        time.sleep(0.01)
    assert [clerk.heard for clerk in clerks] == [["news"], ["news"]]


def test_fanout_when_nobody_serves_then_it_is_no_error(conf) -> None:
    control_bus(conf, "ctl").client(Office).tell("news")


def test_fanout_when_one_of_them_stops_at_that_moment_then_the_others_hear_it(conf) -> None:
    gone, clerk = serve(control_bus(conf, "one"), Office, Clerk("one")), Clerk("two")
    gone.wait()  # its threads have ended, and it has not left the exchange yet
    serve(control_bus(conf, "two"), Office, clerk)
    control_bus(conf, "ctl").client(Office).tell("news")
    until = time.monotonic() + 5
    while not clerk.heard and time.monotonic() < until:
        time.sleep(0.01)
    assert clerk.heard == ["news"]


def test_stop_when_a_call_runs_then_it_is_answered_and_the_next_one_is_not_taken(conf, monkeypatch) -> None:
    monkeypatch.setattr(buses, "ABSENT_S", 0)
    clerk, bus = Clerk("one"), control_bus(conf, "ctl")
    server, client, answers = serve(bus, Office, clerk), bus.client(Office), []
    asking = threading.Thread(target=lambda: answers.append(client.wait()))
    asking.start()
    time.sleep(0.1)
    threading.Timer(0.2, clerk.go.set).start()
    bus.stop([server], 5)
    asking.join(5)
    assert answers == ["one"]
    with pytest.raises(errors.daemon.RpcNotDelivered):
        client.add(1, 1)


def test_order_when_the_host_bears_another_secret_then_it_is_refused(conf, keys) -> None:
    clerk = Clerk("thief")
    clerk.go.set()
    host(conf, lambda name, introducing=False: ("x" * 64,), "host1", clerk)
    with pytest.raises(errors.Unavailable):
        hosts_bus(conf, "ctl", keys, conductor=True).client(HostOffice).work("host1")


def test_order_when_each_host_serves_then_the_one_that_is_named_works(conf, keys) -> None:
    for name in ("host1", "host2"):
        clerk = Clerk(f"clerk of {name}")
        clerk.go.set()
        host(conf, keys, name, clerk)
    conductor = hosts_bus(conf, "ctl", keys, conductor=True).client(HostOffice)
    assert [conductor.work(name) for name in ("host1", "host2")] == ["host1: clerk of host1", "host2: clerk of host2"]


def test_order_when_its_host_is_cut_off_then_who_waits_is_told_at_once(conf, keys) -> None:
    clerk = Clerk("one")
    bus = host(conf, keys, "host1", clerk)
    threading.Timer(0.2, bus.close).start()
    began = time.monotonic()
    with pytest.raises(errors.daemon.RpcNoAnswer):
        hosts_bus(conf, "ctl", keys, conductor=True).client(HostOffice).work("host1")
    assert time.monotonic() - began < 5
    clerk.go.set()  # what it ends now reaches nobody


def test_call_when_its_own_bus_is_closed_then_nothing_is_sent(conf) -> None:
    bus = control_bus(conf, "ctl")
    serve(bus, Office, Clerk())
    bus.close()
    with pytest.raises(errors.daemon.RpcBrokerAway):
        bus.client(Office).add(1, 1)


def test_call_when_a_fault_is_wanted_then_it_is_the_answer(conf) -> None:
    bus = control_bus(conf, "ctl")
    serve(bus, Office, Clerk())

    def refuse(asking: Any) -> None:
        raise errors.daemon.RpcNoAnswer(seconds=1, **buses.names_of(asking))
    exchange(conf.hosts_transport_url).intercept = refuse
    with pytest.raises(errors.daemon.RpcNoAnswer):
        bus.client(Office).add(1, 1)


def test_echo_when_a_host_waits_for_it_then_it_is_heard(conf, keys) -> None:
    bus = host(conf, keys, "host1", Clerk())
    bus.watchdog.expect()
    assert bus.watchdog.silent_s > 0
    hosts_bus(conf, "ctl", keys, conductor=True).send_echo(HostOffice, "host1")
    assert bus.watchdog.silent_s == 0


def test_reach_when_nobody_serves_then_it_says_so(conf) -> None:
    bus = control_bus(conf, "ctl")
    with pytest.raises(errors.daemon.RpcNotDelivered):
        bus.reach(Office)
    serve(bus, Office, Clerk())
    bus.reach(Office)
