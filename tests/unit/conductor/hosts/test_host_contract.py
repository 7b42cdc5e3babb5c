"""What one host can say and ask through ConductorHostRPC, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import services
from nova.db.models import cell as tables
from nova.db.models.api import providers as resource_providers
from nova.db.placement import providers as placement_providers
from nova.db.server import migrations
from nova.model.guest.guests import GuestPassword, GuestQuery
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import ContractVersion, Heartbeat, Registration, ServiceQuery, ServiceUpdate
from nova.model.placement.providers import ChildProvider, NewProvider
from nova.model.server.migrations import NewMigration
from nova.rpc.client import Peers
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.compute_hosts import silent
from tests.fakes.small_cloud import SmallCloud, node_id, until


def compute(host: str, **fields: Any) -> Registration:
    return Registration(**{"host": host, "binary": "nova-compute", "topic": "compute", "host_id": node_id(host),
                           **fields})


# -- registration

def test_register_when_a_host_says_it_runs_a_control_daemon_then_forbidden(cloud: SmallCloud) -> None:
    with pytest.raises(errors.Forbidden, match="nova-conductor"):
        cloud.hosts.register("a", Registration(host="a", binary="nova-conductor", topic="conductor"))
    with pytest.raises(errors.Forbidden):
        cloud.hosts.register("a", compute("b"))


@pytest.mark.parametrize("name, version", [
    ("ConductorRPC", "1.0"), ("ComputeRPC", "0.9"), ("ComputeRPC", "2.0"), ("ComputeRPC", "one"), ("ComputeRPC", "")])
def test_register_when_a_host_would_pull_versions_down_then_refused_and_all_others_go_on(cloud, name, version) -> None:
    contracts = (ContractVersion(name=name, version=version),)
    with pytest.raises(errors.PeerTooOld):
        cloud.hosts.register("a", compute("a", contracts=contracts))
    cloud.daemons.refresh()
    peers = Peers()
    peers.learn(cloud.daemons.heartbeat(Heartbeat(host="a", binary="nova-compute")).lowest)
    assert peers.speak(ConductorRPC) == ConductorRPC.version


def test_register_when_a_host_speaks_an_older_version_then_it_alone_is_spoken_to_so(cloud: SmallCloud) -> None:
    """What others are asked for does not depend on one host: it may be stolen."""
    cloud.hosts.register("a", compute("a", contracts=(ContractVersion(name="ComputeRPC", version="1.0"),)))
    peers = Peers()
    cloud.daemons.refresh(peers)
    assert peers.speak(ComputeRPC, "a") == "1.0"
    assert peers.speak(ComputeRPC, "b") == ComputeRPC.version
    pause = ComputeRPC.methods["pause_guests"]
    with pytest.raises(errors.PeerTooOld, match="nova-compute on a supports RPC version 1.0"):
        peers.check(ComputeRPC, pause, "a")
    assert peers.check(ComputeRPC, pause, "b") == ComputeRPC.version
    assert cloud.daemons.heartbeat(Heartbeat(host="b", binary="nova-compute")).lowest == ()


def test_register_when_two_machines_of_a_name_come_at_once_then_one_is_refused(cloud, monkeypatch) -> None:
    """The other's row is written between our look and our insert."""
    insert = services.insert_ignoring

    def late(tx: Any, table: Any, rows: Any) -> None:
        insert(tx, table, [{**rows[0], "uuid": node_id("xx"), "host_id": node_id("other")}])
        insert(tx, table, rows)
    cloud.enroll("new")
    monkeypatch.setattr(services, "insert_ignoring", late)
    with pytest.raises(errors.host.WrongIdentity):
        cloud.hosts.register("new", compute("new"))


def test_inventory_when_it_is_of_another_machine_then_refused(cloud: SmallCloud) -> None:
    cloud.report("a", ("a",), version=2)
    for host, known in (("a", "stranger"), ("never", "never")):
        cloud.computes[host] = cloud.computes["a"]
        with pytest.raises(errors.Conflict, match="not registered"):
            _report_as(cloud, host, node_id(known))


def _report_as(cloud: SmallCloud, host: str, host_id: str) -> None:
    cloud.hosts.report_inventory(host, Inventory(host=host, host_id=host_id, nodes=(), version=9))


