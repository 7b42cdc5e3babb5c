"""The alert rules and the dashboard, as Prometheus itself reads them: each alert fires for its fault, and none when all
is well."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram

from nova import metrics
from nova.conductor.queries import cloud_figures
from nova.conf.monitoring import PORTS
from nova.db.upkeep.cloud_figures import Capacity, CellFigures, HostAge, HostCleanups, OpenOperations
from tests.functional.daemons import TOP

FOLDER = TOP / "etc" / "monitoring"
RULES = FOLDER / "nova-alerts.yml"
ALERTS = {rule["alert"]: rule for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]}
DASHBOARD = json.loads((FOLDER / "nova-dashboard.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


class Fault(NamedTuple):
    """``series``: samples of 30 s each, in promtool's notation, from the fault's first one on. ``labels``: of the alert
    that fires at ``at`` minutes. ``interval``: of samples and of judging, in seconds, where it is long.

    A counter that an alert's ``increase`` watches exists with 0 before (``metrics.from_zero``, and a test of real
    daemons holds it to that); all others begin with the fault."""

    series: dict[str, str]
    labels: dict[str, str]
    at: int = 40
    interval: int = 30

    def after_absence(self) -> Fault:
        """The same, in a Prometheus that saw nothing of the daemons for ten samples."""
        return self._replace(series={name: f"_x9 {values}" for name, values in self.series.items()},
                             at=self.at + 10 * self.interval // 60)


def seconds(metric: str, labels: str, slow: str, quick: str = "0x90") -> dict[str, str]:
    """A histogram whose observations are all slow."""
    return {f'{metric}_bucket{{{labels},le="0.01"}}': quick, f'{metric}_bucket{{{labels},le="60.0"}}': slow,
            f'{metric}_bucket{{{labels},le="+Inf"}}': slow}


OPERATIONS = 'nova_operation_duration_seconds_count{{instance="c:9873",action="create",outcome="{}"}}'
API = 'nova_api_request_duration_seconds_count{{instance="c:9871",api="compute",route="GET /servers",status="{}"}}'
CALLS = 'nova_rpc_call_duration_seconds_count{{instance="c:9871",contract="ConductorRPC",method="x",outcome="{}"}}'
OUTSIDE = 'nova_outside_request_duration_seconds_count{{instance="c:9873",service="image",method="GET",status="{}"}}'
FAULTS = {
    "NovaDaemonDown": Fault({'up{job="nova",instance="c:9873"}': "0x90"}, {"instance": "c:9873", "job": "nova"}),
    "NovaNotReady": Fault({'nova_ready{instance="c:9873",binary="nova-conductor"}': "0x90"},
                          {"instance": "c:9873", "binary": "nova-conductor"}),
    "NovaHostNotReady": Fault({'nova_ready{instance="cn1:9875",binary="nova-compute"}': "0x90"},
                              {"instance": "cn1:9875"}),
    "NovaServiceDown": Fault({'nova_services{binary="nova-scheduler",state="down"}': "1x90"},
                             {"binary": "nova-scheduler"}),
    "NovaNoComputeHost": Fault({"nova_cloud_known": "1x90"}, {}),
    "NovaNoConductorKnows": Fault({"nova_cloud_known": "0x90"}, {}),
    "NovaHostSilent": Fault({'nova_host_heartbeat_age_seconds{host="cn1",state="enabled"}': "0+30x90"},
                            {"host": "cn1"}),
    "NovaWorkersEnd": Fault({'nova_worker_ends_total{instance="c:9873",reason="exit"}': "0x9 5x80"},
                            {"instance": "c:9873"}, 10),
    "NovaWorkerLags": Fault(seconds("nova_worker_lag_seconds", 'instance="c:9873"', "0+5x90"),
                            {"instance": "c:9873"}),
    "NovaOperationsFail": Fault({OPERATIONS.format("error"): "0x9 8x80", OPERATIONS.format("success"): "0x9 12x80"},
                                {"action": "create"}, 10),
    "NovaOperationStands": Fault({'nova_operations_oldest_seconds{action="live_migrate"}': "7300+30x90"},
                                 {"action": "live_migrate"}),
    "NovaNoValidHost": Fault({'nova_scheduler_decision_duration_seconds_count{instance="c:9874",outcome="none"}':
                              "0x9 5x80"}, {}, 10),
    "NovaApiFails": Fault({API.format("500"): "1+1x90", API.format("200"): "1+50x90"}, {"api": "compute"}),
    "NovaApiSlow": Fault(seconds("nova_api_request_duration_seconds",
                                 'instance="c:9871",api="compute",route="GET /servers",status="200"', "0+5x90"),
                         {"api": "compute"}),
    "NovaCallsFail": Fault({CALLS.format("unavailable"): "3+3x90", CALLS.format("ok"): "30+30x90"},
                           {"contract": "ConductorRPC"}),
    "NovaCallsWait": Fault({'nova_rpc_under_way{instance="c:9873",contract="ConductorRPC"}': "62x90",
                            'nova_rpc_slots{instance="c:9873",contract="ConductorRPC"}': "64x90"},
                           {"instance": "c:9873", "contract": "ConductorRPC"}),
    "NovaOutsideServiceFails": Fault({OUTSIDE.format("none"): "1+1x90", OUTSIDE.format("200"): "9+9x90"},
                                     {"service": "image"}),
    "NovaCellAway": Fault({'nova_cells{instance="c:9873",state="away"}': "1x90"}, {}),
    "NovaDatabaseAway": Fault({'nova_database_away_total{instance="c:9873",schema="cell"}': "0x9 50x80"},
                              {"schema": "cell"}, 8),
    "NovaDatabasePoolFull": Fault({'nova_database_connections_in_use{instance="c:9873",schema="cell"}': "10x90",
                                   'nova_database_connections_max{instance="c:9873",schema="cell"}': "10x90"},
                                  {"instance": "c:9873", "schema": "cell"}),
    "NovaDatabaseRetries": Fault({'nova_database_retries_total{instance="c:9873",schema="api"}': "300+300x90"},
                                 {"schema": "api"}),
    "NovaCleanupsWait": Fault({'nova_cleanups_oldest_seconds{host="cn1"}': "3700+30x90"}, {"host": "cn1"}),
    "NovaStrangers": Fault({'nova_strangers{kind="guest"}': "1x200"}, {"kind": "guest"}, 70),
    "NovaCapacityLow": Fault({'nova_capacity_used{zone="nova",resource_class="VCPU"}': "95x90",
                              'nova_capacity_total{zone="nova",resource_class="VCPU"}': "100x90"},
                             {"zone": "nova", "resource_class": "VCPU"}),
    "NovaNotificationsDropped": Fault({'nova_notifications_total{instance="c:9873",outcome="dropped"}': "0x9 50x80"},
                                      {"instance": "c:9873"}, 10),
    "NovaReleasesDiffer": Fault({'nova_build_info{instance="a",release="1"}': "1x30",
                                 'nova_build_info{instance="b",release="2"}': "1x30"}, {}, 26 * 60, 3600),
}
WELL = {
    'up{job="nova",instance="c:9873"}': "1x90", "nova_cloud_known": "1x90",
    'nova_services{binary="nova-compute",state="up"}': "9x90",
    'nova_services{binary="nova-compute",state="down"}': "0x90",
    'nova_services{binary="nova-compute",state="disabled"}': "1x90",
    'nova_host_heartbeat_age_seconds{host="cn1",state="enabled"}': "30x90",
    'nova_host_heartbeat_age_seconds{host="in-repair",state="disabled"}': "90000x90",
    'nova_ready{instance="c:9873",binary="nova-conductor"}': "1x90",
    'nova_ready{instance="cn1:9875",binary="nova-compute"}': "1x90", OPERATIONS.format("success"): "0+5x90",
    OPERATIONS.format("error"): "0x90", 'nova_operations_oldest_seconds{action="create"}': "20x90",
    API.format("200"): "0+50x90", API.format("404"): "0+5x90", CALLS.format("ok"): "0+30x90",
    OUTSIDE.format("200"): "0+9x90", OUTSIDE.format("404"): "0+9x90",
    'nova_rpc_under_way{instance="c:9873",contract="ConductorRPC"}': "3x90",
    'nova_rpc_slots{instance="c:9873",contract="ConductorRPC"}': "64x90",
    'nova_database_connections_in_use{instance="c:9873",schema="cell"}': "2x90",
    'nova_database_connections_max{instance="c:9873",schema="cell"}': "10x90",
    'nova_database_connections_in_use{instance="c:9873",schema="cell leases"}': "1x90",
    'nova_database_connections_max{instance="c:9873",schema="cell leases"}': "1x90",
    'nova_strangers{kind="guest"}': "0x90", 'nova_capacity_used{zone="nova",resource_class="VCPU"}': "50x90",
    'nova_capacity_total{zone="nova",resource_class="VCPU"}': "100x90",
    'nova_capacity_used{zone="nova",resource_class="CUSTOM_NONE"}': "0x90",
    'nova_capacity_total{zone="nova",resource_class="CUSTOM_NONE"}': "0x90",
    'nova_build_info{instance="a",release="1"}': "1x90", 'nova_build_info{instance="b",release="1"}': "1x90",
    **seconds("nova_worker_lag_seconds", 'instance="c:9873"', "0+5x90", "0+5x90"),
    **seconds("nova_api_request_duration_seconds", 'instance="c:9871",api="compute",route="r",status="200"',
              "0+5x90", "0+5x90")}


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("needs the Debian package prometheus")
    return found


def case(series: dict[str, str], at: int, expected: dict[str, list[dict[str, Any]]], interval: int = 30
         ) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": f"{interval}s", "input_series": given,
            "alert_rule_test": [{"eval_time": f"{at}m", "alertname": name, "exp_alerts": alerts}
                                for name, alerts in expected.items()]}


def judged(promtool: str, folder: Path, one: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    path = folder / "cases.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": one["interval"],
                                    "tests": [one]}))
    return subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, timeout=60)


def test_rules_when_prometheus_reads_them_then_they_are_well_formed(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_example_when_prometheus_reads_it_then_it_is_a_configuration(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "config", str(FOLDER / "prometheus.yml")], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_then_each_has_a_fault_here_a_severity_and_says_what_to_do() -> None:
    assert set(FAULTS) == set(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"]["summary"] and rule["annotations"]["action"], name


@pytest.mark.parametrize("absent", [False, True], ids=["", "after-absence"])
@pytest.mark.parametrize("name", FAULTS)
def test_alert_when_its_fault_is_there_then_it_fires(promtool: str, tmp_path: Path, name: str, absent: bool) -> None:
    fault, rule = FAULTS[name].after_absence() if absent else FAULTS[name], ALERTS[name]
    found = judged(promtool, tmp_path, case(fault.series, fault.at, {name: []}, fault.interval))
    assert found.returncode != 0, f"{name} does not fire"
    fired = found.stdout + found.stderr
    labels = {"alertname": name, **fault.labels, "severity": rule["labels"]["severity"]}
    for key, value in labels.items():
        assert f'{key}="{value}"' in fired, fired
    assert "<no value>" not in fired and "error" not in fired.lower().replace("errors of ours", ""), fired


def test_alerts_when_all_is_well_then_none_fires(promtool: str, tmp_path: Path) -> None:
    found = judged(promtool, tmp_path, case(WELL, 40, {name: [] for name in ALERTS}))
    assert found.returncode == 0, found.stdout + found.stderr


def test_dashboard_when_prometheus_reads_its_expressions_then_each_is_one(promtool: str, tmp_path: Path) -> None:
    plain = [one.replace("$__rate_interval", "5m").replace("$__range", "6h") for one in EXPRESSIONS]
    path = tmp_path / "dashboard.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel:{number}", "expr": one} for number, one in enumerate(plain)]}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_example_then_it_reads_the_ports_of_all_daemons() -> None:
    jobs = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    targets = [target for job in jobs for group in job["static_configs"] for target in group["targets"]]
    assert {int(target.rpartition(":")[2]) for target in targets} == {*PORTS.values()}


def exported() -> set[str]:
    """Names of all that daemons show."""
    counted = {one for one in vars(metrics).values() if isinstance(one, Counter | Gauge | Histogram)}
    names = {sample.name for metric in counted for family in metric.describe()
             for sample in (*family.samples, *metric.collect()[0].samples)}
    names |= {f"{family.name}{suffix}" for metric in counted for family in metric.describe()
              for suffix in {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}[
                  family.type]}
    figures = CellFigures(operations=(OpenOperations("a", 1, (0, 0, 0), 1.0),), cleanups=(HostCleanups("h", 1, 1.0),),
                          services={("b", "up"): 1}, heartbeats=(HostAge("h", 1.0),), leases=(1, 0),
                          shortest_lease_s=1.0, servers={"active": 1}, strangers={"guest": 0})
    names |= {family.name for family in (*cloud_figures._of_cell(figures), cloud_figures._of_cells(1, 1),
                                         *cloud_figures._of_capacity((Capacity(None, "VCPU", 1.0, 1),), "nova"))}
    process = ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds")
    return {*names, "nova_cloud_known", "nova_ready", "nova_ready_check", *(f"nova_process_{one}" for one in process)}


def test_alerts_and_dashboard_then_they_use_what_daemons_show_and_labels_that_it_has() -> None:
    known = exported()
    for expression in (*EXPRESSIONS, *(rule["expr"] for rule in ALERTS.values())):
        assert set(re.findall(r"\bnova_[a-z_]+", expression)) <= known, expression


def test_dashboard_then_its_panels_have_titles_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["title"] for panel in panels}) == len({panel["id"] for panel in panels}) == len(panels)
    taken = [(x, y) for panel in panels for at in [panel["gridPos"]]
             for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(taken) == len(set(taken)) and max(x for x, _y in taken) < 24
