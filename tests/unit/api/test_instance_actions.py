"""A server's actions: who sees which part of their events, and pages."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from nova.model.server.actions import ActionEvent, InstanceAction
from tests.fakes.api import ADMIN, DEMO, ApiClient

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO)
    server = made.conductor.add_server(uuid="6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11")
    event = ActionEvent(event="compute_reboot_instance", started_at=WHEN, host="host1", traceback="trace",
                        details="why")
    for number in (2, 1):
        made.conductor.actions.append(InstanceAction(
            id=number, action="soft_reboot", server_uuid=server.uuid, request_id=f"req-{number}", user_id="demo",
            project_id="demo", started_at=WHEN, events=(event,)))
    return made


PATH = "/servers/6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11/os-instance-actions"


def test_list_names_actions_as_the_api_does(client: ApiClient) -> None:
    shown = client.get(PATH).json["instanceActions"]
    assert [entry["request_id"] for entry in shown] == ["req-2", "req-1"]
    assert shown[0]["action"] == "reboot"
    assert shown[0]["start_time"] == "2026-01-02T03:04:05.000000"


def test_pages_begin_at_2_58(client: ApiClient) -> None:
    assert len(client.get(f"{PATH}?limit=1", version="2.57").json["instanceActions"]) == 2
    page = client.get(f"{PATH}?limit=1", version="2.58").json
    assert len(page["instanceActions"]) == 1
    assert page["links"][0]["href"].endswith(f"{PATH}?limit=1&marker=req-2")
    assert client.get(f"{PATH}?colour=red", version="2.58").status_int == 400


def test_events_are_for_all_readers_from_2_51(client: ApiClient) -> None:
    def show(version: str, token: str = DEMO) -> dict[str, object]:
        return client.get(f"{PATH}/req-1", version=version, token=token).json["instanceAction"]
    assert "events" not in show("2.50") and "events" in show("2.50", ADMIN)
    mine, admins = show("2.84")["events"][0], show("2.84", ADMIN)["events"][0]
    assert "traceback" not in mine and "host" not in mine and "details" not in mine and mine["hostId"]
    assert (admins["traceback"], admins["host"], admins["details"]) == ("trace", "host1", "why")


def test_unknown_request_and_strangers_server_are_404(client: ApiClient) -> None:
    assert client.get(f"{PATH}/req-9").status_int == 404
    assert client.get(PATH, token="other:other").status_int == 404


def test_show_when_a_step_has_no_event_name_then_it_is_left_out(client: ApiClient) -> None:
    action = client.conductor.actions[0]
    nameless = ActionEvent(event="", step="claim", started_at=WHEN)
    client.conductor.actions[0] = msgspec.structs.replace(action, events=(nameless, *action.events))
    shown = client.get(f"{PATH}/{action.request_id}", token=ADMIN, version="2.51").json["instanceAction"]
    assert [event["event"] for event in shown["events"]] == ["compute_reboot_instance"]
