"""nova-network on a real kernel: real bridge, dnsmasq, iptables and DHCP client, in network namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nova.model.networks import DhcpHost, NetworkOnHost
from nova.network import firewall
from nova.network.options import NetworkOptions
from nova.privileged import iptables
from tests.fakes.network import guest, network

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = ("ip", "dnsmasq", "dhcp_release", "iptables-save", "iptables-restore", "udhcpc", "curl")
SECOND_GUEST_MAC = "fa:16:3e:00:01:99"
PATIENCE_S = 15.0


def _obstacle() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        return f"needs {', '.join(missing)} (Debian: dnsmasq-base dnsmasq-utils iptables udhcpc curl)"
    probe = subprocess.run(["unshare", "-n", "ip", "link", "add", "br0", "type", "bridge"], capture_output=True)
    return None if probe.returncode == 0 else "this kernel gives no network namespaces or bridges"


pytestmark = pytest.mark.skipif(_obstacle() is not None, reason=str(_obstacle()))


def eventually(check, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < deadline, f"after {PATIENCE_S} s still not so: {what}"
        time.sleep(0.05)


def run(*argv: str, **more) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, **more)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


class Namespace:
    """A network namespace; what still runs in it ends with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        run("ip", "netns", "add", name)
        self("ip", "link", "set", "lo", "up")

    def __call__(self, *argv: str) -> str:
        return run("ip", "netns", "exec", self.name, *argv)

    def start(self, *argv: str, **more) -> subprocess.Popen[str]:
        return subprocess.Popen(["ip", "netns", "exec", self.name, *argv], text=True, cwd=CHECKOUT,
                                env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, **more)

    def pids(self) -> list[int]:
        return [int(pid) for pid in run("ip", "netns", "pids", self.name).split()]

    def remove(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run("ip", "netns", "del", self.name)


class Cloud:
    """One network host and one guest's place on its bridge."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.host, self.guest = (Namespace(f"nova-{kind}-{os.getpid()}") for kind in ("host", "guest"))
        self.daemon: subprocess.Popen[str] | None = None
        script = state / "nova-dhcpbridge"
        script.write_text(f"#!/bin/sh\necho \"$1\" >> {state}/script.log\n"
                          f"PYTHONPATH={CHECKOUT} exec {sys.executable} -m nova.network.dhcpbridge \"$@\"\n")
        script.chmod(0o755)
        (state / "settings.json").write_text(json.dumps({
            "dhcpbridge": str(script), "metadata_host": "192.0.2.9", "routing_source_ip": "192.0.2.9",
            "public_interface": "out0", "dhcp_lease_time": 600}))
        self._wire()

    def _wire(self) -> None:
        """The outside: 192.0.2.9 on the host. The guest's card: one end of a veth, the other to be plugged."""
        self.host("ip", "link", "add", "out0", "type", "veth", "peer", "name", "out1")
        self.host("ip", "addr", "add", "192.0.2.9/24", "dev", "out0")
        for device in ("out0", "out1"):
            self.host("ip", "link", "set", device, "up")
        self.host("ip", "link", "add", "tap1", "type", "veth", "peer", "name", "eth0", "netns", self.guest.name)
        self.host("ip", "link", "set", "tap1", "up")
        self.card(guest(3).mac)

    def card(self, mac: str) -> None:
        """Another guest with that MAC takes the place."""
        self.guest("ip", "addr", "flush", "dev", "eth0")
        self.guest("ip", "link", "set", "eth0", "down")
        self.guest("ip", "link", "set", "eth0", "address", mac)
        self.guest("ip", "link", "set", "eth0", "up")

    # --- nova-network ---
    def start(self) -> None:
        with open(self.state / "daemon.log", "a") as log:
            self.daemon = self.host.start(sys.executable, "-W", "ignore", "tests/machine/network_host_process.py",
                                          str(self.state), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self.daemon.stdout is not None and self.daemon.stdout.readline() == "started\n", self.log()

    def kill(self) -> None:
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
            for stream in (self.daemon.stdin, self.daemon.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
            self.daemon = None

    def order(self, *guests: DhcpHost, version: int, **fields) -> None:
        """What the conductor says from now on."""
        values = (NetworkOnHost(network=network(1, **fields), addresses=guests, version=version),)
        (self.state / "orders.json").write_bytes(msgspec.json.encode(values))

    def tell(self) -> None:
        self.daemon.stdin.write("serve\n")
        self.daemon.stdin.flush()

    def serve(self, *guests: DhcpHost, version: int, **fields) -> str:
        self.order(*guests, version=version, **fields)
        self.tell()
        return self.daemon.stdout.readline().strip()

    # --- what is there ---
    def plug(self) -> None:
        self.host("ip", "link", "set", "tap1", "master", "br1")

    def lease(self, tries: int = 5) -> dict[str, str]:
        """What a DHCP client is given; empty when it is given nothing."""
        report = self.state / "udhcpc.env"
        report.unlink(missing_ok=True)
        script = self.state / "udhcpc.sh"
        script.write_text(f"#!/bin/sh\n[ $1 = bound ] || exit 0\nenv > {report}\n"
                          "ip addr add $ip/$mask dev $interface\nip route add default via $router\n")
        script.chmod(0o755)
        with contextlib.suppress(AssertionError):
            self.guest("udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", str(tries), "-T", "1", "-s", str(script))
        if not report.exists():
            return {}
        return dict(line.split("=", 1) for line in report.read_text().splitlines() if "=" in line)

    def dnsmasqs(self) -> list[int]:
        """Dnsmasq processes by pid; its helper that calls the script is a child of it."""
        parents = {}
        for pid in self.host.pids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                if b"dnsmasq" in Path(f"/proc/{pid}/cmdline").read_bytes()[:20]:
                    parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return [pid for pid, parent in parents.items() if parent not in parents]

    def rules(self) -> str:
        """The packet filter without dates and counters."""
        text = self.host("iptables-save", "-c")
        return "\n".join(line.split("] ")[-1] if line.startswith("[") else line.split(" [")[0]
                         for line in text.splitlines() if not line.startswith("#"))

    def counters(self) -> dict[str, int]:
        """Packets that each rule has seen."""
        lines = [line for line in self.host("iptables-save", "-c").splitlines() if line.startswith("[")]
        return {line.split("] ")[1]: int(line[1:].split(":")[0]) for line in lines}

    def missing(self) -> list[str]:
        """What the next look at the packet filter would change."""
        settings = json.loads((self.state / "settings.json").read_text())
        options = NetworkOptions(**settings, networks_path=self.state, state_path=self.state)
        wanted = firewall.tables([network(1)], options)
        saved = iptables.parse(self.host("iptables-save", "-c"))
        return [line for table in wanted
                for line in iptables.changes(table, saved.get(table.name, {}), iptables.Foreign())]

    def told(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.state / "leases.log").read_text().splitlines()
        return []

    def hosts_file(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.state / "networks" / "nova-br1.conf").read_text()
        return ""

    def log(self) -> str:
        return (self.state / "daemon.log").read_text()

    def remove(self) -> None:
        self.kill()
        self.host.remove()
        self.guest.remove()


@pytest.fixture(params=["eventlet", "threads"])
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
    eventually(lambda: cloud.told() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")

    code = ("import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_GET(s):\n"
            "  s.send_response(200); s.end_headers(); s.wfile.write(s.client_address[0].encode())\n"
            "h.HTTPServer(('192.0.2.9', 8775), H).serve_forever()\n")
    cloud.host.start(sys.executable, "-c", code, stderr=subprocess.DEVNULL)
    answer = cloud.guest("curl", "-s", "--retry", "20", "--retry-delay", "0", "--retry-connrefused", "--retry-max-time",
                         "10", "http://169.254.169.254/latest/")
    assert answer == "10.0.1.3", "the service sees the guest's own address"

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
    before = (cloud.dnsmasqs(), cloud.rules(), cloud.host("ip", "-o", "addr"))
    counters = cloud.counters()
    assert len(before[0]) == 1 and "DNAT --to-destination 192.0.2.9:8775" in before[1]
    for version in (1, 2):
        assert cloud.serve(guest(3), version=version) == "ok"
    assert (cloud.dnsmasqs(), cloud.rules(), cloud.host("ip", "-o", "addr")) == before
    assert cloud.missing() == [], "what iptables-save prints is what we wrote"
    after = cloud.counters()
    assert after.keys() == counters.keys() and all(after[rule] >= counters[rule] for rule in counters), "kept"


def test_restart_finds_the_dnsmasq_and_the_leases(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    assert cloud.lease()
    eventually(lambda: cloud.told(), "the lease is told")
    before = (cloud.dnsmasqs(), cloud.rules())
    cloud.kill()
    assert cloud.lease()["ip"] == "10.0.1.3", "without nova-network guests are served on"
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok"
    assert (cloud.dnsmasqs(), cloud.rules()) == before
    assert "old" not in (cloud.state / "script.log").read_text(), "known leases start no Python"

    os.kill(before[0][0], signal.SIGKILL)
    eventually(lambda: cloud.dnsmasqs() == [], "it has ended")
    assert cloud.serve(guest(3), version=1) == "ok"
    assert cloud.dnsmasqs() not in ([], before[0])
    released = cloud.guest("ip", "-o", "-4", "addr", "show", "dev", "eth0")
    assert "10.0.1.3" in released
    cloud.host("dhcp_release", "br1", "10.0.1.3", guest(3).mac)
    eventually(lambda: cloud.told()[-1].startswith("del "), "the new dnsmasq had the lease: its end is told")


def test_lease_while_nova_network_is_down_is_told_at_its_start(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    cloud.kill()
    assert cloud.lease()
    assert cloud.told() == []
    cloud.start()
    eventually(lambda: cloud.told() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")


def test_lease_while_the_conductor_is_down_is_told_later(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    (cloud.state / "down").touch()
    assert cloud.lease()
    time.sleep(0.3)
    assert cloud.told() == []
    (cloud.state / "down").unlink()
    eventually(lambda: cloud.told() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")


def test_released_address_goes_to_the_next_guest_at_once(cloud):
    cloud.serve(guest(3), version=1)
    cloud.plug()
    assert cloud.lease()["ip"] == "10.0.1.3"
    eventually(lambda: len(cloud.told()) == 1, "the lease is told")
    cloud.card(SECOND_GUEST_MAC)
    assert cloud.serve(guest(3, mac=SECOND_GUEST_MAC, hostname="next"), version=2) == "ok"
    lease = cloud.lease()
    assert (lease["ip"], lease["hostname"]) == ("10.0.1.3", "next")
    eventually(lambda: cloud.told()[1:] == ["del fa:16:3e:00:01:03 10.0.1.3 vm3",
                                            f"add {SECOND_GUEST_MAC} 10.0.1.3 next"], "both are told")


@pytest.mark.parametrize("delay_ms", [0, 5, 20, 60, 150, 400])
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
