"""Moves of servers to a host of another cell, with ports and volumes, over whole compute hosts: every step fails, and
the conductor is killed right before or after each step and each undo.

Whatever happens, the server is in one cell, on one host; claims equal what hosts run, and nothing is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.runner import AGAIN
from nova.conductor.engine.workflow import Step
from nova.conductor.registry import CONFIRM_RESIZE, DELETE_SERVER, RESIZE, REVERT_RESIZE
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.server.servers import instance_name
from nova.model.host.cells import CELL
from nova.model.host.services import ServiceQuery, ServiceUpdate
from nova.model.network.networks import RequestedNetwork
from nova.model.server.server_orders import EvacuateServer, MigrateServer, ResizeServer
from nova.model.server.server_parts import StateReset
from nova.model.server.servers import ServerOrder
from nova.model.volumes import BlockDevice
from nova.scheduler.weighers.cross_cell import CrossCellWeigher
from tests import sampling
from tests.fakes import living_cloud
from tests.fakes.invariants import audited, wrong
from tests.fakes.living_cells import LivingCells
from tests.fakes.living_cloud import Killed, LivingCloud
from tests.fakes.small_cloud import DEMO, make_templates, until
from tests.fakes.two_cells import OTHER
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cells
from tests.fakes.walking_neutron import NeutronNetworks
from tests.fakes.walking_volumes import WalkingVolumes

pytestmark = [pytest.mark.in_turn(6, 10),
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]

HOSTS = ("host1", "host2", "host3")  # the second one is in the other cell
SOURCE, DESTINATION, NEIGHBOUR = HOSTS
HERE, THERE = CELL, OTHER
#: Action -> (vm_state, host, cell) after it. A resize begins on SOURCE; the others on a server that was resized.
ENDS = {"resize": ("resized", DESTINATION, THERE), "confirmResize": ("active", DESTINATION, THERE),
        "revertResize": ("active", SOURCE, HERE), "delete": ("deleted", DESTINATION, THERE)}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


class Mover(Walk):
    """A server with a port and a volume, on a host of the entry cell."""

    cloud: LivingCells
    uuid = name = ""

    def __init__(self, cloud: LivingCells) -> None:
        super().__init__(cloud, 1, ("1",), IMAGES, networks=NeutronNetworks)
        self.storage = WalkingVolumes(cloud, self.rng)
        self.volume = self.storage.volumes[0]

    def boot(self) -> str:
        self.enable(NEIGHBOUR, False)
        [self.uuid] = self.cloud.active(
            image_id=IMAGES[0], host=SOURCE, networks=(RequestedNetwork(network_id=self.cloud.net),),
            volumes=(BlockDevice(source_id=self.volume, volume_id=self.volume),))
        self.name = instance_name("instance-%08x", self.cloud.server(self.uuid))
        return self.uuid

    def prefer(self, cell: str) -> None:
        """Let the scheduler prefer hosts of one cell for moves from the entry cell."""
        [weigher] = [one for one in self.cloud.living._pipeline.weighers if isinstance(one, CrossCellWeigher)]
        weigher.multiplier = 1e6 if cell == HERE else -1e6

    def enable(self, host: str, enabled: bool) -> None:
        [service] = [one for one in self.cloud.control.list_services(ServiceQuery(host=host))
                     if one.binary == "nova-compute"]
        self.cloud.control.update_service(ServiceUpdate(uuid=service.uuid, disabled=not enabled))
        self.cloud.host_changed(host)

    def order(self, action: str) -> None:
        """Order the action, in which the conductor may die."""
        with context.entered(DEMO):
            if action == "resize":
                self.cloud.control.resize_server(ResizeServer(uuid=self.uuid, flavor_id="2", cross_cell=True))
            else:
                self.cloud.control.order_server(ServerOrder(uuid=self.uuid, action=action))

    def prepare(self, action: str) -> None:
        """Boot the server, and resize it before the actions that end a resize."""
        self.boot()
        if action != "resize":
            self.order("resize")
            self.check("resize")

    def check(self, action: str) -> None:
        """Check that the action has succeeded, with nothing left."""
        row = self.healed()
        assert (row.vm_state, row.host, self.cell()) == ENDS[action], row.fault

    def healed(self) -> Any:
        """Let all operations and cleanups end; check that the server is in one cell and that all is well."""
        self._heal()
        self.storage.rest()
        found = [*wrong(self.cloud, NeutronNetworks.addresses), *audited(self.cloud), *self.storage.wrong()]
        assert not found, "\n".join(found)
        table = cell_tables.servers
        [row] = self.cloud.rows("cell", sa.select(table).where(table.c.uuid == self.uuid))
        [cell] = [part.deps.cell_uuid for part in self.cloud.parts if self._rows_in(part)]
        assert cell == self.cell()
        self._check_parts(row)
        return row

    def _rows_in(self, part: LivingCloud) -> list[Any]:
        with part.cell.reading() as tx:
            return [row for table in (cell_tables.servers, cell_tables.operations) for row in tx.execute(
                sa.select(table.c.id).where((table.c.uuid if table is cell_tables.servers else table.c.server_uuid)
                                            == self.uuid))]

    def _check_parts(self, row: Any) -> None:
        """Check the host of the server's port and volume."""
        ports = [port for port in self.cloud.neutron.ports.values() if port["device_id"] == self.uuid]
        here = [] if row.deleted else [row.host]
        assert [port["binding:host_id"] for port in ports] == here
        assert self.cloud.volume_service.hosts(self.volume) == here

    def cell(self) -> str:
        table = api_tables.ledger
        [row] = self.cloud.rows("api", sa.select(table).where(table.c.server_uuid == self.uuid))
        return str(row.cell)

    def leave(self) -> None:
        """Delete the server; nothing of it is left in any cell."""
        if self.cloud.server(self.uuid).deleted:
            return
        self.order("delete")
        assert self.healed().deleted


