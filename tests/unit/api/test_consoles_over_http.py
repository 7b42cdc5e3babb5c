"""Consoles over HTTP: which types there are when, who may, and what is told of a token."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.guest.consoles import ConsoleAddress, ConsoleRequest, ConsoleType
from nova.model.server.states import TaskState
from tests.fakes.api import ADMIN, READER, ApiClient
from tests.fakes.consoles import TOKEN

OLD = {"os-getVNCConsole": ("novnc", "xvpvnc"), "os-getSPICEConsole": ("spice-html5",),
       "os-getSerialConsole": ("serial",)}
#: (protocol, type, first version)
NEW = (("vnc", "novnc", 6), ("vnc", "xvpvnc", 6), ("spice", "spice-html5", 6), ("serial", "serial", 6),
       ("mks", "webmks", 8), ("spice", "spice-direct", 99))
NOWHERE = "99999999-2222-4333-8444-555555555555"


class Client(ApiClient):
    def __init__(self) -> None:
        super().__init__()
        self.server = self.conductor.add_server()


@pytest.fixture
def client() -> Client:
    return Client()


def remote(client: Client, protocol: str, type: str, version: int = 104, **options: Any) -> Any:
    return client.post(f"/servers/{options.pop('server', client.server.uuid)}/remote-consoles",
                       {"remote_console": {"protocol": protocol, "type": type}}, version=f"2.{version}", **options)


@pytest.mark.parametrize(("action", "type"), [(action, type) for action, types in OLD.items() for type in types])
def test_old_action_when_the_server_runs_then_type_and_address(client: Client, action: str, type: str) -> None:
    path = f"/servers/{client.server.uuid}/action"
    answer = client.post(path, {action: {"type": type}}, version="2.5")
    assert answer.status_int == 200 and answer.json["console"]["type"] == type
    assert answer.json["console"]["url"].endswith(TOKEN)
    request = ConsoleRequest(server_uuid=client.server.uuid, type=ConsoleType(type))
    assert client.consoles.asked("open_console") == [request]
    client.prefix = "/v2"
    assert client.post(path, {action: {"type": type}}, version=None).status_int == 200
    client.prefix = "/v2.1"
    assert client.post(path, {action: {"type": type}}, version="2.6").status_int == 404


@pytest.mark.parametrize(("protocol", "type", "since"), NEW)
def test_remote_console_since_its_version_then_an_address(client: Client, protocol: str, type: str,
                                                          since: int) -> None:
    answer = remote(client, protocol, type, since)
    assert answer.status_int == 200
    assert answer.json["remote_console"] == {"protocol": protocol, "type": type,
                                             "url": answer.json["remote_console"]["url"]}
    before = remote(client, protocol, type, since - 1)
    assert before.status_int == (404 if since == 6 else 400)


def test_novnc_console_then_its_token_stands_in_the_path_that_novnc_hands_on(client: Client) -> None:
    url = remote(client, "vnc", "novnc").json["remote_console"]["url"]
    assert url == f"http://127.0.0.1:6080/vnc_auto.html?path=%3Ftoken%3D{TOKEN}"


@pytest.mark.parametrize(("protocol", "type"), [("vnc", "serial"), ("serial", "novnc"), ("spice", "rdp-html5")])
def test_remote_console_when_protocol_and_type_do_not_fit_then_400_names_both(client: Client, protocol: str,
                                                                              type: str) -> None:
    answer = remote(client, protocol, type)
    assert answer.status_int == 400 and client.consoles.asked("open_console") == []
    message = answer.json["badRequest"]["message"]
    assert f"type {type}" in message and f"protocol {protocol}" in message


def test_rdp_console_then_always_400_at_once(client: Client) -> None:
    for body in ({"type": "rdp-html5"}, None, {"type": 1, "x": []}):
        answer = client.post(f"/servers/{NOWHERE}/action", {"os-getRDPConsole": body}, version="2.1")
        assert (answer.status_int, answer.json["badRequest"]["message"]) == (
            400, "Unavailable console type rdp-html5.")
    assert client.post(f"/servers/{NOWHERE}/action", {"os-getRDPConsole": {}}, version="2.6").status_int == 404
    answer = remote(client, "rdp", "rdp-html5")
    assert (answer.status_int, answer.json["badRequest"]["message"]) == (400, "Unavailable console type rdp-html5.")
    assert client.consoles.asked("open_console") == []


@pytest.mark.parametrize(("error", "status"), [
    (errors.NotFound("gone"), 404), (errors.Conflict("it has no guest"), 409), (errors.WrongState("busy"), 409),
    (errors.Invalid("Unavailable console type novnc."), 400), (errors.NotSupported("none"), 501),
    (errors.Unavailable("nova-consoleauth did not answer"), 503)])
def test_remote_console_when_it_cannot_be_opened_then_the_error_s_code_and_words(client: Client, error: Exception,
                                                                                  status: int) -> None:
    client.consoles.given(open_console=error)
    answer = remote(client, "vnc", "novnc")
    assert answer.status_int == status
    assert next(iter(answer.json.values()))["message"] == str(error)


def test_remote_console_as_others_then_404_or_403_and_none_is_opened(client: Client) -> None:
    assert remote(client, "vnc", "novnc", token="joe:other").status_int == 404
    assert remote(client, "vnc", "novnc", token=READER).status_int in (200, 403)  # noauth2 has no roles to refuse by
    client.consoles.calls.clear()
    assert remote(client, "vnc", "novnc", server=NOWHERE).status_int == 404
    assert client.consoles.asked("open_console") == []


def test_remote_console_of_a_locked_server_then_an_address(client: Client) -> None:
    locked = msgspec.structs.replace(client.server, locked=True, locked_by="admin", task_state=TaskState.REBOOTING)
    client.conductor.servers[locked.uuid] = locked
    assert remote(client, "vnc", "novnc").status_int == 200


# -- what a token stands for

def shown(client: Client, version: int, what: str = TOKEN, query: str = "", token: str = ADMIN) -> Any:
    return client.get(f"/os-console-auth-tokens/{what}{query}", version=f"2.{version}", token=token)


@pytest.mark.parametrize(("type", "version", "has_tls"), [
    ("novnc", 31, False), ("novnc", 104, False), ("spice-direct", 98, False), ("spice-direct", 99, True)])
def test_token_shown_then_the_console_s_place_and_tls_port_of_direct_spice_alone(client: Client, type: str,
                                                                                 version: int, has_tls: bool) -> None:
    client.consoles.address = ConsoleAddress(access_url_base="http://x/", host="10.0.0.5", port=5900, tls_port=5901)
    remote(client, "spice" if type == "spice-direct" else "vnc", type)
    wanted = {"instance_uuid": client.server.uuid, "host": "10.0.0.5", "port": 5900, "internal_access_path": None}
    assert shown(client, version).json == {"console": wanted | ({"tls_port": 5901} if has_tls else {})}


def test_token_shown_when_its_console_is_on_a_socket_then_there_is_no_host(client: Client) -> None:
    client.consoles.address = ConsoleAddress(access_url_base="ws://x/", socket_path="/run/nova/x.sock")
    remote(client, "serial", "serial")
    console = shown(client, 104).json["console"]
    assert (console["host"], console["port"]) == (None, 0) and "/run" not in str(console)


@pytest.mark.parametrize("token", ["nothing", "a b", "%FF%FE", "x" * 255, "%2e%2e"])
def test_token_shown_when_it_is_nobody_s_then_404(client: Client, token: str) -> None:
    assert shown(client, 104, token).status_int == 404


def test_token_shown_below_2_31_then_400_and_a_member_is_refused(client: Client) -> None:
    remote(client, "vnc", "novnc")
    for version in (1, 30):
        assert shown(client, version).status_int == 400
    assert "2.31" in shown(client, 30).json["badRequest"]["message"]
    assert shown(client, 104, token="demo:demo").status_int == 403


def test_token_shown_with_a_strange_query_then_400_from_2_99(client: Client) -> None:
    remote(client, "vnc", "novnc")
    assert shown(client, 98, query="?x=1").status_int == 200
    assert shown(client, 99, query="?x=1").status_int == 400


def test_token_in_a_path_then_it_is_in_no_log(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for prefix in ("/v2.1", "/v2", "/v2.1/admin"):
        client.prefix = prefix
        for version in ("2.30", "2.104"):
            shown(client, int(version[2:]))
    client.consoles.given(show_token=RuntimeError("unexpected"))
    assert shown(client, 104).status_int == 500
    assert "/os-console-auth-tokens/***" in caplog.text and TOKEN not in caplog.text
