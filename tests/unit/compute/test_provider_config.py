"""Files that give a host's provider more."""

from __future__ import annotations

import pytest

from nova import errors
from nova.compute.reports import provider_config
from nova.compute.reports.inventory import InventoryReports, offered
from nova.compute.reports.provider_config import strangers, with_additions
from nova.conf import compute as compute_options
from nova.model.host.hosts import Node
from nova.model.numa.topology import HostCell, HostTopology
from nova.model.placement.providers import ClassInventory
from nova.virt.interface import Driver
from tests.fakes.compute import HOST, options
from tests.fakes.conductor_host import FakeConductorHost

UUID = "6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11"
NODE = Node(name="node1", uuid=UUID, hypervisor_type="fake", vcpus=8, memory_mb=16384, traits=("HW_NIC_SRIOV",))
META = "meta: {schema_version: '1.0'}\n"


def load(tmp_path, *texts):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    return provider_config.load(str(tmp_path))


def entry(identification: str, rest: str = "") -> str:
    return f"{META}providers:\n- identification: {identification}\n{rest}"


GOLD = """\
  inventories:
    additional:
    - CUSTOM_GOLD: {total: 22, reserved: 2, min_unit: 1, max_unit: 10, step_size: 1, allocation_ratio: 2}
    - CUSTOM_SILVER: {total: 7}
  traits:
    additional: [CUSTOM_SHINY]
"""


@pytest.mark.parametrize("identification", [f"{{uuid: {UUID}}}", "{name: node1}", "{uuid: $COMPUTE_NODE}"])
def test_load_when_a_file_names_the_node_then_it_has_what_is_added(tmp_path, identification):
    (node,) = with_additions([NODE], load(tmp_path, entry(identification, GOLD)))
    gold, silver = node.inventories
    assert gold == ClassInventory(resource_class="CUSTOM_GOLD", total=22, reserved=2, max_unit=10, allocation_ratio=2.0)
    assert (silver.total, silver.max_unit, silver.allocation_ratio) == (7, 7, 1.0)
    assert node.traits == ("CUSTOM_SHINY", "HW_NIC_SRIOV")


def test_load_when_one_names_the_node_and_one_is_for_all_then_the_first_counts(tmp_path):
    every = entry("{uuid: $COMPUTE_NODE}", "  traits: {additional: [CUSTOM_EVERY]}\n")
    own = entry("{name: node1}", "  traits: {additional: [CUSTOM_OWN]}\n")
    configs = load(tmp_path, every, own)
    assert with_additions([NODE], configs)[0].traits == ("CUSTOM_OWN", "HW_NIC_SRIOV")
    assert strangers([NODE], configs) == ()


def test_load_when_nothing_is_there_or_other_files_then_nothing_is_added(tmp_path):
    (tmp_path / "notes.txt").write_text("{{{")
    assert provider_config.load(str(tmp_path)) == () == provider_config.load(str(tmp_path / "absent"))
    assert load(tmp_path, META) == ()


def test_load_when_it_names_somebody_else_then_that_is_a_stranger(tmp_path):
    configs = load(tmp_path, entry("{name: other}", GOLD))
    assert with_additions([NODE], configs) == (NODE,)
    assert [one.provider for one in strangers([NODE], configs)] == ["other"]


@pytest.mark.parametrize(("text", "key"), [
    ("[", "the file"), ("- 1", "the file"), ("providers: []", "meta"),
    ("meta: {schema_version: '2.0'}", "schema_version"),
    ("meta: {}", "schema_version"), (META + "more: 1", "more"), (META + "providers: {}", "providers"),
    (META + "providers: [1]", "providers[0]"), (META + "providers: [{}]", "providers[0].identification"),
    (entry("{uuid: x}"), "identification.uuid"), (entry("{name: a, uuid: b}"), "identification"),
    (entry("{name: 5}"), "identification.name"), (entry("{name: a}", "  colour: red"), "providers[0].colour"),
    (entry("{name: a}", "  traits: {additional: [HW_NIC_SRIOV]}"), "traits.additional[0]"),
    (entry("{name: a}", "  traits: {additional: x}"), "traits.additional"),
    (entry("{name: a}", "  traits: {extra: []}"), "traits.extra"),
    (entry("{name: a}", "  inventories: {additional: [VCPU: {total: 1}]}"), "inventories.additional[0]"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {}]}"), "CUSTOM_A"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: -1}]}"), "CUSTOM_A.total"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: true}]}"), "CUSTOM_A.total"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: 2147483648}]}"), "CUSTOM_A.total"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: 1, allocation_ratio: .nan}]}"), "ratio"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: 1, allocation_ratio: .inf}]}"), "ratio"),
    (entry("{name: a}", f"  inventories: {{additional: [CUSTOM_{'A' * 58}: {{total: 1}}]}}"), "64 characters"),
    (entry("{name: a}", "  inventories: {additional: [CUSTOM_A: {total: 1, colour: 1}]}"), "CUSTOM_A.colour"),
    (entry("{name: a}", "  inventories: {additional: [{CUSTOM_A: {total: 1}, CUSTOM_B: {total: 1}}]}"),
     "additional[0]"),
])
def test_load_when_a_file_is_wrong_then_file_and_key_are_named(tmp_path, text, key):
    with pytest.raises(errors.config.Provider) as caught:
        load(tmp_path, text)
    assert str(tmp_path / "0.yaml") in str(caught.value) and key in str(caught.value)


def test_load_when_two_files_name_one_provider_then_both_are_named(tmp_path):
    with pytest.raises(errors.config.Provider) as caught:
        load(tmp_path, entry("{name: a}"), entry("{name: a}"))
    assert "0.yaml" in str(caught.value) and "1.yaml" in str(caught.value)


def test_additions_when_the_host_reports_the_class_itself_then_it_is_named(tmp_path):
    own = Node(name="node1", uuid=UUID, hypervisor_type="fake",
               inventories=(ClassInventory(resource_class="CUSTOM_GOLD", total=1),))
    with pytest.raises(errors.config.Provider, match="CUSTOM_GOLD is already reported by the host"):
        with_additions([own], load(tmp_path, entry("{name: node1}", GOLD)))


def test_inventory_when_files_add_to_it_then_it_is_sent_with_them(tmp_path):
    class Nodes(Driver):
        def nodes(self):
            return (NODE,)

    from nova.compute.host import Host
    conductor = FakeConductorHost()
    InventoryReports(Nodes(), conductor.client(HOST), options(compute_options), Host(HOST, tmp_path),
                     load(tmp_path, entry("{name: node1}", GOLD))).send("id")
    (node,) = conductor.inventories[0].nodes
    assert "CUSTOM_SHINY" in node.traits and len(node.inventories) == 2


def test_offered_when_the_node_has_a_topology_then_it_has_the_operators_ratios():
    node = Node(name="n", uuid=UUID, hypervisor_type="fake", vcpus=4,
                topology=HostTopology(cells=(HostCell(id=0, shared=(0,)),)))
    made = offered(node, options(compute_options, cpu_allocation_ratio=3.0, ram_allocation_ratio=1.5))
    assert (made.topology.cpu_ratio, made.topology.memory_ratio, made.topology.cells) == (3.0, 1.5, node.topology.cells)


def test_offered_when_all_processors_are_dedicated_then_those_kept_for_the_host_are_of_them():
    node = Node(name="n", uuid=UUID, hypervisor_type="fake", vcpus=0,
                inventories=(ClassInventory(resource_class="PCPU", total=4),))
    made = offered(node, options(compute_options, reserved_host_cpus=1))
    assert made.reserved_vcpus == 0 and made.inventories[0].reserved == 1
