"""Keystone: its files, database, keys and first administrator."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from . import databases, gunicorn, memcached, venvs
from .layout import Layout, write_private
from .secrets import Secrets
from .spec import Daemon
from .stack import SERVICE_USER, Stack

REGION = "RegionOne"
KEY_BYTES = 32  # of a Fernet key


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
    for repository in ("fernet-keys", "receipt-keys", "credential-keys"):
        _make_keys(stack, repository)
    databases.begin_tables(stack, "keystone")
    _manage(stack, "db_sync")
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


def _make_keys(stack: Stack, repository: str) -> None:
    """Create the keys that `keystone-manage fernet_setup` and `credential_setup` would create: the staged one, 0, and
    the primary one, 1. Each of these commands takes seconds."""
    folder = stack.directory("data", "keystone", repository, owner=SERVICE_USER, mode=0o700)
    for name in ("0", "1"):
        if not (folder / name).exists():
            key = base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()
            write_private(folder / name, key, owner=SERVICE_USER)


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
