"""A volume of a running guest that becomes another one, as libvirt is told of it; and what goes wrong."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import msgspec
import pytest

from nova import errors
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeConnection
from nova.virt.libvirt.guest import volume_jobs
from nova.virt.libvirt.xml import disks as disk_xml
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.contract.driver_volume_cases import attach, of_file, swap_order
from tests.fakes.clocks import QuickClock
from tests.unit.virt.libvirt.test_libvirt_driver import Rig

RUNNING = PowerState.RUNNING


@pytest.fixture
def quick(tmp_path, links):
    made = Rig(tmp_path, links, clock=QuickClock())
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def guest(quick):
    order = make_order(quick.bridge)
    build(quick, order)
    yield order
    quick.driver.lifecycle.destroy(order.server_uuid)
    quick.driver.volumes.disconnect(order.server_uuid)
    unbuild(quick, order)
    assert quick.left_over(order) == []


@pytest.fixture
def ready(quick, guest, tmp_path):
    """(order of a swap, the old file, the new one)."""
    one, other = of_file(tmp_path / "old"), of_file(tmp_path / "new")
    attach(quick.driver, guest, one)
    return swap_order(guest, one, other), str(tmp_path / "old"), str(tmp_path / "new")


def sources(rig, order):
    """What the guest's disk lies on: as it runs, as it starts next, and as this host has it connected."""
    uuid, volume_id = order.server_uuid, order.disk.device.volume_id
    found = [disk_xml.source_of(disk_xml.find(text, volume_id))
             for text in rig.driver.tools.hypervisor.definitions_of(uuid)]
    return [*found, *(one.path for one in rig.driver.tools.folders.of(uuid).volumes())]


def test_swap_then_guest_definition_and_record_have_the_new_one_by_the_old_name(quick, ready):
    order, _old, new = ready
    before = disk_xml.find(quick.driver.tools.hypervisor.definition(order.server_uuid), order.disk.device.volume_id)
    assert quick.driver.volumes.swap_volume(order, lambda: False) == RUNNING
    assert sources(quick, order) == [new, new, new]
    after = disk_xml.find(quick.driver.tools.hypervisor.definition(order.server_uuid), order.disk.device.volume_id)
    assert disk_xml.target_of(after) == disk_xml.target_of(before) and after.findtext("serial") == before.findtext(
        "serial")
    [record] = quick.driver.tools.folders.of(order.server_uuid).volumes()
    assert record.target == disk_xml.target_of(after)


def test_copy_when_it_is_begun_then_libvirt_is_told_of_no_more_than_where_it_goes(quick, ready):
    order, _old, new = ready
    told = []
    real = quick.driver.tools.hypervisor.begin_block_copy
    quick.driver.tools.hypervisor.begin_block_copy = lambda *args: (told.append(args), real(*args))
    quick.driver.volumes.swap_volume(order, lambda: False)
    [(_uuid, target, text)] = told
    disk = ET.fromstring(text)
    assert target == "vdd" and [one.tag for one in disk] == ["driver", "source"]
    assert disk.find("source").get("file") == new and disk.find("driver").get("type") == "raw"


@pytest.mark.parametrize("way", ["refused", "stopped", "stalled", "odd"])
def test_swap_when_the_copy_comes_to_nothing_then_the_guest_has_the_old_one_and_nothing_is_left(quick, ready, way):
    order, old, _new = ready
    hypervisor = quick.driver.tools.hypervisor
    if way == "refused":
        hypervisor.block_fails = "Source and target image have different sizes"
    elif way == "odd":
        order = msgspec.structs.replace(order, successor=msgspec.structs.replace(
            order.successor, connection=VolumeConnection(kind="pigeon")))
    else:
        hypervisor.block_hangs = True
    with pytest.raises(errors.NovaError) as refused:
        quick.driver.volumes.swap_volume(order, lambda: way == "stopped")
    expected = {"refused": "different sizes", "odd": "pigeon", "stopped": "newer order", "stalled": "made no progress"}
    assert expected[way] in refused.value.message
    assert sources(quick, order) == [old, old, old] and not hypervisor.block_jobs
    hypervisor.block_hangs = False


def test_swap_when_the_process_died_in_the_copy_then_its_repetition_begins_it_anew(quick, ready):
    order, _old, new = ready
    hypervisor = quick.driver.tools.hypervisor
    hypervisor.block_hangs = True
    hypervisor.begin_block_copy(order.server_uuid, "vdd", "<disk/>")
    hypervisor.block_hangs = False
    assert quick.driver.volumes.swap_volume(order, lambda: False) == RUNNING
    assert sources(quick, order) == [new, new, new]


@pytest.mark.parametrize("call", ["swap", "unswap"])
def test_swap_when_the_process_died_after_the_guest_went_over_then_the_rest_is_done(quick, ready, call, monkeypatch):
    order, _old, new = ready
    volumes = quick.driver.volumes
    with monkeypatch.context() as patch:
        patch.setattr(type(volumes.connections), "replace", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            volumes.swap_volume(order, lambda: False)
    if call == "swap":
        volumes.swap_volume(order, lambda: False)
    else:
        with pytest.raises(errors.guest.HasSuccessor):
            volumes.unswap_volume(order)
    assert sources(quick, order) == [new, new, new]


def test_wait_when_a_job_gets_on_slowly_then_it_is_not_given_up(quick, ready):
    order, _old, _new = ready
    steps = iter([volume_jobs.BlockJob(done, 3) for done in (0, 1, 2, 3)])
    quick.driver.tools.hypervisor.block_job = lambda *args: next(steps)
    jobs = volume_jobs.DiskJobs(hypervisor=quick.driver.tools.hypervisor, clock=quick.driver.tools.clock)
    assert jobs.wait(order.server_uuid, "vdd", lambda job: job.done_bytes == job.end_bytes).done_bytes == 3
