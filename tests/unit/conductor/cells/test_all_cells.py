"""Calls of the API over two cells: each reaches the cell of its server or host, and lists cover both."""

from __future__ import annotations

import datetime
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.cells import live_cells
from nova.conductor.cells.guest_answers import MergedGuestAnswers
from nova.conductor.cells.live_cells import AwayDatabase
from nova.conductor.cells.routes import BY_ENTRY, BY_HOST, BY_SERVER
from nova.conductor.queries.cloud_figures import CloudFigures
from nova.conductor.service import cells_service
from nova.conductor.upkeep.periodic import LedgerSweep
from nova.conductor.zones import ForgottenHosts
from nova.db.host import reports
from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.placement import audits, placement_facts
from nova.model.base import Page, utcnow
from nova.model.guest.guests import GuestPassword, GuestQuery
from nova.model.host.aggregates import NewAggregate
from nova.model.host.cells import CELL
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import HypervisorQuery, ServiceQuery, ServiceUpdate
from nova.model.quota.usage import UsageQuery
from nova.model.scheduling.decisions import PlacementRequest
from nova.model.server.actions import ActionQuery
from nova.model.server.migrations import MigrationQuery
from nova.model.server.server_orders import MigrateServer
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import NewServer, ServerListQuery, ServerOrder, ServerQuery
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.small_cloud import DEMO, SmallCloud, node_id, until
from tests.fakes.two_cells import OTHER, TwoCells


@pytest.fixture
def two(tmp_path: Path, templates: Path) -> Iterator[TwoCells]:
    made = TwoCells(tmp_path, templates)
    yield made
    made.close()


@pytest.fixture
def service(two: TwoCells) -> Any:
    return cells_service(two.cells, two.entry.daemons)


def boot(two: TwoCells, service: Any, host: str, **fields: Any) -> str:
    """Boot a server on this host and wait until it is ACTIVE."""
    two.choose(host)
    with context.entered(DEMO):
        uuid, = service.create_servers(NewServer(**{
            "name": f"on-{host}", "flavor_id": "1", "min_count": 1, "max_count": 1, **fields})).uuids
    until(lambda: service.get_server(ServerQuery(uuid=uuid)).vm_state == "active", "it is active")
    until(lambda: not cell_of(two, host).open(uuid), "the operation has ended")
    return str(uuid)


def cell_of(two: TwoCells, host: str) -> SmallCloud:
    return two.entry if host in "ab" else two.other


def act(service: Any, uuid: str, action: str) -> None:
    with context.entered(DEMO):
        service.order_server(ServerOrder(uuid=uuid, action=action))


# -- routes

def test_service_then_each_call_of_the_contract_has_its_parameters(service: Any) -> None:
    for name, method in ConductorRPC.methods.items():
        wanted = list(method.signature.parameters)[1:]
        assert list(inspect.signature(getattr(service, name)).parameters) == wanted, name


def test_routes_then_no_call_is_in_two_tables() -> None:
    assert not set(BY_SERVER) & set(BY_HOST) and not set(BY_ENTRY) & {*BY_SERVER, *BY_HOST}


def test_paths_of_routes_then_the_first_arguments_have_them() -> None:
    for name, path in {**BY_SERVER, **BY_HOST}.items():
        kind = next(iter(msgspec.structs.fields(ConductorRPC.methods[name].arguments))).type
        for step in filter(None, path.split(".")):
            kind = {field.name: field.type for field in msgspec.structs.fields(kind)}[step]
        assert kind is str or str in getattr(kind, "__args__", ()) or "str" in str(kind), name


def test_call_when_an_argument_is_called_name_then_it_arrives(service: Any) -> None:
    """Servers call with keywords."""
    with pytest.raises(errors.NotFound):
        service.delete_keypair(user_id="joe", name="nobody's")
    with pytest.raises(errors.network.NotServed):  # by Neutron
        service.delete_dns_entry(domain="nowhere", name="www")


