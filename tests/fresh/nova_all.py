"""`bin/nova-all` by an ordinary user on a Debian that has Python and nothing else.

Each story is given the machine and returns its end in a few words; it asserts what must hold.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator

from nova.version import RELEASE
from tests import sampling
from tests.fresh import layers
from tests.fresh.machine import Machine, Said, kill
from tests.fresh.trees import NOVA_ALL
from tests.functional.releases import previous

FIRST_S, NEXT_S = 400, 60  # on a machine that others use, too
INSTALL = "apt-get -q -y install --no-install-recommends"
READY = "Ctrl-C ends the cloud."
ALICE, BOB = layers.USERS
#: A listener on the port of all APIs.
LISTENER = """exec python3 -c "
import socket, time
s = socket.create_server(('127.0.0.1', {port}))
time.sleep(600)
" """


class Cloud:
    """A nova-all that runs. ``text``: all that it has printed."""

    def __init__(self, machine: Machine, command: str, user: str) -> None:
        self._machine, self.user, self._log = machine, user, f"/tmp/cloud-{user}-{time.monotonic_ns()}.log"
        # the signals of a terminal reach this shell, too, which has to say how the command ended
        self._process = machine.begin(f"trap : INT TERM; {command} > {self._log} 2>&1; echo $? > {self._log}.status",
                                      user=user)

    @property
    def text(self) -> str:
        return self._machine.run(f"cat {self._log}", user="").text

    def ready(self, seconds: float) -> Cloud:
        return self.says(READY, seconds, lives=True)

    def says(self, words: str, seconds: float, lives: bool = False) -> Cloud:
        """Wait for words that it prints. ``lives``: it runs until then."""
        until = time.monotonic() + seconds
        while words not in self.text:
            assert not lives or self._process.poll() is None, self.text
            assert time.monotonic() < until, f"it did not say '{words}' within {seconds} s:\n{self.text}"
            time.sleep(0.5)
        return self

    def client(self, words: str) -> str:
        """A command of the client, with the variables that the cloud printed."""
        exports = "; ".join(line.strip() for line in self.text.splitlines() if line.startswith("  export OS_"))
        assert exports, self.text
        return self._machine.ok(f"{exports}; python3 tests/fresh/boots.py {words}", 90, user=self.user).strip()

    def boots(self, name: str = "vm1") -> Cloud:
        assert self.client(f"boot {name}")
        return self

    def interrupt(self, number: int = signal.SIGINT) -> Cloud:
        """Ctrl-C, or another signal to all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._process.wait(30)
        return self

    def status(self, seconds: float = 30) -> int:
        """How the command ended: its exit status, once it has one."""
        until = time.monotonic() + seconds
        while not (told := self._machine.run(f"cat {self._log}.status", user="").text.strip()).isdecimal():
            assert time.monotonic() < until, f"it did not end within {seconds} s:\n{self.text}"
            time.sleep(0.2)
        return int(told)


@contextlib.contextmanager
def running(machine: Machine, options: str = "", seconds: float = NEXT_S, user: str = ALICE,
            command: str = NOVA_ALL) -> Iterator[Cloud]:
    """A cloud that is ready."""
    cloud = Cloud(machine, f"{command} {options}", user)
    try:
        yield cloud.ready(seconds)
    finally:
        cloud.interrupt(signal.SIGKILL)
        machine.kill_inside("nova.cmd.all")


def refused(said: Said, *words: str) -> str:
    """It ends by itself, and its last line says what is wrong and what to do."""
    assert said.status in (1, 2), f"{said.status} after {said.seconds:.0f} s\n{said.last_words}"
    last = said.text.strip().splitlines()[-1]
    assert "Traceback" not in said.text and last.startswith("nova-all: "), said.last_words
    assert not [word for word in words if word not in last], last
    return last.removeprefix("nova-all: ")[:100]


# --- stories ---------------------------------------------------------------------------------------------------------


def comes_up(machine: Machine) -> str:
    with running(machine, seconds=FIRST_S) as cloud:
        cloud.boots()
    return "boots a server"


def first_start(machine: Machine) -> str:
    """The first start shows what it does. The next one needs no network; a cloud in a directory outlives kill -9."""
    with running(machine, seconds=FIRST_S) as cloud:
        installed = next(line for line in cloud.text.splitlines() if "installed in" in line)
        assert " s  " in cloud.text, "it shows no progress"
        assert "Optional parts that are not installed" in cloud.text
        assert "terminal.js" in cloud.boots().client("console vm1 serial")
        assert cloud.interrupt().status() == 0
    machine.cut()
    return f"{installed.removeprefix('nova-all: ')}; without network: {killed(machine)}"


def killed(machine: Machine) -> str:
    with running(machine, "--state /tmp/kept") as cloud:
        cloud.boots("kept")
    with running(machine, "--state /tmp/kept") as cloud:
        assert cloud.client("show kept") == "ACTIVE"
        cloud.boots("another")
    return "a cloud in a directory outlives kill -9"


def without_network(machine: Machine) -> str:
    machine.cut()
    said = machine.run(NOVA_ALL, FIRST_S)
    told = refused(said, "cannot be reached", "PIP_INDEX_URL")
    machine.mend()
    return f"{told} ({said.seconds:.0f} s); then {comes_up(machine)}"


def two_users(machine: Machine) -> str:
    with running(machine, "--port 0", FIRST_S) as one, running(machine, "--port 0", FIRST_S, BOB) as other:
        one.boots()
        other.boots()
    for user in (ALICE, BOB):
        machine.ok("ls ~/.cache/nova-all/*.whole", user=user)
    return "each has a cloud and an environment"


def two_at_once(machine: Machine) -> str:
    """Both are first starts: one installs, and the other waits for it."""
    one, other = (Cloud(machine, f"{NOVA_ALL} --port 0", ALICE) for _ in range(2))
    try:
        one.ready(FIRST_S).boots()
        other.ready(FIRST_S).boots()
        told = one.text + other.text
    finally:
        machine.kill_inside("nova.cmd.all")
    assert told.count("nova-all: installed in") == 1 and "waiting for another start" in told, told
    return "one installed, the other waited"


def interrupted(machine: Machine) -> str:
    """Ctrl-C, and kill -9, at a random moment of the installation."""
    moments = random.Random(sampling.SEED)
    told = []
    for number in (signal.SIGINT, signal.SIGKILL):
        cloud, moment = Cloud(machine, NOVA_ALL, ALICE), moments.uniform(1, 15)
        time.sleep(moment)
        cloud.interrupt(number)
        machine.kill_inside("pip install")
        if number == signal.SIGINT:
            cloud.says("nothing is left", 20)
            machine.ok("test -z \"$(find ~/.cache/nova-all -mindepth 1 -type d)\"")
        told.append(f"{signal.Signals(number).name} after {moment:.1f} s")
    return f"{', '.join(told)}; then {comes_up(machine)}"


def unwritable_home(machine: Machine) -> str:
    machine.ok("chown root: /home/alice", user="")
    told = refused(machine.run(NOVA_ALL, NEXT_S), "/home/alice/.cache", "XDG_CACHE_HOME")
    with running(machine, seconds=FIRST_S, command=f"XDG_CACHE_HOME=/tmp/cache {NOVA_ALL}") as cloud:
        cloud.boots()
    return f"{told}; then boots a server"


def without_venv(machine: Machine) -> str:
    """The refusal's own command helps."""
    machine.ok("dpkg --purge python3-venv python3.11-venv", user="")
    told = refused(machine.run(NOVA_ALL, NEXT_S), "sudo apt install python3-venv")
    machine.ok("apt-get -q update && apt-get -q -y install python3-venv", 300, user="")
    return f"{told}; then {comes_up(machine)}"


