"""Audits of usage: each host once a period, by one conductor, whatever dies meanwhile."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import usage_audit
from nova.db.models import cell as tables
from nova.db.quota import usage_audits
from nova.model.quota import periods
from nova.model.quota.usage import DONE, RUNNING
from nova.notifications.notifier import DisabledNotifier
from tests.fakes.small_cloud import SmallCloud

NOW = datetime.datetime(2030, 2, 10)
BEGIN, END = datetime.datetime(2030, 1, 1), datetime.datetime(2030, 2, 1)


class Notifier(DisabledNotifier):
    """Hears of servers that exist, and of nothing else."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, datetime.datetime, datetime.datetime]] = []
        self.fails: set[str] = set()
        self.failure: Exception = errors.Bug("no such row")
        self.metadata: dict[str, Any] = {}

    def exists(self, server_row: Any, period_beginning: datetime.datetime, period_ending: datetime.datetime,
               metadata: Any = None) -> None:
        if server_row.uuid in self.fails:
            raise self.failure
        self.sent.append((server_row.uuid, period_beginning, period_ending))
        self.metadata[server_row.uuid] = metadata


def on(deps: Deps, **fields: Any) -> Notifier:
    """Switch audits on for this conductor; who hears of servers."""
    deps.settings = dataclasses.replace(deps.settings, instance_usage_audit=True, **fields)
    notifier = Notifier()
    deps.notifier = notifier
    return notifier


def launched(cloud: SmallCloud, count: int, **fields: Any) -> list[str]:
    uuids = cloud.active(count, metadata={"bill": "me"})
    cloud.write("cell", sa.update(tables.servers).values(**{"launched_at": BEGIN, **fields}))
    return uuids


def shown(cloud: SmallCloud, now: datetime.datetime = NOW) -> Any:
    return cloud.control.get_usage_audits(now)


def test_audit_when_the_period_is_over_then_every_server_is_told_of_once(cloud: SmallCloud) -> None:
    notifier, uuids = on(cloud.deps), launched(cloud, 3)
    assert usage_audit.run(cloud.deps, NOW) == 2
    assert sorted(notifier.sent) == sorted((uuid, BEGIN, END) for uuid in uuids)
    assert notifier.metadata == dict.fromkeys(uuids, {"bill": "me"})
    found = shown(cloud)
    assert (found.period_beginning, found.period_ending, found.hosts) == (BEGIN, END, ("a", "b"))
    assert {host: (one.state, one.servers, one.errors) for host, one in found.audits.items()} == {
        "a": (DONE, 3, 0), "b": (DONE, 0, 0)}
    assert "3 instances in" in found.audits["a"].message
    assert usage_audit.run(cloud.deps, NOW) == 0 and len(notifier.sent) == 3


def test_audit_when_there_is_nothing_to_do_then_it_is_one_statement(cloud: SmallCloud) -> None:
    on(cloud.deps)
    usage_audit.run(cloud.deps, NOW)
    seen: list[str] = []
    sa.event.listen(cloud.cell.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    usage_audit.run(cloud.deps, NOW)
    assert len([text for text in seen if "usage_audits" in text]) == 1


def test_audit_when_switched_off_then_nothing_is_written_or_told(cloud: SmallCloud) -> None:
    notifier = on(cloud.deps)
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, instance_usage_audit=False)
    launched(cloud, 1)
    assert usage_audit.run(cloud.deps, NOW) == 0
    assert not notifier.sent and shown(cloud).audits == {}


@pytest.mark.parametrize(("fields", "count"), [
    ({"launched_at": END}, 0), ({"launched_at": None}, 0), ({"terminated_at": BEGIN}, 0),
    ({"terminated_at": BEGIN + datetime.timedelta(1), "deleted": 1}, 1), ({"terminated_at": NOW}, 1)])
def test_audit_tells_of_servers_that_ran_in_the_period(cloud: SmallCloud, fields: dict[str, Any], count: int) -> None:
    notifier = on(cloud.deps)
    launched(cloud, 1, **fields)
    usage_audit.run(cloud.deps, NOW)
    assert len(notifier.sent) == count == shown(cloud).audits["a"].servers


def test_audit_when_one_server_cannot_be_told_of_then_the_others_are(cloud: SmallCloud, monkeypatch) -> None:
    monkeypatch.setattr(usage_audit, "PAGE", 2)
    notifier, uuids = on(cloud.deps), launched(cloud, 5)
    notifier.fails = {uuids[1]}
    usage_audit.run(cloud.deps, NOW)
    assert len(notifier.sent) == 4
    assert (shown(cloud).audits["a"].servers, shown(cloud).audits["a"].errors) == (5, 1)


def test_audit_when_nobody_can_be_told_then_it_goes_on_later_and_loses_none(cloud: SmallCloud) -> None:
    notifier, uuids = on(cloud.deps), launched(cloud, 3)
    notifier.fails, notifier.failure = set(uuids[1:]), errors.Unavailable("the broker is away")
    assert usage_audit.run(cloud.deps, NOW) == 0
    assert shown(cloud).audits["a"].state == RUNNING and "b" not in shown(cloud).audits
    notifier.fails = set()
    assert usage_audit.run(cloud.deps, NOW) == 2
    assert {uuid for uuid, *_period in notifier.sent} == set(uuids)
    assert (shown(cloud).audits["a"].servers, shown(cloud).audits["a"].errors) == (3, 0)


