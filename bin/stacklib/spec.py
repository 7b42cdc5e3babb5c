"""What the supervisor is told about a daemon: a value that travels as JSON."""

from __future__ import annotations

import hashlib
import json
import signal
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

# Daemons are stopped by tier, the highest first: what uses a service before the service, that before its store.
STORES, SERVICES, CLOUD = 0, 1, 2


@dataclass(frozen=True)
class Probe:
    """When a daemon counts as ready.

    kind `notify`: it says READY=1 on NOTIFY_SOCKET; `tcp`: HOST:PORT accepts; `unix`: the socket at a path accepts;
    `http`: a GET of the URL is answered with less than 500; `alive`: it is running.
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
        """The same with a fingerprint of all that it starts from: a change of it makes `up` restart the daemon."""
        digest = hashlib.sha256(json.dumps([asdict(replace(self, fingerprint="")), extra], sort_keys=True).encode())
        for path in files:
            digest.update(path.read_bytes() if path.exists() else b"-")
        return replace(self, fingerprint=digest.hexdigest()[:16])

    def to_json(self) -> dict:
        return asdict(self)


def from_json(value: dict) -> Daemon:
    """Raises TypeError or KeyError for what is no daemon."""
    probe = Probe(**value["probe"])
    return Daemon(**{**value, "argv": tuple(value["argv"]), "probe": probe})
