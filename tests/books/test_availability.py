"""``doc/availability.rst``, done word by word on new machines; then each of its parts is killed in turn under load.

The table at the end has the figures of the page.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from stacklib import kernel
from tests.books import page
from tests.books.load import Users
from tests.books.reader import LIKE_A_MACHINE, STEP_S, Reader, wait_for, well
from tests.books.wires import Wires
from tests.fakes.glance import FakeGlance
from tests.fresh import layers
from tests.fresh.machine import Machine, Plan, tools_missing
from tests.functional.client import IMAGE, Client
from tests.functional.daemons import TOP

pytestmark = pytest.mark.long

BOOK, INSTALL = TOP / "doc" / "availability.rst", TOP / "doc" / "install.rst"
CONTROL = ("controller1", "controller2", "controller3")
ADDRESSES = {**{name: f"192.0.2.{number}" for number, name in enumerate(CONTROL, 11)}, "compute1": "192.0.2.21",
             "users": "192.0.2.5", "cloud": "192.0.2.10"}
HOSTS = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
PLACES = {"control": CONTROL, "first": CONTROL[:1], "controllers": CONTROL[:2], "joining": CONTROL[1:],
          "compute": ("compute1",), "every": ("compute1",)}
API, GLANCE = f"http://{ADDRESSES['cloud']}:8774/v2.1", f"http://{ADDRESSES['users']}:9292"
#: What the page leaves to its reader (Keystone), and what makes a host without a hypervisor of it.
OWN_LINES = {"/etc/nova/nova.conf": f"""
[api]
auth_strategy = noauth2
noauth2_anywhere = true
[glance]
endpoint_override = {GLANCE}
"""}
WARNED = "keystone"  # the doctor's only finding here
HYPERVISOR, FAKE = "libvirt.LibvirtDriver", "fake.FakeDriver\nfake_network = true"
SYSCTL = "/etc/sysctl.d/90-cloud.conf"
SETTLE_S, BACK_S = 15.0, 240.0  # in which users are watched after a kill; in which all must be as before


class Wired(Machine):
    """A machine whose wires are in their sockets whenever it starts."""

    def __init__(self, made: layers.Made, name: str, wires: Wires) -> None:
        super().__init__(made, Plan(systemd=True, name=name, hosts=HOSTS, pip_cache=True))
        self._wires = wires

    def connect(self) -> None:
        """Before its daemons start: a machine's first process takes longer. So do the kernel's settings, which systemd
        leaves to the host of a machine like this."""
        self._wires.plug(self, "management", "eth2", f"{ADDRESSES[self.plan.name]}/24")
        number = int(ADDRESSES[self.plan.name].rpartition(".")[2])
        self.in_network("ip", "link", "set", "eth2", "address", f"02:00:00:00:02:{number:02x}")  # the same as before
        self._wires.plug(self, "guests", "eth1")
        if Path(f"/proc/{self.leader}/root{SYSCTL}").exists():
            self.in_network("sysctl", "-q", "-p", f"/proc/{self.leader}/root{SYSCTL}")
        super().connect()

    def lose_power(self) -> None:
        """Nobody hears that it ends: no connection is closed."""
        self.in_network("ip", "link", "set", "eth2", "down")
        self._halt()

    def start(self) -> None:
        self._start()


class Operator(Reader):
    """Does the page for a cloud without Keystone and without a hypervisor."""

    def _own(self, text: str) -> str:
        return super()._own(text).replace(HYPERVISOR, FAKE)

    def _write(self, name: str, path: str, text: str) -> None:
        super()._write(name, path, text + (OWN_LINES.get(path, "") if name in CONTROL else ""))


class Kill(NamedTuple):
    """What is killed: a unit on a machine, or the machine (no unit). No machine: the one that has the address."""

    unit: str
    machine: str

    def __str__(self) -> str:
        return f"{self.unit or 'the machine'}, {self.machine}"


class Cloud:
    def __init__(self, machines: dict[str, Wired]) -> None:
        self.machines = machines

    def holder(self) -> str:
        """The machine that has the address."""
        held = f" {ADDRESSES['cloud']}/"
        return next(name for name in PLACES["controllers"]
                    if held in self.machines[name].in_network("ip", "-brief", "address"))

    def kill(self, kill: Kill) -> None:
        """All processes of it at once."""
        machine = self.machines[kill.machine]
        if kill.unit:
            machine.ok(f"systemctl kill --signal=KILL {kill.unit}")
        else:
            machine.lose_power()

    def wait_well(self) -> None:
        """All nodes and daemons are there again."""
        for name in CONTROL:
            wait_for(self.machines[name], f"the database on {name}", "/usr/local/sbin/galera-check", "200 OK", BACK_S)
            wait_for(self.machines[name], f"the broker on {name}",
                     "rabbitmqctl -q await_online_nodes 3 && echo three", "three", BACK_S)
        for name in PLACES["controllers"]:
            for port in (9871, 9873, 9874, 9877, 9879, 9883):
                wait_for(self.machines[name], f"port {port} on {name}", f"""python3 -c "import urllib.request as r
