"""Moves whose hosts fall silent, that are deleted, reset or overtaken in the middle: nothing is left anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.conductor.steps import FenceLedger
from nova.db.models import cell as cell_tables
from nova.db.quota import ledger
from nova.model.guest.orders import Outcome
from nova.model.server.server_parts import StateReset
from tests.fakes.compute_hosts import silent
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import until

pytestmark = pytest.mark.one_in(5)  # a cloud for each case


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


# --- hosts that say nothing


def quiet(cloud: FailingCloud, host: str, kind: str, does_it: bool) -> Callable[[], None]:
    """From this order on the host answers nothing, whether or not it does what it is told; what makes it speak."""
    compute = cloud.computes[host]
    dead: list[bool] = []

    def answer(asked: str, order: Any) -> Any:
        if asked == kind or dead:
            if not dead and does_it:
                compute.answers = {}
                compute._one(asked, order)
                listen()
            dead.append(True)
            return silent(asked, order)
        compute.answers = {}
        try:
            return compute._one(asked, order)
        finally:
            listen()

    def listen() -> None:
        compute.answers = dict.fromkeys(
            ("build", "destroy", "rebuild", "leave", "fetch", "finish", "return", "forget", "describe", "prepare",
             "migrate", "land"), answer)
    listen()
    return lambda: compute.answers.clear()


def again(cloud: FailingCloud, uuid: str) -> Any:
    """The server once what waited has been taken up again."""
    cloud.idle()
    cloud.expire_leases()
    cloud.runner().sweep()
    return cloud.settle(uuid)


def run_cleanups(cloud: FailingCloud) -> None:
    for debt in cloud.debts():
        compute = cloud.computes[debt.host]
        compute.guests.pop(debt.server_uuid, None)
        compute.moving.destroy(type("order", (), {"server_uuid": debt.server_uuid, "keep_disks": False}))
        cloud.hosts.debt_paid(debt.host, debt.id)


@pytest.mark.parametrize("does_it", [False, True])
@pytest.mark.parametrize("action, kind", [("resize", "fetch"), ("resize", "finish"), ("live-migration", "prepare"),
                                          ("evacuate", "rebuild")])
def test_move_when_the_destination_falls_silent_then_another_has_it_and_the_first_owes(cloud, action, kind, does_it):
    uuid = cloud.ready(action)
    quiet(cloud, "host2", kind, does_it)
    cloud.begin(uuid, action)
    row = cloud.settle(uuid)
    assert row.host == "host3" and row.task_state is None, row.fault
    assert ("host2", uuid) in cloud.held()["debts"] and "host2" in cloud.taken(uuid)
    run_cleanups(cloud)
    if row.vm_state == "resized":
        cloud.begin(uuid, "confirmResize")
        cloud.settle(uuid)
    cloud.whole(uuid, "host3")


@pytest.mark.parametrize("does_it", [False, True])
@pytest.mark.parametrize("action, kind", [("resize", "leave"), ("migrate", "leave")])
def test_move_when_the_source_falls_silent_then_it_waits_for_it_and_the_guest_is_back(cloud, action, kind, does_it):
    uuid = cloud.ready(action)
    speak = quiet(cloud, "host1", kind, does_it)
    cloud.begin(uuid, action)
    cloud.idle()
    assert cloud.server(uuid).host == "host1" and cloud.open(uuid)
    speak()
    row = again(cloud, uuid)
    assert (row.vm_state, row.task_state) == ("active", None)
    cloud.whole(uuid, "host1")


def test_live_migration_when_the_source_is_silent_before_it_sends_then_the_server_stays(cloud):
    uuid = cloud.ready("live-migration")
    quiet(cloud, "host1", "describe", False)
    cloud.begin(uuid, "live-migration")
    assert cloud.settle(uuid).vm_state == "active"
    cloud.whole(uuid, "host1")


def test_live_migration_when_the_source_dies_having_sent_it_then_the_guest_is_found_where_it_is(cloud):
    uuid = cloud.ready("live-migration")
    quiet(cloud, "host1", "migrate", True)
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host, row.task_state) == ("active", "host2", None), row.fault
    assert cloud.held()["debts"] == [("host1", uuid)] and cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
    run_cleanups(cloud)
    cloud.whole(uuid, "host2")


def test_live_migration_when_the_source_dies_not_having_sent_it_then_only_then_the_destination_is_cleared(cloud):
    uuid = cloud.ready("live-migration")
    quiet(cloud, "host1", "migrate", False)
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host, row.task_state) == ("active", "host1", None)
    kinds = [kind for kind, _order in cloud.computes["host2"].orders]
    assert kinds.index("land") < kinds.index("destroy")
    cloud.whole(uuid, "host1")


def test_live_migration_when_both_are_silent_then_it_waits_and_the_guest_is_found(cloud):
    uuid = cloud.ready("live-migration")
    wake = quiet(cloud, "host2", "land", False)
    quiet(cloud, "host1", "migrate", True)
    cloud.begin(uuid, "live-migration")
    cloud.idle()
    assert cloud.open(uuid) and not cloud.debts()
    wake()
    row = again(cloud, uuid)
    assert (row.vm_state, row.host) == ("active", "host2")
    run_cleanups(cloud)
    cloud.whole(uuid, "host2")


def test_live_migration_when_the_destination_is_silent_after_the_arrival_then_it_waits_for_it(cloud):
    uuid = cloud.ready("live-migration")
    wake = quiet(cloud, "host2", "land", False)
    cloud.begin(uuid, "live-migration")
    cloud.idle()
    assert cloud.open(uuid) and cloud.server(uuid).host == "host2"
    assert "destroy" not in [kind for kind, _order in cloud.computes["host1"].orders]
    wake()
    assert again(cloud, uuid).vm_state == "active"
    cloud.whole(uuid, "host2")


def test_live_migration_when_the_guest_is_nowhere_then_its_disks_stay_and_it_is_an_error(cloud):
    uuid = cloud.ready("live-migration")
    cloud.computes["host1"].answers["migrate"] = lambda kind, order: Outcome(server_uuid=uuid)
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("error", "host1") and "left unchanged" in row.fault.message
    assert cloud.ends(uuid) == {"own": ["host1"], "moves": []}


def test_confirm_when_the_source_is_silent_then_it_owes_and_the_claim_stays_until_it_paid(cloud):
    uuid = cloud.ready("confirmResize")
    quiet(cloud, "host1", "forget", False)
    cloud.begin(uuid, "confirmResize")
    assert cloud.settle(uuid).vm_state == "active"
    assert cloud.held()["debts"] == [("host1", uuid)] and cloud.taken(uuid) == {"host1": 1, "host2": 2}
    assert cloud.counted(uuid) == (2, 128)
    run_cleanups(cloud)
    cloud.whole(uuid, "host2")


@pytest.mark.parametrize("forced", [True, False])
def test_confirm_when_the_source_is_known_to_be_down_then_it_owes_and_is_not_asked(cloud, forced):
    uuid = cloud.ready("confirmResize")
    if forced:
        cloud.down("host1")
    else:
        cloud.fall_silent("host1")
    cloud.computes["host1"].calls.clear()
    cloud.begin(uuid, "confirmResize")
    assert cloud.settle(uuid).vm_state == "active"
    assert cloud.held()["debts"] == [("host1", uuid)] and cloud.computes["host1"].orders == []
    run_cleanups(cloud)
    cloud.whole(uuid, "host2")


@pytest.mark.parametrize("action, host, kind", [
    ("confirmResize", "host1", "forget"), ("revertResize", "host1", "leave"), ("evacuate", "host2", "rebuild")])
def test_move_when_it_is_asked_for_twice_then_the_second_is_refused_and_the_first_goes_on(cloud, action, host, kind):
    uuid = cloud.ready(action)
    seen: list[str] = []
    cloud.computes[host].before[kind] = lambda _orders: (seen.append(kind), until(lambda: refused, "the second"))
    refused: list[errors.NovaError] = []
    cloud.begin(uuid, action)
    with pytest.raises(errors.WrongState) as caught:
        cloud.begin(uuid, action)
    refused.append(caught.value)
    assert (cloud.settle(uuid).vm_state, seen) == ("active", [kind])
    assert [row.action for row in cloud.journal(uuid)].count(action) == 1


@pytest.mark.parametrize("action, was", [("start", "stopped"), ("hard_reboot", "active"), ("pause", "active")])
def test_action_when_its_host_is_forced_down_then_it_is_refused_at_once(cloud, action, was):
    uuid = cloud.ready("resize")
    if was == "stopped":
        cloud.begin(uuid, "stop")
        cloud.settle(uuid)
    cloud.down("host1")
    before = cloud.server(uuid)
    with pytest.raises(errors.WrongState, match="marked its host as down"):
        cloud.begin(uuid, action)
    assert cloud.server(uuid) == before
    cloud.down("host1", False)
    cloud.begin(uuid, action)
    assert cloud.settle(uuid).task_state is None and cloud.journal(uuid)[-1].outcome == "success"


@pytest.mark.parametrize("does_it", [False, True])
def test_revert_when_the_source_is_silent_then_it_waits_for_it(cloud, does_it):
    uuid = cloud.ready("revertResize")
    speak = quiet(cloud, "host1", "return", does_it)
    cloud.begin(uuid, "revertResize")
    cloud.idle()
    assert cloud.open(uuid)
    speak()
    assert again(cloud, uuid).vm_state == "active"
    cloud.whole(uuid, "host1")


def test_revert_when_the_destination_is_silent_then_it_owes(cloud):
    uuid = cloud.ready("revertResize")
    quiet(cloud, "host2", "destroy", False)
    cloud.begin(uuid, "revertResize")
    assert cloud.settle(uuid).vm_state == "active"
    assert cloud.held()["debts"] == [("host2", uuid)]
    run_cleanups(cloud)
    cloud.whole(uuid, "host1")


# --- deleted in the middle


def stopped_at(cloud: FailingCloud, uuid: str, action: str, host: str, kind: str) -> None:
    """The move's order of this kind never comes back."""
    seen: list[str] = []

    def hang(_orders: Any) -> None:
        seen.append(kind)
        until(lambda: cloud.server(uuid).deleted or cloud.server(uuid).task_state == "deleting" or
              cloud.journal(uuid)[-1].action != action, "it is overtaken")
        raise errors.Unavailable("too late")
    cloud.computes[host].before[kind] = hang
    cloud.begin(uuid, action)
    until(lambda: seen, f"{kind} is ordered")
    cloud.computes[host].before.clear()


