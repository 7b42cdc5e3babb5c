"""A fixed address of nova-network from its taking to its end: leases, what is left under one, quota, MACs, IPv6."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.networking.network_options import NetworkOptions
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.upkeep import periodic
from nova.db.models import cell as tables
from nova.db.network import addresses, free_addresses
from nova.db.network.addresses import AddressRequest, Terms
from nova.db.sql.types import later
from nova.model.base import Scope
from nova.model.network.network_managers import FLAT, FLAT_DHCP, NetworkKind
from nova.model.network.networks import LeaseChange, NewNetwork, RequestedNetwork
from nova.model.quota.quotas import QuotaUpdate
from tests.fakes.small_cloud import DEMO, SmallCloud

FIXED = tables.fixed_addresses


def configured(cloud: SmallCloud, manager: NetworkKind = FLAT_DHCP, **options: Any) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings,
                                               networking=NetworkOptions(manager=manager, **options))
    cloud.deps.networking = NovaNetwork(cloud.deps)


def network(cloud: SmallCloud) -> str:
    return cloud.control.list_networks(Scope())[0].uuid


def row_of(cloud: SmallCloud, address: str) -> Any:
    return cloud.rows("cell", sa.select(FIXED).where(FIXED.c.address == address))[0]


def leased(cloud: SmallCloud, uuid: str) -> tuple[str, str]:
    """The server's address and MAC, which has a lease now."""
    [one] = cloud.server(uuid).interfaces
    address = one.addresses[0].address
    report(cloud, "add", address, one.mac)
    assert row_of(cloud, address).leased
    return address, one.mac


def report(cloud: SmallCloud, action: str, address: str, mac: str) -> None:
    cloud.hosts.report_lease("net", LeaseChange(host="net", action=action, mac=mac, address=address))


def limit(cloud: SmallCloud, value: int) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"fixed_ips": value}, force=True))


# -- leases

def test_address_with_a_lease_when_forced_release_is_off_waits_for_the_release(cloud: SmallCloud) -> None:
    configured(cloud, force_dhcp_release=False)
    address, mac = leased(cloud, cloud.active()[0])
    cloud.delete(cloud.rows("cell", sa.select(tables.servers.c.uuid))[0].uuid)
    left = row_of(cloud, address)
    assert left.server_uuid is None and left.left_at is not None
    assert cloud.server(cloud.active()[0]).interfaces[0].addresses[0].address != address, "it is not given again"
    report(cloud, "del", address, mac)
    free = row_of(cloud, address)
    assert (free.left_at, free.leased, free.server_uuid) == (None, False, None)
    assert cloud.server(cloud.active()[0]).interfaces[0].addresses[0].address == address


@pytest.mark.parametrize(("manager", "force"), [(FLAT_DHCP, True), (FLAT, False)])
def test_address_with_a_lease_when_it_need_not_wait_is_free_at_once(cloud: SmallCloud, manager: NetworkKind,
                                                                    force: bool,
                                                                    ) -> None:
    configured(cloud, manager, force_dhcp_release=force)
    uuid = cloud.active()[0]
    address, _mac = leased(cloud, uuid)
    cloud.delete(uuid)
    assert row_of(cloud, address).left_at is None


def test_address_without_a_lease_is_free_at_once(cloud: SmallCloud) -> None:
    configured(cloud, force_dhcp_release=False)
    uuid = cloud.active()[0]
    address = cloud.server(uuid).interfaces[0].addresses[0].address
    cloud.delete(uuid)
    assert row_of(cloud, address).left_at is None


def test_left_address_is_free_after_its_time_and_not_before(cloud: SmallCloud) -> None:
    configured(cloud, force_dhcp_release=False, fixed_ip_disassociate_timeout=600)
    uuid = cloud.active()[0]
    address, mac = leased(cloud, uuid)
    cloud.delete(uuid)
    periodic.free_left_addresses(cloud.deps)
    assert row_of(cloud, address).left_at is not None
    cloud.write("cell", sa.update(FIXED).where(FIXED.c.address == address).values(left_at=later(-601)))
    periodic.free_left_addresses(cloud.deps)
    assert row_of(cloud, address).left_at is None
    again = cloud.active()[0]
    assert cloud.server(again).interfaces[0].addresses[0].address == address
    report(cloud, "del", address, mac)  # late, and the address is another's by now
    assert row_of(cloud, address).server_uuid == again


