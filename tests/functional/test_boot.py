"""Servers made and unmade, on each database and in each way to run many things at once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests import sampling
from tests.functional.cloud import Cloud, Plan

USUAL = "mariadb"  # each run has it, and half of the others
PLANS = {"mariadb": Plan(computes=3), "postgresql": Plan("postgresql"), "sqlite": Plan("sqlite"),
         "threads": Plan("mariadb", concurrency="threads"), "one process": Plan(whole=True, computes=3),
         "three cells": Plan(cells=3, computes=6)}


@pytest.fixture(scope="module", params=[USUAL, *sampling.drawn([name for name in PLANS if name != USUAL], 2)])
def cloud(request: pytest.FixtureRequest, make_cloud) -> Iterator[Cloud]:
    running = make_cloud(PLANS[request.param]).start()
    yield running
    running.stop()


def test_boot_when_asked_for_one_then_it_is_active_with_host_and_address(cloud: Cloud) -> None:
    api = cloud.api()
    server = api.boot("one")
    assert server["addresses"]["private"][0]["addr"].startswith("10.11.")
    shown = cloud.api("admin").show(server["id"])
    assert shown["OS-EXT-SRV-ATTR:host"] in cloud.hosts
    assert shown["OS-EXT-STS:power_state"] == 1
    assert server["id"] in cloud.guests(shown["OS-EXT-SRV-ATTR:host"])
    api.remove(server["id"])
    cloud.wait_clean()


def test_boot_when_asked_for_many_then_each_is_active_and_all_go_at_once(cloud: Cloud) -> None:
    api = cloud.api()
    api.create("many", min_count=12, max_count=12)
    servers = api.servers()
    assert len(servers) == 12
    addresses = {api.settled(server["id"], "ACTIVE")["addresses"]["private"][0]["addr"] for server in servers}
    assert len(addresses) == 12
    assert {server["name"] for server in servers} == {f"many-{number}" for number in range(1, 13)}
    api.remove(*(server["id"] for server in servers))
    cloud.wait_clean()


def test_logs_when_nothing_went_wrong_then_no_daemon_told_of_an_error(cloud: Cloud) -> None:
    for host in cloud.hosts:  # heartbeats have come by now
        cloud.compute(host).wait_log("is ready after")
    time.sleep(2 * 2.5)
    assert {name: lines for name, daemon in cloud.daemons.items()
            if (lines := [line for line in daemon.text().splitlines() if " ERROR " in line])} == {}
