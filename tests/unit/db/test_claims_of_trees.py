"""Claims of servers that require more: traits, aggregates, other classes, what is below a node, cells and devices."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import reports
from nova.db.models import api as tables
from nova.db.placement import audits, claims, provider_trees
from nova.db.quota import ledger
from nova.db.sql.engine import Database
from nova.model.host.hosts import Inventory, Node
from nova.model.numa.topology import (
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    PciDevice,
    PciRequest,
    PciSpec,
    Wanted,
)
from nova.model.placement.audits import NodeHolder
from nova.model.placement.providers import ChildProvider, ClassInventory, RequestGroup, ResourceRequest
from nova.model.scheduling.decisions import HostRequirements, Resources
from tests import sampling
from tests.fakes.rows import SMALL, add_ledger, new_uuid

PLAIN = {"MEMORY_MB": 512, "DISK_GB": 1}
CELLS = HostTopology(
    cells=(HostCell(id=0, dedicated=(0, 1), memory_mb=4096), HostCell(id=1, dedicated=(2, 3), memory_mb=4096)),
    devices=tuple(PciDevice(address=f"0000:0{number}:00.0", vendor_id="10de", product_id="1eb8", cell=number)
                  for number in range(2)))
NICS = tuple(ChildProvider(name=f"nic{number}", uuid=f"00000000-0000-0000-0000-00000000000{number}",
                           inventories=(ClassInventory(resource_class="SRIOV_NET_VF", total=2),),
                           traits=(f"CUSTOM_NET{number}",)) for number in range(2))


def node(**fields: Any) -> Node:
    return Node(**{"name": "host1", "uuid": "11111111-1111-1111-1111-111111111111", "hypervisor_type": "fake",
                   "vcpus": 8, "memory_mb": 65536, "local_gb": 1000, "cpu_allocation_ratio": 1.0,
                   "traits": ("HW_CPU_X86_AVX2",), "inventories": (ClassInventory(resource_class="PCPU", total=4),),
                   "children": NICS, "topology": CELLS, **fields})


def report(api: Database, one: Node, version: int = 1, host: str = "host1") -> int:
    """The node's provider's key."""
    inventory = Inventory(host=host, host_id=one.uuid, nodes=(one,), version=version)
    api.transact(lambda tx: reports.write_providers(tx, inventory))
    with api.reading() as tx:
        return int(tx.execute(sa.select(tables.providers.c.id).where(tables.providers.c.uuid == one.uuid)).scalar_one())


def requirements_of(*groups: RequestGroup, topology: Wanted = Wanted(), plain: dict[str, int] = PLAIN,  # noqa: B008
                    **fields: Any) -> HostRequirements:
    unnamed = [] if any(not group.suffix for group in groups) else [RequestGroup(resources={"VCPU": 1, **plain})]
    return HostRequirements(request=ResourceRequest(groups=(*groups, *unnamed), **fields), topology=topology)


def pinned(count: int = 1, devices: int = 0) -> HostRequirements:
    cell = GuestCell(id=0, vcpus=tuple(range(count)), pinned=tuple(range(count)), memory_mb=512)
    wanted = Wanted(guest=GuestTopology(cells=(cell,)), devices=(PciRequest(
        count=devices, specs=(PciSpec(vendor_id="10de"),)),) if devices else ())
    return requirements_of(RequestGroup(resources={"PCPU": count, **PLAIN}), topology=wanted)


def claim(api: Database, provider: int, requirements: HostRequirements | None, uuid: str = "", epoch: int = 1) -> Any:
    """None, or why it was refused."""
    [uuid] = [uuid] if uuid else add_ledger(api)
    one = claims.Claim(uuid, epoch, provider, SMALL, requirements=requirements)
    return claims.take(api, [one])[0][uuid]


def held(api: Database) -> Counter[tuple[str, str]]:
    """(provider's name, class) -> how much is allocated."""
    with api.reading() as tx:
        rows = tx.execute(sa.select(tables.providers.c.name, tables.allocations.c.resource_class,
                                    tables.allocations.c.used)
                          .join_from(tables.allocations, tables.providers,
                                     tables.providers.c.id == tables.allocations.c.provider_id))
        found: Counter[tuple[str, str]] = Counter()
        for row in rows:
            found[row.name, row.resource_class] += row.used
        return found


@pytest.mark.parametrize(("requirements", "why"), [
    (requirements_of(RequestGroup(resources=PLAIN, required=(("HW_CPU_X86_AVX512F",),))), "HW_CPU_X86_AVX512F"),
    (requirements_of(RequestGroup(resources=PLAIN, forbidden=("HW_CPU_X86_AVX2",))), "without HW_CPU_X86_AVX2"),
    (requirements_of(RequestGroup(resources={**PLAIN, "VGPU": 1})), "no VGPU"),
    (requirements_of(RequestGroup(resources={**PLAIN, "PCPU": 5})), "not enough PCPU"),
    (requirements_of(RequestGroup(resources=PLAIN, member_of=((new_uuid(),),))), "not in a requested aggregate"),
    (requirements_of(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 3})), "not enough SRIOV_NET_VF"),
    (requirements_of(*[RequestGroup(suffix=str(number), resources={"SRIOV_NET_VF": 1}) for number in range(3)],
                     group_policy="isolate"), "no combination of its providers fits"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_claim_when_a_requirement_is_not_met_then_it_is_refused_in_words_and_nothing_is_held(api, requirements, why):
    refused = claim(api, report(api, node()), requirements)
    assert isinstance(refused, errors.host.ClaimUnfit) and why in refused.message, refused.message
    assert not held(api)


def test_claim_when_groups_want_what_is_below_the_node_then_each_holds_its_own(api):
    provider = report(api, node())
    requirements = requirements_of(*[RequestGroup(suffix=f"_{number}", resources={"SRIOV_NET_VF": 1},
                                                  required=((f"CUSTOM_NET{number}",),)) for number in range(2)])
    assert [claim(api, provider, requirements) for _ in range(2)] == [None, None]
    assert isinstance(claim(api, provider, requirements), errors.host.ClaimUnfit)
    assert held(api) == {("host1", "VCPU"): 2, ("host1", "MEMORY_MB"): 1024, ("host1", "DISK_GB"): 2,
                         ("nic0", "SRIOV_NET_VF"): 2, ("nic1", "SRIOV_NET_VF"): 2}


def test_claim_when_it_takes_from_below_then_that_providers_generation_counts_up_with_the_nodes(api):
    provider = report(api, node())

    def generations() -> dict[str, int]:
        with api.reading() as tx:
            return dict(tx.execute(sa.select(tables.providers.c.name, tables.providers.c.generation)).all())
    before = generations()
    claim(api, provider,
          requirements_of(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 1}, required=(("CUSTOM_NET1",),))))
    assert generations() == {**before, "host1": before["host1"] + 1, "nic1": before["nic1"] + 1}


