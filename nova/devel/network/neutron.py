"""Minimal Neutron: ``FakeNeutron`` supports the Network API v2.0: networks, subnets, ports, security groups, routers,
floating addresses and quotas.

Source: the Network API reference. It has no agents: bound ports count as connected, and no packets are transferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from http.client import responses
from wsgiref.types import StartResponse, WSGIEnvironment

import webob

from nova.devel.network import lists, ports, quotas, routers, security_groups, subnets
from nova.devel.network.kinds import KINDS, NetworkError
from nova.devel.network.store import FakeNetworkStore, PortNews
from nova.devel.service import FakeAnswer, FakeCall, FakeError, FakeRoute, FakeService, Identify, anybody

API_ID = "v2.0"
#: Alias -> name of the extensions served, in addition to networks, subnets and ports.
EXTENSIONS: Mapping[str, str] = {
    "agent": "agent", "allowed-address-pairs": "Allowed Address Pairs", "availability_zone": "Availability Zone",
    "binding": "Port Binding", "binding-extended": "Port Bindings Extended", "dns-integration": "DNS Integration",
    "ext-gw-mode": "Neutron L3 Configurable external gateway mode", "external-net": "Neutron external network",
    "extra_dhcp_opt": "Neutron Extra DHCP options", "extraroute": "Neutron Extra Route",
    "filter-validation": "Filter parameters validation", "fip-port-details": "Floating IP Port Details Extension",
    "ip-substring-filtering": "IP address substring filtering", "net-mtu": "Network MTU",
    "net-mtu-writable": "Network MTU (writable)", "network_availability_zone": "Network Availability Zone",
    "pagination": "Pagination support", "port-security": "Port Security", "project-id": "project_id field enabled",
    "provider": "Provider Network", "quota_details": "Quota details management support",
    "quotas": "Quota management support", "revision-if-match": "If-Match constraints based on revision_number",
    "router": "Neutron L3 Router", "router_availability_zone": "Router Availability Zone",
    "security-group": "security-group", "sorting": "Sorting support",
    "standard-attr-description": "standard-attr-description", "standard-attr-revisions": "Resource revision numbers",
    "standard-attr-tag": "Tag support for resources with standard attribute",
    "standard-attr-timestamp": "Resource timestamps", "stateful-security-group": "Stateful security group"}


class FakeNeutron(FakeService[FakeNetworkStore]):
    """Neutron as a WSGI application. ``identify``: function that returns a token's owner, such as FakeKeystone's;
    ``tell``: receives the events for nova about servers' ports, after the request that caused them. It must not
    block."""

    def __init__(self, identify: Identify, tell: Callable[[Sequence[PortNews]], None] | None = None) -> None:
        super().__init__("fake Neutron", FakeNetworkStore(), ROUTES, identify)
        self.state.changed = self.save
        self.tell = tell

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = super().__call__(environ, start_response)
        with self.lock:
            news, self.state.news = self.state.news, []
        if news and self.tell is not None:
            self.tell(news)
        return answer

    def refused(self, http: webob.Request, error: FakeError) -> FakeAnswer:
        if error.status == 401:
            return FakeAnswer(401, {"error": {"code": 401, "title": "Unauthorized", "message": error.message}},
                              {"WWW-Authenticate": "Keystone"})
        kind = error.kind if isinstance(error, NetworkError) else f"HTTP{responses[error.status].replace(' ', '')}"
        return FakeAnswer(error.status, {"NeutronError": {"type": kind, "message": error.message, "detail": ""}})


def list_versions(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /: list the only version."""
    return {"versions": [{"id": API_ID, "status": "CURRENT", "links": [
        {"rel": "self", "href": f"{call.http.application_url}/{API_ID}/"}]}]}


def list_resources(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0: list the resources below it."""
    return {"resources": [{"name": kind.name, "collection": kind.plural, "links": [
        {"rel": "self", "href": f"{call.http.application_url}{kind.path}"}]} for kind in KINDS]}


def list_extensions(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/extensions: list extensions."""
    said = lists.query_of(call)
    return {"extensions": [lists.with_fields(_extension(alias), said) for alias in EXTENSIONS]}


def show_extension(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/extensions/{alias}: show an extension. Raises 404."""
    alias = call.named["alias"]
    if alias not in EXTENSIONS:
        raise NetworkError(404, "HTTPNotFound", f"Extension with alias {alias} does not exist")
    return {"extension": _extension(alias)}


def _extension(alias: str) -> dict[str, object]:
    return {"alias": alias, "name": EXTENSIONS[alias], "description": EXTENSIONS[alias], "links": [],
            "updated": "2026-01-01T00:00:00-00:00"}


def list_agents(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/agents: list agents, of which there are none."""
    return {"agents": []}


def show_agent(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/agents/{key}: raise 404."""
    raise NetworkError(404, "AgentNotFound", f"Agent {call.named['key']} could not be found.")


def list_zones(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/availability_zones: list zones."""
    zones = [{"name": subnets.ZONE, "resource": resource, "state": "available"}
             for resource in ("network", "router")]
    return lists.page_of(zones, "availability_zones", lists.query_of(call), call)


ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (
    FakeRoute("GET", "/", list_versions, anybody),
    FakeRoute("GET", "/v2.0", list_resources),
    FakeRoute("GET", "/v2.0/extensions", list_extensions),
    FakeRoute("GET", "/v2.0/extensions/{alias}", show_extension),
    FakeRoute("GET", "/v2.0/agents", list_agents),
    FakeRoute("GET", "/v2.0/agents/{key}", show_agent, ports.privileged),
    FakeRoute("GET", "/v2.0/availability_zones", list_zones),
    *subnets.ROUTES, *ports.ROUTES, *security_groups.ROUTES, *routers.ROUTES,
    *quotas.ROUTES,
)
