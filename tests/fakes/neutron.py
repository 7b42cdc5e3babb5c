"""A small network service: Neutron's API with state in memory, through a transport of requests, without a socket. It
keeps networks, subnets, ports with their bindings, groups, floating addresses and quotas, and fails on demand."""

from __future__ import annotations

import io
import ipaddress
import itertools
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from keystoneauth1 import session as ksession
from requests.adapters import BaseAdapter

from nova.clients import session
from nova.clients.neutron import Neutron
from nova.clients.neutron_caller import NeutronCaller

URL = "http://neutron.invalid"
EXTENSIONS = ("binding-extended", "dns-integration", "quota_details", "auto-allocated-topology", "port-security",
              "revision-if-match", "security-group", "external-net", "fip-port-details",
              "port-resource-request-groups")
ADMIN_FIELDS = ("binding:host_id", "binding:profile", "binding:vif_type", "binding:vif_details", "resource_request")


class Refusal(Exception):
    """An error answer."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status, self.kind, self.message = status, kind, message
        super().__init__(message)


class Trouble:
    """A failure of requests. ``how``: a status, "refused" or "timeout" (the request is not executed), "lost" (it is
    executed), or "blind" (the caller sees no such resource)."""

    def __init__(self, method: str, path: str, how: int | str, times: int) -> None:
        self.method, self.path, self.how, self.left = method, path, how, times

    def meets(self, method: str, path: str) -> bool:
        """Return whether the failure applies to a request; ``path`` includes the query."""
        return self.left > 0 and method in (self.method, self.method or method) and self.path in path


class FakeNeutron:
    """The service. ``tokens``: a user's token -> its project; all other tokens belong to an administrator."""

    def __init__(self, tokens: dict[str, str] | None = None) -> None:
        self.tokens = tokens or {}
        self.extensions = set(EXTENSIONS)
        self.networks: dict[str, dict[str, Any]] = {}
        self.subnets: dict[str, dict[str, Any]] = {}
        self.ports: dict[str, dict[str, Any]] = {}
        self.bindings: dict[str, dict[str, dict[str, Any]]] = {}  # port -> host -> binding
        self.groups: dict[str, dict[str, Any]] = {}
        self.floating: dict[str, dict[str, Any]] = {}
        self.rules: dict[str, dict[str, Any]] = {}
        self.quotas: dict[str, int] = {}
        self.unbindable: set[str] = set()  # hosts without access to a network
        self.vif_type = "ovs"
        self.page = 0  # resources on a page; 0: all
        self.troubles: list[Trouble] = []
        self.requests: list[tuple[str, str]] = []
        self.timeouts: list[tuple[float, float]] = []  # of requests, in seconds: (connect, read)
        self.headers: list[dict[str, str]] = []
        self._macs = itertools.count(1)
        self._turn = threading.RLock()
        self.transport = _Transport(self)

    def client(self, retries: int = 1, extension_sync_s: float = 600, doubts_s: Sequence[float] = (),
               **patience: float) -> Neutron:
        service = session.ServiceEndpoint("network", "network", (URL,), retries=retries,
                                          **{"retry_wait_s": 0.0, **patience})
        http = requests.Session()
        http.mount(URL, self.transport)
        return Neutron(NeutronCaller(service, session.Credentials(ksession.Session(session=http), None)),
                       extension_sync_s, doubts_s)

    # -- resources

    def add_network(self, name: str = "net", cidrs: Sequence[str] = ("10.1.0.0/24",), **members: Any) -> str:
        network = str(uuid.uuid4())
        self.networks[network] = {
            "id": network, "name": name, "tenant_id": "demo", "project_id": "demo", "shared": False,
            "router:external": False, "port_security_enabled": True, "subnets": [], "mtu": 1450, "status": "ACTIVE",
            "admin_state_up": True, **members}
        for cidr in cidrs:
            self.add_subnet(network, cidr)
        return network

    def add_subnet(self, network: str, cidr: str, **members: Any) -> str:
        subnet, parsed = str(uuid.uuid4()), ipaddress.ip_network(cidr)
        self.subnets[subnet] = {
            "id": subnet, "network_id": network, "cidr": cidr, "ip_version": parsed.version, "enable_dhcp": True,
            "gateway_ip": str(parsed[1]), "dns_nameservers": ["9.9.9.9"], "host_routes": [], "tenant_id": "demo",
            **members}
        self.networks[network]["subnets"].append(subnet)
        return subnet

    def add_port(self, network: str, **members: Any) -> str:
        """Add a port; with ``device_id`` it is a port that nova creates, unless ``device_owner`` differs."""
        if members.get("device_id"):
            members.setdefault("device_owner", "compute:nova")
        return str(self._make_port({"network_id": network, "tenant_id": "demo", **members})["id"])

    def add_group(self, name: str, project: str = "demo") -> str:
        group = str(uuid.uuid4())
        self.groups[group] = {"id": group, "name": name, "tenant_id": project, "project_id": project,
                              "description": "", "security_group_rules": []}
        return group

    def trouble(self, method: str, path: str, how: int | str, times: int = 1) -> None:
        self.troubles.append(Trouble(method, path, how, times))

    def away(self) -> Trouble:
        """Make the service unreachable until the result's ``left`` is 0."""
        self.troubles.append(Trouble("", "", "refused", 10**9))
        return self.troubles[-1]

    def of(self, device: str) -> list[dict[str, Any]]:
        return [port for port in self.ports.values() if port["device_id"] == device]

    def hosts_of(self, port: str) -> dict[str, str]:
        """Return the bindings of a port: host -> status."""
        return {host: one["status"] for host, one in self.bindings.get(port, {}).items()}

    def asked(self, method: str = "", path: str = "") -> list[tuple[str, str]]:
        return [one for one in self.requests if method in one[0] and path in one[1]]

    # -- requests

    def answer(self, request: requests.PreparedRequest) -> tuple[int, Any]:
        """Return (status, body). Raises requests.ConnectionError, requests.ReadTimeout."""
        with self._turn:
            return self._answer(request)

    def _answer(self, request: requests.PreparedRequest) -> tuple[int, Any]:
        parts = urlsplit(str(request.url))
        path = parts.path.removeprefix("/v2.0/")
        method = str(request.method)
        self.requests.append((method, f"{path}?{parts.query}" if parts.query else path))
        self.headers.append(dict(request.headers))
        trouble = next((one for one in self.troubles if one.meets(*self.requests[-1])), None)
        if trouble is not None:
            trouble.left -= 1
            if trouble.how == "refused":
                raise requests.ConnectionError("refused")
            if trouble.how == "timeout":
                raise requests.ReadTimeout("timeout")
            if trouble.how == "blind":
                return 200, {path.partition("/")[0]: []}
            if trouble.how != "lost":
                return int(trouble.how), {"message": "not now"}
        try:
            made = self._route(method, path, parse_qsl(parts.query), request)
        except Refusal as no:
            return no.status, {"NeutronError": {"type": no.kind, "message": no.message, "detail": ""}}
        if trouble is not None:
            raise requests.ConnectionError("the answer was lost")
        return made

    def _route(self, method: str, path: str, query: list[tuple[str, str]], request: Any) -> tuple[int, Any]:
        project = self.tokens.get(request.headers.get("X-Auth-Token", ""))
        body = json.loads(request.body) if request.body else {}
        noun, *rest = path.split("/")
        if noun == "extensions":
            return 200, {"extensions": [{"alias": one} for one in sorted(self.extensions)]}
        if noun == "quotas":
            return 200, {"quota": {"port": self._counted(rest[0])}}
        if noun == "auto-allocated-topology":
            return 200, {"auto_allocated_topology": self._topology(rest[0], dict(query).get("fields") == "dry-run")}
        if len(rest) > 1 and rest[1] == "bindings":
            return self._bindings(method, rest, body)
        if method == "GET" and not rest:
            return 200, self._list(noun, query, project)
        handle: Callable[..., tuple[int, Any]] = getattr(self, f"_{method.lower()}_{noun.replace('-', '_')}",
                                                         self._show)
        return handle(rest, body, request) if handle != self._show else self._show(noun, rest[0], project)

    def _things(self, noun: str) -> dict[str, dict[str, Any]]:
        return {"networks": self.networks, "subnets": self.subnets, "ports": self.ports,
                "security-groups": self.groups, "floatingips": self.floating, "security-group-rules": self.rules}[noun]

    def _visible(self, noun: str, one: dict[str, Any], project: str | None) -> bool:
        if project is None or one.get("tenant_id") == project:
            return True
        return noun == "networks" and (one["shared"] or one["router:external"])

    @staticmethod
    def _shown(one: dict[str, Any], project: str | None) -> dict[str, Any]:
        hidden = ADMIN_FIELDS if project is not None else ()
        return {name: value for name, value in one.items()
                if name not in hidden and not (project is not None and name.startswith("provider:"))}

    def _show(self, noun: str, key: str, project: str | None) -> tuple[int, Any]:
        one = self._things(noun).get(key)
        if one is None or not self._visible(noun, one, project):
            raise Refusal(404, "NotFound", f"{noun} {key} could not be found.")
        return 200, {noun.removesuffix("s").replace("-", "_"): self._shown(one, project)}

    def _list(self, noun: str, query: list[tuple[str, str]], project: str | None) -> dict[str, Any]:
        wanted: dict[str, list[str]] = {}
        for name, value in query:
            wanted.setdefault(name, []).append(value)
        fields, marker = wanted.pop("fields", None), wanted.pop("marker", [""])[0]
        found = [one for key, one in sorted(self._things(noun).items()) if key > marker
                 and self._visible(noun, one, project) and all(_meets(one, name, values)
                                                               for name, values in wanted.items())]
        key = noun.replace("-", "_")
        answer: dict[str, Any] = {}
        if self.page and len(found) > self.page:
            found = found[:self.page]
            rest = "&".join(f"{name}={value}" for name, value in query if name != "marker")
            answer[f"{key}_links"] = [{"rel": "next", "href": f"http://elsewhere/v2.0/{noun}?{rest}&marker="
                                                              f"{found[-1]['id']}"}]
        answer[key] = [{name: value for name, value in self._shown(one, project).items()
                        if fields is None or name in fields} for one in found]
        return answer

    def _counted(self, project: str) -> Any:
        used = sum(port["tenant_id"] == project for port in self.ports.values())
        limit = self.quotas.get(project, -1)
        return {"limit": limit, "used": used, "reserved": 0} if "quota_details" in self.extensions else limit

    def _topology(self, project: str, dry_run: bool) -> dict[str, Any]:
        if not any(one.get("is_default") for one in self.networks.values()):
            raise Refusal(400, "AutoAllocationFailure", "Deployment error: No default router:external network.")
        if dry_run:
            return {"id": "dry-run=pass", "tenant_id": project}
        mine = next((key for key, one in self.networks.items()
                     if one["tenant_id"] == project and one["name"] == "auto_allocated_network"), None)
        return {"id": mine or self.add_network("auto_allocated_network", ("10.9.0.0/24",), tenant_id=project,
                                               project_id=project), "tenant_id": project}

    # -- ports

    def _post_ports(self, rest: Any, body: dict[str, Any], request: Any) -> tuple[int, Any]:
        before = set(self.ports)
        try:
            made = [self._make_port(one) for one in body["ports"]]
        except Refusal:
            for key in set(self.ports) - before:  # all or none
                self._forget(key)
            raise
        return 201, {"ports": made}

    def _make_port(self, wanted: dict[str, Any]) -> dict[str, Any]:
        network, project = self.networks.get(wanted["network_id"]), wanted["tenant_id"]
        if network is None:
            raise Refusal(404, "NetworkNotFound", f"Network {wanted['network_id']} could not be found.")
        limit = self.quotas.get(project, -1)
        if 0 <= limit <= sum(port["tenant_id"] == project for port in self.ports.values()):
            raise Refusal(409, "OverQuota", "Quota exceeded for resources: ['port'].")
        self._check_groups(wanted)
        key = wanted.get("id") or str(uuid.uuid4())
        default = [one["id"] for one in self.groups.values() if one["name"] == "default"
                   and one["tenant_id"] == project]
        port = {"id": key, "network_id": network["id"], "tenant_id": project, "project_id": project, "name": "",
                "mac_address": f"FA:16:3E:00:00:{next(self._macs):02X}", "device_id": "", "device_owner": "",
                "status": "DOWN", "admin_state_up": True, "port_security_enabled": network["port_security_enabled"],
                "security_groups": default, "binding:host_id": "", "binding:profile": {},
                "binding:vnic_type": "normal", "revision_number": 1, "dns_name": "", "ip_allocation": "immediate",
                **wanted}
        port["fixed_ips"] = list(self._addresses(network, wanted.get("fixed_ips")))
        self.ports[key] = port
        self._bind(port)
        return port

    def _check_groups(self, wanted: dict[str, Any]) -> None:
        for group in wanted.get("security_groups", ()):
            if group not in self.groups:
                raise Refusal(404, "SecurityGroupNotFound", f"Security group {group} does not exist")

    def _addresses(self, network: dict[str, Any], wanted: Any) -> Iterator[dict[str, str]]:
        used = {one["ip_address"] for port in self.ports.values() for one in port["fixed_ips"]
                if port["network_id"] == network["id"]}
        subnets = [self.subnets[one] for one in network["subnets"]]
        if wanted is not None:
            for one in wanted:
                address = one["ip_address"]
                if address in used:
                    raise Refusal(409, "IpAddressAlreadyAllocated", f"IP address {address} already allocated")
                inside = next(subnet for subnet in subnets
                              if ipaddress.ip_address(address) in ipaddress.ip_network(subnet["cidr"]))
                yield {"ip_address": address, "subnet_id": inside["id"]}
            return
        for version in (4, 6):
            for subnet in [one for one in subnets if one["ip_version"] == version][:1]:
                free = next((str(one) for one in ipaddress.ip_network(subnet["cidr"]).hosts()
                             if str(one) not in used and str(one) != subnet["gateway_ip"]), None)
                if free is None:
                    raise Refusal(409, "IpAddressGenerationFailure", "No more IP addresses available on network")
                yield {"ip_address": free, "subnet_id": subnet["id"]}

    def _with_address(self, wanted: dict[str, str]) -> dict[str, str]:
        """Return the wanted address; a request with only a subnet gets a free address."""
        if "ip_address" in wanted:
            return wanted
        subnet = self.subnets[wanted["subnet_id"]]
        used = {one["ip_address"] for port in self.ports.values() for one in port["fixed_ips"]}
        free = next(str(one) for one in ipaddress.ip_network(subnet["cidr"]).hosts()
                    if str(one) not in used and str(one) != subnet["gateway_ip"])
        return {"ip_address": free, "subnet_id": subnet["id"]}

    def _bind(self, port: dict[str, Any]) -> None:
        """Set the active binding to the port's host."""
        host = port["binding:host_id"] or ""
        mine = self.bindings.setdefault(port["id"], {})
        for other in [key for key, one in mine.items() if one["status"] == "ACTIVE" and key != host]:
            del mine[other]
        if host:
            mine[host] = {**self._binding(host, port["binding:vnic_type"], port["binding:profile"]),
                          "status": "ACTIVE"}
        port["binding:vif_type"] = mine[host]["vif_type"] if host else "unbound"
        port["binding:vif_details"] = mine[host]["vif_details"] if host else {}
        port["status"] = "ACTIVE" if host and host not in self.unbindable else "DOWN"

    def _binding(self, host: str, vnic_type: str, profile: Any) -> dict[str, Any]:
        failed = host in self.unbindable
        vif_type = "binding_failed" if failed else self.vif_type if vnic_type == "normal" else "hw_veb"
        return {"host": host, "vif_type": vif_type, "vif_details": {} if failed else {"port_filter": True},
                "vnic_type": vnic_type, "profile": profile, "status": "INACTIVE"}

    def _post_security_groups(self, rest: list[str], body: dict[str, Any], request: Any) -> tuple[int, Any]:
        project = self.tokens.get(request.headers.get("X-Auth-Token", ""), "admin")
        return 201, {"security_group": self.groups[self.add_group(body["security_group"]["name"], project)]}

    def _put_ports(self, rest: list[str], body: dict[str, Any], request: Any) -> tuple[int, Any]:
        port = self.ports.get(rest[0])
        if port is None:
            raise Refusal(404, "PortNotFound", f"Port {rest[0]} could not be found.")
        match = request.headers.get("If-Match")
        if match is not None and match != f"revision_number={port['revision_number']}":
            raise Refusal(412, "RevisionNumberConstraintFailed", "The resource's revision is another.")
        fields = body["port"]
        self._check_groups(fields)
        if "fixed_ips" in fields:
            fields = {**fields, "fixed_ips": [self._with_address(one) for one in fields["fixed_ips"]]}
        port.update(fields, revision_number=port["revision_number"] + 1)
        if "binding:host_id" in fields or "binding:profile" in fields:
            self._bind(port)
        return 200, {"port": port}

    def _delete_ports(self, rest: list[str], body: Any, request: Any) -> tuple[int, Any]:
        if rest[0] not in self.ports:
            raise Refusal(404, "PortNotFound", f"Port {rest[0]} could not be found.")
        self._forget(rest[0])
        return 204, None

    def _forget(self, port: str) -> None:
        del self.ports[port]
        self.bindings.pop(port, None)

    def _bindings(self, method: str, rest: list[str], body: dict[str, Any]) -> tuple[int, Any]:
        port = self.ports.get(rest[0])
        if port is None or "binding-extended" not in self.extensions:
            raise Refusal(404, "PortNotFound", f"Port {rest[0]} could not be found.")
        mine = self.bindings[rest[0]]
        if method == "GET":
            return 200, {"bindings": list(mine.values())}
        if method == "POST":
            wanted = body["binding"]
            if wanted["host"] in mine:
                raise Refusal(409, "PortBindingAlreadyExists", "Binding for port already exists.")
            mine[wanted["host"]] = self._binding(wanted["host"], wanted["vnic_type"], wanted["profile"])
            return 201, {"binding": mine[wanted["host"]]}
        host = rest[2]
        if host not in mine:
            raise Refusal(404, "PortBindingNotFound", "Binding for port could not be found.")
        if method == "DELETE":
            del mine[host]
            if port["binding:host_id"] == host:
                port.update({"binding:host_id": "", "binding:vif_type": "unbound", "status": "DOWN"})
            return 204, None
        if mine[host]["status"] == "ACTIVE":
            raise Refusal(409, "PortBindingAlreadyActive", "Binding for port on host is already active.")
        for one in mine.values():
            one["status"] = "INACTIVE"
        mine[host]["status"] = "ACTIVE"
        port.update({"binding:host_id": host, "binding:vif_type": mine[host]["vif_type"],
                     "binding:vif_details": mine[host]["vif_details"], "binding:profile": mine[host]["profile"]})
        return 200, {"binding": mine[host]}


def _meets(one: dict[str, Any], name: str, values: list[str]) -> bool:
    if name == "fixed_ips":
        return any(f"ip_address={address['ip_address']}" in values for address in one["fixed_ips"])
    if isinstance(one.get(name), bool):
        return str(one[name]).lower() in [value.lower() for value in values]
    return one.get(name) in values


class _Transport(BaseAdapter):
    def __init__(self, fake: FakeNeutron) -> None:
        super().__init__()
        self._fake = fake

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        self._fake.timeouts.append(kwargs["timeout"])
        status, body = self._fake.answer(request)
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = status, request, str(request.url)
        answer.raw = io.BytesIO(b"" if body is None else json.dumps(body).encode())
        answer.headers["Content-Type"] = "application/json"
        return answer

    def close(self) -> None:
        """Do nothing: no connection is open."""


__all__ = ["EXTENSIONS", "URL", "FakeNeutron", "Trouble"]
