"""What both back ends promise: the same cases against nova-network and against Neutron."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.engine.operation import Op
from nova.conductor.networking.back_end import NetworkBackEnd, NetworkRequest
from nova.db.server import servers, states
from nova.model.base import Scope
from nova.model.network.networks import Interface, NewNetwork, RequestedNetwork
from nova.model.server.server_parts import ExternalEvent
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON, make_templates, until

NOWHERE = "11111111-1111-1111-1111-111111111111"


class Nova(FailingCloud):
    """Its network is the one that every cloud of these has."""

    def __init__(self, folder: Path, templates: Path) -> None:
        super().__init__(folder, templates)
        with context.entered(DEMO):
            [network] = self.deps.networking.networks.list_networks(Scope(project_id="demo"))
        self.net = network.uuid

    def second(self) -> str:
        [made] = self.control.create_network(NewNetwork(label="second", cidr="10.2.0.0/24", bridge="br101"))
        return str(made.uuid)

    def inside(self, number: int) -> str:
        return f"10.0.0.{number}"

    def of(self, uuid: str) -> set[str]:
        return {address for server, address in self.addresses().items() if server == uuid}


class Next(FailingCloud):
    def __init__(self, folder: Path, templates: Path) -> None:
        super().__init__(folder, templates, NEUTRON)

    def second(self) -> str:
        return self.neutron.add_network("second", ("10.2.0.0/24",))

    def inside(self, number: int) -> str:
        return f"10.1.0.{number}"

    def of(self, uuid: str) -> set[str]:
        return {port["id"] for port in self.neutron.of(uuid)}





@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


@pytest.fixture(params=[Nova, Next], ids=["nova-network", "neutron"])
def cloud(request: Any, tmp_path: Path, templates: Path) -> Iterator[Any]:
    made = request.param(tmp_path, templates)
    yield made
    made.close()


def op_of(cloud: Any, uuid: str, **data: Any) -> Op:
    """An operation on the server, in nobody's hands."""
    with cloud.cell.reading() as tx:
        row = servers.rows_of(tx, [uuid])[uuid]
    last = cloud.journal(uuid)[-1]
    entry = states.Entry(id=last.id, server_uuid=uuid, action="create", epoch=row.epoch,
                         data={"host": row.host, "node": row.node, **data})
    return Op(entry, row)


def one(cloud: Any, **fields: Any) -> str:
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net, **fields),))
    return str(uuid)


def shown(cloud: Any, uuid: str) -> list[Interface]:
    return list(cloud.server(uuid).interfaces or ())


def take(cloud: Any, op: Op) -> None:
    back_end: NetworkBackEnd = cloud.deps.networking
    taken = cloud.cell.transact(lambda tx: back_end.take(tx, [op]))
    if op.uuid in taken:
        op.see(interfaces=taken[op.uuid])
    [result] = back_end.bind([op])
    assert not isinstance(result, errors.NovaError), result


def let_go(cloud: Any, op: Op) -> None:
    cloud.cell.transact(lambda tx: cloud.deps.networking.give_back(tx, [op]))
    cloud.deps.networking.unbind([op])


def test_back_end_when_looked_at_then_it_has_all_that_the_contract_says(cloud):
    names = [name for name in vars(NetworkBackEnd) if not name.startswith("_")]
    assert [name for name in names if not hasattr(cloud.deps.networking, name)] == []
    assert {"networks", "floating", "groups", "name"} <= set(vars(type(cloud.deps.networking)) | vars(
        cloud.deps.networking))


def test_boot_when_taken_and_bound_again_then_the_interfaces_are_the_same(cloud):
    uuid = one(cloud)
    before, held = shown(cloud, uuid), cloud.of(uuid)
    assert len(before) == len(held) == 1
    op = op_of(cloud, uuid, ports=1)
    for _ in range(2):
        take(cloud, op)
        assert list(op.server.interfaces) == before and cloud.of(uuid) == held


def test_boot_when_an_interface_is_made_then_guests_and_users_know_all_of_it(cloud):
    uuid = one(cloud, fixed_ip=cloud.inside(77), tag="web")
    [found] = shown(cloud, uuid)
    assert found.addresses[0].address == cloud.inside(77) and found.tag == "web"
    assert found.network_id == cloud.net and found.label == "private" and found.mac.startswith("fa:16:3e:")
    assert found.bridge and found.subnets[0].cidr and found.dns is not None
    [order] = cloud.computes["host1"].built()
    assert list(order.interfaces) == [found]


def test_unbind_when_repeated_then_nothing_is_left_and_nothing_is_said(cloud):
    uuid = one(cloud)
    op = op_of(cloud, uuid)
    for _ in range(2):
        let_go(cloud, op)
        assert cloud.of(uuid) == set()
    cloud.delete(uuid)
    assert cloud.held() == {}


def test_unbind_when_nothing_was_ever_bound_then_nothing_is_said(cloud):
    [uuid] = cloud.active(networks=())
    assert shown(cloud, uuid) == []
    let_go(cloud, op_of(cloud, uuid))
    assert cloud.deps.networking.interfaces_now(cloud.server(uuid)) == ()


def test_boot_of_several_networks_when_asked_so_then_in_that_order(cloud):
    second = cloud.second()
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=second), RequestedNetwork(network_id=cloud.net),
                                    RequestedNetwork(network_id=second)))
    assert [found.network_id for found in shown(cloud, uuid)] == [second, cloud.net, second]
    now = cloud.deps.networking.interfaces_now(cloud.server(uuid))
    assert [found.id for found in now] == [found.id for found in shown(cloud, uuid)]