POINTS = [("resize", "host1", "leave"), ("resize", "host2", "fetch"), ("resize", "host2", "finish"),
          ("confirmResize", "host1", "forget"), ("revertResize", "host2", "destroy"),
          ("revertResize", "host1", "return"), ("live-migration", "host1", "describe"),
          ("live-migration", "host2", "prepare"), ("live-migration", "host1", "migrate"),
          ("live-migration", "host2", "land"), ("live-migration", "host1", "destroy"), ("evacuate", "host2", "rebuild")]


@pytest.mark.parametrize("action, host, kind", POINTS)
def test_delete_when_it_overtakes_a_move_then_no_host_has_anything(cloud, action, host, kind):
    uuid = cloud.ready(action)
    stopped_at(cloud, uuid, action, host, kind)
    cloud.delete(uuid)
    cloud.settle(uuid)
    run_cleanups(cloud)
    assert cloud.held() == {} and cloud.open_ledger() == set()
    assert all(row.status in ("cancelled", "done", "completed") for row in cloud.moves(uuid))


def test_delete_when_it_has_begun_then_what_it_overtook_claims_nothing_more(cloud):
    uuid, = cloud.active()
    epoch, ours = cloud.server(uuid).epoch, []
    cloud.on_order(lambda kind, _host: ours.append(
        (kind, cloud.api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: epoch})))))
    cloud.delete(uuid)
    cloud.settle(uuid)
    assert ours == [("destroy", set())] and cloud.open_ledger() == set()