@pytest.fixture
def mover(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mover]:
    living_cloud.impatient(monkeypatch)
    with walking_cells(tmp_path, templates, HOSTS) as cloud, cloud.mortal():
        yield Mover(cloud)


FINISH = next(step for step in RESIZE.steps if step.name == "FinishResize")
POINTS = [(workflow.action.name, step.name) for workflow in (RESIZE, CONFIRM_RESIZE, REVERT_RESIZE, DELETE_SERVER)
          for step in workflow.steps]


def at(mover: Mover, point: tuple[str, str, str], act: Callable[[], None], cell: str = "") -> list[str]:
    """Call ``act`` the first time that the runner is at this point, with the server in this cell. Return a list that is
    empty until then."""
    reached: list[str] = []

    def look(*there: str) -> None:
        if mover.cloud.deps.runner.journal.dead:
            raise Killed
        if there == point and not reached and cell in ("", mover.cell()):
            reached.append("reached")
            act()
    mover.cloud.on_point = look
    return reached


def die(mover: Mover) -> None:
    mover.cloud.deps.runner.journal.dead = True
    raise Killed


def when_and(points: list[tuple[str, str]], *values: Any) -> list[Any]:
    """Return the product."""
    return [pytest.param(*point, value, id=f"{point[0]}-{point[1]}-{value}") for point in points for value in values]


@pytest.mark.parametrize("action, step, when", when_and(POINTS, "before", "after"))
def test_step_when_the_conductor_dies_then_another_ends_it(mover: Mover, action: str, step: str, when: str) -> None:
    mover.prepare(action)
    reached = at(mover, (action, step, when), lambda: die(mover))
    mover.order(action)
    mover.check(action)
    assert reached
    mover.leave()


@pytest.mark.parametrize("step, error", [
    pytest.param(step, error, id=f"{step.name}-{type(error).__name__}") for step in RESIZE.steps
    for error in (errors.HostRefused("no"), errors.Unavailable("away"), RuntimeError("unforeseen"))])
