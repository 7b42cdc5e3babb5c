"""nova-network on a real kernel: real bridge, dnsmasq, iptables and DHCP client, in network namespaces of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests import sampling
from tests.fakes.network import guest
from tests.machine.network_cases import Cloud, eventually, obstacle

SECOND_GUEST_MAC = "fa:16:3e:00:01:99"

pytestmark = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))


# as the daemon runs by default, and by the switch; the other files of networks run it by the switch
@pytest.fixture(params=["eventlet", pytest.param("threads", marks=pytest.mark.long)])
def cloud(tmp_path, request, monkeypatch) -> Iterator[Cloud]:
    monkeypatch.setenv("NOVA_CONCURRENCY", request.param)
    made = Cloud(tmp_path)
    try:
        made.order(guest(3), version=1)
        made.start()
        yield made
    finally:
        made.remove()


def test_guest_gets_its_address_and_reaches_its_metadata(cloud):
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    cloud.plug()
    lease = cloud.lease()
    assert (lease["ip"], lease["router"], lease["mask"], lease["hostname"]) == ("10.0.1.3", "10.0.1.1", "24", "vm3")
    assert lease["dns"] == "10.0.1.1" and lease["domain"] == "novalocal" and lease["lease"] == "600"
    eventually(lambda: cloud.reported() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")

    cloud.host.respond("192.0.2.9", 8775)
    assert cloud.get("http://169.254.169.254/latest/") == "10.0.1.3", "the service sees the guest's own address"

    cloud.host.start(sys.executable, "-m", "http.server", "8080", stderr=subprocess.DEVNULL)
    eventually(lambda: "8080" in cloud.host("ss", "-ltn"), "a service of the host listens")
    with pytest.raises(AssertionError):
        cloud.guest("curl", "-s", "-m", "1", "http://10.0.1.1:8080/")
    assert cloud.host("curl", "-s", "-m", "5", "http://10.0.1.1:8080/")


def test_guest_that_is_unknown_gets_no_address(cloud):
    assert cloud.serve(guest(4), version=2) == "ok", cloud.log()
    cloud.plug()
    assert cloud.lease(tries=2) == {}


def test_serve_again_changes_nothing(cloud):
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    def found() -> tuple[object, ...]:
        addresses = cloud.host("ip", "-o", "addr").replace(" tentative", "")  # the kernel's own, for a second
        return cloud.dnsmasqs(), cloud.rules(), addresses
    before = found()
    counters = cloud.counters()
    assert len(before[0]) == 1 and "DNAT --to-destination 192.0.2.9:8775" in before[1]
    for version in (1, 2):
        assert cloud.serve(guest(3), version=version) == "ok"
    assert found() == before
    assert cloud.missing() == [], "what iptables-save prints is what we wrote"
    after = cloud.counters()
    assert after.keys() == counters.keys() and all(after[rule] >= counters[rule] for rule in counters), "kept"


def test_restart_finds_the_dnsmasq_and_the_leases(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    assert cloud.lease()
    eventually(lambda: cloud.reported(), "the lease is told")
    before = (cloud.dnsmasqs(), cloud.rules())
    cloud.kill()
    assert cloud.lease()["ip"] == "10.0.1.3", "without nova-network guests are served on"
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok"
    assert (cloud.dnsmasqs(), cloud.rules()) == before
    assert "old" not in (cloud.state / "script.log").read_text(), "known leases start no Python"

    os.kill(before[0][0], signal.SIGKILL)
    eventually(lambda: cloud.dnsmasqs() == [], "it has ended")
    eventually(lambda: cloud.serve(guest(3), version=1) == "ok", "its sockets are closed, and another one starts")
    assert cloud.dnsmasqs() not in ([], before[0])
    released = cloud.guest("ip", "-o", "-4", "addr", "show", "dev", "eth0")
    assert "10.0.1.3" in released
    cloud.host("dhcp_release", "br1", "10.0.1.3", guest(3).mac)
    eventually(lambda: cloud.reported()[-1].startswith("del "), "the new dnsmasq had the lease: its end is told")


def test_lease_while_nova_network_is_down_is_told_at_its_start(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    cloud.kill()
    assert cloud.lease()
    assert cloud.reported() == []
    cloud.start()
    eventually(lambda: cloud.reported() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")


def test_lease_while_the_conductor_is_down_is_told_later(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    (cloud.state / "down").touch()
    assert cloud.lease()
    time.sleep(0.3)
    assert cloud.reported() == []
    (cloud.state / "down").unlink()
    eventually(lambda: cloud.reported() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")


def test_released_address_goes_to_the_next_guest_at_once(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    assert cloud.lease()["ip"] == "10.0.1.3"
    eventually(lambda: len(cloud.reported()) == 1, "the lease is told")
    cloud.card(SECOND_GUEST_MAC)
    assert cloud.serve(guest(3, mac=SECOND_GUEST_MAC, hostname="next"), version=2) == "ok"
    lease = cloud.lease()
    assert (lease["ip"], lease["hostname"]) == ("10.0.1.3", "next")
    eventually(lambda: cloud.reported()[1:] == ["del fa:16:3e:00:01:03 10.0.1.3 vm3",
                                                f"add {SECOND_GUEST_MAC} 10.0.1.3 next"], "both are told")


@pytest.mark.parametrize("delay_ms", sampling.drawn([0, 60, 5, 150, 20, 400], 2))
def test_killed_at_any_moment_it_converges(cloud, delay_ms):
    """It was just started, and is told of a new guest and another MTU: killed while it works on them."""
    cloud.order(guest(3), guest(4), version=2, mtu=1400)
    cloud.tell()
    time.sleep(delay_ms / 1000)
    cloud.kill()
    cloud.start()
    wanted = "fa:16:3e:00:01:03,vm3.novalocal,10.0.1.3\nfa:16:3e:00:01:04,vm4.novalocal,10.0.1.4\n"
    eventually(lambda: cloud.hosts_file() == wanted and len(cloud.dnsmasqs()) == 1, "served")
    assert cloud.serve(guest(3), guest(4), version=2, mtu=1400) == "ok", cloud.log()
    assert len(cloud.dnsmasqs()) == 1
    assert cloud.rules().count("--to-destination 192.0.2.9:8775") == 1
    cloud.plug()
    lease = cloud.lease()
    assert lease["ip"] == "10.0.1.3"


def test_interface_with_the_hosts_address_becomes_a_port_and_the_host_stays_reachable(cloud):
    cloud.host("ip", "addr", "add", "192.0.2.77/24", "dev", "out1")
    assert cloud.serve(guest(3), version=2, bridge_interface="out1") == "ok", cloud.log()
    shown = cloud.host("ip", "-o", "-4", "addr", "show", "dev", "br1").splitlines()
    first, *others = [line.split()[3] for line in shown]
    assert first == "10.0.1.1/24" and others == ["192.0.2.77/24"]
    assert "192.0.2.77" not in cloud.host("ip", "-o", "-4", "addr", "show", "dev", "out1")


def test_foreign_rules_are_left_alone(cloud):
    cloud.host("iptables", "-N", "theirs")
    cloud.host("iptables", "-A", "theirs", "-s", "203.0.113.0/24", "-j", "DROP")
    cloud.host("iptables", "-I", "FORWARD", "-j", "theirs")
    foreign = [line for line in cloud.rules().splitlines() if "theirs" in line]
    assert cloud.serve(guest(3), version=1) == "ok"
    assert cloud.serve(guest(3), version=1, label="other", cidr="10.0.1.0/24") == "ok"
    assert [line for line in cloud.rules().splitlines() if "theirs" in line] == foreign


def test_network_that_is_gone_is_taken_down_at_the_next_start(cloud):
    cloud.serve(guest(3), version=1)
    cloud.kill()
    (cloud.state / "orders.json").write_bytes(b"[]")
    cloud.start()
    eventually(lambda: cloud.dnsmasqs() == [], "no DHCP server is left")
    eventually(lambda: "10.0.1." not in cloud.rules(), "no rule is left")
    assert "10.0.1.1" not in cloud.host("ip", "-o", "addr")
