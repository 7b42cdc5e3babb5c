"""Passwords and keys of one stack: random, generated at the first request, in one file that only root can read."""

from __future__ import annotations

import base64
import json
import secrets as random_source
import struct
import threading
import time
import uuid
from pathlib import Path

from .layout import write_private


class Secrets:
    """Store of secrets by name. The file is written before a new secret is returned."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._values: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}

    def password(self, name: str) -> str:
        """Return a password of 24 letters and digits, safe in a URL and in an ini file."""
        return self._get(name, lambda: random_source.token_urlsafe(18).replace("-", "x").replace("_", "y"))

    def ticket_key(self) -> str:
        """Return the key that encrypts image tickets: 32 bytes in URL-safe base64."""
        return self._get("image-tickets", _key)

    def host_secret_key(self) -> str:
        """Return the key that wraps hosts' secrets in the database: 32 bytes in URL-safe base64."""
        return self._get("host-secrets", _key)

    def ceph_key(self, name: str) -> str:
        """Return a cephx key: base64 of a type (1: AES), the creation time, and 16 bytes with their length."""
        return self._get(f"ceph-{name}", _cephx_key)

    def uuid(self, name: str) -> str:
        return self._get(name, lambda: str(uuid.uuid4()))

    def _get(self, name: str, make) -> str:
        with self._lock:
            if name not in self._values:
                self._values[name] = make()
                write_private(self._path, json.dumps(self._values, indent=1, sort_keys=True) + "\n")
            return self._values[name]


def _cephx_key() -> str:
    key = random_source.token_bytes(16)
    return base64.b64encode(struct.pack("<HIIH", 1, int(time.time()), 0, len(key)) + key).decode()


def _key() -> str:
    return base64.urlsafe_b64encode(random_source.token_bytes(32)).decode()