def die_half_way(cloud: SmallCloud, deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after its first page of host a."""
    def killed(*args: Any) -> bool:
        raise SystemExit
    with monkeypatch.context() as patch:
        patch.setattr(usage_audit, "PAGE", 1)
        patch.setattr(usage_audits, "write", killed)
        with pytest.raises(SystemExit):
            usage_audit.run(deps, NOW)


def test_audit_when_its_process_dies_then_the_next_takes_it_after_the_lease(cloud: SmallCloud, monkeypatch) -> None:
    other = cloud.conductor("other")
    on(cloud.deps)
    heard, uuids = on(other), launched(cloud, 3)
    die_half_way(cloud, cloud.deps, monkeypatch)
    assert shown(cloud).audits["a"].state == RUNNING
    assert usage_audit.run(other, NOW) == 1  # host b: a is held by a lease
    assert heard.sent == [] and shown(cloud).audits["a"].state == RUNNING
    cloud.die(cloud.deps)
    assert usage_audit.run(other, NOW) == 1
    assert {uuid for uuid, *_period in heard.sent} == set(uuids)
    assert (shown(cloud).audits["a"].state, shown(cloud).audits["a"].servers) == (DONE, 3)


def test_audit_when_it_failed_then_the_same_process_begins_it_again(cloud: SmallCloud, monkeypatch) -> None:
    heard = on(cloud.deps)
    launched(cloud, 2)
    die_half_way(cloud, cloud.deps, monkeypatch)
    heard.sent.clear()
    assert usage_audit.run(cloud.deps, NOW) == 2 and len(heard.sent) == 2
    assert shown(cloud).audits["a"].servers == 2


def test_audit_when_a_sleeper_wakes_then_it_writes_nothing(cloud: SmallCloud) -> None:
    """Its lease was over, and another has taken the host."""
    other, period = cloud.conductor("other"), (BEGIN, END)
    mine, theirs = cloud.deps.runner.journal.runner_id, other.runner.journal.runner_id
    assert cloud.cell.transact(lambda tx: usage_audits.take(tx, "a", period, mine))
    assert not cloud.cell.transact(lambda tx: usage_audits.take(tx, "a", period, theirs))
    cloud.die(cloud.deps)
    assert cloud.cell.transact(lambda tx: usage_audits.take(tx, "a", period, theirs))
    done = usage_audits.HostAudit(host="a", state=DONE, servers=9)
    assert not cloud.cell.transact(lambda tx: usage_audits.write(tx, done, period, mine))
    assert shown(cloud).audits["a"].state == RUNNING
    assert cloud.cell.transact(lambda tx: usage_audits.write(tx, done, period, theirs))
    assert not cloud.cell.transact(lambda tx: usage_audits.take(tx, "a", period, theirs))


# periods

DAY = datetime.datetime


@pytest.mark.parametrize(("text", "now", "begin", "end"), [
    ("month", DAY(2026, 11, 21, 15), DAY(2026, 10, 1), DAY(2026, 11, 1)),
    ("month", DAY(2026, 1, 1), DAY(2025, 12, 1), DAY(2026, 1, 1)),
    ("month@15", DAY(2026, 11, 10), DAY(2026, 9, 15), DAY(2026, 10, 15)),
    ("month@31", DAY(2026, 3, 1), DAY(2026, 1, 31), DAY(2026, 2, 28)),
    ("year", DAY(2026, 1, 1), DAY(2025, 1, 1), DAY(2026, 1, 1)),
    ("year@4", DAY(2024, 2, 29), DAY(2022, 4, 1), DAY(2023, 4, 1)),
    ("day", DAY(2026, 1, 1, 0, 0, 1), DAY(2025, 12, 31), DAY(2026, 1, 1)),
    ("day@18", DAY(2026, 1, 1, 17), DAY(2025, 12, 30, 18), DAY(2025, 12, 31, 18)),
    ("hour", DAY(2026, 1, 1, 0, 59), DAY(2025, 12, 31, 23), DAY(2026, 1, 1)),
    ("hour@30", DAY(2026, 1, 1, 0, 29), DAY(2025, 12, 31, 22, 30), DAY(2025, 12, 31, 23, 30))])
def test_last_period_that_is_over(text: str, now: DAY, begin: DAY, end: DAY) -> None:
    assert periods.last_complete(text, now) == (begin, end)


@pytest.mark.parametrize("text", ["week", "month@0", "month@32", "year@13", "day@24", "hour@60", "hour@", "hour@-1",
                                  "hour@99999999999999999999", ""])
def test_period_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(errors.quota.UsageBadPeriod, match="instance_usage_audit_period"):
        periods.parse(text)


def test_period_before_all_time_is_invalid() -> None:
    with pytest.raises(errors.Invalid):
        periods.last_complete("year@12", DAY(2, 12, 31))
