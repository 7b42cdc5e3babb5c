"""``doc/install.rst``, by hand, done word by word on three new machines; then a guest answers, and moves."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import page
from tests.books.wires import Wires
from tests.fresh import layers, trees
from tests.fresh.machine import Machine, Plan, Said, tools_missing
from tests.functional.daemons import TOP

pytestmark = pytest.mark.long

BOOK = TOP / "doc" / "install.rst"
ADDRESSES = {"controller": "192.0.2.11", "compute1": "192.0.2.21", "compute2": "192.0.2.22", "services": "192.0.2.5"}
HOSTS = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
ADMIN = {"OS_AUTH_URL": "http://services:5000/v3", "OS_USERNAME": "admin", "OS_PASSWORD": "administrator",
         "OS_PROJECT_NAME": "admin", "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
         "OS_IDENTITY_API_VERSION": "3"}
STEP_S, READY_S = 900.0, 90.0
#: What a reader sees on a machine and a test has to bring: an answer to apt's question, and a kernel that says what is
#: built into it.
LIKE_A_MACHINE = """
echo 'APT::Get::Assume-Yes "true";' > /etc/apt/apt.conf.d/90reader
modules=/lib/modules/$(uname -r)
mkdir -p $modules
echo kernel/net/bridge/br_netfilter.ko > $modules/modules.builtin
: > $modules/modules.order
"""


def guest_image() -> Path:
    """The small guest, built by the project's own program where it is not there yet."""
    path = layers.shared("guest") / "tiny.qcow2"
    subprocess.run([sys.executable, str(TOP / "bin" / "build-guest"), "--output", str(path)], check=True, timeout=600,
                   stdout=subprocess.DEVNULL)
    return path


class Reader:
    """Somebody who does what the page says, and remembers what it printed."""

    def __init__(self, machines: dict[str, Machine]) -> None:
        self.machines = machines
        self.words = {"OPERATORS_NETWORK": "192.0.2.0/24"}
        self.words |= {f"{name.upper()}_ADDRESS": address for name, address in ADDRESSES.items()}
        self.seconds: dict[str, float] = {}

    def does(self, block: page.Block) -> None:
        """On each machine that the block is for."""
        computes = [name for name in self.machines if name.startswith("compute")]
        names = {"controller": ["controller"], "compute": computes, "every": ["controller", *computes]}[block.machines]
        for name in names:
            text = block.text if not name.startswith("compute") else self._for(name, block.text)
            if block.file:
                self._write(name, block.file, self._own(text))
            else:
                self._run(block.section, name, self._own(text))

    def _for(self, name: str, text: str) -> str:
        return text.replace("compute1", name).replace("COMPUTE1", name.upper())

    def _own(self, text: str) -> str:
        for word in page.WORD.findall(text):
            if word.endswith("PASSWORD"):
                self.words.setdefault(word, secrets.token_hex(8))
        return page.WORD.sub(lambda found: self.words.get(found[0], found[0]), text)

    def _write(self, name: str, path: str, text: str) -> None:
        file = Path(f"/proc/{self.machines[name].leader}/root{path}")
        file.write_text(text + "\n")

    def _run(self, section: str, name: str, text: str) -> None:
        """All of a block's commands in one shell, which stops at the first that fails. A comment with a word in
        capitals behind a command names what it prints."""
        for line in self._pieces(text):
            said = self.said(name, line)
            self.seconds[section] = self.seconds.get(section, 0) + said.seconds
            assert said.status == 0, f"{section}, on {name}: {line}\nended with {said.status}\n{said.last_words}"
            if word := re.search(rf"#.*?({page.WORD.pattern})", line):
                self.words[word[1]] = next(one for one in said.text.split("\n") if re.fullmatch(r"\S+", one))

    @staticmethod
    def _pieces(text: str) -> list[str]:
        """A block whose commands print what is needed later is done line by line."""
        lines = text.split("\n")
        return lines if any(re.search(rf"#.*?{page.WORD.pattern}", line) for line in lines) else [f"set -e\n{text}"]

    def said(self, name: str, command: str) -> Said:
        """With an administrator's credentials on the controller, as the page wants them."""
        exports = "".join(f"export {key}={value}\n" for key, value in ADMIN.items()) if name == "controller" else ""
        return self.machines[name].run(f"export DEBIAN_FRONTEND=noninteractive\n{exports}{command}", STEP_S)


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


def wait_for(machine: Machine, what: str, command: str, words: str, seconds: float = READY_S) -> str:
    """What the command prints, once it prints the words."""
    until = time.monotonic() + seconds
    while True:
        said = machine.run(command, 60)
        if re.search(words, said.text):
            return said.text
        assert time.monotonic() < until, f"{what}: {said.last_words}"
        time.sleep(1)


def test_page_when_its_blocks_are_done_in_order_then_a_guest_answers_and_moves(machines: dict[str, Machine]) -> None:
    reader, controller = Reader(machines), machines["controller"]
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
