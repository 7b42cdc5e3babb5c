"""Keystone in small: ``FakeKeystone`` speaks enough of the Identity API v3 for keystoneauth, keystonemiddleware,
openstackclient, Terraform and Horizon's log-in.

Sources: the Identity API reference; token bodies and version documents are keystoneauth1.fixture's.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import webob
from keystoneauth1 import fixture

from nova.devel.identity import credentials, ec2_credentials, grants, groups, resources, tokens
from nova.devel.identity.directory import INTERFACES, REGION, SYSTEM, Directory, RoleGrant, ScopeKind, TokenScope
from nova.devel.identity.kinds import DEFAULT_DOMAIN
from nova.devel.service import FakeAnswer, FakeCall, FakeError, FakeRoute, FakeService, TokenOwner, anybody
from nova.model.base import Json

TITLES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
          409: "Conflict", 413: "Request Entity Too Large", 500: "Internal Server Error"}
API_ID = "v3.14"
SERVICE_NAMES = {"compute": "nova", "identity": "keystone", "image": "glance", "network": "neutron",
                 "placement": "placement"}


class NewUser(NamedTuple):
    """A user to begin with. ``roles``: names, by project; of the whole system where the project is WHOLE_SYSTEM."""

    name: str
    roles: Mapping[str, Sequence[str]]
    default_project: str | None = None


WHOLE_SYSTEM = "*system*"
PROJECTS = ("admin", "service", "demo")
ROLES = ("admin", "manager", "member", "reader", "service")
USERS = (
    NewUser("admin", {"admin": ("admin",), "demo": ("admin",), WHOLE_SYSTEM: ("admin",)}),
    NewUser("demo", {"demo": ("member",)}),
    NewUser("nova", {"service": ("admin", "service")}),
)


class FakeKeystone(FakeService[Directory]):
    """A WSGI application. ``catalog``: service type to address, answered in region RegionOne for all interfaces.

    ``password``: of all users to begin with; made up where none is said, and then ``password`` tells it.
    ``identify`` says whose a token is, without HTTP: what FakeGlance is made with.
    """

    def __init__(self, catalog: Mapping[str, str], password: str | None = None, users: Sequence[NewUser] = USERS,
                 projects: Sequence[str] = PROJECTS, roles: Sequence[str] = ROLES,
                 token_lifetime_s: int = 3600) -> None:
        self.password = password or secrets.token_urlsafe(24)
        self.directory = Directory(token_lifetime_s)
        _fill(self.directory, projects, roles)
        for user in users:
            _add_user(self.directory, user, self.password)
        for service_type, address in catalog.items():
            _add_service(self.directory, service_type, address)
        lock = threading.RLock()
        super().__init__("fake Keystone", self.directory, ROUTES, self._whose, lock)

    def keep_in(self, file: Path) -> bool:
        """As FakeService's. The catalog and the first users' password are this process's all the same."""
        catalog = self.directory.things["services"], self.directory.things["endpoints"]
        found = super().keep_in(file)
        if found:
            self.directory.things["services"], self.directory.things["endpoints"] = catalog
            for user in USERS:
                known = self.directory.by_name("users", user.name, DEFAULT_DOMAIN)
                if known is not None:
                    self.directory.set_password(known["id"], self.password)
        return found

    def add_user(self, user: NewUser, password: str) -> None:
        """One more, with the projects that are missing; nothing if there is a user of that name."""
        with self.lock:
            if self.directory.by_name("users", user.name, DEFAULT_DOMAIN) is not None:
                return
            missing = [name for name in user.roles
                       if self.directory.by_name("projects", name, DEFAULT_DOMAIN) is None]
            _fill_projects(self.directory, missing)
            _add_user(self.directory, user, password)
            self.save()

    def _whose(self, token: str) -> TokenOwner | None:
        with self.lock:
            return tokens.identify(self.directory, token)

    def refused(self, http: webob.Request, error: FakeError) -> FakeAnswer:
        headers = {"WWW-Authenticate": f'Keystone uri="{http.application_url}/v3"'} if error.status == 401 else {}
        return FakeAnswer(error.status, {"error": {"code": error.status, "title": TITLES.get(error.status, "Error"),
                                                   "message": error.message}}, {"Vary": "X-Auth-Token", **headers})


