"""Lists of servers: who may filter by what, sorting, pages, all_tenants."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from nova.model.base import Scope
from nova.model.server.servers import Condition, ServerListQuery
from tests.fakes.api import ADMIN, DEMO, ApiClient


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


def asked(client: ApiClient, query: str, **options: Any) -> ServerListQuery:
    answer = client.get(f"/servers/detail?{query}", **options)
    assert answer.status_int == 200, answer.text
    return client.conductor.asked("list_servers")[-1]


def refused(client: ApiClient, query: str, **options: Any) -> int:
    before = len(client.conductor.asked("list_servers"))
    status = client.get(f"/servers/detail?{query}", **options).status_int
    assert len(client.conductor.asked("list_servers")) == before
    return status


def test_list_without_a_query_is_of_the_own_project(client: ApiClient) -> None:
    assert asked(client, "") == ServerListQuery(scope=Scope(project_id="demo"), silent_cells="skip",
                                                page=client.conductor.asked("list_servers")[-1].page)
    assert asked(client, "", token=ADMIN).scope == Scope(project_id="admin")


@pytest.mark.parametrize("value", ["", "1", "true", "True"])
def test_all_tenants_of_an_admin_is_everything(client: ApiClient, value: str) -> None:
    assert asked(client, f"all_tenants={value}", token=ADMIN).scope == Scope()


def test_all_tenants_without_the_right_is_403(client: ApiClient) -> None:
    assert refused(client, "all_tenants=1") == 403
    assert asked(client, "all_tenants=0").scope == Scope(project_id="demo")
    assert refused(client, "all_tenants=perhaps", token=ADMIN) == 400


def test_project_filter_counts_only_with_all_tenants(client: ApiClient) -> None:
    assert asked(client, "project_id=p2", token=ADMIN).conditions == ()
    for name in ("project_id", "tenant_id"):
        query = asked(client, f"all_tenants=1&{name}=p2", token=ADMIN)
        assert query.conditions == (Condition(column="project_id", value="p2"),)


@pytest.mark.parametrize(("query", "condition"), [
    ("name=web", Condition(column="name", op="regex", value="web")),
    ("image=abc", Condition(column="image_id", value="abc")),
    ("flavor=1", Condition(column="flavorid", value="1")),
    ("reservation_id=r-1", Condition(column="reservation_id", op="regex", value="r-1")),
])
def test_filter_that_everybody_may_use_becomes_a_condition(client: ApiClient, query: str, condition: Condition) -> None:
    assert asked(client, query).conditions == (condition,)


@pytest.mark.parametrize(("query", "since"), [
    ("hostname=h", "2.90"), *((name, "2.83") for name in (
        "availability_zone=z", "config_drive=1", "key_name=k", "created_at=2020-01-01", "launched_at=2020-01-01",
        "terminated_at=2020-01-01", "power_state=1", "task_state=deleting", "vm_state=active", "progress=0",
        "user_id=u"))])
def test_filter_of_a_later_version_is_dropped_before_it(client: ApiClient, query: str, since: str) -> None:
    before = f"2.{int(since.split('.')[1]) - 1}"
    assert asked(client, query, version=before).conditions == ()
    assert len(asked(client, query, version=since).conditions) == 1
    assert len(asked(client, query, version=before, token=ADMIN).conditions) == 1


def test_filter_for_admins_is_dropped_for_others(client: ApiClient) -> None:
    assert asked(client, "host=h1").conditions == ()
    assert asked(client, "host=h1", token=ADMIN).conditions == (Condition(column="host", value="h1"),)


def test_unknown_filter_is_dropped_and_from_2_75_refused(client: ApiClient) -> None:
    assert asked(client, "colour=red", version="2.74").conditions == ()
    assert refused(client, "colour=red", version="2.75") == 400


@pytest.mark.parametrize("query", ["metadata=a", "_private=1", "name=[", "limit=-1", "limit=x", "changes-since=never",
                                   "sort_dir=sideways", "sort_key=colour", "ip=["])
def test_bad_filter_is_400(client: ApiClient, query: str) -> None:
    assert refused(client, query) == 400


def test_unknown_status_is_empty_and_from_2_38_refused(client: ApiClient) -> None:
    assert asked(client, "status=dancing", version="2.37").statuses == ("DANCING",)
    assert refused(client, "status=dancing", version="2.38") == 400
    assert asked(client, "status=active&status=error", version="2.38").statuses == ("ACTIVE", "ERROR")


def test_deleted_is_for_admins(client: ApiClient) -> None:
    assert asked(client, "deleted=true").deleted == "live"
    assert asked(client, "deleted=true", token=ADMIN).deleted == "deleted"
    assert refused(client, "status=deleted") == 403
    assert asked(client, "status=deleted", token=ADMIN).deleted == "deleted"


def test_changes_since_shows_deleted_servers_too(client: ApiClient) -> None:
    query = asked(client, "changes-since=2026-01-02T03:04:05%2B01:00")
    assert query.changes_since == datetime.datetime(2026, 1, 2, 2, 4, 5)
    assert query.deleted == "any"


def test_changes_before_finds_a_server_by_the_time_that_it_shows_itself(client: ApiClient) -> None:
    """Its row has microseconds; what clients are shown, and send back, has none."""
    query = asked(client, "changes-before=2026-01-02T03:04:05Z", version="2.66")
    assert query.changes_before == datetime.datetime(2026, 1, 2, 3, 4, 5, 999_999)
    both = asked(client, "changes-since=2026-01-02T03:04:05Z&changes-before=2026-01-02T03:04:05Z", version="2.66")
    assert both.changes_since <= datetime.datetime(2026, 1, 2, 3, 4, 5, 123_456) <= both.changes_before
    assert refused(client, "changes-since=2026-01-02T03:04:06Z&changes-before=2026-01-02T03:04:05Z",
                   version="2.66") == 400


def test_changes_the_wrong_way_round_are_400(client: ApiClient) -> None:
    query = "changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z"
    assert refused(client, query, version="2.66") == 400
    assert asked(client, query, version="2.65").changes_before is None


def test_tags_are_split_and_wait_for_their_version(client: ApiClient) -> None:
    query = asked(client, "tags=a,b&not-tags-any=c", version="2.26")
    assert (query.tags_all, query.not_tags_any) == (("a", "b"), ("c",))
    assert asked(client, "tags=a", version="2.25").tags_all == ()


@pytest.mark.parametrize("name", ["tags", "tags-any", "not-tags", "not-tags-any"])
def test_tags_when_there_are_more_than_a_server_can_have_then_400_names_the_filter(client: ApiClient, name: str
                                                                                    ) -> None:
    fifty = ",".join(f"t{number}" for number in range(50))
    asked(client, f"{name}={fifty},t1,,t2", version="2.26")
    assert refused(client, f"{name}={fifty},more", version="2.26") == 400


def test_ip6_is_for_everybody_from_2_5(client: ApiClient) -> None:
    assert asked(client, "ip6=fe80&ip=10", version="2.4").ip6_regex is None
    assert asked(client, "ip6=fe80&ip=10", version="2.5").ip6_regex == "fe80"
    assert asked(client, "ip=10.*").ip_regex == "10.*"


@pytest.mark.parametrize(("query", "sort"), [
    ("", ()),
    ("sort_key=display_name", (("name", "desc"),)),
    ("sort_key=display_name&sort_dir=asc", (("name", "asc"),)),
    ("sort_key=vm_state&sort_key=uuid&sort_dir=asc", (("vm_state", "asc"), ("uuid", "asc"))),
    ("sort_key=vm_state&sort_key=uuid&sort_dir=asc&sort_dir=desc", (("vm_state", "asc"), ("uuid", "desc"))),
    ("sort_dir=asc", (("created_at", "asc"),)),
    ("sort_key=vm_mode&sort_key=locked", ()),
])
def test_sorting_is_translated(client: ApiClient, query: str, sort: Any) -> None:
    assert asked(client, query).sort == sort


def test_sorting_by_host_is_for_admins(client: ApiClient) -> None:
    assert refused(client, "sort_key=host") == 403
    assert asked(client, "sort_key=host", token=ADMIN).sort == (("host", "desc"),)


def test_idle_sort_key_is_refused_from_2_75_and_locked_works_from_2_73(client: ApiClient) -> None:
    assert refused(client, "sort_key=vm_mode", version="2.75") == 400
    assert asked(client, "sort_key=locked", version="2.73").sort == (("locked_by", "desc"),)


def test_full_page_has_a_next_link_with_the_other_parameters(client: ApiClient) -> None:
    servers = [client.conductor.add_server() for _ in range(3)]
    first = client.get("/servers?limit=2&name=vm&marker=" + servers[2].uuid).json
    assert [entry["id"] for entry in first["servers"]] == [servers[1].uuid, servers[0].uuid]
    assert first["servers_links"] == [
        {"rel": "next", "href": f"http://localhost/v2.1/servers?limit=2&name=vm&marker={servers[0].uuid}"}]
    assert "servers_links" not in client.get("/servers?limit=4").json
    assert client.get("/servers?limit=0").json == {"servers": []}


def test_limit_is_cut_down_to_the_maximum(client: ApiClient) -> None:
    assert asked(client, "limit=5000").page.limit == 1000


def test_unknown_marker_is_400(client: ApiClient) -> None:
    assert client.get("/servers?marker=nope").status_int == 400


def test_restorable_servers_are_asked_for_by_admins(client: ApiClient) -> None:
    assert asked(client, "soft_deleted=1").soft_deleted is False
    assert asked(client, "soft_deleted=1", token=ADMIN).soft_deleted is True
    query = asked(client, "deleted=1&soft_deleted=true", token=ADMIN)
    assert (query.deleted, query.soft_deleted) == ("deleted", True)
    assert refused(client, "soft_deleted=perhaps", token=ADMIN) == 400


def test_deleted_beside_other_statuses_is_both_sides(client: ApiClient) -> None:
    assert asked(client, "status=deleted", token=ADMIN).deleted == "deleted"
    query = asked(client, "status=deleted&status=error", token=ADMIN)
    assert (query.deleted, query.statuses) == ("any", ("DELETED", "ERROR"))
    assert asked(client, "status=deleted&status=error&deleted=0", token=ADMIN).deleted == "live"
