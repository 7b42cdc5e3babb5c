"""Guests that move between the hosts of a sandbox, off and running, by the libvirt driver alone.

Each host's driver runs in its room beside nova-compute, which stands still meanwhile. The guest is made by the cloud,
so that it has an address and answers.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from nova.model.guest.orders import BuildOrder, Fence, GuestArrival, GuestOnSource, LiveOrder, MoveOrder
from tests.functional.backends import wait_until
from tests.machine.stack import TOP, Sandbox
from tests.machine.storages import mobile
from tests.machine.talk import longest_silence_s, talk

pytestmark = pytest.mark.in_turn(2, 10)

__all__ = ["mobile"]  # a fixture
FENCE = Fence(operation_id=1, epoch=1)
CALL_S = 120


class Refused(Exception):
    """What a driver raised: kind, code, message."""

    @property
    def code(self) -> str:
        return self.args[1]


class MoveHost:
    """The driver of one host."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.sandbox, self.name = sandbox, name
        conf = sandbox.layout.etc / f"nova-{name}" / "nova.conf"
        argv = [str(TOP / "bin" / "stack"), "--state", str(sandbox.state), "exec", "--host", name.removeprefix("host"),
                "--", "env", f"PYTHONPATH={TOP}", sys.executable, "-m", "tests.machine.move_host", str(conf)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TOP)
        self._numbers, self._waiting = itertools.count(), dict[int, Future]()
        threading.Thread(target=self._listen, daemon=True).start()

    def begin(self, call: str, argument: Any = None) -> Future:
        number = next(self._numbers)
        future = self._waiting[number] = Future()
        line = msgspec.json.encode({"id": number, "call": call, "with": argument}).decode()
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return future

    def do(self, call: str, argument: Any = None, kind: Any = None) -> Any:
        found = self.begin(call, argument).result(CALL_S)
        return found if kind is None else msgspec.convert(found, kind)

    def kill(self) -> None:
        """As nova-compute may end at any time."""
        for pid in subprocess.run(["pgrep", "-f", f"tests.machine.move_host .*{self.sandbox.state}.*nova-{self.name}/"],
                                  capture_output=True, text=True, check=False).stdout.split():
            subprocess.run(["kill", "-9", pid], check=False)
        self._process.wait(20)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            said = msgspec.json.decode(line)
            future = self._waiting.pop(said["id"])
            if "failed" in said:
                future.set_exception(Refused(*said["failed"]))
            else:
                future.set_result(said["done"])
        for future in self._waiting.values():
            future.set_exception(Refused("", "gone", "the host's driver is gone"))


@pytest.fixture(scope="module")
def hosts(mobile: Sandbox) -> Iterator[dict[str, MoveHost]]:
    daemons = [f"nova-compute-{name}" for name in mobile.hosts]
    made = {name: MoveHost(mobile, name) for name in mobile.hosts}
    yield made
    for host in made.values():
        host.close()
    for name in daemons:
        mobile.tool("start", name)
        mobile.wait_ready(name)