def _fill(directory: Directory, projects: Sequence[str], roles: Sequence[str]) -> None:
    directory.add("domains", {"name": "Default", "description": "The default domain"}, DEFAULT_DOMAIN)
    directory.add("regions", {"id": REGION})
    for name in roles:
        directory.add("roles", {"name": name})
    _fill_projects(directory, projects)


def _fill_projects(directory: Directory, projects: Sequence[str]) -> None:
    for name in projects:
        directory.add("projects", {"name": name, "parent_id": DEFAULT_DOMAIN})


def _add_user(directory: Directory, user: NewUser, password: str) -> None:
    """ValueError names a role or project that is not there."""
    project = directory.by_name("projects", user.default_project or "", DEFAULT_DOMAIN)
    made = directory.add("users", {"name": user.name, "password": password, "email": f"{user.name}@example.org",
                                   "default_project_id": project["id"] if project else None})
    for where, names in user.roles.items():
        found = directory.by_name("projects", where, DEFAULT_DOMAIN)
        if found is None and where != WHOLE_SYSTEM:
            raise ValueError(f"User {user.name}: there is no project {where}")
        scope = TokenScope(ScopeKind.PROJECT, found["id"]) if found else SYSTEM
        for name in names:
            role = directory.by_name("roles", name)
            if role is None:
                raise ValueError(f"User {user.name}: there is no role {name}")
            directory.grants.add(RoleGrant(made["id"], scope, role["id"]))


def _add_service(directory: Directory, service_type: str, address: str) -> None:
    service = directory.add("services", {"type": service_type,
                                         "name": SERVICE_NAMES.get(service_type, service_type)})
    for interface in INTERFACES:
        directory.add("endpoints", {"service_id": service["id"], "interface": interface, "url": address,
                                    "region_id": REGION, "region": REGION})


def _version(http: webob.Request) -> dict[str, Json]:
    return fixture.V3Discovery(f"{http.application_url}/v3/", id=API_ID, xml=False)


def list_versions(directory: Directory, call: FakeCall) -> FakeAnswer:
    """GET /: 300 with the one version."""
    return FakeAnswer(300, {"versions": {"values": [_version(call.http)]}},
                      {"Location": f"{call.http.application_url}/v3/"})


def show_version(directory: Directory, call: FakeCall) -> Json:
    """GET /v3."""
    return {"version": _version(call.http)}


def own_projects(directory: Directory, call: FakeCall) -> Json:
    """GET /v3/auth/projects: those that a token of the caller may be for."""
    return resources.page(call, "projects", resources.scoped(directory, call.caller.user_id,
                                                                         ScopeKind.PROJECT))


def own_domains(directory: Directory, call: FakeCall) -> Json:
    """GET /v3/auth/domains."""
    return resources.page(call, "domains", resources.scoped(directory, call.caller.user_id,
                                                                        ScopeKind.DOMAIN))


def own_system(directory: Directory, call: FakeCall) -> Json:
    """GET /v3/auth/system."""
    found = directory.scopes_of(call.caller.user_id, ScopeKind.SYSTEM)
    return {"system": [{"all": True}] if found else [], "links": {"self": call.http.path_url}}


def own_catalog(directory: Directory, call: FakeCall) -> Json:
    """GET /v3/auth/catalog: the catalog of the caller's token. 403 for a token without a scope."""
    scope = tokens.token_scope(directory, call)
    if scope.kind == ScopeKind.UNSCOPED:
        raise FakeError(403, "The token has no scope, so it has no catalog.")
    return {"catalog": tokens.catalog_body(directory, scope), "links": {"self": call.http.path_url}}


ROUTES: tuple[FakeRoute[Directory], ...] = (
    FakeRoute("GET", "/", list_versions, anybody),
    FakeRoute("GET", "/v3", show_version, anybody),
    FakeRoute("POST", "/v3/auth/tokens", tokens.issue, anybody, passing=True),
    FakeRoute("GET", "/v3/auth/tokens", tokens.validate),
    FakeRoute("DELETE", "/v3/auth/tokens", tokens.revoke, success=204, passing=True),
    FakeRoute("GET", "/v3/auth/catalog", own_catalog),
    FakeRoute("GET", "/v3/auth/projects", own_projects),
    FakeRoute("GET", "/v3/auth/domains", own_domains),
    FakeRoute("GET", "/v3/auth/system", own_system),
    *resources.ROUTES, *groups.ROUTES, *grants.ROUTES, *credentials.ROUTES,
    *ec2_credentials.ROUTES,
)