def test_lease_of_another_host_or_mac_changes_nothing(cloud: SmallCloud) -> None:
    [one] = cloud.server(cloud.active()[0]).interfaces
    address = one.addresses[0].address
    cloud.hosts.report_lease("a", LeaseChange(host="a", action="add", mac=one.mac, address=address))
    report(cloud, "add", address, "fa:16:3e:00:00:00")
    assert not row_of(cloud, address).leased


# -- quota

def test_boot_over_the_quota_of_addresses_is_403_and_fits_again_after_a_delete(cloud: SmallCloud) -> None:
    limit(cloud, 2)
    first, _ = cloud.active(2)
    with pytest.raises(errors.OverQuota, match="fixed_ips"):
        cloud.boot()
    cloud.delete(first)
    cloud.active()
    assert cloud.control.get_quotas("demo", None, True).in_use["fixed_ips"] == 2


def test_one_more_address_over_the_quota_is_403_and_changes_nothing(cloud: SmallCloud) -> None:
    uuid = cloud.active()[0]
    limit(cloud, 2)
    with context.entered(context.internal()):
        cloud.control.add_fixed_address(uuid, network(cloud))
        before = cloud.server(uuid).interfaces
        with pytest.raises(errors.OverQuota, match="already used 2 of 2"):
            cloud.control.add_fixed_address(uuid, network(cloud))
    assert cloud.server(uuid).interfaces == before


def test_take_when_the_limit_is_reached_meanwhile_counts_under_the_lock(cloud: SmallCloud) -> None:
    """Two that were both admitted: who comes second is refused, and nothing of it is left."""
    uuid = cloud.active()[0]
    request = AddressRequest("another", "vm", (RequestedNetwork(network_id=network(cloud)),), "demo")
    with pytest.raises(errors.OverQuota):
        cloud.cell.transact(lambda tx: addresses.bind(tx, [request], Terms(limits={"demo": 1})))
    assert [row.server_uuid for row in cloud.rows("cell", sa.select(tables.vifs))] == [uuid]
    assert cloud.cell.transact(lambda tx: addresses.used(tx, "demo")) == 1


# -- addresses and MACs

def test_second_address_is_shown_and_served_and_given_back_once(cloud: SmallCloud) -> None:
    uuid = cloud.active()[0]
    with context.entered(context.internal()):
        cloud.control.add_fixed_address(uuid, network(cloud))
        [one] = cloud.server(uuid).interfaces
        first, second = (found.address for found in one.addresses)
        served = {host.address for host in cloud.network.served[-1].addresses}
        assert {first, second} <= served
        cloud.control.remove_fixed_address(uuid, first)
        with pytest.raises(errors.Invalid, match=first):
            cloud.control.remove_fixed_address(uuid, first)
    assert [found.address for found in cloud.server(uuid).interfaces[0].addresses] == [second]
    assert first not in {host.address for host in cloud.network.served[-1].addresses}
    assert row_of(cloud, first).server_uuid is None
    with context.entered(context.internal()), pytest.raises(errors.Invalid):
        cloud.control.add_fixed_address(uuid, "00000000-0000-4000-8000-000000000000")


def test_interface_by_the_same_key_is_the_same_and_goes_once(cloud: SmallCloud) -> None:
    uuid = cloud.active()[0]
    request = AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network(cloud)),), "demo")
    first, again = (cloud.cell.transact(lambda tx: addresses.take_interface(tx, request, "key")) for _ in range(2))
    assert first == again
    other = cloud.cell.transact(lambda tx: addresses.take_interface(tx, request, "another"))
    assert other.id != first.id and other.addresses != first.addresses
    for _ in range(2):
        cloud.cell.transact(lambda tx: addresses.drop_interface(tx, uuid, first.id))
    held = {row.address for row in cloud.rows("cell", sa.select(FIXED).where(FIXED.c.server_uuid == uuid))}
    assert first.addresses[0].address not in held and other.addresses[0].address in held


