"""Who this host is: an id made once, kept in ``state_path/host_id``; its name is only a label."""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from nova import errors
from nova.model.host.services import Registered, Registration
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret

LOG = logging.getLogger(__name__)

FILE, LOCK = "host_id", "nova-compute.lock"


class Lock:
    """Held while the daemon runs, so that no second one works on the same guests. The kernel frees it after a kill."""

    def __init__(self, state_path: Path) -> None:
        state_path.mkdir(parents=True, exist_ok=True)
        self._file = open(state_path / LOCK, "w")  # noqa: SIM115 - open as long as the daemon
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise errors.host.TwoDaemons(path=state_path) from None

    def release(self) -> None:
        """Another nova-compute may start here. It may be called again."""
        self._file.close()


def host_id(state_path: Path) -> str:
    """The host's uuid; made at its first start. Raises host.DamagedId."""
    path = state_path / FILE
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return _make(path)
    except UnicodeDecodeError:
        text = ""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise errors.host.DamagedId(path=path) from None


def _make(path: Path) -> str:
    """Write a new id so that it is there whole or not at all, even after a power cut."""
    made = str(uuid.uuid4())
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    LOG.info("this host has a new id: %s", made)
    return made


def register(conductor: ConductorHostRPC, registration: Registration, secret: HostSecret,
             patiently: Callable[[str, Callable[[], Registered]], Registered]) -> Registered:
    """Make the host known. host.Refused (its message is for the operator) when name and id don't belong together, or
    the host does not prove that it is the one that is known."""
    def ask() -> Registered:
        try:
            return secret.introduce(lambda said: conductor.register(said.host, said), registration,
                                    lambda fresh: conductor.change_secret(registration.host, fresh))
        except (errors.Conflict, errors.Forbidden) as error:
            raise errors.host.Refused(error.message) from None
    return patiently("register with the conductor", ask)
