"""Two hosts of a cloud with VLANs, in namespaces of a virtual machine whose kernel has 802.1Q. Run there as root.

``network`` runs nova-network's own host side (VlanManager), with programs such as dnsmasq left out; ``compute`` plugs
as nova-compute does. A cable joins their eth0. Each project has a guest on both. Each check is a line `ok NAME`.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

from nova.model.network.networks import Interface, Network, NetworkOnHost
from nova.network.host import Filters, Machine, NetworkHost
from nova.network.leases import LeaseBook
from nova.network.options import NetworkHostOptions
from nova.privileged import links
from nova.privileged.iptables import PacketFilter
from nova.privileged.runner import Completed
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs import bridge

CLONE_NEWNET = 0x40000000
STATE = Path("/tmp/nova")
PROJECTS = {"a": 100, "b": 101}
BUSYBOX = "/bin/busybox"


class NoPrograms:
    """What would be run is not: devices alone are looked at."""

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        return Completed(0)


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def within(namespace: str, work: Callable[[], None]) -> None:
    """Call ``work`` in a process of that network namespace."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with open(f"/run/netns/{namespace}") as target:
                assert ctypes.CDLL(None, use_errno=True).setns(target.fileno(), CLONE_NEWNET) == 0
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, f"the work in {namespace} failed"


def check(name: str, true: bool) -> None:
    assert true, name
    print(f"ok {name}", flush=True)


def network(project: str) -> Network:
    vlan = PROJECTS[project]
    third = vlan - 99
    return Network(id=vlan, uuid=f"net-{project}", label=project, cidr=f"10.0.{third}.0/24", netmask="255.255.255.0",
                   gateway=f"10.0.{third}.1", dhcp_server=f"10.0.{third}.1", dhcp_start=f"10.0.{third}.3",
                   bridge=f"br{vlan}", bridge_interface="eth0", vlan=vlan, mtu=1400, project_id=project)


def network_host() -> NetworkHost:
    options = NetworkHostOptions(networks_path=STATE / "networks", state_path=STATE, host="network",
                                 network_manager="nova.network.manager.VlanManager", vlan_interface="eth0")
    options.networks_path.mkdir(parents=True, exist_ok=True)
    packets = PacketFilter(NoPrograms(), STATE / "lock")
    machine = Machine(links, NoPrograms(), Filters(packets, packets, packets), lambda: None, lambda: None)
    return NetworkHost(options, machine, LeaseBook(STATE / "leases.json"))


def serve() -> None:
    host, orders = network_host(), [NetworkOnHost(network=network(project), version=1) for project in PROJECTS]
    host.keep_only(orders)
    for order in orders:
        host.serve(order, orders)


def end() -> None:
    network_host().keep_only([])


def plug() -> None:
    settings = LibvirtSettings(instances_path=STATE, state_path=STATE)
    for project, vlan in PROJECTS.items():
        bridge.prepare(Interface(id="v", mac="fa:16:3e:00:00:01", network_id=f"net-{project}", label=project,
                                 bridge=f"br{vlan}", bridge_interface="eth0", vlan=vlan, should_create_vlan=True,
                                 should_create_bridge=True, mtu=1400), settings)


def seen(namespace: str) -> str:
    """Devices and addresses; not the state of a link, to which the kernel comes when it has time."""
    devices = run("ip", "-n", namespace, "-o", "link") + run("ip", "-n", namespace, "-o", "-4", "addr")
    return re.sub(r",?\b(NO-CARRIER|LOWER_UP)\b,?|\b(state|mode) \w+", "", devices)


def guest(project: str, number: int, host: str, *addresses: str) -> str:
    name = f"{project}{number}"
    run("ip", "netns", "add", name)
    run("ip", "-n", host, "link", "add", f"tap-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "-n", host, "link", "set", f"tap-{name}", "master", f"br{PROJECTS[project]}", "up")
    for address in addresses:
        run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "mtu", "1400", "up")
    return name


def reaches(namespace: str, address: str, tries: int = 10) -> bool:
    """At one of so many tries."""
    ping = ["ip", "netns", "exec", namespace, BUSYBOX, "ping", "-c", "1", "-W", "2", address]
    return any(subprocess.run(ping, capture_output=True, check=False).returncode == 0 for _ in range(tries))


def cable() -> None:
    for host in ("network", "compute"):
        run("ip", "netns", "add", host)
    run("ip", "-n", "network", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", "compute")
    for number, host in enumerate(("network", "compute"), 1):
        run("ip", "-n", host, "addr", "add", f"192.0.2.{number}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "eth0", "up")


def main() -> None:
    cable()
    within("network", serve)
    within("compute", plug)
    before = seen("network"), seen("compute")
    within("network", serve)
    within("compute", plug)
    after = seen("network"), seen("compute")
    if after != before:
        print(f"before:\n{before}\nafter:\n{after}")
    check("repeated, nothing changes", after == before)
    check("devices carry tags", "protocol 802.1Q id 100" in run("ip", "-n", "compute", "-d", "link", "show", "vlan100"))
    check("mtu", "mtu 1400" in run("ip", "-n", "network", "link", "show", "vlan101"))
    guest("a", 1, "network", "10.0.1.11")
    guest("a", 2, "compute", "10.0.1.12")
    guest("b", 1, "network", "10.0.2.11")
    guest("b", 2, "compute", "10.0.2.12", "10.0.1.99")
    check("a project's guests on two hosts reach each other", reaches("a1", "10.0.1.12") and reaches("b2", "10.0.2.11"))
    check("a guest reaches its gateway on the other host", reaches("a2", "10.0.1.1"))
    check("not another project's, not even by an address of one's own range", not reaches("a1", "10.0.1.99", tries=1))
    check("the hosts reach each other", reaches("compute", "192.0.2.1"))
    within("network", end)
    check("guests keep a bridge that is no network's any more", "br100" in seen("network"))
    for project in PROJECTS:
        run("ip", "-n", "network", "link", "del", f"tap-{project}1")
    within("network", end)
    left = seen("network")
    check("what was made goes, what was there stays", "br10" not in left and "vlan10" not in left and "eth0" in left)


if __name__ == "__main__":
    main()
