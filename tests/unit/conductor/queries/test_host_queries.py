"""Services, hypervisors and whole hosts as the conductor tells them; and what a deleted service leaves behind."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor import zones
from nova.db.host import host_cleanups, services
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.sql.types import later, utc_now
from nova.model.base import utcnow
from nova.model.host.aggregates import NewAggregate
from nova.model.host.hosts import HostUptime
from nova.model.host.services import Amounts, HostPowerChange, HypervisorQuery, ServiceQuery, ServiceUpdate
from nova.scheduler.snapshot import HostTable
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud, node_id
from tests.unit.conductor.queries.test_statement_counts import statements


def service(cloud: SmallCloud, host: str, binary: str = "nova-compute") -> Any:
    return cloud.control.list_services(ServiceQuery(host=host, binary=binary))[0]


def drop(cloud: SmallCloud, host: str) -> None:
    cloud.control.delete_service(ServiceQuery(uuid=service(cloud, host).uuid))


def hostnames(cloud: SmallCloud, **query: Any) -> list[str]:
    return [one.hostname for one in cloud.control.list_hypervisors(HypervisorQuery(**query))]


# --- services

def test_services_are_listed_in_two_statements_by_host_and_binary(cloud: SmallCloud) -> None:
    with statements(cloud) as seen:
        found = cloud.control.list_services(ServiceQuery())
    assert len(seen) == 2, seen
    assert [(one.host, one.binary, one.zone) for one in found] == [
        ("net", "nova-network", "internal"), ("a", "nova-compute", "nova"), ("b", "nova-compute", "nova")]
    assert [one.host for one in cloud.control.list_services(ServiceQuery(binary="nova-network"))] == ["net"]


@pytest.mark.parametrize("count", [1, 40])
def test_services_when_there_are_many_then_they_are_still_two_statements(cloud: SmallCloud, count: int) -> None:
    cloud.cell.transact(lambda tx: tx.execute(sa.insert(cell_tables.services), [
        {"uuid": new_uuid(), "host": f"more{number}", "binary": "nova-compute", "created_at": utcnow()}
        for number in range(count)]))
    with statements(cloud) as seen:
        assert len(cloud.control.list_services(ServiceQuery())) == count + 3
    assert len(seen) == 2, seen


def test_reason_and_forced_down_are_kept_until_they_are_changed(cloud: SmallCloud) -> None:
    def update(**fields: Any) -> Any:
        return cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", **fields))
    assert update(disabled=True, disabled_reason="why").disabled_reason == "why"
    down = update(forced_down=True)
    assert (down.up, down.disabled, down.disabled_reason) == (False, True, "why")
    up = update(forced_down=False, disabled=False)
    assert (up.up, up.disabled, up.disabled_reason) == (True, False, None)


def test_services_when_the_cell_is_away_then_they_come_by_name_where_that_is_wanted(cloud: SmallCloud) -> None:
    class Away:
        def reading(self) -> Any:
            raise errors.Unavailable("The database does not answer")
    cell, cloud.deps.cell = cloud.deps.cell, Away()  # type: ignore[assignment]
    try:
        found = cloud.control.list_services(ServiceQuery(with_unknown=True))
        assert [(one.host, one.binary, one.unknown) for one in found] == [
            ("a", "nova-compute", True), ("b", "nova-compute", True)]
        assert len(cloud.control.list_services(ServiceQuery(host="b", with_unknown=True))) == 1
        assert cloud.control.list_services(ServiceQuery(binary="nova-network", with_unknown=True)) == ()
        with pytest.raises(errors.Unavailable):
            cloud.control.list_services(ServiceQuery())
    finally:
        cloud.deps.cell = cell


# --- a service that is taken out

def left_of(cloud: SmallCloud, host: str) -> list[Any]:
    provider = api_tables.providers
    return [*cloud.rows("api", sa.select(provider.c.id).where(provider.c.host == host)),
            *cloud.rows("api", sa.select(api_tables.aggregate_hosts).where(api_tables.aggregate_hosts.c.host == host)),
            *cloud.rows("cell", sa.select(cell_tables.nodes.c.id).where(cell_tables.nodes.c.host == host))]


def in_aggregate(cloud: SmallCloud, host: str) -> int:
    made = cloud.control.create_aggregate(NewAggregate(name="one", availability_zone="london"))
    cloud.control.add_aggregate_host(made.id, host)
    return made.id


def test_delete_takes_nodes_providers_and_membership_along_and_tells_schedulers(cloud: SmallCloud) -> None:
    hosts = HostTable(90.0)
    hosts.update(cloud.control.get_host_states((), True))
    key = in_aggregate(cloud, "b")
    drop(cloud, "b")
    assert left_of(cloud, "b") == [] and cloud.control.get_aggregate(key).hosts == ()
    for reported in cloud.scheduler.received:
        hosts.update(reported)
    assert {view.host for view in hosts.snapshot().hosts} == {"a"}
    with pytest.raises(errors.NotFound):
        cloud.control.delete_service(ServiceQuery(id=service(cloud, "a").id + 7))


def test_delete_is_refused_while_servers_or_migrations_are_on_the_host(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with pytest.raises(errors.Conflict, match="hosting instances"):
        drop(cloud, "a")
    cloud.delete(uuid)
    moving = {"uuid": node_id("move"), "server_uuid": uuid, "type": "resize", "status": "finished",
              "source_compute": "a", "dest_compute": "b", "created_at": utc_now()}
    cloud.write("cell", sa.insert(cell_tables.migrations).values(**moving))
    for host in ("a", "b"):
        with pytest.raises(errors.Conflict, match="in-progress migrations"):
            drop(cloud, host)
    assert left_of(cloud, "a")
    cloud.write("cell", sa.update(cell_tables.migrations).values(status="confirmed"))
    drop(cloud, "a")
    assert left_of(cloud, "a") == []


def test_delete_is_refused_while_a_server_is_on_its_way_to_the_host(cloud: SmallCloud) -> None:
    """It has its claim, and the host's name is not in its row yet."""
    uuid, = cloud.active()
    on_its_way = sa.update(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid)
    cloud.write("cell", on_its_way.values(host=None))
    with pytest.raises(errors.Conflict, match="hosting instances"):
        drop(cloud, "a")
    cleanup = {"host": "a", "server_uuid": uuid, "epoch": 1, "step": "BuildGuests", "arguments": {}}
    cloud.cell.transact(lambda tx: host_cleanups.add(tx, [cleanup]))  # now it is elsewhere, and the host forgets it
    with pytest.raises(errors.Conflict, match="still has pending cleanups"):
        drop(cloud, "a")
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=True))
    drop(cloud, "a")
    assert left_of(cloud, "a") == [] and cloud.claims() == set()


