"""Server of the helper on a unix socket: one call for each connection, in a thread of its own. The kernel identifies
the caller (SO_PEERCRED). If a caller disconnects, its copy is aborted."""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import socket
import struct
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from nova import concurrency, errors, failures
from nova.privileged import wire
from nova.privileged.helper.settings import HelperSettings
from nova.privileged.helper.table import dispatch

LOG = logging.getLogger(__name__)

MOST_CALLS = 64  # concurrent; others wait in the socket's queue
READ_S = 30.0  # time to receive a complete request
FIRST_PASSED = 3  # sd_listen_fds(3)


def allowed_users(user: str) -> frozenset[int]:
    """Return the user ids of root and of the daemons. Raises config.Unusable if there is no such user."""
    with failures.replaced(KeyError,
            lambda _: errors.config.Unusable(option="[privileged]user", reason=f"there is no user {user}")):
        return frozenset({0, pwd.getpwnam(user).pw_uid})


def listening(path: Path, user: str) -> socket.socket:
    """Return systemd's socket, or a new one to which root and the user's group may write. Raises
    service.CannotStart."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        return socket.socket(fileno=FIRST_PASSED)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            made.bind(str(path))
        finally:
            os.umask(before)
        os.chown(path, 0, pwd.getpwnam(user).pw_gid)
        os.chmod(path, 0o660)
        made.listen(MOST_CALLS)
    except OSError as error:
        made.close()
        raise errors.service.CannotStart(
            reason=f"[privileged]socket = {path} cannot be listened on: {error.strerror}") from None
    return made


class HelperServer:
    """Serves calls. ``users``: ids of the users whose processes may call."""

    def __init__(self, sock: socket.socket, settings: HelperSettings, users: Collection[int]) -> None:
        self._sock, self._settings, self._users = sock, settings, users
        self._places = threading.Semaphore(MOST_CALLS)

    def serve(self, stopped: Callable[[], bool]) -> None:
        """Serve calls until ``stopped``."""
        self._sock.settimeout(0.5)
        while not stopped():
            self._places.acquire()
            try:
                connection, _ = self._sock.accept()
            except TimeoutError:
                self._places.release()
                continue
            concurrency.spawn(self._answered, connection, name="call")

    def _answered(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError, ValueError):  # disconnected, or sent an invalid message
                self._answer(connection)
        finally:
            self._places.release()

    def _answer(self, connection: socket.socket) -> None:
        user = peer_of(connection)
        if user not in self._users:
            LOG.warning("refused a call of a process of user %d", user)
            return
        connection.settimeout(READ_S)
        request = wire.receive(connection, _too_slow)
        if not request:
            return
        connection.setblocking(False)
        with concurrency.cancellable(lambda: _check_wanted(connection)):
            answer = dispatch(request, self._settings)
        connection.settimeout(READ_S)
        wire.send(connection, answer)


def peer_of(connection: socket.socket) -> int:
    """Return the user of the peer at the time of its connection."""
    _pid, user, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)


def _too_slow() -> None:
    raise TimeoutError


def _check_wanted(connection: socket.socket) -> None:
    """Raise host.HelperDied if the caller has disconnected; no caller reads that error."""
    try:
        gone = not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return
    except OSError:
        gone = True
    if gone:
        raise errors.host.HelperDied(call="that", reason="the caller disconnected")


__all__ = ["HelperServer", "allowed_users", "listening", "peer_of"]
