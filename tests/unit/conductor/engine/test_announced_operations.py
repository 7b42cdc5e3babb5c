"""What is told of operations: each event once, in its order, whatever happens to the runner and the hosts."""

from __future__ import annotations

import collections
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.model.guest.orders import GuestState, PowerReport
from nova.model.server.states import PowerState
from nova.notifications.message import NotificationMessage
from nova.notifications.notifier import DisabledNotifier, Notifier, NotifierOptions
from tests.fakes.compute_hosts import refused, silent
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.notifications import Kept
from tests.fakes.small_cloud import SmallCloud, until
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

SELECT = ["scheduler.select_destinations.start", "scheduler.select_destinations.end"]
CREATE = [*SELECT, "instance.create.start", "instance.create.end"]
DELETE = ["instance.delete.start", "instance.shutdown.start", "instance.shutdown.end", "instance.delete.end"]


def listen(cloud: SmallCloud, form: str = "versioned", **options: Any) -> Kept:
    """Notifications on, into what is returned. Not of what was begun before."""
    until(lambda: not cloud.deps.runner.running, "all before has ended")
    kept = Kept()
    cloud.deps.notifier = Notifier(kept, NotifierOptions(host="ctl", forms=(form,), **options))
    return kept


def told(cloud: SmallCloud, form: str = "versioned") -> list[str]:
    until(lambda: not cloud.deps.runner.running and not cloud.deps.notifier.waiting, "all is told")
    types = cloud.deps.notifier.outlet.types(form)
    cloud.deps.notifier.outlet.sent.clear()
    return types


def message(kept: Kept, kind: str) -> NotificationMessage:
    found = [one for _form, one in kept.sent if one.type == kind]
    assert len(found) == 1, (kind, kept.types())
    return found[0]


def data(kept: Kept, kind: str) -> dict[str, Any]:
    return dict(message(kept, kind).payload["nova_object.data"])


def settled(cloud: SmallCloud) -> None:
    until(lambda: not cloud.deps.runner.running and not cloud.deps.notifier.waiting, "all is told")


# -- what is told, and when

def test_create_tells_exactly_its_events_once_with_what_is_true_then(cloud: SmallCloud) -> None:
    kept = listen(cloud)
    uuid, = cloud.active(metadata={"k": "v"}, tags=("t",), admin_password="hunter2", user_data="U0VDUkVU")
    settled(cloud)
    assert kept.types() == CREATE
    start, end = data(kept, "instance.create.start"), data(kept, "instance.create.end")
    assert (start["uuid"], start["state"], start["task_state"], start["host"]) == (uuid, "building", "scheduling", None)
    assert (end["state"], end["task_state"], end["host"], end["fault"]) == ("active", None, "a", None)
    assert end["metadata"] == {"k": "v"} and end["tags"] == ["t"] and len(end["ip_addresses"]) == 1
    assert end["launched_at"] and end["power_state"] == "running" and end["instance_name"] == "instance-00000001"
    assert (end["request_id"], end["action_initiator_user"]) == ("req-demo", "joe")
    assert message(kept, "instance.create.start").publisher == "nova-compute:a"
    assert message(kept, SELECT[0]).publisher == "nova-scheduler:ctl"
    everything = str([one for _form, one in kept.sent])
    assert not any(secret in everything for secret in ("hunter2", "U0VDUkVU", "joe's own token"))


def test_request_for_many_servers_tells_of_each_and_asks_the_scheduler_once(cloud: SmallCloud) -> None:
    kept = listen(cloud)
    uuids = cloud.active(3)
    settled(cloud)
    assert collections.Counter(kept.types()) == {
        SELECT[0]: 1, SELECT[1]: 1, "instance.create.start": 3, "instance.create.end": 3}
    ended = [one.payload["nova_object.data"]["uuid"] for _, one in kept.sent if one.type == "instance.create.end"]
    assert sorted(ended) == sorted(uuids)
    assert data(kept, SELECT[0])["num_instances"] == 3