@pytest.mark.parametrize("how", ["release", "release_on"])
def test_release_when_only_what_is_below_was_held_then_the_nodes_generation_tells_schedulers(api, how):
    provider, [uuid] = report(api, node()), add_ledger(api)
    only = HostRequirements(request=ResourceRequest(groups=(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 1}),)))
    assert claim(api, provider, only, uuid) is None

    def generation() -> int:
        with api.reading() as tx:
            return int(tx.execute(sa.select(tables.providers.c.generation)
                                  .where(tables.providers.c.id == provider)).scalar_one())
    before = generation()
    changed = api.transact(lambda tx: ledger.release(tx, {uuid: 2}, {}) if how == "release"
                           else ledger.release_on(tx, uuid, "host1"))
    assert not held(api) and provider in changed and generation() == before + 1


def test_claim_when_it_is_repeated_then_nothing_is_taken_twice(api):
    provider, [uuid] = report(api, node()), add_ledger(api)
    assert [claim(api, provider, pinned(2, 1), uuid, epoch) for epoch in (1, 1, 2)] == [None] * 3  # 1: a lost COMMIT
    assert held(api)["host1", "PCPU"] == 2
    with api.reading() as tx:
        assert len(provider_trees.tree_facts(tx, [provider])[provider].packings) == 1


def test_claim_when_processors_and_devices_are_pinned_then_each_is_given_once_until_none_is_left(api):
    provider = report(api, node())
    assert [claim(api, provider, pinned(2, 1)) for _ in range(2)] == [None, None]
    with api.reading() as tx:
        packings = provider_trees.tree_facts(tx, [provider])[provider].packings
    pins = [cpu for one in packings for cell in one.cells for cpu in cell.pins.values()]
    assert sorted(pins) == [0, 1, 2, 3]
    assert len({device.address for one in packings for device in one.devices}) == 2
    assert isinstance(claim(api, provider, pinned(1, 1)), errors.host.ClaimUnfit)


