"""Moves of a server that really runs, asked for over the API: what its guest keeps, and that nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.machine.stack import TINY, Live, Sandbox
from tests.machine.talk import longest_silence_s, talk

LARGER = {**TINY, "name": "t1.larger", "ram": 160, "disk": 2, "swap": 16}


class Server:
    """One server, as its owner and the operator see it."""

    def __init__(self, sandbox: Sandbox, uuid: str, address: str) -> None:
        self.sandbox, self.uuid, self.address = sandbox, uuid, address
        self.admin: Live = sandbox.api("admin")

    @property
    def host(self) -> str:
        return self.admin.show(self.uuid)["OS-EXT-SRV-ATTR:host"]

    @property
    def other_host(self) -> str:
        return next(name for name in self.sandbox.hosts if name != self.host)

    def act(self, action: str, body: Any = None) -> None:
        self.admin.call("POST", f"/servers/{self.uuid}/action", {action: body})

    def settled(self, status: str) -> None:
        self.admin.settled(self.uuid, status, seconds=120)

    def ssh(self, command: str) -> str:
        return self.sandbox.ssh(self.address, command)

    def awake(self) -> None:
        wait_until("the guest answers", lambda: self.sandbox.ssh(self.address, "echo yes", code=None) == "yes\n", 90, 1)

    def uptime_s(self) -> float:
        return float(self.ssh("cat /proc/uptime").split()[0])

    def left_on(self, host: str) -> list[str]:
        """What a host has of it. (Its folder on shared storage is not one host's.)"""
        names = f"{self.uuid}_*" if self.sandbox.layout.choices.shared_storage else f"{self.uuid}*"
        folders = [path.name for path in self.sandbox.instances(host).glob(names)]
        script = f"virsh -q list --all --uuid; ps -eo args | grep '[{self.uuid[0]}]{self.uuid[1:]}'"
        told = self.sandbox.run("sh", "-c", script, host=host, code=None)
        return folders + [line for line in told.splitlines() if self.uuid in line]


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Server]:
    api = sandbox.api("demo")
    uuid = api.create("wanderer", key_name="demo", config_drive=True)["id"]
    api.settled(uuid, "ACTIVE")
    made = Server(sandbox, uuid, sandbox.ready(api, uuid)["address"])
    made.ssh("echo kept > /root/mark; sync")
    yield made
    sandbox.remove(api, uuid)


def test_live_migration_when_asked_for_then_the_guest_and_its_connection_go_on(server: Server) -> None:
    source, before = server.host, server.uptime_s()
    with talk(server.sandbox, server.address) as heard:
        server.act("os-migrateLive", {"host": None, "block_migration": "auto"})
        wait_until("it is on the other host", lambda: server.host != source, 90, 0.3)
        server.settled("ACTIVE")
        count = len(heard)
        wait_until("the connection goes on", lambda: len(heard) > count + 20, 30)
    assert [int(said) for _, said in heard] == list(range(1, len(heard) + 1)), "one connection, and nothing lost"
    assert server.uptime_s() > before and server.ssh("cat /root/mark") == "kept\n"
    wait_until("the source is empty", lambda: server.left_on(source) == [], 30, 0.5)
    print(f"live migration: {1000 * longest_silence_s(heard):.0f} ms of silence on the connection")


def test_resize_when_confirmed_then_the_disk_grew_and_keeps_its_content(server: Server) -> None:
    source = server.host
    server.act("resize", {"flavorRef": server.sandbox.flavor(server.admin, **LARGER)})
    server.settled("VERIFY_RESIZE")
    assert server.host != source and server.left_on(source) != [], "until it is confirmed, it can be taken back"
    server.awake()
    sizes = server.ssh("cat /sys/block/vda/size /sys/block/vdb/size; grep MemTotal /proc/meminfo").split()
    assert [int(size) * 512 for size in sizes[:2]] == [2 << 30, 16 << 20] and int(sizes[3]) > 105 << 10
    assert server.ssh("cat /root/mark") == "kept\n"
    server.act("confirmResize")
    server.settled("ACTIVE")
    wait_until("the source is empty", lambda: server.left_on(source) == [], 30, 0.5)


def test_migration_when_reverted_then_the_guest_is_as_it_was(server: Server) -> None:
    source = server.host
    server.ssh("echo before > /root/when; sync")
    server.act("migrate", {"host": server.other_host})
    server.settled("VERIFY_RESIZE")
    server.awake()
    assert server.host != source and server.ssh("cat /root/when") == "before\n"
    server.ssh("echo after > /root/when; sync")
    server.act("revertResize")
    server.settled("ACTIVE")
    assert server.host == source
    server.awake()
    assert server.ssh("cat /root/when /root/mark") == "before\nkept\n"
    wait_until("the other host is empty", lambda: server.left_on(server.other_host) == [], 30, 0.5)
    assert not list(server.sandbox.instances(source).glob("*_resize"))
