"""Contents of Keystone: tables of projects, users, roles, services and endpoints, created where they are missing."""

from __future__ import annotations

import hashlib
import json

from .httpjson import Service
from .keystone import REGION
from .layout import Layout
from .stack import Stack

ROLES = ("admin", "manager", "member", "reader", "service")
PROJECTS = ("admin", "demo", "service")
# user: its (project, role) pairs
USERS = {
    "admin": (("admin", "admin"),),
    "demo": (("demo", "member"),),
    "nova": (("service", "admin"), ("service", "service")),
    "glance": (("service", "admin"), ("service", "service")),
}
NEUTRON_USERS = {"neutron": (("service", "admin"), ("service", "service"))}
CINDER_USERS = {"cinder": (("service", "admin"), ("service", "service"))}
# type: service name, port name in the layout, path of the endpoint
SERVICES = {
    "image": ("glance", "glance", ""),
    "compute": ("nova", "compute", "/v2.1"),
    "placement": ("placement", "placement", ""),
}
NEUTRON_SERVICES = {"network": ("neutron", "neutron", "")}
EC2_SERVICES = {"ec2": ("ec2", "ec2", "/services/Cloud"), "s3": ("s3", "s3", "")}
CINDER_SERVICES = {"volumev3": ("cinder", "cinder", "/v3/$(project_id)s")}
INTERFACES = ("public", "internal", "admin")


def users(layout: Layout) -> dict[str, tuple[tuple[str, str], ...]]:
    choices = layout.choices
    return USERS | (NEUTRON_USERS if choices.neutron else {}) | (CINDER_USERS if choices.volumes else {})


def services(layout: Layout) -> dict[str, tuple[str, str, str]]:
    choices = layout.choices
    found = SERVICES | (NEUTRON_SERVICES if choices.neutron else {}) | (CINDER_SERVICES if choices.volumes else {})
    return found | (EC2_SERVICES if choices.ec2 else {})


def fingerprint(layout: Layout) -> str:
    table = [ROLES, PROJECTS, users(layout), services(layout), layout.address]
    return hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]


def prepare(stack: Stack) -> str:
    """Create the missing projects, users, services and endpoints. Raises StackError if Keystone refuses a request."""
    if stack.done("identity", fingerprint(stack.layout)):
        return "unchanged"
    stack.at_controller(lambda: _fill(stack))
    stack.mark_done("identity", fingerprint(stack.layout))
    return f"{len(PROJECTS)} projects, {len(users(stack.layout))} users, {len(services(stack.layout)) + 1} services"


def token(layout: Layout, user: str, project: str, password: str) -> tuple[str, dict]:
    """Return a token scoped to the project, and its body."""
    domain = {"id": "default"}
    identity = {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": password}}}
    scope = {"project": {"name": project, "domain": domain}}
    answer = Service("keystone", layout.url("keystone", "/v3")).call(
        "POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}}
    )
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return headers["x-subject-token"], answer.body["token"]


def _fill(stack: Stack) -> None:
    layout = stack.layout
    admin_token, _ = token(layout, "admin", "admin", stack.secrets.password("admin"))
    keystone = Service("keystone", layout.url("keystone", "/v3")).with_headers(X_Auth_Token=admin_token)
    roles = _ensure(keystone, "role", [{"name": name} for name in ROLES])
    projects = _ensure(keystone, "project", [{"name": name, "domain_id": "default"} for name in PROJECTS])
    known = _ensure(
        keystone,
        "user",
        [{"name": name, "domain_id": "default", "password": stack.secrets.password(name)} for name in users(layout)],
    )
    for user, pairs in users(layout).items():
        for project, role in pairs:
            keystone.call("PUT", f"/projects/{projects[project]}/users/{known[user]}/roles/{roles[role]}")
    wanted = [{"name": name, "type": kind} for kind, (name, _, _) in services(layout).items()]
    _ensure_endpoints(keystone, layout, _ensure(keystone, "service", wanted))


def _ensure(keystone: Service, kind: str, wanted: list[dict]) -> dict[str, str]:
    """Create the missing rows of a kind, and return the ids of all by name."""
    found = {row["name"]: row["id"] for row in keystone.get(f"/{kind}s")[f"{kind}s"]}
    for row in wanted:
        if row["name"] not in found:
            found[row["name"]] = keystone.post(f"/{kind}s", {kind: row})[kind]["id"]
    return found


def _ensure_endpoints(keystone: Service, layout: Layout, ids: dict[str, str]) -> None:
    rows = keystone.get("/endpoints")["endpoints"]
    found = {(row["service_id"], row["interface"]): row for row in rows}
    for name, port, path in services(layout).values():
        for interface in INTERFACES:
            body = {
                "service_id": ids[name],
                "interface": interface,
                "url": layout.url(port, path),
                "region_id": REGION,
            }
            row = found.get((ids[name], interface))
            if row is None:
                keystone.post("/endpoints", {"endpoint": body})
            elif row["url"] != body["url"]:
                keystone.call("PATCH", f"/endpoints/{row['id']}", {"endpoint": {"url": body["url"]}})
