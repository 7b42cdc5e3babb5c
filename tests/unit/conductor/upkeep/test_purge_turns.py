"""What is over and old goes, batch after batch; what is not, stays."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import periodic, purge
from nova.db import flavors
from nova.db.host import host_cleanups, services
from nova.db.models import api, cell
from nova.db.operation import action_retention
from nova.db.server import ec2_ids
from nova.db.sql.types import later, utc_now
from nova.db.upkeep import orphans
from nova.model.base import utcnow
from nova.model.ec2 import IMAGE, INSTANCE
from nova.model.flavor.flavors import NewFlavor
from nova.model.guest.orphans import OrphanKind
from nova.model.host.services import Registration
from tests.fakes import old_rows
from tests.fakes.old_rows import OLD, move, operation
from tests.fakes.rows import add_servers, new_uuid, server_row
from tests.fakes.small_cloud import SmallCloud

DAY_S = 86400


def turn(cloud: SmallCloud, work_s: float = 60.0, **settings: Any) -> int:
    """One turn, of a conductor whose turn it is."""
    cloud.write("cell", sa.update(cell.audit_walks).values(taken_until=later(-1)))
    deps: Deps = dataclasses.replace(cloud.deps, settings=dataclasses.replace(cloud.deps.settings, **settings))
    return purge.run(deps, work_s)


def bury(cloud: SmallCloud, count: int, at: datetime.datetime = OLD) -> None:
    for database, rows in zip((cloud.cell, cloud.api), old_rows.deleted_servers(count, at), strict=True):
        old_rows.write(database, rows)


def left(cloud: SmallCloud) -> dict[str, int]:
    """Tables with anything of a deleted server."""
    of_cell, of_api = old_rows.deleted_servers(1)
    found = old_rows.counts(cloud.cell, list(of_cell)) | old_rows.counts(cloud.api, list(of_api))
    return {name: count for name, count in found.items() if count}


def statements(cloud: SmallCloud) -> list[str]:
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    return seen


@pytest.fixture
def server(cloud: SmallCloud) -> str:
    """One that lives."""
    return add_servers(cloud.cell, server_row())[0]


def journal(cloud: SmallCloud, *rows: dict[str, Any]) -> None:
    old_rows.write(cloud.cell, {cell.operations: list(rows)})


def actions(cloud: SmallCloud, uuid: str) -> list[str]:
    return [row.action for row in cloud.journal(uuid)]


# -- deleted servers

def test_purge_when_servers_were_deleted_long_ago_then_nothing_of_them_is_left(cloud, monkeypatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 3)
    bury(cloud, 7)
    bury(cloud, 1, utcnow())
    kept = {**dict.fromkeys(left(cloud), 1), "operations": 4, "server_metadata": 2}
    assert turn(cloud) == 7 + 7
    assert left(cloud) == kept
    assert turn(cloud) == 0 and left(cloud) == kept


def test_purge_when_ec2_named_the_servers_then_their_numbers_never_come_again(cloud, server: str, monkeypatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 3)
    bury(cloud, 7)
    with cloud.api.reading() as tx:
        gone = {row.external_id: row.id for row in tx.execute(sa.select(api.ec2_ids))}
    kept = cloud.api.transact(lambda tx: _named(tx, [(INSTANCE, server), (IMAGE, next(iter(gone)))]))
    turn(cloud)
    with cloud.api.reading() as tx:
        assert {row.id for row in tx.execute(sa.select(api.ec2_ids))} == set(kept)  # an image may have any id
    cloud.write("api", sa.delete(api.ec2_ids))  # of the highest numbers, too
    [again] = cloud.api.transact(lambda tx: _named(tx, [(INSTANCE, new_uuid())]))
    assert again > max(*gone.values(), *kept)


def _named(tx: Any, things: list[tuple[str, str]]) -> list[int]:
    """Their numbers, given now."""
    for kind, one in things:
        ec2_ids.give(tx, kind, [one])
    return [ec2_ids.numbers(tx, kind, [one])[one] for kind, one in things]


def test_purge_when_the_time_of_a_turn_is_over_then_the_rest_waits_for_the_next(cloud, monkeypatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 3)
    bury(cloud, 7)
    assert [turn(cloud, 0) for _ in range(4)] == [3 + 3, 3 + 3, 1 + 1, 0]
    assert left(cloud) == {}


def test_purge_when_nothing_is_to_go_by_the_options_then_nothing_goes(cloud, server: str) -> None:
    bury(cloud, 2)
    journal(cloud, *[operation(server) for _ in range(30)])
    before = left(cloud)
    assert turn(cloud, deleted_retention_s=0, instance_actions_retention_s=0) == 0
    assert left(cloud) == before


def test_purge_when_it_dies_in_a_batch_then_the_batch_is_whole_and_goes_with_the_next_turn(cloud, monkeypatch) -> None:
    bury(cloud, 3)
    before = left(cloud)
    with monkeypatch.context() as patched:
        patched.setattr("nova.db.server.servers.delete_keys", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            turn(cloud)
    assert left(cloud) == before
    turn(cloud)
    assert left(cloud) == {}


def test_purge_when_another_conductor_has_the_turn_then_it_leaves_it_until_the_lease_is_over(cloud) -> None:
    bury(cloud, 1)
    assert cloud.cell.transact(lambda tx: orphans.take_turn(tx, purge.WALK, purge.LEASE_S)) == ""
    assert purge.run(cloud.deps) == 0 and left(cloud)
    assert turn(cloud) == 2


def test_turn_when_there_is_nothing_to_do_then_it_is_one_look_a_kind(cloud, server: str) -> None:
    turn(cloud)
    seen = statements(cloud)
    turn(cloud)
    looks = [text for text in seen if text.startswith("SELECT") and "audit_walks" not in text]
    assert len(looks) == len(purge.KINDS) + 1
    assert not [text for text in seen if text.startswith("DELETE")]


def test_purge_then_it_is_a_job_of_each_minute() -> None:
    assert [seconds for seconds, job, _name in periodic.jobs() if job is purge.run] == [60.0]
    assert purge.WORK_S < purge.LEASE_S < 60


# -- other rows that are over

def test_flavor_when_it_was_deleted_long_ago_then_its_row_goes(cloud) -> None:
    for name in ("old", "new"):
        cloud.api.transact(lambda tx, name=name: flavors.insert(tx, NewFlavor(
            flavorid=name, name=name, memory_mb=1, vcpus=1, root_gb=1)))
        cloud.api.transact(lambda tx, name=name: flavors.delete(tx, name))
    cloud.write("api", sa.update(api.flavors).where(api.flavors.c.name == "old").values(updated_at=OLD),
                sa.update(api.flavors).where(api.flavors.c.deleted == 0).values(updated_at=OLD, created_at=OLD))
    live = len(cloud.rows("api", sa.select(api.flavors).where(api.flavors.c.deleted == 0)))
    assert turn(cloud) == 1
    names = [row.name for row in cloud.rows("api", sa.select(api.flavors))]
    assert len(names) == live + 1 and "new" in names and "old" not in names


def test_stranger_when_it_ended_long_ago_then_it_goes(cloud) -> None:
    among, facts = orphans.of_host("a", (OrphanKind.GUEST,)), orphans.OrphanFacts(new_uuid(), "running")
    for name in ("over", "open"):
        key = orphans.OrphanKey("a", OrphanKind.GUEST, name)
        cloud.cell.transact(lambda tx, key=key: orphans.write(tx, among, {key: facts}))
    assert turn(cloud) == 0
    cloud.write("cell", sa.update(cell.strangers).where(cell.strangers.c.ended != 0).values(ended_at=OLD),
                sa.update(cell.strangers).values(first_seen_at=OLD))
    assert turn(cloud) == 1
    assert [row.name for row in cloud.rows("cell", sa.select(cell.strangers))] == ["open"]


def test_usage_audits_when_they_are_old_then_those_of_the_last_periods_stay_however_long_these_were(cloud) -> None:
    def audit(year: int) -> dict[str, Any]:
        return {"host": "a", "period_beginning": datetime.datetime(year, 1, 1), "state": "DONE",
                "period_ending": datetime.datetime(year + 1, 1, 1)}
    this_year = utcnow().year
    old_rows.write(cloud.cell, {cell.usage_audits: [audit(this_year - back) for back in (4, 3, 2, 1)]})
    assert turn(cloud, instance_usage_audit_period="year", deleted_retention_s=1) == 2
    years = [row.period_beginning.year for row in cloud.rows("cell", sa.select(cell.usage_audits))]
    assert sorted(years) == [this_year - 2, this_year - 1]


def test_services_when_they_were_replaced_then_the_last_of_each_daemon_stays(cloud) -> None:
    def register(binary: str) -> None:
        cloud.cell.transact(lambda tx: services.register(tx, Registration(host="x", binary=binary, topic="t")))
    for _again in range(3):
        register("nova-compute")
        row = cloud.cell.transact(lambda tx: services.locked(tx, None, "x", "nova-compute"))
        cloud.cell.transact(lambda tx, row=row: services.delete(tx, row))
    register("nova-api-metadata")
    assert turn(cloud) == 2
    with cloud.cell.reading() as tx:
        assert services.binaries_ever(tx, "x") == ({"nova-api-metadata"}, {"nova-compute"})
    assert turn(cloud) == 0


@pytest.mark.parametrize(("host", "known", "stays"), [("gone", False, False), ("a", False, True), ("gone", True, True)])
def test_cleanup_when_host_and_server_are_gone_for_good_then_it_goes(cloud, server: str, host: str, known: bool,
                                                                     stays: bool) -> None:
    uuid = server if known else new_uuid()
    cloud.cell.transact(lambda tx: host_cleanups.add(tx, [
        {"host": host, "server_uuid": uuid, "epoch": 1, "step": "destroy_guests", "arguments": {}}]))
    assert turn(cloud) == (not stays)
    assert bool(cloud.debts()) == stays


# -- the journal of servers that live

def test_journal_when_actions_are_old_then_the_newest_stay(cloud, server: str) -> None:
    journal(cloud, *[operation(server, f"a{number}") for number in range(8)])
    assert turn(cloud, instance_actions_kept=3) == 5
    assert actions(cloud, server) == ["a5", "a6", "a7"]
    assert turn(cloud, instance_actions_kept=3) == 0


def test_journal_when_actions_are_young_then_they_all_stay_and_push_out_old_ones_once_they_are_old_too(cloud, server
                                                                                                       ) -> None:
    journal(cloud, operation(server, "old"), operation(server, "older_kept"))
    assert turn(cloud, instance_actions_kept=2) == 0
    journal(cloud, *[operation(server, f"young{number}", utcnow()) for number in range(4)])
    assert turn(cloud, instance_actions_kept=2) == 0 and len(actions(cloud, server)) == 6
    cloud.write("cell", sa.update(cell.operations).where(cell.operations.c.action == "young2").values(
        finished_at=OLD + datetime.timedelta(days=1)))
    assert turn(cloud, instance_actions_kept=2) == 2
    assert actions(cloud, server) == ["young0", "young1", "young2", "young3"]


def test_journal_when_an_operation_is_open_then_it_stays_however_old_it_is(cloud, server: str) -> None:
    journal(cloud, operation(server, "resize", None), *[operation(server) for _ in range(5)])
    assert turn(cloud, instance_actions_kept=1) == 4
    assert actions(cloud, server) == ["resize", "reboot"]


def test_journal_when_actions_remember_what_others_left_then_the_last_such_stays(cloud, server: str) -> None:
    journal(cloud, operation(server, "reset_state", arguments={"hosts": ["a"]}),
            operation(server, "delete", outcome="error", arguments={"hosts": ["a", "b"]}),
            operation(server, "delete", outcome="overtaken"), *[operation(server) for _ in range(3)])
    assert turn(cloud, instance_actions_kept=1) == 4
    kept = cloud.journal(server)
    assert [(row.action, row.arguments.get("hosts")) for row in kept] == [("delete", ["a", "b"]), ("reboot", None)]


def test_moves_when_they_are_over_and_old_then_the_newest_stay_and_those_under_way(cloud, server: str) -> None:
    moves = [move(server, dest_compute=f"h{number}") for number in range(5)]
    moves[0]["status"], moves[1]["updated_at"] = "finished", utcnow()
    old_rows.write(cloud.cell, {cell.migrations: moves})
    assert turn(cloud, instance_actions_kept=1) == 0  # no action of its server turned old
    journal(cloud, operation(server))
    assert turn(cloud, instance_actions_kept=1) == 2
    assert [row.dest_compute for row in cloud.rows("cell", sa.select(cell.migrations).order_by(cell.migrations.c.id))
            ] == ["h0", "h1", "h4"]


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_journal_when_many_ended_at_one_moment_then_each_is_looked_at_once(cloud, server: str, monkeypatch, batch: int
                                                                           ) -> None:
    monkeypatch.setattr(purge, "BATCH", batch)
    other, = add_servers(cloud.cell, server_row())
    journal(cloud, *[operation(uuid, runner_id=number % 3) for number in range(5) for uuid in (server, other)])
    looked: list[int] = []
    real = action_retention.turned_old
    monkeypatch.setattr(action_retention, "turned_old", lambda *args: (page := real(*args), looked.extend(
        row.id for row in page))[0])
    assert turn(cloud, instance_actions_kept=2) == 6
    assert len(looked) == len(set(looked))
    assert [len(actions(cloud, uuid)) for uuid in (server, other)] == [2, 2]


def test_journal_when_more_or_fewer_are_to_be_kept_then_all_are_looked_at_anew(cloud, server: str) -> None:
    journal(cloud, *[operation(server) for _ in range(9)])
    assert [turn(cloud, instance_actions_kept=kept) for kept in (5, 7, 2)] == [4, 0, 3]


@pytest.mark.parametrize("written", [False, True])
def test_journal_when_the_conductor_dies_in_between_then_the_next_turn_goes_on(cloud, server, monkeypatch, written
                                                                               ) -> None:
    monkeypatch.setattr(purge, "BATCH", 2)
    journal(cloud, *[operation(server) for _ in range(9)])
    real, calls = orphans.go_on, []

    def die(*args: Any) -> None:
        if written or not calls:
            real(*args)
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
    with monkeypatch.context() as patched:
        patched.setattr(orphans, "go_on", die)
        with pytest.raises(KeyboardInterrupt):
            turn(cloud, instance_actions_kept=3)
    assert len(actions(cloud, server)) == 7  # the second batch is as if it had not been
    assert turn(cloud, instance_actions_kept=3) == 4
    assert len(actions(cloud, server)) == 3


def test_journal_when_operations_are_of_a_real_life_then_the_server_goes_on(cloud) -> None:
    uuid, = cloud.active(1)
    for action in ("stop", "start") * 3:
        cloud.order(uuid, action)
        cloud.ended(uuid)
    cloud.write("cell", sa.update(cell.operations).values(finished_at=later(-2 * DAY_S)))
    assert turn(cloud, instance_actions_kept=2, instance_actions_retention_s=DAY_S) == 5
    cloud.order(uuid, "stop")
    assert cloud.ended(uuid).vm_state == "stopped"
    cloud.delete(uuid)
    cloud.write("cell", sa.update(cell.servers).values(deleted_at=later(-2 * DAY_S)),
                sa.update(cell.operations).values(finished_at=utc_now()))
    assert turn(cloud, deleted_retention_s=DAY_S) >= 1 and not actions(cloud, uuid)
