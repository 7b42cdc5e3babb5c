"""A host that claims much more room than it had: no more than twice its mark is used until an operator accepts it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova import errors
from nova.conductor.upkeep.allocation_audit import Stores, rebuild_inventories
from nova.db.host import enrolments, hosts
from nova.db.models import api
from nova.db.placement import audits
from nova.model.host.hosts import Inventory, Node
from nova.model.placement import accepted_capacity
from nova.model.placement.providers import ChildProvider, ClassInventory
from tests.fakes.small_cloud import SmallCloud, node_id

MARK_MB = 100_000  # as the cloud's hosts report it at first


def total(cloud: SmallCloud, name: str = "MEMORY_MB", host: str = "a") -> int:
    """What schedulers may give of all of the host's nodes."""
    with cloud.api.reading() as tx:
        found = [row.classes[name] for row in hosts.provider_rows(tx, host=host).values() if name in row.classes]
    return sum(int((one.total - one.reserved) * one.allocation_ratio) for one in found)


def enrolled(cloud: SmallCloud, host: str = "a") -> Any:
    [found] = [one for one in cloud.control.list_enrolled_hosts() if one.host == host]
    return found


def waiting(cloud: SmallCloud) -> tuple[str, ...]:
    host = enrolled(cloud)
    return accepted_capacity.beyond(host.accepted_room, host.claimed_room)


def test_host_when_it_first_reports_then_that_is_its_mark(cloud: SmallCloud) -> None:
    assert total(cloud) == MARK_MB == enrolled(cloud).accepted_room["MEMORY_MB"] and waiting(cloud) == ()


