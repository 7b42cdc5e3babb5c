"""Pause, suspend, agents, rebuild: on a fake hypervisor, with real files and real image tools."""

from __future__ import annotations

import json
import os

import pytest

from nova import errors
from nova.virt import interface
from nova.virt.libvirt import LibvirtDriver
from tests.contract.driver_conformance import build
from tests.unit.virt.libvirt.acting import (
    AGENT,
    PAUSED,
    RUNNING,
    SHUTDOWN,
    folder,
    tools,
    with_properties,
)
from tests.unit.virt.libvirt.orders import settings

pytestmark = [pytest.mark.one_in(2), tools]


def test_driver_when_its_disks_are_files_then_it_has_all_parts_but_those_of_ceph_and_power_over_its_host(rig):
    assert {name for name in interface.Driver.__annotations__ if getattr(rig.driver, name) is None} == {
        "host_power", "image_clones", "direct_snapshots"}



def test_pause_and_unpause_are_repeated_without_harm(rig, order):
    assert [rig.driver.pausing.pause(order.server_uuid) for _ in range(2)] == [PAUSED, PAUSED]
    assert [rig.driver.pausing.unpause(order.server_uuid) for _ in range(2)] == [RUNNING, RUNNING]


@pytest.mark.parametrize("call", ["pause", "unpause", "crash", "suspend"])
def test_guest_that_is_off_is_a_conflict_and_an_unknown_one_not_found(rig, order, call):
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    with pytest.raises(errors.Conflict):
        getattr(rig.driver.pausing, call)(order.server_uuid)
    with pytest.raises(errors.NotFound):
        getattr(rig.driver.pausing, call)("b5d7b0c5-6a3e-4b86-8f14-8b1d0a8e4c11")


def test_paused_guest_is_powered_off_without_waiting(rig, order):
    rig.driver.pausing.pause(order.server_uuid)
    assert rig.driver.lifecycle.shut_down(order.server_uuid, 60) == SHUTDOWN
    assert rig.hypervisor.asked == []


def test_crash_interrupts_the_guest(rig, order):
    rig.driver.crash_dumps.crash(order.server_uuid)
    assert rig.hypervisor.interrupted == [order.server_uuid]


# --- suspend

def test_suspended_guest_is_off_and_goes_on(rig, order, links):
    assert [rig.driver.suspending.suspend(order.server_uuid) for _ in range(2)] == [SHUTDOWN, SHUTDOWN]
    links.devices.clear()  # the host was rebooted
    assert [rig.driver.suspending.resume(order) for _ in range(2)] == [RUNNING, RUNNING]
    assert links.devices == {"br100"} and order.server_uuid not in rig.hypervisor.saved


def test_resume_of_a_guest_whose_saved_memory_is_broken_or_gone_starts_it_with_a_warning(rig, order, caplog):
    rig.driver.suspending.suspend(order.server_uuid)
    rig.hypervisor.saved_broken = True
    assert rig.driver.suspending.resume(order) == RUNNING and rig.hypervisor.saved == set()
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert rig.driver.suspending.resume(order) == RUNNING
    assert len([one for one in caplog.records if "booting it" in one.message]) == 2


def test_resume_that_fails_for_another_reason_keeps_the_saved_memory(rig, order):
    rig.driver.suspending.suspend(order.server_uuid)
    rig.hypervisor.refuse = "Cannot allocate memory"
    with pytest.raises(errors.HostRefused):
        rig.driver.suspending.resume(order)
    assert rig.hypervisor.saved == {order.server_uuid}


def test_resume_of_a_guest_that_is_not_defined_any_more_defines_it(rig, order):
    rig.driver.suspending.suspend(order.server_uuid)
    rig.driver.lifecycle.destroy(order.server_uuid)
    assert rig.driver.suspending.resume(order) == RUNNING


def test_start_from_scratch_does_not_go_on_from_saved_memory(rig, order):
    rig.driver.suspending.suspend(order.server_uuid)
    assert rig.driver.lifecycle.start_new(order) == RUNNING
    assert rig.hypervisor.saved == set()


# --- agent

@pytest.mark.parametrize(("properties", "user", "meant"), [
    ({}, "root", "root"), ({"os_type": "windows"}, "root", "Administrator"),
    ({"os_admin_user": "boss", "os_type": "windows"}, "root", "boss"), ({"os_admin_user": "boss"}, "other", "other")])
def test_password_is_set_for_the_user_that_the_image_names(rig, properties, user, meant):
    order = with_properties(rig, **AGENT, **properties)
    rig.driver.agent.set_password(order.server_uuid, user, "secret")
    assert rig.hypervisor.passwords[order.server_uuid] == (meant, "secret")


def test_password_without_an_agent_is_a_conflict_that_says_what_is_missing(rig, order):
    with pytest.raises(errors.Conflict, match="hw_qemu_guest_agent"):
        rig.driver.agent.set_password(order.server_uuid, "root", "secret")
    silent = with_properties(rig, **AGENT)
    rig.hypervisor.agent = False
    with pytest.raises(errors.Conflict, match="does not answer"):
        rig.driver.agent.set_password(silent.server_uuid, "root", "secret")
    rig.driver.lifecycle.shut_down(silent.server_uuid, 0)
    with pytest.raises(errors.Conflict, match="is not running"):
        rig.driver.agent.set_password(silent.server_uuid, "root", "secret")


# --- rebuild

def test_disks_that_are_to_stay_are_not_touched_and_the_others_are_new(rig, order):
    kept = {name: (folder(rig, order) / name).stat().st_ino for name in ("disk.eph0", "disk.swap")}
    with (folder(rig, order) / "disk").open("rb") as root:  # held open, so that its number is nobody else's
        rig.driver.lifecycle.destroy(order.server_uuid)
        rig.driver.disks.remove_disks(order.server_uuid, frozenset({"ephemeral", "swap"}))
        left = {path.name for path in folder(rig, order).iterdir()}
        assert {"disk.eph0", "disk.swap", "order.json", "plugged.json"} <= left
        assert not left & {"disk", "disk.config", "console.log"}
        assert build(rig, order) == RUNNING
        assert {name: (folder(rig, order) / name).stat().st_ino for name in kept} == kept
        assert (folder(rig, order) / "disk").stat().st_ino != os.fstat(root.fileno()).st_ino


def test_disk_that_stays_keeps_its_format_whatever_the_settings_say_now(tmp_path, links, rig, order):
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.disks.remove_disks(order.server_uuid, frozenset({"ephemeral"}))
    raw = LibvirtDriver(settings(tmp_path, cow=False), rig.hypervisor)
    raw.disks.create_disks(order, rig.images)
    raw.lifecycle.start_new(order)
    formats = {disk["name"]: disk["format"] for disk in json.loads((folder(rig, order) / "disks.json").read_text())}
    assert formats == {"disk": "raw", "disk.eph0": "qcow2", "disk.swap": "raw"}


def test_nothing_is_kept_of_a_guest_that_is_not_there(rig):
    rig.driver.disks.remove_disks("b5d7b0c5-6a3e-4b86-8f14-8b1d0a8e4c11", frozenset({"ephemeral"}))
