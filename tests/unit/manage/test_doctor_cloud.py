"""Doctor's lines about the cloud as it runs: hosts, operations that stand still, servers that failed."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.manage import doctor
from nova.model.base import Scope, utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.host.services import EnrolledHost, Service
from nova.model.network.networks import Network
from nova.model.server.servers import Fault, ServerDetail, ServerListQuery, ServerPage
from nova.model.server.states import TaskState, VmState
from nova.rpc import transport
from tests.unit.manage.test_doctor import options

CHECKS = {"hosts": doctor.hosts, "tasks": doctor.tasks, "failures": doctor.failures, "networks": doctor.networks}
AUTH = "nova-consoleauth"


class Bus:
    """Where the broker's client would be; a conductor with a few rows."""

    def __init__(self) -> None:
        self.services: tuple[Service, ...] = ()
        self.servers: tuple[ServerDetail, ...] = ()
        self.networks: tuple[Network, ...] = ()
        self.query = ServerListQuery()
        self.enrolled: tuple[EnrolledHost, ...] = ()
        self.away = False

    def __call__(self, *args: object) -> Bus:
        return self

    def client(self, contract: type) -> Bus:
        return self

    def list_services(self, query: Any) -> tuple[Service, ...]:
        return self._answer(tuple(one for one in self.services if one.binary == query.binary))

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        return self._answer(self.enrolled)

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        return self._answer(self.networks)

    def list_servers(self, query: ServerListQuery) -> ServerPage:
        self.query = query
        return ServerPage(servers=self._answer(self.servers))

    def _answer(self, found: Any) -> Any:
        if self.away:
            raise errors.Unavailable("away")
        return found


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    from nova.rpc import transport

    made = Bus()
    monkeypatch.setattr(transport, "Bus", made)
    return made


def service(number: int, **fields: Any) -> Service:
    return Service(**{"id": number, "uuid": f"s{number}", "host": f"h{number}", "binary": "nova-compute", "up": True,
                      **fields})


def server(number: int, **fields: Any) -> ServerDetail:
    return ServerDetail(**{"uuid": f"u{number}", "id": number, "name": "vm", "project_id": "p", "user_id": "u",
                           "created_at": utcnow(), "vm_state": VmState.ACTIVE, "host": "h1",
                           "flavor": Flavor(flavorid="1", name="m", memory_mb=1, vcpus=1, root_gb=1), **fields})


@pytest.mark.parametrize("name", CHECKS)
def test_check_when_all_is_well_then_ok_and_when_nobody_answers_then_it_says_so(bus: Bus, name: str) -> None:
    bus.services = (service(1),)
    assert CHECKS[name](options()).state == doctor.OK
    bus.away = True
    finding = CHECKS[name](options())
    assert finding.state == doctor.WARN and "no conductor answers" in finding.what
    assert CHECKS[name](options(compute_driver="libvirt.LibvirtDriver")).state == doctor.OK  # it may not ask


def test_hosts_when_some_are_down_or_drained_then_they_are_named_with_the_way_back(bus: Bus) -> None:
    bus.services = (service(1), service(2, up=False), service(3, disabled=True, disabled_reason="drained by ann on c1"))
    finding = doctor.hosts(options())
    assert finding.state == doctor.WARN and "1 down: h2" in finding.what
    assert "1 disabled: h3 (drained by ann on c1)" in finding.what and "undrain" in finding.cure


@pytest.mark.parametrize(("there", "named"), [((), "none has registered"), ((service(1, up=False),), "h1")])
def test_hosts_when_no_compute_host_is_up_then_the_doctor_fails(bus: Bus, there: tuple, named: str) -> None:
    bus.services = there
    finding = doctor.hosts(options())
    assert finding.state == doctor.BAD and f"no compute host is up: {named}" in finding.what
    assert "start nova-compute" in finding.cure


def test_tasks_when_operations_stand_still_then_the_oldest_are_named(bus: Bus) -> None:
    bus.servers = tuple(server(number, task_state=TaskState.MIGRATING) for number in range(7))
    finding = doctor.tasks(options())
    assert finding.what.startswith("7 operations")
    assert "u0 (migrating on h1)" in finding.what and "2 more" in finding.what
    age = utcnow() - bus.query.changes_before
    assert abs(age.total_seconds() - 60 * doctor.cloud.STILL_MIN) < 60
    assert bus.query.conditions[0].column == "task_state"


