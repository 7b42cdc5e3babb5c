"""VlanManager: networks are projects', one is taken at the first server's boot, and whose they are can be changed."""

from __future__ import annotations

import dataclasses
import threading

import msgspec
import pytest

from nova import context, errors
from nova.conductor.networking.back_end import NetworkRequest
from nova.conductor.networking.network_options import NetworkOptions
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.db.network import network_pools
from nova.model.base import Scope
from nova.model.host.services import Registration
from nova.model.network import addressing
from nova.model.network.floating import FloatingAssociation, FloatingRange
from nova.model.network.network_managers import VLAN
from nova.model.network.networks import Network, NetworkChange, NewNetwork, RequestedNetwork
from nova.rpc.contracts.network import NetworkRPC
from tests.fakes.daemons import FakeNetworkHost
from tests.fakes.small_cloud import DEMO, SmallCloud


def with_vlans(cloud: SmallCloud, count: int = 3) -> list[Network]:
    defaults = addressing.Defaults(manager=VLAN.path, vlan_interface="eth1", vpn_ip="192.0.2.1")
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, network_defaults=defaults,
                                               networking=NetworkOptions(manager=VLAN))
    cloud.deps.networking = NovaNetwork(cloud.deps)
    return list(cloud.control.create_network(NewNetwork(label="vlan", cidr="10.8.0.0/16", num_networks=count,
                                                        network_size=32)))


def networks_of(cloud: SmallCloud, project: str | None) -> list[Network]:
    return [one for one in cloud.control.list_networks(Scope()) if one.project_id == project and one.vlan]


def test_networks_are_numbered_and_have_a_bridge_and_a_place_for_the_vpn(cloud: SmallCloud) -> None:
    made = with_vlans(cloud)
    existing = 1  # the furnished one
    assert [(one.vlan, one.bridge) for one in made] == [(100 + existing + i, f"br{101 + i}") for i in range(3)]
    assert [one.vpn_public_port for one in made] == [1001, 1002, 1003]
    assert {one.bridge_interface for one in made} == {"eth1"}
    assert cloud.control.get_fixed_address(made[0].vpn_private_address).reserved


def test_vlan_that_is_taken_when_asked_for_is_409_and_above_the_last_400(cloud: SmallCloud) -> None:
    made = with_vlans(cloud)
    with pytest.raises(errors.Conflict, match=str(made[0].vlan)):
        cloud.control.create_network(NewNetwork(label="n", cidr="10.9.0.0/24", vlan=made[0].vlan))
    for fields in ({"vlan": 4095}, {"vlan": 4094, "num_networks": 2}, {"vlan_start": 4094, "num_networks": 2}):
        with pytest.raises(errors.Invalid, match="between 1 and 4094"):
            cloud.control.create_network(NewNetwork(label="n", cidr="10.9.0.0/24", network_size=16, **fields))
    again = cloud.control.create_network(NewNetwork(label="n", cidr="10.9.0.0/24", vlan_start=97))
    assert again[0].vlan == max(one.vlan for one in made) + 1, "taken: the highest used + 1"


def test_first_server_takes_a_network_for_its_project_and_the_next_ones_use_it(cloud: SmallCloud) -> None:
    with_vlans(cloud)
    first, second = (cloud.active()[0] for _ in range(2))
    [mine] = networks_of(cloud, "demo")
    for uuid in (first, second):
        [one] = cloud.server(uuid).interfaces
        assert (one.network_id, one.vlan, one.project_id) == (mine.uuid, mine.vlan, "demo") and one.should_create_vlan
    address = cloud.server(first).interfaces[0].addresses[0].address
    assert address == str(mine.cidr).replace(".0/27", ".3"), "the third is the VPN's"


