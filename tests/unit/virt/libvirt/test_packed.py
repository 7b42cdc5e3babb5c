"""What a guest holds of its host, as it becomes XML; and what is refused instead."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.model.numa.topology import CellClaim, DeviceClaim, TopologyClaim
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.guest.numa_requirements import PROMISES
from nova.virt.libvirt.xml.domain import domain_xml
from tests.unit.virt.libvirt.orders import DISKS, FOLDER, abilities, able, facts, flavor, image, order, settings

GOLDEN = Path(__file__).parent / "golden"
FLOATING = facts(floating=(0, 8))


def cell(number: int = 0, **changes) -> CellClaim:
    return CellClaim(**{"id": number, "host_cell": number, "vcpus": (0, 1), "memory_mb": 512, "pins": {0: 3, 1: 11},
                        **changes})


def packing(*cells: CellClaim, **changes) -> TopologyClaim:
    return TopologyClaim(cells=cells or (cell(),), **changes)


def xml_of(packing_=None, host=FLOATING, specs=None, properties=None, **changes) -> str:
    made = order(packing=packing_, flavor=flavor(extra_specs=specs or {}, **changes), image=image(**(properties or {})))
    return domain_xml(guest_spec(made, DISKS[:1], FOLDER, host, settings()))


def tree_of(*args, **kwargs) -> ET.Element:
    return ET.fromstring(xml_of(*args, **kwargs))


def pins_of(tree: ET.Element) -> dict[str, str]:
    return {pin.get("vcpu"): pin.get("cpuset") for pin in tree.iterfind("cputune/vcpupin")}


TWO_CELLS = packing(
    cell(0, vcpus=(0, 1), memory_mb=1024, page_kb=2048, siblings=((0, 1),)),
    cell(1, vcpus=(2, 3), memory_mb=1024, page_kb=1048576, pins={2: 5, 3: 13}, siblings=((2, 3),)),
    locked=True, devices=(DeviceClaim(address="0000:81:10.2", request=0, alias="nic", kind="type-VF"),))
REALTIME = packing(
    cell(0, vcpus=(0, 1, 2, 3), memory_mb=512, pins={1: 3, 2: 11, 3: 2}, shared=(0, 8)), realtime=(1, 2),
    emulator="share")
GOLDENS = {"packed-numa-huge-pages.xml": {"packing_": TWO_CELLS, "vcpus": 4, "memory_mb": 2048},
           "packed-realtime-mixed.xml": {"packing_": REALTIME, "vcpus": 4}}


@pytest.mark.parametrize("name", GOLDENS)
def test_packed_guest_becomes_the_golden_xml(name):
    made = xml_of(**GOLDENS[name])
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        (GOLDEN / name).write_text(made)
    assert made == (GOLDEN / name).read_text()


def test_guest_that_holds_nothing_when_processors_are_set_apart_then_it_floats_on_the_shared_ones():
    assert tree_of().find("vcpu").get("cpuset") == "0,8"
    assert tree_of(host=facts()).find("vcpu").get("cpuset") is None


def test_pins_when_some_float_then_those_are_on_their_cells_shared_ones():
    made = tree_of(packing(cell(pins={0: 3}, shared=(0, 8))))
    assert pins_of(made) == {"0": "3", "1": "0,8"} and made.find("vcpu").get("cpuset") is None


@pytest.mark.parametrize(("emulator", "cells", "host", "expected"), [
    ("", [cell()], FLOATING, "3,11"), ("share", [cell()], FLOATING, "0,8"), ("share", [cell()], facts(), "3,11"),
    ("isolate", [cell(emulator=(7,))], FLOATING, "7")])
def test_emulator_threads_are_where_the_packing_says(emulator, cells, host, expected):
    made = tree_of(packing(*cells, emulator=emulator), host)
    assert made.find("cputune/emulatorpin").get("cpuset") == expected


def test_emulator_threads_of_a_realtime_guest_leave_its_realtime_processors_alone():
    made = tree_of(msgspec.structs.replace(REALTIME, emulator=""), vcpus=4)
    assert made.find("cputune/emulatorpin").get("cpuset") == "0,2,8"


def test_memory_when_pages_are_small_then_no_backing_is_named():
    made = tree_of(packing(cell(page_kb=4)))
    assert made.find("memoryBacking") is None and made.find("cpu/numa/cell").get("memAccess") is None
    assert tree_of(packing(cell(page_kb=64)), facts(page_kb=64)).find("memoryBacking") is None


def test_memory_when_the_guest_sees_no_nodes_then_it_is_bound_all_the_same():
    made = tree_of(packing(cell(page_kb=2048), numa=False))
    assert made.find("cpu/numa") is None and made.find("numatune/memnode") is None
    assert made.find("numatune/memory").attrib == {"mode": "strict", "nodeset": "0"}
    assert made.find("memoryBacking/hugepages/page").attrib == {"size": "2048", "unit": "KiB"}


def test_threads_when_processors_share_cores_then_the_guest_knows():
    made = tree_of(packing(cell(siblings=((0, 1),)))).find("cpu/topology")
    assert (made.get("sockets"), made.get("cores"), made.get("threads")) == ("1", "1", "2")
    asked = tree_of(packing(cell(siblings=((0, 1),))), specs={"hw:cpu_threads": "1"}).find("cpu/topology")
    assert asked.get("threads") == "1"


def test_device_when_it_is_not_managed_then_libvirt_leaves_it_alone():
    held = (DeviceClaim(address="0000:3b:00.0", request=0, managed=False),)
    device = tree_of(TopologyClaim(devices=held)).find("devices/hostdev")
    assert device.get("managed") == "no"
    assert device.find("source/address").attrib == {"domain": "0x0000", "bus": "0x3b", "slot": "0x00",
                                                    "function": "0x0"}


@pytest.mark.parametrize(("held", "why"), [
    (packing(cell(vcpus=(0,), pins={0: 1})), "1 processors"), (packing(cell(), cell(1)), "4 processors"),
    (packing(cell(memory_mb=256)), "256 MB"), (packing(cell(pins={5: 1})), "does not have"),
    (packing(realtime=(2,)), "does not have"),
    (TopologyClaim(devices=(DeviceClaim(address="0000:81:10.2", request=0, kind="vdpa"),)), "vdpa"),
    (TopologyClaim(devices=(DeviceClaim(address="0000:81:10.2", request=0, kind="type-VF", id="port"),)),
     "for a port")])
def test_packing_that_does_not_fit_its_flavor_is_refused(held, why):
    with pytest.raises(errors.host.BadPacking, match=why):
        xml_of(held)


# --- promises

ASKED = {"hw:cpu_policy": "dedicated", "hw_cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:mem_page_size": "large",
         "hw_mem_page_size": "2048", "hw:numa_nodes": "1", "hw_numa_nodes": "1", "hw:locked_memory": "yes",
         "hw_locked_memory": "true", "pci_passthrough:alias": "gpu:1"}
KEEPS_ALL = packing(cell(page_kb=2048), realtime=(1,), locked=True,
                    devices=(DeviceClaim(address="0000:3b:00.0", request=0),))


def test_every_promise_has_a_case():
    assert set(ASKED) == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
def test_promise_when_the_order_brings_no_place_then_it_is_refused_and_else_kept(name):
    asked = {"specs" if ":" in name else "properties": {name: ASKED[name]}}
    for held in (None, packing(cell(pins={}, shared=(0,)), numa=False)):
        with pytest.raises(errors.host.NoSuchGuest, match=name):
            xml_of(held, **asked)
    assert xml_of(KEEPS_ALL, **asked)


@pytest.mark.parametrize(("name", "value"), [("hw:cpu_policy", "shared"), ("hw_mem_page_size", "any"),
                                             ("hw:cpu_realtime", "no"), ("hw:locked_memory", "false")])
def test_promise_that_asks_for_nothing_is_no_hindrance(name, value):
    asked = {"specs" if ":" in name else "properties": {name: value}}
    assert xml_of(**asked) == xml_of()


def test_promise_of_the_image_when_the_flavor_says_otherwise_then_the_flavor_counts():
    assert xml_of(packing(), specs={"hw:cpu_policy": "dedicated"}, properties={"hw_cpu_policy": "shared"})
    with pytest.raises(errors.host.NoSuchGuest, match="hw:cpu_policy"):
        xml_of(packing(cell(pins={0: 3}, shared=(0,))), specs={"hw:cpu_policy": "dedicated"})


# --- encrypted memory

SEV = able(virt_type="kvm", abilities=lambda machine: abilities(machine, sev=True, sev_cbit=47, sev_reduced_bits=1))
SEV_ES = able(virt_type="kvm", abilities=lambda machine: abilities(machine, sev=True, sev_es_guests=9, sev_cbit=51))
UEFI = {"hw_firmware_type": "uefi", "hw_machine_type": "q35", "hw_mem_encryption": "yes"}


def test_encryption_when_the_host_has_it_then_the_guest_gets_it():
    made = tree_of(host=SEV, properties=UEFI)
    security = made.find("launchSecurity")
    assert security.get("type") == "sev" and security.findtext("policy") == "0x0033"
    assert (security.findtext("cbitpos"), security.findtext("reducedPhysBits")) == ("47", "1")
    assert made.find("memoryBacking/locked") is not None
    for where in ("disk", "interface", "rng", "memballoon"):
        assert made.find(f"devices/{where}/driver").get("iommu") == "on", where


def test_encryption_of_registers_when_the_host_has_it_then_the_policy_says_so():
    made = tree_of(host=SEV_ES, properties={**UEFI, "hw_mem_encryption_model": "amd-sev-es"})
    assert made.findtext("launchSecurity/policy") == "0x0037"


@pytest.mark.parametrize(("host", "properties", "why"), [
    (able(virt_type="kvm"), UEFI, "AMD SEV"), (SEV, {"hw_mem_encryption": "yes"}, "UEFI"),
    (SEV, {**UEFI, "hw_mem_encryption_model": "amd-sev-es"}, "SEV-ES"),
    (SEV, {**UEFI, "hw_mem_encryption_model": "amd-sev-snp"}, "amd-sev-snp")])
def test_encryption_when_something_is_missing_then_it_is_named(host, properties, why):
    with pytest.raises(errors.host.NoSuchGuest, match=why):
        xml_of(host=host, properties=properties)


def test_encryption_when_it_is_not_asked_for_then_nothing_changes():
    assert "launchSecurity" not in xml_of(host=SEV, properties={"hw_mem_encryption": "no"})
