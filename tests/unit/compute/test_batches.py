"""Many orders in one call: each with its own outcome, few messages, bounded side by side."""

from __future__ import annotations

import logging
import threading
import time
from concurrent import futures

import pytest

from nova import context, errors
from nova.compute import order_table
from nova.compute.host import Host
from nova.compute.orders import batches, permission
from nova.model.guest.orders import Permission, SnapshotOrder
from nova.model.server.states import PowerState
from nova.rpc.contracts.compute import ComputeRPC
from tests.fakes.compute import HOST, World, beside, build_order, fence, guest_order, new_uuid, wait_until
from tests.fakes.conductor_host import FakeConductorHost


def _orders(count: int, **fields):
    return tuple(build_order(number=number, **fields) for number in range(1, count + 1))


def test_build_when_one_of_many_fails_then_the_others_are_untouched_and_the_sequence_kept(world):
    orders = _orders(20)
    world.driver.knobs.fail_next("plug", name="vm7")
    outcomes = world.build(*orders)
    assert [outcome.server_uuid for outcome in outcomes] == [order.server_uuid for order in orders]
    assert [outcome.ok for outcome in outcomes] == [number != 7 for number in range(1, 21)]
    assert len(world.driver.guests()) == 19


def test_orders_when_done_then_the_hosts_log_has_a_line_of_each_that_names_the_server(world, caplog):
    order = build_order()
    with caplog.at_level(logging.INFO):
        world.build(order)
        world.service.stop_guests(HOST, (guest_order(order, 2),))
        world.driver.knobs.fail_next("start", name="vm1")
        world.service.start_guests(HOST, (guest_order(order, 3),))
    said = [(record.levelname, record.getMessage().partition(" (")[0].partition(":")[0]) for record in caplog.records
            if getattr(record, "server", "") == order.server_uuid and "the order to" in record.getMessage()]
    assert sorted(said) == [("INFO", "completed the order to build the guest"),
                            ("INFO", "completed the order to stop the guest"), ("WARNING", "the order to start failed")]


def test_build_when_one_order_is_malformed_then_the_others_are_built(world):
    outcomes = world.build(build_order("../../etc/passwd"), build_order())
    assert [outcome.error_code for outcome in outcomes] == ["order.bad_uuid", ""]


def test_build_when_200_are_ordered_then_one_question_is_asked_and_nothing_is_told_before_the_end(
        world, monkeypatch):
    """Within the time for which an answer counts, and before the first report: 0.2 s on an idle machine."""
    monkeypatch.setattr(permission, "GRANTED_S", 60.0)  # this one may be shared
    monkeypatch.setattr(batches, "FIRST_REPORT_S", 60.0)
    outcomes = world.build(*_orders(200))
    assert all(outcome.ok for outcome in outcomes)
    assert len(world.conductor.asked("may_proceed")) == 1 and len(world.conductor.permissions[0]) == 200
    assert world.conductor.asked("report_outcomes") == []


def test_batches_when_they_ask_at_the_same_time_then_they_share_a_call_and_each_gets_its_own_answers(
        tmp_path):
    conductor, calls, entered, gate = FakeConductorHost(), [], threading.Event(), threading.Event()

    def answer(host, asked):
        calls.append([one.server_uuid for one in asked])
        entered.set()
        assert gate.wait(10)
        return tuple(Permission(server_uuid=one.server_uuid, epoch=one.epoch, granted=one.epoch > 1) for one in asked)
    conductor.given(may_proceed=answer)
    ask = permission.shared_question(conductor, Host(HOST, tmp_path), patience_s=30.0)
    with futures.ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, questions("a"))
        assert entered.wait(10)
        others = [pool.submit(ask, questions(*uuids)) for uuids in (("b", "c"), ("d",), ())]
        wait_until(lambda: len(ask._queues[None].waiting) == 3)
        gate.set()
        answers = [[(one.server_uuid, one.granted) for one in asker.result(10)] for asker in (first, *others)]
    assert answers == [[("a", False)], [("b", False), ("c", True)], [("d", False)], []]
    assert [sorted(one) for one in calls] == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize(("error", "calls"), [(errors.Unavailable("nova-conductor does not answer"), 2),
                                              (errors.Invalid("one of them is wrong"), 4)])
def test_batches_when_the_call_that_they_share_fails_then_it_is_repeated_for_each_only_if_it_was_answered(
        error, calls, tmp_path):
    conductor, entered, gate = FakeConductorHost(), threading.Event(), threading.Event()

    def answer(host, asked):
        entered.set()
        assert gate.wait(10)
        raise error
    conductor.given(may_proceed=answer)
    ask = permission.shared_question(conductor, Host(HOST, tmp_path), patience_s=30.0)
    with futures.ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask, questions("a"))]
        assert entered.wait(10)
        asking += [pool.submit(ask, questions(uuid)) for uuid in ("b", "c")]
        wait_until(lambda: len(ask._queues[None].waiting) == 2)
        gate.set()
        assert [type(one.exception(10)) for one in asking] == [type(error)] * 3
    assert len(conductor.asked("may_proceed")) == calls


def questions(*uuids):
    """One for each server, at epochs 1, 2, ..."""
    return tuple(Permission(server_uuid=uuid, epoch=number) for number, uuid in enumerate(uuids, 1))


def test_build_when_the_limit_is_two_then_never_more_are_built_at_one_time(make_world):
    world = make_world(max_concurrent_builds=2).start()
    inside, most = [0], [0]
    create = world.driver.disks.create_disks

    def counted(order, images, parent):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.005)
        create(order, images, parent)
        inside[0] -= 1
    world.driver.disks.create_disks = counted
    assert all(outcome.ok for outcome in world.build(*_orders(12)))
    assert most[0] == 2


