"""What a control daemon can say of itself, and what a stolen one cannot; clocks; what os-services shows."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts import control_daemons
from nova.conductor.hosts.registration import clock_off_s
from nova.conductor.service import metadata_service
from nova.db.host import enrolments, services
from nova.model.base import utcnow
from nova.model.guest.guests import GuestPassword, GuestQuery
from nova.model.host.services import (
    ContractVersion,
    DatabaseConnections,
    Heartbeat,
    Registration,
    Service,
    ServiceQuery,
)
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.version import OLDEST_BESIDE, RELEASE
from tests.fakes.small_cloud import SmallCloud, node_id


def of(binary: str, host: str = "ctl", **fields: Any) -> Registration:
    return Registration(**{"host": host, "binary": binary, "topic": "t", "release": "1.2", **fields})


def row(cloud: SmallCloud, host: str, binary: str) -> Service | None:
    found = cloud.control.list_services(ServiceQuery(host=host, binary=binary, hidden=True))
    return found[0] if found else None


@pytest.mark.parametrize("binary", ["nova-osapi_compute", "nova-placement-api", "nova-novncproxy", "nova-serialproxy"])
def test_api_or_proxy_when_it_registers_then_operators_see_it_and_os_services_does_not(cloud: SmallCloud, binary: str
                                                                                       ) -> None:
    for _worker in range(3):
        cloud.control.register(of(binary))
    assert cloud.control.heartbeat(Heartbeat(host="ctl", binary=binary)).known
    shown = row(cloud, "ctl", binary)
    assert shown is not None and shown.up and shown.version == "1.2"
    names = [one.binary for one in cloud.control.list_services(ServiceQuery(hidden=True))]
    assert names.count(binary) == 1
    assert binary not in {one.binary for one in cloud.control.list_services(ServiceQuery())}
    assert not cloud.control.list_services(ServiceQuery(binary=binary))
    assert binary not in {one.binary for zone in cloud.control.list_zones(True) for one in zone.services}


@pytest.mark.parametrize("binary", ["nova-compute", "nova-network", "nova-metadata", "nova-conductor", "nova-x", ""])
def test_register_when_a_stolen_proxy_says_it_is_another_daemon_then_refused(cloud: SmallCloud, binary: str) -> None:
    with pytest.raises(errors.Forbidden, match="is not a control plane service"):
        cloud.control.register(of(binary, "a"))
    with pytest.raises(errors.Forbidden):  # nor does it keep a dead host alive
        cloud.control.heartbeat(Heartbeat(host="a", binary=binary))


@pytest.mark.parametrize(("binary", "contract", "version"), [
    ("nova-novncproxy", "ConductorRPC", "1.0"), ("nova-scheduler", "ConductorRPC", "1.0"),
    ("nova-scheduler", "SchedulerRPC", "0.1"), ("nova-scheduler", "SchedulerRPC", "x")])
def test_register_when_it_would_pull_anothers_contract_down_then_refused(cloud: SmallCloud, binary: str, contract: str,
                                                                         version: str) -> None:
    with pytest.raises(errors.PeerTooOld):
        cloud.control.register(of(binary, contracts=(ContractVersion(name=contract, version=version),)))
    assert row(cloud, "ctl", binary) is None


def test_register_when_its_release_is_too_old_to_work_beside_ours_then_refused_in_words(cloud: SmallCloud) -> None:
    with pytest.raises(errors.Forbidden, match=f"0.0.9. This cloud runs {RELEASE}, which supports {OLDEST_BESIDE} and"):
        cloud.control.register(of("nova-novncproxy", release="0.0.9"))
    with pytest.raises(errors.Forbidden, match="0.0.9"):
        cloud.hosts.register("a", Registration(host="a", binary="nova-compute", topic="compute", host_id=node_id("a"),
                                               release="0.0.9"))
    assert cloud.control.register(of("nova-novncproxy", release=OLDEST_BESIDE)).service_id


@pytest.mark.parametrize("field", [{"topic": "t" * 65}, {"release": "r" * 65}, {"host": "h" * 256}])
def test_register_when_a_word_is_longer_than_its_column_then_refused_in_words(cloud: SmallCloud, field: dict) -> None:
    with pytest.raises(errors.Invalid, match="too long"):
        cloud.control.register(of("nova-novncproxy", **field))
    with pytest.raises(errors.NovaError):  # nor by a host
        cloud.hosts.register("a", Registration(**{"host": "a", "binary": "nova-compute", "topic": "compute",
                                                  "host_id": node_id("a"), **field}))


def test_register_when_a_stolen_proxy_makes_up_names_then_they_have_an_end_and_known_ones_go_on(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_daemons, "MOST_ROWS", 3)  # rows take a while to write
    for number in range(3):
        cloud.control.register(of("nova-novncproxy", f"made-up-{number}"))
    with pytest.raises(errors.Forbidden, match="3 rows of nova-novncproxy"):
        cloud.control.register(of("nova-novncproxy", "one-more"))
    assert cloud.control.register(of("nova-novncproxy", "made-up-1")).service_id
    assert cloud.control.register(of("nova-serialproxy")).service_id


def test_list_when_a_daemon_told_its_contracts_and_connections_then_operators_see_them(cloud: SmallCloud) -> None:
    contracts = (ContractVersion(name="SchedulerRPC", version=SchedulerRPC.version),)
    cloud.control.register(of("nova-scheduler", contracts=contracts))
    needs = DatabaseConnections(api=10, cell=11)
    cloud.daemons.register(of("nova-conductor", connections=needs))
    scheduler, conductor = row(cloud, "ctl", "nova-scheduler"), row(cloud, "ctl", "nova-conductor")
    assert scheduler is not None and scheduler.contracts == contracts and scheduler.connections is None
    assert conductor is not None and conductor.connections == needs


def beat(host: str, off_s: float | None, binary: str = "nova-compute") -> Heartbeat:
    sent = None if off_s is None else utcnow() + datetime.timedelta(seconds=off_s)
    return Heartbeat(host=host, binary=binary, sent_at=sent)


@pytest.mark.parametrize(("off_s", "kept"), [(None, None), (0.0, None), (-4.0, None), (-30.0, -30.0), (45.0, 45.0)])
def test_clock_when_a_beat_says_its_time_then_only_a_large_difference_counts(off_s: float | None, kept: float | None
                                                                             ) -> None:
    found = clock_off_s(beat("a", off_s))
    assert found == kept if kept is None else abs((found or 0) - kept) < 1


def test_clock_when_a_hosts_is_off_then_its_row_says_so_until_it_is_right(cloud: SmallCloud) -> None:
    cloud.hosts.still_here("a", beat("a", -30.0))
    cloud.hosts.still_here("b", beat("b", 0.0))
    cloud.daemons.flush()
    there = {one.host: one.clock_off_s for one in cloud.control.list_services(ServiceQuery(binary="nova-compute"))}
    assert there["b"] is None and there["a"] is not None and abs(there["a"] + 30) < 1
    cloud.hosts.still_here("a", beat("a", 0.0))
    cloud.daemons.flush()
    assert row(cloud, "a", "nova-compute").clock_off_s is None  # type: ignore[union-attr]


def test_flush_when_clocks_are_off_then_it_is_one_statement_still(cloud: SmallCloud) -> None:
    seen: list[str] = []
    sa.event.listen(cloud.cell.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    cloud.cell.transact(lambda tx: services.record_heartbeats(
        tx, {("a", "nova-compute"): 40.0, ("b", "nova-compute"): None}))
    assert [text.split()[0] for text in seen if "services" in text] == ["UPDATE"]


def test_known_host_when_a_host_asks_then_it_hears_of_its_own_daemons_alone(cloud: SmallCloud) -> None:
    cloud.control.register(of("nova-scheduler", "a"))
    known = cloud.hosts.known_host("a")
    assert {(one.host, one.binary) for one in known.services} == {("a", "nova-compute")} and known.services[0].up
    assert "nova-compute" in known.runs and abs((known.now - utcnow()).total_seconds()) < 5
    assert cloud.hosts.known_host("stranger").services == () == cloud.hosts.known_host("stranger").runs


def test_get_clock_then_it_is_the_databases(cloud: SmallCloud) -> None:
    assert abs((cloud.control.get_clock() - utcnow()).total_seconds()) < 5


@pytest.fixture
def asked(cloud: SmallCloud) -> Any:
    """What metadata services ask in upstream mode."""
    return metadata_service(cloud.deps, cloud.daemons)


def test_metadata_service_when_it_registers_in_upstream_mode_then_its_hosts_enrolment_says_so_for_bounded_mode(
        cloud: SmallCloud, asked: Any) -> None:
    cloud.cell.transact(lambda tx: enrolments.enroll(tx, "host1", ("nova-compute",), ""))
    for host in ("host1", "pod-7"):
        asked.register(of("nova-metadata", host))
        assert asked.heartbeat(Heartbeat(host=host, binary="nova-metadata")).known
    with cloud.cell.reading() as tx:
        assert enrolments.runs(tx, "host1") == ("nova-compute", "nova-metadata")
        assert enrolments.runs(tx, "pod-7") == ()
    with pytest.raises(errors.daemon.NotAControlDaemon):
        asked.register(of("nova-compute", "host1"))


def test_guest_facts_when_a_metadata_service_asks_in_upstream_mode_then_it_is_told_of_any_guest(
        cloud: SmallCloud, asked: Any) -> None:
    [uuid] = cloud.active()
    assert asked.guest_facts("pod-7", GuestQuery(server_uuid=uuid)).uuid == uuid
    with pytest.raises(errors.NotFound):
        cloud.hosts.guest_facts("pod-7", GuestQuery(server_uuid=uuid))
    asked.set_guest_password("pod-7", GuestPassword(server_uuid=uuid, password="sealed"))
    with pytest.raises(errors.Conflict):
        asked.set_guest_password("pod-7", GuestPassword(server_uuid=uuid, password="another"))