def test_order_when_the_server_is_in_another_cell_then_its_own_hosts_do_it(two: TwoCells, service: Any) -> None:
    uuid = boot(two, service, "c")
    act(service, uuid, "stop")
    until(lambda: service.get_server(ServerQuery(uuid=uuid)).vm_state == "stopped", "it is stopped")
    actions = service.list_actions(ActionQuery(server_uuid=uuid))
    assert [one.action for one in actions] == ["stop", "create"]
    assert [one.action for one in service.get_request(uuid)] == ["create", "stop"]  # by request, or by server
    act(service, uuid, "delete")
    until(lambda: two.other.server(uuid).deleted, "it is gone")
    assert not two.entry.open_ledger() and not two.entry.claims()


def test_call_when_no_cell_has_the_server_then_it_is_not_found(service: Any) -> None:
    with pytest.raises(errors.server.NotFound):
        service.get_server(ServerQuery(uuid="00000000-0000-4000-8000-00000000beef"))


def test_call_when_the_cell_of_the_server_is_not_served_then_it_is_unavailable(two: TwoCells, service: Any) -> None:
    uuid = boot(two, service, "c")
    two.cells.remove(OTHER)
    two.cells.add_away("0e3ff0a5-0000-4000-8000-00000000000f")
    with pytest.raises(errors.Unavailable):
        service.get_target(ServerQuery(uuid=uuid))
    two.cells.add(two.other.deps)
    assert service.get_target(ServerQuery(uuid=uuid)).host == "c"


class AwayTo:
    """A cell whose database is away, in the block."""

    def __init__(self, two: TwoCells) -> None:
        self._two, self._there = two, two.other.deps.cell

    def __enter__(self) -> None:
        self._two.other.deps.cell = AwayDatabase()

    def __exit__(self, *_: object) -> None:
        self._two.other.deps.cell = self._there


def test_server_when_its_cell_is_away_then_it_is_shown_in_part_each_time(two: TwoCells, service: Any) -> None:
    """Whether the cell is already known to be away, or not."""
    uuid = boot(two, service, "c")
    with AwayTo(two):
        for _ in range(5):
            found = service.get_server(ServerQuery(uuid=uuid, with_unknown=True))
            assert found.unknown and found.flavor.name == "tiny"
            with pytest.raises(errors.Unavailable):
                service.get_server(ServerQuery(uuid=uuid))
            page = service.list_servers(ServerListQuery(silent_cells="show"))
            assert [one.unknown for one in page.servers] == [True]
    until(lambda: not service.get_server(ServerQuery(uuid=uuid, with_unknown=True)).unknown, "it is whole again")


def test_create_when_a_cell_is_away_that_may_have_what_it_names_then_it_is_to_be_repeated(
        two: TwoCells, service: Any) -> None:
    key = service.create_aggregate(NewAggregate(name="agg", availability_zone="moon")).id
    service.add_aggregate_host(key, "c")
    with AwayTo(two), context.entered(DEMO):
        for named in ({"host": "c"}, {"node": "c"}, {"availability_zone": "moon"}):
            with pytest.raises(errors.Unavailable):
                service.create_servers(NewServer(name="vm", flavor_id="1", min_count=1, max_count=1, **named))
    assert not two.entry.open_ledger()


# -- hosts

def test_services_then_those_of_both_cells_are_listed_and_changed(two: TwoCells, service: Any) -> None:
    found = service.list_services(ServiceQuery(binary="nova-compute"))
    assert {one.host for one in found} == {"a", "b", "c", "d"}
    service.update_service(ServiceUpdate(host="c", binary="nova-compute", disabled=True, disabled_reason="rain"))
    by_uuid = {one.host: one for one in service.list_services(ServiceQuery())}
    assert by_uuid["c"].disabled and not by_uuid["a"].disabled
    changed = service.update_service(ServiceUpdate(uuid=by_uuid["d"].uuid, forced_down=True))
    assert (changed.host, changed.forced_down) == ("d", True)
    service.delete_service(ServiceQuery(uuid=by_uuid["d"].uuid))
    assert {one.host for one in service.list_services(ServiceQuery(binary="nova-compute"))} == {"a", "b", "c"}
    with pytest.raises(errors.service.NotFound):
        service.delete_service(ServiceQuery(uuid=by_uuid["d"].uuid))