def test_snapshot_when_the_limit_is_one_then_the_next_waits_for_its_turn(make_world):
    world = make_world(max_concurrent_snapshots=1).start()
    built = _orders(5)
    world.build(*built)
    inside, most = [0], [0]
    take = world.driver.snapshots.take_snapshot

    def counted(order):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        inside[0] -= 1
        return take(order)
    world.driver.snapshots.take_snapshot = counted
    outcomes = world.service.snapshot_guests(HOST, tuple(
        SnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, image_id=new_uuid(),
                      fence=fence(2), build=order) for order in built))
    assert all(outcome.ok for outcome in outcomes) and most[0] == 1


def test_build_when_the_batch_is_slow_then_finished_guests_are_told_before_its_end(world, monkeypatch):
    monkeypatch.setattr(batches, "FIRST_REPORT_S", 0.1)  # the pace, not the mechanism, is too slow for a test
    orders = _orders(5, epoch=4)
    block = world.driver.knobs.block("start_new", name="vm5")
    build, results = beside(world.build, *orders)

    def reported() -> list[str]:
        return [outcome.server_uuid for _, outcomes in world.conductor.outcomes for outcome in outcomes]
    wait_until(lambda: len(reported()) >= 4)
    assert sorted(reported()) == sorted(order.server_uuid for order in orders[:4])
    assert world.conductor.outcomes[0][0] == (4,)
    block.release()
    build.join(5)
    assert len(results[0]) == 5


def test_build_when_the_early_report_is_lost_then_the_answer_has_it_all(world, monkeypatch):
    monkeypatch.setattr(batches, "FIRST_REPORT_S", 0.05)
    block = world.driver.knobs.block("start_new", name="vm2")
    build, results = beside(world.build, *_orders(2))
    assert block.reached.wait(5)
    world.conductor.away = True
    wait_until(lambda: world.conductor.asked("report_outcomes"))
    block.release()
    build.join(5)
    assert all(outcome.ok for outcome in results[0])


def test_build_when_the_same_call_comes_twice_then_both_get_the_one_result(world):
    orders = _orders(3)
    block = world.driver.knobs.block("create_disks")
    first, one = beside(world.build, *orders)
    assert block.reached.wait(5)
    second, two = beside(world.build, *orders)
    time.sleep(0.02)
    block.release()
    first.join(5)
    second.join(5)
    assert one[0] == two[0] and all(outcome.ok for outcome in one[0])
    assert [call for call, _ in world.driver.calls].count("create_disks") == 3


def test_build_when_permission_was_asked_long_ago_then_it_is_asked_again_for_the_rest(tmp_path, clock, caplog):
    caplog.set_level(logging.INFO)
    world = World(tmp_path, clock).start()
    block = world.driver.knobs.block("create_disks", name="vm2")
    build, _ = beside(world.build, *_orders(2))
    assert block.reached.wait(5)
    wait_until(lambda: "completed the order to build" in caplog.text)  # the other one
    clock.advance(seconds=6)
    block.release()
    build.join(5)
    assert [len(asked) for asked in world.conductor.permissions] == [2, 1]
    world.close()


def test_build_when_the_conductor_takes_one_permission_back_then_only_that_guest_stops(world):
    orders = _orders(3)
    world.conductor.overtaken.add(orders[1].server_uuid)
    assert [outcome.error_kind for outcome in world.build(*orders)] == ["", "overtaken", ""]


def test_destroy_start_stop_when_in_batches_then_each_asks_once(world):
    orders = _orders(10)
    world.build(*orders)
    for epoch, call, questions in ((2, world.service.stop_guests, 0), (3, world.service.start_guests, 1),
                                   (4, world.service.destroy_guests, 1)):
        world.conductor.forget()
        outcomes = call(HOST, tuple(guest_order(order, epoch) for order in orders))
        assert all(outcome.ok for outcome in outcomes) and len(world.conductor.permissions) == questions
    assert world.leftovers() == []


def test_batch_when_the_service_is_stopping_then_no_guest_is_taken_but_its_own_obey(world):
    order, new = build_order(), build_order()
    world.build(order)
    came = []

    def no_more(_seconds):  # between the last look and the end of the queue
        came.extend((*world.build(new), *world.service.stop_guests(HOST, (guest_order(order, 2),))))
        assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.SHUTDOWN
    assert world.service.stop(1.0, no_more) is True
    assert [(outcome.error_kind, outcome.error_code) for outcome in came] == [
        ("host_refused", "host.stopping"), ("", "")]


def test_batch_when_it_calls_the_conductor_then_under_the_callers_request_id(world):
    with context.entered(context.internal("req-1")):
        world.build(*_orders(3))
    assert [call.context.request_id for call in world.conductor.calls if call.name == "may_proceed"] == ["req-1"]


def test_batch_when_empty_then_no_outcome(world):
    assert world.build() == ()


def test_stop_when_the_guest_is_unknown_then_no_memory_is_kept_of_a_refused_order(world):
    outcome = world.service.start_guests(HOST, (guest_order(build_order(new_uuid()), 1),))[0]
    assert outcome.error_kind == "not_found" and not world.service._orders._running


def test_table_then_each_order_of_the_contract_has_one_row():
    orders = {name for name, method in ComputeRPC.methods.items()
              if method.arguments.__struct_fields__ == ("host", "orders")}
    rows = [kind.call.__name__ for kind in order_table.KINDS]
    assert sorted(rows) == sorted(orders) and len({kind.name for kind in order_table.KINDS}) == len(rows)
