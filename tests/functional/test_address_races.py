"""Fixed addresses and networks taken by many at once, on each database for real: none twice, quota never exceeded."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.network import addresses, free_addresses, host_addresses, network_pools, networks
from nova.db.network.addresses import AddressRequest, Terms
from nova.db.sql.engine import Database
from nova.db.sql.types import later
from nova.model.network.networks import RequestedNetwork
from tests.fakes.racing import together
from tests.fakes.rows import add_network, add_servers, server_row

WRITERS = 8
FIXED = tables.fixed_addresses


def test_quota_of_addresses_when_many_take_at_once_then_it_is_never_exceeded(cell: Database) -> None:
    network = add_network(cell, "10.20.0.0/24")
    uuids = add_servers(cell, *(server_row(project_id="limited") for _ in range(WRITERS * 2)))

    def take(uuid: str) -> Any:
        request = AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),), "limited")
        return cell.transact(lambda tx: addresses.bind(tx, [request], Terms(limits={"limited": 5})))
    answers = [one for start in range(2) for one in
               together([lambda uuid=uuid: take(uuid) for uuid in uuids[start::2]])]
    assert sum(not isinstance(one, errors.NovaError) for one in answers) == 5
    assert {type(one) for one in answers if isinstance(one, errors.NovaError)} == {errors.quota.FixedIps}
    with cell.reading() as tx:
        assert addresses.used(tx, "limited") == 5


def test_two_hundred_addresses_taken_and_given_back_at_once_are_each_ones_own(cell: Database) -> None:
    network = add_network(cell, "10.21.0.0/24")
    uuids = add_servers(cell, *(server_row() for _ in range(200)))

    def take(mine: list[str]) -> list[Any]:
        return [cell.transact(lambda tx, uuid=uuid: addresses.bind(tx, [
            AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),), "demo")])) for uuid in mine]
    found = together([lambda mine=uuids[start::WRITERS]: take(mine) for start in range(WRITERS)])
    interfaces = [one for part in found for bound in part for [one] in bound.values()]
    assert len({one.addresses[0].address for one in interfaces}) == len({one.mac for one in interfaces}) == 200
    together([lambda mine=uuids[start::WRITERS]: cell.transact(lambda tx: addresses.unbind(tx, mine))
              for start in range(WRITERS)])
    with cell.reading() as tx:
        assert not list(tx.execute(sa.select(tables.vifs).where(tables.vifs.c.server_uuid.in_(uuids))))
        assert not list(tx.execute(sa.select(FIXED.c.id).where(FIXED.c.server_uuid.in_(uuids))))


def test_first_servers_of_a_project_at_once_take_one_network_and_projects_different_ones(cell: Database) -> None:
    for number in range(WRITERS):
        uuid = add_network(cell, f"10.22.{number}.0/28")
        cell.transact(lambda tx, uuid=uuid, number=number: tx.execute(
            sa.update(tables.networks).where(tables.networks.c.uuid == uuid).values(vlan=200 + number)))
    same = together([lambda: cell.transact(lambda tx: network_pools.first_of_project(tx, "one"))] * WRITERS)
    assert len({network.uuid for network in same}) == 1
    each = together([lambda project=f"p{number}": cell.transact(
        lambda tx: network_pools.first_of_project(tx, project)) for number in range(WRITERS)])
    taken = [network.uuid for network in each if not isinstance(network, errors.NovaError)]
    assert len(taken) == len(set(taken)) == WRITERS - 1
    assert [type(one) for one in each if isinstance(one, errors.NovaError)] == [errors.network.NoneFree]


def test_first_guests_of_a_host_at_once_give_it_one_address(cell: Database) -> None:
    network = add_network(cell, "10.23.0.0/24", multi_host=True)
    uuids = add_servers(cell, *(server_row() for _ in range(WRITERS)))

    def take(uuid: str) -> Any:
        request = AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),), "demo", "h")
        return cell.transact(lambda tx: addresses.bind(tx, [request]))
    bound = together([lambda uuid=uuid: take(uuid) for uuid in uuids])
    [gateway] = {one.gateway for answer in bound for [one] in answer.values()}
    assert gateway not in {one.addresses[0].address for answer in bound for [one] in answer.values()}
    with cell.reading() as tx:
        [(host, state)] = networks.states(tx, uuids_=[network])
    assert (host, state.host_address, len(state.addresses)) == ("h", gateway, WRITERS)
    cell.transact(lambda tx: addresses.unbind(tx, uuids))
    with cell.reading() as tx:
        assert host_addresses.unused(tx, -60) == [(network, "h")]
    cell.transact(lambda tx: host_addresses.release_own(tx, [network], "h"))
    with cell.reading() as tx:
        assert networks.states(tx, uuids_=[network]) == []


def test_left_addresses_wait_for_their_release_or_their_time(cell: Database) -> None:
    network = add_network(cell, "10.24.0.0/28")
    uuids = add_servers(cell, *(server_row() for _ in range(2)))
    requests = [AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),), "demo") for uuid in uuids]
    bound = cell.transact(lambda tx: addresses.bind(tx, requests))
    cell.transact(lambda tx: tx.execute(sa.update(tables.networks).where(tables.networks.c.uuid == network)
                                        .values(host="net")))
    first, second = (bound[uuid][0] for uuid in uuids)
    for one in (first, second):
        cell.transact(lambda tx, one=one: free_addresses.note_lease(tx, "net", one.addresses[0].address, one.mac, True))
    cell.transact(lambda tx: addresses.unbind(tx, uuids, keep_leased=True))

    def left() -> set[str]:
        with cell.reading() as tx:
            return set(tx.execute(sa.select(FIXED.c.address).where(FIXED.c.left_at.is_not(None))).scalars())
    assert left() == {first.addresses[0].address, second.addresses[0].address}
    cell.transact(lambda tx: free_addresses.note_lease(tx, "net", first.addresses[0].address, first.mac, False))
    assert left() == {second.addresses[0].address}
    cell.transact(lambda tx: tx.execute(sa.update(FIXED).where(FIXED.c.left_at.is_not(None)).values(left_at=later(-9))))
    assert cell.transact(lambda tx: free_addresses.free_stale(tx, 5)) == 1 and left() == set()
