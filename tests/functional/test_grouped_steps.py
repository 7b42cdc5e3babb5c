"""Operations of single requests that share transactions, claims and calls, over whole compute hosts: at every step the
conductor dies, one of them fails, or one is overtaken. Each ends as if it were alone, and nothing is left."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.engine.workflow import Workflow
from nova.conductor.registry import ALL
from nova.db.host import services
from nova.model.server.servers import NewServer
from tests.fakes import living_cloud
from tests.fakes.assembled import assemble
from tests.fakes.invariants import wrong
from tests.fakes.living_cloud import Killed, LivingCloud
from tests.fakes.ready_servers import BEFORE, ordered
from tests.fakes.small_cloud import DEMO, make_templates
from tests.fakes.taken_steps import without_volumes
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cloud

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

HOSTS = ("host1", "host2", "host3")
FEW, MANY = 2, 50
TIMEOUT_S = 60.0
#: action -> the vm_state afterwards
ACTIONS = {"create": "active", "delete": "deleted", "stop": "stopped", "start": "active", "hard_reboot": "active",
           "pause": "paused", "attach_interface": "active", "detach_interface": "active"}
#: Points of the tests with many servers, which take seconds each.
FEW_POINTS = {("create", "ClaimResources"), ("create", "BuildGuests"), ("delete", "DestroyGuests"),
              ("delete", "ReleaseResources"), ("stop", "StopGuests")}


def workflow_of(action: str) -> Workflow:
    return next(one for one in ALL if one.action.name == action)


def points() -> list[Any]:
    """Every step of these actions with two servers, and some with many."""
    found = [(action, step.name) for action in ACTIONS for step in without_volumes(workflow_of(action))]
    return [pytest.param(*point, FEW, id=f"{'-'.join(point)}-{FEW}") for point in found] + \
        [pytest.param(*point, MANY, id=f"{'-'.join(point)}-{MANY}") for point in found if point in FEW_POINTS]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[LivingCloud]:
    with walking_cloud(tmp_path_factory.mktemp("cloud"), templates, HOSTS) as cloud, cloud.mortal():
        yield cloud


class Group:
    """Servers of single requests, whose operations run side by side. ``sizes``: how many callers shared executions."""

    def __init__(self, cloud: LivingCloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud, self._monkeypatch = cloud, monkeypatch
        self.sizes: Counter[int] = Counter()
        self.walk = Walk(cloud, 1, ("2",), IMAGES)
        self.uuids: list[str] = []

    def create(self, size: int) -> None:
        """One request for each server, all at once."""
        made: list[str] = []

        def one(number: int) -> None:
            with context.entered(DEMO):
                made.extend(self.cloud.control.create_servers(NewServer(
                    name=f"vm{number}", flavor_id="1", image_id=IMAGES[0])).uuids)
        self.together(one, size)
        self.uuids = made

    def prepare(self, action: str, size: int) -> None:
        """Servers on which the action may begin. The hosts' heartbeats are of now."""
        self.cloud.cell.transact(lambda tx: services.record_heartbeats(tx, dict.fromkeys(services.known(tx))))
        if action == "create":
            return
        self.uuids = self.cloud.active(size, image_id=IMAGES[0])
        for earlier in BEFORE.get(action, ()):
            for uuid in self.uuids:
                ordered(self.walk, uuid, earlier)
            self.cloud.settle()

    def order(self, action: str, size: int) -> None:
        self.assemble(size)
        if action == "create":
            self.create(size)
        else:
            self.together(lambda number: ordered(self.walk, self.uuids[number], action), size)

    def assemble(self, size: int) -> None:
        """From now on, callers wait for each other."""
        self.sizes = assemble(self._monkeypatch, size)

    def together(self, call: Callable[[int], object], size: int) -> None:
        failed: list[BaseException] = []

        def run(number: int) -> None:
            try:
                call(number)
            except Killed:
                return
            except BaseException as error:  # told by the test's own thread
                failed.append(error)
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        assert not failed, failed

    def states(self) -> list[str]:
        """Let all operations end; each server's vm_state, ``deleted`` for one that is gone."""
        self.walk._heal()
        assert wrong(self.cloud, self.walk.networks.addresses) == []
        rows = [self.cloud.server(uuid) for uuid in self.uuids]
        return ["deleted" if row.deleted else row.vm_state for row in rows]

    def leave(self) -> None:
        self.cloud.on_point = lambda action, step, when: None
        for uuid in self.uuids:
            if not self.cloud.server(uuid).deleted:
                self.cloud.order(uuid, "force_delete")
        self.states()
        assert not self.cloud.guests() and not self.cloud.claims() and not self.cloud.open_ledger()