def test_claim_when_devices_are_reported_as_providers_then_what_is_given_away_is_taken_of_them(api):
    cards = tuple(ChildProvider(name=f"host1_{device.address}", uuid=new_uuid(), inventories=(
        ClassInventory(resource_class="CUSTOM_PCI_10DE_1EB8", total=1),)) for device in CELLS.devices)
    provider = report(api, node(children=cards))
    [uuid] = add_ledger(api)
    assert claim(api, provider, pinned(1, 1), uuid) is None
    with api.reading() as tx:
        [device] = provider_trees.tree_facts(tx, [provider])[provider].packings[0].devices
        assert audits.held(tx, [uuid]) == {uuid: {NodeHolder("host1", "host1", uuid): {"PCPU": 1, **PLAIN}}}
    assert held(api)[f"host1_{device.address}", "CUSTOM_PCI_10DE_1EB8"] == 1
    assert claim(api, provider, pinned(1, 1)) is None
    assert sum(amount for (_, name), amount in held(api).items() if name.startswith("CUSTOM_PCI")) == 2


def test_claim_when_somebody_took_a_device_by_its_provider_then_it_is_not_given_again(api):
    card = ChildProvider(name="host1_0000:00:00.0", uuid=new_uuid(), inventories=(
        ClassInventory(resource_class="CUSTOM_PCI_10DE_1EB8", total=1),))
    provider = report(api, node(children=(card,), topology=HostTopology(cells=CELLS.cells, devices=CELLS.devices[:1])))
    assert claim(api, provider,
                 requirements_of(RequestGroup(suffix="1", resources={"CUSTOM_PCI_10DE_1EB8": 1}))) is None
    refused = claim(api, provider, pinned(1, 1))
    assert isinstance(refused, errors.host.ClaimUnfit) and "not enough CUSTOM_PCI_10DE_1EB8" in refused.message


def test_claim_when_a_group_holds_nothing_of_the_node_then_a_topology_is_refused(api):
    provider = report(api, node())
    requirements = pinned()
    only = HostRequirements(request=ResourceRequest(groups=(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 1}),)),
                            topology=requirements.topology)
    refused = claim(api, provider, only)
    assert isinstance(refused, errors.host.ClaimUnfit) and "no resources of the node itself" in refused.message


def test_move_when_it_begins_and_is_undone_then_the_packing_is_the_servers_again(api):
    provider, [uuid], move = report(api, node()), add_ledger(api), new_uuid()
    assert claim(api, provider, pinned(), uuid) is None

    def packing(leaving: bool) -> Any:
        with api.reading() as tx:
            return claims.topology_claim_at(tx, uuid, "host1", leaving)
    first = packing(False)
    api.transact(lambda tx: ledger.begin_move(tx, uuid, 2, move))
    assert claim(api, provider, pinned(2), uuid, 3) is None
    assert packing(True) == first
    assert len(packing(False).cells[0].pins) == 2 and not set(packing(False).cells[0].pins.values()) & set(
        first.cells[0].pins.values())
    api.transact(lambda tx: ledger.undo_move(tx, uuid, 4, move, ()))
    assert packing(False) == packing(True) == first


def test_release_when_it_held_from_below_then_everything_is_free_again(api):
    provider, [uuid] = report(api, node()), add_ledger(api)
    claim(api, provider, requirements_of(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 2})), uuid)
    changed = api.transact(lambda tx: ledger.release(tx, {uuid: 2}, {}))
    assert not held(api) and len(changed) == 2 and provider in changed


def test_release_when_it_held_of_what_the_api_put_below_then_that_is_on_the_nodes_host(api):
    provider, [uuid] = report(api, node(children=())), add_ledger(api)
    given = {"uuid": new_uuid(), "name": "ovs", "host": "", "host_id": "", "parent_id": provider, "root_id": provider}
    api.transact(lambda tx: tx.execute(sa.insert(tables.inventories).values(
        provider_id=tx.execute(sa.insert(tables.providers).values(**given)).inserted_primary_key[0], total=10,
        resource_class="NET_BW_EGR_KILOBIT_PER_SEC", max_unit=10, reported=False)))
    assert claim(api, provider, requirements_of(RequestGroup(suffix="1", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 9})),
                 uuid) is None
    with api.reading() as tx:
        assert ledger.held_by(tx, uuid) == [ledger.HoldingHost("host1", None)]
    api.transact(lambda tx: ledger.end_overtaken_moves(tx, uuid, 2, "host1", ()))
    assert held(api)["ovs", "NET_BW_EGR_KILOBIT_PER_SEC"] == 9
    api.transact(lambda tx: ledger.release(tx, {uuid: 3}, {uuid: ["host1"]}))
    assert held(api)["ovs", "NET_BW_EGR_KILOBIT_PER_SEC"] == 9  # the host owes something
    api.transact(lambda tx: ledger.release(tx, {uuid: 4}, {}))
    assert not held(api)


