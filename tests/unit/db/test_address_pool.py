"""Addresses: each one server's, the same for who asks again, free again when given back."""

from __future__ import annotations

import ipaddress

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.network import networks
from nova.db.sql.engine import Database
from nova.model.network.networks import Interface, RequestedNetwork
from tests.fakes.rows import add_network, add_servers, new_uuid, server_row


def bind(cell: Database, network: str, *uuids: str, fixed_ip: str | None = None) -> dict[str, tuple[Interface, ...]]:
    requests = [networks.AddressRequest(uuid, "vm",
                                        (RequestedNetwork(network_id=network, fixed_ip=fixed_ip),)) for uuid in uuids]
    return cell.transact(lambda tx: networks.bind(tx, requests))


def address_of(bound: dict[str, tuple[Interface, ...]], uuid: str) -> str:
    return bound[uuid][0].addresses[0].address


def taken(cell: Database) -> dict[str, str]:
    """address -> server, of every address and its interface."""
    addresses, vifs = tables.fixed_addresses, tables.vifs
    with cell.reading() as tx:
        return {row.address: row.server_uuid for row in tx.execute(
            sa.select(addresses.c.address, vifs.c.server_uuid).join_from(addresses, vifs,
                                                                         vifs.c.uuid == addresses.c.vif_uuid))}


def test_bind_when_many_ask_at_once_then_each_has_an_address_and_a_mac_of_its_own(cell):
    network, uuids = add_network(cell), [new_uuid() for _ in range(5)]
    bound = bind(cell, network, *uuids)
    addresses = {address_of(bound, uuid) for uuid in uuids}
    assert len(addresses) == len({bound[uuid][0].mac for uuid in uuids}) == 5
    assert all(ipaddress.ip_address(one) in ipaddress.ip_network("10.0.0.0/28") for one in addresses)
    assert taken(cell) == {address_of(bound, uuid): uuid for uuid in uuids}


def test_bind_when_it_is_repeated_then_the_answer_is_the_same(cell):
    network, uuid = add_network(cell), new_uuid()
    assert bind(cell, network, uuid) == bind(cell, network, uuid)
    assert len(taken(cell)) == 1


def test_bind_when_the_pool_is_empty_then_nobody_gets_anything(cell):
    network = add_network(cell, "10.0.0.0/29")
    bound = bind(cell, network, *(new_uuid() for _ in range(2)))
    with cell.reading() as tx:
        free = tx.execute(sa.select(sa.func.count()).where(
            tables.fixed_addresses.c.reserved.is_(False), tables.fixed_addresses.c.server_uuid.is_(None))).scalar_one()
    with pytest.raises(errors.network.NoAddress):
        bind(cell, network, *(new_uuid() for _ in range(free + 1)))
    assert set(taken(cell).values()) == set(bound)
    bind(cell, network, *(new_uuid() for _ in range(free)))


def test_bind_when_an_address_is_named_then_that_one_is_given_once(cell):
    network, first, second = add_network(cell), new_uuid(), new_uuid()
    assert address_of(bind(cell, network, first, fixed_ip="10.0.0.9"), first) == "10.0.0.9"
    for asked in ("10.0.0.9", "10.0.0.0", "10.0.0.15", "192.168.0.1"):  # a server's, reserved, reserved, foreign
        with pytest.raises(errors.network.AddressTaken):
            bind(cell, network, second, fixed_ip=asked)
    assert set(taken(cell)) == {"10.0.0.9"}


def test_bind_when_the_network_is_unknown_then_it_is_not_found(cell):
    with pytest.raises(errors.network.NotFound):
        bind(cell, new_uuid(), new_uuid())


def test_unbind_when_asked_twice_then_the_addresses_are_free_for_others(cell):
    network, uuid = add_network(cell), new_uuid()
    address = address_of(bind(cell, network, uuid), uuid)
    for _ in range(2):
        cell.transact(lambda tx: networks.unbind(tx, [uuid]))
        assert taken(cell) == {}
    other = new_uuid()
    assert address_of(bind(cell, network, other, fixed_ip=address), other) == address


def test_on_host_when_addresses_change_then_the_whole_state_is_told_with_a_newer_stamp(cell):
    network = add_network(cell)
    [uuid] = add_servers(cell, server_row(hostname="web"))

    def reported() -> networks.NetworkOnHost:
        with cell.reading() as tx:
            return networks.on_host(tx, uuids_=[network])[0]
    before = reported()
    bound = bind(cell, network, uuid)
    with_it = reported()
    cell.transact(lambda tx: networks.unbind(tx, [uuid]))
    after = reported()
    assert (before.addresses, after.addresses) == ((), ())
    [host] = with_it.addresses
    assert (host.address, host.mac, host.hostname, host.server_uuid) == (
        address_of(bound, uuid), bound[uuid][0].mac, "web", uuid)
    assert before.version <= with_it.version <= after.version


def test_delete_when_an_address_is_used_then_the_network_stays(cell):
    network, uuid = add_network(cell), new_uuid()
    bind(cell, network, uuid)
    with pytest.raises(errors.network.InUse):
        cell.transact(lambda tx: networks.delete(tx, network))
    cell.transact(lambda tx: networks.unbind(tx, [uuid]))
    cell.transact(lambda tx: networks.delete(tx, network))
    with pytest.raises(errors.network.NotFound):
        cell.transact(lambda tx: networks.delete(tx, network))
