"""What the databases say and take differently, on each of them for real."""

from __future__ import annotations

import datetime
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import host_cleanups, services
from nova.db.models import cell as tables
from nova.db.network import networks
from nova.db.operation import taken_messages, timeouts
from nova.db.server import migrations, new_servers, reported_states, server_lists, servers, states
from nova.db.sql import server_limits
from nova.db.sql.engine import Database, DatabaseBusy
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import later
from nova.db.upkeep import orphans
from nova.model.base import Scope, utcnow
from nova.model.guest.orphans import OrphanKind
from nova.model.host.services import Registration, ServiceQuery
from nova.model.network.networks import RequestedNetwork
from nova.model.server.migrations import NewMigration
from nova.model.server.servers import Condition, ServerListQuery
from nova.model.server.states import ACTIONS, VmState
from tests.fakes.rows import add_network, add_servers, new_uuid, plugged, server_row


def conditions(*found: Condition) -> ServerListQuery:
    return ServerListQuery(conditions=found)


def test_pattern_when_it_is_no_expression_then_invalid(cell: Database) -> None:
    add_servers(cell, server_row())
    with cell.reading() as tx, pytest.raises(errors.api.PageBadRegex):
        server_lists.select(tx, conditions(Condition(column="name", op="regex", value="[a")), 10)


def test_pattern_when_it_would_take_for_ever_then_it_is_broken_off(cell: Database, monkeypatch) -> None:
    monkeypatch.setattr(server_lists, "MATCHING_S", 1)
    add_servers(cell, *(server_row(name="a" * 200 + "!") for _ in range(30)))
    wanted = conditions(Condition(column="name", op="regex", value="(a+)+$"))
    with cell.reading() as tx:
        if cell.dialect in ("postgresql", "sqlite"):  # they look at each letter once
            assert server_lists.select(tx, wanted, 10) == []
            return
        with pytest.raises(errors.api.PageBadRegex, match="more than 1 seconds"):
            server_lists.select(tx, wanted, 10)
        assert tx.exec_driver_sql("SELECT SLEEP(1.2)").scalar_one() == 0  # the connection's next statement has time


def test_address_when_it_is_looked_for_then_servers_whose_fixed_ones_match_are_found(cell: Database) -> None:
    """Not those of gateways or floating ones; anchors are the address's own ends, and a server may have several."""
    short, both, none = add_servers(cell, server_row(interfaces=plugged("10.7.0.1")), server_row(
        interfaces=plugged("10.7.0.12", "fd07::1")), server_row())
    with cell.reading() as tx:
        def found(**query: str) -> set[str]:
            return {row.uuid for row in server_lists.names(tx, ServerListQuery(**query), 100)}
        assert found(ip_regex="^10.7.0.1$") == {short}
        assert found(ip_regex="7.0.1") == {short, both}
        assert found(ip6_regex="^fd07:") == {both}
        assert found(ip_regex="fd07|192.0.2|10.0.0.254") == set() and found(ip6_regex="10.7") == set()
        assert none not in found(ip_regex=".")


def test_address_when_its_pattern_is_none_then_invalid(cell: Database) -> None:
    add_servers(cell, server_row(interfaces=plugged("10.7.0.1")))
    with cell.reading() as tx, pytest.raises(errors.api.PageBadRegex):
        server_lists.select(tx, ServerListQuery(ip_regex="[1"), 10)


@pytest.mark.parametrize("column", ["id", "power_state", "launch_index"])
@pytest.mark.parametrize("value", ["99999999999999999999", "40000", "\N{SUPERSCRIPT TWO}", "x"])
def test_number_when_the_column_cannot_hold_it_then_nothing_matches(cell: Database, column: str, value: str) -> None:
    with cell.reading() as tx:
        assert server_lists.select(tx, conditions(Condition(column=column, value=value)), 10) == []


