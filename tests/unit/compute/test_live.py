"""Guests that change hosts while they run: the order to each end, aborts, progress, and a guest on one host only."""

from __future__ import annotations

import time

import pytest

from nova import errors
from nova.compute.guests import live_progress
from nova.model.guest.orders import LiveOrder
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, World, beside, build_order, fence, guest_order, wait_until
from tests.fakes.conductor_host import FakeConductorHost
from tests.unit.compute.test_guest_moves import marked, move_order

RUNNING = PowerState.RUNNING
OTHER = "compute2"


@pytest.fixture
def other(tmp_path):
    made = World(tmp_path / "other", name=OTHER).start()
    yield made
    made.close()


@pytest.fixture
def slow(world):
    """The host whose guests take long to leave."""
    world.fake["live_migration_time"] = 30.0
    return world.restart()


@pytest.fixture
def order(world):
    made = build_order()
    world.build(made)
    world.driver.hypervisor.write_mark(made.server_uuid, "precious")
    return made


def prepared(world, other, order, epoch: int = 2, operation_id: int | None = None) -> LiveOrder:
    source = world.one("describe_guests", guest_order(order, epoch)).source
    assert source.host == world.host.name
    outcome = other.one("prepare_arrivals", move_order(order, epoch, source))
    assert outcome.ok, outcome
    return LiveOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, arrival=outcome.arrival,
                     fence=fence(epoch, operation_id), build=order)


def of_epoch(live: LiveOrder, epoch: int) -> LiveOrder:
    return LiveOrder(server_uuid=live.server_uuid, instance_name=live.instance_name, arrival=live.arrival,
                     fence=fence(epoch, live.fence.operation_id), build=live.build)


def under_way(world, live: LiveOrder):
    """Begin a migration beside the test, and wait until it is under way."""
    thread, results = beside(world.one, "migrate_guests", live)
    wait_until(lambda: live.server_uuid in world.driver.live_moves.migrations)
    return thread, results


def test_live_migration_when_all_goes_well_then_the_same_boot_runs_there_and_nothing_is_left_here(world, other, order):
    boots = world.driver.hypervisor.inspect(order.server_uuid).boots
    live = prepared(world, other, order)
    assert world.one("migrate_guests", live).ok
    assert world.driver.lifecycle.power_state(order.server_uuid) is None
    assert other.one("land_guests", move_order(order, 2)).power_state == RUNNING
    guest = other.driver.hypervisor.inspect(order.server_uuid)
    assert guest.boots == boots and guest.marks["root"] == "precious"
    assert world.one("destroy_guests", guest_order(order, 2)).ok and world.leftovers() == []
    assert not list((other.state_path / "building").iterdir())


def test_live_migration_when_the_guest_is_paused_then_it_arrives_paused(world, other, order):
    world.one("pause_guests", guest_order(order, 2))
    live = prepared(world, other, order, 3)
    assert world.one("migrate_guests", live).ok
    assert other.one("land_guests", move_order(order, 3)).power_state == PowerState.PAUSED


def test_migrate_when_repeated_then_joined_while_it_runs_and_ok_when_it_is_over(slow, other, order):
    live = prepared(slow, other, order)
    first, one = under_way(slow, live)
    second, two = beside(slow.one, "migrate_guests", live)
    third, three = beside(slow.one, "migrate_guests", of_epoch(live, 3))  # a runner took the operation over
    wait_until(lambda: slow.service._fences.known(order.server_uuid).epoch == 3)
    slow.service.force_migration(HOST, order.server_uuid, 3)
    for thread in (first, second, third):
        thread.join(5)
    assert one[0].ok and one == two == three
    assert [call for call, _ in slow.driver.calls].count("migrate") == 1
    slow.restart()
    assert slow.one("migrate_guests", of_epoch(live, 4)).ok