def test_networks_are_bound_in_the_order_they_were_asked_for_and_one_twice(cloud: SmallCloud) -> None:
    other = cloud.control.create_network(NewNetwork(label="other", cidr="10.3.0.0/24", bridge="br103"))[0].uuid
    wanted = (RequestedNetwork(network_id=other), RequestedNetwork(network_id=network(cloud), fixed_ip="10.0.0.77"),
              RequestedNetwork(network_id=other, tag="second"))
    uuid = cloud.active(networks=wanted)[0]
    found = cloud.server(uuid).interfaces
    assert [one.network_id for one in found] == [one.network_id for one in wanted]
    assert found[1].addresses[0].address == "10.0.0.77" and found[2].tag == "second"
    assert len({one.mac for one in found}) == 3
    routes = {host.vif_id: host.default_route for state in cloud.network.served[-2:] for host in state.addresses}
    assert [routes[one.id] for one in found] == [True, False, False]


def test_mac_when_all_that_are_tried_are_taken_then_nothing_is_left(cloud: SmallCloud) -> None:
    uuid = cloud.active()[0]
    mac = cloud.server(uuid).interfaces[0].mac
    tried: list[str] = []

    def same() -> str:
        tried.append(mac)
        return mac
    request = AddressRequest("another", "vm", (RequestedNetwork(network_id=network(cloud)),), "demo")
    with pytest.raises(errors.Unavailable, match="3 attempts"):
        cloud.cell.transact(lambda tx: addresses.bind(tx, [request], Terms(mac_attempts=3, new_mac=same)))
    assert len(tried) == 3
    assert not cloud.rows("cell", sa.select(FIXED).where(FIXED.c.server_uuid == "another"))


@pytest.mark.parametrize(("back_end", "lower"), [("rfc2462", True), ("account_identifier", False)])
def test_ipv6_address_follows_from_the_mac(cloud: SmallCloud, back_end: str, lower: bool) -> None:
    configured(cloud, ipv6_backend=back_end)
    [both] = cloud.control.create_network(NewNetwork(label="both", cidr="10.4.0.0/24", cidr_v6="fd00:1::/64",
                                                     bridge="br104"))
    uuid = cloud.active(networks=(RequestedNetwork(network_id=both.uuid),))[0]
    [one] = cloud.server(uuid).interfaces
    fourth, sixth = one.addresses
    assert (fourth.version, sixth.version) == (4, 6)
    assert ipaddress.ip_address(sixth.address) in ipaddress.ip_network("fd00:1::/64")
    tail = int(one.mac.replace(":", "")[6:], 16)
    assert int(ipaddress.ip_address(sixth.address)) & 0xFFFFFF == tail
    assert (int(ipaddress.ip_address(sixth.address)) >> 24 & 0xFFFF == 0xFFFE) is lower
    assert [(subnet.version, subnet.gateway) for subnet in one.subnets] == [(4, "10.4.0.1"), (6, "fd00:1::1")]
    wanted = (RequestedNetwork(network_id=both.uuid, fixed_ip="fd00:1::9"),)
    with pytest.raises(errors.Invalid, match="MAC"):
        cloud.boot(networks=wanted)


def test_network_of_ipv6_alone_has_interfaces_without_a_pool(cloud: SmallCloud) -> None:
    [sixth] = cloud.control.create_network(NewNetwork(label="six", cidr_v6="fd00:2::/64", bridge="br106"))
    uuid = cloud.active(networks=(RequestedNetwork(network_id=sixth.uuid),))[0]
    [one] = cloud.server(uuid).interfaces
    assert [address.version for address in one.addresses] == [6]
    with pytest.raises(errors.Conflict):
        cloud.control.delete_network(sixth.uuid)
    cloud.delete(uuid)
    cloud.control.delete_network(sixth.uuid)


