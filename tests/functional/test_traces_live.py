"""The spans of a boot, as a collector gets them by OTLP from all daemons."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(0, 10)

CALLERS = "4bf92f3577b34da6a3ce929d0e0e4736"


class Collector(ThreadingHTTPServer):
    """Takes spans: id -> (daemon, span)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: dict[str, tuple[str, Any]] = {}

    def of_trace(self, trace: str) -> dict[str, tuple[str, Any]]:
        return {key: one for key, one in self.spans.copy().items() if one[1].trace_id.hex() == trace}

    def path(self, daemon: str, name: str, trace: str) -> list[str]:
        """Names from the span of this name up to the trace's root, or to a span that never came."""
        found = self.of_trace(trace)
        span = next((one for who, one in found.values() if (who, one.name) == (daemon, name)), None)
        names = []
        while span is not None:
            names.append(span.name)
            _who, span = found.get(span.parent_span_id.hex(), ("", None))
        return names


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for group in request.resource_spans:
            facts = {one.key: one.value.string_value for one in group.resource.attributes}
            for scope in group.scope_spans:
                for span in scope.spans:
                    self.server.spans[span.span_id.hex()] = (facts["service.name"], span)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    found = Collector()
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture(scope="module")
def cloud(make_cloud, collector: Collector) -> Cloud:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    return make_cloud(Plan(computes=1, glance=True, env={"OTEL_BSP_SCHEDULE_DELAY": "200"},
                           options={"tracing": {"otlp_endpoint": endpoint}, "DEFAULT": {"use_json": True}})).start()


def booted(cloud: Cloud, **headers: str) -> tuple[str, str]:
    """A server's uuid, and the id of the request that made it."""
    api = cloud.api()
    answer = api.call("POST", "/servers", {"server": {"name": "vm1", "flavorRef": "1", "networks": "auto",
                                                      "imageRef": IMAGE}}, **headers)
    uuid = answer.json()["server"]["id"]
    api.settled(uuid, "ACTIVE")
    return uuid, answer.headers["x-openstack-request-id"]


def test_boot_when_spans_are_exported_then_every_daemons_part_hangs_below_the_request(cloud, collector) -> None:
    uuid, request = booted(cloud)
    trace = request.removeprefix("req-").replace("-", "")
    ends = {"nova-compute": "ComputeRPC.build_guests", "nova-scheduler": "SchedulerRPC.select_hosts"}
    for daemon, name in ends.items():
        wait_until(f"{daemon} exports", lambda d=daemon, n=name: "POST /servers" in collector.path(d, n, trace), 20)
    assert collector.path("nova-compute", "ComputeRPC.build_guests", trace)[2:] == [
        "BuildGuests", "create", "ConductorRPC.create_servers", "ConductorRPC.create_servers", "POST /servers"]
    built = next(span for who, span in collector.of_trace(trace).values() if span.name == "BuildGuests")
    facts = {one.key: one.value.string_value for one in built.attributes}
    assert facts["nova.server"] == uuid and facts["nova.host"] == "host1" and facts["nova.request_id"] == request
    story = cloud.manage("request", "show", request)
    assert f"trace {trace}" in story
    steps = {span.name for _who, span in collector.of_trace(trace).values()}
    shown = {line.split()[0] for line in story.splitlines() if line.startswith("  ") and line.split()[0][0].isupper()}
    assert {"SelectHosts", "ClaimResources", "BuildGuests"} <= shown and shown <= steps, (shown, steps)
    cloud.api().delete(uuid)


def test_boot_when_its_caller_traces_then_all_of_it_is_in_the_callers_trace(cloud, collector) -> None:
    uuid, _request = booted(cloud, traceparent=f"00-{CALLERS}-00f067aa0ba902b7-00")
    wait_until("it is exported", lambda: "POST /servers" in collector.path(
        "nova-compute", "ComputeRPC.build_guests", CALLERS), 20)
    root = next(span for _who, span in collector.of_trace(CALLERS).values() if span.name == "POST /servers")
    assert root.parent_span_id.hex() == "00f067aa0ba902b7"
    cloud.api().delete(uuid)


def test_spans_then_no_token_or_password_is_in_any(cloud, collector) -> None:
    uuid, _request = booted(cloud)
    everything = " ".join(str(span) for _who, span in collector.spans.copy().values())
    assert "X-Auth-Token" not in everything and "password" not in everything.lower()
    cloud.api().delete(uuid)


def test_boot_when_it_is_done_then_all_daemons_wrote_twenty_lines_at_most(cloud) -> None:
    """At INFO, the requests that ask how far it is left out: those are the client's."""
    uuid, request = booted(cloud)
    lines = [line for path in (cloud.root / "log").glob("*.log") for line in path.read_text().splitlines()
             if uuid in line or request in line]
    boot = [line for line in lines if f"GET /v2.1/servers/{uuid}" not in line.replace('\\"', "")]
    assert 3 <= len(boot) <= 20, "\n".join(boot)
    cloud.api().delete(uuid)


def test_logs_when_they_are_json_then_a_boots_lines_say_service_step_and_trace(cloud) -> None:
    import json

    uuid, request = booted(cloud)
    lines = [json.loads(line) for name in ("conductor", "compute1", "scheduler", "api")
             for line in (cloud.root / "log" / f"{name}.log").read_text().splitlines() if line.startswith("{")]
    mine = [line for line in lines if line.get("request") == request]
    assert {line["service"] for line in mine} >= {"nova-conductor", "nova-scheduler", "nova-api"}
    assert {line.get("trace") for line in mine} == {request.removeprefix("req-").replace("-", "")}
    ended = next(line for line in mine if line.get("action") == "create" and "duration_ms" in line)
    assert ended["server"] == uuid and ended["host"] == "host1" and ended["hostname"] == "ctl"
    cloud.api().delete(uuid)