class Mover:
    """One guest, and the host that it is on."""

    def __init__(self, sandbox: Sandbox, hosts: dict[str, MoveHost], uuid: str, address: str) -> None:
        self.sandbox, self._hosts, self.uuid, self.address = sandbox, hosts, uuid, address
        self.here = next(host for host in hosts.values() if uuid in host.do("guests"))
        self.there = next(host for host in hosts.values() if host is not self.here)
        self.build = self.here.do("order", uuid, BuildOrder)

    def turn(self) -> None:
        self.here, self.there = self.there, self.here

    def order(self, source: GuestOnSource | None, **changes: Any) -> MoveOrder:
        return MoveOrder(server_uuid=self.uuid, fence=FENCE, build=self.build, source=source, **changes)

    def grown(self, **flavor: Any) -> BuildOrder:
        larger = msgspec.structs.replace(self.build.flavor, **flavor)
        return msgspec.structs.replace(self.build, flavor=larger, disks=())

    def ssh(self, command: str) -> str:
        return self.sandbox.ssh(self.address, command)

    def uptime_s(self) -> float:
        return float(self.ssh("cat /proc/uptime").split()[0])

    def prepare(self, **changes: Any) -> LiveOrder:
        source = self.here.do("describe", self.uuid, GuestOnSource)
        arrival = self.there.do("prepare_arrival", self.order(source, **changes), GuestArrival)
        return LiveOrder(server_uuid=self.uuid, instance_name=self.build.instance_name, fence=FENCE, arrival=arrival)

    def arrived(self) -> None:
        """On shared storage, too, the source may clean: what is another host's stays."""
        self.there.do("land", self.order(None))
        self.here.do("clean", self.uuid)
        self.turn()

    def replace_here(self) -> None:
        """nova-compute on this host is killed, and started again."""
        self.here.kill()
        self._hosts[self.here.name] = self.here = MoveHost(self.sandbox, self.here.name)
        assert self.uuid in self.here.do("guests")

    def sends(self) -> bool:
        """Whether its migration is under way."""
        return "Unbounded" in self.sandbox.virsh(self.here.name, "domjobinfo", self.uuid)

    def downtime_ms(self) -> str:
        """Of the migration that brought it here, as libvirt counted it; of one that ended by post-copy it may not."""
        reported = self.sandbox.virsh(self.here.name, "domjobinfo", "--completed", "--rawstats", self.uuid)
        counted = (line.split(":")[1].strip() for line in reported.splitlines() if line.startswith("downtime:"))
        return next(counted, "unknown")


@pytest.fixture(scope="module")
def guest(mobile: Sandbox, hosts: dict[str, MoveHost]) -> Iterator[Mover]:
    api = mobile.api("demo")
    made = api.create("mover", key_name="demo", config_drive=True)
    api.settled(made["id"], "ACTIVE")
    facts = mobile.ready(api, made["id"])
    host = mobile.footprint(made["id"]).host
    for name in mobile.hosts:
        mobile.tool("stop", f"nova-compute-{name}")
    mover = Mover(mobile, hosts, made["id"], facts["address"])
    yield mover
    for one in hosts.values():  # what a failed test left
        if mover.here.name != one.name:
            one.do("clean", mover.uuid)
            one.do("forget", mover.uuid)
    if mover.here.name != host:
        live_move(mover)
    for name in mobile.hosts:
        mobile.tool("start", f"nova-compute-{name}")
        mobile.wait_ready(f"nova-compute-{name}")
    mobile.remove(api, mover.uuid)


def live_move(mover: Mover) -> list[int]:
    reported = mover.here.do("migrate", mover.prepare())
    mover.arrived()
    return reported


def test_live_migration_when_blocks_are_copied_then_uptime_connection_and_disk_go_on(guest: Mover) -> None:
    guest.ssh("echo kept > /root/mark; sync")
    before = guest.uptime_s()
    with talk(guest.sandbox, guest.address) as heard:
        live_move(guest)
        count = len(heard)
        wait_until("the connection goes on", lambda: len(heard) > count + 20, 30)
    assert [int(said) for _, said in heard] == list(range(1, len(heard) + 1)), "one connection, and nothing lost"
    assert guest.uptime_s() > before
    assert guest.ssh("cat /root/mark") == "kept\n"
    guest.ssh("echo written there > /root/there; sync")
    print(f"block migration: downtime {guest.downtime_ms()} ms by libvirt, "
          f"{1000 * longest_silence_s(heard):.0f} ms on the connection")
    folder = guest.sandbox.instances(guest.there.name) / guest.uuid
    assert not folder.exists() or guest.sandbox.layout.choices.shared_storage


def test_live_migration_when_paused_then_it_arrives_paused(guest: Mover) -> None:
    before = guest.uptime_s()
    guest.here.do("pause", guest.uuid)
    live_move(guest)
    assert guest.here.do("state", guest.uuid) == "PowerState.PAUSED" or guest.here.do("state", guest.uuid) == "3"
    guest.here.do("unpause", guest.uuid)
    assert guest.uptime_s() >= before and guest.ssh("cat /root/there") == "written there\n"


