"""Aggregates, zones and hosts on each kind of database: their SQL means the same, and changes count one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.host import aggregates, hosts, reports, services
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.sql.engine import Connection, Database
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import Registration
from nova.model.scheduling.decisions import Resources
from tests.fakes.rows import add_servers, new_uuid, server_row
from tests.functional.backends import KINDS, Absent


@pytest.fixture(scope="module", params=list(KINDS))
def databases(backends, request: pytest.FixtureRequest) -> Iterator[tuple[Database, Database]]:
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = Database(server.create("groups_api")), Database(server.create("groups_cell"))
    for database, tables in zip(made, (api_tables, cell_tables), strict=True):
        tables.metadata.create_all(database.engine)
    yield made
    for database in made:
        database.dispose()


@pytest.fixture
def api(databases: tuple[Database, Database]) -> Database:
    for table in api_tables.metadata.sorted_tables:
        databases[0].transact(lambda tx, table=table: tx.execute(sa.delete(table)))
    return databases[0]


@pytest.fixture
def cell(databases: tuple[Database, Database]) -> Database:
    for table in cell_tables.metadata.sorted_tables:
        databases[1].transact(lambda tx, table=table: tx.execute(sa.delete(table)))
    return databases[1]


def make(api: Database, name: str, zone: str | None = None, *members: str) -> int:
    def write(tx: Connection) -> int:
        aggregates.changing(tx)
        key = aggregates.insert(tx, name, zone)
        for host in members:
            aggregates.add_host(tx, key, host)
        return key
    return api.transact(write)


def beside(count: int, work: Any) -> list[Any]:
    """What each of so many threads got, an exception for one that raised."""
    got: list[Any] = []

    def run(number: int) -> None:
        try:
            got.append(work(number))
        except Exception as error:
            got.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return got


def test_change_when_many_come_at_once_then_each_is_counted(api: Database) -> None:
    got = beside(8, lambda number: make(api, f"g{number}"))
    assert not [one for one in got if isinstance(one, Exception)]
    with api.reading() as tx:
        assert aggregates.version(tx) == 9
        assert len(aggregates.select(tx)) == 8


def test_name_when_many_take_it_at_once_then_one_has_it(api: Database) -> None:
    got = beside(6, lambda number: make(api, "same"))
    assert sorted(type(one).__name__ for one in got) == ["NameTaken"] * 5 + ["int"]
    make(api, "Same")  # names differ by case everywhere


def test_metadata_is_replaced_by_key(api: Database) -> None:
    key = make(api, "one", "london", "a")
    api.transact(lambda tx: aggregates.write_metadata(tx, key, {"availability_zone": "paris", "A": "1", "a": "2"}))
    api.transact(lambda tx: aggregates.write_metadata(tx, key, {"a": None, "none": None}))
    with api.reading() as tx:
        assert aggregates.get(tx, key).metadata == {"A": "1", "availability_zone": "paris"}
        assert aggregates.metadata_of(tx, "a") == [{"A": "1", "availability_zone": "paris"}]
        assert aggregates.zones(tx) == aggregates.zones(tx, ["a", "b"]) == {"a": "paris"}
        assert aggregates.hosts_in_zone(tx, "paris") == {"a"} and not aggregates.hosts_in_zone(tx, "Paris")


def test_claim_tells_the_zone_of_its_host(api: Database) -> None:
    make(api, "plain", None, "h1", "h2")
    make(api, "one", "london", "h1")
    claimed = {}
    for name in ("h1", "h2"):
        node = Node(name=name, uuid=new_uuid(), hypervisor_type="QEMU", vcpus=4, memory_mb=1000, local_gb=10)
        api.transact(lambda tx, node=node: reports.write_providers(tx, Inventory(
            host=node.name, host_id=new_uuid(), version=1, nodes=(node,))))
        with api.reading() as tx:
            provider = hosts.provider_rows(tx, uuids=[node.uuid])[node.uuid].id
        uuid = new_uuid()
        api.transact(lambda tx, uuid=uuid: ledger.open_rows(tx, [
            {"server_uuid": uuid, "project_id": "p", "user_id": "u", "vcpus": 1, "memory_mb": 1}]))
        claim = claims.Claim(uuid, 1, provider, Resources(vcpus=1, memory_mb=10, disk_gb=1))
        results, (usage,) = api.transact(lambda tx, claim=claim: claims.claim(tx, [claim]))
        assert results == {uuid: None}
        claimed[name] = usage.zone
    assert claimed == {"h1": "london", "h2": None}


def test_provider_when_it_was_reported_again_then_it_is_not_dropped(api: Database) -> None:
    node = Node(name="h", uuid=new_uuid(), hypervisor_type="QEMU", vcpus=4, memory_mb=1000, local_gb=10)
    inventory = Inventory(host="h", host_id=new_uuid(), version=1, nodes=(node,))
    api.transact(lambda tx: reports.write_providers(tx, inventory))
    with api.reading() as tx:
        before = {row.id: row.generation for row in hosts.providers_of_hosts(tx, "h")}
    api.transact(lambda tx: reports.write_providers(tx, inventory))
    api.transact(lambda tx: hosts.drop_providers(tx, before))
    with api.reading() as tx:
        after = {row.id: row.generation for row in hosts.providers_of_hosts(tx)}
    assert after.keys() == before.keys()
    api.transact(lambda tx: hosts.drop_providers(tx, after))
    with api.reading() as tx:
        assert not hosts.providers_of_hosts(tx) and not hosts.provider_rows(tx)


def test_nodes_are_paged_and_found_by_part_of_their_name(cell: Database) -> None:
    for name in ("n%1", "n_1", "n11", "N_1"):
        cell.transact(lambda tx, name=name: services.register(tx, Registration(
            host=name, binary="nova-compute", topic="compute", host_id=new_uuid())))
        node = Node(name=name, uuid=new_uuid(), hypervisor_type="QEMU")
        cell.transact(lambda tx, node=node: hosts.write_nodes(tx, Inventory(
            host=node.name, host_id=new_uuid(), version=1, nodes=(node,))))

    def names(**wanted: Any) -> list[str]:
        with cell.reading() as tx:
            return [row.name for row in hosts.node_rows(tx, hosts.NodesWanted(**wanted))]
    assert (names(name_part="n_"), names(name_part="%"), names(name_part="1")) == (
        ["n_1"], ["n%1"], ["n%1", "n_1", "n11", "N_1"])
    with cell.reading() as tx:
        first = hosts.node_rows(tx)[0]
        assert hosts.node_id(tx, first.uuid) == hosts.node_id(tx, str(first.id)) == first.id
        assert hosts.node_id(tx, new_uuid()) is None and hosts.node_id(tx, "9" * 18) is None
    assert names(after=first.id, limit=2) == ["n_1", "n11"]
    assert names(limit=0) == []


def test_zone_of_servers_is_written_where_it_differs(cell: Database) -> None:
    one, two, gone = add_servers(cell, server_row(host="h1", pinned_availability_zone="x"),
                                 server_row(host="h1", availability_zone="x"), server_row(host="h2"))
    cell.transact(lambda tx: hosts.write_zone(tx, ["h1"], "y"))
    with cell.reading() as tx:
        assert sorted(hosts.zones_shown(tx), key=str) == [("h1", "y"), ("h2", None)]
        assert hosts.has_pinned(tx, "h1", "x") and not hosts.has_pinned(tx, "h1", "y")
        assert hosts.with_servers(tx, ["h2", "h1", "h3"]) == ["h1", "h2"]
        assert len(hosts.promised_on(tx, "h1")) == 2