print(r.urlopen('http://{ADDRESSES[name]}:{port}/health/ready', timeout=15).status)" """, "200", BACK_S)


DAEMONS = ("nova-api-os-compute", "nova-conductor", "nova-scheduler", "nova-placement-api", "nova-imageproxy",
           "nova-consoleauth", "nova-novncproxy")
KILLS = (*(Kill(unit, "controller1") for unit in DAEMONS), Kill("haproxy", ""), Kill("keepalived", ""),
         *(Kill(unit, name) for unit in ("rabbitmq-server", "mariadb") for name in CONTROL),
         Kill("", "controller3"), Kill("", ""), Kill("", ""))


@pytest.fixture(scope="module")
def machines() -> Iterator[dict[str, Wired]]:
    if missing := tools_missing():
        pytest.skip(f"needs {', '.join(missing)}")
    fresh = (*layers.checkout(), *layers.base())
    with contextlib.ExitStack() as stack:
        wires = stack.enter_context(Wires("management", "guests"))
        found = {}
        for name in (*CONTROL, "compute1", "users"):
            found[name] = stack.enter_context(Wired(fresh, name, wires))
            found[name].ok(LIKE_A_MACHINE)
        yield found


@pytest.fixture(scope="module")
def cloud(machines: dict[str, Wired]) -> Iterator[Cloud]:
    """As the page makes it. Beside it, on the machine of the users, an image service."""
    reader = Operator(machines, ADDRESSES, PLACES, warned=(WARNED,))
    reader.words["COOKIE_KEY"] = "a-cookie-of-this-test"
    machines["compute1"].ok("apt-get -qq update; apt-get -qq install --no-install-recommends python3-venv iproute2",
                            STEP_S)
    packages = "1. Packages and programs"
    prepared = [block for block in page.blocks(INSTALL, packages, packages) if block.machines == "every"]
    with contextlib.ExitStack() as stack:
        glance = FakeGlance(ADDRESSES["users"])
        glance.url = GLANCE
        in_network_of(machines["users"], lambda: stack.enter_context(glance))
        glance.add(b"an image", id=IMAGE, name="tiny")
        *steps, look = (*prepared, *page.blocks(BOOK, packages, "8. A compute host"))
        for block in steps:
            reader.does(block)
        wait_for(machines["controller1"], "the host is up", "nova-manage service list | grep nova-compute", r":-\)")
        reader.does(look)
        yield Cloud(machines)


def in_network_of(machine: Machine, work: Callable[[], object]) -> None:
    """Done by a thread of its own: a thread's network is its own, and sockets keep that of their making."""
    def inside() -> None:
        kernel.enter(machine.leader, ("net",))
        work()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(inside).result()


def create_sample_data() -> None:
    Client(API, "admin", "admin").call("POST", "/flavors", {"flavor": {
        "name": "m1.tiny", "id": "1", "ram": 64, "vcpus": 1, "disk": 1}})


def test_layout_when_each_part_is_killed_under_load_then_others_go_on_and_no_server_is_lost(cloud: Cloud) -> None:
    users = cloud.machines["users"]
    in_network_of(users, create_sample_data)
    print(HEAD, flush=True)
    with Users(API, users.leader) as tenants:
        tenants.wait_served(BACK_S)
        watched("nothing", tenants, lambda: None)
        for kill in KILLS:
            kill = kill if kill.machine else kill._replace(machine=cloud.holder())
            watched(str(kill), tenants, functools.partial(cloud.kill, kill))
            if not kill.unit:
                watched(f"{kill.machine} comes back", tenants, cloud.machines[kill.machine].start)
            cloud.wait_well()
    assert tenants.findings == []
    for name in PLACES["controllers"]:
        for command in (well(WARNED), "nova-manage placement audit"):
            said = cloud.machines[name].run(command)
            assert said.status == 0, said.last_words


HEAD = f"\n{'killed':32} {'no read':>8} {'no boot':>8} {'slowest':>8} {'failed':>7}"


def watched(what: str, users: Users, do: Callable[[], object]) -> None:
    """What users saw until they were served again, and some time after."""
    began = time.monotonic()
    do()
    users.wait_served(BACK_S)
    time.sleep(max(0.0, began + SETTLE_S - time.monotonic()))
    gap = users.gap(began, time.monotonic())
    print(f"{what:32} {gap.read_s:6.1f} s {gap.boot_s:6.1f} s {gap.slowest_s:6.1f} s {gap.failed:7}", flush=True)
    for failure, times in users.failures(began).items():
        print(f"    {times} times: {failure}", flush=True)
