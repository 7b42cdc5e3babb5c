"""Calls that last have a connection of their own: against libvirt's own test driver, in this process."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from nova import concurrency, errors
from tests.contract.driver_conformance import eventually

libvirt = pytest.importorskip("libvirt")

from nova.virt.libvirt.connection.link import Link  # noqa: E402

GUEST = "6695eb01-f6a4-8304-79aa-97f2502e193f"  # the test driver's one


class Opened(Link):
    """Counts its connections, and those that are open."""

    def _open(self):
        return libvirt.open(self._uri)


@pytest.fixture
def link(monkeypatch):
    made = Opened("test:///default")
    opened: list[object] = []
    really = libvirt.open

    def open_(uri):
        connection = really(uri)
        opened.append(connection)
        return _NoKeepAlive(connection)
    monkeypatch.setattr(libvirt, "open", open_)
    made.opened = opened
    yield made
    made.close()


class _NoKeepAlive:
    """The test driver has none."""

    def __init__(self, connection):
        self._connection, self.closed = connection, False

    def setKeepAlive(self, interval, count):  # noqa: N802
        return 0

    def __getattr__(self, name):
        return getattr(self._connection, name)


def test_call_that_lasts_then_it_has_a_connection_of_its_own(link):
    shared = link.call("ask", lambda connection: connection)
    own = []
    assert link.on_domain("ask", GUEST, lambda domain: own.append(domain.connect()) or domain.name(),
                          lasts=True) == "test"
    assert len(link.opened) == 2 and link.call("ask", lambda connection: connection) is shared


def test_call_while_others_last_then_it_is_answered(link):
    go_on: Any = concurrency.native_threading().Event()  # calls that last run in real threads, whatever the mode
    begun: list[int] = []
    threads = [threading.Thread(target=link.on_domain, kwargs={"lasts": True},
                                args=("wait", GUEST, lambda domain: begun.append(1) or go_on.wait(20)))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    assert eventually(lambda: len(begun) == 8, 10)
    assert link.on_domain("ask", GUEST, lambda domain: domain.name()) == "test"
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(link.opened) == 9


@pytest.mark.parametrize("lasts", [False, True])
def test_call_when_the_guest_is_not_there_or_libvirt_says_no_then_it_is_told_the_same(link, lasts):
    with pytest.raises(errors.guest.NotDefined):
        link.on_domain("ask", "00000000-0000-0000-0000-000000000000", lambda domain: None, lasts=lasts)
    with pytest.raises(errors.host.LibvirtRefused, match="ask"):
        link.on_domain("ask", GUEST, lambda domain: domain.setMemory(1 << 40), lasts=lasts)


def test_call_that_lasts_when_there_is_no_libvirt_then_it_is_down():
    with pytest.raises(errors.host.LibvirtDown):
        Opened("qemu+unix:///system?socket=/nonexistent").call_on_own_connection("ask", lambda connection: None)
