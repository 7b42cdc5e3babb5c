"""Boots on Neutron: how many calls they cost, what they leave when Neutron fails, and what they make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.operation import Op
from nova.conductor.neutron.binding import Binder
from nova.conductor.neutron.cache import NeutronCache
from nova.conductor.registry import CREATE_SERVER, DELETE_SERVER
from nova.db.models import cell as tables
from nova.db.server.states import Entry
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import NewServer, ServerListQuery, ServerQuery
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.neutron import Trouble
from tests.fakes.rows import server_value
from tests.fakes.small_cloud import DEMO, NEUTRON
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, WRONG, cases, failing
from tests.unit.conductor.queries.test_statement_counts import statements

pytestmark = pytest.mark.one_in(5)  # a cloud for each case

MOST_CALLS = 4  # that a boot makes, its binding included


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    for trouble in made.neutron.troubles:
        trouble.left = 0
    made.close()


def calls(cloud: FailingCloud) -> list[tuple[str, str]]:
    return [one for one in cloud.neutron.requests if one[1] != "extensions?fields=alias"]  # once in ten minutes


def test_boot_when_all_is_well_then_four_calls_and_an_interface_with_all_it_needs(cloud):
    cloud.deps.networking.client.extensions()
    [uuid] = cloud.active()
    assert len(calls(cloud)) <= MOST_CALLS, calls(cloud)
    [port], [shown] = cloud.neutron.of(uuid), cloud.server(uuid).interfaces
    assert (port["device_owner"], port["binding:host_id"], port["dns_name"]) == ("compute:nova", "host1", "vm")
    assert (shown.id, shown.type, shown.bridge, shown.mtu, shown.label) == (port["id"], "ovs", "br-int", 1450,
                                                                           "private")
    assert shown.mac == port["mac_address"].lower() and shown.device == f"tap{port['id'][:11]}"
    assert [(one.cidr, one.version, one.gateway, one.dns) for one in shown.subnets] == [
        ("10.1.0.0/24", 4, "10.1.0.1", ("9.9.9.9",)), ("fd00:1::/64", 6, "fd00:1::1", ("9.9.9.9",))]
    assert (shown.cidr, shown.gateway, len(shown.addresses)) == ("10.1.0.0/24", "10.1.0.1", 2)
    [order] = cloud.computes["host1"].built()
    assert order.interfaces == (shown,)
    cloud.bound(uuid, "host1")
    seen = len(calls(cloud))
    cloud.active()
    assert len(calls(cloud)) - seen <= 3  # what networks look like is known by now


def test_boot_of_many_when_asked_at_once_then_their_ports_are_made_together(cloud):
    uuids = cloud.active(10)
    assert len(calls(cloud)) <= MOST_CALLS
    assert {port["device_id"] for port in cloud.neutron.ports.values()} == set(uuids)


def test_delete_when_all_is_well_then_its_ports_are_gone(cloud):
    [uuid] = cloud.active()
    cloud.delete(uuid)
    assert cloud.held() == {} and cloud.neutron.ports == {}


def test_delete_when_neutron_has_just_begun_and_shows_us_nothing_then_the_port_is_not_left(cloud):
    [uuid] = cloud.active()
    cloud.deps.networking = cloud.make_back_end(cloud.deps, doubts_s=(0.0,))
    cloud.neutron.troubles.append(Trouble("GET", "ports", "blind", 2))  # by server, and by id
    cloud.delete(uuid)
    assert cloud.held() == {} and cloud.neutron.ports == {}


def test_boot_when_networks_are_named_then_in_that_order_with_tags(cloud):
    second = cloud.neutron.add_network("second", ("10.2.0.0/24",))
    port = cloud.neutron.add_port(cloud.net, name="mine")
    wanted = (RequestedNetwork(network_id=second, fixed_ip="10.2.0.77", tag="a"), RequestedNetwork(port_id=port),
              RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=second))
    [uuid] = cloud.active(networks=wanted)
    shown = cloud.server(uuid).interfaces
    assert [one.network_id for one in shown] == [second, cloud.net, cloud.net, second]
    assert shown[0].addresses[0].address == "10.2.0.77" and shown[0].tag == "a"
    assert [one.given for one in shown] == [False, True, False, False] and shown[1].id == port
    cloud.delete(uuid)
    [left] = cloud.neutron.ports.values()
    assert (left["id"], left["device_id"], left["binding:host_id"], left["device_owner"], left["dns_name"]) == (
        port, "", "", "", "")


def test_boot_when_a_port_is_given_then_four_calls_at_most(cloud):
    cloud.deps.networking.client.extensions()
    port = cloud.neutron.add_port(cloud.net)
    cloud.active(networks=(RequestedNetwork(port_id=port),))
    assert len(calls(cloud)) <= MOST_CALLS, calls(cloud)


@pytest.mark.parametrize("how", ["refused", "timeout", "lost", 500, 503])
def test_boot_when_making_ports_gets_no_answer_then_there_is_one_port_all_the_same(cloud, how):
    cloud.neutron.trouble("POST", "ports", how)
    [uuid] = cloud.active()
    assert len(cloud.neutron.of(uuid)) == 1
    cloud.bound(uuid, cloud.server(uuid).host)


def test_boot_when_making_ports_never_gets_an_answer_then_the_next_host_and_one_port(cloud):
    cloud.neutron.trouble("POST", "ports", "lost", times=2)
    cloud.neutron.extensions.discard("quota_details")
    [uuid] = cloud.active()
    assert len(cloud.neutron.of(uuid)) == 1
    cloud.bound(uuid, cloud.server(uuid).host)


def test_boot_when_a_host_has_no_way_to_the_network_then_the_next_one_is_tried(cloud):
    cloud.neutron.unbindable.add("host1")
    [uuid] = cloud.active()
    assert cloud.server(uuid).host == "host2" and len(cloud.neutron.of(uuid)) == 1
    cloud.bound(uuid, "host2")


def test_boot_when_no_host_has_a_way_then_an_error_and_no_port(cloud):
    cloud.neutron.unbindable.update(("host1", "host2", "host3"))
    [uuid] = cloud.boot()
    row = cloud.settle(uuid)
    assert row.vm_state == "error" and "Binding failed" in row.fault.details + row.fault.message
    assert cloud.held() == {}


def test_boot_of_many_when_addresses_run_out_then_those_that_fit_are_active(cloud):
    small = cloud.neutron.add_network("small", ("10.3.0.0/29",))  # five addresses beside the gateway's
    uuids = cloud.boot(7, networks=(RequestedNetwork(network_id=small),))
    states = sorted(cloud.settle(uuid).vm_state for uuid in uuids)
    assert states == ["active"] * 5 + ["error"] * 2
    assert len(cloud.neutron.ports) == 5


@pytest.mark.parametrize("step, method, error", cases(CREATE_SERVER))
def test_create_when_a_step_always_fails_then_no_port_is_left_and_a_given_one_is_free(cloud, monkeypatch, step, method,
                                                                                      error):
    port = cloud.neutron.add_port(cloud.net)
    failing(monkeypatch, step, method, error)
    [uuid] = cloud.boot(networks=(RequestedNetwork(port_id=port), RequestedNetwork(network_id=cloud.net)))
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("error", None) and cloud.held() == {}
    assert list(cloud.neutron.ports) == [port]
    monkeypatch.undo()
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {}


@pytest.mark.parametrize("step, method, error", cases(DELETE_SERVER))
def test_delete_when_a_step_fails_for_good_then_a_second_delete_leaves_no_port(cloud, monkeypatch, step, method, error):
    [uuid] = cloud.active()
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        cloud.order(uuid, "delete")
        cloud.settle(uuid)
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {}


def test_delete_when_neutron_is_away_then_it_waits_and_leaves_nothing(cloud):
    [uuid] = cloud.active()
    away = cloud.neutron.away()
    cloud.order(uuid, "delete")
    cloud.idle()
    assert not cloud.server(uuid).deleted and cloud.server(uuid).task_state == "deleting"
    cloud.expire_leases()
    cloud.runner().sweep()
    cloud.idle()
    assert not cloud.server(uuid).deleted
    away.left = 0
    cloud.expire_leases()
    cloud.runner().sweep()
    assert cloud.settle(uuid).deleted and cloud.held() == {}


@pytest.mark.parametrize("error", [REFUSED, AWAY, WRONG, CRASH], ids=lambda error: type(error).__name__)
def test_create_when_the_undo_finds_neutron_away_then_it_is_done_later(cloud, monkeypatch, error):
    away: list[Any] = []

    def fail(*args: Any) -> Any:
        away.append(cloud.neutron.away())
        raise error
    monkeypatch.setattr(CREATE_SERVER.steps[-1], "do", fail)
    [uuid] = cloud.boot()
    cloud.idle()
    assert cloud.server(uuid).vm_state == "building" and len(cloud.neutron.of(uuid)) == 1
    monkeypatch.undo()
    away[0].left = 0
    cloud.expire_leases()
    cloud.runner().sweep()
    row = cloud.settle(uuid)
    assert row.vm_state in ("error", "active")
    assert len(cloud.neutron.of(uuid)) == (row.vm_state == "active")


@pytest.mark.parametrize("given", [False, True])
def test_create_when_a_delete_looked_for_ports_before_they_were_there_then_none_is_left(cloud, monkeypatch, given):
    client = cloud.deps.networking.client
    name = "update_port" if given else "create_ports"
    send, deleted = getattr(client, name), []

    def late(*args: Any) -> Any:
        if not deleted:
            deleted.extend(row.uuid for row in cloud.rows("cell", sa.select(tables.servers)))
            cloud.delete(*deleted)
        return send(*args)
    mine = cloud.neutron.add_port(cloud.net) if given else ""
    monkeypatch.setattr(client, name, late)
    uuids = cloud.boot(networks=(RequestedNetwork(network_id=cloud.net, port_id=mine or None),))
    cloud.idle()
    assert deleted == uuids and cloud.server(uuids[0]).deleted
    assert [(key, port["device_id"]) for key, port in cloud.neutron.ports.items()] == ([(mine, "")] if given else [])


@pytest.mark.parametrize("whose", [{"tenant_id": "evil", "project_id": "evil"}, {"device_owner": ""},
                                   {"device_owner": "network:dhcp"}])
def test_port_when_it_only_says_that_it_is_the_servers_then_it_is_left_alone(cloud, whose):
    [uuid] = cloud.active()
    group = cloud.neutron.add_group("theirs", "evil")
    foreign = cloud.neutron.add_port(cloud.net, device_id=uuid, security_groups=[group], **whose)
    assert foreign not in {one.id for one in cloud.deps.networking.interfaces_now(cloud.server(uuid))}
    cloud.deps.networking.healer.turn()
    assert foreign not in {one.id for one in cloud.server(uuid).interfaces}
    assert cloud.deps.networking.groups_shown([cloud.server(uuid)]) == {uuid: ("default",)}
    cloud.delete(uuid)
    assert list(cloud.neutron.ports) == [foreign]


def test_start_when_the_row_lacks_news_of_the_network_then_neutron_is_asked_and_nothing_is_waited_for(cloud):
    [uuid] = cloud.active()
    [down] = [msgspec.structs.replace(one, status="DOWN") for one in cloud.server(uuid).interfaces]
    for status, trouble in (("ACTIVE", None), ("DOWN", "DOWN"), ("DOWN", 503)):
        cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(interfaces=(down,)))
        cloud.neutron.ports[down.id]["status"] = status if trouble != 503 else "ACTIVE"
        if trouble == 503:
            cloud.neutron.trouble("GET", "ports", 503)
        cloud.neutron.requests.clear()
        cloud.order(uuid, "hard_reboot")
        cloud.ended(uuid)
        order = [order for kind, order in cloud.computes["host1"].orders if kind == "reboot"][-1]
        assert [one.status for one in (*order.interfaces, *order.build.interfaces)] == [status] * 2
        assert len(cloud.neutron.requests) == 1 and cloud.server(uuid).interfaces[0].status == status
    cloud.neutron.ports[down.id]["status"] = "ACTIVE"
    for _ in range(2):
        cloud.neutron.requests.clear()
        cloud.order(uuid, "hard_reboot")
        cloud.ended(uuid)
    assert cloud.neutron.requests == [], "a row that knows asks nobody"


def test_boot_when_the_port_became_anothers_meanwhile_then_it_is_an_error_and_the_port_stays_theirs(cloud):
    port = cloud.neutron.add_port(cloud.net)
    whole = cloud.neutron.answer

    def answer(request: Any) -> Any:
        if request.method == "PUT" and cloud.neutron.ports[port]["device_id"] == "":
            cloud.neutron.ports[port].update(device_id="another", revision_number=7)
        return whole(request)
    cloud.neutron.answer = answer
    [uuid] = cloud.boot(networks=(RequestedNetwork(port_id=port),))
    row = cloud.settle(uuid)
    assert row.vm_state == "error" and "still in use" in row.fault.message
    assert cloud.neutron.ports[port]["device_id"] == "another"


def test_boot_when_nothing_is_requested_and_there_is_no_network_then_one_is_made_or_refused(cloud):
    cloud.neutron.networks.clear()
    cloud.deps.networking.known.forget([cloud.net])
    [uuid] = cloud.active()
    assert cloud.server(uuid).interfaces in ((), None)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="Unable to automatically allocate"):
        cloud.boot(make_network=True)
    cloud.neutron.add_network("public", is_default=True, tenant_id="admin", **{"router:external": True})
    [uuid] = cloud.active(make_network=True)
    assert cloud.server(uuid).interfaces[0].label == "auto_allocated_network"


def test_groups_when_named_then_ports_have_them_and_names_are_shown(cloud):
    web = cloud.neutron.add_group("web")
    by_id = cloud.neutron.add_group("db")
    [uuid] = cloud.active(security_groups=("web", by_id))
    [port] = cloud.neutron.of(uuid)
    assert sorted(port["security_groups"]) == sorted((web, by_id))
    assert cloud.server(uuid).security_groups == ("web", "db")
    cloud.neutron.requests.clear()
    shown = cloud.deps.networking.groups_shown([cloud.server(uuid)])
    assert shown == {uuid: ("db", "web")} and len(cloud.neutron.requests) <= 2
    cloud.deps.networking.groups_shown([cloud.server(uuid)])
    assert len(cloud.neutron.requests) <= 3


def test_servers_when_their_groups_changed_in_neutron_then_they_are_shown_by_one_call_for_the_page(cloud):
    uuids = cloud.active(3)
    web = cloud.neutron.add_group("web")
    for uuid in uuids:
        cloud.neutron.of(uuid)[0]["security_groups"] = [web]
    cloud.neutron.requests.clear()
    with statements(cloud) as seen:
        page = cloud.control.list_servers(ServerListQuery())
    assert [one.security_groups for one in page.servers] == [("web",)] * 3 and len(seen) == 2
    assert len(cloud.neutron.requests) == 2  # their ports, and the name of a group that nobody asked for yet
    assert cloud.control.get_server(ServerQuery(uuid=uuids[0])).security_groups == ("web",)
    assert len(cloud.neutron.requests) == 3
    cloud.control.list_servers(ServerListQuery(detail=False))
    assert cloud.control.get_server(ServerQuery(uuid=uuids[0], as_kept=True)).security_groups == ("default",)
    assert len(cloud.neutron.requests) == 3


def test_servers_when_neutron_does_not_answer_then_no_groups_are_shown_and_it_is_left_alone_for_a_while(cloud):
    [uuid] = cloud.active()
    cloud.neutron.trouble("GET", "ports", "timeout", times=10**6)
    cloud.neutron.requests.clear()
    cloud.neutron.timeouts.clear()
    for _ in range(3):
        assert cloud.control.list_servers(ServerListQuery()).servers[0].security_groups == ()
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).security_groups == ()
    assert len(cloud.neutron.requests) == 1 and max(cloud.neutron.timeouts[0]) <= 2.5


@pytest.mark.parametrize("trouble", ["refused", "timeout", 500, 503, 403])
def test_groups_shown_when_neutron_is_away_then_they_are_not_known_until_it_is_back(cloud, trouble):
    [uuid] = cloud.active()
    web = cloud.neutron.add_group("web")
    cloud.neutron.of(uuid)[0]["security_groups"] = [web]
    cloud.neutron.trouble("GET", "ports", trouble, times=10**6)
    shown = [cloud.control.get_server(ServerQuery(uuid=uuid)), *cloud.control.list_servers(ServerListQuery()).servers]
    assert [one.security_groups for one in shown] == [(), ()], "neither stale nor made up"
    cloud.neutron.troubles.clear()
    cloud.deps.networking = cloud.make_back_end(cloud.deps)  # which has not learned yet that it was away
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).security_groups == ("web",)


def test_groups_shown_when_port_security_is_off_then_there_are_none_and_those_of_other_ports_stand(cloud):
    """``security_groups`` of a port without port security: a Neutron that keeps them applies none."""
    bare = cloud.neutron.add_network("bare", ("10.9.0.0/24",), port_security_enabled=False)
    [guarded, unguarded] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net),)) + cloud.active(
        networks=(RequestedNetwork(network_id=bare),))
    default = next(iter(cloud.neutron.groups))
    for one in (*cloud.neutron.of(guarded), *cloud.neutron.of(unguarded)):
        one["security_groups"] = [default]
    for one in cloud.neutron.of(unguarded):
        one["port_security_enabled"] = False
    found = {one.uuid: one.security_groups for one in cloud.control.list_servers(ServerListQuery()).servers}
    assert found == {guarded: ("default",), unguarded: ()}
    cloud.neutron.of(guarded)[0]["port_security_enabled"] = False  # switched off later, by its owner
    assert cloud.control.get_server(ServerQuery(uuid=guarded)).security_groups == ()


def test_groups_shown_when_a_server_has_no_port_then_there_are_none_and_neutron_is_not_asked(cloud):
    [none] = cloud.active(networks=())
    cloud.neutron.requests.clear()
    assert cloud.control.get_server(ServerQuery(uuid=none)).security_groups == () and cloud.neutron.requests == []


def test_groups_shown_when_all_ports_are_gone_from_neutron_then_there_are_none(cloud):
    [uuid] = cloud.active()
    cloud.neutron.ports.clear()
    assert cloud.server(uuid).interfaces and cloud.server(uuid).security_groups == ("default",)
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).security_groups == ()


def test_groups_shown_when_a_server_waits_for_its_ports_then_they_are_those_that_were_asked_for(cloud):
    cloud.neutron.add_group("web")
    cloud.deps.runner.start = lambda *args, **named: None  # nothing of it is run
    [uuid] = cloud.boot(security_groups=("web",))
    cloud.neutron.requests.clear()
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).security_groups == ("web",) and not cloud.neutron.requests


def test_boot_when_groups_share_a_name_then_its_port_has_those_whose_ids_were_said(cloud):
    first, second = cloud.neutron.add_group("dup"), cloud.neutron.add_group("dup")
    called_so = cloud.neutron.add_group(first)
    default = next(one["id"] for one in cloud.neutron.groups.values() if one["name"] == "default")
    for asked in ((first,), (second,), (first, second), (called_so, "default"), (first, called_so, second, first)):
        uuids = cloud.active(2, security_groups=asked)
        wanted = {default if one == "default" else one for one in asked}
        for uuid in uuids:
            [port] = cloud.neutron.of(uuid)
            assert set(port["security_groups"]) == wanted and len(port["security_groups"]) == len(wanted)


def test_boot_when_a_release_that_kept_names_alone_began_it_then_names_are_looked_up(cloud):
    web = cloud.neutron.add_group("web")
    entry = Entry(id=1, server_uuid="u", action="create", epoch=1, arguments={})
    op = Op(entry, server_value(security_groups=("web",), project_id="demo", host="host1"))
    client = cloud.deps.networking.client
    binder = Binder(cloud.deps, client, NeutronCache(client), "br-int")
    assert binder.body(op, RequestedNetwork(network_id=cloud.net))["security_groups"] == [web]
    op.see(security_groups=("default",))
    assert "security_groups" not in binder.body(op, RequestedNetwork(network_id=cloud.net))


def test_boot_when_its_group_is_gone_by_then_then_the_fault_names_it_and_no_other_of_its_name_is_taken(cloud):
    old = cloud.neutron.add_group("web")
    whole = cloud.neutron.answer

    def answer(request: Any) -> Any:
        if request.method == "POST" and old in cloud.neutron.groups:
            del cloud.neutron.groups[old]
            cloud.neutron.add_group("web")
        return whole(request)
    cloud.neutron.answer = answer
    [uuid] = cloud.boot(security_groups=("web",))
    server = cloud.ended(uuid)
    assert server.vm_state == "error" and f"Security group {old} does not exist" in server.fault.message
    assert cloud.neutron.of(uuid) == []


def test_create_when_port_security_is_off_then_its_answer_and_the_server_have_no_groups(cloud):
    """``security_groups`` of the answer is what will be, not what the request's silence stands for."""
    bare = cloud.neutron.add_network("bare", ("10.9.0.0/24",), port_security_enabled=False)
    given = cloud.neutron.add_port(cloud.net, port_security_enabled=False)
    cases = {(): (), (RequestedNetwork(network_id=bare),): (), (RequestedNetwork(port_id=given),): (),
             (RequestedNetwork(network_id=cloud.net),): ("default",), None: ("default",)}
    for networks, groups in cases.items():
        if networks is None:
            del cloud.neutron.networks[bare]
            cloud.deps.networking.known.forget([bare])
        with context.entered(DEMO):
            made = cloud.control.create_servers(NewServer(name="vm", flavor_id="1", networks=networks))
        assert made.security_groups == groups, networks
        assert cloud.settle(made.uuids[0]).vm_state == "active"
        assert cloud.control.get_server(ServerQuery(uuid=made.uuids[0])).security_groups == groups, networks
