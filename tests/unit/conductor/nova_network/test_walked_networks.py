"""Short walks over clouds with networks of each kind, and what longer ones (tests/functional) have found."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as tables
from nova.db.network import addresses as rows
from nova.model.base import Scope
from nova.model.network.floating import FloatingAssociation, FloatingRange
from nova.model.network.networks import NewNetwork, RequestedNetwork
from nova.model.network.security_groups import GroupMembership, NewSecurityGroup
from nova.model.server.server_orders import EvacuateServer, LiveMigrateServer
from nova.model.server.states import TaskState
from tests.fakes import living_cloud
from tests.fakes.living_cloud import Killed
from tests.fakes.small_cloud import DEMO, NEUTRON, SmallCloud
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import FLAVORS, IMAGES, walking_cloud
from tests.fakes.walking_networks import KINDS, NovaNetworks
from tests.fakes.walking_neutron import NeutronNetworks

pytestmark = [pytest.mark.one_in(5),  # whole clouds
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]

STEPS, SERVERS, SEED = 40, 6, 7
CLOUDS: dict[str, tuple[Any, Any]] = {**{name: (kind, NovaNetworks) for name, kind in KINDS.items()},
                                      "neutron": (NEUTRON, NeutronNetworks)}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)  # faults are told at length
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", ["vlan", "neutron"])
def test_walk_over_networks_when_faults_come_at_random_then_all_is_as_the_records_say(
        tmp_path: Path, templates: Path, kind: str) -> None:
    kept_by, networks = CLOUDS[kind]
    with walking_cloud(tmp_path, templates, ("host1", "host2"), SEED, kept_by) as cloud, cloud.mortal():
        walk = Walk(cloud, SEED, FLAVORS, IMAGES, SERVERS, networks)
        for _ in range(STEPS):
            walk.step()
        assert walk.unrecorded() == [] and walk.left() == []
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
    reported = {one.network.uuid: one for one in cloud.network.served}  # the newest of each
    assert [(one.vif_id, one.default_route) for one in reported[second].addresses] == [(stays.id, True)]


def test_server_that_is_being_deleted_gets_no_address_and_joins_no_group(cloud: SmallCloud) -> None:
    """Its delete may have given back what it had, and would not do so twice."""
    [uuid] = cloud.active()
    network = cloud.server(uuid).interfaces[0].network_id
    with context.entered(DEMO):
        cloud.control.create_security_group(NewSecurityGroup(name="web", description="-", project_id="demo"))
        cloud.write("cell", sa.update(tables.servers).values(task_state=TaskState.DELETING.value))
        with pytest.raises(errors.WrongState, match="being deleted"):
            cloud.control.add_fixed_address(uuid, network)
        with pytest.raises(errors.WrongState, match="being deleted"):
            cloud.control.change_group_membership(GroupMembership(server_uuid=uuid, group="web"))


def test_address_that_comes_while_a_delete_runs_is_taken_from_its_network_host_too(cloud: SmallCloud) -> None:
    """The delete has read its server before that."""
    second = cloud.control.create_network(NewNetwork(label="two", cidr="10.2.0.0/24", bridge="br2"))[0].uuid
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.control.list_networks(Scope())[0].uuid),))
    reads = cloud.deps.networking.give_back

    def late(tx: Any, ops: Any) -> None:
        row = rows.rows_of(tx, {second})[second]
        tx.execute(sa.update(tables.fixed_addresses).where(
            tables.fixed_addresses.c.network_id == row.id, tables.fixed_addresses.c.address == "10.2.0.9")
            .values(server_uuid=uuid))
        reads(tx, ops)
    cloud.deps.networking.give_back = late
    before = len(cloud.network.served)
    cloud.delete(uuid)
    assert second in {one.network.uuid for one in cloud.network.served[before:]}


def test_guest_that_moved_while_it_runs_may_hear_the_dhcp_server_of_its_new_host(
        tmp_path: Path, templates: Path) -> None:
    with walking_cloud(tmp_path, templates, ("host1", "host2"), SEED, KINDS["multi-host"]) as cloud:
        networks = NovaNetworks(cloud, random.Random(SEED))
        [uuid] = cloud.boot(image_id=IMAGES[0])
        cloud.settle(uuid)
        before = {one.dhcp_server for one in cloud.server(uuid).interfaces}
        with context.entered(DEMO):
            cloud.control.live_migrate_server(LiveMigrateServer(uuid=uuid))
        cloud.settle(uuid)
        row = cloud.server(uuid)
        [guest] = cloud.kernels[row.host].state.guests
        servers = {one.dhcp_server for one in guest.interfaces}
        assert servers == {one.dhcp_server for one in row.interfaces} and not servers & before
        assert list(networks.wrong()) == []


def test_host_that_dies_in_an_evacuation_once_its_guest_runs_keeps_nothing_when_it_pays(
        tmp_path: Path, templates: Path) -> None:
    """Its conductor never learnt that these disks were no shared ones; the host's own mark says so."""
    with walking_cloud(tmp_path, templates, ("host1", "host2")) as cloud:
        [uuid] = cloud.boot(image_id=IMAGES[0], host="host1")
        cloud.settle(uuid)
        lost, other = cloud.computes["host1"], cloud.computes["host2"]
        lost.kill()
        cloud.write("cell", sa.update(tables.services).where(tables.services.c.host == "host1")
                    .values(last_seen_at=sa.text("'2000-01-01 00:00:00'")))
        cloud.deps.feed.host_changed("host1")
        apply = other.driver.knobs.apply

        def dies(call: str, when: str, names: tuple[str, ...]) -> None:
            if (call, when) == ("start_new", "after"):
                other.kill()
                raise Killed
            apply(call, when, names)
        other.driver.knobs.apply = dies
        with context.entered(DEMO):
            cloud.control.evacuate_server(EvacuateServer(uuid=uuid))
        cloud.settle(uuid)
        other.start()
        other.service.register()
        cloud.do_cleanups()
        assert ("host2", uuid) not in cloud.guests()