@pytest.mark.parametrize("place", ["node", "child", "made by the API"])
def test_inventory_when_a_node_is_somebody_elses_then_refused_and_that_stays(cloud: SmallCloud, place: str) -> None:
    child = ChildProvider(uuid=node_id("child"), name="b_gpu")
    cloud.report("b", ("b",), version=2, children=(child,))
    theirs = {"node": node_id("b"), "child": child.uuid, "made by the API": node_id("shared")}[place]
    if place == "made by the API":
        cloud.deps.api.transact(lambda tx: placement_providers.insert(tx, NewProvider(uuid=theirs, name="shared")))
    before = cloud.rows("api", sa.select(resource_providers).where(resource_providers.c.uuid == theirs))
    node = Node(uuid=theirs, name="a", hypervisor_type="QEMU", vcpus=4096)
    stolen = Inventory(host="a", host_id=node_id("a"), version=9, nodes=(node,))
    with pytest.raises(errors.Forbidden, match=theirs):
        cloud.hosts.report_inventory("a", stolen)
    assert cloud.rows("api", sa.select(resource_providers).where(resource_providers.c.uuid == theirs)) == before


def test_inventory_when_a_child_has_the_uuid_of_another_hosts_then_refused(cloud: SmallCloud) -> None:
    cloud.report("b", ("b",), version=2)
    with pytest.raises(errors.Forbidden):
        cloud.report("a", ("a",), version=3, children=(ChildProvider(uuid=node_id("b"), name="a_gpu"),))


# -- guests of others

def test_facts_when_the_guest_is_elsewhere_then_a_compute_host_learns_nothing(cloud: SmallCloud) -> None:
    uuid, = cloud.active(user_data="c2VjcmV0")
    query = GuestQuery(server_uuid=uuid)
    assert cloud.hosts.guest_facts("a", query).user_data == "c2VjcmV0"
    by_address = GuestQuery(address=cloud.addresses()[uuid])
    for asked in (query, by_address):
        with pytest.raises(errors.NotFound):
            cloud.hosts.guest_facts("b", asked)
    with pytest.raises(errors.NotFound):
        cloud.hosts.set_guest_password("b", GuestPassword(server_uuid=uuid, password="x"))
    cloud.hosts.set_guest_password("a", GuestPassword(server_uuid=uuid, password="x"))
    with pytest.raises(errors.Conflict):
        cloud.hosts.set_guest_password("a", GuestPassword(server_uuid=uuid, password="y"))