def test_resize_when_a_step_fails_after_its_work_then_the_server_is_where_it_was(
        mover: Mover, monkeypatch: pytest.MonkeyPatch, step: Step, error: Exception) -> None:
    mover.prepare("resize")
    real, left = step.do, [AGAIN + 1]

    def fail(*args: Any) -> Any:
        result = real(*args)
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return result
    monkeypatch.setattr(step, "do", fail)
    mover.order("resize")
    row = mover.healed()
    if step.ignores_errors:
        assert (row.vm_state, row.host, mover.cell()) == ENDS["resize"]
    else:
        assert (row.vm_state, row.host, row.flavorid, mover.cell()) == ("active", SOURCE, "1", HERE), row.fault
        assert row.instance_name in (None, mover.name)
    monkeypatch.setattr(step, "do", real)
    mover.leave()


@pytest.mark.parametrize("step, when", [
    pytest.param(step, when, id=f"{step.name}-{when}") for step in RESIZE.steps if step.undoes
    for when in ("undo", "undone")])
def test_resize_when_the_conductor_dies_on_the_way_back_then_the_server_is_where_it_was(
        mover: Mover, monkeypatch: pytest.MonkeyPatch, step: Step, when: str) -> None:
    mover.prepare("resize")
    monkeypatch.setattr(FINISH, "do", lambda *_args: [errors.HostRefused("no")])
    reached = at(mover, ("resize", step.name, when), lambda: die(mover))
    mover.order("resize")
    row = mover.healed()
    assert reached
    assert (row.vm_state, row.host, row.flavorid, mover.cell()) == ("active", SOURCE, "1", HERE), row.fault
    mover.leave()


@pytest.mark.parametrize("action, step, when", when_and([point for point in POINTS if point[0] != "delete"],
                                                        "before", "after"))
def test_delete_when_it_overtakes_a_move_then_nothing_is_left_in_any_cell(mover: Mover, action: str, step: str,
                                                                          when: str) -> None:
    mover.prepare(action)
    reached = at(mover, (action, step, when), lambda: mover.order("delete"))
    mover.order(action)
    row = mover.healed()
    assert reached and row.deleted


@pytest.mark.parametrize("first, second", [(DESTINATION, NEIGHBOUR), (NEIGHBOUR, DESTINATION)])
def test_resize_when_a_host_refuses_then_the_next_one_has_it_in_whichever_cell_it_is(mover: Mover, first: str,
                                                                                  second: str) -> None:
    mover.prefer(THERE if first == DESTINATION else HERE)
    mover.boot()
    mover.enable(NEIGHBOUR, True)
    mover.cloud.computes[first].driver.knobs.fail_next("fetch", "host_refused")
    mover.order("resize")
    row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("resized", second, THERE if second == DESTINATION else HERE)
    assert [one["tried"] for one in [mover.cloud.journal(mover.uuid)[-1].data]] == [[first, second]]


def test_resize_when_the_other_cell_is_away_then_the_server_does_not_wait_for_it(
        mover: Mover, monkeypatch: pytest.MonkeyPatch) -> None:
    mover.prepare("resize")
    monkeypatch.setattr(mover.cloud.other.deps.cell, "answers", lambda: False)
    mover.order("resize")
    row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("active", SOURCE, HERE)
    assert "does not answer" in row.fault.message


def test_resize_when_policy_permits_another_cell_then_the_own_cell_is_preferred(mover: Mover) -> None:
    mover.boot()
    mover.enable(NEIGHBOUR, True)
    mover.order("resize")
    row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("resized", NEIGHBOUR, HERE)


def test_migrate_when_it_names_a_host_of_another_cell_then_policy_decides(mover: Mover) -> None:
    mover.boot()
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="could not be found"):
        mover.cloud.control.migrate_server(MigrateServer(uuid=mover.uuid, host=DESTINATION))
    with context.entered(DEMO):
        mover.cloud.control.migrate_server(MigrateServer(uuid=mover.uuid, host=DESTINATION, cross_cell=True))
    row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("resized", DESTINATION, THERE)


