"""The fake driver: guests in memory and files, power events, nodes, knobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nova import errors
from nova.conf import fake as fake_options
from nova.devel.fake import FakeDriver, driver, knobs
from nova.model.base import utcnow
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, beside, build_order, options, wait_until

ROOT = Path(__file__).parents[4]


MADE: list[FakeDriver] = []


def make(state_path=None, **settings) -> FakeDriver:
    made = FakeDriver(options(fake_options, **settings), HOST, state_path)
    made.connect()
    MADE.append(made)
    return made


@pytest.fixture(autouse=True)
def closed():
    yield
    while MADE:
        MADE.pop().close()


def boot(fake: FakeDriver, **fields):
    order = build_order(**fields)
    fake.disks.create_disks(order, None)
    fake.interfaces.plug(order)
    fake.lifecycle.start_new(order)
    return order


def write_rules(state_path: Path, *rules: dict) -> None:
    fresh = state_path / "fake-knobs.json.new"
    fresh.write_text(json.dumps({"rules": rules}))
    fresh.rename(state_path / knobs.FILE)


# --- guests


def test_guests_when_the_process_ends_then_they_run_on_in_files(tmp_path):
    order = boot(make(tmp_path))
    again = make(tmp_path)
    assert again.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
    assert order.instance_name in again.consoles.console_output(order.server_uuid, None)
    assert again.nodes()[0].memory_mb_used == order.flavor.memory_mb


def test_guests_when_state_is_not_kept_then_no_file_is_written(tmp_path):
    order = boot(make(tmp_path, keep_state=False))
    assert not (tmp_path / "fake").exists() and make(tmp_path).lifecycle.power_state(order.server_uuid) is None


def test_guests_when_a_file_is_damaged_then_the_others_are_found(tmp_path, caplog):
    order = boot(make(tmp_path))
    (tmp_path / "fake" / "guests" / "x.json").write_text("{")
    assert [guest.server_uuid for guest in make(tmp_path).guests()] == [order.server_uuid]
    assert "damaged" in caplog.text


def test_guests_when_all_is_undone_then_no_file_is_left(tmp_path):
    fake = make(tmp_path)
    order = boot(fake)
    fake.lifecycle.destroy(order.server_uuid)
    assert fake.lifecycle.power_state(order.server_uuid) is None and len(fake.guests()) == 1
    fake.interfaces.unplug(order.server_uuid, None)
    fake.disks.remove_disks(order.server_uuid)
    assert not fake.guests() and not list((tmp_path / "fake" / "guests").iterdir())


def test_guests_when_built_by_hundreds_then_it_is_cheap(tmp_path):
    fake = make(tmp_path)
    started = time.process_time()
    for number in range(200):
        boot(fake, number=number)
    assert time.process_time() - started < 1.0


def test_power_events_when_guests_change_then_the_listener_hears_each_change(tmp_path):
    fake, heard = make(), []
    fake.on_power_change(lambda state: heard.append(state.power_state))
    order = boot(fake)
    fake.lifecycle.start(order.server_uuid)
    fake.lifecycle.shut_down(order.server_uuid, 60)
    fake.lifecycle.shut_down(order.server_uuid, 60)
    fake.lifecycle.start(order.server_uuid)
    fake.hypervisor.change_power(order.server_uuid, PowerState.CRASHED)
    fake.lifecycle.start(order.server_uuid)
    fake.lifecycle.destroy(order.server_uuid)
    fake.lifecycle.destroy(order.server_uuid)
    assert heard == [1, 4, 1, 6, 1, 4]


def test_nodes_when_several_then_each_counts_its_own_guests_and_keeps_its_uuid():
    fake = make(nodes=3, vcpus=8)
    boot(fake, node="compute1-2")
    nodes = fake.nodes()
    assert [node.name for node in nodes] == ["compute1-1", "compute1-2", "compute1-3"]
    assert [node.memory_mb_used for node in nodes] == [0, 512, 0]
    assert [node.local_gb_used for node in nodes] == [0, 1, 0] and nodes[0].vcpus == 8
    assert [node.uuid for node in nodes] == [node.uuid for node in make(nodes=3).nodes()]
    assert len({node.uuid for node in nodes} | {make().nodes()[0].uuid}) == 4


def test_boot_when_a_delay_is_set_then_starting_takes_that_long():
    fake = make(boot_delay=0.05)
    started = time.monotonic()
    boot(fake)
    assert time.monotonic() - started >= 0.05


def test_password_when_a_delay_is_set_then_changing_it_takes_that_long():
    fake = make(boot_delay=0.05)
    server = boot(fake).server_uuid
    started = time.monotonic()
    fake.agent.set_password(server, "root", "a word")
    assert time.monotonic() - started >= 0.05


def test_capabilities_when_asked_then_consoles_and_uptime():
    fake = make()
    assert fake.consoles is not None
    assert fake.host_uptime.uptime().load == (0.0, 0.0, 0.0) and fake.host_uptime.uptime().booted_at <= utcnow()


# --- knobs within the process


def test_fail_next_when_used_up_then_the_call_works_again():
    fake = make()
    fake.knobs.fail_next("start_new", error="host_refused")
    fake.knobs.fail_next("start_new", error="host_refused")
    order = build_order()
    fake.disks.create_disks(order, None)
    for _ in range(2):
        with pytest.raises(errors.HostRefused):
            fake.lifecycle.start_new(order)
    assert fake.lifecycle.start_new(order) == PowerState.RUNNING


@pytest.mark.parametrize(("when", "left"), [("before", None), ("after", PowerState.RUNNING)])
def test_fail_next_when_before_or_after_then_the_work_is_not_or_is_done(when, left):
    fake = make()
    fake.knobs.fail_next("start_new", when=when)
    with pytest.raises(errors.Bug):
        boot(fake, server_uuid="6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11")
    assert fake.lifecycle.power_state("6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11") == left


def test_fail_next_when_a_name_is_given_then_only_matching_servers_fail():
    fake = make()
    fake.knobs.fail_next("destroy", name="bad-*")
    good, bad = boot(fake, name="good-1"), boot(fake, name="bad-1")
    fake.lifecycle.destroy(good.server_uuid)
    with pytest.raises(errors.Bug):
        fake.lifecycle.destroy(bad.server_uuid)


def test_block_when_released_then_the_call_goes_on():
    fake = make()
    block = fake.knobs.block("start_new")
    thread, results = beside(boot, fake)
    assert block.reached.wait(5) and not results
    block.release()
    thread.join(5)
    assert results


# --- knobs from outside


def test_file_when_rules_come_and_go_then_each_call_sees_them(tmp_path):
    fake = make(tmp_path)
    rule = {"call": "create_disks", "kind": "host_refused", "message": "no luck", "times": 1}
    for _ in range(2):  # a rule that left and came back counts anew
        write_rules(tmp_path, rule)
        with pytest.raises(errors.HostRefused, match="no luck"):
            boot(fake)
        boot(fake)
        write_rules(tmp_path)
        boot(fake)


def test_file_when_it_is_not_valid_then_the_rules_before_it_stay(tmp_path, caplog):
    fake = make(tmp_path)
    write_rules(tmp_path, {"call": "plug"})
    with pytest.raises(errors.Bug):
        boot(fake)
    (tmp_path / knobs.FILE).write_text('{"rules": [{"call')
    with pytest.raises(errors.Bug):
        boot(fake)
    assert "is not valid" in caplog.text


def test_file_when_it_blocks_then_a_sign_shows_it_until_the_rule_goes(tmp_path):
    fake = make(tmp_path)
    write_rules(tmp_path, {"call": "start_new", "do": "block", "name": "vm1"})
    thread, results = beside(boot, fake)
    wait_until(lambda: list((tmp_path / "fake" / "blocked").glob("start_new.*")))
    (tmp_path / knobs.FILE).unlink()
    thread.join(5)
    assert results and not list((tmp_path / "fake" / "blocked").iterdir())


def test_file_when_it_changes_the_power_then_the_listener_hears_it_once(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "WATCH_S", 0.02)
    fake, heard = make(tmp_path), []
    boot(fake, name="vm1")
    fake.on_power_change(lambda state: heard.append(state.power_state))
    write_rules(tmp_path, {"call": "*", "do": "power", "name": "vm1", "power_state": 4})
    wait_until(lambda: heard)
    time.sleep(0.06)
    assert heard == [4]
    fake.close()


DIES = """
import sys
from pathlib import Path
from tests.unit.devel.fake.test_fake_virt import boot, make
boot(make(Path(sys.argv[1])), server_uuid="6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11")
print("survived")
"""


@pytest.mark.parametrize(("when", "disks"), [("before", []), ("after", ["root"])])
def test_file_when_it_says_die_then_the_process_is_killed_and_its_guests_are_as_they_were(tmp_path, when, disks):
    write_rules(tmp_path, {"call": "create_disks", "do": "die", "when": when})
    ended = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    guest = make(tmp_path).hypervisor.inspect("6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11")
    assert (guest.disks if guest else []) == disks


def test_driver_when_used_from_many_threads_then_no_guest_is_lost(tmp_path):
    fake = make(tmp_path)
    threads = [threading.Thread(target=lambda: [boot(fake) for _ in range(10)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.guests()) == 80 == len(make(tmp_path).guests())