def reset_in(cloud, action: str, host: str, kind: str) -> str:
    """A server whose state was reset while a move of it waited for a host's answer, which never came."""
    uuid = cloud.ready(action)
    seen: list[str] = []
    cloud.computes[host].before[kind] = lambda _orders: (seen.append(kind), until(
        lambda: cloud.journal(uuid)[-1].action == "reset_state", "it is reset"), silent("", None))
    cloud.begin(uuid, action)
    until(lambda: seen, f"{kind} is ordered")
    cloud.control.reset_state(StateReset(uuid=uuid, state="active"))
    cloud.idle()
    cloud.computes[host].before.clear()
    return uuid


@pytest.mark.parametrize("action, host, kind", POINTS)
def test_delete_when_the_state_was_reset_in_a_move_then_no_host_has_anything(cloud, action, host, kind):
    uuid = reset_in(cloud, action, host, kind)
    cloud.delete(uuid)
    cloud.settle(uuid)
    run_cleanups(cloud)
    assert cloud.held() == {} and cloud.open_ledger() == set()


@pytest.mark.parametrize("action, host, kind", [point for point in POINTS if point[0] != "evacuate"])
def test_move_when_the_state_was_reset_in_one_before_then_that_is_settled_first(cloud, action, host, kind):
    uuid = reset_in(cloud, action, host, kind)
    where = cloud.server(uuid).host
    if (where, uuid) not in cloud.guests() and uuid not in cloud.computes[where].moving.kept_sources:
        return  # its guest is elsewhere: evacuated, rebuilt or deleted by an operator
    cloud.begin(uuid, "migrate")
    assert cloud.settle(uuid).vm_state == "resized", cloud.journal(uuid)[-1].fault
    cloud.begin(uuid, "confirmResize")
    row = cloud.settle(uuid)
    assert row.vm_state == "active"
    run_cleanups(cloud)
    cloud.whole(uuid, row.host)


