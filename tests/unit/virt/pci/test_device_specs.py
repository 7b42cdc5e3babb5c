"""Which devices are given to guests, and as which providers they are reported."""

from __future__ import annotations

import json
import uuid

import pytest

from nova import errors
from nova.model.placement.traits import is_resource_class, is_trait
from nova.virt.libvirt.xml.nodedevs import node_devices
from nova.virt.pci import providers, specs

NODE = "6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11"


def pci(address: str, vendor: str, product: str, numa: int | None = None, more: str = "") -> str:
    domain, bus, slot, function = (int(part, 16) for part in address.replace(".", ":").split(":"))
    cell = f"<numa node='{numa}'/>" if numa is not None else ""
    return f"""<device><name>pci_{address.replace(':', '_').replace('.', '_')}</name><parent>pci_0000_80_02_0</parent>
      <capability type='pci'><class>0x020000</class><domain>{domain}</domain><bus>{bus}</bus><slot>{slot}</slot>
      <function>{function}</function><product id='0x{product}'>A device</product>
      <vendor id='0x{vendor}'>Somebody</vendor>{more}{cell}<iommuGroup number='37'/></capability></device>"""


def function_of(address: str) -> str:
    domain, bus, slot, function = address.replace(".", ":").split(":")
    return (f"<capability type='phys_function'><address domain='0x{domain}' bus='0x{bus}' slot='0x{slot}' "
            f"function='0x{function}'/></capability>")


FUNCTIONS = "<capability type='virt_functions' maxCount='63'/>"
PF = "0000:81:00.0"
HOST = (
    pci("0000:00:1f.0", "8086", "a1c1"),
    pci("0000:3b:00.0", "10de", "1db4", numa=0), pci("0000:af:00.0", "10de", "1db4", numa=1),
    pci(PF, "8086", "1563", numa=1, more=FUNCTIONS),
    pci("0000:81:10.0", "8086", "1565", numa=1, more=function_of(PF)),
    pci("0000:81:10.2", "8086", "1565", numa=1, more=function_of(PF)),
    "<device><name>net_ens4_aa</name><parent>pci_0000_81_00_0</parent><capability type='net'>"
    "<interface>ens4</interface></capability></device>",
    "<device><name>vdpa_vdpa0</name><parent>pci_0000_81_10_2</parent><capability type='vdpa'/></device>",
    "<device><name>computer</name><capability type='system'/></device>",
)


def given(*texts: object):
    return specs.devices(node_devices(HOST), specs.parse(json.dumps(text) for text in texts))


def addresses(*texts: object) -> list[str]:
    return [one.address for one in given(*texts)]


def test_node_devices_when_recorded_then_kinds_cells_and_parents_are_known():
    found = {one.address: one for one in node_devices(HOST)}
    assert found[PF].kind == "type-PF" and found[PF].names == ("ens4",) and found[PF].cell == 1
    assert (found["0000:81:10.0"].kind, found["0000:81:10.0"].parent) == ("type-VF", PF)
    assert found["0000:81:10.2"].kind == "vdpa" and found["0000:00:1f.0"].cell is None
    assert (found["0000:3b:00.0"].vendor_id, found["0000:3b:00.0"].product_id) == ("10de", "1db4")


@pytest.mark.parametrize(("spec", "expected"), [
    ({"vendor_id": "10de"}, ["0000:3b:00.0", "0000:af:00.0"]),
    ({"vendor_id": "10DE", "product_id": "0x1DB4", "address": "0000:3b:*.*"}, ["0000:3b:00.0"]),
    ({"address": "3b:00.0"}, ["0000:3b:00.0"]), ({"address": "*:af:*"}, ["0000:af:00.0"]),
    ({"address": {"bus": "3b|af", "slot": "00"}}, ["0000:3b:00.0", "0000:af:00.0"]),
    ({"address": PF}, [PF, "0000:81:10.0", "0000:81:10.2"]), ({"devname": "ens4", "product_id": "1565"},
                                                              ["0000:81:10.0", "0000:81:10.2"]),
    ({"vendor_id": "*", "product_id": "a1c1"}, ["0000:00:1f.0"]), ({"vendor_id": "ffff"}, []),
    ([{"address": "3b:00.0"}, {"address": "af:00.0"}], ["0000:3b:00.0", "0000:af:00.0"]),
])
def test_devices_when_a_spec_names_them_then_these_are_given(spec, expected):
    assert addresses(spec) == expected


