"""A cell conductor as a real daemon: its hosts see no difference, and their reports are carried from its database."""

from __future__ import annotations

import configparser
import time
from typing import Any

import pytest
import sqlalchemy as sa

from nova.conductor.cells.carrying import Carrying
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.hosts.feed import Feed
from nova.db.models import api, cell
from nova.model.host.hosts import HostStates
from tests.functional.backends import wait_until
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(2, 3)

UP_S = 40.0


class Scheduler:
    """A scheduler that keeps what it is sent."""

    def __init__(self) -> None:
        self.received: list[HostStates] = []

    def update_hosts(self, states: HostStates) -> None:
        self.received.append(states)

    def alive(self) -> set[str]:
        """The hosts in the messages since the last call."""
        received, self.received = self.received, []
        return {host for message in received for host, _at in message.alive}


def without_api_database(cloud: Cloud, host: str) -> None:
    """Take the api database out of the files of a host's conductor."""
    for name in ("nova.conf", "nova-conductor.conf"):
        path = cloud.root / "etc" / host / name
        if path.exists():
            read = configparser.RawConfigParser()
            read.read(path)
            read.remove_section("api_database")
            with path.open("w") as file:
                read.write(file)


@pytest.fixture(scope="module", params=[False, True], ids=["bounded", "upstream"])
def cloud(make_cloud: Any, request: pytest.FixtureRequest) -> Cloud:
    made: Cloud = make_cloud(Plan(conductors=2, network=False, upstream=request.param)).prepare()
    for host in ("ctl", "ctl2"):
        without_api_database(made, host)
    made.daemons["conductor"].start()
    made.daemons["compute1"].start()
    for name in ("conductor", "compute1"):
        made.daemons[name].ready()
    return made


@pytest.fixture(scope="module")
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture(scope="module")
def carrying(cloud: Cloud, scheduler: Scheduler) -> Carrying:
    """What a super conductor does for this cell, in this process."""
    nobody: Any = None
    sender: Any = scheduler
    deps = Deps(api=cloud.stores.api, cell=cloud.stores.cell, settings=ConductorSettings(service_down_time=10),
                host="super", scheduler=sender, compute=nobody, network=nobody, images=nobody, certs=nobody)
    deps.feed = Feed(deps)
    return Carrying(deps)


def services(cloud: Cloud) -> dict[tuple[str, str], Any]:
    return {(row.binary, row.host): row for row in cloud.stores.rows("cell", sa.select(cell.services))}


def ratio(cloud: Cloud) -> float | None:
    """The ratio of processors that the api database has for the compute host."""
    rows = cloud.stores.rows("api", sa.select(api.inventories.c.allocation_ratio).join_from(
        api.inventories, api.providers, api.providers.c.id == api.inventories.c.provider_id)
        .where(api.providers.c.host == "host1", api.inventories.c.resource_class == "VCPU"))
    return float(rows[0].allocation_ratio) if rows else None


def test_cell_conductor_then_its_host_reports_to_the_cell_alone_and_a_super_conductor_carries_it(
        cloud: Cloud, carrying: Carrying, scheduler: Scheduler) -> None:
    said = cloud.daemons["conductor"].wait_log("cell conductor")
    assert "INFO" in said and "ConductorHostRPC" in said
    assert ("ConductorMetadataRPC" in said) is bool(cloud.plan.upstream)
    wait_until("the host has reported", lambda: cloud.stores.rows("cell", sa.select(cell.nodes.c.id)), UP_S)
    assert {("nova-compute", "host1"), ("nova-conductor", "ctl")} <= services(cloud).keys() and ratio(cloud) is None
    carrying.carry()
    assert ratio(cloud) is not None and "host1" in scheduler.alive()
    seen = services(cloud)["nova-compute", "host1"].last_seen_at
    wait_until("a heartbeat arrives", lambda: services(cloud)["nova-compute", "host1"].last_seen_at > seen, UP_S)
    carrying.carry()
    assert scheduler.alive() == {"host1"}


def test_cell_conductor_when_it_is_killed_then_another_one_continues(
        cloud: Cloud, carrying: Carrying, scheduler: Scheduler) -> None:
    cloud.configure("host1", cpu_allocation_ratio="7.5")
    compute = cloud.daemons["compute1"]
    compute.kill()
    compute.start()
    cloud.daemons["conductor"].kill()  # while the host registers and reports
    time.sleep(1.0)
    cloud.daemons["conductor2"].start().ready()
    cloud.daemons["conductor2"].wait_log("cell conductor")

    def carried() -> bool:
        carrying.carry()
        return ratio(cloud) == 7.5
    wait_until("the second report is carried", carried, UP_S, 0.5)
    killed = services(cloud)["nova-conductor", "ctl"].last_seen_at
    wait_until("heartbeats go on", lambda: services(cloud)["nova-compute", "host1"].last_seen_at > killed, UP_S)
    scheduler.alive()
    wait_until("schedulers hear of it", lambda: (carrying.carry(), "host1" in scheduler.alive())[1], UP_S, 0.5)
    assert ("nova-conductor", "ctl2") in services(cloud)
    for name in ("conductor", "conductor2"):
        assert "NotInACell" not in cloud.daemons[name].text() and "Traceback" not in cloud.daemons[name].text()
    assert cloud.daemons["conductor2"].terminate()[0] == 0