def test_service_when_two_cells_use_its_number_then_it_is_refused(two: TwoCells, service: Any) -> None:
    number = service.list_services(ServiceQuery(host="a", binary="nova-compute"))[0].id
    assert [one.id for one in service.list_services(ServiceQuery(host="c", binary="nova-compute"))] == [number]
    with pytest.raises(errors.service.SeveralCells):
        service.delete_service(ServiceQuery(id=number))


def test_hypervisors_then_pages_cover_both_cells(two: TwoCells, service: Any) -> None:
    whole = [one.uuid for one in service.list_hypervisors(HypervisorQuery())]
    assert len(whole) == 4
    found: list[str] = []
    while page := service.list_hypervisors(HypervisorQuery(limit=1, marker=found[-1] if found else None)):
        found += [one.uuid for one in page]
    assert found == whole
    assert [one.host for one in service.list_hypervisors(HypervisorQuery(hostname_pattern="d"))] == ["d"]
    assert service.list_hypervisors(HypervisorQuery(uuid=whole[0]))[0].uuid == whole[0]
    numbered, = service.list_hypervisors(HypervisorQuery(id=1))  # a number of each cell: the first one's is shown
    assert numbered.uuid == whole[0]
    with pytest.raises(errors.host.HypervisorNotFound):
        service.list_hypervisors(HypervisorQuery(uuid="00000000-0000-4000-8000-00000000beef"))
    with pytest.raises(errors.api.PageMarkerNotFound):
        service.list_hypervisors(HypervisorQuery(marker="00000000-0000-4000-8000-00000000beef"))
    assert service.get_hypervisor_statistics().count == 4
    assert service.get_host_usage("c").host == "c"
    zone, = [one for one in service.list_zones(True) if not one.internal]
    assert {one.host for one in zone.services} == {"a", "b", "c", "d"}


def test_states_for_schedulers_then_each_names_its_cell(two: TwoCells, service: Any) -> None:
    states = service.get_host_states((), True)
    assert {one.host: one.cell for one in states.states} == {"a": CELL, "b": CELL, "c": OTHER, "d": OTHER}
    assert states.complete
    two.cells.remove(OTHER)
    two.cells.add_away(OTHER)
    partial = service.get_host_states((), True)
    assert {one.host for one in partial.states} == {"a", "b"} and not partial.complete and not partial.gone


def claim_node(two: TwoCells, host: str, other: str) -> str:
    """Let a host of the other cell report the UUID of another cell's node, as its cell's conductor takes it."""
    taken = node_id(other)
    two.other.cell.transact(lambda tx: tx.execute(sa.update(tables.nodes).where(tables.nodes.c.host == host)
                                                  .values(uuid=taken)))
    return taken


def test_hypervisor_when_a_host_of_another_cell_reports_its_uuid_then_that_host_has_none(
        two: TwoCells, service: Any) -> None:
    before = service.list_hypervisors(HypervisorQuery(uuid=node_id("a")))
    taken = claim_node(two, "c", "a")
    assert service.list_hypervisors(HypervisorQuery(uuid=taken)) == before
    assert {one.host for one in service.list_hypervisors(HypervisorQuery())} == {"a", "b", "d"}
    after = service.list_hypervisors(HypervisorQuery(marker=taken))  # pages of the wrong cell would begin anew for ever
    assert [one.host for one in after] == ["b"]
    assert service.get_hypervisor_statistics().count == 3


def test_report_when_a_host_took_the_id_of_another_cells_host_then_that_ones_node_stays_its_own(
        two: TwoCells, service: Any) -> None:
    """In its own cell nobody has that id."""
    def apply(host: str, of: str) -> None:
        node = Node(uuid=node_id(of), name=host, hypervisor_type="QEMU", vcpus=4096)
        two.other.deps.api_side.apply_inventory(
            Inventory(host=host, host_id=node_id(of), version=10**9, nodes=(node,)), {})
    before = service.list_hypervisors(HypervisorQuery(uuid=node_id("a")))
    with pytest.raises(errors.host.NodeNotYours):
        apply("c", "a")
    assert service.list_hypervisors(HypervisorQuery(uuid=node_id("a"))) == before
    apply("c2", "c")  # renamed in its own cell
    with two.entry.api.reading() as tx:
        assert reports.owners(tx, [node_id("c")]) == {node_id("c"): "c2"}