def test_host_is_shown_with_its_servers_in_one_statement(cell: Database) -> None:
    uuid, = add_servers(cell, server_row(host="h1"))
    cell.transact(lambda tx: services.register(tx, Registration(host="h1", binary="nova-compute", topic="compute",
                                                                host_id=new_uuid())))
    with cell.reading() as tx:
        row = servers.detail_row(tx, uuid, Scope(), False)
        assert (row.host_disabled, row.host_forced_down) == (False, False)
        assert (services.as_time(row.clock) - row.host_seen_at).total_seconds() < 60


def test_power_when_several_hosts_guests_are_told_then_each_is_judged_by_its_epoch(cell: Database) -> None:
    uuids = add_servers(cell, *[server_row(host="h2", epoch=epoch, updated_at=None) for epoch in (1, 2, 3)])
    reported = {uuid: reported_states.Power(4, 2, "stopped") for uuid in uuids}
    cell.transact(lambda tx: reported_states.note_power(tx, "h2", reported))
    with cell.reading() as tx:
        rows = servers.rows_of(tx, uuids)
    assert [rows[uuid].vm_state for uuid in uuids] == ["stopped", "stopped", "active"]
    assert [rows[uuid].power_state for uuid in uuids] == [4, 4, 0]


def test_power_when_a_stopped_servers_guest_runs_then_it_is_named_and_can_be_shown_as_running(cell: Database) -> None:
    stray, other = add_servers(cell, *[server_row(host="h3", vm_state=state) for state in ("stopped", "active")])
    reported = {uuid: reported_states.Power(1, 1, "active") for uuid in (stray, other)}
    assert cell.transact(lambda tx: reported_states.note_power(tx, "h3", reported)) == (stray,)
    assert cell.transact(lambda tx: reported_states.set_running(tx, "h3", stray, reported[stray]))
    assert not cell.transact(lambda tx: reported_states.set_running(tx, "h3", stray, reported[stray]))
    with cell.reading() as tx:
        assert {(row.vm_state, row.power_state) for row in servers.rows_of(tx, [stray, other]).values()} == {
            ("active", 1)}


def test_what_periodic_tasks_look_for_is_found_and_judged_by_the_databases_clock(cell: Database) -> None:
    old, now = datetime.timedelta(seconds=500), utcnow()
    rescued, young = add_servers(cell, *[server_row(vm_state="rescued", updated_at=at) for at in (now - old, now)])
    built, = add_servers(cell, server_row(vm_state="building", created_at=now - old))
    lost, = add_servers(cell, server_row(task_state="rebooting", updated_at=now - old))
    add_servers(cell, server_row(vm_state="building", created_at=now), server_row(task_state="migrating",
                                                                                  updated_at=now))
    for uuid in (rescued, lost):
        cell.transact(lambda tx, uuid=uuid: migrations.insert(tx, NewMigration(
            uuid=new_uuid(), server_uuid=uuid, type="migration", status="migrating")))
    cell.transact(lambda tx: tx.execute(sa.update(tables.migrations).values(created_at=now - old)))
    what = timeouts.IdleServersQuery(VmState.RESCUED, ("rescue",), "unrescue")
    with cell.reading() as tx:
        found = timeouts.idle_servers(tx, what, 10)
        after = what._replace(after=(found[0].updated_at, found[0].id))
        ages = [(services.as_time(row.clock) - row.updated_at).total_seconds() for row in found]
        assert [row.uuid for row in found] == [rescued, young] and ages[0] > 499 and abs(ages[1]) < 60
        assert [row.uuid for row in timeouts.idle_servers(tx, after, 10)] == [young]
        assert [row.uuid for row in timeouts.building(tx, 400, 10)] == [built]
        assert [row.uuid for row in timeouts.ownerless(tx, 10)] == [lost]
        moves = timeouts.abandoned(tx, 10)
    assert {move.server_uuid for move in moves} == {rescued, lost}
    assert [cell.transact(lambda tx, move=move: timeouts.close(tx, move)) for move in (*moves, moves[0])] == [
        True, True, False]
    assert cell.transact(lambda tx: timeouts.unchanged(tx, lost, 1)) and not cell.transact(
        lambda tx: timeouts.unchanged(tx, lost, 2))


