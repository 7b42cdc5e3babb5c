"""kill -9 at each step of each action in a server's life, of the conductor and of both hosts; a broker that goes in
the middle of a long step; destinations that are full.

Whatever dies: the server ends in a state that the table says, on one host; claims are what hosts run; nothing is left.
``--long`` runs all of the matrix, otherwise one of each kind that ``--nova-seed`` chooses.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models.cell import migrations
from nova.model.server.states import ACTIONS
from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE, Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.life_kills import (
    BEFORE,
    BIGGER,
    ENDS_OF_MOVES,
    FAILING,
    ORDERS,
    OTHER_IMAGE,
    LifeKill,
    matrix,
    sample,
)
from tests.functional.scene import BOUND_S, Scene

TOO_BIG = "3"  # a flavor that no host has room for beside another server
DISK_GB = 100  # of each host
AWAY_S = 13.0  # longer than service_down_time
LONG_STEP_S = 6.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill" in metafunc.fixturenames:
        option = metafunc.config.getoption
        seed = sampling.SEED
        kills = matrix() if option("--long") else sample(matrix(), seed)
        metafunc.parametrize("kill", kills, ids=str)


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud], tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    """Small hosts; what is deleted can be restored, and what is shelved keeps its place until it is offloaded."""
    point = tmp_path_factory.mktemp("faults") / "point"
    options = {"DEFAULT": {"reclaim_instance_interval": 3600, "shelved_offload_time": -1},
               "fake": {"vcpus": 8, "memory_mb": 16384, "local_gb": DISK_GB},
               "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": 6}}
    cells = sampling.cells(2)  # servers move within theirs
    plan = Plan(computes=3 * max(cells, 1), cells=cells, env={"NOVA_FAULT_POINT": f"@{point}"}, options=options)
    made = make_cloud(plan).start()
    made.glance.add(b"another image", id=OTHER_IMAGE, name="other")
    for flavor, disk in ((BIGGER, 2), (TOO_BIG, DISK_GB)):
        made.api("admin").call("POST", "/flavors", {"flavor": {
            "name": f"m1.{flavor}", "id": flavor, "ram": 1024, "vcpus": 2, "disk": disk}})
    return made


@pytest.fixture
def life(cloud: Cloud) -> Iterator[Life]:
    life = Life(cloud)
    yield life
    life.repair()
    life.empty()


class Life(Scene):
    """Servers whose actions are interrupted."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud, "admin")

    def repair(self) -> None:
        super().repair()
        for service in self.api.get("/os-services?binary=nova-compute")["services"]:
            if service["forced_down"]:
                self.force_down(service["host"], False)

    def force_down(self, host: str, down: bool) -> None:
        [service] = self.api.get(f"/os-services?binary=nova-compute&host={host}")["services"]
        self.api.call("PUT", f"/os-services/{service['id']}", {"forced_down": down})

    def empty(self) -> None:
        """A test that failed leaves nothing to the next one."""
        with contextlib.suppress(AssertionError):
            for server in [*self.api.servers(), *self.api.servers("?deleted=1&status=SOFT_DELETED")]:
                self.api.act(server["id"], "forceDelete")
            self.cloud.wait_clean(BOUND_S)
        for image in set(self.cloud.glance.images) - {IMAGE, OTHER_IMAGE}:
            del self.cloud.glance.images[image], self.cloud.glance.data[image]

    # -- what is done

    def order(self, uuid: str, action: str) -> None:
        if action == "soft_delete":
            self.api.delete(uuid)
        elif action == "attach_interface":
            self.api.call("POST", f"/servers/{uuid}/os-interface", {"interfaceAttachment": {}})
        elif action == "detach_interface":
            [*_, last] = self.api.get(f"/servers/{uuid}/os-interface")["interfaceAttachments"]
            self.api.call("DELETE", f"/servers/{uuid}/os-interface/{last['port_id']}")
        else:
            self.api.act(uuid, *ORDERS[action])

    def prepared(self, kill: LifeKill) -> str:
        """A server that the action may begin on."""
        uuid: str = self.api.boot(str(kill)[:60])["id"]
        for earlier in BEFORE.get(kill.ordered, ()):
            self.order(uuid, earlier)
            self.settled(uuid)
        if kill.ordered == "evacuate":
            host = self.row(uuid).host
            self.cloud.compute(host).kill()
            self.force_down(host, True)
        return uuid

    def begin(self, kill: LifeKill, uuid: str, home: str | None) -> str:
        """Order the action and let the victim die at its point; the host that died, if one did."""
        self.arm(kill.ordered, kill.step, kill.when, "kill" if (kill.victim, kill.what) == ("conductor", "kill")
                 else "pause")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self._ask, uuid, kill.ordered)
            wait_until(f"{kill} strikes", lambda: not self.point.exists(), BOUND_S, 0.01)
            if kill.victim == "conductor":
                host = ""
            else:
                host = self._place(kill.victim, uuid, home)
                self.cloud.compute(host).kill()
                wait_until("the conductor stands", self.sleepers, 5, 0.01)
                self.wake()
            asked.result()
        return host

    def _ask(self, uuid: str, action: str) -> None:
        try:
            self.order(uuid, action)
        except Refused as refused:  # who died may have been about to answer; what was begun goes on
            assert refused.status in (500, 503), refused

    def _place(self, victim: str, uuid: str, home: str | None) -> str:
        """The host of the operation that runs; ``home``: where the server was before it."""
        [operation] = self.open(uuid)
        if operation.action in ENDS_OF_MOVES:
            return str(operation.arguments[victim])
        if victim == "destination":
            return str(operation.data["host"])
        assert home, "a server without a host has no source"
        return home

    def interrupted(self, kill: LifeKill) -> tuple[str, Any, Any]:
        """(uuid, the row before, the row once all was over)."""
        uuid = self.prepared(kill)
        before = self.row(uuid)
        with contextlib.ExitStack() as stack:
            if kill.fails:
                for host in self.cloud.hosts:
                    stack.enter_context(self.cloud.knobs(host, {"call": FAILING[kill.ordered], "do": "fail"}))
            host = self.begin(kill, uuid, before.host)
            if kill.fails:
                self.settled(uuid)
        if host and kill.what == "stay":  # what waits for the host goes on waiting; all else has ended
            with contextlib.suppress(AssertionError):
                self.settled(uuid, AWAY_S)
        if kill.victim == "conductor" and kill.what == "pause":
            self.settled(uuid)
        self.repair()
        return uuid, before, self.settled(uuid)