def test_address_that_is_set_aside_is_given_to_nobody(cloud: SmallCloud) -> None:
    cloud.control.reserve_fixed_address("10.0.0.2", True)
    assert cloud.control.get_fixed_address("10.0.0.2").reserved
    assert cloud.server(cloud.active()[0]).interfaces[0].addresses[0].address == "10.0.0.3"
    cloud.control.reserve_fixed_address("10.0.0.2", False)
    assert cloud.server(cloud.active()[0]).interfaces[0].addresses[0].address == "10.0.0.2"
    for call in (cloud.control.get_fixed_address, lambda one: cloud.control.reserve_fixed_address(one, True)):
        with pytest.raises(errors.NotFound):
            call("10.9.9.9")
        with pytest.raises(errors.Invalid):
            call("ten")
    mine = [row for row in cloud.control.list_fixed_addresses("net") if row.server_uuid]
    assert {row.hostname for row in mine} == {"vm"} and {row.address for row in mine} == {"10.0.0.2", "10.0.0.3"}


def test_vpn_server_gets_the_address_that_is_set_aside_for_it_once(cloud: SmallCloud) -> None:
    cloud.write("cell", sa.update(tables.networks).values(vpn_private_address="10.0.0.2"))
    cloud.control.reserve_fixed_address("10.0.0.2", True)
    request = RequestedNetwork(network_id=network(cloud), vpn=True)
    requests = [AddressRequest(name, "vpn", (request,), "demo") for name in ("one", "two")]
    made = cloud.cell.transact(lambda tx: addresses.bind(tx, requests[:1]))
    assert made["one"][0].addresses[0].address == "10.0.0.2"
    with pytest.raises(errors.Invalid, match="10.0.0.2"):
        cloud.cell.transact(lambda tx: addresses.bind(tx, requests[1:]))
    cloud.cell.transact(lambda tx: addresses.unbind(tx, ["one"]))
    assert row_of(cloud, "10.0.0.2").reserved and not cloud.cell.transact(lambda tx: free_addresses.pick(
        tx, row_of(cloud, "10.0.0.2").network_id, 0, ["10.0.0.2"]))


def test_addresses_on_the_named_network_are_the_new_servers_access_addresses(cloud: SmallCloud) -> None:
    configured(cloud, default_access_ip_network_name="private")
    chosen, = cloud.active(access_ip_v4="192.0.2.7")
    plain, = cloud.active()
    other = cloud.control.create_network(NewNetwork(label="other", cidr="10.3.0.0/24", bridge="br103"))[0].uuid
    elsewhere, = cloud.active(networks=(RequestedNetwork(network_id=other),))
    assert cloud.server(chosen).access_ip_v4 == "192.0.2.7"
    assert cloud.server(plain).access_ip_v4 == cloud.server(plain).interfaces[0].addresses[0].address
    assert cloud.server(elsewhere).access_ip_v4 is None


@pytest.mark.parametrize("is_late", [False, True], ids=["at-once", "while-it-is-attached"])
def test_attach_when_the_address_is_taken_then_it_is_a_conflict(cloud, is_late):
    uuid, other = cloud.active(2)
    address = cloud.server(other).interfaces[0].addresses[0].address
    wish = RequestedNetwork(network_id=network(cloud), fixed_ip=address)
    if is_late:  # it was free when it was looked at
        cloud.deps.networking.check_interface = lambda server, requested: requested
    with context.entered(DEMO), pytest.raises(errors.Conflict, match=f"{address}.*in use"):
        cloud.control.attach_interface(uuid, wish)


def test_attach_when_the_address_is_of_no_network_then_it_is_invalid(cloud):
    [uuid] = cloud.active()
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="192.0.2.77"):
        cloud.control.attach_interface(uuid, RequestedNetwork(network_id=network(cloud), fixed_ip="192.0.2.77"))