def port_in_use(machine: Machine) -> str:
    listener = machine.begin(LISTENER.format(port=8774))
    machine.until_listens(8774)
    told = refused(machine.run(NOVA_ALL, NEXT_S), "8774", "--port")
    with running(machine, "--port 0") as cloud:
        cloud.boots()
    kill(listener)
    return f"{told}; then another port boots a server"


def small_memory(machine: Machine) -> str:
    """As a container has it: its databases and images do not fit there."""
    machine.ok("mount -o remount,size=64m /dev/shm", user="")
    return comes_up(machine)


def no_memory(machine: Machine) -> str:
    machine.ok("umount /dev/shm && rmdir /dev/shm", user="")
    return comes_up(machine)


def from_pip(machine: Machine) -> str:
    """`pip install .` in a checkout of one's own, into an environment of one's own."""
    machine.ok("cp -r /srv/nova ~/nova && python3 -m venv ~/venv")
    machine.ok("cd ~/nova && ~/venv/bin/pip install .", FIRST_S)
    return _installed(machine)


def from_wheel(machine: Machine) -> str:
    machine.ok("cp -r /srv/nova ~/nova && python3 -m venv ~/venv && python3 -m venv ~/builds")
    machine.ok("cd ~/nova && ~/builds/bin/pip wheel --no-deps --wheel-dir ~/dist .", FIRST_S)
    machine.ok("rm -r ~/nova && ~/venv/bin/pip install ~/dist/nova_iaas-*.whl", FIRST_S)
    return _installed(machine)