def test_states_for_schedulers_when_a_host_reports_another_cells_node_then_it_has_no_state(
        two: TwoCells, service: Any) -> None:
    """It would have the capacity of that node, and get servers whose claims are on it."""
    claim_node(two, "c", "a")
    states = service.get_host_states((), True)
    assert {one.host: one.cell for one in states.states} == {"a": CELL, "b": CELL, "d": OTHER}


# -- placement

def requests(two: TwoCells) -> list[PlacementRequest]:
    return [*two.entry.scheduler.requests, *two.other.scheduler.requests]


def test_request_to_the_scheduler_when_a_cell_is_closed_then_it_says_so(two: TwoCells, service: Any) -> None:
    boot(two, service, "a")
    assert (requests(two)[-1].cell, requests(two)[-1].closed_cells) == ("", ())
    two.other.deps.cell_closed = True
    boot(two, service, "b")
    assert requests(two)[-1].closed_cells == (OTHER,)


def test_move_when_there_are_several_cells_then_it_stays_in_its_cell(two: TwoCells, service: Any) -> None:
    uuid = boot(two, service, "c")
    two.other.scheduler.choices[:] = [two.choices["d"]]
    with context.entered(DEMO):
        service.migrate_server(MigrateServer(uuid=uuid))
    until(lambda: two.other.ended(uuid).vm_state == "resized", "it is resized")
    assert two.other.scheduler.requests[-1].cell == OTHER
    page = service.list_migrations(MigrationQuery())
    assert [(one.source_compute, one.dest_compute) for one in page] == [("c", "d")]


def test_move_when_policy_permits_other_cells_then_open_ones_and_its_own_may_be_selected(two: TwoCells, service: Any
                                                                                         ) -> None:
    uuid = boot(two, service, "c")
    two.other.scheduler.choices[:] = [two.choices["d"]]
    two.entry.deps.cell_closed = two.other.deps.cell_closed = True
    with context.entered(DEMO):
        service.migrate_server(MigrateServer(uuid=uuid, cross_cell=True))
    until(lambda: two.other.ended(uuid).vm_state == "resized", "it is resized")
    asked = two.other.scheduler.requests[-1]
    assert (asked.cell, asked.closed_cells, asked.source_cell, asked.source_host) == ("", (CELL,), OTHER, "c")


def test_requested_host_when_no_cell_has_it_then_it_is_refused(two: TwoCells, service: Any) -> None:
    with context.entered(DEMO), pytest.raises(errors.server.NoSuchHost):
        service.create_servers(NewServer(name="vm", flavor_id="1", min_count=1, max_count=1, host="nowhere"))


def test_aggregate_when_its_hosts_are_in_two_cells_then_both_follow_its_zone(two: TwoCells, service: Any) -> None:
    here, there = boot(two, service, "a"), boot(two, service, "c")
    key = service.create_aggregate(NewAggregate(name="agg", availability_zone="moon")).id
    for host in ("a", "c"):
        service.add_aggregate_host(key, host)
    assert two.entry.server(here).availability_zone == two.other.server(there).availability_zone == "moon"
    with pytest.raises(errors.host.NotFound):
        service.add_aggregate_host(key, "nowhere")
    with pytest.raises(errors.aggregate.HasServers):
        service.set_aggregate_metadata(key, {"availability_zone": "sun"})
    uuid = boot(two, service, "c", availability_zone="moon")
    with pytest.raises(errors.aggregate.PinnedServers):
        service.remove_aggregate_host(key, "c")
    act(service, uuid, "delete")


# -- records

