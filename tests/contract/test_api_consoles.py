"""What we answer about consoles passes the contract's rows at every version."""

from __future__ import annotations

from typing import Any

import pytest

from nova.model.guest.consoles import ConsoleType
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, ApiClient
from tests.fakes.consoles import TOKEN

pytestmark = rows.needs_contract

UUID = "11111111-2222-4333-8444-555555555555"
ACTION = "POST /servers/{server_id}/action#"
CREATE = "POST /servers/{server_id}/remote-consoles"
SHOW = "GET /os-console-auth-tokens/{console_token}"
TYPES = {"os-getVNCConsole": "novnc", "os-getSPICEConsole": "spice-html5", "os-getSerialConsole": "serial"}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_server(uuid=UUID, project_id="admin", user_id="admin")
    return made


@pytest.mark.parametrize("action", TYPES)
def test_old_action_at_every_version_passes_the_contract(action: str, client: ApiClient) -> None:
    for version in answers.span(ACTION + action):
        answer = client.post(f"/servers/{UUID}/action", {action: {"type": TYPES[action]}}, version=f"2.{version}")
        answers.assert_answer(ACTION + action, version, answer)


def test_remote_console_at_every_version_passes_the_contract(client: ApiClient) -> None:
    for version in answers.span(CREATE):
        for protocol, type, since in (("vnc", "novnc", 6), ("mks", "webmks", 8), ("spice", "spice-direct", 99)):
            if version >= since:
                body = {"remote_console": {"protocol": protocol, "type": type}}
                answers.assert_answer(CREATE, version, client.post(f"/servers/{UUID}/remote-consoles", body,
                                                                   version=f"2.{version}"))


@pytest.mark.parametrize("type", ["novnc", "spice-direct"])
def test_token_at_every_version_passes_the_contract(type: str, client: ApiClient) -> None:
    client.post(f"/servers/{UUID}/remote-consoles",
                {"remote_console": {"protocol": "spice" if type == "spice-direct" else "vnc", "type": type}},
                version="2.104")
    for version in answers.span(SHOW):
        answer = client.get(f"/os-console-auth-tokens/{TOKEN}", version=f"2.{version}")
        if version < 31:
            assert answer.status_int == 400
        else:
            answers.assert_answer(SHOW, version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples([SHOW]))
def test_token_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    type = ConsoleType.SPICE_DIRECT if "tls_port" in content["console"] else ConsoleType.NOVNC
    client.post(f"/servers/{UUID}/remote-consoles", {"remote_console": {
        "protocol": "spice" if type is ConsoleType.SPICE_DIRECT else "vnc", "type": type.value}}, version="2.104")
    answer = client.get(f"/os-console-auth-tokens/{TOKEN}", version=f"2.{version}")
    assert answers.fields(content) == answers.fields(answer.json)
