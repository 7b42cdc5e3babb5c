"""Quotas of FakeNeutron: limits of projects, and their usage."""

from __future__ import annotations

from collections.abc import Mapping

from nova.devel.network.kinds import NetworkError, is_privileged
from nova.devel.network.ports import privileged
from nova.devel.network.store import QUOTAS, FakeNetworkStore, forbidden
from nova.devel.service import FakeCall, FakeRoute


def list_all(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/quotas: list projects with non-default quotas."""
    return {"quotas": [{**_limits(store, project_id), "tenant_id": project_id, "project_id": project_id}
                       for project_id in store.quotas]}


def show(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/quotas/{project_id}: show limits. Raises 403 for another project."""
    return {"quota": _limits(store, _project(call))}


def show_defaults(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/quotas/{project_id}/default: show the defaults. Raises 403."""
    _project(call)
    return {"quota": dict(QUOTAS)}


def show_details(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/quotas/{project_id}/details: show limits and usage. Raises 403."""
    project_id = _project(call)
    return {"quota": {name: {"limit": limit, "used": store.used(project_id, name), "reserved": 0}
                      for name, limit in _limits(store, project_id).items()}}


def own_project(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/quotas/tenant or /v2.0/quotas/project: show the project of the token."""
    name = call.http.path_info.rpartition("/")[2]
    return {name: {f"{name}_id": call.caller.project_id}}


def update(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """PUT: set some limits. Raises 400."""
    given, project_id = call.member("quota"), call.named["project_id"]
    limits: dict[str, int] = {}
    for name, limit in given.items():
        if name not in QUOTAS:
            raise NetworkError(400, "HTTPBadRequest", f"Unrecognized attribute(s) '{name}'")
        if not isinstance(limit, int) or isinstance(limit, bool) or not -1 <= limit < 2 ** 31:
            raise NetworkError(400, "HTTPBadRequest", f"Invalid input for {name}. Reason: an integer from -1 "
                               "is required.")
        limits[name] = limit
    store.quotas[project_id] = {**store.quotas.get(project_id, {}), **limits}
    return {"quota": _limits(store, project_id)}


def reset(store: FakeNetworkStore, call: FakeCall) -> None:
    """DELETE: restore the defaults. Raises 404 if they are in force."""
    if store.quotas.pop(call.named["project_id"], None) is None:
        raise NetworkError(404, "TenantQuotaNotFound", f"Quota for tenant {call.named['project_id']} could "
                           "not be found.")


def _limits(store: FakeNetworkStore, project_id: str) -> dict[str, int]:
    return {name: store.limit(project_id, name) for name in QUOTAS}


def _project(call: FakeCall) -> str:
    project_id = call.named["project_id"]
    if project_id != call.caller.project_id and not is_privileged(call.caller):
        raise forbidden("get_quota")
    return project_id


_ONE = "/v2.0/quotas/{project_id}"
ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (
    FakeRoute("GET", "/v2.0/quotas", list_all, privileged),
    FakeRoute("GET", "/v2.0/quotas/tenant", own_project),
    FakeRoute("GET", "/v2.0/quotas/project", own_project),
    FakeRoute("GET", _ONE, show),
    FakeRoute("PUT", _ONE, update, privileged),
    FakeRoute("DELETE", _ONE, reset, privileged, 204),
    FakeRoute("GET", f"{_ONE}/default", show_defaults),
    FakeRoute("GET", f"{_ONE}/details", show_details),
    FakeRoute("GET", f"{_ONE}/details.json", show_details),
)
