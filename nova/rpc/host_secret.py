"""What proves that a host is who it says: a secret of its own, made at its first start and kept in ``state_path``.

All daemons of a host share the file. Their calls to the conductor carry an HMAC with it; the conductor learns it at the
first registration, and checks the HMACs where ``[DEFAULT]rpc_host_proof`` is on.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from nova import errors
from nova.model.services import Registered, Registration

FILE = "host_secret"
SHORTEST = 32  # characters


def load(state_path: Path) -> str:
    """The host's secret; made at its first start. Raises host.DamagedSecret, also when this user may not read it."""
    path = state_path / FILE
    try:
        if not path.exists():
            _make(path)
        text, mode = path.read_text().strip(), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise errors.host.DamagedSecret(path=path, reason=getattr(error, "strerror", None) or "it is no text") from None
    if mode & 0o077:
        raise errors.host.DamagedSecret(path=path, reason="others can read or write it (chmod 600 it)")
    if len(text) < SHORTEST:
        raise errors.host.DamagedSecret(path=path, reason="it is too short")
    return text


def peek(state_path: Path) -> str:
    """The secret where there is one that we may read, else nothing; makes none."""
    try:
        return (state_path / FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _make(path: Path) -> None:
    """Write a new one, whole or not at all; a daemon of this host that was quicker has made everybody's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def introduce(register: Callable[[Registration], Registered], registration: Registration, secret: str) -> Registered:
    """Register; the secret itself is told once in a host's life, when the conductor says that it does not know it.
    Should that answer be lost, the next registration is the proof."""
    answer = register(registration)
    if answer.wants_secret and secret:
        answer = register(msgspec.structs.replace(registration, secret=secret))
    return answer
