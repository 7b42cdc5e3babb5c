"""The client against a Neutron in memory: through keystoneauth and requests, without a socket."""

from __future__ import annotations

import io
import socket
import time
from typing import Any

import pytest
import requests
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3
from oslo_config import cfg

from nova import conf as nova_conf
from nova import context, decoding, errors
from nova.clients import neutron as client_module
from nova.clients import session
from nova.clients.neutron_caller import NeutronCaller
from nova.clients.neutron_values import (
    NetworkJson,
    QuotaJson,
    ResourceRequestJson,
    asked,
    counted,
    network,
)
from nova.conf.network import neutron_in_use
from tests.fakes.neutron import FakeNeutron, Trouble


@pytest.fixture
def fake():
    return FakeNeutron(tokens={"joe's": "demo"})


@pytest.fixture
def client(fake):
    return fake.client()


def test_list_when_it_comes_in_pages_then_all_are_read_and_the_links_host_is_not_followed(fake, client):
    made = sorted(fake.add_network(f"n{number}") for number in range(5))
    fake.page = 2
    assert [one.id for one in client.networks()] == made
    assert len(fake.asked("GET", "networks")) == 3


def test_ids_when_there_are_many_then_each_url_is_short(fake, client):
    network = fake.add_network(cidrs=())
    ports = [fake.add_port(network) for _ in range(250)]
    assert len(client.ports_by_id(ports)) == 250
    assert len(fake.requests) == 3 and max(len(path) for _method, path in fake.requests) < 5000


def test_networks_when_a_user_asks_then_his_token_and_request_id_are_sent(fake, client):
    own, _other = fake.add_network(), fake.add_network(tenant_id="another", project_id="another")
    who = context.RequestContext(request_id="req-1", global_request_id="req-global", token="joe's")
    with context.entered(who):
        assert [one.id for one in client.networks(as_user=True)] == [own]
        assert len(client.networks()) == 2
    assert fake.headers[0]["X-OpenStack-Request-ID"] == "req-global"


@pytest.mark.parametrize("status, kind, error", [
    (409, "OverQuota", errors.OverQuota), (409, "IpAddressGenerationFailure", errors.Conflict),
    (400, "InvalidInput", errors.Invalid), (404, "NetworkNotFound", errors.NotFound), (403, "PolicyNotAuthorized",
                                                                                      errors.Unavailable)])
def test_create_ports_when_neutron_refuses_then_the_kind_is_ours_and_its_words_are_kept(fake, client, monkeypatch,
                                                                                       status, kind, error):
    answer = (status, {"NeutronError": {"type": kind, "message": "Because of this.", "detail": ""}})
    monkeypatch.setattr(fake, "answer", lambda request: answer)
    with pytest.raises(error) as raised:
        client.create_ports([{"network_id": "n"}])
    assert status == 404 or "Because of this" in raised.value.message


@pytest.mark.parametrize("how", ["refused", "timeout", 500, 503])
def test_reads_when_nobody_answers_once_then_they_are_repeated_and_posts_are_not(fake, client, how):
    network = fake.add_network()
    fake.trouble("GET", "networks", how)
    assert len(client.networks()) == 1
    fake.trouble("POST", "ports", how)
    with pytest.raises(errors.Unavailable) as raised:
        client.create_ports([{"network_id": network, "tenant_id": "demo"}])
    assert "network service" in raised.value.message
    assert len(fake.asked("POST")) == 1


@pytest.mark.parametrize("blind, looks, found", [(0, 1, True), (1, 2, True), (2, 3, True), (3, 3, False)])
def test_known_ports_when_they_are_not_shown_then_looked_for_again_before_they_count_as_gone(fake, blind, looks, found):
    port = fake.add_port(fake.add_network())
    fake.troubles.append(Trouble("GET", "ports", "blind", blind))
    shown = fake.client(doubts_s=(0.0, 0.0)).known_ports([port])
    assert [one.id for one in shown] == ([port] if found else [])
    assert len([path for _method, path in fake.requests if path.startswith("ports")]) == looks


def test_delete_when_it_is_gone_then_nothing_is_said(client):
    client.delete_port("no-such-port")
    client.delete_binding("no-such-port", "host")


