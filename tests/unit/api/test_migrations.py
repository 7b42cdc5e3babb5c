"""Migrations over the API: what is asked, who sees which field, and what may be told to one that runs."""

from __future__ import annotations

import datetime

import pytest

from nova.model.server.server_orders import MigrationOrder
from nova.model.server.states import TaskState, VmState
from tests.fakes.api import ADMIN, DEMO, ApiClient

UUID = "11111111-2222-4333-8444-555555555555"
HOSTS = ("source_compute", "source_node", "dest_compute", "dest_node", "dest_host")


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN, version="2.80")
    made.conductor.add_server(uuid=UUID, vm_state=VmState.ACTIVE, task_state=TaskState.MIGRATING)
    return made


def test_list_passes_every_filter_on(client):
    path = ("/os-migrations?host=h&instance_uuid=i&source_compute=s&status=error&migration_type=resize&user_id=u"
            "&project_id=p&changes-since=2026-01-01T00:00:00Z&changes-before=2026-01-02T00:00:00Z&limit=3")
    assert client.get(path).json == {"migrations": []}
    query, = client.conductor.asked("list_migrations")
    assert (query.host, query.server_uuid, query.source_compute, query.status, query.type, query.user_id,
            query.project_id, query.page.limit) == ("h", "i", "s", "error", "resize", "u", "p", 3)
    assert query.changes_since.day == 1 and query.changes_before == datetime.datetime(2026, 1, 2, 0, 0, 0, 999_999)


def test_list_when_full_has_a_next_link_that_goes_on(client):
    for _ in range(3):
        client.conductor.add_migration(server_uuid=UUID)
    first = client.get("/os-migrations?limit=2&status=running").json
    assert [move["id"] for move in first["migrations"]] == [3, 2]
    link = first["migrations_links"][0]["href"]
    assert "status=running" in link and f"marker={first['migrations'][1]['uuid']}" in link
    rest = client.get("/os-migrations?" + link.split("?")[1]).json
    assert [move["id"] for move in rest["migrations"]] == [1] and "migrations_links" not in rest
    assert "migrations_links" not in client.get("/os-migrations", version="2.58").json


@pytest.mark.parametrize(("version", "query", "code"), [
    ("2.59", "marker=x", 400), ("2.59", "limit=-1", 400), ("2.59", "colour=blue", 400), ("2.58", "colour=blue", 200),
    ("2.58", "limit=-1", 200), ("2.65", "changes-before=2026-01-01T00:00:00Z", 400), ("2.79", "user_id=x", 400),
    ("2.59", "changes-since=x", 400),
    ("2.66", "changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z", 400)])
def test_list_query_by_version(client, version, query, code):
    assert client.get(f"/os-migrations?{query}", version=version).status_int == code


def test_list_of_hidden_ones_is_empty(client):
    client.conductor.add_migration(server_uuid=UUID)
    assert client.get("/os-migrations?hidden=true").json["migrations"] == []
    assert len(client.get("/os-migrations?hidden=false").json["migrations"]) == 1


def test_list_is_for_admins(client):
    assert client.get("/os-migrations", token=DEMO).status_int == 403
    assert client.conductor.asked("list_migrations") == []


def test_links_are_those_of_live_migrations_that_are_under_way(client):
    for fields in ({}, {"status": "completed"}, {"type": "resize", "status": "migrating"}):
        client.conductor.add_migration(server_uuid=UUID, **fields)
    shown = {move["id"]: "links" in move for move in client.get("/os-migrations").json["migrations"]}
    assert shown == {1: True, 2: False, 3: False}
    assert "links" not in client.get("/os-migrations", version="2.22").json["migrations"][2]


def test_show_is_of_live_migrations_that_are_under_way(client):
    for fields in ({}, {"status": "completed"}, {"type": "resize"}):
        client.conductor.add_migration(server_uuid=UUID, **fields)
    path = f"/servers/{UUID}/migrations"
    assert [move["id"] for move in client.get(path).json["migrations"]] == [1]
    assert client.get(f"{path}/1").json["migration"]["dest_host"] == "10.0.0.2"
    for id in ("2", "3", "4", "x", "-1", "9" * 30, "1" + "0" * 18 + "0", "0" * 20 + "9" * 30):
        assert client.get(f"{path}/{id}").status_int == 404, id
    assert client.get(f"{path}/1", token=DEMO).status_int == 403


def test_amounts_that_are_not_known_are_null(client):
    client.conductor.add_migration(server_uuid=UUID)
    assert client.get(f"/servers/{UUID}/migrations/1").json["migration"]["memory_total_bytes"] is None


# hurry and stop

def tell(client: ApiClient, action: str, id: str = "1", **at: str) -> int:
    path = f"/servers/{UUID}/migrations/{id}"
    answer = (client.delete(path, **at) if action == "abort"
              else client.post(f"{path}/action", {"force_complete": None}, **at))
    return answer.status_int


@pytest.mark.parametrize("action", ["abort", "force_complete"])
def test_telling_one_that_runs_orders_it(client, action):
    client.conductor.add_migration(server_uuid=UUID)
    assert tell(client, action) == 202
    call = "abort_live_migration" if action == "abort" else "force_live_migration"
    assert client.conductor.asked(call) == [MigrationOrder(uuid=UUID, migration_id=1)]


@pytest.mark.parametrize("action", ["abort", "force_complete"])
def test_telling_one_that_cannot_be_told_is_refused(client, action):
    assert tell(client, action) == 404
    client.conductor.add_migration(server_uuid=UUID, status="completed")
    assert tell(client, action) == 400
    assert tell(client, action, token=DEMO) == 403
    client.conductor.servers[UUID] = client.conductor.add_server(uuid=UUID, task_state=None)
    assert tell(client, action) == 409
    assert client.conductor.asked("abort_live_migration", "force_live_migration") == []


@pytest.mark.parametrize(("version", "code"), [("2.64", 400), ("2.65", 202)])
def test_abort_of_one_that_waits_is_for_newer_versions(client, version, code):
    client.conductor.add_migration(server_uuid=UUID, status="queued")
    assert tell(client, "abort", version=version) == code


def test_force_complete_of_one_that_waits_is_400(client):
    client.conductor.add_migration(server_uuid=UUID, status="queued")
    assert tell(client, "force_complete") == 400
