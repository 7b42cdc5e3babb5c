"""Networks that each compute host serves for its own guests: a host's own address, who is told what, and moves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.networking.network_options import NetworkOptions
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.upkeep import periodic
from nova.db.models import cell as tables
from nova.db.network import addresses, host_addresses
from nova.db.sql.types import later
from nova.model.base import Scope
from nova.model.host.services import Registration
from nova.model.network.floating import FloatingAssociation, FloatingRange
from nova.model.network.networks import Network, NetworkOnHost, NewNetwork, RequestedNetwork
from nova.rpc.contracts.network import NetworkRPC
from tests.fakes.daemons import FakeNetworkHost
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, SmallCloud

FIXED = tables.fixed_addresses


class ManyHosts:
    """A multi-host network, and nova-network on both compute hosts."""

    def __init__(self, cloud: SmallCloud, hosts: tuple[str, ...] = ("a", "b"), **options: Any) -> None:
        self.cloud = cloud
        cloud.deps.settings = dataclasses.replace(cloud.deps.settings, networking=NetworkOptions(**options))
        cloud.deps.networking = NovaNetwork(cloud.deps)
        self.served = {host: FakeNetworkHost() for host in hosts}
        for host, daemon in self.served.items():
            cloud.daemons.register(Registration(host=host, binary="nova-network", topic="network"))
            cloud.bus.serve(NetworkRPC, daemon, host)
        self.network = self.make("many", "10.5.0.0/24")

    def make(self, label: str, cidr: str, **fields: Any) -> Network:
        return self.cloud.control.create_network(NewNetwork(label=label, cidr=cidr, bridge=f"br{label}"[:15],
                                                            multi_host=True, **fields))[0]

    def boot(self, host: str, network: Network | None = None) -> str:
        self.cloud.scheduler.choices.sort(key=lambda one: one.host != host)
        return self.cloud.active(networks=(RequestedNetwork(network_id=(network or self.network).uuid),))[0]

    def state(self, host: str) -> NetworkOnHost:
        """What the host was told last."""
        return self.served[host].served[-1]

    def own(self) -> dict[str, str]:
        return {row.host: row.address for row in self.cloud.rows("cell", sa.select(FIXED).where(
            FIXED.c.host.is_not(None), FIXED.c.server_uuid.is_(None)))}


@pytest.fixture
def many(cloud: SmallCloud) -> ManyHosts:
    return ManyHosts(cloud)


def test_first_guest_of_a_host_gives_it_an_address_of_its_own_which_is_the_guests_gateway(many: ManyHosts) -> None:
    assert many.network.host is None
    uuid = many.boot("a")
    [one] = many.cloud.server(uuid).interfaces
    own = many.own()["a"]
    assert (one.gateway, one.dhcp_server, one.subnets[0].gateway) == (own, own, own)
    assert many.state("a").host_address == own and own != one.addresses[0].address
    many.boot("a")
    assert list(many.own()) == ["a"], "the second guest there uses the same"
    assert not many.served["b"].served, "no guest is there"


def test_each_host_is_told_of_its_own_guests_and_knows_others_by_name(many: ManyHosts) -> None:
    here, there = many.boot("a"), many.boot("b")
    assert len(set(many.own().values())) == 2
    assert {host.server_uuid: host.elsewhere for host in many.state("b").addresses} == {here: True, there: False}
    assert {host.server_uuid for host in many.state("a").addresses} == {here}, "it is told of b's when it next asks"
    for host, mine in (("a", here), ("b", there)):
        [state] = many.cloud.hosts.networks_on_host(host)
        assert [one.server_uuid for one in state.addresses if not one.elsewhere] == [mine]
        assert len(state.addresses) == 2
    assert [state.network.label for state in many.cloud.hosts.networks_on_host("net")] == ["private"]


def test_others_are_told_at_once_where_names_are_to_be_fresh(cloud: SmallCloud) -> None:
    many = ManyHosts(cloud, update_dns_entries=True)
    many.boot("a")
    there = many.boot("b")
    assert there in {host.server_uuid for host in many.state("a").addresses if host.elsewhere}


def test_shared_address_takes_none_of_the_pool(many: ManyHosts) -> None:
    shared = many.make("same", "10.6.0.0/24", share_address=True)
    uuid = many.boot("a", shared)
    assert many.own() == {}
    assert many.state("a").host_address == "10.6.0.1" == many.cloud.server(uuid).interfaces[0].gateway


@pytest.mark.parametrize("teardown", [False, True])
def test_last_guest_leaves_a_host_and_its_own_address_goes_where_it_is_told_to(cloud: SmallCloud, teardown: bool,
                                                                               ) -> None:
    many = ManyHosts(cloud, teardown_unused_network_gateway=teardown)
    first, second = many.boot("a"), many.boot("a")
    cloud.delete(first)
    assert "a" in many.own()
    cloud.delete(second)
    cloud.ended(second)
    assert ("a" in many.own()) is not teardown
    assert many.state("a").addresses == ()


def test_delete_on_a_host_that_is_down_frees_the_address_without_it(many: ManyHosts) -> None:
    uuid = many.boot("a")
    address = many.cloud.server(uuid).interfaces[0].addresses[0].address
    reported = len(many.served["a"].served)
    many.cloud.write("cell", sa.update(tables.services).where(
        tables.services.c.host == "a", tables.services.c.binary == "nova-network").values(last_seen_at=None))
    many.cloud.delete(uuid)
    [row] = many.cloud.rows("cell", sa.select(FIXED).where(FIXED.c.address == address))
    assert (row.server_uuid, row.host) == (None, None)
    assert len(many.served["a"].served) == reported


def test_boot_when_the_hosts_network_service_is_down_fails_there_and_leaves_nothing(many: ManyHosts) -> None:
    many.cloud.write("cell", sa.update(tables.services).where(
        tables.services.c.host.in_(["a", "b"]), tables.services.c.binary == "nova-network").values(last_seen_at=None))
    wanted = (RequestedNetwork(network_id=many.network.uuid),)
    [uuid] = many.cloud.boot(networks=wanted)
    assert many.cloud.ended(uuid).vm_state == "error"
    assert not many.cloud.rows("cell", sa.select(FIXED).where(FIXED.c.server_uuid == uuid))


def test_guest_that_moves_has_the_other_hosts_address_as_its_gateway(many: ManyHosts) -> None:
    uuid = many.boot("a")
    [before] = many.cloud.server(uuid).interfaces
    row = many.cloud.server(uuid)

    def move(tx: Any) -> Any:
        many_rows = addresses.follow(tx, uuid, "b")
        return host_addresses.own_addresses(tx, many_rows, {"b"})
    own = many.cloud.cell.transact(move)
    assert list(own.values()) == [many.own()["b"]]
    assert [one.host for one in many.cloud.rows("cell", sa.select(FIXED).where(FIXED.c.server_uuid == uuid))] == ["b"]
    assert before.gateway == many.own()["a"] and row.host == "a"
    [state] = many.cloud.hosts.networks_on_host("b")
    assert [one.server_uuid for one in state.addresses if not one.elsewhere] == [uuid]


def test_first_guests_at_once_take_one_address_for_their_host(many: ManyHosts) -> None:
    requests = [addresses.AddressRequest(name, "vm", (RequestedNetwork(network_id=many.network.uuid),), "demo", "a")
                for name in ("one", "two", "three")]
    for request in requests:
        many.cloud.cell.transact(lambda tx, request=request: addresses.bind(tx, [request]))
    assert list(many.own()) == ["a"]


def test_own_address_is_kept_while_a_guest_is_there_and_no_server_gets_it(many: ManyHosts) -> None:
    uuid = many.boot("a")
    many.cloud.cell.transact(lambda tx: host_addresses.release_own(tx, [many.network.uuid], "a"))
    assert "a" in many.own()
    own = many.own()["a"]
    others = [many.cloud.server(many.boot("a")).interfaces[0].addresses[0].address for _ in range(2)]
    assert own not in others
    with pytest.raises(errors.Invalid, match="in use"):
        many.cloud.boot(networks=(RequestedNetwork(network_id=many.network.uuid, fixed_ip=own),))
    assert many.cloud.control.list_networks(Scope())
    assert uuid


def test_own_address_that_nobody_gave_back_is_free_after_an_hour(cloud: SmallCloud) -> None:
    many = ManyHosts(cloud, teardown_unused_network_gateway=True)
    many.boot("a")
    uuid = many.boot("b")
    addresses_of = sa.update(FIXED).where(FIXED.c.server_uuid == uuid)
    cloud.write("cell", addresses_of.values(server_uuid=None, vif_uuid=None, host=None))
    periodic.free_unused_gateways(cloud.deps)
    assert set(many.own()) == {"a", "b"}
    cloud.write("cell", sa.update(FIXED).where(FIXED.c.host.is_not(None)).values(updated_at=later(-3601)))
    periodic.free_unused_gateways(cloud.deps)
    assert set(many.own()) == {"a"}


def silent(cloud: SmallCloud, *hosts: str) -> None:
    """nova-network on these does not report."""
    cloud.write("cell", sa.update(tables.services).where(
        tables.services.c.host.in_(hosts), tables.services.c.binary == "nova-network").values(last_seen_at=None))


def test_own_address_of_a_host_that_is_away_stays_its_own_until_it_knows(cloud: SmallCloud) -> None:
    many = ManyHosts(cloud, teardown_unused_network_gateway=True)
    uuid = many.boot("a")
    silent(cloud, "a")
    cloud.delete(uuid)
    cloud.ended(uuid)
    assert set(many.own()) == {"a"}, "the address stands there still"
    cloud.write("cell", sa.update(FIXED).where(FIXED.c.host.is_not(None)).values(updated_at=later(-3601)))
    periodic.free_unused_gateways(cloud.deps)
    assert set(many.own()) == {"a"}
    cloud.daemons.register(Registration(host="a", binary="nova-network", topic="network"))
    periodic.free_unused_gateways(cloud.deps)
    assert many.own() == {} and many.state("a").addresses == ()


def test_last_guest_behind_a_shared_address_leaves_and_its_host_is_told_so(many: ManyHosts) -> None:
    shared = many.make("same", "10.6.0.0/24", share_address=True)
    uuid = many.boot("a", shared)
    float_to(many.cloud, uuid)
    assert len(many.state("a").floating) == 1
    many.cloud.delete(uuid)
    many.cloud.ended(uuid)
    state = many.state("a")
    assert (state.network.uuid, state.addresses, state.floating) == (shared.uuid, (), ())
    assert not many.served["b"].served


def float_to(cloud: SmallCloud, uuid: str) -> str:
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.1"))
    with context.entered(DEMO):
        one = cloud.control.allocate_floating_address("demo", None)
        cloud.control.associate_floating_address(FloatingAssociation(server_uuid=uuid, address=one.address))
    return one.address


def test_floating_address_when_the_guests_host_is_down_is_the_servers_and_nobody_is_asked(many: ManyHosts) -> None:
    uuid = many.boot("a")
    silent(many.cloud, "a")
    reported = len(many.served["a"].served)
    many.served["a"].devices = set()  # it would refuse
    address = float_to(many.cloud, uuid)
    assert [one.address for one in many.cloud.server(uuid).interfaces[0].floating_addresses] == [address]
    assert len(many.served["a"].served) == reported


def test_lease_is_noted_by_the_guests_own_host_alone(many: ManyHosts) -> None:
    from nova.model.network.networks import LeaseChange

    [one] = many.cloud.server(many.boot("a")).interfaces
    address = one.addresses[0].address

    def leased() -> bool:
        return many.cloud.rows("cell", sa.select(FIXED.c.leased).where(FIXED.c.address == address))[0].leased
    for host, found in (("b", False), ("a", True)):
        many.cloud.hosts.report_lease(host, LeaseChange(host=host, action="add", mac=one.mac, address=address))
        assert leased() is found


def test_migrated_server_keeps_its_address_behind_the_new_hosts_gateway(tmp_path: Path, templates: Path) -> None:
    cloud = FailingCloud(tmp_path, templates)
    try:
        many = ManyHosts(cloud, hosts=("host1", "host2"), teardown_unused_network_gateway=True)
        [uuid] = cloud.active(networks=(RequestedNetwork(network_id=many.network.uuid),))
        [before] = cloud.server(uuid).interfaces
        cloud.begin(uuid, "migrate")
        assert cloud.settle(uuid).vm_state == "resized", cloud.journal(uuid)[-1].fault
        row = cloud.server(uuid)
        [after] = row.interfaces
        assert row.host == "host2" and after.addresses == before.addresses and after.id == before.id
        assert before.gateway != after.gateway == many.own()["host2"]
        assert many.state("host2").host_address == after.gateway
        assert [one.server_uuid for one in many.state("host2").addresses if not one.elsewhere] == [uuid]
        assert not [one for one in many.state("host1").addresses if not one.elsewhere], "it serves the guest no more"
        assert "host1" not in many.own()
    finally:
        cloud.close()
