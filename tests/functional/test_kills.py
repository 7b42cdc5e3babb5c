"""kill -9 at each step: the server ends ACTIVE or ERROR with a fault, or is gone, and nothing is left behind.

``--long`` runs all of the matrix, otherwise a few of it that ``--nova-seed`` chooses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from nova.db.models.cell import servers
from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.kills import Kill, matrix, sample
from tests.functional.scene import BOUND_S, Scene

SAMPLE = 6


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill" in metafunc.fixturenames:
        option = metafunc.config.getoption
        seed = sampling.SEED
        kills = matrix() if option("--long") else sample(matrix(), seed, SAMPLE)
        metafunc.parametrize("kill", kills, ids=str)


@pytest.fixture(scope="module")
def cloud(make_cloud, tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    point = tmp_path_factory.mktemp("faults") / "point"
    # a sleeper holds what the broker has handed it until the broker counts it as dead
    options = {"oslo_messaging_rabbit": {"heartbeat_timeout_threshold": 6}}
    env = {"NOVA_FAULT_POINT": f"@{point}"}
    return make_cloud(Plan(computes=2, cells=sampling.cells(2), env=env, options=options)).start()


@pytest.fixture
def scene(cloud: Cloud) -> Iterator[CreateAndDelete]:
    scene = CreateAndDelete(cloud)
    yield scene
    scene.repair()
    if cloud.leftovers():  # the test has failed already: the next one shall not
        with contextlib.suppress(AssertionError):
            cloud.empty()


class CreateAndDelete(Scene):
    """A cloud in which a server is made or deleted while something dies."""

    def aim(self, kill: Kill) -> None:
        where = "scheduler" if kill.victim == "scheduler" else kill.action.removeprefix("failing ")
        self.arm(where, kill.point, kill.when, "pause" if kill.what == "pause" else "kill")

    def run(self, kill: Kill) -> str:
        """Do what is to be interrupted; the server's uuid."""
        if kill.action == "delete":
            uuid = self.api.boot(str(kill))["id"]
            return self.begin(kill, lambda: self.api.delete(uuid) or uuid, lambda: uuid)
        return self.begin(kill, lambda: self.api.create(str(kill))["id"], lambda: self.named(str(kill)))

    def named(self, name: str) -> str:
        query = sa.select(servers.c.uuid).where(servers.c.name == name, servers.c.deleted == 0)
        return str(self.cloud.stores.rows("cell", query)[0].uuid)

    def begin(self, kill: Kill, ask: Callable[[], str], find: Callable[[], str]) -> str:
        def do() -> str:
            try:
                return ask()
            except Refused as refused:  # who died may have been about to answer; what was begun goes on
                assert refused.status in (500, 503), refused
                return find()
        with contextlib.ExitStack() as stack:
            if kill.victim == "compute":
                return self._compute_dies(kill, do)
            if kill.action == "failing create":
                for host in self.cloud.hosts:
                    stack.enter_context(self.cloud.knobs(host, {"call": "start_new", "do": "fail"}))
            self.aim(kill)
            done = do()
            wait_until(f"{kill} strikes", lambda: not self.point.exists(), 20)
            if kill.victim == "scheduler":
                self.cloud.daemons["scheduler"].wait_end()
                self.cloud.daemons["scheduler"].restart()
            if kill.action == "failing create":
                self.settled(done)
        return done

    def _compute_dies(self, kill: Kill, do: Callable[[], str]) -> str:
        daemons = {host: self.cloud.compute(host) for host in self.cloud.hosts}
        rule = {"call": kill.point, "do": "die", "when": kill.when}
        with contextlib.ExitStack() as stack:
            for host in daemons:
                stack.enter_context(self.cloud.knobs(host, rule))
            done = do()
            wait_until(f"{kill} strikes", lambda: not all(one.running for one in daemons.values()), 20, 0.01)
        if kill.what == "kill":
            for daemon in daemons.values():
                if not daemon.running:
                    daemon.restart()
        return done


def test_server_when_a_process_dies_at_a_step_then_it_ends_well_and_leaves_nothing(scene: CreateAndDelete,
                                                                                   kill: Kill) -> None:
    uuid = scene.run(kill)
    row = scene.settled(uuid)
    if kill.action == "delete":
        assert row.deleted, row.vm_state
    elif kill.action == "create" and kill.victim == "conductor" and kill.what == "kill":
        assert row.vm_state == "active"  # nothing was wrong but that the conductor died: it goes on
    else:
        assert row.vm_state == "active" or (row.vm_state == "error" and row.fault.message), row
    scene.repair()
    after = scene.settled(uuid)  # who wakes too late, or comes back, changes nothing
    assert (after.vm_state, after.host) == (row.vm_state, row.host)
    if not row.deleted:
        wait_until("the API answers", lambda: scene.api.show(uuid), 30)
        scene.api.remove(uuid, seconds=BOUND_S)
    scene.cloud.wait_clean(BOUND_S)
