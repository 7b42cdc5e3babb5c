"""Telling network hosts: one that is down or hangs keeps nobody waiting who does not need it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.nova_network.network_updates import NetworkUpdates
from nova.db.models import cell as tables
from nova.model.base import Scope
from nova.model.host.services import Registration
from nova.model.network.networks import NetworkOnHost, NewNetwork
from tests.fakes.small_cloud import SmallCloud, until


class Hosts:
    """NetworkRPC's client: ``hanging`` hosts answer when they are let go."""

    def __init__(self) -> None:
        self.served: list[tuple[str, tuple[NetworkOnHost, ...]]] = []
        self.looked: list[str] = []
        self.hanging: set[str] = set()
        self.go_on = threading.Event()

    def serve_networks(self, host: str, networks: tuple[NetworkOnHost, ...]) -> None:
        self.served.append((host, networks))
        if host in self.hanging:
            self.go_on.wait(30)

    def refresh_networks(self, host: str) -> None:
        self.looked.append(host)
        raise errors.Unavailable("one of its other networks is broken")


class Two:
    """Two single-host networks, of two hosts."""

    def __init__(self, cloud: SmallCloud, timeout_s: float = 10.0) -> None:
        self.cloud, self.hosts = cloud, Hosts()
        cloud.daemons.register(Registration(host="other", binary="nova-network", topic="network"))
        self.first = cloud.control.list_networks(Scope())[0].uuid
        self.second = cloud.control.create_network(NewNetwork(label="two", cidr="10.9.0.0/24", bridge="br2"))[0].uuid
        cloud.write("cell", sa.update(tables.networks).where(tables.networks.c.uuid == self.second)
                    .values(host="other"))
        self.network_updates = NetworkUpdates(cloud.cell, self.hosts, timeout_s=timeout_s)

    def try_send(self, *uuids: str) -> dict[Any, errors.NovaError]:
        return self.network_updates.try_send(uuids, ())


@pytest.fixture
def two(cloud: SmallCloud) -> Iterator[Two]:
    made = Two(cloud)
    yield made
    made.hosts.go_on.set()


def test_host_that_hangs_delays_nobody_who_tells_another(two: Two) -> None:
    two.hosts.hanging.add("other")
    waits = threading.Thread(target=lambda: two.try_send(two.second), daemon=True)
    waits.start()
    until(lambda: two.hosts.served, "a host is told")
    begun = time.monotonic()
    for _ in range(20):
        assert two.try_send(two.first) == {}
    assert time.monotonic() - begun < 5, "a second at most for the round that met it, and nothing for the others"
    assert waits.is_alive()
    two.hosts.go_on.set()
    waits.join(5)
    assert not waits.is_alive()


def test_host_that_is_down_is_not_called_and_who_needs_it_learns_it_at_once(two: Two) -> None:
    two.cloud.write("cell", sa.update(tables.services).where(tables.services.c.host == "other")
                    .values(last_seen_at=None))
    with pytest.raises(errors.Unavailable, match="nova-network on 'other' does not report"):
        two.network_updates.send([two.first, two.second])
    assert [host for host, _states in two.hosts.served] == ["net"]
    two.network_updates.refresh_host({"other"})
    assert two.hosts.looked == []


def test_host_that_never_answers_is_waited_for_so_long_and_no_longer(cloud: SmallCloud) -> None:
    two = Two(cloud, timeout_s=0.1)
    two.hosts.hanging.add("other")
    try:
        with pytest.raises(errors.Unavailable, match="'other' has not applied its update within 0 s"):
            two.network_updates.send([two.second])
    finally:
        two.hosts.go_on.set()


def test_what_comes_while_a_host_is_busy_is_one_message_with_the_newest_states(two: Two) -> None:
    two.hosts.hanging.add("net")
    threads = [threading.Thread(target=lambda: two.try_send(two.first), daemon=True)]
    threads[0].start()
    until(lambda: two.hosts.served, "a host is told")
    threads += [threading.Thread(target=lambda: two.try_send(two.first), daemon=True) for _ in range(10)]
    for thread in threads[1:]:
        thread.start()
    until(lambda: two.network_updates.queues.waiting("net"), "the next message waits")
    two.hosts.go_on.set()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    versions = [states[0].version for _host, states in two.hosts.served]
    assert len(versions) <= 4 and versions == sorted(versions)


def test_host_that_fails_to_look_is_told_states_all_the_same(two: Two) -> None:
    two.network_updates.refresh_host({"net"})
    assert two.hosts.looked == ["net"]
    assert two.try_send(two.first) == {}
