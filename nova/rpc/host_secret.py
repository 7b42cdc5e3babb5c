"""The secret that authenticates a host to the conductors: created at its first start and stored in ``state_path``.

All daemons of a host share the file. The conductors store the secret at the host's first registration. In bounded mode
that registration is proven by a token that is valid once: ``nova-manage host enroll`` prints it, and an operator writes
it to ``state_path/host_token``. In upstream mode it has no proof: the first host that registers a name gets it.
``nova-manage host change-secret`` replaces a host's secret while its daemons run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nova import errors, failures
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.model.host.services import Registered, Registration
from nova.model.security.security_modes import SecurityMode
from nova.rpc.proofs import FIRST_CONTACT

LOG = logging.getLogger(__name__)

Way = Callable[[], Registered]

FILE, TOKEN, NEXT = "host_secret", "host_token", "host_secret.next"
SHARED = "host_secret.shared"  # marker file: other hosts could read the secret when it was sent to the conductors
BOUNDED = "bounded_mode"  # marker file: the cloud was in bounded mode when this host registered last
SHORTEST = 32  # characters


class HostSecret:
    """The host's secret, read again when its file changes. Conductors and the host's daemons do not change it at the
    same moment, so the previous and the next secret are valid, too."""

    def __init__(self, state_path: Path, enrols_itself: bool = False) -> None:
        """Load the host's secret, and create it at the first start. ``enrols_itself``: in upstream mode. Raises
        host.DamagedSecret, also if this user may not read it."""
        self._folder, self._enrols_itself = state_path, enrols_itself
        self._stamp: tuple[int, int] | None = None
        self._current, self._before = "", ""
        self._token = ""  # during the host's first registration
        self._read()

    def __call__(self, host: str, introducing: bool = False) -> tuple[str, ...]:
        """Return the secrets that prove this host's messages, the preferred one first; see
        :class:`nova.rpc.proofs.HostKeys`."""
        if self._token:
            return (self._token,)
        self._read()
        return tuple(filter(None, (self._current, peek(self._folder, NEXT), self._before)))

    def introduce(self, register: Callable[[Registration], Registered], registration: Registration,
                  change: Callable[[str], object]) -> Registered:
        """Register with the secret. If the conductors do not know it, register with the token, which is removed after a
        success, or in upstream mode without a proof. ``change`` sends them a new secret, if this one was shared. Raises
        the errors of ``register``."""
        def as_known() -> Registered:
            answer = self._noted(register(registration))
            self._replace_shared(change)
            return answer

        def as_new() -> Registered:
            return self._as_new(register, registration)
        *others, last = self._ways(as_known, as_new)
        for way in others:
            try:
                return way()
            except (errors.Forbidden, errors.Unavailable) as error:
                if error.code not in UNKNOWN:
                    raise
        return last()

    def _ways(self, as_known: Way, as_new: Way) -> tuple[Way, ...]:
        """Return the methods to try, in this order. Another daemon of this host may have registered the secret
        meanwhile."""
        if self._enrols_itself and not (self._folder / SHARED).exists():
            return (as_new, as_known)
        may_be_new = self._enrols_itself or bool(peek(self._folder, TOKEN))
        return (as_known, as_new, as_known) if may_be_new else (as_known,)

    def _as_new(self, register: Callable[[Registration], Registered], registration: Registration) -> Registered:
        """Register the secret, with the token as the proof if there is one."""
        with self._proven_by(read(self._folder / TOKEN) if peek(self._folder, TOKEN) else FIRST_CONTACT):
            answer = register(msgspec.structs.replace(registration, secret=self._current))
        (self._folder / TOKEN).unlink(missing_ok=True)
        (self._folder / SHARED).unlink(missing_ok=True)
        return self._noted(answer)

    def _noted(self, answer: Registered) -> Registered:
        """Record that the cloud is in bounded mode, so that this host does not leave it because an option is missing.
        In upstream mode, record that others could read the secret."""
        if self._enrols_itself:
            _mark(self._folder / SHARED)
        if answer.mode == SecurityMode.BOUNDED:
            _mark(self._folder / BOUNDED)
        return answer

    def _replace_shared(self, change: Callable[[str], object]) -> None:
        """Replace a shared secret once the host has its own vhost: users of the earlier vhost could have read it."""
        if self._enrols_itself or not (self._folder / SHARED).exists():
            return
        try:
            self.change(change)
        except errors.Unavailable as error:
            LOG.warning("this host's secret of upstream mode stays valid until it can be changed: %s", error.message)
            return
        (self._folder / SHARED).unlink(missing_ok=True)
        LOG.info("replaced this host's secret: all users of the shared vhost could read the one of upstream mode")

    @contextlib.contextmanager
    def _proven_by(self, key: str) -> Iterator[None]:
        self._token = key
        try:
            yield
        finally:
            self._token = ""

    def change(self, tell: Callable[[str], object]) -> None:
        """Replace the secret; ``tell`` sends the new one to the conductors. A repeated call completes an interrupted
        one: daemons read the next secret before the conductors can have it."""
        fresh = self._folder / NEXT
        if not peek(self._folder, NEXT):
            _make(fresh)
        tell(read(fresh))
        os.replace(fresh, self._folder / FILE)

    def _read(self) -> None:
        path = self._folder / FILE
        with failures.replaced(OSError, lambda error: errors.host.DamagedSecret(path=path, reason=error.strerror)):
            if not path.exists():
                _make(path)
            status = path.stat()
        if (status.st_mtime_ns, status.st_ino) != self._stamp:
            self._before, self._current = self._current, read(path)
            self._stamp = (status.st_mtime_ns, status.st_ino)


def of_host(conf: Options) -> HostSecret:
    """Return the secret of this daemon's host. Raises host.DamagedSecret. Raises config.LeavesBoundedMode if the host
    was in bounded mode, and the configuration has none of its options."""
    enrols_itself, folder = asked_mode(conf) is SecurityMode.UPSTREAM, Path(conf.state_path)
    if enrols_itself and (folder / BOUNDED).exists():
        raise errors.config.LeavesBoundedMode(others="")
    return HostSecret(folder, enrols_itself)


#: Error codes of a conductor for a host without a valid proof.
UNKNOWN = frozenset({errors.daemon.RpcNotEnrolled.code, errors.daemon.RpcNotProven.code})


def read(path: Path) -> str:
    """Return the secret in a file. Raises host.DamagedSecret."""
    with failures.replaced((OSError, UnicodeDecodeError), lambda error: errors.host.DamagedSecret(path=path,
            reason=getattr(error, "strerror", None) or "not a text")):
        text, mode = path.read_text().strip(), path.stat().st_mode
    if mode & 0o077:
        raise errors.host.DamagedSecret(path=path, reason="others can read or write it (chmod 600 it)")
    if len(text) < SHORTEST:
        raise errors.host.DamagedSecret(path=path, reason="it is too short")
    return text


def peek(state_path: Path, name: str = FILE) -> str:
    """Return the secret if it exists and this process may read it, else an empty string. Never creates one."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (state_path / name).read_text().strip()
    return ""


def _mark(path: Path) -> None:
    """Create an empty marker file. An existing file stays as it is: another daemon of this host created it, maybe as
    another user, so that opening it would be refused. Raises host.NotMarked."""
    with failures.replaced(OSError, lambda error: errors.host.NotMarked(path=path, reason=error.strerror)), \
            contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def _make(path: Path) -> None:
    """Write a new secret atomically. If another daemon of this host was faster, its secret stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:  # daemons of another user may share it: they own the folder
        os.chown(fresh, path.parent.stat().st_uid, path.parent.stat().st_gid)
    with contextlib.suppress(FileExistsError):
        os.link(fresh, path)
    fresh.unlink()