def test_migrations_when_they_are_in_two_cells_then_pages_cover_both(two: TwoCells, service: Any) -> None:
    at = datetime.datetime(2026, 1, 1)
    rows = [("a", 0), ("c", 0), ("a", 1), ("c", 1), ("a", 1), ("c", 2)]
    for number, (host, day) in enumerate(rows):
        cell_of(two, host).write("cell", sa.insert(tables.migrations).values(
            uuid=f"00000000-0000-4000-8000-0000000000{number:02}", server_uuid="s", type="migration", status="done",
            source_compute=host, created_at=at + datetime.timedelta(days=day)))
    whole = [one.uuid for one in service.list_migrations(MigrationQuery())]
    assert [int(one[-2:]) for one in whole][0] == 5 and len(whole) == 6
    for limit in (1, 2, 4):
        found: list[str] = []
        while page := service.list_migrations(MigrationQuery(page=Page(limit=limit, marker=found[-1] if found
                                                                       else None))):
            found += [one.uuid for one in page]
        assert found == whole
    with pytest.raises(errors.api.PageMarkerNotFound):
        service.list_migrations(MigrationQuery(page=Page(marker="00000000-0000-4000-8000-00000000beef")))


def test_usage_when_servers_are_in_two_cells_then_sums_and_pages_cover_both(two: TwoCells, service: Any) -> None:
    uuids = sorted([boot(two, service, "a"), boot(two, service, "c"), boot(two, service, "d")])
    day = datetime.timedelta(days=1)
    query = UsageQuery(start=utcnow() - day, end=utcnow() + day)
    assert service.get_usage(query).projects[0].hours > 0
    detailed = service.get_usage(msgspec.structs.replace(query, servers=True))
    assert [one.uuid for one in detailed.projects[0].servers] == uuids and detailed.count == 3
    found: list[str] = []
    while True:
        page = service.get_usage(msgspec.structs.replace(
            query, servers=True, paged=True, page=Page(limit=2, marker=found[-1] if found else None)))
        if not page.count:
            break
        found += [one.uuid for one in page.projects[0].servers]
        assert page.last == found[-1]
    assert found == uuids
    with pytest.raises(errors.api.PageMarkerNotFound):
        service.get_usage(msgspec.structs.replace(query, paged=True, page=Page(marker="nobody")))
    assert set(service.get_usage_audits(None).hosts) == {"a", "b", "c", "d"}


def test_events_when_servers_are_in_two_cells_then_codes_keep_their_order(two: TwoCells, service: Any) -> None:
    here, there = boot(two, service, "a"), boot(two, service, "c")
    events = [ExternalEvent(name="network-changed", server_uuid=uuid, status="completed")
              for uuid in (there, "00000000-0000-4000-8000-00000000beef", here)]
    assert service.external_events(tuple(events)) == (200, 404, 200)


def test_cleanups_when_a_host_is_in_another_cell_then_they_are_found(two: TwoCells, service: Any) -> None:
    two.other.write("cell", sa.insert(tables.cleanups).values(
        host="gone", server_uuid="00000000-0000-4000-8000-00000000beef", epoch=1, step="BuildGuests", arguments={},
        created_at=datetime.datetime(2026, 1, 1)))
    assert [one.host for one in service.list_debts(None)] == ["gone"]
    assert [one.host for one in service.forgive_debts("gone")] == ["gone"] and not service.list_debts(None)


def test_enrolled_hosts_then_those_of_both_cells_are_listed_and_a_new_one_needs_a_cell(
        two: TwoCells, service: Any) -> None:
    assert {one.host for one in service.list_enrolled_hosts()} >= {"a", "c"}
    service.expel_host("c")
    assert {one.host for one in service.list_enrolled_hosts() if one.expelled_at} == {"c"}
    with pytest.raises(errors.cell.SeveralForHosts):
        service.enroll_host("new", ("nova-compute",))


# -- upkeep

def test_ledger_sweep_when_a_server_is_in_another_cell_then_its_row_stays_open(two: TwoCells, service: Any) -> None:
    uuid = boot(two, service, "c")
    two.entry.write("api", sa.update(api_tables.ledger).values(created_at=datetime.datetime(2020, 1, 1)))
    for deps in two.cells.all():
        LedgerSweep()(deps)
    assert two.entry.open_ledger() == {uuid}


