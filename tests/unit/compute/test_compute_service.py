"""The service's life: identity, registration, debts, and the calls about the host itself."""

from __future__ import annotations

import logging
import stat
import uuid

import pytest

from nova import errors
from nova.compute import service
from nova.compute.reports import host_info as questions
from nova.compute.reports import identity
from nova.model.host.services import Alive, PendingCleanup
from nova.model.server.states import PowerState
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.server import check_signatures
from tests.fakes.compute import HOST, World, beside, build_order, guest_order, new_uuid, wait_until


def test_service_when_compared_with_the_contract_then_it_keeps_it(world):
    check_signatures(ComputeRPC, world.service)


def test_start_when_first_then_an_id_is_made_that_only_we_can_read(world):
    path = world.state_path / "host_id"
    assert uuid.UUID(path.read_text().strip()) == uuid.UUID(world.service.host_id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    registration = world.conductor.registrations[0]
    assert (registration.host, registration.host_id, registration.binary, registration.topic) == (
        HOST, world.service.host_id, "nova-compute", "compute")


def test_start_when_again_then_the_id_is_the_same(world):
    first = world.service.host_id
    assert world.restart().service.host_id == first


@pytest.mark.parametrize("content", [b"", b"not an id\n", b"\xff\xfe\0"])
def test_start_when_the_id_file_is_damaged_then_it_refuses_with_the_cure(tmp_path, content):
    (tmp_path / "host_id").write_bytes(content)
    world = World(tmp_path)
    with pytest.raises(errors.host.DamagedId, match="restore it from a backup"):
        world.start()
    assert world.conductor.registrations == []


def test_start_when_killed_while_the_id_was_written_then_a_new_one_is_made(tmp_path):
    (tmp_path / ".host_id.new").write_text("8f")
    assert uuid.UUID(identity.host_id(tmp_path))


def test_start_when_another_daemon_has_the_folder_then_it_refuses(world):
    with pytest.raises(errors.host.TwoDaemons, match="stop it"):
        World(world.state_path).start()


def test_start_when_the_conductor_knows_another_id_by_this_name_then_its_cure_is_told(tmp_path):
    world = World(tmp_path)
    world.conductor.given(register=errors.Conflict("run nova-manage host forget compute1."))
    with pytest.raises(errors.host.Refused, match="nova-manage host forget"):
        world.start()


def test_start_when_the_conductor_is_away_then_it_waits_says_so_and_goes_on(tmp_path, monkeypatch, caplog):
    world = World(tmp_path)
    monkeypatch.setattr(service.random, "uniform", lambda low, high: 0.01)  # so that the test need not wait a second
    world.conductor.away = True
    thread, _ = beside(world.start)
    wait_until(lambda: len(world.conductor.asked("register")) > 2)
    world.conductor.away = False
    thread.join(5)
    assert not thread.is_alive() and world.conductor.inventories
    assert "cannot register with the conductor yet" in caplog.text
    world.close()


def test_start_when_told_to_stop_while_it_waits_then_it_ends(tmp_path):
    world = World(tmp_path)
    world.conductor.away = True
    thread, results = beside(world.service.start)
    wait_until(lambda: world.conductor.calls)
    world.service.stop(0.0)
    thread.join(5)
    assert results == [None]


def test_start_when_ready_then_the_host_has_sent_what_it_has(world):
    (inventory,) = world.conductor.inventories
    assert inventory.host_id == world.service.host_id and inventory.nodes[0].reserved_memory_mb == 512


# --- debts


def _cleanup(order, epoch: int, **fields) -> PendingCleanup:
    return PendingCleanup(**({"id": 1, "host": HOST, "server_uuid": order.server_uuid, "epoch": epoch,
                              "step": "destroy_guests"} | fields))


def test_start_when_a_destroy_is_pending_then_it_is_done_without_asking_and_told(world):
    order = build_order()
    world.build(order)
    world.conductor.forget()
    world.conductor.cleanups = (_cleanup(order, 2),)
    world.restart()
    assert world.leftovers() == [] and world.conductor.paid == [1] and not world.conductor.permissions
    assert world.build(order)[0].error_kind == "overtaken" or world.build(order)[0].error_code == "order.closed"


def test_start_when_the_guest_was_built_anew_since_then_the_cleanup_takes_nothing(world):
    order = build_order(epoch=6)
    world.build(order)
    world.conductor.cleanups = (_cleanup(order, 5),)
    world.restart()
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING and world.conductor.paid == [1]


def test_start_when_a_late_order_raised_the_epoch_then_the_cleanup_is_done_all_the_same(world):
    order = build_order(epoch=1)
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 9),))
    world.conductor.cleanups = (_cleanup(order, 2),)
    world.restart()
    assert world.leftovers() == [] and world.conductor.paid == [1]


@pytest.mark.parametrize("cleanup", [{"step": "dance"}, {"server_uuid": "../x"}])
def test_start_when_a_cleanup_cannot_be_done_then_it_is_logged_and_the_others_are(world, caplog, cleanup):
    order = build_order()
    world.build(order)
    world.conductor.cleanups = (_cleanup(order, 2, id=7, **cleanup), _cleanup(order, 2, id=8))
    world.restart()
    assert world.conductor.paid == [8] and "cleanup 7" in caplog.text