@pytest.fixture
def group(living: LivingCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    living_cloud.impatient(monkeypatch)
    group = Group(living, monkeypatch)
    yield group
    monkeypatch.undo()
    group.leave()


@pytest.mark.parametrize("action, step, size", points())
def test_step_when_the_conductor_dies_then_all_of_the_group_end_well(group: Group, action: str, step: str, size: int
                                                                   ) -> None:
    group.prepare(action, size)
    reached: list[str] = []

    def look(*point: str) -> None:
        if group.cloud.deps.runner.journal.dead:
            raise Killed
        if point == (action, step, "after") and not reached:
            reached.append(step)
            group.cloud.deps.runner.journal.dead = True
            raise Killed
    group.cloud.on_point = look
    group.order(action, size)
    assert group.states() == [ACTIONS[action]] * size
    assert reached and max(group.sizes) == size


@pytest.mark.parametrize("action, step, size", points())
def test_step_when_one_of_the_group_fails_then_it_fails_alone(group: Group, monkeypatch, action: str, step: str,
                                                              size: int) -> None:
    group.prepare(action, size)
    found = next(one for one in workflow_of(action).steps if one.name == step)
    real, victims = found.do, []

    def fail(deps: Any, ops: Any) -> Any:
        result = list(real(deps, ops))
        if not victims:
            victims.append(ops[0].uuid)
        return [errors.Bug("unforeseen") if op.uuid in victims else one for op, one in zip(ops, result, strict=True)]
    monkeypatch.setattr(found, "do", fail)
    group.order(action, size)
    until_failed(group, victims)
    monkeypatch.setattr(found, "do", real)
    after = dict(zip(group.uuids, group.states(), strict=True))
    mine = after.pop(victims[0])
    assert set(after.values()) == {ACTIONS[action]} or size == 1
    assert mine in ("error", "active", "stopped", "paused", "deleted") and max(group.sizes) == size
    [fault] = {row.outcome for row in group.cloud.journal(victims[0]) if row.action == action}
    assert fault == ("success" if mine == ACTIONS[action] and action == "delete" else "error")
    assert {row.outcome for uuid in after for row in group.cloud.journal(uuid) if row.action == action} == {"success"}


def until_failed(group: Group, victims: list[str]) -> None:
    """Wait until the step has run for every server: from then on it may succeed."""
    living_cloud.until(lambda: bool(victims), "a step of the group fails")
    living_cloud.until(lambda: not group.cloud.deps.runner.running or group.cloud.deps.runner.journal.dead,
                       "the group ends")


@pytest.mark.parametrize("action, step, size", [point for point in points() if point.values[0] != "delete"])
def test_step_when_one_of_the_group_is_deleted_meanwhile_then_only_that_one_is_gone(group: Group, action: str,
                                                                                  step: str, size: int) -> None:
    group.prepare(action, size)
    victims: list[str] = []

    def look(*point: str) -> None:
        if point == (action, step, "before") and not victims:
            row = next(row for row in group.cloud.open_operations() if row.action == action)
            victims.append(row.server_uuid)
            group.cloud.order(row.server_uuid, "force_delete")
    group.cloud.on_point = look
    group.order(action, size)
    after = dict(zip(group.uuids, group.states(), strict=True))
    assert after.pop(victims[0]) == "deleted" and set(after.values()) == {ACTIONS[action]}
    assert max(group.sizes) == size


@pytest.mark.parametrize("size", [MANY])
def test_creates_when_quota_is_for_some_of_the_group_then_as_many_are_created(group: Group, size: int) -> None:
    group.cloud.set(quota_defaults={**group.cloud.deps.settings.quota_defaults, "instances": 20})
    group.assemble(size)
    refused: list[str] = []

    def one(number: int) -> None:
        try:
            with context.entered(DEMO):
                group.uuids.extend(group.cloud.control.create_servers(NewServer(
                    name=f"vm{number}", flavor_id="1", image_id=IMAGES[0])).uuids)
        except errors.OverQuota as error:
            refused.append(error.message)
    group.together(one, size)
    group.cloud.set(quota_defaults={**group.cloud.deps.settings.quota_defaults, "instances": 100})
    assert (len(group.uuids), len(refused)) == (20, 30) and group.states() == ["active"] * 20
    assert max(group.sizes) == size