def test_host_when_it_claims_more_than_twice_then_twice_is_used_and_the_log_says_so_once(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    for version in (2, 3):
        cloud.report("a", ["a"], version=version, memory_mb=50 * MARK_MB)
        assert total(cloud) == 2 * MARK_MB and waiting(cloud) == ("MEMORY_MB",)
    said = [record.getMessage() for record in caplog.records if "host accept" in record.getMessage()]
    assert len(said) == 1 and "nova-manage host accept a" in said[0] and "MEMORY_MB" in said[0]
    assert total(cloud, host="b") == MARK_MB


def test_host_when_it_grows_step_by_step_then_its_mark_stays(cloud: SmallCloud) -> None:
    for version, times in enumerate((2, 4, 8, 16), 2):
        cloud.report("a", ["a"], version=version, memory_mb=times * MARK_MB)
    assert total(cloud) == 2 * MARK_MB


@pytest.mark.parametrize("facts", [{"ram_allocation_ratio": 1e9}, {"ram_allocation_ratio": 1e300},
                                   {"memory_mb": 2**40}])
def test_host_when_it_claims_by_whatever_number_then_no_more_than_twice_is_used(cloud: SmallCloud,
                                                                                facts: dict[str, Any]) -> None:
    cloud.report("a", ["a"], version=2, **facts)
    assert total(cloud) == 2 * MARK_MB


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_report_when_a_number_is_none_then_refused_and_all_hosts_can_be_read(cloud: SmallCloud, number: float) -> None:
    for facts in ({"ram_allocation_ratio": number}, {"metrics": {"load": number}}):
        with pytest.raises(errors.Invalid, match="cannot be stored"):
            cloud.report("a", ["a"], version=2, **facts)
    assert {one.host for one in cloud.deps.feed.states().states} == {"a", "b"} and total(cloud) == MARK_MB


def test_host_when_it_claims_more_nodes_then_they_share_the_bound(cloud: SmallCloud) -> None:
    cloud.report("a", ["a", "a2", "a3", "a4"], version=2)
    assert total(cloud) == 2 * MARK_MB


def test_host_when_its_children_claim_then_they_share_the_bound(cloud: SmallCloud) -> None:
    def gpus(version: int, count: int) -> None:
        children = tuple(ChildProvider(name=f"gpu{one}", uuid=node_id(f"gpu{one}"), inventories=(
            ClassInventory(resource_class="VGPU", total=4),)) for one in range(count))
        node = Node(name="a", uuid=node_id("a"), hypervisor_type="QEMU", vcpus=100, memory_mb=MARK_MB, local_gb=1000,
                    children=children)
        cloud.hosts.report_inventory("a", Inventory(host="a", host_id=node_id("a"), version=version, nodes=(node,)))
    gpus(2, 1)
    gpus(3, 5)
    with cloud.api.reading() as tx:
        ids = [row.id for row in hosts.providers_of_hosts(tx, "a") if row.name.startswith("gpu")]
    assert len(ids) == 5 and waiting(cloud) == ("VGPU",)
    given = [row.total for row in cloud.rows("api", api.inventories.select().where(
        api.inventories.c.provider_id.in_(ids)))]
    assert sum(given) == 8


def test_host_when_it_shrinks_and_grows_back_then_at_once_and_nobody_is_asked(cloud: SmallCloud) -> None:
    for version, amount in ((2, 10), (3, MARK_MB), (4, 0), (5, 2 * MARK_MB)):
        cloud.report("a", ["a"], version=version, memory_mb=amount)
        assert total(cloud) == amount and waiting(cloud) == ()


def test_host_when_it_is_accepted_then_what_was_seen_is_used_at_once(cloud: SmallCloud) -> None:
    cloud.report("a", ["a"], version=2, memory_mb=50 * MARK_MB)
    seen = enrolled(cloud).claimed_room
    cloud.report("a", ["a"], version=3, memory_mb=5000 * MARK_MB)  # it says more before the operator's word is there
    for _twice in range(2):
        cloud.control.accept_host("a", seen)
        assert total(cloud) == 100 * MARK_MB and waiting(cloud) == ("MEMORY_MB",)
    cloud.report("a", ["a"], version=4, memory_mb=50 * MARK_MB)
    assert total(cloud) == 50 * MARK_MB and waiting(cloud) == ()


def test_acceptance_when_it_died_before_it_was_used_then_said_again_it_is(cloud: SmallCloud) -> None:
    cloud.report("a", ["a"], version=2, memory_mb=50 * MARK_MB)
    seen = enrolled(cloud).claimed_room
    cloud.cell.transact(lambda tx: enrolments.accept_capacity(tx, "a", seen))
    assert total(cloud) == 2 * MARK_MB
    cloud.control.accept_host("a", seen)
    assert total(cloud) == 50 * MARK_MB


@pytest.mark.parametrize("host", ["nobody", "b"])
def test_acceptance_when_the_host_is_not_enrolled_then_not_found(cloud: SmallCloud, host: str) -> None:
    if host == "b":
        cloud.control.expel_host("b")
    with pytest.raises(errors.NotFound):
        cloud.control.accept_host(host, {"VCPU": 1})


def test_host_when_it_was_expelled_and_is_let_in_anew_then_its_next_report_is_the_mark(cloud: SmallCloud) -> None:
    cloud.control.expel_host("a")
    cloud.control.enroll_host("a", ("nova-compute",))
    cloud.report("a", ["a"], version=2, memory_mb=9 * MARK_MB)
    assert total(cloud) == 9 * MARK_MB and waiting(cloud) == ()


def test_host_when_it_is_only_enrolled_again_then_its_mark_stays(cloud: SmallCloud) -> None:
    cloud.control.enroll_host("a", ("nova-compute",))
    cloud.report("a", ["a"], version=2, memory_mb=9 * MARK_MB)
    assert total(cloud) == 2 * MARK_MB


def test_inventories_when_they_are_derived_again_then_the_bound_holds(cloud: SmallCloud) -> None:
    cloud.report("a", ["a"], version=2, memory_mb=50 * MARK_MB)
    stores = Stores(cloud.api, cloud.cell)
    assert list(rebuild_inventories(stores)) == [] and total(cloud) == 2 * MARK_MB
    with cloud.cell.reading() as tx:
        found = audits.report(tx, "a")
    assert found is not None and found.nodes[0].memory_mb == 50 * MARK_MB  # its own word is kept as it was


def test_older_report_when_it_comes_late_then_neither_room_nor_claim_changes(cloud: SmallCloud,
                                                                            caplog: pytest.LogCaptureFixture) -> None:
    cloud.report("a", ["a"], version=5)
    with caplog.at_level(logging.WARNING):
        cloud.report("a", ["a"], version=4, memory_mb=50 * MARK_MB)
    assert total(cloud) == MARK_MB and waiting(cloud) == () and "host accept" not in caplog.text
