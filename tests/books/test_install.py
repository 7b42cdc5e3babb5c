"""``doc/install.rst``, by hand, done word by word on three new machines; then a guest answers, and moves."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import page
from tests.books.reader import LIKE_A_MACHINE, STEP_S, Reader, wait_for
from tests.books.wires import Wires
from tests.fresh import layers, trees
from tests.fresh.machine import Machine, Plan, tools_missing
from tests.functional.daemons import TOP

pytestmark = pytest.mark.long

BOOK = TOP / "doc" / "install.rst"
ADDRESSES = {"controller": "192.0.2.11", "compute1": "192.0.2.21", "compute2": "192.0.2.22", "services": "192.0.2.5"}
HOSTS = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
ADMIN = {"OS_AUTH_URL": "http://services:5000/v3", "OS_USERNAME": "admin", "OS_PASSWORD": "administrator",
         "OS_PROJECT_NAME": "admin", "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
         "OS_IDENTITY_API_VERSION": "3"}


def guest_image() -> Path:
    """The small guest, built by the project's own program where it is not there yet."""
    path = layers.shared("guest") / "tiny.qcow2"
    subprocess.run([sys.executable, str(TOP / "bin" / "build-guest"), "--output", str(path)], check=True, timeout=600,
                   stdout=subprocess.DEVNULL)
    return path


@pytest.fixture(scope="module")
def machines() -> Iterator[dict[str, Machine]]:
    if missing := tools_missing():
        pytest.skip(f"needs {', '.join(missing)}")
    fresh, served = (*layers.checkout(), *layers.base()), trees.environments()
    with contextlib.ExitStack() as stack:
        wires = stack.enter_context(Wires("management", "guests"))
        found = {}
        for name, address in ADDRESSES.items():
            plan = Plan(systemd=True, name=name, hosts=HOSTS, pip_cache=True)
            machine = stack.enter_context(Machine(served if name == "services" else fresh, plan))
            wires.plug(machine, "management", "eth2", f"{address}/24")
            if name != "services":
                wires.plug(machine, "guests", "eth1")
                machine.ok(LIKE_A_MACHINE)
            found[name] = machine
        shutil.copy(guest_image(), f"/proc/{found['services'].leader}/root/root/tiny.qcow2")
        found["services"].ok("sh tests/books/next_door.sh /root/tiny.qcow2", STEP_S)
        yield found


def test_page_when_its_blocks_are_done_in_order_then_a_guest_answers_and_moves(machines: dict[str, Machine]) -> None:
    computes = [name for name in machines if name.startswith("compute")]
    places = {"controller": ["controller"], "compute": computes, "every": ["controller", *computes]}
    reader = Reader(machines, ADDRESSES, places, ADMIN, warned=("kvm",))  # which these machines have not
    controller = machines["controller"]
    reader.words["OPERATORS_NETWORK"] = "192.0.2.0/24"
    blocks = page.blocks(BOOK, "Before you begin", "9. The first server")
    assert len(blocks) > 20
    *steps, moves = blocks
    try:
        for block in steps:
            reader.does(block)
            if block.section.startswith("7.") and "nova-compute" in block.text and not block.file:
                wait_for(controller, "both hosts are up", "nova-manage service list | grep nova-compute",
                         r"(:-\).*\n.*){2}")
        shown = reader.said("controller", "openstack server show vm1 -c addresses").text
        address = re.search(r"10\.11\.12\.\d+", shown)
        assert address, shown
        pings = f"python3 - {address[0]} <<'E'\n{KNOCK}\nE"
        wait_for(controller, "the guest answers", pings, "SSH-2.0")
        reader.does(moves)
        wait_for(controller, "the guest answers on the other host", pings, "SSH-2.0")
        for name in ("controller", "compute1", "compute2"):
            failed = machines[name].ok("systemctl --failed --no-legend --plain")
            assert "nova" not in failed, failed
    finally:
        print("\n" + "\n".join(f"{section:32} {seconds:5.0f} s" for section, seconds in reader.seconds.items()))


#: Without a package that the page does not name: the guest's ssh daemon says who it is.
KNOCK = "import socket, sys; print(socket.create_connection((sys.argv[1], 22), 3).recv(20))"
