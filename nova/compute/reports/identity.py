"""Identity of this host: an id that is created once and kept in ``state_path/host_id``; its name is only a label."""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from nova import errors, failures
from nova.model.host.services import Registered, Registration
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret

LOG = logging.getLogger(__name__)

FILE, LOCK = "host_id", "nova-compute.lock"


class Lock:
    """Lock that ensures that only one service works on the same guests. The kernel releases it after a kill."""

    def __init__(self, state_path: Path) -> None:
        state_path.mkdir(parents=True, exist_ok=True)
        self._file = open(state_path / LOCK, "w")  # noqa: SIM115 - stays open while the service runs
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise errors.host.TwoDaemons(path=state_path) from None

    def release(self) -> None:
        """Release the lock, so that another nova-compute may start here. May be called again."""
        self._file.close()


def host_id(state_path: Path) -> str:
    """Return the host's UUID, which is created at its first start. Raises host.DamagedId."""
    path = state_path / FILE
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return _make(path)
    except UnicodeDecodeError:
        text = ""
    with failures.replaced(ValueError, lambda _: errors.host.DamagedId(path=path)):
        return str(uuid.UUID(text))


def _make(path: Path) -> str:
    """Create the id file so that it is either complete or absent, even after a power failure."""
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
             retry_until_available: Callable[[str, Callable[[], Registered]], Registered]) -> Registered:
    """Register the host. Raises host.Refused (its message is for the operator) if name and id do not belong together,
    or if the host cannot prove that it is the registered one."""
    def ask() -> Registered:
        with failures.replaced((errors.Conflict, errors.Forbidden), lambda error: errors.host.Refused(error.message)):
            return secret.introduce(lambda said: conductor.register(said.host, said), registration,
                                    lambda fresh: conductor.change_secret(registration.host, fresh))
    return retry_until_available("register with the conductor", ask)