# -- reports

def test_report_when_a_child_or_class_is_gone_then_it_goes_unless_something_is_allocated_of_it(api, caplog):
    provider = report(api, node())
    claim(api, provider,
          requirements_of(RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 1}, required=(("CUSTOM_NET1",),))))
    claim(api, provider, pinned())
    report(api, node(children=(), inventories=()), version=2)
    with api.reading() as tx:
        [child] = provider_trees.tree_facts(tx, [provider])[provider].children
        assert (child.name, child.amounts["SRIOV_NET_VF"].capacity) == ("nic1", 0)
    assert "capacity of 0 SRIOV_NET_VF, but 1 are in use" in caplog.text
    assert "provider host1 has a capacity of 0 PCPU, but 1 are in use" in caplog.text
    assert isinstance(claim(api, provider, pinned()), errors.host.ClaimUnfit)
    caplog.clear()
    report(api, node(children=(), inventories=()), version=3)
    assert "in use" not in caplog.text  # it was said
    assert held(api)["nic1", "SRIOV_NET_VF"] == 1


def test_report_when_the_api_gave_traits_and_classes_then_they_stay(api):
    provider = report(api, node())
    api.transact(lambda tx: (
        tx.execute(sa.insert(tables.provider_traits).values(provider_id=provider, trait="CUSTOM_GOLD", reported=False)),
        tx.execute(sa.insert(tables.inventories).values(provider_id=provider, resource_class="CUSTOM_TOKEN", total=2,
                                                        max_unit=2, reported=False))))
    report(api, node(traits=("HW_CPU_X86_SSE",)), version=2)
    with api.reading() as tx:
        beyond = provider_trees.tree_facts(tx, [provider], whole=True)[provider]
    assert beyond.traits == ("CUSTOM_GOLD", "HW_CPU_X86_SSE")
    gold = requirements_of(RequestGroup(resources={**PLAIN, "CUSTOM_TOKEN": 2}, required=(("CUSTOM_GOLD",),)))
    assert claim(api, provider, gold) is None


def test_report_when_it_is_older_then_nothing_changes(api):
    provider = report(api, node(), version=5)
    report(api, node(vcpus=1, children=(), traits=()), version=4)
    with api.reading() as tx:
        assert len(provider_trees.tree_facts(tx, [provider])[provider].children) == 2


# -- all of it, in any order

@pytest.mark.parametrize("seed", [sampling.SEED, sampling.SEED + 1])
def test_claims_when_servers_hosts_and_moves_change_in_any_order_then_nothing_is_given_twice(api, seed):
    dice = random.Random(seed)
    uuids = [f"{number:08d}-0000-0000-0000-00000000000f" for number in range(2)]
    hosts = {uuid: Node(name=f"host{number}", uuid=uuid, hypervisor_type="fake", vcpus=4, memory_mb=8192, local_gb=100,
                        cpu_allocation_ratio=1.0, inventories=(ClassInventory(resource_class="PCPU", total=4),),
                        topology=CELLS) for number, uuid in enumerate(uuids)}
    keys = [report(api, one, host=one.name) for one in hosts.values()]
    living: dict[str, str | None] = {}  # server -> its move
    epoch = 1
    for _ in range(60):
        epoch += 1
        what = dice.choice(["claim", "claim", "move", "undo", "end", "release", "report"])
        server = dice.choice(list(living)) if living else None
        if what == "claim":
            [server] = add_ledger(api)
            if claim(api, dice.choice(keys), dice.choice([None, pinned(), pinned(2), pinned(1, 1)]), server,
                     epoch) is None:
                living[server] = None
        elif what == "report":
            one = dice.choice(list(hosts.values()))
            report(api, one, version=epoch, host=one.name)
        elif server is not None:
            living = _change(api, living, what, server, (epoch, dice.choice(keys), dice.choice([None, pinned()])))
        _check(api, keys)
    for server in living:
        epoch += 1
        api.transact(lambda tx, server=server, epoch=epoch: ledger.release(tx, {server: epoch}, {}))
    assert not held(api)


