"""Usage of projects and usage audits, as the API shows them. All versions are the same, except for the links."""

from __future__ import annotations

from nova.api.view import Free, micros
from nova.model.quota.usage import DONE, RUNNING, ProjectUsage, ServerUsage, UsageAudits, UsagePage, UsageQuery

ALL_DONE = "ALL"


# shapes, for the API's description
SERVER = {**dict.fromkeys(("instance_id", "name", "tenant_id", "flavor", "started_at", "state"), "string"),
          **dict.fromkeys(("memory_mb", "local_gb", "vcpus", "uptime"), "integer"), "hours": "number",
          "ended_at": ("string", "null")}
PROJECT = {"tenant_id": "string", "start": "string", "stop": "string", "total_hours": "number",
           "total_local_gb_usage": "number", "total_memory_mb_usage": "number", "total_vcpus_usage": "number",
           "server_usages?": [SERVER]}
AUDITS = {"period_beginning": "string", "period_ending": "string", "num_hosts": "integer", "num_hosts_done": "integer",
          "num_hosts_running": "integer", "num_hosts_not_run": "integer", "hosts_not_run": ["string"],
          "total_instances": "integer", "total_errors": "integer", "overall_status": "string",
          "log": Free({"state": "string", "instances": "integer", "errors": "integer", "message": "string"})}


def projects(found: UsagePage, query: UsageQuery) -> list[dict[str, object]]:
    """Return one dict for each project. Amounts are hours, GiB-hours, MiB-hours and CPU hours, in the query's
    period."""
    return [_project(one, query) for one in found.projects]


def _project(one: ProjectUsage, query: UsageQuery) -> dict[str, object]:
    """Return a project's usage, with its servers if requested."""
    servers = {"server_usages": [_server(server) for server in one.servers]} if query.servers else {}
    return {"tenant_id": one.project_id, "start": micros(query.start), "stop": micros(query.end),
            "total_hours": one.hours, "total_local_gb_usage": one.local_gb_hours,
            "total_memory_mb_usage": one.memory_mb_hours, "total_vcpus_usage": one.vcpu_hours, **servers}


def _server(one: ServerUsage) -> dict[str, object]:
    return {"instance_id": one.uuid, "name": one.name, "tenant_id": one.project_id, "flavor": one.flavor,
            "memory_mb": one.memory_mb, "local_gb": one.local_gb, "vcpus": one.vcpus, "hours": one.hours,
            "started_at": micros(one.started_at), "ended_at": micros(one.ended_at), "uptime": one.uptime_s,
            "state": one.state}


def audits(found: UsageAudits) -> dict[str, object]:
    """Return the audits of one period. A host that was removed since then keeps its entry in the log, and counts."""
    logs = found.audits.values()
    not_run = [host for host in found.hosts if host not in found.audits]
    done = sum(one.state == DONE for one in logs)
    errors = sum(one.errors for one in logs)
    hosts = len(set(found.hosts) | set(found.audits))
    of_all = ALL_DONE if done == hosts else f"{done} of {hosts}"
    return {"period_beginning": str(found.period_beginning), "period_ending": str(found.period_ending),
            "num_hosts": hosts, "num_hosts_done": done,
            "num_hosts_running": sum(one.state == RUNNING for one in logs), "num_hosts_not_run": len(not_run),
            "hosts_not_run": not_run, "total_instances": sum(one.servers for one in logs), "total_errors": errors,
            "overall_status": f"{of_all} hosts done. {errors} errors.",
            "log": {host: {"state": one.state, "instances": one.servers, "errors": one.errors, "message": one.message}
                    for host, one in found.audits.items()}}