def test_password_when_no_such_guest_is_there_then_refused_as_for_a_guest_of_another_host(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    codes = set()
    for asked in (uuid, "00000000-0000-4000-8000-00000000beef"):
        with pytest.raises(errors.NotFound) as refused:
            cloud.hosts.set_guest_password("b", GuestPassword(server_uuid=asked, password="x"))
        codes.add(refused.value.code)
    assert codes == {"guest.unknown_name"}


@pytest.mark.parametrize("binary, host", [
    ("nova-metadata", "meta"), ("nova-conductor", "b"), ("nova-scheduler", "b"), ("nova-conductor", "c")])
def test_facts_when_a_control_or_metadata_host_asks_then_it_gets_them(cloud: SmallCloud, binary, host) -> None:
    cloud.daemons.register(Registration(host=host, binary=binary, topic="control"))
    uuid, = cloud.active()
    assert cloud.hosts.guest_facts(host, GuestQuery(server_uuid=uuid)).uuid == uuid


@pytest.mark.parametrize("binary, host", [("", "unheard-of"), ("nova-network", "other"), ("nova-metadata", "b")])
def test_facts_when_a_host_has_nothing_to_do_with_the_guest_then_it_learns_nothing(
        cloud: SmallCloud, binary, host) -> None:
    uuid, = cloud.active(user_data="c2VjcmV0")
    if binary:
        cloud.daemons.register(Registration(host=host, binary=binary, topic="x"))
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts(host, GuestQuery(server_uuid=uuid))
    with pytest.raises(errors.NotFound):
        cloud.hosts.set_guest_password(host, GuestPassword(server_uuid=uuid, password="x"))


def test_facts_when_a_host_was_taken_from_the_cloud_then_its_metadata_service_learns_nothing(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.daemons.register(Registration(host="b", binary="nova-metadata", topic="metadata"))
    cloud.write("cell", tables.services.update().where(
        tables.services.c.host == "b", tables.services.c.binary == "nova-compute").values(deleted=tables.services.c.id))
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("b", GuestQuery(server_uuid=uuid))


def test_facts_when_a_compute_host_serves_the_network_then_it_gets_them(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.write("cell", tables.networks.update().values(host="b"))
    assert cloud.hosts.guest_facts("b", GuestQuery(server_uuid=uuid)).uuid == uuid


def test_expected_guests_when_a_deleted_server_was_never_there_then_the_host_hears_nothing_of_it(
        cloud: SmallCloud) -> None:
    uuid, = cloud.active(host="a")
    cloud.delete(uuid)
    assert [one.server_uuid for one in cloud.hosts.expected_guests("a", (uuid,)) if one.gone] == [uuid]
    assert cloud.hosts.expected_guests("b", (uuid,)) == ()


def test_expected_guests_when_a_deleted_server_had_left_then_its_old_host_hears_that_it_is_gone(
        cloud: SmallCloud) -> None:
    uuid, = cloud.active(host="a")
    move = NewMigration(uuid=node_id("move"), server_uuid=uuid, type="evacuation", status="done", source_compute="b",
                        dest_compute="a")
    cloud.cell.transact(lambda tx: migrations.insert(tx, move))
    cloud.delete(uuid)
    assert [one.server_uuid for one in cloud.hosts.expected_guests("b", (uuid,))] == [uuid]


@pytest.mark.parametrize("call", ["expected_guests", "may_proceed"])
def test_call_when_it_names_more_guests_than_a_host_has_then_invalid(cloud: SmallCloud, call: str) -> None:
    with pytest.raises(errors.Invalid, match="at most"):
        getattr(cloud.hosts, call)("a", ("x",) * 10_001)


def test_metadata_service_is_in_no_list(cloud: SmallCloud) -> None:
    cloud.enroll("api")
    cloud.hosts.register("api", Registration(host="api", binary="nova-metadata", topic="metadata"))
    assert "nova-metadata" not in {one.binary for one in cloud.control.list_services(services.ServiceQuery())}


# -- heartbeats

def test_heartbeat_when_a_cleanup_was_just_made_then_the_host_is_told(cloud: SmallCloud) -> None:
    beat = Heartbeat(host="a", binary="nova-compute")
    assert not cloud.daemons.heartbeat(beat).cleanups_pending
    cloud.computes["a"].answers = {"build": silent, "destroy": silent}
    cloud.active()
    cloud.clock_s += 2
    assert cloud.daemons.heartbeat(beat).cleanups_pending
    cloud.hosts.still_here("a", beat)  # which only tells: so it is told
    cloud.hosts.still_here("b", Heartbeat(host="b", binary="nova-compute"))
    until(lambda: len(cloud.computes["a"].asked("look_for_debts")) == 1, "the host is told")
    assert cloud.computes["b"].asked("look_for_debts") == []
    assert not cloud.daemons.heartbeat(Heartbeat(host="b", binary="nova-compute")).cleanups_pending
    [service] = cloud.control.list_services(ServiceQuery(host="a", binary="nova-compute"))
    for down in (True, False):  # it counts as up again: what it owes is due before it is a destination
        cloud.control.update_service(ServiceUpdate(uuid=service.uuid, forced_down=down))
    until(lambda: len(cloud.computes["a"].asked("look_for_debts")) == 2, "the host is reminded")
    cloud.hosts.debt_paid("a", cloud.debts()[0].id)
    cloud.clock_s += 2
    assert not cloud.daemons.heartbeat(beat).cleanups_pending


def test_heartbeats_when_the_database_is_away_then_they_are_written_later(cloud: SmallCloud, monkeypatch) -> None:
    from nova.db.sql.engine import DatabaseUnavailable

    def away(_work: Any) -> None:
        raise DatabaseUnavailable(reason="restarts")
    beat = Heartbeat(host="a", binary="nova-compute")
    cloud.daemons.heartbeat(beat)
    with monkeypatch.context() as patched:
        patched.setattr(cloud.cell, "transact", away)
        with pytest.raises(errors.Unavailable):
            cloud.daemons.flush()
    cloud.scheduler.calls.clear()
    cloud.daemons.flush()
    assert [host for message in cloud.scheduler.received for host, _seen in message.alive] == ["a"]
