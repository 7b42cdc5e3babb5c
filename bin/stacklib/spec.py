"""Specification of a daemon, which the supervisor receives as JSON."""

from __future__ import annotations

import hashlib
import json
import signal
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

# Daemons are stopped by tier, the highest first: clients before their services, services before their stores.
STORES, SERVICES, CLOUD = 0, 1, 2


@dataclass(frozen=True)
class Probe:
    """The condition under which a daemon is ready.

    kind `notify`: it sends READY=1 to NOTIFY_SOCKET; `tcp`: HOST:PORT accepts connections; `unix`: the socket at a path
    accepts connections; `http`: a GET of the URL returns a status below 500; `alive`: it runs.
    """

    kind: str
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class Daemon:
    name: str
    argv: tuple[str, ...]
    probe: Probe
    room: str | None = None
    user: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    tier: int = SERVICES
    stop_signal: int = signal.SIGTERM
    start_seconds: int = 60
    stop_seconds: int = 15
    fingerprint: str = ""

    def stamped(self, *files: Path, extra: str = "") -> Daemon:
        """Return a copy with a fingerprint of the specification and the files; `up` restarts a daemon if it changes."""
        digest = hashlib.sha256(json.dumps([asdict(replace(self, fingerprint="")), extra], sort_keys=True).encode())
        for path in files:
            digest.update(path.read_bytes() if path.exists() else b"-")
        return replace(self, fingerprint=digest.hexdigest()[:16])

    def to_json(self) -> dict:
        return asdict(self)


def from_json(value: dict) -> Daemon:
    """Return the daemon of a JSON value. Raises TypeError or KeyError if the value is not a daemon."""
    probe = Probe(**value["probe"])
    return Daemon(**{**value, "argv": tuple(value["argv"]), "probe": probe})