def die_within_delete(cloud: SmallCloud, host: str) -> None:
    """As a crash leaves it: the cell knows the service no more, and the api database still has what was its."""
    cloud.cell.transact(lambda tx: services.delete(tx, services.locked(tx, None, host, "nova-compute")))


def test_delete_when_it_died_half_way_then_the_sweep_takes_the_rest(cloud: SmallCloud) -> None:
    key = in_aggregate(cloud, "b")
    sweep = zones.ForgottenHosts()
    die_within_delete(cloud, "b")
    assert left_of(cloud, "b")
    sweep(cloud.deps)
    assert left_of(cloud, "b")  # once is no proof: it may be about to come back
    sweep(cloud.deps)
    assert left_of(cloud, "b") == [] and cloud.control.get_aggregate(key).hosts == ()
    sweep(cloud.deps)
    assert len(left_of(cloud, "a")) == 2


def test_sweep_when_the_host_registers_again_meanwhile_then_its_provider_stays(cloud: SmallCloud) -> None:
    sweep = zones.ForgottenHosts()
    die_within_delete(cloud, "b")
    sweep(cloud.deps)
    cloud.add_compute("b")
    sweep(cloud.deps)
    sweep(cloud.deps)
    assert len(left_of(cloud, "b")) == 2


# --- hypervisors

@pytest.fixture
def fleet(cloud: SmallCloud) -> SmallCloud:
    for name in ("c", "d_x", "dyx"):
        cloud.add_compute(name)
    return cloud


def test_hypervisors_are_paged_by_the_database(fleet: SmallCloud) -> None:
    assert hostnames(fleet) == ["a", "b", "c", "d_x", "dyx"]
    first = fleet.control.list_hypervisors(HypervisorQuery(limit=2))
    assert hostnames(fleet, limit=2, marker=first[-1].uuid) == ["c", "d_x"]
    assert hostnames(fleet, limit=2, marker=str(first[-1].id)) == ["c", "d_x"]
    assert hostnames(fleet, limit=0) == []
    with pytest.raises(errors.Invalid, match="marker"):
        hostnames(fleet, marker=node_id("nobody"))