def test_devices_when_two_specs_fit_then_the_first_says_what_is_told():
    first, second = given({"address": "3b:00.0", "resource_class": "gpu", "traits": "fast, hw_nic_sriov,CUSTOM_X",
                           "managed": "no", "live_migratable": "yes"},
                          {"vendor_id": "10de", "physical_network": None, "trusted": True})
    assert first.tags == {"resource_class": "CUSTOM_GPU", "traits": "CUSTOM_FAST,CUSTOM_X,HW_NIC_SRIOV"}
    assert (first.managed, first.live_migratable, first.cell) == (False, True, 0)
    assert second.tags == {"physical_network": "", "trusted": "true"} and second.managed


@pytest.mark.parametrize(("text", "why"), [
    ("{1", "not JSON"), ('"x"', "object"), ('{"vendor_id": "8086x"}', "vendor_id"), ('{"product_id": 5}', "product_id"),
    ('{"address": "x"}', "0000:81:00.0"), ('{"address": "0000:zz:00.0"}', "is neither"), ('{"address": 5}', "address"),
    ('{"address": {"bus": "("}}', "regular expression"), ('{"address": {"car": "1"}}', "domain, bus"),
    ('{"address": "81:00.0", "devname": "ens4"}', "not both"), ('{"managed": "perhaps"}', "managed"),
    ('{"address": "*:*:*.*.*"}', "0000:81:00.0")])
def test_parse_when_a_spec_cannot_be_then_it_is_named(text, why):
    with pytest.raises(errors.config.DeviceSpec) as caught:
        specs.parse(['{"vendor_id": "8086"}', text])
    said = caught.value.message
    assert "[pci]device_spec: in its value 2, " in said and why in said and text not in said.removesuffix(".")


# --- providers

def test_children_when_devices_stand_alone_then_each_is_one():
    first, second = providers.children("host1", NODE, given({"vendor_id": "10de"}))
    assert first.name == "host1_0000:3b:00.0" and first.traits == ("COMPUTE_MANAGED_PCI_DEVICE",)
    assert first.uuid == str(uuid.uuid5(uuid.UUID(NODE), first.name)) != second.uuid
    assert [(one.resource_class, one.total) for one in first.inventories] == [("CUSTOM_PCI_10DE_1DB4", 1)]


def test_children_when_a_functions_virtual_ones_are_given_then_they_are_the_inventory_of_one():
    (child,) = providers.children("host1", NODE, given({"address": PF, "physical_network": "phys-net 1",
                                                        "traits": "fast"}))
    assert child.name == f"host1_{PF}"
    assert [(one.resource_class, one.total) for one in child.inventories] == [("SRIOV_NET_VF", 2)]
    assert child.traits == ("COMPUTE_MANAGED_PCI_DEVICE", "CUSTOM_FAST", "CUSTOM_PHYSNET_PHYS_NET_1")
    assert all(is_trait(trait) for trait in child.traits)
    assert all(is_resource_class(one.resource_class) for one in child.inventories)


def test_children_when_the_spec_has_a_class_then_it_stands_above_vendor_and_network():
    spec = {"product_id": "1565", "resource_class": "vf", "physical_network": "p"}
    (child,) = providers.children("h", NODE, given(spec))
    assert [one.resource_class for one in child.inventories] == ["CUSTOM_VF"]


def test_children_when_only_the_physical_function_is_given_then_it_is_one():
    (child,) = providers.children("h", NODE, given({"product_id": "1563"}))
    assert [(one.resource_class, one.total) for one in child.inventories] == [("CUSTOM_PCI_8086_1563", 1)]


def test_exclusive_when_virtual_functions_are_given_then_their_physical_one_is_not():
    assert [one.address for one in providers.exclusive(given({"address": PF}))] == ["0000:81:10.0", "0000:81:10.2"]
    assert [one.address for one in providers.exclusive(given({"product_id": "1563"}))] == [PF]


@pytest.mark.parametrize(("said", "has"), [("yes", True), ("no", False)])
def test_children_when_devices_may_go_while_they_are_used_then_a_trait_says_so(said, has):
    for child in providers.children("h", NODE, given({"vendor_id": "10de", "live_migratable": said})):
        assert ("HW_PCI_LIVE_MIGRATABLE" in child.traits) is has and all(map(is_trait, child.traits))
