"""A cell conductor: every call of hosts works without the api database, the schedulers and a runner."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor import ec2_numbers
from nova.conductor.cells.cell_parts import NoApiDatabase, NoClient
from nova.conductor.service import metadata_service
from nova.db.host import host_cleanups, services
from nova.db.models import cell as tables
from nova.model.base import utcnow
from nova.model.guest.guests import GuestPassword, GuestQuery
from nova.model.guest.orders import GuestState, Outcome, Permission, PowerReport
from nova.model.guest.orphans import FoundOrphan, OrphanKind, OrphanReport
from nova.model.host.hosts import HypervisorDown
from nova.model.host.services import Heartbeat, Registration
from nova.model.network.networks import LeaseChange
from nova.model.server.migrations import ProgressReport
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeCounts
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
from tests.fakes.cell_hosts import CellConductor
from tests.fakes.small_cloud import SmallCloud, node_id

BEAT = Heartbeat(host="a", binary="nova-compute", sent_at=utcnow())
STRANGER = FoundOrphan(kind=OrphanKind.GUEST, server_uuid="10000000-0000-4000-8000-000000000000")


@pytest.fixture
def cell(cloud: SmallCloud) -> CellConductor:
    return CellConductor(cloud)


def owed(cloud: SmallCloud, uuid: str, host: str = "a", step: str = "destroy_guests") -> int:
    """Write a pending cleanup, and return its key."""
    cleanup = {"host": host, "server_uuid": uuid, "epoch": 1, "step": step, "arguments": {}}
    cloud.cell.transact(lambda tx: host_cleanups.add(tx, [cleanup]))
    return max(row.id for row in cloud.debts())


def ask_for_facts(cell: CellConductor, uuid: str) -> None:
    """Ask for the facts of a guest, and carry them."""
    with pytest.raises(errors.guest.FactsNotHere):
        cell.hosts.guest_facts("a", GuestQuery(server_uuid=uuid, project_id="demo"))
    cell.carrying.carry()


#: Calls of ConductorHostRPC -> their arguments after the host, by the server and the network of the test.
CALLS: dict[str, Any] = {
    "register": lambda uuid, network: (Registration(host="a", binary="nova-compute", topic="compute",
                                                    host_id=node_id("a")),),
    "change_secret": lambda uuid, network: ("s" * 64,),
    "heartbeat": lambda uuid, network: (BEAT,),
    "still_here": lambda uuid, network: (BEAT,),
    "known_host": lambda uuid, network: (),
    "report_inventory": None,
    "report_hypervisor_down": lambda uuid, network: (HypervisorDown(ip="10.0.0.1", exception="E", message="away"),),
    "report_power": lambda uuid, network: (PowerReport(host="a", guests=(
        GuestState(server_uuid=uuid, power_state=PowerState.SHUTDOWN, epoch=9),)),),
    "report_outcomes": lambda uuid, network: ((1,), (Outcome(server_uuid=uuid, power_state=PowerState.RUNNING),)),
    "may_proceed": lambda uuid, network: ((Permission(server_uuid=uuid, epoch=1),),),
    "report_progress": lambda uuid, network: ((ProgressReport(server_uuid=uuid, epoch=1),),),
    "expected_guests": lambda uuid, network: ((uuid,),),
    "report_strangers": lambda uuid, network: (OrphanReport(host="a", found=(STRANGER,)),),
    "debt_paid": None,
    "volumes_given_up": lambda uuid, network: (uuid, (uuid,)),
    "report_volume_usage": lambda uuid, network: ((VolumeCounts(server_uuid=uuid, volume_id=uuid),),),
    "guest_facts": lambda uuid, network: (GuestQuery(server_uuid=uuid, project_id="demo"),),
    "set_guest_password": lambda uuid, network: (GuestPassword(server_uuid=uuid, password="secret"),),
    "host_firewall": lambda uuid, network: (),
    "guest_ranges": lambda uuid, network: (),
    "networks_on_host": lambda uuid, network: (),
    "network_for_guest": lambda uuid, network: (network,),
    "report_lease": lambda uuid, network: (LeaseChange(host="a", action="add", mac="02:00:00:00:00:01",
                                                       address="10.0.0.9"),),
}


def test_calls_then_all_of_the_contract_are_here() -> None:
    assert CALLS.keys() == ConductorHostRPC.methods.keys()


@pytest.mark.parametrize("name", [name for name, arguments in CALLS.items() if arguments])
def test_call_of_a_host_when_there_is_no_api_database_then_it_is_answered(
        cloud: SmallCloud, cell: CellConductor, name: str) -> None:
    uuid, = cloud.active()
    network = cloud.rows("cell", sa.select(tables.networks.c.uuid))[0].uuid
    host = "net" if name == "network_for_guest" else "a"
    if name == "network_for_guest":
        cloud.write("cell", sa.update(tables.networks).values(host="net"))
    ask_for_facts(cell, uuid)
    getattr(cell.hosts, name)(host, *CALLS[name](uuid, network))


def test_metadata_service_when_there_is_no_api_database_then_every_call_is_answered(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    service: Any = metadata_service(cell.deps, cell.daemons)
    calls = {"register": (Registration(host="m", binary="nova-metadata", topic="metadata"),),
             "heartbeat": (Heartbeat(host="m", binary="nova-metadata"),),
             "guest_facts": ("m", GuestQuery(server_uuid=uuid, project_id="demo")),
             "set_guest_password": ("m", GuestPassword(server_uuid=uuid, password="secret"))}
    assert calls.keys() == ConductorMetadataRPC.methods.keys()
    ask_for_facts(cell, uuid)
    for name, arguments in calls.items():
        getattr(service, name)(*arguments)


def test_report_when_it_comes_from_a_host_of_a_cell_then_it_is_in_the_cells_database_alone(
        cloud: SmallCloud, cell: CellConductor) -> None:
    cell.join("c")
    node, = cloud.rows("cell", sa.select(tables.nodes).where(tables.nodes.c.host == "c"))
    assert (node.version, node.facts.memory_mb) == (1, 100_000)
    assert "c" not in {one.host for one in cloud.deps.feed.states().states}


def test_cleanup_when_its_host_did_it_then_it_is_neither_pending_nor_asked_for_again(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    key, other = owed(cloud, uuid), owed(cloud, uuid, host="b")
    registration = CALLS["register"](uuid, "")[0]
    assert [one.id for one in cell.hosts.register("a", registration).cleanups] == [key]
    cell.hosts.debt_paid("b", key)  # another host's
    assert [one.done_at for one in cloud.debts()] == [None, None]
    for _ in range(2):
        cell.hosts.debt_paid("a", key)
    assert cell.hosts.register("a", registration).cleanups == ()
    cloud.clock_s += 2
    assert not cell.hosts.heartbeat("a", BEAT).cleanups_pending
    assert [one.id for one in cloud.control.list_debts(None)] == [other]
    assert {row.id for row in cloud.debts() if row.done_at} == {key} and ("a", uuid) in cloud.claims()


def test_cleanup_when_it_is_due_again_before_the_done_one_is_carried_then_the_host_is_asked(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    done = owed(cloud, uuid)
    cell.hosts.debt_paid("a", done)
    again = owed(cloud, uuid)
    assert again != done and [one.id for one in cloud.control.list_debts("a")] == [again]


def test_guest_when_it_runs_although_its_server_is_stopped_then_a_super_conductor_stops_it(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    cell.hosts.report_power("a", PowerReport(host="a", guests=(
        GuestState(server_uuid=uuid, power_state=PowerState.RUNNING, epoch=2),)))
    left, = cloud.open(uuid)
    assert (left.action, left.runner_id, left.user_id) == ("stop", 0, None)
    assert cloud.deps.runner.sweep() == 1  # at once: no lease has to end
    assert cloud.ended(uuid).vm_state == "stopped" and cloud.journal(uuid)[-1].outcome == "success"


def test_gap_when_hosts_cannot_reach_their_broker_then_services_stay_up(
        cloud: SmallCloud, cell: CellConductor) -> None:
    def away() -> None:
        raise errors.daemon.RpcBrokerAway("no broker")
    cell.daemons.heartbeat(Heartbeat(host="a", binary="nova-compute"))
    cell.daemons.flush()
    old = sa.text("strftime('%Y-%m-%d %H:%M:%f000', 'now', '-80 seconds')")
    cloud.write("cell", sa.update(tables.services).values(last_seen_at=old))
    cell.daemons.bridge_report_gap()  # the broker was reached: the hosts are silent on their own
    assert ages(cloud)["a"] > 70
    cell.broker = away
    cell.daemons.register(Registration(host="cellctl", binary="nova-conductor", topic="conductor"))
    cell.daemons.heartbeat(Heartbeat(host="cellctl", binary="nova-conductor"))
    cell.daemons.flush()
    cell.daemons.bridge_report_gap()
    assert ages(cloud)["a"] < 50


def ages(cloud: SmallCloud) -> dict[str, float]:
    with cloud.cell.reading() as tx:
        return {host: services.silent_s(tx, "nova-compute", host) or 0.0 for host in ("a", "b")}


def test_api_database_when_a_cell_conductor_uses_it_then_the_error_names_who_did(cell: CellConductor) -> None:
    api = NoApiDatabase()
    for use in (lambda: api.transact(lambda tx: None), api.check):
        with pytest.raises(errors.daemon.NotInACell, match=r"test_cell_parts\..* needs the api database"):
            use()
    with pytest.raises(errors.daemon.NotInACell, match=r"nova\.conductor\.ec2_numbers\.numbers needs the api database"):
        ec2_numbers.numbers(cell.deps, "instance", ["1"])
    with pytest.raises(errors.daemon.NotInACell, match="needs the scheduler"):
        NoClient("the scheduler").select_hosts(None)
    api.dispose()
