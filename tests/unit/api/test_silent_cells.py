"""Servers whose cell does not answer: at which versions, for which lists, and what is refused of them."""

from __future__ import annotations

import pytest

from nova.model.server.servers import ServerListQuery
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
LISTS = ("/servers", "/servers/detail")


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO, version="2.69")
    made.conductor.add_server(uuid=UUID, unknown=True)
    return made


def asked(client: ApiClient, query: str = "", **options: str) -> str:
    """What a list asks to be done about silent cells."""
    assert client.get(f"/servers/detail?{query}", **options).status_int == 200
    query_: ServerListQuery = client.conductor.asked("list_servers")[-1]
    return query_.silent_cells


@pytest.mark.parametrize("path", LISTS)
def test_list_from_2_69_has_them_in_part_and_before_it_leaves_them_out(client: ApiClient, path: str) -> None:
    found, = client.get(path).json["servers"]
    wanted = {"id", "status", "links"} | ({"tenant_id", "created"} if "detail" in path else set())
    assert found.keys() == wanted and (found["id"], found["status"]) == (UUID, "UNKNOWN")
    assert client.get(path, version="2.68").json == {"servers": []}


@pytest.mark.parametrize("query", ["limit=5", f"marker={UUID}", "sort_key=created_at", "sort_dir=asc", "name=x",
                                   "status=active", "changes-since=2020-01-01", "tags=a", "deleted=true",
                                   "all_tenants=1&project_id=p"])
def test_list_with_pages_order_or_filters_leaves_them_out(client: ApiClient, query: str) -> None:
    client.conductor.add_server(uuid=UUID, unknown=True, project_id="admin")
    assert asked(client, query, token=ADMIN) == "skip"
    assert client.get(f"/servers?{query}", token=ADMIN).json == {"servers": []}


def test_list_when_a_filter_asks_for_what_is_listed_anyway_then_it_has_them(client: ApiClient) -> None:
    for query in ("deleted=false", "all_tenants=1", "all_tenants=1&deleted=False"):
        assert asked(client, query, token=ADMIN) == "show", query
    assert asked(client, "host=host1") == "show"  # which not everybody may filter by: it is dropped


def test_list_when_it_is_full_then_it_has_no_next_link(client: ApiClient) -> None:
    client = ApiClient(client.conductor, configuration(max_limit=1), version="2.69")
    assert client.get("/servers").json.keys() == {"servers"}


def test_list_when_skipping_is_off_then_it_fails_where_they_cannot_be_shown(client: ApiClient) -> None:
    client = ApiClient(client.conductor, configuration(list_records_by_skipping_down_cells=False), version="2.69")
    for path in LISTS:
        assert len(client.get(path).json["servers"]) == 1
        assert client.get(path, version="2.68").status_int == 503
        assert client.get(f"{path}?limit=5").status_int == 503


def test_show_from_2_69_has_it_in_part_and_before_it_fails(client: ApiClient) -> None:
    found = client.get(f"/servers/{UUID}").json["server"]
    assert found.keys() == {"id", "status", "links", "tenant_id", "created", "user_id", "image", "flavor",
                            "OS-EXT-AZ:availability_zone", "OS-EXT-STS:power_state"}
    assert client.get(f"/servers/{UUID}", version="2.71").json["server"]["server_groups"] == []
    failed = client.get(f"/servers/{UUID}", version="2.68")
    assert failed.status_int == 503 and failed.json["serviceUnavailable"]["message"]


@pytest.mark.parametrize("body", [{"os-stop": None}, {"reboot": {"type": "SOFT"}}, {"lock": None}])
def test_action_on_it_is_refused_at_every_version(client: ApiClient, body: dict[str, object]) -> None:
    for version in ("2.1", "2.69", "2.104"):
        assert client.post(f"/servers/{UUID}/action", body, version=version).status_int == 503
        assert client.request("DELETE", f"/servers/{UUID}", version=version).status_int == 503
    assert client.conductor.asked("order_server") == []