def test_activate_when_it_is_active_then_nothing_is_said(fake, client):
    port = fake.add_port(fake.add_network(), **{"binding:host_id": "a"})
    client.activate_binding(port, "a")
    client.create_binding(port, "b", "normal", {})
    client.activate_binding(port, "b")
    assert fake.hosts_of(port) == {"a": "INACTIVE", "b": "ACTIVE"}
    with pytest.raises(errors.NotFound):
        client.activate_binding(port, "c")


def test_update_when_the_port_changed_meanwhile_then_it_is_refused(fake, client):
    port = client.port(fake.add_port(fake.add_network()))
    client.update_port(port.id, {"name": "x"}, if_match=port.revision)
    with pytest.raises(errors.Conflict):
        client.update_port(port.id, {"name": "y"}, if_match=port.revision)


def test_extensions_when_asked_for_often_then_read_once_and_kept_while_neutron_is_away(fake):
    client = fake.client(extension_sync_s=600)
    assert client.has("binding-extended") and not client.has("something-new")
    assert len(fake.asked("GET", "extensions")) == 1
    eager = fake.client(extension_sync_s=0, retries=0)
    assert eager.has("quota_details")
    fake.away()
    assert eager.has("quota_details")


def test_extensions_when_never_read_and_neutron_is_away_then_it_says_so(fake):
    fake.away()
    with pytest.raises(errors.Unavailable):
        fake.client(retries=0).extensions()


@pytest.mark.parametrize("again, asked", [(True, 2), (False, 1)])
def test_call_when_somebody_waits_then_all_attempts_end_before_that(fake, again, asked):
    fake.away()
    with context.waited_for(5.0, again), pytest.raises(errors.Unavailable):
        fake.client(retries=1).networks()
    assert len(fake.timeouts) == asked and all(0 < read <= 5 for _connect, read in fake.timeouts)
    with context.waited_for(0.0), pytest.raises(errors.Unavailable, match="no time is left"):
        fake.client().networks()
    assert len(fake.timeouts) == asked


def test_calls_when_nobody_answers_them_then_all_of_them_together_end_before_who_waits_goes(fake):
    """As a conductor's call has them: one after the other, each with its attempts."""
    now = [0.0]

    def hang(request: Any) -> Any:
        now[0] += fake.timeouts[-1][1]
        raise requests.ReadTimeout("timeout")
    fake.answer = hang
    client = fake.client(retries=3)
    with context.waited_for(48.0, clock=lambda: now[0]):
        for _ in range(5):
            with pytest.raises(errors.Unavailable):
                client.networks()
        with pytest.raises(errors.Unavailable):
            client.create_ports([{"network_id": "n"}])
        assert 0 < now[0] <= 48.0
    assert context.deadline().left_s == float("inf")


@pytest.mark.parametrize("answer", ["<html>Bad Gateway</html>", "[]", ""])
def test_call_when_something_else_answers_then_the_service_is_unavailable(fake, client, answer):
    fake.transport.send = lambda request, **kwargs: plain(request, answer)
    for call in (client.networks, client.extensions, lambda: client.update_port("p", {}),
                 lambda: client.create_ports([{"network_id": "n"}])):
        with pytest.raises(errors.Unavailable, match="not Neutron"):
            call()


def test_post_when_whoever_waits_is_about_to_go_then_it_is_not_begun_and_reads_are(fake, client):
    network = fake.add_network()
    with context.waited_for(4.0):
        assert client.networks()
        with pytest.raises(errors.Unavailable, match="no time is left"):
            client.create_ports([{"network_id": network, "tenant_id": "demo"}])
    assert fake.asked("POST") == [] and client.create_ports([{"network_id": network, "tenant_id": "demo"}])


def plain(request: Any, text: str) -> requests.Response:
    answer = requests.Response()
    answer.status_code, answer.request, answer.url, answer.raw = 200, request, request.url, io.BytesIO(text.encode())
    return answer


def test_token_when_keystone_hangs_then_nobody_waits_for_longer_than_the_call_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        plugin = v3.Password(f"{url}/v3", username="nova", password="x", user_domain_id="d", project_id="p")
        http = session.patient(ksession.Session(timeout=60.0))
        caller = NeutronCaller(session.ServiceEndpoint("network", "network", (url,), retries=0),
                               session.Credentials(http, plugin))
        begun = time.monotonic()
        with context.waited_for(0.1), pytest.raises(errors.Unavailable):
            caller.call("GET", "/v2.0/networks")
        assert time.monotonic() - begun < 5.0