def _change(api: Database, living: dict[str, str | None], what: str, server: str, how: Any) -> dict[str, str | None]:
    epoch, target, requirements = how
    move = living[server]
    if what == "move" and move is None:
        move = new_uuid()
        api.transact(lambda tx: ledger.begin_move(tx, server, epoch, move))
        if claim(api, target, requirements, server, epoch) is not None:
            api.transact(lambda tx: ledger.undo_move(tx, server, epoch, move, ()))
            move = None
        return {**living, server: move}
    if what in ("undo", "end") and move is not None:
        end = ledger.undo_move if what == "undo" else ledger.end_move
        api.transact(lambda tx: end(tx, server, epoch, move, ()))
        return {**living, server: None}
    if what == "release":
        api.transact(lambda tx: ledger.release(tx, {server: epoch}, {}))
        return {uuid: one for uuid, one in living.items() if uuid != server}
    return living


def _check(api: Database, keys: list[int]) -> None:
    with api.reading() as tx:
        beyond = provider_trees.tree_facts(tx, keys)
    for key in keys:
        packings = beyond[key].packings if key in beyond else ()
        pins = [cpu for one in packings for cell in one.cells for cpu in cell.pins.values()]
        devices = [device.address for one in packings for device in one.devices]
        assert len(pins) == len(set(pins)) and len(devices) == len(set(devices))
    for (name, resource), amount in held(api).items():
        assert amount <= {"VCPU": 4, "PCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 100}[resource], name


def test_claim_when_many_are_made_at_once_then_locks_are_one_statement(api):
    """However many providers a burst is spread over."""
    keys = [report(api, node(name=f"h{number}", uuid=new_uuid(), children=(), topology=None), host=f"h{number}")
            for number in range(5)]
    wanted = [claims.Claim(uuid, 1, key, Resources(vcpus=1, memory_mb=1, disk_gb=0))
              for uuid, key in zip(add_ledger(api, 5), keys, strict=True)]
    seen: list[str] = []
    sa.event.listen(api.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    assert set(api.transact(lambda tx: claims.claim(tx, wanted))[0].values()) == {None}
    assert len([one for one in seen if one.startswith("UPDATE resource_providers")]) == 1 and len(seen) <= 8, seen


@pytest.mark.parametrize("finished", [True, False])
def test_settle_when_a_resize_on_one_host_was_overtaken_then_the_guest_holds_the_processors_that_it_runs_on(
        api, finished):
    provider, [uuid], move = report(api, node()), add_ledger(api), new_uuid()
    assert claim(api, provider, pinned(), uuid) is None

    def pins() -> set[int]:
        with api.reading() as tx:
            return set(claims.topology_claim_at(tx, uuid, "host1").cells[0].pins.values())
    first = pins()
    api.transact(lambda tx: ledger.begin_move(tx, uuid, 2, move))
    assert claim(api, provider, pinned(2), uuid, 2) is None
    second = pins()
    for _ in range(2):  # a runner that died after it does it again
        api.transact(lambda tx: ledger.end_overtaken_moves(tx, uuid, 3, "host1", (), "" if finished else move))
        assert pins() == (second if finished else first)
        assert held(api)["host1", "PCPU"] == (2 if finished else 1)
        with api.reading() as tx:
            assert ledger.held_by(tx, uuid) == [ledger.HoldingHost("host1", None)]


@pytest.mark.parametrize(("said", "capacity"), [
    ({"total": 10, "allocation_ratio": 1e308}, 10 * 10**9), ({"total": 10, "allocation_ratio": float("inf")}, 10**10),
    ({"total": 10, "allocation_ratio": float("nan")}, 0), ({"total": 10, "allocation_ratio": -1.0}, 0),
    ({"total": 10**30}, 2**31 - 1), ({"total": 10, "reserved": -5}, 10), ({"total": 10, "reserved": 50}, 0),
    ({"total": 10, "step_size": 0, "min_unit": -3, "max_unit": 10**30}, 10)])
def test_report_when_amounts_are_beyond_reason_then_what_is_kept_harms_nobody(api, said, capacity):
    wild = (ClassInventory(resource_class="CUSTOM_GOLD", **said),)
    provider = report(api, node(inventories=wild, children=(ChildProvider(
        name="wild", uuid=new_uuid(), inventories=wild),)))
    with api.reading() as tx:
        [child] = provider_trees.tree_facts(tx, [provider])[provider].children
    kept = child.amounts["CUSTOM_GOLD"]
    assert kept.capacity == capacity < 2**63 and kept.step_size >= 1 and 1 <= kept.min_unit <= kept.max_unit < 2**31
    msgspec.msgpack.encode(child)
    refused = claim(api, provider, requirements_of(RequestGroup(resources={**PLAIN, "CUSTOM_GOLD": 1})))
    assert refused is None or (isinstance(refused, errors.host.ClaimUnfit) and not capacity)
