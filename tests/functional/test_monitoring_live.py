"""Health and metrics of real daemons, over HTTP, while a cloud lives and while parts of it do not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from nova.conf.monitoring import PORTS
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP

pytestmark = pytest.mark.in_turn(1, 10)

DAEMONS = {"nova-conductor": "ctl", "nova-scheduler": "ctl", "nova-api": "ctl", "nova-network": "ctl",
           "nova-imageproxy": "ctl", "nova-consoleauth": "ctl", "nova-compute": "host1"}


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    options = {"oslo_messaging_notifications": {"driver": "messagingv2"}}
    plan = Plan(computes=1, glance=True, consoles=True, monitored=True, upstream=False, options=options)
    return make_cloud(plan).start()


def page(cloud: Cloud, binary: str, path: str) -> requests.Response:
    return requests.get(f"http://{cloud.monitoring(DAEMONS[binary])}:{PORTS[binary]}{path}", timeout=20)


def figures(cloud: Cloud, binary: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(name, labels) -> value, as Prometheus's own parser reads the page."""
    answer = page(cloud, binary, "/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {(sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(answer.text) for sample in family.samples}


def figure(cloud: Cloud, daemon: str, name: str, **labels: str) -> float:
    """The sum of what has these labels, whatever others."""
    wanted = set(labels.items())
    return sum(value for (found, has), value in figures(cloud, daemon).items() if found == name and wanted <= has)


@pytest.mark.parametrize("binary", DAEMONS)
def test_daemon_when_all_is_well_then_it_lives_and_is_ready(cloud: Cloud, binary: str) -> None:
    for path in ("/health/live", "/health/ready"):
        answer = page(cloud, binary, path)
        said: dict[str, Any] = answer.json()
        assert answer.status_code == 200 and said["status"] == "ok", answer.text
        assert said["daemon"] == binary and said["host"] == DAEMONS[binary]
    assert said["checks"] and all(check["ok"] for check in said["checks"].values())


#: Series that the alerts' `increase` watches, and who counts them: with its first value a series has no increase.
WATCHED = {
    "nova_worker_ends_total": ("nova-conductor", ({"reason": "exit"}, {"reason": "stuck"})),
    "nova_operation_duration_seconds_count": ("nova-conductor", (
        {"action": "create", "outcome": "error"}, {"action": "live-migration", "outcome": "error"})),
    "nova_scheduler_decision_duration_seconds_count": ("nova-scheduler", ({"outcome": "none"},)),
    "nova_database_away_total": ("nova-conductor", ({"schema": "api"}, {"schema": "cell"})),
    "nova_notifications_total": ("nova-conductor", ({"outcome": "dropped"},)),
}


def test_alerts_then_each_series_whose_increase_they_watch_is_known_here() -> None:
    rules = (TOP / "etc/monitoring/nova-alerts.yml").read_text()
    assert {*re.findall(r"increase\((nova_[a-z_]+)", rules)} == {*WATCHED}


@pytest.mark.parametrize("name", WATCHED)
def test_metrics_when_nothing_of_a_kind_happened_yet_then_the_series_is_there_with_0(cloud: Cloud, name: str) -> None:
    binary, series = WATCHED[name]
    found = figures(cloud, binary)
    for labels in series:
        assert found.get((name, frozenset(labels.items()))) == 0, labels


@pytest.mark.parametrize("binary", DAEMONS)
def test_metrics_when_all_is_well_then_the_daemon_is_ready_there_too(cloud: Cloud, binary: str) -> None:
    assert figure(cloud, binary, "nova_ready", binary=binary) == 1
    checks = page(cloud, binary, "/health/ready").json()["checks"]
    assert figure(cloud, binary, "nova_ready_check", binary=binary) == len(checks)


def test_page_when_it_is_none_then_404_and_what_there_is(cloud: Cloud) -> None:
    answer = page(cloud, "nova-api", "/secrets")
    assert answer.status_code == 404 and "/metrics" in answer.json()["pages"]


def test_metrics_when_a_server_is_booted_then_every_daemon_has_counted_its_part(cloud: Cloud) -> None:
    server = cloud.api().boot("vm1")
    assert figure(cloud, "nova-api", "nova_api_request_duration_seconds_count", api="compute", route="POST /servers",
                  status="202") == 1
    assert figure(cloud, "nova-conductor", "nova_operation_duration_seconds_count", action="create",
                  outcome="success") == 1
    assert figure(cloud, "nova-conductor", "nova_rpc_served_duration_seconds_count", contract="ConductorRPC",
                  method="create_servers", outcome="ok") == 1
    assert figure(cloud, "nova-scheduler", "nova_scheduler_decision_duration_seconds_count", outcome="chosen") == 1
    assert figure(cloud, "nova-compute", "nova_host_order_duration_seconds_count", outcome="ok") >= 1
    assert figure(cloud, "nova-compute", "nova_host_orders_waiting") == 0
    wait_until("the cloud's figures are new", lambda: figure(cloud, "nova-conductor", "nova_servers",
                                                             vm_state="active") == 1, 40, 1)
    assert figure(cloud, "nova-conductor", "nova_capacity_used", resource_class="MEMORY_MB", zone="nova") == 512
    assert figure(cloud, "nova-conductor", "nova_services", binary="nova-compute", state="up") == 1
    assert figure(cloud, "nova-conductor", "nova_host_heartbeat_age_seconds", host="host1") < 10
    assert figure(cloud, "nova-conductor", "nova_process_resident_memory_bytes", worker="1") > 2**20
    cloud.api().delete(server["id"])


def test_metrics_when_nobody_finds_a_host_then_the_filter_is_named(cloud: Cloud) -> None:
    admin = cloud.api("admin")
    admin.call("POST", "/flavors", {"flavor": {"name": "huge", "id": "9", "ram": 2**30, "vcpus": 1, "disk": 1}})
    server = cloud.api().settled(cloud.api().create("vm2", flavorRef="9")["id"], "ERROR")
    assert figure(cloud, "nova-scheduler", "nova_scheduler_decision_duration_seconds_count", outcome="none") >= 1
    refused = {dict(labels)["filter"] for (name, labels) in figures(cloud, "nova-scheduler")
               if name == "nova_scheduler_refusals_total"}
    assert refused and all(one.isidentifier() for one in refused), refused
    assert figure(cloud, "nova-conductor", "nova_step_failures_total", action="create", step="SelectHosts",
                  kind="no_valid_host") >= 1
    cloud.api().delete(server["id"])


def test_metrics_then_no_name_of_a_server_project_or_user_is_in_any(cloud: Cloud) -> None:
    server = cloud.api("snoop-user", "snoop-project").boot("snoop-server")
    for binary in DAEMONS:
        text = page(cloud, binary, "/metrics").text
        assert "snoop" not in text and server["id"] not in text
    cloud.api("snoop-user", "snoop-project").delete(server["id"])


@pytest.fixture
def prometheus(cloud: Cloud, tmp_path: Path) -> Iterator[str]:
    """Prometheus' own address, while it reads this cloud by the rules that we ship."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs the Debian package prometheus")
    targets = [f"{cloud.monitoring(host)}:{PORTS[binary]}" for binary, host in DAEMONS.items()]
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(TOP / "etc/monitoring/nova-alerts.yml")],
        "scrape_configs": [{"job_name": "nova", "static_configs": [{"targets": targets}]}]}))
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen([program, f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={address}",
                                f"--storage.tsdb.path={tmp_path}/data"], stderr=(tmp_path / "log").open("wb"))
    try:
        yield f"http://{address}/api/v1"
    finally:
        process.kill()
        process.wait()


def test_prometheus_when_it_reads_the_cloud_then_all_daemons_are_up_and_no_rule_fails(cloud: Cloud, prometheus: str
                                                                                     ) -> None:
    def asked(what: str) -> Any:
        try:
            return requests.get(f"{prometheus}/{what}", timeout=5).json()["data"]
        except requests.ConnectionError:
            return {}

    def all_up() -> bool:
        found = asked("query?query=up").get("result", [])
        return len(found) == len(DAEMONS) and all(one["value"][1] == "1" for one in found)
    wait_until("all daemons are read", all_up, 30, 0.5)
    wait_until("the rules are judged", lambda: all(
        rule["health"] == "ok" for rule in asked("rules")["groups"][0]["rules"]), 20, 0.5)
    firing = [one["labels"]["alertname"] for one in asked("alerts")["alerts"] if one["state"] == "firing"]
    assert firing == []


def test_worker_when_it_is_killed_then_its_counts_stay_and_the_daemon_is_ready_again(cloud: Cloud) -> None:
    counted = figure(cloud, "nova-conductor", "nova_rpc_served_duration_seconds_count")
    victim = cloud.daemons["conductor"].workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_until("it is replaced", lambda: victim not in cloud.daemons["conductor"].workers()
               and page(cloud, "nova-conductor", "/health/ready").status_code == 200, 30, 0.2)
    assert figure(cloud, "nova-conductor", "nova_rpc_served_duration_seconds_count") >= counted > 0
    assert figure(cloud, "nova-conductor", "nova_worker_ends_total", reason="exit") == 1


def test_ready_when_the_image_service_is_away_then_the_image_proxy_is_not_and_lives(cloud: Cloud) -> None:
    cloud.glance.go_away()
    try:
        wait_until("it is not ready", lambda: page(cloud, "nova-imageproxy", "/health/ready").status_code == 503, 20, 1)
        assert page(cloud, "nova-imageproxy", "/health/live").status_code == 200
    finally:
        cloud.glance.come_back()
    wait_until("it is ready", lambda: page(cloud, "nova-imageproxy", "/health/ready").status_code == 200, 20, 1)


def test_ready_when_no_conductor_answers_then_those_that_need_one_are_not_and_say_why(cloud: Cloud) -> None:
    cloud.daemons["conductor"].hang()
    try:
        for binary in ("nova-api", "nova-compute"):
            answer = page(cloud, binary, "/health/ready")
            assert answer.status_code == 503 and "nova-conductor" in answer.text, answer.text
            assert page(cloud, binary, "/health/live").status_code == 200
    finally:
        cloud.daemons["conductor"].wake()
    wait_until("it is ready", lambda: page(cloud, "nova-api", "/health/ready").status_code == 200, 20, 1)
