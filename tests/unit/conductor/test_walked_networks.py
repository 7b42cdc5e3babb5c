"""Short walks over clouds with networks of each kind, and what longer ones (tests/functional) have found."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context
from nova.model.floating import FloatingAssociation, FloatingRange
from nova.model.networks import NewNetwork, RequestedNetwork
from tests.fakes import living_cloud
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.fakes.walk import Walk
from tests.fakes.walking import FLAVORS, IMAGES, walking_cloud
from tests.fakes.walking_networks import KINDS, NovaNetworks
from tests.fakes.walking_neutron import NeutronNetworks, NeutronWalkCloud

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

STEPS, SERVERS, SEED = 40, 6, 7
CLOUDS: dict[str, tuple[Any, Any]] = {**{name: (kind, NovaNetworks) for name, kind in KINDS.items()},
                                      "neutron": (NeutronWalkCloud, NeutronNetworks)}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)  # faults are told at length
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", ["vlan", "neutron"])
def test_walk_over_networks_when_faults_come_at_random_then_all_is_as_the_records_say(
        tmp_path: Path, templates: Path, kind: str) -> None:
    cloud_of, networks = CLOUDS[kind]
    with walking_cloud(tmp_path, templates, ("host1", "host2"), SEED, cloud_of) as cloud, cloud.mortal():
        walk = Walk(cloud, SEED, FLAVORS, IMAGES, SERVERS, networks)
        for _ in range(STEPS):
            walk.step()
        assert walk.unrecorded() == []
        assert len(walk.story) >= STEPS


def test_address_that_is_removed_takes_its_floating_one_off_the_servers_row(cloud: SmallCloud) -> None:
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/28"))
    [uuid] = cloud.active()
    floating = cloud.control.allocate_floating_address("demo", None)
    [fixed] = cloud.server(uuid).interfaces[0].addresses
    with context.entered(DEMO):
        cloud.control.associate_floating_address(FloatingAssociation(server_uuid=uuid, address=floating.address))
        assert cloud.server(uuid).interfaces[0].floating_addresses
        cloud.control.remove_fixed_address(uuid, fixed.address)
    [interface] = cloud.server(uuid).interfaces
    assert (interface.addresses, interface.floating_addresses) == ((), ())


def test_first_interface_that_goes_leaves_the_default_route_to_the_next_and_its_host_knows(cloud: SmallCloud) -> None:
    first = cloud.control.create_network(NewNetwork(label="one", cidr="10.1.0.0/24", bridge="br1"))[0].uuid
    second = cloud.control.create_network(NewNetwork(label="two", cidr="10.2.0.0/24", bridge="br2"))[0].uuid
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=first), RequestedNetwork(network_id=second)))
    gone, stays = cloud.server(uuid).interfaces
    with context.entered(DEMO):
        cloud.control.detach_interface(uuid, gone.id)
    cloud.ended(uuid)
    told = {one.network.uuid: one for one in cloud.network.served}  # the newest of each
    assert [(one.vif_id, one.default_route) for one in told[second].addresses] == [(stays.id, True)]