def test_network_when_an_address_is_being_picked_then_it_is_not_deleted(cell: Database) -> None:
    network, picked, go = add_network(cell, cidr="10.9.0.0/28"), threading.Event(), threading.Event()

    def pick(tx: sa.Connection) -> None:
        networks.bind(tx, [networks.AddressRequest("a-server", "vm", (RequestedNetwork(network_id=network),))])
        picked.set()
        go.wait(0.5)
    binding = threading.Thread(target=cell.transact, args=(pick,))
    binding.start()
    assert picked.wait(10)
    with pytest.raises(errors.network.InUse):
        cell.transact(lambda tx: networks.delete(tx, network))
    go.set()
    binding.join(10)
    with cell.reading() as tx:
        assert tx.execute(sa.select(sa.func.count()).where(
            tables.fixed_addresses.c.server_uuid == "a-server")).scalar_one() == 1


def test_largest_request_is_taken(cell: Database) -> None:
    """Servers with all the user data and files they may have, and metadata beyond what a statement binds."""
    rows = [server_row(user_data="x" * 65_535, files={"/etc/motd": "y" * 68_000}) for _ in range(150)]
    cell.transact(lambda tx: new_servers.insert(tx, [new_servers.NewServerRows(
        rows, [], {f"k{number}": "v" for number in range(128)}, ())]))
    with cell.reading() as tx:
        metadata, _tags = servers.children(tx, [rows[-1]["uuid"]])
    assert len(metadata[rows[-1]["uuid"]]) == 128


def test_epoch_when_a_host_is_left_behind_then_both_rows_have_it(cell: Database) -> None:
    uuid, = add_servers(cell, server_row(launched_at=None))
    begin = states.Begin(ACTIONS["delete"], uuid, {}, "req-1", None, None, 1, "")
    entry, *_ = cell.transact(lambda tx: states.begin(tx, begin))
    newer = cell.transact(lambda tx: states.fence_unreachable_host(tx, entry))
    with cell.reading() as tx:
        assert servers.epochs(tx, [uuid]) == {uuid: newer.epoch} == {uuid: entry.epoch + 1}
        kept = tx.execute(sa.select(tables.operations.c.epoch).where(tables.operations.c.id == entry.id)).scalar_one()
    assert kept == newer.epoch


def test_debt_when_it_is_written_again_then_the_newer_epoch_stands(cell: Database) -> None:
    cleanup = {"host": "h1", "server_uuid": new_uuid(), "step": "destroy_guests", "arguments": {}}
    for epoch in (3, 5, 4):
        cell.transact(lambda tx, epoch=epoch: host_cleanups.add(tx, [{**cleanup, "epoch": epoch}]))
    with cell.reading() as tx:
        one, = host_cleanups.pending(tx, "h1")
        assert one.epoch == 5 and host_cleanups.find(tx, "h1", one.id) == (cleanup["server_uuid"], True)
        assert host_cleanups.hosts_with_pending(tx) == {"h1"}


def test_lock_when_it_is_waited_for_too_long_then_the_change_is_tried_again(cell: Database, monkeypatch) -> None:
    if cell.dialect != "mysql":
        pytest.skip("the others wait without an end, or tell a deadlock at once")
    uuid, = add_servers(cell, server_row())
    monkeypatch.setattr("nova.db.sql.engine.TRIES", 2)
    held, go = threading.Event(), threading.Event()

    def hold(tx: sa.Connection) -> None:
        servers.lock_row(tx, uuid)
        held.set()
        go.wait(10)

    def change(tx: sa.Connection) -> None:
        tx.exec_driver_sql("SET innodb_lock_wait_timeout = 1")
        servers.lock_row(tx, uuid)
    holding = threading.Thread(target=cell.transact, args=(hold,))
    holding.start()
    assert held.wait(10)
    with pytest.raises(DatabaseBusy):
        cell.transact(change)
    go.set()
    holding.join(10)


def test_rows_without_end_are_inserted_in_pieces(cell: Database) -> None:
    owner = new_uuid()
    cell.transact(lambda tx: insert_all(tx, tables.server_tags, [
        {"server_uuid": owner, "tag": f"t{number}"} for number in range(40_000)]))
    with cell.reading() as tx:
        assert tx.execute(sa.select(sa.func.count()).where(
            tables.server_tags.c.server_uuid == owner)).scalar_one() == 40_000