def test_first_servers_in_parallel_take_one_network(cloud: SmallCloud) -> None:
    with_vlans(cloud)
    errors_: list[Exception] = []

    def admit() -> None:
        try:
            cloud.deps.networking.admit(NetworkRequest("demo", None))
        except Exception as error:
            errors_.append(error)
    threads = [threading.Thread(target=admit) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not errors_ and len(networks_of(cloud, "demo")) == 1


def test_project_without_a_network_when_none_is_left_is_400(cloud: SmallCloud) -> None:
    with_vlans(cloud, 1)
    cloud.deps.cell.transact(lambda tx: network_pools.first_of_project(tx, "other"))
    with pytest.raises(errors.Invalid, match="without a project"):
        cloud.boot()


def test_network_of_nobody_or_of_another_when_asked_for_is_400(cloud: SmallCloud) -> None:
    free, others, _ = with_vlans(cloud)
    cloud.control.add_network_to_project(others.uuid, "other")
    for network, words in ((free, "not belong to a project"), (others, f"Network {others.uuid} could not be found")):
        with pytest.raises(errors.Invalid, match=words):
            cloud.boot(networks=(RequestedNetwork(network_id=network.uuid),))


def test_network_is_added_changed_and_deleted_by_turns(cloud: SmallCloud) -> None:
    first, second, _ = with_vlans(cloud)
    assert cloud.control.add_network_to_project(None, "demo").uuid == first.uuid
    assert cloud.control.add_network_to_project(second.uuid, "demo").uuid == second.uuid
    with pytest.raises(errors.Conflict, match="demo"):
        cloud.control.add_network_to_project(first.uuid, "other")
    with pytest.raises(errors.Conflict, match="disassociated"):
        cloud.control.delete_network(first.uuid)
    after = cloud.control.change_network(NetworkChange(uuid=first.uuid, fields=("project_id", "host"), host="net2"))
    assert (after.project_id, after.host) == (None, "net2")
    cloud.control.delete_network(first.uuid)
    with pytest.raises(errors.NotFound):
        cloud.control.change_network(NetworkChange(uuid=first.uuid, fields=("host",)))


@pytest.mark.parametrize(("host", "reported"), [("net2", 1), ("away", 0)])
def test_host_of_a_network_when_it_is_given_then_both_are_told_if_they_are_there_and_nobody_waits_for_one_that_is_away(
        cloud: SmallCloud, host: str, reported: int) -> None:
    network, *_ = with_vlans(cloud)
    other = FakeNetworkHost()
    cloud.daemons.register(Registration(host="net2", binary="nova-network", topic="network"))
    cloud.bus.serve(NetworkRPC, other, "net2")
    assert cloud.control.change_network(NetworkChange(uuid=network.uuid, fields=("host",), host=host)).host == host
    assert [one.network.uuid for one in other.served] == [network.uuid] * reported
    assert len(cloud.network.asked("refresh_networks")) == 1, "the one that served it till now"


def test_network_that_is_deleted_is_given_up_by_its_host_at_once(cloud: SmallCloud) -> None:
    first, second, _third = with_vlans(cloud)
    cloud.control.delete_network(first.uuid)
    assert len(cloud.network.asked("refresh_networks")) == 1
    cloud.control.add_network_to_project(second.uuid, "demo")
    cloud.control.delete_own_network(second.uuid, "demo")
    assert len(cloud.network.asked("refresh_networks")) == 2


@pytest.mark.parametrize("host", ["net2", None])
def test_host_of_a_network_changes_and_its_floating_addresses_stand_there(cloud: SmallCloud, host: str | None) -> None:
    [network] = cloud.control.list_networks(Scope())
    [uuid] = cloud.active()
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.1"))
    one = cloud.control.allocate_floating_address("demo", None)
    with context.entered(DEMO):
        cloud.control.associate_floating_address(FloatingAssociation(server_uuid=uuid, address=one.address))

    def where() -> str | None:
        return cloud.control.get_floating_address(one.id, Scope()).host
    assert where() == network.host == "net"
    cloud.control.change_network(NetworkChange(uuid=network.uuid, fields=("host",), host=host, forced=True))
    assert where() == host
    if host is None:
        cloud.daemons.register(Registration(host="net3", binary="nova-network", topic="network"))
        assert where() == "net3", "who takes a network without a host has its floating addresses"


def test_changes_of_owners_with_a_flat_manager_are_501_unless_forced(cloud: SmallCloud) -> None:
    [network] = cloud.control.list_networks(Scope())
    for call in (lambda: cloud.control.add_network_to_project(None, "demo"),
                 lambda: cloud.control.change_network(NetworkChange(uuid=network.uuid, fields=("host",)))):
        with pytest.raises(errors.NotSupported):
            call()
    after = cloud.control.change_network(NetworkChange(uuid=network.uuid, fields=("project_id",), project_id="demo",
                                                       forced=True))
    assert after.project_id == "demo"


def test_project_deletes_its_own_network_alone_and_keeps_one_in_use(cloud: SmallCloud) -> None:
    first, second, third = with_vlans(cloud)
    for network, project in ((first, "demo"), (second, "other")):
        cloud.control.add_network_to_project(network.uuid, project)
    for network in (second, third):
        with pytest.raises(errors.NotFound):
            cloud.control.delete_own_network(network.uuid, "demo")
    cloud.active()
    with pytest.raises(errors.Conflict):
        cloud.control.delete_own_network(first.uuid, "demo")
    assert [one.uuid for one in networks_of(cloud, "demo")] == [first.uuid], "it is still its own"
    cloud.control.delete_own_network(second.uuid, "other")
    assert [one.uuid for one in networks_of(cloud, "other")] == []


def test_networks_a_project_makes_are_counted_where_they_are_to_be(cloud: SmallCloud) -> None:
    limits = {**cloud.deps.settings.quota_defaults, "networks": 1}
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, quota_defaults=limits,
                                               networking=NetworkOptions(enable_network_quota=True))
    cloud.deps.networking = NovaNetwork(cloud.deps)
    new = NewNetwork(label="own", cidr="10.7.0.0/16", network_size=16, bridge="br7", project_id="demo", by_project=True)
    cloud.control.create_network(new)
    with pytest.raises(errors.OverQuota, match="at most 1"):
        cloud.control.create_network(new)
    cloud.control.create_network(msgspec.structs.replace(new, bridge="br8", by_project=False))
    assert cloud.control.get_quotas("demo", None, True).in_use["networks"] == 2
