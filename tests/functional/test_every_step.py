"""Every step of every workflow, over whole compute hosts: it fails, or a process is killed right before or after it.

Whatever happens, the server ends in a state of the table on one host, claims equal what hosts run, and nothing is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.conductor.engine.workflow import Workflow
from nova.conductor.registry import ALL
from nova.model.server.states import ACTIONS as TABLE
from tests import sampling
from tests.fakes import living_cloud
from tests.fakes.invariants import wrong
from tests.fakes.living_cloud import Killed, LivingCloud
from tests.fakes.ready_servers import NOT_TAKEN, ordered, prepared
from tests.fakes.small_cloud import make_templates
from tests.fakes.taken_steps import OF_VOLUMES, without_volumes
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cells, walking_cloud
from tests.fakes.walking_networks import WalkingNetworks
from tests.fakes.walking_neutron import NeutronNetworks

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

#: Recorded without a workflow of their own.
NO_ORDER = {"create", "reset_state", *OF_VOLUMES}
#: What was stopped or active before may be either after these.
ENDS_AS_IT_WAS = ("rebuild", "evacuate", "confirmResize", "revertResize")
HOSTS = ("host1", "host2", "host3")
CELLS = sampling.cells(2)
CELLS_HOSTS = ("host1", "host2", "host3", "host4", "host5", "host6")  # in turn in each of two cells
TESTS_A_CLOUD = 30


def workflows() -> list[Workflow]:
    return [one for one in ALL if one.action.name not in NO_ORDER]


def points() -> list[Any]:
    """Every step that this action takes here (some are for other options alone)."""
    return [pytest.param(one.action.name, step.name, id=f"{one.action.name}-{step.name}")
            for one in workflows() for step in without_volumes(one) if (one.action.name, step.when) not in NOT_TAKEN]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


class Clouds:
    """One cloud after another: to start three hosts takes as long as what a test does there. A cloud serves until a
    test leaves it other than it was, and some tests at most, so that not all meet what came before them."""

    def __init__(self, folder: Path, templates: Path) -> None:
        self.folder, self.templates, self.made = folder, templates, 0
        self._exit = contextlib.ExitStack()
        self._cloud: LivingCloud | None = None
        self._left = 0

    def take(self) -> LivingCloud:
        if self._cloud is None:
            self.made, self._left = self.made + 1, TESTS_A_CLOUD
            (folder := self.folder / str(self.made)).mkdir()
            made = walking_cells(folder, self.templates, CELLS_HOSTS) if CELLS else \
                walking_cloud(folder, self.templates, HOSTS)
            self._cloud = self._exit.enter_context(made)
            self._exit.enter_context(self._cloud.mortal())
            self._settings = self._cloud.deps.settings
        for part in self._cloud.parts:
            part.deps.settings = self._settings
        self._left -= 1
        return self._cloud

    def give_back(self, as_it_was: bool) -> None:
        if self._left == 0 or not as_it_was:
            self.close()

    def close(self) -> None:
        self._cloud = None
        self._exit.close()


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[Clouds]:
    found = Clouds(tmp_path_factory.mktemp("clouds"), templates)
    yield found
    found.close()


class Alone(Walk):
    """A walk of one server, which is gone in the end."""

    over = False

    def leave(self, uuid: str) -> None:
        if not self.cloud.server(uuid).deleted:
            self.cloud.order(uuid, "force_delete")
            self.cloud.settle(uuid)
        assert wrong(self.cloud, self.networks.addresses) == [] and self.cloud.server(uuid).deleted
        self.over = True


@pytest.fixture
def walk(clouds: Clouds, monkeypatch: pytest.MonkeyPatch) -> Iterator[Alone]:
    living_cloud.impatient(monkeypatch)
    networks = NeutronNetworks if CELLS else WalkingNetworks
    walk = Alone(clouds.take(), 1, ("2",), IMAGES, networks=networks)  # servers have flavor 1
    yield walk
    clouds.give_back(walk.over)


def ended(walk: Alone, uuid: str, action: str, before: str) -> str:
    """Everything has come to its end and all is well; the vm_state that the server has then. It is deleted."""
    walk._heal()
    assert wrong(walk.cloud, walk.networks.addresses) == []
    row = walk.cloud.server(uuid)
    if not row.deleted:
        table = TABLE[action]
        legal = {before, "error", *(state.value for state in (table.result, table.failed) if state is not None)}
        legal |= {"stopped", "active"} if action in ENDS_AS_IT_WAS else set()
        legal |= {"shelved_offloaded"} if action in ("shelve", "unshelve") else set()
        assert row.vm_state in legal
    walk.leave(uuid)
    return "deleted" if row.deleted else str(row.vm_state)


def at(walk: Walk, action: str, step: str, when: str, act: Callable[[], None]) -> list[str]:
    """``act`` happens the first time that the runner stands at this point; what was reached, when it was."""
    reached: list[str] = []

    def look(*point: str) -> None:
        if walk.cloud.deps.runner.journal.dead:
            raise Killed
        if point == (action, step, when) and not reached:
            reached.append(when)
            act()
    walk.cloud.on_point = look
    return reached


def die(cloud: LivingCloud) -> None:
    cloud.deps.runner.journal.dead = True
    raise Killed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action, step", points())
def test_step_when_the_conductor_dies_then_another_ends_it(walk: Alone, action: str, step: str, when: str) -> None:
    uuid = prepared(walk, action)
    before = walk.cloud.server(uuid).vm_state
    reached = at(walk, action, step, when, lambda: die(walk.cloud))
    ordered(walk, uuid, action)
    state = ended(walk, uuid, action, before)
    assert reached
    result = TABLE[action].result
    assert result is None or state in (result.value, "shelved_offloaded")  # nothing was wrong with the hosts


def deaths() -> list[Any]:
    """A fifth of all points, before and after each, and of which host dies."""
    found = [pytest.param(*point.values, when, which, id=f"{point.id}-{when}-{which}")
             for point in points() for when in ("before", "after") for which in ("source", "destination")]
    return sampling.one_in(5, found)


@pytest.mark.parametrize("action, step, when, which", deaths())
def test_step_when_a_host_dies_then_it_ends_and_nothing_is_left(walk: Alone, action: str, step: str, when: str,
                                                                which: str) -> None:
    uuid = prepared(walk, action)
    row = walk.cloud.server(uuid)
    source = row.host

    def kill() -> None:
        place = source if which == "source" else _destination(walk, uuid)
        if place is not None and not walk.cloud.computes[place].dead:
            walk.cloud.computes[place].kill()
    at(walk, action, step, when, kill)
    ordered(walk, uuid, action)
    ended(walk, uuid, action, row.vm_state)


def _destination(walk: Walk, uuid: str) -> str | None:
    """Where the newest operation takes the server."""
    journal = walk.cloud.journal(uuid)[-1]
    return journal.data.get("host") or walk.cloud.server(uuid).host


def failures() -> list[Any]:
    """What may go wrong once a step has done its work. Decisive ones say of every error that they know of whether they
    have; so only what nobody foresaw is left."""
    known = (errors.HostRefused("no"), errors.Unavailable("away"))
    damaged = (errors.daemon.DamagedRow(row="servers.id = 7", column="servers.memo", reason="it is no object"),)
    return [pytest.param(one.action.name, step.name, error, id=f"{one.action.name}-{step.name}-{type(error).__name__}")
            for one in workflows() for step in without_volumes(one) if (one.action.name, step.when) not in NOT_TAKEN
            for error in (*(damaged if step.repeats_on_bug else known), RuntimeError("unforeseen"))]


@pytest.mark.parametrize("action, step, error", failures())
def test_step_when_it_fails_after_its_work_then_it_is_undone_or_done(walk: Alone, monkeypatch, action: str, step: str,
                                                                     error: Exception) -> None:
    uuid = prepared(walk, action)
    before = walk.cloud.server(uuid).vm_state
    [workflow] = [one for one in ALL if one.action.name == action]
    [found] = [one for one in workflow.steps if one.name == step]
    real, left = found.do, [1]

    def fail(*args: Any) -> Any:
        result = real(*args)
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return result
    monkeypatch.setattr(found, "do", fail)
    ordered(walk, uuid, action)
    ended(walk, uuid, action, before)
    assert left[0] < 1