def test_call_when_no_time_is_left_for_another_attempt_then_it_is_not_made(fake):
    fake.away()
    client = fake.client(retries=3, retry_wait_s=20.0, deadline_s=1.0)
    with pytest.raises(errors.Unavailable):
        client.networks()
    assert len(fake.timeouts) == 1


def test_resource_request_when_of_either_format_then_groups():
    old = asked(ResourceRequestJson(resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, required=("CUSTOM_PHYSNET_0",)))
    assert [(one.id, dict(one.resources), one.traits) for one in old.groups] == [
        ("", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, ("CUSTOM_PHYSNET_0",))]
    new = asked(decoding.convert({"request_groups": [{"id": "g1", "resources": {"A": 1}, "required": []},
                                                     {"id": "g2", "resources": {"B": 2}, "required": ["T"]}],
                                  "same_subtree": ["g1", "g2"]}, ResourceRequestJson))
    assert [one.id for one in new.groups] == ["g1", "g2"] and new.same_subtree == ("g1", "g2")
    assert asked(None).groups == asked(ResourceRequestJson()).groups == ()


def test_quota_when_with_and_without_details_then_room_is_what_is_known():
    assert counted({"port": QuotaJson(limit=10, used=7, reserved=1)})["port"].room == 2
    assert counted({"port": QuotaJson(limit=-1, used=7)})["port"].room is None
    assert counted({"port": 10})["port"].room is None


def test_network_when_it_has_several_segments_then_its_physical_network_is_found():
    found = network(decoding.convert({"id": "n", "segments": [
        {"provider:network_type": "vxlan", "provider:physical_network": None},
        {"provider:network_type": "vlan", "provider:physical_network": "p1"}]}, NetworkJson))
    assert (found.physical_network, found.tunnelled) == ("p1", True)


# -- configuration

def options(text, tmp_path):
    file = tmp_path / "nova.conf"
    file.write_text(text)
    conf = nova_conf.register(cfg.ConfigOpts())
    conf(["--config-file", str(file)], project="nova")
    return conf


@pytest.mark.parametrize("text, expected", [
    ("", False), ("[neutron]\nauth_type = password", True), ("[neutron]\nendpoint_override = http://n", True),
    ("[neutron]\nauth_section = x", True), ("[DEFAULT]\nuse_neutron = false\n[neutron]\nauth_type = password", False),
    ("[DEFAULT]\nuse_neutron = true", True)])
def test_neutron_in_use_when_configured_so_then_true(tmp_path, text, expected):
    assert neutron_in_use(options(text, tmp_path)) is expected


def test_client_of_groups_when_configured_then_patience_and_address_are_as_said(tmp_path):
    found = options("[neutron]\nendpoint_override = http://n:9696/\nhttp_retries = 5\ntimeout = 7\nregion_name = r",
                    tmp_path)
    made = client_module.of_groups(found.neutron, session.load(found, "neutron"))
    service = made._caller.service
    assert (service.addresses, service.retries, service.read_timeout_s, service.region_name) == (
        ("http://n:9696",), 5, 7.0, "r")
    assert service.deadline_s == 10.5
    assert isinstance(found, cfg.ConfigOpts)


@pytest.mark.parametrize(("call", "message"), [
    (lambda client, port: client.update_port(port, {"security_groups": ["gone"]}),
     "The network service refused: Security group gone does not exist."),
    (lambda client, port: client.update_port("none", {}), "The network service has no port none."),
    (lambda client, port: client.port("none"), "The network service has no port none."),
    (lambda client, port: client.create_ports([{"network_id": "none", "tenant_id": "demo"}]),
     "The network service refused: Network none could not be found."),
    (lambda client, port: client.create_ports([{"network_id": client.port(port).network_id, "tenant_id": "demo",
                                                "security_groups": ["gone"]}]),
     "The network service refused: Security group gone does not exist.")])
def test_refusal_when_something_is_missing_then_what_neutron_misses_is_named(fake, client, call, message):
    port = fake.add_port(fake.add_network())
    with pytest.raises(errors.service.ResourceNotFound) as refused:
        call(client, port)
    assert refused.value.message == message
