"""Credentials for users and programs: environment variables, files to source, and clouds.yaml."""

from __future__ import annotations

import json
import os

from .keystone import REGION
from .layout import Layout, write_private
from .secrets import Secrets

PROJECTS = {"admin": "admin", "demo": "demo"}  # user: its project
USERS = tuple(PROJECTS)


def variables(layout: Layout, secrets: Secrets, user: str) -> dict[str, str]:
    """Return the OS_* variables that the openstack and nova commands read."""
    if layout.choices.auth == "noauth2":
        # the clients' plug-in for a fixed token; noauth2 accepts USER:PROJECT as a token
        return {
            "OS_AUTH_TYPE": "admin_token",
            "OS_TOKEN": f"{user}:{PROJECTS[user]}",
            # URL of the identity service: the client reads its version, but never calls it
            "OS_ENDPOINT": layout.url("keystone", "/v3"),
            "OS_COMPUTE_ENDPOINT_OVERRIDE": layout.url("compute", "/v2.1"),
            "OS_IMAGE_ENDPOINT_OVERRIDE": layout.url("glance"),
            "OS_PLACEMENT_ENDPOINT_OVERRIDE": layout.url("placement"),
            "OS_IDENTITY_API_VERSION": "3",
        }
    return {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": layout.url("keystone", "/v3"),
        "OS_USERNAME": user,
        "OS_PASSWORD": secrets.password(user),
        "OS_PROJECT_NAME": PROJECTS[user],
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
        "OS_IDENTITY_API_VERSION": "3",
    }


def environment(layout: Layout, secrets: Secrets, user: str, host: str = "") -> dict[str, str]:
    """Return the caller's environment with these credentials instead of any others, and the stack's programs first.

    nova's programs, such as nova-manage, use the files of the controller, or of that compute host.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    path = ":".join([str(layout.venvs / "clients" / "bin"), str(layout.venvs / "nova" / "bin"), kept.get("PATH", "")])
    files = {"OS_NOVA_CONFIG_DIR": str(layout.etc / (f"nova-{host}" if host else "nova"))}
    if layout.choices.volumes == "ceph":
        files["CEPH_CONF"] = str(layout.etc / (f"ceph-{host}" if host else "ceph") / "ceph.conf")
    return {**kept, "PATH": path, **variables(layout, secrets, user), **files, "NOVA_STACK_STATE": str(layout.state)}


def write_files(layout: Layout, secrets: Secrets) -> None:
    for user in USERS:
        lines = [f"export {name}='{value}'" for name, value in variables(layout, secrets, user).items()]
        lines.append(f'export PATH="{layout.venvs}/clients/bin:$PATH"')
        write_private(layout.path(f"openrc-{user}"), "\n".join(lines) + "\n")
    write_private(layout.path("clouds.yaml"), clouds_yaml(layout, secrets))


def clouds_yaml(layout: Layout, secrets: Secrets) -> str:
    """Return clouds.yaml, written as JSON, a subset of YAML with unambiguous quoting."""
    return json.dumps({"clouds": {user: _cloud(layout, secrets, user) for user in USERS}}, indent=2) + "\n"


def _cloud(layout: Layout, secrets: Secrets, user: str) -> dict:
    if layout.choices.auth == "noauth2":
        return {
            "auth_type": "admin_token",
            "identity_api_version": 3,
            "region_name": REGION,
            "auth": {"endpoint": layout.url("keystone", "/v3"), "token": f"{user}:{PROJECTS[user]}"},
            "compute_endpoint_override": layout.url("compute", "/v2.1"),
            "image_endpoint_override": layout.url("glance"),
            "placement_endpoint_override": layout.url("placement"),
        }
    return {
        "region_name": REGION,
        "identity_api_version": 3,
        "auth": {
            "auth_url": layout.url("keystone", "/v3"),
            "username": user,
            "password": secrets.password(user),
            "project_name": PROJECTS[user],
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
    }