def test_do_when_a_cleanup_failed_then_it_is_tried_again_and_told_once(world):
    order = build_order()
    world.build(order)
    cleanups = world.service._cleanups
    cleanups.take((_cleanup(order, 2),))
    world.driver.knobs.fail_next("remove_disks")
    assert cleanups.do_open() == 1
    assert cleanups.do_open() == 0 and cleanups.do_open() == 0
    assert world.conductor.paid == [1] and world.leftovers() == []


def test_pay_when_only_telling_failed_then_the_work_is_not_done_again(world):
    order = build_order()
    world.build(order)
    cleanups = world.service._cleanups
    cleanups.take((_cleanup(order, 2),))
    world.conductor.away = True
    assert cleanups.do_open() == 1
    world.conductor.away = False
    world.driver.calls.clear()
    assert cleanups.do_open() == 0 and not world.driver.calls


@pytest.mark.parametrize("tell", [lambda service: service.on_heartbeat(Alive(cleanups_pending=True)),
                                  lambda service: service.look_for_debts("host1")], ids=["answered", "told"])
def test_cleanups_when_they_were_made_while_the_daemon_ran_then_word_of_them_makes_it_ask(tmp_path, clock, tell):
    world = World(tmp_path, clock).start()
    order = build_order()
    world.build(order)
    world.conductor.cleanups = (_cleanup(order, 2),)
    clock.advance(seconds=service.ASK_FOR_CLEANUPS_S)
    world.service._periodic.run_due()
    assert world.conductor.paid == []  # nobody said so yet
    tell(world.service)
    clock.advance(seconds=2 * service.ASK_FOR_CLEANUPS_S)
    world.service._periodic.run_due()
    wait_until(lambda: world.conductor.paid == [1])
    assert world.leftovers() == []
    world.close()


# --- heartbeats' answers, and calls about the host


def test_heard_when_the_conductor_forgot_this_host_then_everything_is_told_again(world):
    order = build_order()
    world.build(order)
    assert world.service.on_heartbeat(Alive()) is None
    world.conductor.cleanups = (_cleanup(order, 2),)
    assert world.service.on_heartbeat(Alive(known=False)) is not None
    assert len(world.conductor.registrations) == 2 and len(world.conductor.inventories) == 2
    assert world.conductor.paid == [1]
    assert world.conductor.inventories[1].version > world.conductor.inventories[0].version


def test_console_when_lines_are_asked_for_then_the_last_ones_come(world):
    order = build_order()
    world.build(order)
    whole = world.service.get_console_output(HOST, order.server_uuid, None).text
    assert order.instance_name in whole
    assert world.service.get_console_output(HOST, order.server_uuid, 1).text == whole.splitlines()[-1]


def test_console_when_the_log_is_huge_then_its_end_comes(world):
    order = build_order()
    world.build(order)
    world.driver.hypervisor.inspect(order.server_uuid).say("ü" * 200_000)
    text = world.service.get_console_output(HOST, order.server_uuid, None).text
    assert 50_000 < len(text.encode()) <= questions.CONSOLE_BYTES and set(text.strip()) == {"ü"}


def test_console_when_there_is_no_such_guest_then_not_found(world):
    with pytest.raises(errors.NotFound):
        world.service.get_console_output(HOST, new_uuid(), None)
    with pytest.raises(errors.Invalid):
        world.service.get_console_output(HOST, "../../etc/passwd", None)


def test_diagnostics_are_the_drivers(world):
    order = build_order()
    world.build(order)
    reported = world.service.get_diagnostics(HOST, order.server_uuid)
    assert reported.power_state == PowerState.RUNNING and len(reported.cpus) == order.flavor.vcpus
    world.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert world.service.get_diagnostics(HOST, order.server_uuid).power_state == PowerState.SHUTDOWN
    with pytest.raises(errors.NotFound):
        world.service.get_diagnostics(HOST, new_uuid())
    with pytest.raises(errors.Invalid):
        world.service.get_diagnostics(HOST, "../../etc/passwd")
    with pytest.raises(errors.HostRefused):
        world.service.get_diagnostics("compute2", order.server_uuid)


def test_calls_when_meant_for_another_host_then_refused(world):
    with pytest.raises(errors.HostRefused):
        world.service.build_guests("compute2", (build_order(),))
    assert world.service.ping(HOST) == HOST and "load average" in world.service.get_host_uptime(HOST)


def test_console_and_uptime_when_the_driver_has_none_then_it_says_so(world):
    order = build_order()
    world.build(order)
    world.driver.consoles = world.driver.host_uptime = world.driver.diagnosis = None
    service = world.service
    with pytest.raises(errors.Conflict):
        service.get_console_output(HOST, order.server_uuid, None)
    with pytest.raises(errors.NotSupported):
        service.get_host_uptime(HOST)
    with pytest.raises(errors.NotSupported):
        service.get_diagnostics(HOST, order.server_uuid)


def test_logs_when_a_guest_is_built_then_no_secret_is_in_them(world, caplog):
    caplog.set_level(logging.DEBUG)
    world.driver.knobs.fail_next("plug")
    world.build(build_order(admin_password="s3cr3t-password", user_data="c2VjcmV0LWRhdGE="), build_order())
    assert "s3cr3t-password" not in caplog.text and "c2VjcmV0LWRhdGE=" not in caplog.text