@pytest.mark.parametrize("when", ["before", "after"])
def test_prepare_when_it_fails_then_no_tap_and_no_mark_is_left(world, other, order, when):
    source = world.one("describe_guests", guest_order(order, 2)).source
    other.driver.knobs.fail_next("prepare_arrival", when=when)
    assert not other.one("prepare_arrivals", move_order(order, 2, source)).ok
    assert not list((other.state_path / "building").iterdir())
    assert other.one("destroy_guests", guest_order(order, 2)).ok and other.leftovers() == []


def test_prepare_when_the_processor_is_too_old_then_refused_with_what_is_missing(world, other, order):
    source = world.one("describe_guests", guest_order(order, 2)).source
    other.driver.live_moves.cpu = "486"
    outcome = other.one("prepare_arrivals", move_order(order, 2, source))
    assert outcome.error_kind == "host_refused" and "486" in outcome.error_message and other.leftovers() == []


@pytest.mark.parametrize("kind", ["host_refused", "crash"])
def test_migrate_when_the_driver_fails_then_the_guest_runs_here_and_the_destination_can_be_cleared(world, other, order,
                                                                                                   kind):
    live = prepared(world, other, order)
    world.driver.knobs.fail_next("hand_over", error=kind)
    outcome = world.one("migrate_guests", live)
    assert not outcome.ok and world.driver.lifecycle.power_state(order.server_uuid) == RUNNING
    assert other.one("land_guests", move_order(order, 2)).error_kind == "not_found"
    assert other.one("destroy_guests", guest_order(order, 2)).ok and other.leftovers() == []


def test_migrate_when_the_destination_gave_up_then_the_guest_runs_here(world, other, order):
    live = prepared(world, other, order)
    other.one("destroy_guests", guest_order(order, 2))
    assert world.one("migrate_guests", live).error_kind == "host_refused"
    assert world.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_migrate_when_aborted_then_the_guest_runs_here_and_the_error_says_so(slow, other, order):
    live = prepared(slow, other, order)
    thread, results = under_way(slow, live)
    assert other.one("land_guests", move_order(order, 2)).error_kind == "conflict"  # it is on its way
    slow.service.abort_migration(HOST, order.server_uuid, 2)
    thread.join(5)
    assert (results[0].error_kind, results[0].error_code) == ("conflict", "migration.aborted")
    assert slow.driver.lifecycle.power_state(order.server_uuid) == RUNNING and marked(slow, order) == "precious"


def test_abort_when_the_order_waits_for_its_turn_then_it_never_begins(slow, other, order):
    live = prepared(slow, other, order)
    block = slow.driver.knobs.block("migrate")
    thread, results = beside(slow.one, "migrate_guests", live)
    assert block.reached.wait(5)
    slow.service.abort_migration(HOST, order.server_uuid, 2)
    block.release()
    thread.join(5)
    assert results[0].error_code == "migration.aborted"
    assert slow.driver.lifecycle.power_state(order.server_uuid) == RUNNING


@pytest.mark.parametrize("call", ["abort_migration", "force_migration"])
def test_abort_and_force_when_none_is_under_way_or_a_newer_operation_has_the_server_then_refused(world, order, call):
    with pytest.raises(errors.Conflict):
        getattr(world.service, call)(HOST, order.server_uuid, 5)
    world.one("stop_guests", guest_order(order, 7))
    with pytest.raises(errors.Overtaken):
        getattr(world.service, call)(HOST, order.server_uuid, 5)
    with pytest.raises(errors.HostRefused):
        getattr(world.service, call)("elsewhere", order.server_uuid, 5)
    with pytest.raises(errors.Invalid):
        getattr(world.service, call)(HOST, "../x", 5)


def test_migrate_when_a_delete_comes_then_it_stops_and_nothing_is_left_anywhere(slow, other, order):
    live = prepared(slow, other, order)
    thread, results = under_way(slow, live)
    assert slow.one("destroy_guests", guest_order(order, 3)).ok
    thread.join(5)
    assert results[0].error_kind == "overtaken" and slow.leftovers() == []
    assert other.one("destroy_guests", guest_order(order, 3)).ok and other.leftovers() == []


