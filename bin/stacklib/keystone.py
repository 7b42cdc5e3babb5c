"""Keystone: its files, database, keys and first administrator."""

from __future__ import annotations

from pathlib import Path

from . import databases, gunicorn, memcached, venvs
from .layout import Layout, write_private
from .secrets import Secrets
from .spec import Daemon
from .stack import SERVICE_USER, Stack

REGION = "RegionOne"


def settings(layout: Layout, secrets: Secrets) -> str:
    keys = layout.data / "keystone"
    # tests create hundreds of users in a sandbox: use the cheapest hash that Keystone allows
    rounds = "password_hash_rounds = 4" if layout.sandbox else ""
    return f"""\
[DEFAULT]
use_stderr = true
public_endpoint = {layout.url("keystone")}
[database]
connection = {databases.url(layout, secrets, "keystone")}
max_pool_size = 5
max_overflow = 10
[identity]
{rounds}
[token]
provider = fernet
expiration = 14400
[fernet_tokens]
key_repository = {keys}/fernet-keys
[fernet_receipts]
key_repository = {keys}/receipt-keys
[credential]
key_repository = {keys}/credential-keys
[cache]
enabled = true
backend = dogpile.cache.pymemcache
memcache_servers = {memcached.address(layout)}
[oslo_policy]
enforce_scope = true
"""


def _file(layout: Layout) -> Path:
    return layout.etc / "keystone" / "keystone.conf"


def _fingerprint(stack: Stack) -> str:
    return venvs.stamp(stack.layout, "nextdoor") + stack.layout.choices.database


def prepare(stack: Stack) -> str:
    """Create files, keys, tables and the administrator; skip the steps that were done with this release."""
    layout = stack.layout
    stack.directory("etc", "keystone", owner=SERVICE_USER)
    stack.directory("data", "keystone", owner=SERVICE_USER)
    write_private(_file(layout), settings(layout, stack.secrets), owner=SERVICE_USER)
    if stack.done("keystone", _fingerprint(stack)):
        return "unchanged"
    identity = ["--keystone-user", SERVICE_USER, "--keystone-group", SERVICE_USER]
    databases.begin_tables(stack, "keystone")
    _manage(stack, "db_sync")
    for command in ("fernet_setup", "credential_setup"):
        _manage(stack, command, *identity)
    url = layout.url("keystone", "/v3")
    _manage(
        stack,
        "bootstrap",
        "--bootstrap-region-id",
        REGION,
        "--bootstrap-admin-url",
        url,
        "--bootstrap-public-url",
        url,
        "--bootstrap-internal-url",
        url,
        env={"OS_BOOTSTRAP_PASSWORD": stack.secrets.password("admin")},
    )
    stack.mark_done("keystone", _fingerprint(stack))
    return "tables, keys and administrator made"


def _manage(stack: Stack, *arguments: str, env: dict[str, str] | None = None) -> None:
    program = stack.layout.program("nextdoor", "keystone-manage")
    stack.command(
        "keystone",
        [program, "--config-file", str(_file(stack.layout)), *arguments],
        env={"PYTHONWARNINGS": "ignore", **(env or {})},
        user=SERVICE_USER,
    )


def daemon(stack: Stack) -> Daemon:
    file = _file(stack.layout)
    served, server_file = gunicorn.daemon(stack.layout, "keystone", {"OS_KEYSTONE_CONFIG_FILES": str(file)}, "/v3")
    return served.stamped(file, server_file, extra=venvs.stamp(stack.layout, "nextdoor"))
