"""Interfaces that come and go, and ports that come late: none is left that nobody knows of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.actions.interfaces import InterfaceActions
from nova.conductor.registry import ATTACH_INTERFACE
from nova.model.base import utcnow
from nova.model.network.networks import RequestedNetwork
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, WRONG, failing

pytestmark = pytest.mark.one_in(2)  # one of two runs has each


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    for trouble in made.neutron.troubles:
        trouble.left = 0
    made.close()


def attach(cloud: FailingCloud, uuid: str, **requested: Any) -> Any:
    with context.entered(DEMO):
        return cloud.control.attach_interface(uuid, RequestedNetwork(**requested))


@pytest.mark.parametrize("given", [False, True], ids=["made", "given"])
@pytest.mark.parametrize("step", ATTACH_INTERFACE.steps, ids=lambda step: step.name)
@pytest.mark.parametrize("error", [REFUSED, AWAY, WRONG, CRASH], ids=lambda error: type(error).__name__)
def test_attach_when_a_step_fails_then_no_port_is_left_and_a_given_one_is_free(cloud, monkeypatch, step, error, given):
    [uuid] = cloud.active()
    before = cloud.server(uuid).interfaces
    port = cloud.neutron.add_port(cloud.net) if given else None
    failing(monkeypatch, step, "do", error)
    with pytest.raises(errors.NovaError):
        attach(cloud, uuid, **({"port_id": port} if given else {"network_id": cloud.net}))
    cloud.settle(uuid)
    assert [one["id"] for one in cloud.neutron.of(uuid)] == [one.id for one in before]
    assert cloud.server(uuid).interfaces == before
    assert len(cloud.neutron.ports) == 1 + given


@pytest.mark.parametrize("how", ["lost", "timeout", "refused"])
def test_attach_when_making_the_port_gets_no_answer_then_it_is_one_port(cloud, how):
    [uuid] = cloud.active()
    cloud.neutron.trouble("POST", "ports", how)
    made = attach(cloud, uuid, network_id=cloud.net)
    cloud.settle(uuid)
    assert {one["id"] for one in cloud.neutron.of(uuid)} == {one.id for one in cloud.server(uuid).interfaces}
    assert made.id in {one.id for one in cloud.server(uuid).interfaces} and len(cloud.neutron.ports) == 2


def test_attach_when_the_server_has_groups_then_the_port_is_in_the_default_one_alone(cloud):
    web = cloud.neutron.add_group("web")
    [uuid] = cloud.active(security_groups=("web",))
    made = attach(cloud, uuid, network_id=cloud.net)
    cloud.settle(uuid)
    assert web not in cloud.neutron.ports[made.id]["security_groups"]


def test_attach_when_the_host_has_no_way_to_the_network_then_it_is_refused_and_nothing_is_left(cloud):
    [uuid] = cloud.active()
    cloud.neutron.unbindable.add("host1")
    with pytest.raises(errors.NovaError, match="Binding failed"):
        attach(cloud, uuid, network_id=cloud.net)
    cloud.settle(uuid)
    assert len(cloud.neutron.ports) == 1


def test_detach_when_the_port_was_given_then_it_is_its_users_again(cloud):
    [uuid] = cloud.active()
    port = cloud.neutron.add_port(cloud.net)
    attach(cloud, uuid, port_id=port)
    cloud.settle(uuid)
    assert cloud.server(uuid).interfaces[1].given
    with context.entered(DEMO):
        cloud.control.detach_interface(uuid, port)
    cloud.settle(uuid)
    assert cloud.neutron.ports[port]["device_id"] == "" and len(cloud.server(uuid).interfaces) == 1


def test_delete_when_a_given_port_was_attached_late_then_it_is_its_users_again(cloud):
    [uuid] = cloud.active()
    port = cloud.neutron.add_port(cloud.net)
    attach(cloud, uuid, port_id=port)
    cloud.settle(uuid)
    cloud.delete(uuid)
    assert list(cloud.neutron.ports) == [port] and cloud.neutron.ports[port]["device_id"] == ""


@pytest.mark.parametrize("refresh", ["refresh", "turn", "delete_late_ports"])
def test_attach_when_done_again_after_its_server_was_looked_at_then_it_is_one_port(cloud, monkeypatch, refresh):
    """Whoever looks at Neutron between the two tries sees a port that the row does not have."""
    [uuid] = cloud.active()
    networking, made = cloud.deps.networking, []
    whole = networking.make_interface

    def make(op: Any, requested: Any) -> Any:
        interface = whole(op, requested)
        made.append(interface.id)
        if len(made) > 1:
            return interface
        networking.known.note_pending([uuid] if refresh == "delete_late_ports" else [])
        getattr(networking.healer, refresh)(*([[uuid]] if refresh == "refresh" else []))
        raise errors.daemon.WorkflowNotYet(what="its conductor died")
    monkeypatch.setattr(networking, "make_interface", make)
    with context.entered(DEMO), pytest.raises(errors.Unavailable):
        InterfaceActions(cloud.deps, wait_s=0.1).attach_interface(uuid, RequestedNetwork(network_id=cloud.net))
    cloud.idle()
    cloud.expire_leases()
    cloud.runner().sweep()
    cloud.settle(uuid)
    assert len(made) == 2 and made[0] == made[1]
    assert {one["id"] for one in cloud.neutron.of(uuid)} == {one.id for one in cloud.server(uuid).interfaces}
    assert len(cloud.neutron.of(uuid)) == 2


def test_refresh_when_an_attach_is_under_way_then_it_is_done_later(cloud, monkeypatch):
    [uuid] = cloud.active()
    networking, answers = cloud.deps.networking, []
    whole = networking.make_interface

    def make(op: Any, requested: Any) -> Any:
        answers.append(networking.healer.refresh([uuid]))
        return whole(op, requested)
    monkeypatch.setattr(networking, "make_interface", make)
    attach(cloud, uuid, network_id=cloud.net)
    cloud.settle(uuid)
    assert answers == [[uuid]] and networking.healer.refresh([uuid]) == []


# -- answers that never came

def late(cloud: FailingCloud, uuid: str) -> str:
    """What a request that nobody waits for any more makes in the end."""
    return cloud.neutron.add_port(cloud.net, device_id=uuid, device_owner="compute:nova")


def test_port_when_made_after_all_then_it_is_no_interface_and_goes(cloud):
    cloud.neutron.trouble("POST", "ports", "timeout")
    [uuid] = cloud.active()
    before = cloud.server(uuid).interfaces
    late(cloud, uuid)
    cloud.deps.networking.healer.turn()
    assert cloud.server(uuid).interfaces == before
    cloud.deps.networking.healer.delete_late_ports()
    assert [one["id"] for one in cloud.neutron.of(uuid)] == [one.id for one in before]


def test_port_when_made_after_its_server_was_deleted_then_it_goes(cloud):
    cloud.neutron.trouble("POST", "ports", "timeout")
    [uuid] = cloud.active()
    cloud.delete(uuid)
    late(cloud, uuid)
    cloud.deps.networking.healer.delete_late_ports()
    assert cloud.neutron.ports == {}


def test_port_when_it_is_young_then_another_conductor_may_remove_it_and_it_is_no_interface_yet(cloud):
    [uuid] = cloud.active()
    before = cloud.server(uuid).interfaces
    port = late(cloud, uuid)
    cloud.neutron.ports[port]["created_at"] = f"{utcnow().isoformat(timespec='seconds')}Z"
    cloud.deps.networking.healer.turn()
    cloud.deps.networking.healer.delete_late_ports()
    assert cloud.server(uuid).interfaces == before and port in cloud.neutron.ports
    assert port in {one.id for one in cloud.deps.networking.interfaces_now(cloud.server(uuid))}
    cloud.neutron.ports[port]["created_at"] = "2020-01-01T00:00:00Z"
    cloud.deps.networking.healer.turn()
    assert len(cloud.server(uuid).interfaces) == 2


def test_port_when_its_server_had_all_answers_then_it_is_an_interface(cloud):
    """An administrator gave it to the server by Neutron's API."""
    [uuid] = cloud.active()
    port = late(cloud, uuid)
    cloud.deps.networking.healer.turn()
    assert [one.id for one in cloud.server(uuid).interfaces][1:] == [port]


