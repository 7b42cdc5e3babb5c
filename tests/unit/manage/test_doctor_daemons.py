"""Doctor's lines about this host's daemons, its clock, and what conductors take of the database."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from nova import errors
from nova.db.sql.server_limits import ServerLimit
from nova.manage import doctor
from nova.manage.doctor import services
from nova.manage.doctor.connections import evaluate
from nova.manage.doctor.daemons import Expected, expected
from nova.model.base import utcnow
from nova.model.host.services import DatabaseConnections, KnownHost, Service
from nova.privileged.runner import Completed
from tests.unit.manage.test_doctor import options
from tests.unit.manage.test_doctor_cloud import service

COMPUTE = {"compute_driver": "libvirt.LibvirtDriver"}


class Conductor:
    """Both doors of a conductor, for what doctor asks there."""

    def __init__(self, *rows: Service) -> None:
        self.rows, self.now = rows, utcnow()
        self.away: errors.NovaError | None = None

    def client(self, contract: type) -> Conductor:
        if self.away is not None:
            raise self.away
        return self

    def list_services(self, query: Any) -> tuple[Service, ...]:
        return tuple(one for one in self.rows if query.host in (None, one.host) and (query.hidden or not query.host))

    def known_host(self, host: str) -> KnownHost:
        return KnownHost(now=self.now, services=tuple(one for one in self.rows if one.host == host))

    def get_clock(self) -> datetime.datetime:
        return self.now


@pytest.fixture
def conductor(monkeypatch: pytest.MonkeyPatch) -> Conductor:
    """``monkeypatch``: the bus is made of options, and there is no broker."""
    made = Conductor()
    monkeypatch.setattr(services, "the_bus", lambda options: (made, "transport_url"))
    return made


class Systemctl:
    def __init__(self, listed: str) -> None:
        self.listed = listed

    def run(self, argv: Any, **options: Any) -> Completed:
        assert argv[:2] == ["systemctl", "list-unit-files"]
        return Completed(0, self.listed)


def row(binary: str, **fields: Any) -> Service:
    return service(1, **{"binary": binary, "host": "here", **fields})


def test_expected_when_the_operator_says_it_then_systemd_is_not_asked(tmp_path: Any) -> None:
    made = options(doctor__expected_daemons=["nova-api"])
    assert expected(made, Systemctl("nova-compute.service enabled"), str(tmp_path)).programs == ("nova-api",)


def test_expected_when_units_are_enabled_then_those_and_without_systemd_nobody_knows(tmp_path: Any) -> None:
    listed = Systemctl("nova-api.service enabled enabled\nnova-compute.service enabled\nnova-x.service enabled\n")
    assert expected(options(), listed, str(tmp_path)).programs == ("nova-api", "nova-compute")
    assert expected(options(), listed, str(tmp_path / "not")) == Expected(None, "systemctl is-enabled")
    assert expected(options(), Systemctl(""), str(tmp_path)).programs is None


@pytest.mark.parametrize("values", [{}, COMPUTE])
def test_daemons_when_one_that_should_be_there_is_not_then_it_fails_and_names_it(conductor: Conductor, values: dict
                                                                                 ) -> None:
    conductor.rows = (row("nova-compute"), row("nova-metadata", up=False))
    made = options(doctor__expected_daemons=["nova-compute", "nova-api-metadata", "nova-network"], **values)
    found = doctor.daemons(made)
    assert found.state == doctor.BAD and found.what.startswith(
        "nova-api-metadata (as nova-metadata), nova-network should be up on here")
    assert "systemctl start nova-api-metadata nova-network" in found.cure
    made.set_override("expected_daemons", ["nova-compute", "nova-imageproxy"], "doctor")
    assert doctor.daemons(made).state == doctor.OK


@pytest.mark.parametrize(("apis", "state"), [(["osapi_compute"], doctor.OK),
                                             (["osapi_compute", "metadata"], doctor.BAD)])
def test_daemons_when_nova_api_should_be_there_then_each_api_of_its_own_counts(conductor: Conductor, apis: list[str],
                                                                               state: str) -> None:
    conductor.rows = (row("nova-osapi_compute"),)
    assert doctor.daemons(options(doctor__expected_daemons=["nova-api"], enabled_apis=apis)).state == state


def test_daemons_when_nobody_says_which_then_those_that_ran_before_count(conductor: Conductor) -> None:
    nothing = doctor.daemons(options(), Systemctl(""))
    assert nothing.state == doctor.WARN and "expected_daemons" in nothing.cure
    conductor.rows = (row("nova-scheduler"), row("nova-cert", up=False))
    found = doctor.daemons(options(), Systemctl(""))
    assert found.state == doctor.BAD and "nova-cert ran on here before" in found.what
    assert "nova-manage service delete here nova-cert" in found.cure
    conductor.rows = (row("nova-ec2", up=False),)
    assert "nova-ec2 (started as nova-api or nova-api-ec2) ran on" in doctor.daemons(options(), Systemctl("")).what
    conductor.rows = (row("nova-scheduler"),)
    assert doctor.daemons(options(), Systemctl("")).state == doctor.OK


def test_daemons_when_the_operator_names_one_that_is_none_then_it_fails(conductor: Conductor) -> None:
    found = doctor.daemons(options(doctor__expected_daemons=["nova-volume"]))
    assert found.state == doctor.BAD and "nova-volume" in found.what and "[doctor]expected_daemons" in found.cure


@pytest.mark.parametrize("check", [doctor.daemons, doctor.clock])
@pytest.mark.parametrize(("error", "said"), [(errors.Unavailable("away"), "no conductor answers"),
                                             (errors.PeerTooOld("1.5"), "of an older release")])
def test_daemons_and_clock_when_no_conductor_can_say_it_then_they_say_why(
        conductor: Conductor, check: Any, error: errors.NovaError, said: str) -> None:
    conductor.away = error
    found = check(options())
    assert found.state == doctor.WARN and said in found.what and found.cure


@pytest.mark.parametrize("there", [False, True])
def test_bridge_tools_where_nova_network_is_not_to_run_then_they_are_not_asked_for(conductor: Conductor, there: bool,
                                                                                   monkeypatch: Any) -> None:
    monkeypatch.setattr(doctor.host, "TOOLS", ("no-such-program",))
    wanted = ["nova-compute", *(["nova-network"] if there else [])]
    found = doctor.bridge_tools(options(doctor__expected_daemons=wanted, **COMPUTE))
    assert found.state == (doctor.BAD if there else doctor.OK) and ("no-such-program" in found.what) is there


@pytest.mark.parametrize("values", [{}, COMPUTE])
def test_clock_when_it_differs_from_the_databases_then_it_fails(conductor: Conductor, values: dict) -> None:
    assert doctor.clock(options(**values)).state == doctor.OK
    conductor.now = utcnow() - datetime.timedelta(seconds=60)
    found = doctor.clock(options(**values))
    assert found.state == doctor.BAD and "differs from the database's" in found.what and "NTP" in found.cure


def test_clock_when_a_hosts_differs_then_the_host_is_named_and_one_that_is_down_is_not(conductor: Conductor) -> None:
    conductor.rows = (service(1, clock_off_s=-31.0), service(2, clock_off_s=40.0, up=False), service(3))
    found = doctor.clock(options())
    assert found.state == doctor.WARN and "nova-compute on h1 (-31.0 s)" in found.what and "h2" not in found.what


ONE, OTHER = ServerLimit("a", 151), ServerLimit("b", 97)
TEN = DatabaseConnections(api=80, cell=88)


@pytest.mark.parametrize(("rows", "api", "cell", "state"), [
    ((TEN,), ONE, ONE, doctor.BAD),  # 168 of 151, on one server
    ((TEN,), ONE, OTHER, doctor.OK), ((TEN, TEN), ONE, OTHER, doctor.BAD),
    ((), ONE, ONE, doctor.OK), ((None,), ONE, ONE, doctor.OK), ((None,) * 80, ONE, ONE, doctor.BAD),
    ((TEN,) * 9, None, None, doctor.OK)])
def test_connections_when_all_pools_are_counted_then_a_server_that_takes_fewer_fails(
        rows: tuple, api: ServerLimit | None, cell: ServerLimit | None, state: str) -> None:
    conductors = [service(number, binary="nova-conductor", connections=told) for number, told in enumerate(rows)]
    conductors.append(service(99, binary="nova-conductor", connections=TEN, up=False))
    found = evaluate(conductors, DatabaseConnections(api=1, cell=2), api, cell)
    assert found.state == state and ("max_connections" in found.cure) is (state == doctor.BAD)


def test_connections_where_there_is_no_database_url_then_they_are_not_counted() -> None:
    assert doctor.connections(options()).state == doctor.OK


def test_daemons_when_novncproxy_serves_another_proxy_then_its_report_is_expected_too(conductor: Conductor) -> None:
    conductor.rows = (row("nova-novncproxy", up=True),)
    made = options(host="here", doctor__expected_daemons=["nova-novncproxy"],
                   console__with_novncproxy=["serialproxy"])
    found = doctor.daemons(made)
    assert found.state == doctor.BAD and "nova-novncproxy (as nova-serialproxy)" in found.what
    conductor.rows += (row("nova-serialproxy", up=True),)
    assert doctor.daemons(made).state == doctor.OK