def test_audit_when_a_server_is_in_another_cell_then_its_claims_are_no_orphans(two: TwoCells, service: Any) -> None:
    here, there = boot(two, service, "a"), boot(two, service, "c")
    with two.entry.api.reading() as tx:
        assert audits.owners(tx, "", 10, CELL) == [here] and audits.owners(tx, "", 10, OTHER) == [there]


def test_forgotten_hosts_when_they_are_in_another_cell_then_their_providers_stay(two: TwoCells) -> None:
    sweep = ForgottenHosts()
    for _ in range(2):
        sweep(two.entry.deps)
    providers = two.entry.rows("api", sa.select(api_tables.providers.c.host))
    assert {row.host for row in providers} == {"a", "b", "c", "d"}


# -- guests and figures

def test_metadata_when_the_guest_is_in_another_cell_then_it_is_found(two: TwoCells, service: Any) -> None:
    uuid = boot(two, service, "c")
    answers = MergedGuestAnswers(two.cells)
    assert answers.guest_facts("api1", GuestQuery(server_uuid=uuid, project_id="demo")).uuid == uuid
    for query in (GuestQuery(server_uuid=uuid, project_id="other"),
                  GuestQuery(server_uuid="00000000-0000-4000-8000-00000000beef")):
        with pytest.raises(errors.guest.UnknownName):
            answers.guest_facts("api1", query)
    answers.set_guest_password("api1", GuestPassword(server_uuid=uuid, password="sealed"))
    assert two.other.server(uuid).guest_password == "sealed"


def test_figures_when_there_are_two_cells_then_they_are_summed(two: TwoCells, service: Any) -> None:
    boot(two, service, "a"), boot(two, service, "c")
    found = {(one.name, tuple(sample.labels.values())): sample.value
             for one in CloudFigures(two.entry.deps).collect() for sample in one.samples}
    assert found["nova_servers", ("active",)] == 2 and found["nova_cells", ("up",)] == 2
    assert found["nova_services", ("nova-compute", "up")] == 4 and found["nova_cells", ("away",)] == 0
    two.cells.remove(OTHER)
    two.cells.add_away(OTHER)
    found = {(one.name, tuple(sample.labels.values())): sample.value
             for one in CloudFigures(two.entry.deps).collect() for sample in one.samples}
    assert (found["nova_cells", ("up",)], found["nova_cells", ("away",)]) == (1, 1)


# -- busy hosts

def test_busy_hosts_when_many_requests_ask_then_each_cell_is_asked_once_in_a_second(
        two: TwoCells, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for cell, host in ((two.entry, "a"), (two.other, "c")):
        boot(two, service, host)
        cell.write("cell", sa.update(tables.servers).values(task_state="image_uploading"))
    asked: list[object] = []
    real = placement_facts.busy

    def busy(tx: Any) -> dict[str, int]:
        asked.append(tx)
        return real(tx)
    monkeypatch.setattr(placement_facts, "busy", busy)
    cells = two.conductor("new")
    assert [cells.busy() for _request in range(5)] == [{"a": 1, "c": 1}] * 5 and len(asked) == 2
    monkeypatch.setattr(live_cells, "BUSY_S", 0.0)
    cells.busy()
    assert len(asked) == 4


def test_busy_hosts_when_a_read_hangs_then_other_requests_use_the_last_ones(
        two: TwoCells, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = two.cells
    before = cells.busy()
    monkeypatch.setattr(live_cells, "BUSY_S", 0.0)
    begun, go = threading.Event(), threading.Event()

    def hang(question: Any) -> list[Any]:
        begun.set()
        go.wait(10)
        return [{"a": 7}]
    monkeypatch.setattr(cells, "read", hang)
    thread = threading.Thread(target=cells.busy)
    thread.start()
    begun.wait(10)
    assert cells.busy() == before
    go.set()
    thread.join()
    assert cells.busy() == {"a": 7}