def test_attach_when_the_address_or_port_is_in_use_then_it_is_a_conflict_and_a_wrong_address_is_invalid(cloud):
    """A create with such an address is invalid."""
    [uuid] = cloud.active()
    taken = cloud.neutron.of(uuid)[0]
    address = taken["fixed_ips"][0]["ip_address"]
    for wish, kind in (({"network_id": cloud.net, "fixed_ip": address}, errors.Conflict),
                       ({"port_id": taken["id"]}, errors.Conflict),
                       ({"network_id": cloud.net, "fixed_ip": "192.0.2.77"}, errors.Invalid)):
        with pytest.raises(kind):
            attach(cloud, uuid, **wish)
    with pytest.raises(errors.Invalid, match="in use already"):
        cloud.boot(networks=(RequestedNetwork(network_id=cloud.net, fixed_ip=address),))


def test_attach_when_the_address_is_taken_between_the_check_and_the_port_then_it_is_a_conflict(cloud):
    [uuid] = cloud.active()
    whole = cloud.neutron.answer

    def answer(request: Any) -> Any:
        if request.method == "POST" and "/ports" in request.url and len(cloud.neutron.ports) == 1:
            cloud.neutron.add_port(cloud.net, fixed_ips=[{"ip_address": "10.1.0.77"}])
        return whole(request)
    cloud.neutron.answer = answer
    with pytest.raises(errors.Conflict, match="10.1.0.77"):
        attach(cloud, uuid, network_id=cloud.net, fixed_ip="10.1.0.77")
