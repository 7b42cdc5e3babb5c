"""From dnsmasq's script to the conductor: nothing is lost, whoever is down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from nova.errors import NotFound
from nova.network import dhcpbridge, spool
from nova.network.leases import HeldLease, LeaseBook, LeaseCourier, LeaseEvent, LeaseSocket, init_lines, latest
from tests.fakes.conductor_host import FakeConductorHost
from tests.fakes.network import guest

MAC, ADDRESS = "fa:16:3e:00:01:03", "10.0.1.3"


def event(action: str = "add", **fields) -> LeaseEvent:
    return LeaseEvent(**{"network": "net-1", "action": action, "mac": MAC, "address": ADDRESS, **fields})


@pytest.fixture
def bridge(tmp_path, monkeypatch):
    """Calls nova-dhcpbridge as dnsmasq does."""
    monkeypatch.setenv("NOVA_NETWORKS_PATH", str(tmp_path))
    monkeypatch.setenv("NETWORK_ID", "net-1")
    monkeypatch.setenv("DNSMASQ_LEASE_EXPIRES", "2000000000")
    return lambda *words: dhcpbridge.main(list(words))


@pytest.fixture
def conductor() -> FakeConductorHost:
    return FakeConductorHost()


@pytest.fixture
def courier(tmp_path, conductor) -> LeaseCourier:
    return LeaseCourier(conductor.client("host1"), "host1", tmp_path, LeaseBook(tmp_path / "leases.json"))


def reported(conductor: FakeConductorHost) -> list[tuple[str, str]]:
    return [(lease.action, lease.address) for lease in conductor.leases]


def test_lease_when_nova_network_is_down_is_told_at_its_next_start(bridge, courier, conductor):
    assert bridge("add", MAC, ADDRESS, "vm3") == 0
    assert bridge("del", MAC, "10.0.1.9") == 0
    courier.deliver()
    assert reported(conductor) == [("add", ADDRESS), ("del", "10.0.1.9")]
    assert conductor.leases[0].hostname == "vm3" and conductor.leases[0].host == "host1"
    courier.deliver()
    assert len(conductor.leases) == 2


def test_lease_when_the_conductor_is_away_is_told_later(bridge, courier, conductor):
    bridge("add", MAC, ADDRESS)
    conductor.away = True
    with pytest.raises(Exception, match="conductor"):
        courier.deliver()
    bridge("del", MAC, "10.0.1.9")
    conductor.away = False
    courier.deliver()
    assert reported(conductor) == [("add", ADDRESS), ("del", "10.0.1.9")]


def test_lease_when_killed_after_taking_it_is_told_by_the_next(bridge, tmp_path, courier, conductor):
    bridge("add", MAC, ADDRESS)
    assert len(spool.take(str(tmp_path))) == 1  # and then it was killed
    courier.deliver()
    assert reported(conductor) == [("add", ADDRESS)]


def test_lease_the_conductor_does_not_know_is_told_once(bridge, courier, conductor):
    bridge("add", MAC, ADDRESS)
    conductor.given(report_lease=NotFound())
    courier.deliver()
    conductor.given(report_lease=None)
    courier.deliver()
    assert conductor.leases == []


def test_leases_of_one_address_and_mac_are_told_as_one(bridge, courier, conductor):
    for word in ("add", "del", "add", "old"):
        bridge(word, MAC, ADDRESS)
    bridge("add", "fa:16:3e:00:01:77", ADDRESS)
    courier.deliver()
    assert [(lease.action, lease.mac) for lease in conductor.leases] == [("add", MAC), ("add", "fa:16:3e:00:01:77")]


def test_torn_lines_in_the_spool_are_passed_over(tmp_path, bridge, courier, conductor):
    (tmp_path / spool.SPOOL).write_text('{"network": "net-1", "act\n[1]\n{"network": "net-1"}\n')
    bridge("add", MAC, ADDRESS)
    courier.deliver()
    assert reported(conductor) == [("add", ADDRESS)]


def test_latest_keeps_the_last_word_in_order():
    events = [event(), event(address="10.0.1.4"), event("del"), event("old")]
    assert [(item.action, item.address) for item in latest(events)] == [("add", "10.0.1.4"), ("del", ADDRESS)]


def test_book_survives_its_process_and_a_broken_file(tmp_path):
    path = tmp_path / "leases.json"
    LeaseBook(path).learn([event(expires=5), event(address="10.0.1.4"), event("del", address="10.0.1.4")])
    assert LeaseBook(path).held("net-1") == (HeldLease(mac=MAC, address=ADDRESS, expires=5),)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert LeaseBook(path).held("net-1") == ()


def test_book_when_another_mac_has_the_address_ignores_the_first_ones_end(tmp_path):
    book = LeaseBook(tmp_path / "leases.json")
    book.learn([event(), event(mac="fa:16:3e:00:01:77"), event("del")])
    assert [held.mac for held in book.held("net-1")] == ["fa:16:3e:00:01:77"]
    book.forget("net-1", [("fa:16:3e:00:01:77", ADDRESS)])
    assert book.held("net-1") == ()


def test_init_lines_are_what_is_leased_and_still_right():
    hosts = [guest(3), guest(4, leased=True), guest(5), guest(6)]
    held = [HeldLease(mac=MAC, address=ADDRESS, hostname="vm3", expires=5000),
            HeldLease(mac="fa:16:3e:99:99:99", address="10.0.1.5", expires=5000),
            HeldLease(mac="fa:16:3e:00:01:06", address="10.0.1.6", expires=10)]
    assert init_lines(hosts, held, now=1000.9, lease_time_s=60).splitlines() == [
        "5000 fa:16:3e:00:01:03 10.0.1.3 vm3 *",
        "1060 fa:16:3e:00:01:04 10.0.1.4 * *",
        "1060 fa:16:3e:00:01:06 10.0.1.6 * *"]


@pytest.fixture
def listening(tmp_path, courier):
    server = LeaseSocket(tmp_path, courier, lambda network: f"5000 {MAC} {ADDRESS} * * of {network}\n")
    server.start()
    yield server
    server.stop()


def test_init_prints_what_nova_network_says(bridge, listening, capsys):
    assert bridge("init") == 0
    assert capsys.readouterr().out == f"5000 {MAC} {ADDRESS} * * of net-1\n"


def test_init_when_nova_network_is_down_prints_nothing(bridge, capsys):
    assert bridge("init") == 0
    assert capsys.readouterr() == ("", "")


def test_lease_wakes_the_courier(bridge, listening, courier, conductor):
    from nova import concurrency

    concurrency.spawn(courier.run)
    try:
        bridge("add", MAC, ADDRESS)
        deadline = time.monotonic() + 5
        while not conductor.leases and time.monotonic() < deadline:
            time.sleep(0.01)
        assert reported(conductor) == [("add", ADDRESS)]
    finally:
        courier.stop()


def test_lease_when_the_disk_is_full_goes_over_the_socket(bridge, listening, courier, conductor, monkeypatch):
    def full(directory, words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "append", full)
    assert bridge("add", MAC, ADDRESS) == 0
    courier.deliver()
    courier.deliver()
    assert reported(conductor) == [("add", ADDRESS)]


@pytest.mark.parametrize("rubbish", [b"\n", b"[]\n", b"no json\n", b'{"word": "event", "event": {}}\n', b"x" * 70000])
def test_socket_when_it_hears_rubbish_listens_on(tmp_path, bridge, listening, rubbish, capsys):
    import contextlib
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / spool.SOCKET))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(10)
    assert bridge("init") == 0 and capsys.readouterr().out


def test_socket_is_for_root_alone_and_its_path_may_be_long(tmp_path, courier, monkeypatch, capsys):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    server = LeaseSocket(deep, courier, lambda network: "line\n")
    server.start()
    try:
        assert (deep / spool.SOCKET).stat().st_mode & 0o777 == 0o600
        assert spool.ask(str(deep), {"word": "init", "network": "n"}, 2.0) == "line\n"
    finally:
        server.stop()


@pytest.mark.parametrize("words", [[], ["add"], ["add", MAC], ["del"]])
def test_dhcpbridge_when_called_wrongly_says_how(bridge, words, capsys):
    assert bridge(*words) == 2
    assert "usage" in capsys.readouterr().err


def test_dhcpbridge_without_its_environment_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.delenv("NETWORK_ID", raising=False)
    assert dhcpbridge.main(["init"]) == 2
    assert "NETWORK_ID" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["old", MAC, ADDRESS], ["tftp", "1", "2", "3"], ["arp-add", MAC, ADDRESS]])
def test_dhcpbridge_passes_over_other_words(tmp_path, bridge, words):
    assert bridge(*words) == 0
    assert not (tmp_path / spool.SPOOL).exists()


def test_dhcpbridge_imports_nothing_heavy(tmp_path):
    code = ("import sys, json; import nova.network.dhcpbridge; "
            "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))")
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                                       env={**os.environ, "PYTHONPATH": os.getcwd()}).stdout)
    assert not {"oslo_config", "oslo_messaging", "sqlalchemy", "msgspec", "eventlet", "pyroute2"} & set(loaded)
