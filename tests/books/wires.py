"""Wires between machines: each is a bridge in a network namespace that is nobody else's.

    with Wires("management", "guests") as wires:
        wires.plug(machine, "management", "eth2", "192.0.2.11/24")

It ends with the process that made it; the machines' ends go with the machines.
"""

from __future__ import annotations

import itertools
import subprocess

from tests.fresh.machine import WITH_US, Machine, kill

_BRIDGE = "ip link add {name} type bridge forward_delay 0 && ip link set {name} up; "


class Wires:
    def __init__(self, *names: str) -> None:
        self._numbers = itertools.count(1)
        script = "".join(_BRIDGE.format(name=name) for name in names) + "echo ready; exec sleep infinity"
        self._holder = subprocess.Popen([*WITH_US, "unshare", "--net", "sh", "-ec", script], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, start_new_session=True)
        assert self._holder.stdout is not None and self._holder.stdout.readline() == b"ready\n"

    def __enter__(self) -> Wires:
        return self

    def __exit__(self, *_: object) -> None:
        kill(self._holder)

    def plug(self, machine: Machine, wire: str, interface: str, address: str = "") -> None:
        """Give the machine an interface on the wire. Without an address it is left down, as Debian would."""
        ours = f"port{next(self._numbers)}"
        self._run("ip", "link", "add", ours, "type", "veth", "peer", "name", interface, "netns", str(machine.leader))
        self._run("ip", "link", "set", ours, "master", wire, "up")
        if address:
            machine.in_network("ip", "address", "add", address, "dev", interface)
            machine.in_network("ip", "link", "set", interface, "up")

    def _run(self, *words: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._holder.pid), "-n", *words], check=True, capture_output=True)