@pytest.mark.parametrize("action", ["resize", "live-migration", "evacuate"])
def test_move_when_ended_then_the_interfaces_are_the_same_ones(cloud, action):
    uuid = cloud.ready(action)
    before, held = shown(cloud, uuid), cloud.of(uuid)
    cloud.begin(uuid, action)
    cloud.settle(uuid)
    after = shown(cloud, uuid)
    assert cloud.server(uuid).host == "host2" and cloud.of(uuid) == held
    assert [(found.id, found.mac, found.addresses) for found in after] == [
        (found.id, found.mac, found.addresses) for found in before]


def test_arrival_when_prepared_and_abandoned_again_and_again_then_all_is_as_before(cloud):
    uuid = one(cloud)
    op, back_end = op_of(cloud, uuid), cloud.deps.networking
    for _ in range(2):
        assert [found.id for found in back_end.prepare_arrival(op, "host2")] == [shown(cloud, uuid)[0].id]
    for _ in range(2):
        back_end.abandon_arrival(op, "host2")
    back_end.bind_to(op, "host1")
    assert [found.id for found in op.server.interfaces] == [shown(cloud, uuid)[0].id]
    if isinstance(cloud, Next):
        cloud.bound(uuid, "host1")


def test_interface_when_attached_and_detached_then_the_server_has_it_and_has_it_not(cloud):
    second = cloud.second()
    uuid = one(cloud)
    with context.entered(DEMO):
        made = cloud.control.attach_interface(uuid, RequestedNetwork(network_id=second, tag="late"))
    cloud.settle(uuid)
    assert [found.id for found in shown(cloud, uuid)] == [shown(cloud, uuid)[0].id, made.id]
    assert made.network_id == second and len(made.addresses) == 1
    assert [found.id for found in cloud.deps.networking.interfaces_now(cloud.server(uuid))] == [
        found.id for found in shown(cloud, uuid)]
    with context.entered(DEMO):
        cloud.control.detach_interface(uuid, made.id)
    cloud.settle(uuid)
    assert len(shown(cloud, uuid)) == 1 and made.id not in {found.id for found in shown(cloud, uuid)}
    cloud.delete(uuid)
    assert cloud.held() == {}


def test_interface_when_made_and_removed_twice_then_it_is_one_and_none(cloud):
    second = cloud.second()
    uuid = one(cloud)
    back_end = cloud.deps.networking
    op = op_of(cloud, uuid)
    requested = back_end.check_interface(op.server, RequestedNetwork(network_id=second))
    made = []
    for _ in range(2):
        taken = cloud.cell.transact(lambda tx: back_end.take_interface(tx, op, requested))
        if taken is not None:
            op.see(interfaces=(*[found for found in op.server.interfaces if found.id != taken.id], taken))
            op.note(interface=taken)
        made.append(back_end.make_interface(op, requested))
    assert made[0].id == made[1].id
    op.see(interfaces=(*[found for found in op.server.interfaces if found.id != made[0].id], made[0]))
    for _ in range(2):
        cloud.cell.transact(lambda tx: back_end.drop_interface(tx, op, made[0]))
        back_end.remove_interface(op, made[0])
    if isinstance(cloud, Next):
        assert len(cloud.of(uuid)) == 1


@pytest.mark.parametrize("requested, kind", [
    (RequestedNetwork(network_id=NOWHERE), errors.Invalid), (RequestedNetwork(port_id=NOWHERE), errors.Invalid)])
def test_admit_when_it_is_not_there_then_invalid(cloud, requested, kind):
    with context.entered(DEMO), pytest.raises(kind, match="could not be found"):
        cloud.deps.networking.admit(NetworkRequest("demo", (requested,)))


def test_admit_when_an_address_cannot_be_then_invalid(cloud):
    uuid = one(cloud, fixed_ip=cloud.inside(77))
    for address, count in (("192.0.2.1", 1), (cloud.inside(77), 1), (cloud.inside(78), 2)):
        requested = RequestedNetwork(network_id=cloud.net, fixed_ip=address)
        with context.entered(DEMO), pytest.raises(errors.Invalid):
            cloud.deps.networking.admit(NetworkRequest("demo", (requested,), servers=count))
    assert cloud.server(uuid).vm_state == "active"


def test_admit_when_a_group_is_unknown_then_invalid(cloud):
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="nosuch"):
        cloud.deps.networking.admit(NetworkRequest("demo", None, ("nosuch",)))


def test_admit_when_no_network_is_requested_then_none(cloud):
    with context.entered(DEMO):
        assert cloud.deps.networking.admit(NetworkRequest("demo", ())).networks == ()


def test_shelved_server_when_it_comes_back_then_with_its_interfaces(cloud):
    uuid = one(cloud)
    before, held = shown(cloud, uuid), cloud.of(uuid)
    cloud.order(uuid, "shelve")
    assert cloud.settle(uuid).vm_state == "shelved_offloaded"
    assert cloud.of(uuid) == held
    cloud.delete(uuid)
    assert cloud.held() == {} and len(before) == 1


def test_reads_when_nothing_changed_then_they_agree_with_the_row(cloud):
    uuid = one(cloud)
    row = cloud.server(uuid)
    assert [found.id for found in cloud.deps.networking.interfaces_now(row)] == [row.interfaces[0].id]
    assert cloud.deps.networking.groups_shown([row]).get(uuid, row.security_groups) == ("default",)
    wall = cloud.deps.networking.firewall_on("host1")
    assert (wall.host, wall.kept_elsewhere) == ("host1", isinstance(cloud, Next))  # Neutron's agents filter
    assert {guest.server_uuid for guest in wall.guests} == (set() if wall.kept_elsewhere else {uuid})
    event = ExternalEvent(name="network-changed", server_uuid=uuid)
    assert cloud.control.external_events((event,)) == (200,)
    until(lambda: cloud.server(uuid).interfaces, "they are there")
