"""A cloud in namespaces: a room for the controller, one for each compute host, and a switch that joins them.

    switch:      mgmt ----+----------+----------+        data ----+----------+----------+
                          | eth0     | eth0     | eth0            | eth1     | eth1     | eth1
                     controller    host1      host2          controller    host1      host2

eth0 carries the services and has the rooms' addresses; eth1 has none: nova puts it into the guests' bridge. The
machine's own network does not change, so conflicts cannot occur and nothing must be removed later.
"""

from __future__ import annotations

import hashlib
import subprocess

from . import cgroups, cinder, kvm, libvirt
from .errors import StackError
from .layout import SWITCH, Layout
from .rooms import RoomPlan
from .stack import Stack

# bridge in the switch: (a room's end of the wire, the prefix of the switch's end)
WIRES = {"mgmt": ("eth0", "m"), "data": ("eth1", "d")}
PREFIX_LENGTH = 24


def prepare(stack: Stack) -> str:
    """Create the missing rooms and the missing links between them. Raises StackError."""
    layout = stack.layout
    hosts_file = layout.path("rooms", "hosts")
    hosts_file.parent.mkdir(parents=True, exist_ok=True)
    hosts_file.write_text(hosts_text(layout))
    switch, fresh = stack.control.make_room(_plan(stack, SWITCH))
    if fresh:
        batch(switch, switch_script())
    made = []
    for room in layout.addresses:
        pid, created = stack.control.make_room(_plan(stack, room))
        if created:
            batch(switch, wire_script(room, pid))
            batch(pid, room_script(layout.addresses[room]))
            made.append(room)
    return f"made {', '.join(made)}" if made else "unchanged"


def group(layout: Layout) -> str:
    """Return the parent control group of all rooms. It is unique even for state directories of the same name."""
    return f"{layout.state.name}-{hashlib.sha256(str(layout.state).encode()).hexdigest()[:8]}"


def remove_groups(layout: Layout) -> list[str]:
    return cgroups.remove(group(layout))


def hosts_text(layout: Layout) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    return "\n".join([*lines, *(f"{address} {room}" for room, address in layout.addresses.items())]) + "\n"


def _plan(stack: Stack, room: str) -> RoomPlan:
    layout = stack.layout
    hypervisor = room in layout.hypervisor_rooms
    return RoomPlan(
        name=room,
        group=f"{group(layout)}/{room}",
        hosts_file=str(layout.path("rooms", "hosts")),
        binds=(*(libvirt.host_binds(stack, room) if hypervisor else ()), *cinder.binds(stack, room)),
        mask_kvm=hypervisor and kvm.must_be_hidden(layout),
    )


def switch_script() -> list[str]:
    lines = ["link set lo up"]
    for bridge in WIRES:
        lines += [f"link add name {bridge} type bridge forward_delay 0 stp_state 0", f"link set {bridge} up"]
    return lines


def wire_script(room: str, pid: int) -> list[str]:
    """Return `ip` commands for the switch: a veth pair for each bridge, with one end in the room of that init."""
    lines = []
    for bridge, (interface, prefix) in WIRES.items():
        lines += [
            f"link add name {prefix}-{room} type veth peer name {interface} netns {pid}",
            f"link set {prefix}-{room} master {bridge}",
            f"link set {prefix}-{room} up",
        ]
    return lines


def room_script(address: str) -> list[str]:
    interfaces = [interface for interface, _ in WIRES.values()]
    return [
        "link set lo up",
        f"address add {address}/{PREFIX_LENGTH} dev {interfaces[0]}",
        *(f"link set {interface} up" for interface in interfaces),
    ]


def batch(pid: int, lines: list[str]) -> None:
    """Run `ip` commands in the network namespace of a room."""
    result = subprocess.run(
        ["nsenter", "-t", str(pid), "-n", "ip", "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise StackError(
            f"cannot create the sandbox's network: {result.stderr.strip()}",
            "the kernel must support bridges and veth pairs; run `bin/stack clean --sandbox` and try again",
        )