def test_failures_when_servers_failed_lately_then_the_newest_says_why(bus: Bus) -> None:
    bus.servers = (server(1, vm_state=VmState.ERROR, fault=Fault(message="No valid host was found")),)
    finding = doctor.failures(options())
    assert "1 servers" in finding.what and "u1" in finding.what and "No valid host was found" in finding.what


def test_enrolled_when_one_claims_too_much_or_has_no_secret_then_it_is_named(bus: Bus) -> None:
    bus.enrolled = (EnrolledHost(host="h1", accepted_room={"VCPU": 4}, claimed_room={"VCPU": 8}),)
    assert doctor.enrolled(options()).state == doctor.OK
    bus.enrolled += (EnrolledHost(host="h2", accepted_room={"VCPU": 4}, claimed_room={"VCPU": 9}),)
    finding = doctor.enrolled(options())
    assert finding.state == doctor.WARN and "by h2;" in finding.what and "nova-manage host accept" in finding.cure
    bus.enrolled += (EnrolledHost(host="h3", readable=False),)
    finding = doctor.enrolled(options())
    assert finding.state == doctor.BAD and "secret of h3" in finding.what


def test_consoles_when_nobody_checks_their_tokens_then_a_warning(bus: Bus) -> None:
    bounded = options(hosts_transport_url="rabbit://h/", database__connection="sqlite://")
    bus.services = (service(1), service(2, binary=AUTH, up=False))
    finding = doctor.consoles(bounded)
    assert finding.state == doctor.WARN and "down: h2" in finding.what and "start nova-consoleauth" in finding.cure
    bus.services = (service(1),)
    assert doctor.consoles(bounded).state == doctor.WARN
    bus.services = (service(2, binary=AUTH, up=False), service(3, binary=AUTH))
    finding = doctor.consoles(bounded)
    assert (finding.state, finding.what) == (doctor.OK, "nova-consoleauth is up on h3")
    bus.away = True
    assert "no conductor answers" in doctor.consoles(bounded).what
    assert doctor.consoles(options()).what == "conductors check the tokens of consoles"  # in upstream mode


PLACES = {"vnc__server_listen": "10.0.0.2", "vnc__server_proxyclient_address": "10.0.0.2"}


@pytest.mark.parametrize(("broker", "values", "named"), [
    ("10.0.0.1", {}, ["[vnc]server_listen", "[vnc]server_proxyclient_address"]),
    ("127.0.0.1", {}, []), ("10.0.0.1", PLACES, []), ("10.0.0.1", {"vnc__enabled": False}, []),
    ("10.0.0.1", {**PLACES, "vnc__server_proxyclient_address": "localhost"}, ["[vnc]server_proxyclient_address"]),
    ("10.0.0.1", {**PLACES, "serial_console__enabled": True},
     ["[serial_console]proxyclient_address"])])
def test_consoles_of_a_compute_host_when_their_addresses_lead_nowhere_from_elsewhere_then_they_are_named(
        broker: str, values: dict[str, Any], named: list[str]) -> None:
    made = options(compute_driver="libvirt.LibvirtDriver", **values)
    transport.open_transport(made)  # declares transport_url
    made.set_override("hosts_transport_url", f"rabbit://u:secret@{broker}:5672/nova-hosts")
    finding = doctor.consoles(made)
    assert (finding.state == doctor.WARN) is bool(named) and "secret" not in finding.what
    assert (f"loopback addresses: {', '.join(named)}" in finding.what) is bool(named)


def test_networks_when_two_are_on_one_bridge_then_it_names_the_one_that_is_not_served(bus: Bus) -> None:
    bus.networks = tuple(Network(id=number, uuid=f"u{number}", label=f"n{number}", bridge="br100") for number in (2, 1))
    finding = doctor.networks(options())
    assert finding.state == doctor.BAD and "n2 (u2) is on br100, which serves n1" in finding.what
    assert "nova-manage network delete" in finding.cure
    assert doctor.networks(options(use_neutron=True)).state == doctor.OK
    assert doctor.networks(options(network_manager="nova.network.manager.FlatManager")).state == doctor.OK