def legal(kill: LifeKill, before: Any) -> set[str]:
    """States that the server may end in."""
    table = ACTIONS[kill.ordered]
    found = {state.value for state in (table.result, table.failed) if state is not None} | {before.vm_state}
    if kill.victim == "conductor" and not kill.fails and table.result is not None:
        return {table.result.value}  # nothing was wrong but that the conductor died: it goes on
    return found | {"error"} | ({"active"} if kill.ordered in ("rebuild", "evacuate", *ENDS_OF_MOVES) else set())


def test_action_when_a_process_dies_at_a_step_then_it_ends_well_and_leaves_nothing(life: Life, kill: LifeKill) -> None:
    uuid, before, row = life.interrupted(kill)
    if kill.ordered != "soft_delete" or not row.deleted:
        assert row.vm_state in legal(kill, before), (row.vm_state, row.fault, life.story(uuid))
        assert row.vm_state != "error" or row.fault.message
    life.wait_right(uuid)
    queued = {image["id"]: image["name"] for image in life.cloud.glance.images.values() if image["status"] == "queued"}
    assert not queued, "images that will never have data are left"
    life.api.act(uuid, "forceDelete")
    life.api.gone(uuid, BOUND_S)
    life.cloud.wait_clean(BOUND_S)


# -- full destinations


def test_resize_when_no_host_has_room_then_the_server_is_as_before(life: Life) -> None:
    uuids = [life.api.boot(f"full{number}", host=host)["id"] for number, host in enumerate(life.cloud.hosts)]
    before = life.row(uuids[0])
    life.api.act(uuids[0], "resize", {"flavorRef": TOO_BIG})
    row = life.settled(uuids[0])
    assert (row.vm_state, row.host, row.flavor.vcpus) == ("active", before.host, 1)
    [action] = [one for one in life.cloud.stores.journal(uuids[0]) if one.action == "resize"]
    assert "No valid host" in str(action.fault), action.fault
    life.wait_right(uuids[0])


@pytest.mark.parametrize("action, call", [("resize", "fetch"), ("live-migration", "prepare_arrival"),
                                          ("evacuate", "create_disks")])
@pytest.mark.parametrize("full", ["one", "all"])
def test_move_when_a_disk_is_full_then_the_next_host_is_tried_and_with_none_left_nothing_has_changed(
        life: Life, action: str, call: str, full: str) -> None:
    uuid = life.prepared(LifeKill("destination", action, call, "before"))
    before = life.row(uuid)
    times = {"times": 1} if full == "one" else {}
    rule = {"call": call, "do": "fail", "kind": "host_refused", "message": "no space left on the device", **times}
    others = life.cloud.beside(before.host)
    with contextlib.ExitStack() as stack:
        for host in others[:1] if full == "one" else others:
            stack.enter_context(life.cloud.knobs(host, rule))
        life.order(uuid, action)
        row = life.settled(uuid)
    if full == "one":
        assert row.vm_state == (ACTIONS[action].result or ACTIONS["start"].result) and row.host in others
    else:
        assert row.host == before.host and row.vm_state in ("active", "error"), row.fault
    life.repair()
    life.wait_right(uuid)


# -- the broker


@pytest.fixture
def slow_cloud(make_cloud: Callable[[Plan], Cloud], tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    point = tmp_path_factory.mktemp("faults") / "point"
    options, cells = {"fake": {"live_migration_time": LONG_STEP_S}}, sampling.cells(2)
    plan = Plan(computes=2 * max(cells, 1), cells=cells, env={"NOVA_FAULT_POINT": f"@{point}"}, options=options)
    return make_cloud(plan).start()


def test_live_migration_when_the_broker_restarts_in_its_midst_then_the_guest_runs_on_one_host(
        slow_cloud: Cloud, backends: Any) -> None:
    scene, broker = Scene(slow_cloud, "admin"), backends.broker
    uuid = scene.api.boot("travels")["id"]
    query = sa.select(migrations.c.status).where(migrations.c.server_uuid == uuid)
    scene.api.act(uuid, *ORDERS["live-migration"])
    wait_until("it is sent", lambda: [row.status for row in slow_cloud.stores.rows("cell", query)] == ["running"], 20)
    try:
        broker.stop()
        time.sleep(2)
    finally:
        broker.start()
        broker.wait()
    row = scene.settled(uuid, 90)
    assert row.vm_state == "active", (row.fault, scene.story(uuid))
    assert [row.status for row in slow_cloud.stores.rows("cell", query)][0] in ("completed", "error")
    scene.wait_right(uuid, 60)
    guest = next(iter(slow_cloud.stores.rows("cell", sa.select(migrations).where(migrations.c.server_uuid == uuid))))
    assert row.host == (guest.dest_compute if guest.status == "completed" else guest.source_compute)
    slow_cloud.empty()