def test_live_migration_when_the_processor_is_missing_flags_then_they_are_named(guest: Mover) -> None:
    source = guest.here.do("describe", guest.uuid, GuestOnSource)
    other_cpu = source.cpu.replace("</cpu>", "<feature policy='require' name='avx512f'/></cpu>")
    with pytest.raises(Refused) as refused:
        guest.there.do("prepare_arrival", guest.order(msgspec.structs.replace(source, cpu=other_cpu)))
    assert refused.value.code == "move.cpu" and "avx512f" in refused.value.args[2]
    assert guest.uuid not in guest.there.do("guests")


@contextlib.contextmanager
def busy(guest: Mover) -> Iterator[None]:
    """The guest changes its memory all the time, so that its migration takes some."""
    guest.ssh("dd if=/dev/urandom of=/dev/shm/noise bs=1M count=40 2>/dev/null; "
              "(while test -e /dev/shm/noise; do dd if=/dev/shm/noise of=/dev/shm/more bs=1M 2>/dev/null; done) "
              ">/dev/null 2>&1 &")
    try:
        yield
    finally:
        guest.ssh("rm -f /dev/shm/noise; sleep 1; rm -f /dev/shm/more")


def _done(guest: Mover, call: str) -> bool:
    """Whether there was a migration to do it to."""
    try:
        guest.here.do(call, guest.uuid)
    except Refused as error:
        assert error.code == "migration.none"
        return False
    return True


def test_live_migration_when_aborted_then_the_guest_stays_and_nothing_is_left_there(guest: Mover) -> None:
    before = guest.uptime_s()
    order = guest.prepare()
    with busy(guest):
        going = guest.here.begin("migrate", order)
        wait_until("it is under way", lambda: _done(guest, "abort"), 30, 0.02)
        with pytest.raises(Refused) as failed:
            going.result(CALL_S)
    assert failed.value.code == "migration.failed"
    guest.there.do("clean", guest.uuid)
    assert guest.uuid not in guest.there.do("guests")
    assert guest.uptime_s() > before and guest.ssh("cat /root/mark") == "kept\n"


def test_live_migration_when_forced_then_it_ends_soon(guest: Mover) -> None:
    before = guest.uptime_s()
    order = guest.prepare()
    with busy(guest):
        going = guest.here.begin("migrate", order)
        wait_until("it is under way", lambda: _done(guest, "force"), 30, 0.02)
        going.result(CALL_S)
        guest.arrived()
        assert guest.uptime_s() > before
    print(f"forced: downtime {guest.downtime_ms()} ms by libvirt")


def test_live_migration_when_the_source_is_killed_then_a_repeated_order_joins_it(guest: Mover) -> None:
    before = guest.uptime_s()
    order = guest.prepare()
    with busy(guest):
        going = guest.here.begin("migrate", order)
        wait_until("it is under way", lambda: going.done() or guest.sends(), 30, 0.1)
        guest.replace_here()
        again = guest.here.begin("migrate", order)
        with contextlib.suppress(Refused):  # it may be over by now
            guest.here.do("force", guest.uuid)
        again.result(CALL_S)
        guest.arrived()
        assert guest.uptime_s() > before


