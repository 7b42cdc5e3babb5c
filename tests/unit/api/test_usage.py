"""Usage of projects: the time asked for, pages of servers, and what is summed; audits of it."""

from __future__ import annotations

import datetime
import uuid

import pytest

from nova.model.base import utcnow
from nova.model.quota.usage import DONE, RUNNING, HostAudit, UsageAudits
from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor import server_usage

DAY = datetime.datetime(2026, 1, 1)


def ids(count: int) -> list[str]:
    return [str(uuid.UUID(int=number)) for number in range(1, count + 1)]


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    first, second, third = ids(3)
    made.conductor.usages = [server_usage(second), server_usage(first, ended_at=DAY, state="terminated"),
                             server_usage(third, "other", hours=2.0, vcpus=3)]
    return made


# the time

@pytest.mark.parametrize(("text", "time"), [
    ("2026-01-01T10:00:00", datetime.datetime(2026, 1, 1, 10)),
    ("2026-01-01T10:00:00.25", datetime.datetime(2026, 1, 1, 10, 0, 0, 250000)),
    ("2026-01-01%2010:00:00.000001", datetime.datetime(2026, 1, 1, 10, 0, 0, 1)),
    ("2026-01-01+10:00:00.000001", datetime.datetime(2026, 1, 1, 10, 0, 0, 1)),
    ("2026-01-01T10:00:00%2B02:00", datetime.datetime(2026, 1, 1, 8)),
    ("2026-01-01T10:00:00Z", datetime.datetime(2026, 1, 1, 10)), ("2026-01-01", DAY)])
@pytest.mark.parametrize("path", ["/os-simple-tenant-usage", "/os-simple-tenant-usage/demo"])
def test_times_in_every_form_are_read(client: ApiClient, path: str, text: str, time: datetime.datetime) -> None:
    assert client.get(f"{path}?start={text}").status_int == 200
    assert client.conductor.asked("get_usage")[-1].start == time


@pytest.mark.parametrize("query", ["start=yesterday", "end=1", "start=", "start=2026-13-01T00:00:00", "end=2026-01-01T",
                                   "start=0001-01-01T00:00:00%2B23:00", "start=99999-01-01T00:00:00",
                                   "start=2026-01-02T00:00:00&end=2026-01-01T00:00:00", "start=2999-01-01T00:00:00"])
@pytest.mark.parametrize("path", ["/os-simple-tenant-usage", "/os-simple-tenant-usage/demo"])
def test_time_that_is_none_or_ends_before_it_starts_is_400(client: ApiClient, path: str, query: str) -> None:
    answer = client.get(f"{path}?{query}")
    assert answer.status_int == 400 and client.conductor.asked("get_usage") == []
    assert "start" in answer.json["badRequest"]["message"] or "end" in answer.json["badRequest"]["message"]


def test_time_left_out_is_now(client: ApiClient) -> None:
    assert client.get("/os-simple-tenant-usage").status_int == 200
    asked = client.conductor.asked("get_usage")[-1]
    assert asked.start == asked.end and abs((utcnow() - asked.end).total_seconds()) < 60


# what is told

def test_list_sums_by_project_and_tells_servers_only_when_asked(client: ApiClient) -> None:
    plain = client.get("/os-simple-tenant-usage?start=2026-01-01T00:00:00&end=2026-01-02T00:00:00").json
    assert plain == {"tenant_usages": [
        {"tenant_id": "demo", "start": "2026-01-01T00:00:00.000000", "stop": "2026-01-02T00:00:00.000000",
         "total_hours": 2.0, "total_local_gb_usage": 2.0, "total_memory_mb_usage": 1024.0, "total_vcpus_usage": 2.0},
        {"tenant_id": "other", "start": "2026-01-01T00:00:00.000000", "stop": "2026-01-02T00:00:00.000000",
         "total_hours": 2.0, "total_local_gb_usage": 2.0, "total_memory_mb_usage": 1024.0, "total_vcpus_usage": 6.0}]}
    assert not client.conductor.asked("get_usage")[-1].servers
    full = client.get("/os-simple-tenant-usage?detailed=1").json["tenant_usages"]
    assert [server["instance_id"] for server in full[0]["server_usages"]] == ids(2)
    assert full[0]["server_usages"][0]["ended_at"] == "2026-01-01T00:00:00.000000"
    assert client.get("/os-simple-tenant-usage?detailed=0").json["tenant_usages"][0].get("server_usages") is None


def test_show_tells_servers_always_and_nothing_of_a_project_without_any(client: ApiClient) -> None:
    shown = client.get("/os-simple-tenant-usage/other").json["tenant_usage"]
    assert [server["hours"] for server in shown["server_usages"]] == [2.0]
    assert client.get("/os-simple-tenant-usage/nobody").json == {"tenant_usage": {}}


def test_usage_of_another_project_is_for_admins(client: ApiClient) -> None:
    assert client.get("/os-simple-tenant-usage", token=DEMO).status_int == 403
    assert client.get("/os-simple-tenant-usage/other", token=DEMO).status_int == 403
    assert client.conductor.asked("get_usage") == []
    assert client.get("/os-simple-tenant-usage/demo", token=DEMO).status_int == 200


