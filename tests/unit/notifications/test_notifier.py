"""The queue and its thread: nobody who tells something waits for the broker or fails for it."""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable

import pytest

from nova import errors
from nova.notifications.message import Event
from nova.notifications.notifier import DisabledNotifier, Notifier, NotifierOptions
from tests.fakes import notifications as fakes

EVENT = Event("flavor.create", "", fakes.FLAVOR, "ctl", who=fakes.WHO)
BOTH = NotifierOptions(host="ctl", forms=("unversioned", "versioned"))


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not check():
        assert time.monotonic() < end
        time.sleep(0.002)


def sent(notifier: Notifier) -> list[str]:
    until(lambda: not notifier.waiting)
    return [message.type for _form, message in notifier.outlet.sent]


def test_tell_when_the_broker_takes_them_then_all_go_out_in_their_order() -> None:
    notifier = Notifier(fakes.Kept(), NotifierOptions(host="ctl", forms=("versioned",)))
    for name in ("create", "update", "delete"):
        notifier.tell(Event(f"flavor.{name}", "", fakes.FLAVOR, "ctl"))
    assert sent(notifier) == ["flavor.create", "flavor.update", "flavor.delete"]


def test_tell_when_both_forms_are_on_then_each_event_goes_out_in_those_it_has() -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    notifier.tell(EVENT)  # flavors have no unversioned form
    notifier.tell(Event("keypair.create", "end", fakes.KEYPAIR, "ctl", who=fakes.WHO))
    until(lambda: not notifier.waiting)
    assert [(form, message.type, message.publisher) for form, message in notifier.outlet.sent] == [
        ("versioned", "flavor.create", "nova-api:ctl"), ("unversioned", "keypair.create.end", "api.ctl"),
        ("versioned", "keypair.create.end", "nova-api:ctl")]


def test_tell_when_the_broker_is_away_then_nobody_waits_and_what_has_no_room_is_counted(caplog) -> None:
    now = [0.0]
    notifier = Notifier(fakes.Kept(), BOTH, most=5, clock=lambda: now[0])
    gate = notifier.outlet.wait = threading.Event()
    with caplog.at_level(logging.WARNING):
        begun = time.monotonic()
        for _ in range(50):
            notifier.tell(EVENT)
        assert time.monotonic() - begun < 1
        assert [record.message.split(" were")[0] for record in caplog.records] == ["1 notifications"]
        now[0] = 61.0
        notifier.tell(EVENT)
    assert "notifications were not sent: the queue is full" in caplog.records[-1].message
    assert len(caplog.records) == 2, "one warning a minute"
    gate.set()
    assert 5 <= len(sent(notifier)) <= 6  # one was in the thread's hands already


def test_tell_when_one_cannot_be_sent_then_it_is_counted_and_the_next_ones_go_out(caplog) -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    notifier.outlet.error = RuntimeError("no")
    with caplog.at_level(logging.WARNING):
        notifier.tell(EVENT)
        until(lambda: not notifier.waiting)
    assert "1 notifications were not sent: flavor.create: RuntimeError: no" in caplog.text
    notifier.outlet.error = None
    notifier.tell(EVENT)
    assert sent(notifier) == ["flavor.create"]


def test_tell_when_a_payload_cannot_be_made_then_the_next_ones_go_out() -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    notifier.tell(Event("flavor.create", "", object(), "ctl"))
    notifier.tell(EVENT)
    assert sent(notifier) == ["flavor.create"]


def test_exists_when_told_then_the_period_and_no_secret_are_in_it() -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    notifier.exists(fakes.server_row(), fakes.AT, fakes.AT + datetime.timedelta(hours=1), {"k": "v"})
    assert sent(notifier) == ["compute.instance.exists", "instance.exists"]
    (_, old), (_, new) = notifier.outlet.sent
    assert new.publisher == "nova-compute:compute" and new.payload["nova_object.data"]["metadata"] == {"k": "v"}
    assert new.payload["nova_object.data"]["audit_period"]["nova_object.data"] == {
        "audit_period_beginning": "2012-10-29T13:42:11Z", "audit_period_ending": "2012-10-29T14:42:11Z"}
    assert old.payload["audit_period_beginning"] == "2012-10-29 13:42:11.123456"
    assert "SECRET" not in f"{old.payload}{new.payload}"


def test_exists_when_the_queue_stays_full_then_the_audit_learns_of_it_and_the_next_do_not_wait() -> None:
    notifier = Notifier(fakes.Kept(), BOTH, most=1)
    gate = notifier.outlet.wait = threading.Event()
    notifier.timeout_s = 0.2
    notifier.tell(EVENT)
    until(lambda: not notifier._queue.qsize())
    notifier.tell(EVENT)
    begun = time.monotonic()
    for _ in range(20):
        with pytest.raises(errors.Unavailable):
            notifier.exists(fakes.server_row(), fakes.AT, fakes.AT)
    assert 0.2 <= time.monotonic() - begun < 1
    gate.set()


def test_stop_when_something_is_queued_then_it_goes_out_first_within_the_time() -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    for _ in range(100):
        notifier.tell(EVENT)
    notifier.stop(5.0)
    assert len(notifier.outlet.sent) == 100


def test_stop_when_the_broker_is_away_then_it_is_given_up_after_the_time(caplog) -> None:
    notifier = Notifier(fakes.Kept(), BOTH)
    gate = notifier.outlet.wait = threading.Event()
    for _ in range(3):
        notifier.tell(EVENT)
    begun = time.monotonic()
    notifier.stop(0.1)
    assert time.monotonic() - begun < 1 and "notifications were not sent before the end" in caplog.text
    gate.set()


def test_silent_when_anything_is_told_then_nothing_happens() -> None:
    silent = DisabledNotifier()
    silent.tell(EVENT)
    silent.exists(None, fakes.AT, fakes.AT)
    silent.stop(1.0)
    assert not silent.on


def test_lost_when_each_has_a_reason_of_its_own_then_a_few_lines_count_all(caplog) -> None:
    now = [0.0]
    notifier = Notifier(fakes.Kept(), BOTH, clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            notifier.lost(1, f"server {number} has no image")
        now[0] = 61.0
        notifier.lost(1, "the last one")
    counts = [int(record.message.split()[0]) for record in caplog.records]
    assert sum(counts) == 1001 and len(counts) <= 12