def upgraded_by_pip(machine: Machine) -> str:
    """The release before, then this one into the same environment: the cloud goes on with its servers."""
    machine.ok(f"cp -r /srv/nova ~/nova && cp -r /{layers.BEFORE_FOR_ALL} ~/before && python3 -m venv ~/venv")
    for checkout, release in (("before", previous()[0]), ("nova", RELEASE)):
        machine.ok(f"cd ~/{checkout} && ~/venv/bin/pip install .", FIRST_S)
        assert machine.ok("~/venv/bin/nova-all --version").strip() == release
        with running(machine, "--state ~/cloud", NEXT_S, command="cd; ~/venv/bin/nova-all") as cloud:
            if checkout == "before":
                cloud.boots()
            assert "ACTIVE" in cloud.client("show vm1")
    return "the server of the release before is there"


def _installed(machine: Machine) -> str:
    with running(machine, seconds=NEXT_S, command="cd; ~/venv/bin/nova-all") as cloud:
        machine.ok("~/venv/bin/nova-all --version")
        cloud.boots()
    return "boots a server"


def with_npm(machine: Machine) -> str:
    """The pages of consoles come with npm: once, and into the user's own cache."""
    machine.ok("apt-get -q update && apt-get -q -y install --no-install-recommends npm", 600, user="")
    with running(machine, seconds=FIRST_S) as cloud:
        cloud.boots()
        assert "screen.js" in cloud.client("console vm1 novnc")
    machine.cut()
    with running(machine) as cloud:
        cloud.boots()
        assert "screen.js" in cloud.client("console vm1 novnc")
    return "consoles of screens and serial ports"


def real_guests(machine: Machine) -> str:
    """Guests of the user's own libvirt: the refusal's own command, and the page's packages, are enough."""
    said = machine.run(f"{NOVA_ALL} --driver libvirt", FIRST_S)
    if "apt install libvirt-dev" in said.text:  # where no index has the library built
        machine.ok(f"apt-get -q update && {INSTALL} {said.text.rpartition('apt install ')[2]}", 900, user="")
        said = machine.run(f"{NOVA_ALL} --driver libvirt", FIRST_S)
    refused(said, "libvirt-daemon", "bubblewrap")
    machine.ok(f"apt-get -q update && {INSTALL} {said.text.rpartition('apt install ')[2]}", 900, user="")
    with running(machine, "--driver libvirt", FIRST_S) as cloud:
        cloud.boots()
        machine.ok("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q qemu-system-x86_64")
    return "refused with the packages to install; then a guest runs"