def test_limit_of_a_server_then_its_databases_are_of_one_server_and_sqlite_has_none(cell: Database) -> None:
    limit = server_limits.limit_of(cell)
    assert limit == server_limits.limit_of(cell.alone())
    assert limit is None if cell.dialect == "sqlite" else limit is not None and limit.connections > 10


def test_beats_when_some_clocks_are_off_then_each_row_has_its_own(cell: Database) -> None:
    names = [(f"clock{number}", "nova-compute") for number in range(3)]
    for host, binary in names:
        cell.transact(lambda tx, host=host, binary=binary: services.register(tx, Registration(
            host=host, binary=binary, topic="compute", host_id=new_uuid())))
    for beats in ({names[0]: -7.5, names[1]: None, names[2]: 40.0}, dict.fromkeys(names)):
        cell.transact(lambda tx, beats=beats: services.record_heartbeats(tx, beats))
        with cell.reading() as tx:
            found = {name: services.select(tx, ServiceQuery(host=name[0]))[0][0].clock_off_s for name in names}
        assert found == beats


def test_strangers_when_they_come_and_go_then_rows_begin_and_end_on_each_database(cell: Database) -> None:
    def key(number: int) -> orphans.OrphanKey:
        return orphans.OrphanKey("s1", OrphanKind.GUEST, f"n{number}")
    among, uuid = orphans.of_host("s1", (OrphanKind.GUEST,)), new_uuid()
    both = {key(number): orphans.OrphanFacts(uuid, "running") for number in range(2)}
    assert cell.transact(lambda tx: orphans.write(tx, among, both)) == set(both)
    assert cell.transact(lambda tx: orphans.write(tx, among, both)) == set()
    cell.transact(lambda tx: orphans.order(tx, [key(0)]))
    with cell.reading() as tx:
        assert [row.name for row in orphans.ordered(tx, "s1", (OrphanKind.GUEST,), 60)] == ["n0"]
    for _again in range(2):
        cell.transact(lambda tx: orphans.write(tx, among, {}))
        cell.transact(lambda tx: orphans.write(tx, among, both))
    with cell.reading() as tx:
        rows = orphans.listed(tx, 100, with_ended=True)
    assert [row.ending for row in rows] == ["removed", "gone by itself", "gone by itself", "gone by itself", "", ""]
    assert cell.transact(lambda tx: orphans.purge(tx, -10, 100)) == 4


def test_walk_when_several_ask_for_a_turn_then_one_has_it_until_it_is_over(cell: Database) -> None:
    def take(seconds: int) -> str | None:
        return cell.transact(lambda tx: orphans.take_turn(tx, "w", seconds))
    assert take(60) == "" and take(60) is None
    cell.transact(lambda tx: orphans.go_on(tx, "w", "middle"))
    cell.transact(lambda tx: tx.execute(sa.update(tables.audit_walks).values(taken_until=later(-1))))
    assert take(-1) == "middle" and take(60) == "middle"
    cell.transact(lambda tx: orphans.go_on(tx, "w", None))
    with cell.reading() as tx:
        row = tx.execute(sa.select(tables.audit_walks)).one()
    assert row.after == "" and row.passed_at is not None


def test_insert_when_some_rows_are_there_then_those_that_came_are_counted(cell: Database) -> None:
    def insert(*digests: str) -> int:
        rows = [{"digest": digest, "taken_at": later(0)} for digest in digests]
        return cell.transact(lambda tx: insert_ignoring(tx, tables.taken_messages, rows))
    assert [insert("a"), insert("a"), insert("a", "b", "c"), insert("b", "c")] == [1, 0, 2, 0]


def test_message_of_a_host_when_conductors_take_it_at_once_then_one_has_it(cell: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _number: cell.transact(
            lambda tx: taken_messages.take(tx, "host1", "message")), range(40)))
    assert taken.count(True) == 1
