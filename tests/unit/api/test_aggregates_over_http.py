"""Aggregates over the API: what is asked of the conductor, what is refused before it, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.model.host.aggregates import AggregateUpdate
from tests.fakes.api import ADMIN, DEMO, ApiClient

IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN, version="2.104")
    made.conductor.add_aggregate("one", ("host1",), availability_zone="london", ssd="true")
    return made


def test_list_and_show_tell_all(client: ApiClient) -> None:
    shown = client.get("/os-aggregates/1").json["aggregate"]
    assert shown == {
        "id": 1, "uuid": "00000000-0000-0000-0000-000000000001", "name": "one", "availability_zone": "london",
        "hosts": ["host1"], "metadata": {"availability_zone": "london", "ssd": "true"}, "deleted": False,
        "deleted_at": None, "created_at": "2026-01-02T03:04:05.678901", "updated_at": None}
    assert client.get("/os-aggregates").json == {"aggregates": [shown]}
    assert "uuid" not in client.get("/os-aggregates/1", version="2.40").json["aggregate"]


def test_create_answers_without_hosts_and_metadata(client: ApiClient) -> None:
    answer = client.post("/os-aggregates", {"aggregate": {"name": "two", "availability_zone": None}})
    assert answer.status_int == 200
    assert set(answer.json["aggregate"]) == {"id", "uuid", "name", "availability_zone", "created_at", "updated_at",
                                             "deleted", "deleted_at"}
    assert answer.json["aggregate"]["availability_zone"] is None
    assert client.post("/os-aggregates", {"aggregate": {"name": "two"}}).status_int == 409


@pytest.mark.parametrize(("body", "asked"), [
    ({"name": "new"}, AggregateUpdate(id=1, name="new")),
    ({"name": " new "}, AggregateUpdate(id=1, name="new")),
    ({"availability_zone": "paris"}, AggregateUpdate(id=1, changes_zone=True, availability_zone="paris")),
    ({"availability_zone": None}, AggregateUpdate(id=1, changes_zone=True))])
def test_update_asks_for_what_the_body_has(client: ApiClient, body: Any, asked: AggregateUpdate) -> None:
    answer = client.put("/os-aggregates/1", {"aggregate": body})
    assert answer.status_int == 200 and client.conductor.asked("update_aggregate") == [asked]
    assert answer.json["aggregate"]["updated_at"] == "2026-01-03T03:04:05.000000"


def test_names_under_v2_may_have_blanks_around_them(client: ApiClient) -> None:
    client.prefix = "/v2"
    made = client.post("/os-aggregates", {"aggregate": {"name": " two ", "availability_zone": " paris ", "x": 1}})
    assert (made.json["aggregate"]["name"], made.json["aggregate"]["availability_zone"]) == ("two", "paris")
    assert client.put("/os-aggregates/1", {"aggregate": {"x": 1}}).status_int == 400


@pytest.mark.parametrize("id", ["-1", "0", "99", "9" * 30])
def test_aggregate_that_cannot_be_is_404(client: ApiClient, id: str) -> None:
    assert client.get(f"/os-aggregates/{id}").status_int == 404
    assert client.delete(f"/os-aggregates/{id}").status_int == 404


@pytest.mark.parametrize("id", ["one", "1.5", "0x1", "%D9%A1"])
def test_aggregate_id_that_is_no_number_is_400(client: ApiClient, id: str) -> None:
    answer = client.get(f"/os-aggregates/{id}")
    assert answer.status_int == 400 and "whole number" in answer.json["badRequest"]["message"]


def test_delete_answers_200_with_nothing(client: ApiClient) -> None:
    assert client.delete("/os-aggregates/1").status_int == 400  # it has a host
    client.post("/os-aggregates/1/action", {"remove_host": {"host": "host1"}})
    answer = client.delete("/os-aggregates/1")
    assert (answer.status_int, answer.body) == (200, b"")


def test_actions_change_hosts_and_metadata(client: ApiClient) -> None:
    added = client.post("/os-aggregates/1/action", {"add_host": {"host": "host-2.a_b"}}).json["aggregate"]
    assert added["hosts"] == ["host1", "host-2.a_b"]
    changed = client.post("/os-aggregates/1/action", {"set_metadata": {"metadata": {"ssd": None, "x": "y"}}}).json
    assert changed["aggregate"]["metadata"] == {"availability_zone": "london", "x": "y"}


@pytest.mark.parametrize("body", [
    {"add_host": {"host": "a b"}}, {"add_host": {}}, {"add_host": {"host": "a", "x": 1}}, {"dance": {}},
    {"set_metadata": {"metadata": {"availability_zone": ""}}}, {"set_metadata": {"metadata": {"é": "x"}}},
    {"set_metadata": {"metadata": {"a": 1}}}, {"set_metadata": {"metadata": {"a": "x" * 256}}},
    {"add_host": {"host": "a"}, "remove_host": {"host": "b"}}])
def test_action_that_does_not_fit_is_400(client: ApiClient, body: Any) -> None:
    before = dict(client.conductor.aggregates)
    assert client.post("/os-aggregates/1/action", body).status_int == 400
    assert client.conductor.aggregates == before


@pytest.mark.parametrize(("error", "status"), [(errors.Conflict("x"), 409), (errors.Invalid("x"), 400),
                                               (errors.NotFound("x"), 404)])
def test_refusals_keep_their_kind(client: ApiClient, error: errors.NovaError, status: int) -> None:
    client.conductor.given(add_aggregate_host=error)
    assert client.post("/os-aggregates/1/action", {"add_host": {"host": "a"}}).status_int == status


def test_images_are_cached_from_2_81_on(client: ApiClient) -> None:
    body = {"cache": [{"id": IMAGE}]}
    answer = client.post("/os-aggregates/1/images", body)
    assert (answer.status_int, answer.body, client.conductor.asked("cache_images")) == (202, b"", [(1, (IMAGE,))])
    assert client.post("/os-aggregates/1/images", body, version="2.80").status_int == 404
    assert client.post("/os-aggregates/9/images", body).status_int == 404
    for bad in ({"cache": []}, {"cache": [{"id": "x"}]}, {"cache": [{"id": IMAGE}, {"id": IMAGE}]},
                {"cache": [{"id": IMAGE}, {"id": IMAGE.upper()}]}, {"cache": [{"id": IMAGE, "x": 1}]}):
        assert client.post("/os-aggregates/1/images", bad).status_int == 400
    assert {*client.conductor.asked("cache_images")} == {(1, (IMAGE,)), (9, (IMAGE,))}


@pytest.mark.parametrize(("method", "path", "body"), [
    ("GET", "/os-aggregates", None), ("GET", "/os-aggregates/1", None), ("DELETE", "/os-aggregates/1", None),
    ("POST", "/os-aggregates", {"aggregate": {"name": "x"}}), ("PUT", "/os-aggregates/1", {"aggregate": {"name": "x"}}),
    ("POST", "/os-aggregates/1/action", {"add_host": {"host": "x"}}),
    ("POST", "/os-aggregates/1/action", {"remove_host": {"host": "host1"}}),
    ("POST", "/os-aggregates/1/action", {"set_metadata": {"metadata": {}}}),
    ("POST", "/os-aggregates/1/images", {"cache": [{"id": IMAGE}]})])
def test_aggregates_are_for_admins(client: ApiClient, method: str, path: str, body: Any) -> None:
    before = dict(client.conductor.aggregates)
    assert client.request(method, path, body, token=DEMO).status_int == 403
    assert client.conductor.aggregates == before and not client.conductor.asked("cache_images")