def test_thief_of_a_source_when_it_is_let_in_for_a_guest_then_it_can_do_nothing_else_there(guest: Mover) -> None:
    """All that a host can be which takes part in a migration: it has the gate's secret, and libvirt's own client."""
    def on(host: MoveHost, *argv: str, code: int | None = 0) -> str:
        return guest.sandbox.run(*argv, host=host.name, code=code)

    def refused(*argv: str) -> str:
        return on(guest.here, "sh", "-c", '"$@" 2>&1', "sh", *argv, code=1)
    assert "libvirtd" not in on(guest.there, "ss", "-Hltnp")
    order = guest.prepare()
    assert order.arrival and order.arrival.gate
    port = f":{order.arrival.gate.port} "
    assert port in on(guest.there, "ss", "-Hltn")
    uri = guest.here.do("open_tunnel", order)
    memory = uri.partition("socket=")[2].replace("/libvirt", "/memory")
    definition = on(guest.here, "virsh", "dumpxml", "--migratable", "--security-info", guest.uuid)
    told = guest.sandbox.state / "thief.xml"
    for before, after, said in (
            ("/disk'", "/../other/disk'", "disk/vda"), ("/usr/bin/qemu-system-x86_64", "/usr/bin/env", "emulator"),
            ("<devices>", "<devices><filesystem type='mount'><source dir='/'/><target dir='x'/></filesystem>",
             "filesystem")):
        assert before in definition
        told.write_text(definition.replace(before, after, 1))
        assert said in refused("virsh", "migrate", "--live", "--p2p", "--unsafe", guest.uuid, "--desturi", uri,
                               "--migrateuri", f"unix://{memory}", "--xml", str(told))
    for command in (("list",), ("define", str(told)), ("secret-list",), ("nodedev-list",)):
        assert "the destination refused the call" in refused("virsh", "-c", uri, *command)
    guest.there.do("clean", guest.uuid)
    guest.here.do("close_tunnel", guest.uuid)
    assert port not in on(guest.there, "ss", "-Hltn") and guest.uuid not in guest.there.do("guests")
    assert guest.ssh("cat /root/mark") == "kept\n"


def test_migrate_when_the_guest_is_gone_then_it_is_done(guest: Mover) -> None:
    order = guest.prepare()
    guest.here.do("migrate", order)
    guest.here.do("migrate", order)
    guest.arrived()


def test_cold_move_when_the_flavor_grows_then_the_disk_grows_and_keeps_its_content(guest: Mover) -> None:
    guest.ssh("echo cold > /root/cold; sync")
    guest.here.do("power_off", guest.uuid)
    source = guest.here.do("leave", guest.uuid, GuestOnSource)
    assert guest.here.do("leave", guest.uuid, GuestOnSource) == source, "the same offer again"
    assert guest.here.do("kept_sources") == [guest.uuid] and guest.uuid not in guest.here.do("guests")
    build = guest.grown(root_gb=2, ephemeral_gb=1, swap_mb=32)
    order = msgspec.structs.replace(guest.order(source), build=build)
    guest.there.do("fetch", order)
    guest.there.do("fetch", order)
    guest.there.do("start", build)
    guest.turn()
    wait_until("the guest answers", lambda: _answers(guest), 90, 1)
    assert guest.ssh("cat /root/cold") == "cold\n"
    sizes = guest.ssh("cat /sys/block/vda/size /sys/block/vdb/size /sys/block/vdc/size").split()
    assert [int(size) * 512 for size in sizes] == [2 << 30, 1 << 30, 32 << 20]
    # and back again, as a revert does: what was done since is lost
    guest.here.do("clean", guest.uuid)
    guest.turn()
    assert guest.here.do("restore_source", guest.uuid) is True
    assert guest.here.do("restore_source", guest.uuid) is False
    assert guest.here.do("kept_sources") == []
    guest.here.do("start", guest.build)
    wait_until("the guest answers", lambda: _answers(guest), 90, 1)
    assert guest.ssh("cat /root/cold; cat /sys/block/vda/size") == f"cold\n{(1 << 30) // 512}\n"


def _answers(guest: Mover) -> bool:
    done = guest.sandbox.ssh(guest.address, "true", code=None)
    return done == "" and guest.sandbox.ssh(guest.address, "echo yes", code=None) == "yes\n"


def test_resize_when_it_stays_on_its_host_then_confirm_leaves_one_guest(guest: Mover) -> None:
    guest.here.do("power_off", guest.uuid)
    guest.here.do("leave", guest.uuid)
    build = guest.grown(memory_mb=160)
    guest.here.do("fetch", msgspec.structs.replace(guest.order(None), build=build))
    guest.here.do("start", build)
    guest.here.do("forget", guest.uuid)
    guest.here.do("forget", guest.uuid)
    wait_until("the guest answers", lambda: _answers(guest), 90, 1)
    assert guest.ssh("cat /root/cold") == "cold\n"
    assert guest.here.do("kept_sources") == []
    left = guest.sandbox.run("sh", "-c", "ps -eo args | grep [q]emu-storage-daemon", host=guest.here.name, code=None)
    assert guest.uuid not in left
