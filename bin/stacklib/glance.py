"""Glance: its files, tables and daemon; images are files in the state directory, or objects in a Ceph pool."""

from __future__ import annotations

from pathlib import Path

from . import ceph, databases, gunicorn, memcached, venvs
from .keystone import REGION
from .layout import Layout, write_private
from .secrets import Secrets
from .spec import Daemon
from .stack import SERVICE_USER, Stack

LOCAL, CEPH, SNAPSHOTS = "local", "ceph", "snapshots"
STORES = {LOCAL: "file", CEPH: "rbd", SNAPSHOTS: "rbd"}  # store: Glance's name of its type
POOLS = {CEPH: ceph.IMAGES, SNAPSHOTS: ceph.SNAPSHOTS}


def stores_of(layout: Layout) -> tuple[str, ...]:
    """Return Glance's stores; new images go to the first. Only services see locations, which is Glance's default."""
    return (CEPH, SNAPSHOTS, LOCAL) if layout.choices.volumes == CEPH else (LOCAL,)


def settings(layout: Layout, secrets: Secrets) -> str:
    data, stores = layout.data / "glance", stores_of(layout)
    return f"""\
[DEFAULT]
enabled_backends = {", ".join(f"{name}:{STORES[name]}" for name in stores)}
use_stderr = true
worker_self_reference_url = {layout.url("glance")}
[oslo_concurrency]
lock_path = {data}/locks
[database]
connection = {databases.url(layout, secrets, "glance")}
max_pool_size = 5
max_overflow = 10
[glance_store]
default_backend = {stores[0]}
[{LOCAL}]
filesystem_store_datadir = {data}/images
{_ceph(layout)}[os_glance_staging_store]
filesystem_store_datadir = {data}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {data}/tasks
[paste_deploy]
config_file = {layout.venvs}/nextdoor/etc/glance/glance-api-paste.ini
{_authentication(layout, secrets)}"""


def _ceph(layout: Layout) -> str:
    return "".join(
        f"""\
[{store}]
rbd_store_ceph_conf = {ceph.conf_file(layout, "glance")}
rbd_store_user = {ceph.GLANCE.removeprefix("client.")}
rbd_store_pool = {POOLS[store]}
"""
        for store in stores_of(layout)
        if store in POOLS
    )


def _authentication(layout: Layout, secrets: Secrets) -> str:
    if layout.choices.auth == "noauth2":
        return f"[oslo_policy]\npolicy_file = {_policy_file(layout)}\n"
    return f"""\
flavor = keystone
[keystone_authtoken]
www_authenticate_uri = {layout.url("keystone")}
auth_url = {layout.url("keystone")}
auth_type = password
username = glance
password = {secrets.password("glance")}
user_domain_id = default
project_name = service
project_domain_id = default
region_name = {REGION}
memcached_servers = {memcached.address(layout)}
service_token_roles_required = true
"""


def _policy_file(layout: Layout) -> Path:
    return _file(layout).with_name("policy.yaml")


def _file(layout: Layout) -> Path:
    return layout.etc / "glance" / "glance-api.conf"


def prepare(stack: Stack) -> str:
    layout = stack.layout
    stack.directory("etc", "glance", owner=SERVICE_USER)
    for name in ("", "images", "staging", "tasks", "locks"):
        stack.directory("data", "glance", name, owner=SERVICE_USER)
    write_private(_file(layout), settings(layout, stack.secrets), owner=SERVICE_USER)
    if layout.choices.auth == "noauth2":  # every caller is an administrator, but has no role
        write_private(_policy_file(layout), 'context_is_admin: "@"\n', owner=SERVICE_USER)
    fingerprint = venvs.stamp(layout, "nextdoor") + layout.choices.database
    if stack.done("glance", fingerprint):
        return "unchanged"
    databases.begin_tables(stack, "glance")
    stack.command(
        "glance",
        [layout.program("nextdoor", "glance-manage"), "--config-file", str(_file(layout)), "db_sync"],
        env={"PYTHONWARNINGS": "ignore"},
        user=SERVICE_USER,
    )
    stack.mark_done("glance", fingerprint)
    return "tables made"


def load_metadefs(stack: Stack) -> str:
    """Load Glance's metadata definitions, which the dashboard's forms for images and servers offer."""
    layout, fingerprint = stack.layout, venvs.stamp(stack.layout, "nextdoor")
    if stack.done("metadefs", fingerprint):
        return "unchanged"
    words = ["--config-file", str(_file(layout)), "db_load_metadefs", f"{layout.venvs}/nextdoor/etc/glance/metadefs"]
    stack.command(
        "glance",
        [layout.program("nextdoor", "glance-manage"), *words],
        env={"PYTHONWARNINGS": "ignore"},
        user=SERVICE_USER,
    )
    stack.mark_done("metadefs", fingerprint)
    return "metadefs loaded"


def daemon(stack: Stack) -> Daemon:
    file = _file(stack.layout)
    served, server_file = gunicorn.daemon(
        stack.layout, "glance", {"OS_GLANCE_CONFIG_DIR": str(file.parent)}, "/healthcheck"
    )
    return served.stamped(file, server_file, extra=venvs.stamp(stack.layout, "nextdoor"))