def test_unversioned_form_tells_the_same_under_its_older_names(cloud: SmallCloud) -> None:
    listen(cloud, "unversioned")
    uuid, = cloud.active()
    cloud.delete(uuid)
    assert told(cloud, "unversioned") == [
        *SELECT, "compute.instance.create.start", "compute.instance.create.end", "compute.instance.delete.start",
        "compute.instance.shutdown.start", "compute.instance.shutdown.end", "compute.instance.delete.end"]


@pytest.mark.parametrize("action, event, states", [
    ("stop", "power_off", ("stopped", "shutdown")), ("soft_reboot", "reboot", ("active", "running")),
    ("hard_reboot", "reboot", ("active", "running"))])
def test_action_tells_its_start_and_its_end(cloud: SmallCloud, action: str, event: str, states: Any) -> None:
    uuid, = cloud.active()
    kept = listen(cloud)
    cloud.order(uuid, action)
    cloud.ended(uuid)
    settled(cloud)
    assert kept.types() == [f"instance.{event}.start", f"instance.{event}.end"]
    end = data(kept, f"instance.{event}.end")
    assert (end["state"], end["power_state"], end["task_state"]) == (*states, None)
    assert data(kept, f"instance.{event}.start")["task_state"]


def test_delete_tells_the_end_of_a_server_that_is_gone(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    kept = listen(cloud)
    cloud.delete(uuid)
    settled(cloud)
    assert kept.types() == DELETE
    end = data(kept, "instance.delete.end")
    assert (end["state"], end["ip_addresses"], end["power_state"]) == ("deleted", [], "pending")
    assert end["deleted_at"] and end["terminated_at"] and message(kept, DELETE[-1]).publisher == "nova-compute:a"


# -- when something goes wrong

def test_create_when_a_host_refuses_then_the_next_one_goes_on_without_a_second_start(cloud: SmallCloud) -> None:
    cloud.computes["a"].answers["build"] = refused(errors.HostRefused("no"))
    kept = listen(cloud)
    cloud.active()
    settled(cloud)
    assert kept.types() == CREATE
    assert data(kept, "instance.create.end")["host"] == "b"


def test_create_when_all_hosts_refuse_then_the_error_has_its_reason(cloud: SmallCloud) -> None:
    for compute in cloud.computes.values():
        compute.answers["build"] = refused(errors.HostRefused("disk is full"))
    kept = listen(cloud)
    uuid, = cloud.boot()
    cloud.ended(uuid)
    settled(cloud)
    assert kept.types() == [*CREATE[:3], "instance.create.error", "compute_task.build_instances.error"]
    failed = message(kept, "instance.create.error")
    fault = failed.payload["nova_object.data"]["fault"]["nova_object.data"]
    assert failed.priority == "ERROR" and fault["exception"] == "HostsExhausted" and "disk is full" in \
        fault["exception_message"]
    assert data(kept, "compute_task.build_instances.error")["instance_uuid"] == uuid


def test_create_when_no_host_is_valid_then_only_the_conductors_task_has_failed(cloud: SmallCloud) -> None:
    cloud.scheduler.choices = []
    kept = listen(cloud)
    uuid, = cloud.boot()
    cloud.ended(uuid)
    settled(cloud)
    assert kept.types() == [SELECT[0], "compute_task.build_instances.error"]
    reason = data(kept, "compute_task.build_instances.error")["reason"]["nova_object.data"]
    assert reason["exception"] == "NoValidHost"
    cloud.delete(uuid)
    settled(cloud)
    assert kept.types()[2:] == [DELETE[0], DELETE[-1]], "no guest was shut down"
    assert message(kept, DELETE[-1]).publisher == "nova-api:ctl"


def test_reboot_when_the_host_fails_then_its_error_is_told(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].answers["reboot"] = refused(errors.Bug("no such domain"))
    kept = listen(cloud)
    cloud.order(uuid, "hard_reboot")
    cloud.ended(uuid)
    settled(cloud)
    assert kept.types() == ["instance.reboot.start", "instance.reboot.error"]
    fault = data(kept, "instance.reboot.error")["fault"]["nova_object.data"]
    assert (fault["exception"], fault["exception_message"]) == ("Bug", "no such domain")


def test_create_when_a_delete_overtakes_it_then_the_delete_alone_is_told_to_its_end(cloud: SmallCloud) -> None:
    stands, goes = threading.Event(), threading.Event()

    def hold(_orders: Any) -> None:
        stands.set()
        goes.wait(10)
    cloud.computes["a"].before["build"] = hold
    kept = listen(cloud)
    uuid, = cloud.boot()
    assert stands.wait(10)
    cloud.delete(uuid)
    goes.set()
    settled(cloud)
    assert [one for one in kept.types() if "create" in one] == ["instance.create.start"]
    assert kept.types()[3:] == DELETE


@pytest.mark.parametrize("when", ["before", "after"])
def test_create_when_the_runner_dies_at_any_write_then_its_end_is_told_once_and_no_start_twice(
        tmp_path: Path, templates: Path, when: str) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        kept = listen(cloud)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        uuid, = cloud.boot()
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        settled(cloud)
        finished = cloud.journal(uuid)[-1].epoch == 1  # nobody took it over: it died right after its last write
        count = collections.Counter(kept.types())
        just_written = died and when == "after"
        assert count["instance.create.start"] == (0 if just_written and number == 1 else 1), (number, count)
        assert count["instance.create.end"] == (0 if just_written and finished else 1), (number, count)
        assert count["instance.create.error"] == 0
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 3 < number < MOST_WRITES - 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_delete_when_the_runner_dies_at_any_write_then_nothing_is_told_twice(
        tmp_path: Path, templates: Path, when: str) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid, = cloud.active()
        kept = listen(cloud)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        cloud.order(uuid, "delete")
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        settled(cloud)
        finished = cloud.journal(uuid)[-1].epoch == 2
        count = collections.Counter(kept.types())
        assert set(count.values()) == {1}, (number, count)
        assert ("instance.delete.end" in count) is not (died and finished), number
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break


def test_create_when_telling_fails_then_the_server_is_made_and_the_loss_is_counted(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from nova.db.server import notification_rows

    kept = listen(cloud)
    # the read is of this database alone, and there is no other way to make just it fail
    monkeypatch.setattr(notification_rows, "read", lambda *_: (_ for _ in ()).throw(RuntimeError("no")))
    uuid, = cloud.active()
    assert kept.types() == SELECT and "notifications were not sent" in caplog.text
    assert cloud.server(uuid).vm_state == "active"


def test_create_when_the_broker_is_away_then_it_takes_no_longer(cloud: SmallCloud) -> None:
    kept = listen(cloud)
    gate = kept.wait = threading.Event()
    begun = time.monotonic()
    cloud.active(5)
    assert time.monotonic() - begun < 8 and not kept.sent
    gate.set()


def test_delete_when_its_host_is_silent_then_its_end_is_told(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].answers["destroy"] = silent
    kept = listen(cloud)
    cloud.delete(uuid)
    settled(cloud)
    assert kept.types() == DELETE


# -- states

def test_states_when_not_asked_for_then_no_update_is_told(cloud: SmallCloud) -> None:
    kept = listen(cloud)
    cloud.active()
    settled(cloud)
    assert kept.types(what="update") == []


def changes(kept: Kept) -> list[tuple[Any, ...]]:
    return [tuple(one.payload["nova_object.data"]["state_update"]["nova_object.data"][name] for name in
                  ("old_state", "state", "old_task_state", "new_task_state"))
            for _form, one in kept.sent if one.type == "instance.update"]


def test_states_when_vm_state_is_asked_for_then_only_its_changes_are_told(cloud: SmallCloud) -> None:
    kept = listen(cloud, state_changes="vm_state")
    uuid, = cloud.active()
    cloud.order(uuid, "soft_reboot")
    cloud.ended(uuid)
    cloud.delete(uuid)
    settled(cloud)
    assert changes(kept) == [("building", "active", "spawning", None), ("active", "deleted", "deleting", None)]


def test_states_when_both_are_asked_for_then_each_change_is_told_in_its_order(cloud: SmallCloud) -> None:
    kept = listen(cloud, state_changes="vm_and_task_state")
    cloud.active()
    settled(cloud)
    assert changes(kept) == [
        ("building", "building", None, "scheduling"), ("building", "building", "scheduling", "networking"),
        ("building", "building", "networking", "spawning"), ("building", "active", "spawning", None)]
    assert kept.types()[0] == "instance.update" and kept.types()[-2:] == ["instance.update", "instance.create.end"]


def test_states_when_an_operation_fails_then_the_error_is_the_last_change(cloud: SmallCloud) -> None:
    cloud.scheduler.choices = []
    kept = listen(cloud, state_changes="vm_state")
    uuid, = cloud.boot()
    cloud.ended(uuid)
    settled(cloud)
    assert [one[:2] for one in changes(kept)] == [("building", "error")]


def test_states_when_a_guest_stops_by_itself_then_that_change_is_told_once(cloud: SmallCloud) -> None:
    uuid, other = cloud.active(2)
    kept = listen(cloud, state_changes="vm_state")
    guests = (GuestState(server_uuid=uuid, power_state=PowerState.SHUTDOWN, epoch=9),
              GuestState(server_uuid=other, power_state=PowerState.RUNNING, epoch=9))
    for _ in range(2):
        cloud.hosts.report_power("a", PowerReport(host="a", guests=guests))
    settled(cloud)
    assert changes(kept) == [("active", "stopped", None, None)]
    assert data(kept, "instance.update")["uuid"] == uuid


# -- off

class Untouched(DisabledNotifier):
    """Off; whoever looks at more than that is found out."""

    on = False

    def __getattribute__(self, name: str) -> Any:
        if name not in ("on", "__class__"):
            raise AssertionError(f"{name} was asked of a notifier that is off")
        return super().__getattribute__(name)


def test_off_then_no_statement_is_made_and_nothing_is_called(cloud: SmallCloud) -> None:
    seen: list[str] = []

    def note(*args: Any) -> None:
        frames = [one for one in traceback.extract_stack() if "engine/announce/" in one.filename]
        if any(one.name != "call" for one in frames):  # the wrapper around a call stands under all that the call does
            seen.append(str(args[2]))
    sa.event.listen(cloud.cell.engine, "before_cursor_execute", note)
    listen(cloud)
    cloud.active()
    settled(cloud)
    assert seen, "this test would see a statement"
    seen.clear()
    cloud.deps.notifier = Untouched()
    uuid, = cloud.active()
    for action in ("stop", "start", "soft_reboot", "delete"):
        cloud.order(uuid, action)
        until(lambda: not cloud.open(uuid), "it ends")
    assert seen == [] and not any("announced" in row.data for row in cloud.journal(uuid))


def test_create_over_the_librarys_own_driver_then_each_event_is_sent_once(cloud: SmallCloud) -> None:
    from oslo_messaging.notify import _impl_test as memory

    from nova.notifications import oslo
    from tests.fakes.notifications import configured

    memory.reset()
    cloud.deps.notifier = oslo.make(configured(driver=["test"], notification_format="both"), "ctl")
    cloud.active()
    settled(cloud)
    kinds = [message["event_type"] for _context, message, _level, _retry in memory.NOTIFICATIONS]
    old = [*SELECT, "compute.instance.create.start", "compute.instance.create.end"]
    assert kinds == [kind for both in zip(old, CREATE, strict=True) for kind in both]
    memory.reset()