@pytest.mark.parametrize("away", [True, False])
def test_migrate_when_permission_is_not_to_be_had_then_nothing_is_sent(world, other, order, away):
    live = prepared(world, other, order)
    world.conductor.away = away
    world.conductor.overtaken.add(order.server_uuid)
    outcome = world.one("migrate_guests", live)
    assert outcome.error_kind == ("host_refused" if away else "overtaken")
    assert "migrate" not in [call for call, _ in world.driver.calls]


def test_describe_when_the_guest_is_off_then_conflict_and_when_there_is_none_not_found(world, order):
    world.one("stop_guests", guest_order(order, 2))
    assert world.one("describe_guests", guest_order(order, 3)).error_kind == "conflict"
    assert world.one("describe_guests", guest_order(build_order(), 3)).error_kind == "not_found"


def test_power_events_when_a_guest_goes_from_host_to_host_then_neither_reports_more_than_it_has(world, other, order):
    live = prepared(world, other, order)
    world.one("migrate_guests", live)
    other.one("land_guests", move_order(order, 2))
    time.sleep(0.5)  # events are gathered for less than that
    reported = [guest for report in world.conductor.reports[1:] for guest in report.guests]
    assert [guest for guest in reported if guest.server_uuid == order.server_uuid
            and guest.power_state != RUNNING] == []


# --- many of them


@pytest.fixture
def narrow(world):
    """The host lets one guest leave at a time, and that one takes long."""
    world.fake["live_migration_time"] = 30.0
    world.settings["max_concurrent_live_migrations"] = 1
    return world.restart()


def waiting(narrow, other, number: int):
    """One more migration, which waits for its turn."""
    order = build_order(number=number)
    narrow.build(order)
    live = prepared(narrow, other, order)
    thread, results = beside(narrow.one, "migrate_guests", live)
    wait_until(lambda: narrow.service._orders.migrating(order.server_uuid))
    return live, thread, results


def test_migrations_when_one_may_leave_at_a_time_then_the_next_waits_for_its_end(narrow, other, order):
    first, _one = under_way(narrow, prepared(narrow, other, order))
    live, second, two = waiting(narrow, other, 2)
    assert live.server_uuid not in narrow.driver.live_moves.migrations
    narrow.service.force_migration(HOST, order.server_uuid, 2)
    first.join(5)
    wait_until(lambda: live.server_uuid in narrow.driver.live_moves.migrations)
    narrow.service.force_migration(HOST, live.server_uuid, 2)
    second.join(5)
    assert two[0].ok and narrow.driver.lifecycle.power_state(live.server_uuid) is None


def test_migration_when_it_is_aborted_while_it_waits_then_it_never_begins(narrow, other, order):
    first, one = under_way(narrow, prepared(narrow, other, order))
    live, second, two = waiting(narrow, other, 2)
    narrow.service.abort_migration(HOST, live.server_uuid, 2)
    narrow.service.force_migration(HOST, order.server_uuid, 2)
    first.join(5)
    second.join(5)
    assert one[0].ok and two[0].error_code == "migration.aborted"
    assert narrow.driver.lifecycle.power_state(live.server_uuid) == RUNNING


# --- progress


def test_progress_when_a_migration_runs_then_its_beginning_its_steps_and_its_end_are_told(slow, other, order):
    live = prepared(slow, other, order)
    thread, _results = under_way(slow, live)
    wait_until(lambda: slow.conductor.progress)
    slow.service.force_migration(HOST, order.server_uuid, 2)
    thread.join(5)
    reported = slow.conductor.progress
    assert all((report.server_uuid, report.epoch) == (order.server_uuid, 2) for report in reported)
    assert reported[-1].percent == 100 and reported[-1].progress.memory_remaining_bytes == 0
    assert reported[-1].progress.memory_total_bytes == 512 << 20


def test_progress_when_the_conductor_is_away_then_the_migration_goes_on(world, other, order, monkeypatch):
    live = prepared(world, other, order)

    def away(host, reports):
        raise errors.Unavailable("nobody there")
    world.conductor.given(report_progress=away)
    assert world.one("migrate_guests", live).ok


