"""What a guest is told of itself through the conductor: who asks is one guest, or nobody."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.neutron.back_end import guest_at
from nova.db.models import cell as tables
from nova.model.guest.guests import DevicePlace, GuestQuery
from nova.model.host.services import Registration
from nova.model.network.networks import NewNetwork, RequestedNetwork
from nova.model.network.ports import NeutronSubnet, Port
from tests.fakes.small_cloud import SmallCloud


@pytest.fixture(autouse=True)
def net(cloud: SmallCloud) -> None:
    """A host with a metadata service."""
    cloud.daemons.register(Registration(host="net", binary="nova-metadata", topic="metadata"))


@pytest.fixture
def twins(cloud: SmallCloud) -> tuple[str, str, str]:
    """Two guests with one address, each in a network of its own that another host serves; the address."""
    one, = cloud.active()
    other, = cloud.control.create_network(NewNetwork(label="other", cidr="10.5.0.0/24", bridge="br101"))
    two, = cloud.active(networks=(RequestedNetwork(network_id=other.uuid),))
    address = cloud.addresses()[one]
    for host in ("net1", "net2"):
        cloud.daemons.register(Registration(host=host, binary="nova-network", topic="network"))
    cloud.write("cell", tables.networks.update().values(host="net1"),
                tables.networks.update().where(tables.networks.c.uuid == other.uuid).values(host="net2"),
                tables.fixed_addresses.update().where(tables.fixed_addresses.c.server_uuid == two)
                .values(address=address))
    return one, two, address


def test_address_when_two_networks_have_it_then_the_host_that_asks_says_which(cloud, twins) -> None:
    one, two, address = twins
    query = GuestQuery(address=address)
    assert (cloud.hosts.guest_facts("net1", query).uuid, cloud.hosts.guest_facts("net2", query).uuid) == (one, two)


def test_address_when_nothing_says_whose_it_is_then_nobody_is_answered(cloud, twins, caplog) -> None:
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("meta", GuestQuery(address=twins[2]))
    assert "2 guests have the address" in caplog.text
    cloud.write("cell", tables.networks.update().values(host="net1"))
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("net1", GuestQuery(address=twins[2]))


def test_address_when_a_network_is_served_by_its_guests_hosts_then_the_host_says_which(cloud, twins) -> None:
    one, two, address = twins
    cloud.write("cell", tables.networks.update().values(multi_host=True, host=None))
    hosts = {uuid: cloud.server(uuid).host for uuid in (one, two)}
    if hosts[one] == hosts[two]:
        hosts[two] = next(host for host in cloud.computes if host != hosts[one])
        cloud.write("cell", tables.servers.update().where(tables.servers.c.uuid == two).values(host=hosts[two]))
    for uuid, host in hosts.items():
        assert cloud.hosts.guest_facts(host, GuestQuery(address=address)).uuid == uuid


def test_address_when_its_server_let_it_go_then_it_is_nobodys(cloud) -> None:
    uuid, = cloud.active()
    address = cloud.addresses()[uuid]
    assert cloud.hosts.guest_facts("net", GuestQuery(address=address)).uuid == uuid
    cloud.write("cell", tables.fixed_addresses.update().where(tables.fixed_addresses.c.address == address)
                .values(left_at=tables.fixed_addresses.c.updated_at))
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("net", GuestQuery(address=address))


def test_project_when_it_is_not_the_servers_then_404(cloud) -> None:
    uuid, = cloud.active()
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("net", GuestQuery(server_uuid=uuid, project_id="other"))


def test_facts_when_asked_by_address_then_a_few_statements(cloud) -> None:
    uuid, = cloud.active(metadata={"a": "1"})
    address, seen = cloud.addresses()[uuid], []
    cloud.hosts.guest_facts("net", GuestQuery(address=address))  # its number of EC2's ids is made once

    def note(*args: Any) -> None:
        if not str(args[2]).startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            seen.append(str(args[2]))
    sa.event.listen(cloud.cell.engine, "before_cursor_execute", note)
    sa.event.listen(cloud.api.engine, "before_cursor_execute", note)
    assert cloud.hosts.guest_facts("net", GuestQuery(address=address)).metadata == {"a": "1"}
    assert len(seen) <= 6, seen


# -- devices

def tagged(cloud: SmallCloud) -> str:
    network = cloud.rows("cell", tables.networks.select())[0].uuid
    uuid, = cloud.active(networks=(RequestedNetwork(network_id=network, tag="front"),))
    return uuid


def test_places_when_a_card_is_tagged_then_its_host_is_asked(cloud) -> None:
    found = cloud.hosts.guest_facts("net", GuestQuery(server_uuid=tagged(cloud)))
    assert found.places == {found.interfaces[0].mac: DevicePlace(bus="pci", address="0000:00:03.0")}


def test_places_when_the_host_knows_none_then_the_rest_is_told(cloud) -> None:
    uuid = tagged(cloud)
    for compute in cloud.computes.values():
        compute.guests.clear()
    assert cloud.hosts.guest_facts("net", GuestQuery(server_uuid=uuid)).places == {}


def test_places_when_nothing_is_tagged_then_no_host_is_asked(cloud) -> None:
    uuid, = cloud.active()
    asked: list[str] = []
    cloud.deps.compute = _Refusing(asked)
    assert cloud.hosts.guest_facts("net", GuestQuery(server_uuid=uuid)).places == {} and asked == []


class _Refusing:
    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def device_places(self, host: str, server_uuid: str) -> Any:
        self.asked.append(server_uuid)
        raise errors.Unavailable()


# -- a load balancer's provider

class Neutron:
    def __init__(self, *ports: Port) -> None:
        self.found, self.asked = ports, []  # type: ignore[var-annotated]

    def subnets(self, ids=(), filters=None):
        self.asked.append(filters)
        return (NeutronSubnet(id="s", network_id="n2", cidr="10.0.0.0/24"),
                NeutronSubnet(id="t", network_id="n1", cidr="10.0.0.0/24")) if self.found else ()

    def ports(self, filters=None):
        self.asked.append(filters)
        return self.found


def test_provider_when_one_port_has_the_address_then_it_is_its_server() -> None:
    neutron = Neutron(Port(id="p", network_id="n1", device_id="u1", device_owner="compute:a", project_id="demo"),
                      Port(id="d", network_id="n1", device_id="dhcp", device_owner="network:dhcp"))
    assert guest_at(neutron, "lb", "10.0.0.5") == ("u1", "demo")
    assert neutron.asked == [{"advanced_service_providers": "lb"},
                             {"fixed_ips": "ip_address=10.0.0.5", "network_id": ["n1", "n2"]}]


@pytest.mark.parametrize("servers", [(), ("",), ("u1", "u2")])
def test_provider_when_it_is_not_one_port_then_400(servers) -> None:
    with pytest.raises(errors.metadata.NotOnePort) as raised:
        guest_at(Neutron(*[Port(id=f"p{n}", network_id="n1", device_id=one, device_owner="compute:a")
                           for n, one in enumerate(servers)]), "lb", "10.0.0.5")
    assert raised.value.status == 400


def test_provider_when_asked_through_the_contract_then_the_back_end_says_who(cloud) -> None:
    uuid, = cloud.active()
    query = GuestQuery(provider_id="lb", address="10.0.0.5")
    with pytest.raises(errors.Invalid):
        cloud.hosts.guest_facts("net", query)  # nova-network has no such thing
    cloud.deps.networking.guest_at = lambda provider, address: (uuid, "demo")
    assert cloud.hosts.guest_facts("net", query).uuid == uuid


def test_provider_when_another_projects_port_says_it_is_the_servers_then_404(cloud) -> None:
    uuid, = cloud.active()
    cloud.deps.networking.guest_at = lambda provider, address: (uuid, "other")
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("net", GuestQuery(provider_id="lb", address="10.0.0.5"))


# -- config drives' orders

def test_order_when_the_server_has_a_drive_then_it_tells_the_metadata_of_now(cloud) -> None:
    uuid, = cloud.active(config_drive=True, metadata={"a": "1"})
    built = next(order for host in cloud.computes.values() for kind, order in host.orders if kind == "build")
    assert built.metadata == {"a": "1"} and built.config_drive
    cloud.write("cell", tables.server_metadata.update().values(value="2"))
    cloud.order(uuid, "hard_reboot")
    cloud.ended(uuid)
    reboot = next(order for host in cloud.computes.values() for kind, order in host.orders if kind == "reboot")
    assert reboot.build.metadata == {"a": "2"} and reboot.build.admin_password is None


@pytest.mark.parametrize("forced", [True, False])
def test_drive_when_the_option_gives_one_then_it_is_the_servers_from_its_first_boot_on(cloud, forced) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, force_config_drive=forced)
    uuid, = cloud.active()
    assert cloud.server(uuid).config_drive == forced
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, force_config_drive=True)
    cloud.order(uuid, "hard_reboot")
    cloud.ended(uuid)
    reboot = next(order for host in cloud.computes.values() for kind, order in host.orders if kind == "reboot")
    assert reboot.build.config_drive == forced, "servers that began without go on without"