# pages

def test_list_in_pages_counts_servers_and_a_project_may_go_on(client: ApiClient) -> None:
    page = client.get("/os-simple-tenant-usage?limit=1&detailed=1", version="2.40").json
    assert [one["tenant_id"] for one in page["tenant_usages"]] == ["demo"]
    assert page["tenant_usages"][0]["total_hours"] == 1.0
    link = page["tenant_usages_links"][0]
    assert link["rel"] == "next" and link["href"].endswith(f"?limit=1&detailed=1&marker={ids(1)[0]}")
    page = client.get(link["href"].partition("/v2.1")[2], version="2.40").json
    assert page["tenant_usages"][0]["server_usages"][0]["instance_id"] == ids(2)[1]
    page = client.get(f"/os-simple-tenant-usage?marker={ids(3)[2]}", version="2.40").json
    assert page == {"tenant_usages": []}


def test_show_in_pages_has_links_of_its_own(client: ApiClient) -> None:
    page = client.get("/os-simple-tenant-usage/demo?limit=2", version="2.104").json
    assert page["tenant_usage_links"][0]["href"].endswith(f"/os-simple-tenant-usage/demo?limit=2&marker={ids(2)[1]}")
    assert "tenant_usage_links" not in client.get("/os-simple-tenant-usage/demo?limit=3", version="2.104").json


def test_pages_begin_at_their_version(client: ApiClient) -> None:
    assert "tenant_usages_links" not in client.get("/os-simple-tenant-usage?limit=1", version="2.39").json
    assert not client.conductor.asked("get_usage")[-1].paged
    assert client.get("/os-simple-tenant-usage?limit=1", version="2.74").status_int == 200
    for path, status in (("limit=x", 400), ("limit=-1", 400), ("marker=nobody", 400), ("limit=0", 200),
                         ("limit=999999999", 200)):
        assert client.get(f"/os-simple-tenant-usage?{path}", version="2.40").status_int == status
    assert client.get("/os-simple-tenant-usage?stranger=1", version="2.74").status_int == 200
    assert client.get("/os-simple-tenant-usage?stranger=1", version="2.75").status_int == 400


# audits

def audits(**fields: object) -> UsageAudits:
    return UsageAudits(**{"period_beginning": DAY, "period_ending": datetime.datetime(2026, 2, 1), "hosts": ("a", "b"),
                          "audits": {"a": HostAudit(host="a", state=DONE, servers=3, errors=1, message="done")},
                          **fields})


def test_audits_tell_how_far_each_host_is(client: ApiClient) -> None:
    client.conductor.given(get_usage_audits=audits())
    shown = client.get("/os-instance_usage_audit_log").json["instance_usage_audit_logs"]
    assert shown == {
        "period_beginning": "2026-01-01 00:00:00", "period_ending": "2026-02-01 00:00:00", "num_hosts": 2,
        "num_hosts_done": 1, "num_hosts_running": 0, "num_hosts_not_run": 1, "hosts_not_run": ["b"],
        "total_instances": 3, "total_errors": 1, "overall_status": "1 of 2 hosts done. 1 errors.",
        "log": {"a": {"state": "DONE", "instances": 3, "errors": 1, "message": "done"}}}


def test_audits_when_all_are_done_or_one_runs_then_it_is_said(client: ApiClient) -> None:
    client.conductor.given(get_usage_audits=audits(hosts=("a",)))
    shown = client.get("/os-instance_usage_audit_log").json["instance_usage_audit_logs"]
    assert shown["overall_status"] == "ALL hosts done. 1 errors."
    client.conductor.given(get_usage_audits=audits(audits={"b": HostAudit(host="b", state=RUNNING)}))
    shown = client.get("/os-instance_usage_audit_log").json["instance_usage_audit_logs"]
    assert (shown["num_hosts_running"], shown["hosts_not_run"], shown["num_hosts_done"]) == (1, ["a"], 0)


@pytest.mark.parametrize(("text", "status"), [
    ("2026-11-21%2010:00:00", 200), ("2026-11-21%2010:00:00.123456", 200), ("2026-11-21T10:00:00", 200),
    ("invalid_time", 400), ("2026", 400), ("0001-01-01T00:00:00+23:00", 400)])
def test_audits_before_a_time(client: ApiClient, text: str, status: int) -> None:
    client.conductor.given(get_usage_audits=audits())
    answer = client.get(f"/os-instance_usage_audit_log/{text}")
    assert answer.status_int == status
    asked = client.conductor.asked("get_usage_audits")
    assert ("instance_usage_audit_log" in answer.json) == (status == 200) == bool(asked)


def test_audits_are_for_admins(client: ApiClient) -> None:
    for path in ("/os-instance_usage_audit_log", "/os-instance_usage_audit_log/2026-01-01%2000:00:00"):
        assert client.get(path, token=DEMO).status_int == 403
    assert client.conductor.asked("get_usage_audits") == []
