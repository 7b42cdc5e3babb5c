"""A small identity service for unmodified clients of a noauth2 cloud: it checks passwords, issues tokens for noauth2
(``USER:PROJECT``), and has the catalog of the test. Ids are names."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

DOMAIN = {"id": "default", "name": "Default"}
REGION = "RegionOne"
ADMIN_ROLES, OTHER_ROLES = ("admin", "manager", "member", "reader"), ("member", "reader")


class Unauthorized(Exception):
    pass


class FakeKeystone:
    """``with FakeKeystone({"compute": url}, {"demo": "secret"}) as keystone``; ``keystone.url`` is its address.

    ``accounts``: user -> password; each user has a project of the same name.
    """

    def __init__(self, endpoints: Mapping[str, str], accounts: Mapping[str, str]) -> None:
        self.endpoints, self.accounts = endpoints, accounts
        self.registered: list[dict[str, Any]] = []  # registered limits, in the API's form
        self.limits: list[dict[str, Any]] = []
        self.gets: list[str] = []  # requested paths, with their queries
        self.projects_answer: tuple[int, Any] | None = None  # answer to requests for a project; None: the real one
        self.url = ""

    def __enter__(self) -> FakeKeystone:
        fake = self

        class Handler(_Handler):
            keystone = fake
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self, user: str, project: str = "") -> dict[str, str]:
        """Return the environment variables of clients."""
        return {"OS_AUTH_TYPE": "password", "OS_AUTH_URL": f"{self.url}/v3", "OS_USERNAME": user,
                "OS_PASSWORD": self.accounts[user], "OS_PROJECT_NAME": project or user,
                "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_REGION_NAME": REGION,
                "OS_IDENTITY_API_VERSION": "3"}

    # -- resources

    def version(self) -> dict[str, Any]:
        return {"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
                "links": [{"rel": "self", "href": f"{self.url}/v3/"}], "media-types": []}

    def thing(self, name: str) -> dict[str, Any]:
        """Return a user or a project."""
        return {"id": name, "name": name, "enabled": True, "domain_id": DOMAIN["id"], "domain": DOMAIN}

    def token(self, wanted: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return (token, its body). Raises Unauthorized."""
        user, methods = self._user(wanted["identity"]), wanted["identity"]["methods"]
        project = wanted.get("scope", {}).get("project", {})
        name = project.get("name") or project.get("id") or user
        roles = ADMIN_ROLES if user == "admin" else OTHER_ROLES
        return f"{user}:{name}", {
            "methods": methods, "user": self.thing(user), "project": self.thing(name), "is_domain": False,
            "audit_ids": ["a"], "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2999-01-01T00:00:00.000000Z", "roles": [{"id": role, "name": role} for role in roles],
            "catalog": [self._service(kind, url) for kind, url in
                        {"identity": f"{self.url}/v3", **self.endpoints}.items()]}

    def _user(self, identity: dict[str, Any]) -> str:
        if "token" in identity["methods"]:
            return str(identity["token"]["id"].partition(":")[0])
        given = identity["password"]["user"]
        name = str(given.get("name") or given.get("id"))
        if self.accounts.get(name) != given["password"]:
            raise Unauthorized
        return name

    def register(self, resource: str, limit: int, service: str = "compute", region: str | None = REGION) -> None:
        self.registered.append({"resource_name": resource, "default_limit": limit, "service_id": service,
                                "region_id": region})

    def limit(self, project: str, resource: str, limit: int, service: str = "compute",
              region: str | None = REGION) -> None:
        self.limits.append({"resource_name": resource, "resource_limit": limit, "service_id": service,
                            "project_id": project, "region_id": region})

    def listed(self, kind: str, query: Mapping[str, list[str]]) -> list[dict[str, Any]]:
        """Return the services, endpoints or limits that match a query's conditions."""
        services = [self._service(name, url) for name, url in self.endpoints.items()]
        rows = {"services": services, "registered_limits": self.registered, "limits": self.limits,
                "endpoints": [{**one, "service_id": service["id"]} for service in services
                              for one in service["endpoints"]]}[kind]
        return [row for row in rows if all(row.get(name) == value[0] for name, value in query.items())]

    @staticmethod
    def _service(kind: str, url: str) -> dict[str, Any]:
        endpoints = [{"id": f"{kind}-{interface}", "interface": interface, "region": REGION, "region_id": REGION,
                      "url": url} for interface in ("public", "internal", "admin")]
        return {"id": kind, "type": kind, "name": kind, "endpoints": endpoints}


class _Handler(BaseHTTPRequestHandler):
    keystone: FakeKeystone
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url, fake = urlsplit(self.path), self.keystone
        fake.gets.append(self.path)
        parts = [part for part in url.path.split("/") if part]
        if not parts:
            return self._answer(300, {"versions": {"values": [fake.version()]}})
        match parts[1:]:
            case ["projects", _] if fake.projects_answer:
                return self._answer(*fake.projects_answer)
            case []:
                return self._answer(200, {"version": fake.version()})
            case ["users" | "projects" as kind]:
                wanted = parse_qs(url.query).get("name")
                return self._answer(200, {kind: [fake.thing(name) for name in fake.accounts
                                                 if wanted in (None, [name])], "links": {}})
            case ["users" | "projects" as kind, name] if name in fake.accounts:
                return self._answer(200, {kind.removesuffix("s"): fake.thing(name)})
            case ["services" | "endpoints" | "registered_limits" | "limits" as kind]:
                return self._answer(200, {kind: fake.listed(kind, parse_qs(url.query)), "links": {}})
            case ["endpoints", key]:
                found = [one for one in fake.listed("endpoints", {}) if one["id"] == key]
                if found:
                    return self._answer(200, {"endpoint": found[0]})
            case ["domains", name]:
                return self._answer(200, {"domain": {**DOMAIN, "enabled": True}} if name == DOMAIN["id"] else {})
        self._answer(404, {"error": {"code": 404, "title": "Not Found", "message": f"Could not find {url.path}."}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            token, shown = self.keystone.token(body["auth"])
        except Unauthorized:
            return self._answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "Wrong password."}})
        self._answer(201, {"token": shown}, {"X-Subject-Token": token})

    def _answer(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), "Content-Type": "application/json",
                            **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass
