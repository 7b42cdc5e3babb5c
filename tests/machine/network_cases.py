"""A network host on a real kernel: the real service, in network namespaces, with a conductor made of files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from nova.model.network.networks import DhcpHost, NetworkOnHost
from nova.network import firewall, isolation
from nova.network.local_network import here
from nova.network.options import NetworkHostOptions
from nova.privileged import ebtables, iptables
from tests.fakes.network import guest, network

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = ("ip", "dnsmasq", "dhcp_release", "iptables-save", "iptables-restore", "udhcpc", "curl", "ping")
TIMEOUT_S = 15.0


def obstacle() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        return f"needs {', '.join(missing)} (Debian: dnsmasq-base dnsmasq-utils iptables udhcpc curl iputils-ping)"
    probe = subprocess.run(["unshare", "-n", "ip", "link", "add", "br0", "type", "bridge"], capture_output=True)
    return None if probe.returncode == 0 else "this kernel gives no network namespaces or bridges"


def eventually(check, what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not check():
        assert time.monotonic() < deadline, f"after {TIMEOUT_S} s still not so: {what}"
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

    def start(self, *argv: str, more: dict[str, str] | None = None, **fields) -> subprocess.Popen[str]:
        """``more``: for its environment."""
        return subprocess.Popen(["ip", "netns", "exec", self.name, *argv], text=True, cwd=CHECKOUT,
                                env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(more or {})}, **fields)

    def respond(self, address: str, port: int) -> None:
        """Answer HTTP requests with the address they come from."""
        code = ("import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_GET(s):\n"
                "  s.send_response(200); s.end_headers(); s.wfile.write(s.client_address[0].encode())\n"
                f"h.HTTPServer(({address!r}, {port}), H).serve_forever()\n")
        self.start(sys.executable, "-c", code, stderr=subprocess.DEVNULL)

    def pids(self) -> list[int]:
        return [int(pid) for pid in run("ip", "netns", "pids", self.name).split()]

    def remove(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run("ip", "netns", "del", self.name)


class Cloud:
    """One network host and one guest's place on its bridge."""

    def __init__(self, state: Path, name: str = "", **settings: object) -> None:
        self.state = state
        self.host, self.guest = (Namespace(f"nova-{kind}{name}-{os.getpid()}") for kind in ("host", "guest"))
        self.daemon: subprocess.Popen[str] | None = None
        script = state / "nova-dhcpbridge"
        script.write_text(f"#!/bin/sh\necho \"$1\" >> {state}/script.log\n"
                          f"PYTHONPATH={CHECKOUT} exec {sys.executable} -m nova.network.dhcpbridge \"$@\"\n")
        script.chmod(0o755)
        (state / "settings.json").write_text(json.dumps({
            "dhcpbridge": str(script), "metadata_host": "192.0.2.9", "routing_source_ip": "192.0.2.9",
            "public_interface": "out0", "dhcp_lease_time": 600,
            "guest_forbidden_ranges": ["none"],  # the outside is a neighbour of the host itself here
            **settings}))
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

    def outside(self) -> Namespace:
        """Another machine, beyond the public interface; it knows no way back to guests' addresses. The caller's to
        remove."""
        made = Namespace(f"{self.host.name}-outside")
        self.host("ip", "link", "set", "out1", "netns", made.name)
        made("ip", "addr", "add", "192.0.2.200/24", "dev", "out1")
        made("ip", "link", "set", "out1", "up")
        return made

    def get(self, url: str) -> str:
        """By the guest."""
        return self.guest("curl", "-s", "--retry", "20", "--retry-delay", "0", "--retry-connrefused",
                          "--retry-max-time", "10", url)

    def card(self, mac: str) -> None:
        """Another guest with that MAC takes the place."""
        self.guest("ip", "addr", "flush", "dev", "eth0")
        self.guest("ip", "link", "set", "eth0", "down")
        self.guest("ip", "link", "set", "eth0", "address", mac)
        self.guest("ip", "link", "set", "eth0", "up")

    # --- nova-network ---
    def start(self, dies_at: str = "") -> None:
        """``dies_at``: a fault point of the host's work, such as ``link:before``."""
        point = {"NOVA_FAULT_POINT": f"network:{dies_at}:kill"} if dies_at else {}
        with open(self.state / "daemon.log", "a") as log:
            self.daemon = self.host.start(sys.executable, "-W", "ignore", "tests/machine/network_host_process.py",
                                          str(self.state), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                          more=point)
        assert dies_at or self.daemon.stdout is not None and self.daemon.stdout.readline() == "started\n", self.log()

    def kill(self) -> None:
        if self.daemon:
            self.daemon.kill()
            self.ended()

    def ended(self) -> int:
        """Wait for the daemon's end, which may come by itself; its exit code."""
        code = self.daemon.wait(timeout=20) if self.daemon else 0
        if self.daemon:
            for stream in (self.daemon.stdin, self.daemon.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
            self.daemon = None
        return code

    def order(self, *guests: DhcpHost, version: int, host_address: str | None = None, **fields) -> None:
        """What the conductor says from now on."""
        self.say(NetworkOnHost(network=network(1, **fields), addresses=guests, version=version,
                               host_address=host_address))

    def say(self, *values: NetworkOnHost) -> None:
        """Whole or not at all: the daemon reads it when it likes."""
        fresh = self.state / "orders.json.new"
        fresh.write_bytes(msgspec.json.encode(values))
        fresh.rename(self.state / "orders.json")

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

    def missing(self, *orders: NetworkOnHost) -> list[str]:
        """What the next look at the packet filters would change, for these networks (the usual one)."""
        settings = json.loads((self.state / "settings.json").read_text())
        options = NetworkHostOptions(**{name: tuple(value) if isinstance(value, list) else value
                                        for name, value in settings.items()},
                                     networks_path=self.state, state_path=self.state)
        served = [here(one, options, lambda net: net.bridge or "", lambda net: net.bridge_interface)
                  for one in orders or [NetworkOnHost(network=network(1))]]
        kinds = ((firewall.tables(served, options), iptables.IPV4),
                 (firewall.tables_v6(served, options), iptables.IPV6),
                 (isolation.tables(served, options), ebtables.ETHERNET))
        return [line for wanted, dialect in kinds for table in wanted for line in iptables.changes(
            table, iptables.parse(self.host(*dialect.save)).get(table.name, {}), iptables.Foreign(), dialect)]

    def reported(self) -> list[str]:
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