def test_resize_when_the_server_is_off_then_it_stays_off_in_the_other_cell(mover: Mover) -> None:
    mover.prepare("resize")
    for action in ("stop", "resize", "confirmResize"):
        mover.order(action)
        row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("stopped", DESTINATION, THERE)


def test_source_when_it_restarts_before_the_confirm_then_it_keeps_the_guest_and_reports_no_orphan(mover: Mover) -> None:
    mover.prepare("confirmResize")
    compute = mover.cloud.computes[SOURCE]
    compute.kill()
    compute.start()
    compute.service.register()
    compute.service._cleanups.do_open()
    mover.check("resize")
    assert mover.cloud.control.list_strangers(False) == ()
    mover.order("revertResize")
    mover.check("revertResize")


# -- actions in between, and deaths between two transactions

@pytest.mark.parametrize("step, when", [("CopyDisks", "before"), ("CopyDisks", "after")])
@pytest.mark.parametrize("action", ["reset", "evacuate", "soft_delete"])
def test_action_when_the_server_has_no_host_in_its_new_cell_yet_then_it_is_refused_and_the_move_goes_on(
        mover: Mover, step: str, when: str, action: str) -> None:
    """Its disks are at a host of the cell that it left: only a delete finds them."""
    mover.prepare("resize")
    refused: list[str] = []
    calls: dict[str, Callable[[], object]] = {
        "reset": lambda: mover.cloud.control.reset_state(StateReset(uuid=mover.uuid, state="active")),
        "evacuate": lambda: mover.cloud.control.evacuate_server(EvacuateServer(uuid=mover.uuid)),
        "soft_delete": lambda: mover.cloud.control.order_server(ServerOrder(uuid=mover.uuid, action="delete"))}

    def act() -> None:
        with context.entered(DEMO), contextlib.suppress(errors.Conflict):
            calls[action]()
            refused.append("not")
        refused.append("refused")
    for part in mover.cloud.parts:
        part.set(reclaim_instance_interval=3600)
    at(mover, ("resize", step, when), act, THERE)
    mover.order("resize")
    mover.check("resize")
    assert refused == ["refused"]


def lose_commit(mover: Mover, part: LivingCloud, call: str) -> None:
    """Let the conductor die right before it commits a cell's transaction that contains this call."""
    real = part.deps.cell

    class Dying:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def transact(self, work: Callable[[Any], Any]) -> Any:
            if call not in work.__code__.co_names or mover.cloud.deps.runner.journal.dead:
                return real.transact(work)

            def failing(tx: Any) -> None:
                work(tx)
                part.deps.cell = real
                mover.cloud.deps.runner.journal.dead = True
                raise Killed
            return real.transact(failing)
    part.deps.cell = Dying()  # type: ignore[assignment]


@pytest.mark.parametrize("first", [HERE, THERE])
@pytest.mark.parametrize("action", ["resize", "revertResize"])
def test_move_when_the_removal_of_the_old_rows_is_lost_then_what_its_host_keeps_is_recorded(
        mover: Mover, action: str, first: str) -> None:
    """The ledger names the new cell, and the conductor dies before the old rows are removed."""
    mover.prepare(action)
    lose_commit(mover, mover.cloud if action == "resize" else mover.cloud.other, "_carry")
    mover.order(action)
    until(lambda: mover.cloud.deps.runner.journal.dead, "it died")
    mover.cloud.write("cell", sa.update(cell_tables.runners).values(lease_until=sa.text("'2000-01-01 00:00:00'")))
    mover.cloud.conductor_process()
    for part in sorted(mover.cloud.parts, key=lambda part: part.deps.cell_uuid != first):
        part.deps.runner.sweep()
        until(lambda part=part: not part.deps.runner.running, "its sweep is over")
    mover.check(action)
    if action == "resize":
        mover.order("revertResize")
        mover.check("revertResize")
    mover.leave()


