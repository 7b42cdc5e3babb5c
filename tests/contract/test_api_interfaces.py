"""What we answer about servers' interfaces passes the contract's rows at every version, and has the samples' fields."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nova import errors
from nova.model.network.networks import FixedAddress, RequestedNetwork
from nova.model.server.states import VmState
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor_networks import PORT

pytestmark = rows.needs_contract

UUID = "11111111-2222-4333-8444-555555555555"
BASE = f"/servers/{UUID}/os-interface"
READS = {"GET /servers/{server_id}/os-interface": BASE,
         "GET /servers/{server_id}/os-interface/{port_id}": f"{BASE}/{PORT.id}"}
CREATE, DELETE = "POST /servers/{server_id}/os-interface", "DELETE /servers/{server_id}/os-interface/{port_id}"
OTHER = "aaaaaaaa-199f-48c0-816c-13e38010b442"


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_server(uuid=UUID, project_id="admin", user_id="admin", interfaces=(PORT,))
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, READS[id])


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples([*READS, CREATE]))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    answer = (client.post(BASE, {"interfaceAttachment": {"port_id": OTHER}}, version=f"2.{version}") if id == CREATE
              else client.get(READS[id], version=f"2.{version}"))
    assert answers.fields(content) == answers.fields(answer.json)


def test_answers_to_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        at = {"version": f"2.{version}"}
        answers.assert_answer(CREATE, version, client.post(BASE, {"interfaceAttachment": {"port_id": OTHER}}, **at))
        gone = client.delete(f"{BASE}/{OTHER}", **at)
        answers.assert_answer(DELETE, version, gone)
        assert gone.status_int == 202
    for name, body in (("addFixedIp", {"networkId": "net"}), ("removeFixedIp", {"address": "10.0.0.3"})):
        id = f"POST /servers/{{server_id}}/action#{name}"
        for version in answers.span(id):
            answer = client.post(f"/servers/{UUID}/action", {name: body}, version=f"2.{version}")
            answers.assert_answer(id, version, answer)
    assert {*client.conductor.asked("add_fixed_address")} == {(UUID, "net")}
    assert {*client.conductor.asked("remove_fixed_address")} == {(UUID, "10.0.0.3")}


def test_multinic_when_the_version_is_newer_then_it_is_no_action(client: ApiClient) -> None:
    answer = client.post(f"/servers/{UUID}/action", {"addFixedIp": {"networkId": "net"}}, version="2.44")
    assert answer.status_int == 404


@pytest.mark.parametrize("body, requested", [
    ({}, RequestedNetwork()),
    ({"interfaceAttachment": {}}, RequestedNetwork()),
    ({"interfaceAttachment": {"net_id": OTHER.upper()}}, RequestedNetwork(network_id=OTHER, may_be_external=True)),
    ({"interfaceAttachment": {"net_id": OTHER, "fixed_ips": [{"ip_address": "10.0.0.3"}]}},
     RequestedNetwork(network_id=OTHER, fixed_ip="10.0.0.3", may_be_external=True)),
    ({"interfaceAttachment": {"port_id": OTHER, "tag": "a"}}, RequestedNetwork(port_id=OTHER, tag="a"))])
def test_attach_when_it_is_asked_for_then_the_conductor_hears_just_that(body, requested, client: ApiClient) -> None:
    assert client.post(BASE, body, version="2.49").status_int == 200
    assert client.conductor.asked("attach_interface") == [(UUID, requested)]


@pytest.mark.parametrize("body", [
    {"interfaceAttachment": {"net_id": OTHER, "port_id": OTHER}},
    {"interfaceAttachment": {"fixed_ips": [{"ip_address": "10.0.0.3"}]}},
    {"interfaceAttachment": {"port_id": OTHER, "fixed_ips": [{"ip_address": "10.0.0.3"}]}},
    {"interfaceAttachment": {"net_id": OTHER, "fixed_ips": [{"ip_address": "10.0.0.3"}, {"ip_address": "10.0.0.4"}]}},
    {"interfaceAttachment": {"net_id": "net"}}, {"interfaceAttachment": {"tag": "a,b"}}, {"other": 1}])
def test_attach_when_the_body_is_bad_then_it_is_a_400_and_nothing_is_asked(body, client: ApiClient) -> None:
    assert client.post(BASE, body, version="2.49").status_int == 400
    assert client.conductor.asked("attach_interface") == []


def test_attach_when_a_tag_comes_before_its_version_then_it_is_a_400(client: ApiClient) -> None:
    assert client.post(BASE, {"interfaceAttachment": {"tag": "a"}}, version="2.48").status_int == 400


@pytest.mark.parametrize("error, code", [
    (errors.Conflict("in use"), 409), (errors.NotFound("no such network"), 404), (errors.HostRefused("no bridge"), 500),
    (errors.OverQuota("full"), 403), (errors.NotSupported("no"), 501)])
def test_attach_when_it_fails_then_the_caller_has_the_error(error, code, client: ApiClient) -> None:
    client.conductor.given(attach_interface=error)
    assert client.post(BASE, {}, version="2.1").status_int == code


def test_server_when_it_is_locked_or_in_the_wrong_state_then_its_interfaces_stay(client: ApiClient) -> None:
    mine = "21111111-2222-4333-8444-555555555555"
    client.conductor.add_server(uuid=mine, project_id="demo", user_id="demo", locked=True, interfaces=(PORT,))
    answers_ = [client.post(f"/servers/{mine}/os-interface", {}, token=DEMO),
                client.delete(f"/servers/{mine}/os-interface/{PORT.id}", token=DEMO),
                client.post(f"/servers/{mine}/action", {"addFixedIp": {"networkId": "n"}}, token=DEMO)]
    assert [one.status_int for one in answers_] == [409, 409, 409]
    client.conductor.add_server(uuid=mine, project_id="demo", user_id="demo", vm_state=VmState.SUSPENDED)
    assert client.post(f"/servers/{mine}/os-interface", {}, token=DEMO).status_int == 409
    assert client.conductor.asked("attach_interface", "detach_interface", "add_fixed_address") == []


def test_interface_when_it_is_not_the_servers_then_it_is_not_found(client: ApiClient) -> None:
    assert client.get(f"{BASE}/{OTHER}").status_int == 404
    assert client.delete(f"{BASE}/{OTHER}").status_int == 404
    assert client.get(BASE, token=DEMO).status_int == 404


def test_interface_of_nova_network_when_it_is_shown_then_it_is_active_and_its_subnet_is_the_network(
        client: ApiClient) -> None:

    plain = replace(PORT, status=None, addresses=(FixedAddress(address="10.0.0.2"),))
    client.conductor.add_server(uuid=UUID, project_id="admin", user_id="admin", interfaces=(plain,))
    [shown] = client.get(BASE).json["interfaceAttachments"]
    assert shown["port_state"] == "ACTIVE"
    assert shown["fixed_ips"] == [{"ip_address": "10.0.0.2", "subnet_id": PORT.network_id}]