def test_hypervisors_by_part_of_the_name_take_it_literally(fleet: SmallCloud) -> None:
    assert hostnames(fleet, hostname_pattern="d_") == ["d_x"]
    assert hostnames(fleet, hostname_pattern="x") == ["d_x", "dyx"]
    assert hostnames(fleet, hostname_pattern="zz") == []


@pytest.mark.parametrize("limit", [1, 5])
def test_page_of_hypervisors_costs_the_same_whatever_its_length(fleet: SmallCloud, limit: int) -> None:
    with statements(fleet) as seen:
        found = fleet.control.list_hypervisors(HypervisorQuery(limit=limit, with_servers=True))
    assert len(found) == limit and len(seen) == 4, seen


def test_hypervisor_tells_what_is_taken_and_by_whom(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    found, = cloud.control.list_hypervisors(HypervisorQuery(uuid=node_id("a"), with_servers=True))
    assert (found.vcpus_used, found.memory_mb_used, found.running_vms) == (1, 64, 1)
    assert [one.uuid for one in found.servers or ()] == [uuid]
    statistics = cloud.control.get_hypervisor_statistics()
    assert (statistics.count, statistics.vcpus, statistics.vcpus_used, statistics.free_ram_mb) == (2, 200, 1, 199_936)


def test_uptimes_when_asked_for_then_they_are_read_and_no_host_is_asked(cloud: SmallCloud) -> None:
    booted = utcnow() - datetime.timedelta(days=2, hours=3, minutes=4, seconds=5)
    for host in ("a", "b"):
        cloud.report(host, [host], version=2, uptime=HostUptime(booted_at=booted, users=1, load=(0.5, 1.25, 2.0)))
    cloud.write("cell", sa.update(cell_tables.services).where(
        cell_tables.services.c.host == "b").values(last_seen_at=later(-100)))
    with statements(cloud) as seen:
        reported = {one.host: one.uptime for one in cloud.control.list_hypervisors(HypervisorQuery(with_uptime=True))}
    assert len(seen) == 3 and reported["b"] is None  # it is down
    assert all(compute.asked("get_host_uptime") == [] for compute in cloud.computes.values())
    assert re.fullmatch(r" \d\d:\d\d:\d\d up 2 days,  3:04,  1 user,  load average: 0.50, 1.25, 2.00",
                        reported["a"] or "")
    assert [one.uptime for one in cloud.control.list_hypervisors(HypervisorQuery())] == [None, None]


def test_uptime_when_an_older_host_has_not_told_it_then_there_is_none(cloud: SmallCloud) -> None:
    assert [one.uptime for one in cloud.control.list_hypervisors(HypervisorQuery(with_uptime=True))] == [None, None]


def test_hypervisor_of_another_uuid_is_not_found(cloud: SmallCloud) -> None:
    with pytest.raises(errors.NotFound) as refused:
        cloud.control.list_hypervisors(HypervisorQuery(uuid=node_id("zz")))
    assert (refused.value.code, refused.value.data) == ("hypervisor.not_found", {"id": node_id("zz")})


# --- whole hosts

def test_host_tells_what_its_flavors_promise_by_project(cloud: SmallCloud) -> None:
    cloud.active(2)
    usage = cloud.control.get_host_usage("a")
    assert usage.total == Amounts(vcpus=100, memory_mb=100_000, disk_gb=1000)
    assert usage.used == usage.promised == Amounts(vcpus=2, memory_mb=128, disk_gb=2)
    assert usage.projects == {"demo": usage.promised}
    empty = cloud.control.get_host_usage("b")
    assert (empty.promised, empty.projects) == (Amounts(), {})
    for host in ("net", "nobody"):
        with pytest.raises(errors.NotFound, match=host):
            cloud.control.get_host_usage(host)


def test_power_of_a_host_is_its_drivers_to_change(cloud: SmallCloud) -> None:
    def change(host: str) -> str:
        return cloud.control.change_host_power(HostPowerChange(host=host, action="reboot"))
    assert change("a") == "reboot" and cloud.computes["a"].asked("change_host_power") == [("a", "reboot")]
    with pytest.raises(errors.NotFound):
        change("net")
    cloud.control.update_service(ServiceUpdate(host="b", binary="nova-compute", forced_down=True))
    with pytest.raises(errors.Invalid, match="unavailable"):
        change("b")
    assert cloud.computes["b"].asked("change_host_power") == []

    cloud.computes["a"].given(change_host_power=errors.Unavailable("host a did not answer"))
    with pytest.raises(errors.Invalid, match="unavailable"):
        change("a")