def test_revert_when_the_sources_cell_is_not_served_then_it_waits_and_succeeds(mover: Mover) -> None:
    mover.prepare("revertResize")
    real = mover.cloud.live.named

    def away(uuid: str) -> Any:
        if uuid == HERE:
            raise errors.cell.NotServed(cell=uuid)
        return real(uuid)

    def leave() -> None:
        mover.cloud.live.named = away  # type: ignore[method-assign]
    at(mover, ("revertResize", "ReturnToCell", "before"), leave)
    mover.order("revertResize")
    until(lambda: not mover.cloud.other.deps.runner.running, "it is parked")
    assert mover.cloud.other.open_operations((mover.uuid,))
    mover.cloud.live.named = real  # type: ignore[method-assign]
    mover.check("revertResize")


def test_resize_when_an_earlier_one_to_another_cell_was_reset_then_its_claim_there_is_not_used_again(mover: Mover
                                                                                                 ) -> None:
    """The server has never left its cell, and the host of the other one has a claim of it."""
    mover.prepare("resize")

    def reset() -> None:
        with context.entered(DEMO):
            mover.cloud.control.reset_state(StateReset(uuid=mover.uuid, state="active"))
    at(mover, ("resize", "ClaimMove", "after"), reset)
    mover.order("resize")
    mover._heal()
    mover.enable(NEIGHBOUR, True)
    mover.prefer(THERE)
    mover.order("resize")
    row = mover.healed()
    assert (row.vm_state, row.host, mover.cell()) == ("resized", NEIGHBOUR, HERE)


class Mortal:
    """The databases of a conductor that dies at its n-th transaction from now on, before or right after it."""

    def __init__(self, cloud: LivingCells, left: int, when: str) -> None:
        self.left, self.when, self.journal = left, when, cloud.deps.runner.journal
        places = [(owner, name) for part in cloud.parts for owner, name in (
            (part.deps, "api"), (part.deps, "cell"), (part.deps.journal, "cell"))]
        self.real = [(owner, name, getattr(owner, name)) for owner, name in places]
        for owner, name, database in self.real:
            setattr(owner, name, self._of(database))

    def _of(self, database: Any) -> Any:
        mortal = self

        class Database:
            def __getattr__(self, name: str) -> Any:
                return getattr(database, name)

            def transact(self, work: Callable[[Any], Any]) -> Any:
                mortal.left -= 1
                if mortal.left == 0 and mortal.when == "after":
                    database.transact(work)
                if mortal.left <= 0:
                    mortal.journal.dead = True
                    raise Killed
                return database.transact(work)
        return Database()

    def bury(self) -> None:
        """Let a new conductor use the databases."""
        for owner, name, database in self.real:
            setattr(owner, name, database)


#: Action -> its transactions, and some more; only a long run has all of them.
TRANSACTIONS = {"resize": 34, "revertResize": 26, "confirmResize": 10}
STRIDE = sampling.examples(3, 1)


@pytest.mark.parametrize("action, transaction, when", [
    (action, transaction, when) for action, count in TRANSACTIONS.items() for transaction in range(1, count, STRIDE)
    for when in ("before", "after")])
def test_move_when_the_conductor_dies_at_any_transaction_then_another_ends_it(
        mover: Mover, action: str, transaction: int, when: str) -> None:
    first = HERE if (transaction + (when == "after")) % 4 < 2 else THERE  # is swept first
    mover.prepare(action)
    mortal = Mortal(mover.cloud, transaction, when)
    with contextlib.suppress(Killed):
        mover.order(action)
    until(lambda: mortal.journal.dead or not mover.cloud.open_operations(), "it dies, or is done")
    mortal.journal.dead = True
    mortal.bury()
    mover.cloud.write("cell", sa.update(cell_tables.runners).values(lease_until=sa.text("'2000-01-01 00:00:00'")))
    mover.cloud.conductor_process()
    for part in sorted(mover.cloud.parts, key=lambda part: part.deps.cell_uuid != first):
        part.deps.runner.sweep()
        until(lambda part=part: not part.deps.runner.running, "its sweep is over")
    if mover.cloud.journal(mover.uuid)[-1].action != action:
        assert transaction <= 2  # it had not begun
        return
    mover.check(action)
    mover.leave()