def test_progress_when_numbers_come_fast_then_few_are_sent_and_the_newest_wins(world, monkeypatch):
    monkeypatch.setattr(live_progress, "EVERY_S", 60.0)
    conductor = FakeConductorHost()
    telling = live_progress.LiveProgress(conductor.client(world.host.name), world.host, "s", 1).start()
    for tenths in range(1001):
        telling.note(tenths // 10, MigrationProgress(memory_processed_bytes=tenths))
    telling.end()
    assert conductor.progress[-1].percent == 100 and conductor.progress[-1].progress.memory_processed_bytes == 1000
    assert len(conductor.progress) <= 23
    percents = [report.percent for report in conductor.progress]
    assert percents == sorted(percents)


def test_progress_when_nothing_moves_for_a_while_then_new_numbers_are_told_all_the_same(world, monkeypatch):
    monkeypatch.setattr(live_progress, "EVERY_S", 0.02)
    conductor = FakeConductorHost()
    telling = live_progress.LiveProgress(conductor.client(world.host.name), world.host, "s", 1).start()
    telling.note(1, MigrationProgress(memory_processed_bytes=1))
    wait_until(lambda: any(report.progress.memory_processed_bytes == 1 for report in conductor.progress))
    telling.note(1, MigrationProgress(memory_processed_bytes=2))
    wait_until(lambda: conductor.progress[-1].progress.memory_processed_bytes == 2)
    telling.end()


# --- whose it is


@pytest.mark.parametrize("away", [True, False])
def test_migrate_when_its_operation_has_gone_on_without_it_then_it_stops_but_not_because_nobody_answers(
        slow, other, order, monkeypatch, away):
    monkeypatch.setattr(live_progress, "EVERY_S", 0.02)
    monkeypatch.setattr(live_progress, "LOST_AFTER_S", 0.1)
    live = prepared(slow, other, order)
    thread, results = under_way(slow, live)
    slow.conductor.away = away
    slow.conductor.overtaken.add(order.server_uuid)
    if away:
        time.sleep(0.3)
        assert thread.is_alive()
        slow.service.force_migration(HOST, order.server_uuid, 2)
        thread.join(5)
        assert results[0].ok
    else:
        thread.join(5)
        assert results[0].error_kind == "overtaken" and slow.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_migrate_when_its_operation_was_taken_over_then_it_goes_on_under_the_new_epoch(slow, other, order, monkeypatch):
    monkeypatch.setattr(live_progress, "EVERY_S", 0.02)
    monkeypatch.setattr(live_progress, "LOST_AFTER_S", 0.1)
    live = prepared(slow, other, order)
    newest = {order.server_uuid: 2}
    slow.conductor.given(may_proceed=lambda host, asked: tuple(
        type(one)(server_uuid=one.server_uuid, epoch=one.epoch, granted=newest[one.server_uuid] == one.epoch)
        for one in asked))
    first, one = under_way(slow, live)
    newest[order.server_uuid] = 3
    second, two = beside(slow.one, "migrate_guests", of_epoch(live, 3))
    time.sleep(0.4)
    assert first.is_alive()
    slow.service.force_migration(HOST, order.server_uuid, 3)
    first.join(5)
    second.join(5)
    assert one[0].ok and two == one


@pytest.mark.parametrize("shared", [True, False])
def test_destroy_when_a_given_up_arrival_may_be_on_shared_disks_then_only_copies_go(world, other, order, shared):
    world.driver.live_moves.shares_storage = other.driver.live_moves.shares_storage = shared
    prepared(world, other, order)
    other.restart()
    other.driver.live_moves.shares_storage = shared
    calls = other.driver.calls
    assert other.one("destroy_guests", guest_order(order, 2, keep_disks=True)).ok
    assert ("remove_disks" in [call for call, _ in calls]) is not shared
    assert other.leftovers() == [] and world.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_destroy_when_the_guest_has_arrived_but_was_not_landed_then_its_disks_stay(world, other, order):
    live = prepared(world, other, order)
    world.one("migrate_guests", live)
    assert other.one("destroy_guests", guest_order(order, 2, keep_disks=True)).ok
    assert marked(other, order) == "precious"
