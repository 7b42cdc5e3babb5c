"""Moves of a server that really runs, asked for over the API: what its guest keeps, and that nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.backends import wait_until
from tests.machine.server import Server
from tests.machine.stack import TINY, Sandbox
from tests.machine.storages import mobile
from tests.machine.talk import longest_silence_s, talk

pytestmark = pytest.mark.in_turn(5, 10)

__all__ = ["mobile"]  # a fixture
LARGER = {**TINY, "name": "t1.larger", "ram": 160, "disk": 2, "swap": 16}


@pytest.fixture(scope="module")
def server(mobile: Sandbox) -> Iterator[Server]:
    api = mobile.api("demo")
    uuid = api.create("wanderer", key_name="demo", config_drive=True)["id"]
    api.settled(uuid, "ACTIVE")
    made = Server(mobile, uuid, mobile.ready(api, uuid)["address"])
    made.ssh("echo kept > /root/mark; sync")
    yield made
    mobile.remove(api, uuid)


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