@pytest.mark.parametrize("state", ["up", "down"])
def test_delete_when_the_server_is_resized_then_both_hosts_have_nothing(cloud, state):
    uuid = cloud.ready("confirmResize")
    if state == "down":
        quiet(cloud, "host1", "destroy", False)
    cloud.delete(uuid)
    cloud.settle(uuid)
    assert cloud.open_ledger() == set()
    if state == "down":
        assert cloud.held()["debts"] == [("host1", uuid)] and cloud.claims()
        run_cleanups(cloud)
    assert cloud.held() == {} and cloud.moves(uuid)[0].status == "cancelled"


@pytest.mark.parametrize("failing, other", [("host1", "host2"), ("host2", "host1")])
def test_delete_when_one_of_two_hosts_fails_then_the_other_was_asked_and_the_next_delete_ends_it(cloud, failing, other):
    uuid = cloud.ready("confirmResize")
    broken = Outcome(server_uuid=uuid, ok=False, error_kind="bug", error_code="nova.bug",
                     error_message="it is immutable")
    cloud.computes[failing].answers["destroy"] = lambda _kind, _order: broken
    cloud.order(uuid, "delete")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.fault.message) == ("error", "it is immutable")
    assert (other, uuid) not in cloud.guests() and uuid not in cloud.computes[other].moving.kept_sources
    assert [move.status for move in cloud.moves(uuid)] == ["finished"]
    assert cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
    for action in ("hard_reboot", "stop", "evacuate", "confirmResize"):
        with pytest.raises(errors.WrongState, match="delete it again"):
            cloud.begin(uuid, action)
    cloud.computes[failing].answers.clear()
    cloud.delete(uuid)
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()
    assert [move.status for move in cloud.moves(uuid)] == ["cancelled"]


def test_delete_when_it_fails_before_anything_is_destroyed_then_the_server_is_whole_and_can_be_used(cloud, monkeypatch):
    [uuid] = cloud.active()
    with monkeypatch.context() as patched:
        patched.setattr(FenceLedger, "do", lambda *_args: [errors.Bug("not now")])
        cloud.order(uuid, "delete")
        assert cloud.settle(uuid).vm_state == "error"
    cloud.begin(uuid, "hard_reboot")
    assert cloud.settle(uuid).vm_state == "active"


@pytest.mark.parametrize("action, host, kind", [("resize", "host1", "leave"), ("resize", "host2", "fetch"),
                                                ("live-migration", "host2", "prepare"),
                                                ("live-migration", "host1", "migrate")])
def test_evacuation_when_it_overtakes_a_move_then_what_that_left_is_settled(cloud, action, host, kind):
    uuid = cloud.ready(action)
    seen: list[str] = []
    cloud.computes[host].before[kind] = lambda _orders: (seen.append(kind), until(
        lambda: cloud.journal(uuid)[-1].id != first, "it is overtaken"), silent("", None))
    first = None
    cloud.begin(uuid, action)
    first = cloud.journal(uuid)[-1].id
    until(lambda: seen, f"{kind} is ordered")
    cloud.down("host1")
    cloud.computes[host].before.clear()
    cloud.begin(uuid, "evacuate")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", "host2"), cloud.journal(uuid)[-1].fault
    assert cloud.held()["debts"] == [("host1", uuid)]
    assert cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
    run_cleanups(cloud)
    cloud.whole(uuid, "host2")
    assert [row.status for row in cloud.moves(uuid)] == ["error", "completed"]


def test_moves_when_their_rows_are_read_then_no_open_one_is_left(cloud):
    """(For the reader of the tables above: what is neither over nor finished blocks its hosts' removal.)"""
    uuid = cloud.ready("live-migration")
    cloud.begin(uuid, "live-migration")
    cloud.settle(uuid)
    assert not cloud.rows("cell", cell_tables.migrations.select().where(cell_tables.migrations.c.status == "running"))
