"""The helper's unix socket (nova-privileged.service). Each call is a connection of its own: the next call finds a
restarted helper, and the helper notices the end of a caller by the end of its connection."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from nova import concurrency, errors, failures
from nova.privileged import wire

LOOK_S = 0.2  # interval in which a waiting caller checks whether the answer is still wanted
CONNECT_S = 30.0  # systemd accepts connections for a helper that is starting


class SocketHelper:
    """Client of the helper. ``path``: the helper's socket."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, f"the socket {path}"

    def ask(self, request: bytes, call: str) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_S)
            try:
                connection.connect(str(self.path))
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)  # eventlet's: a number as text
                raise errors.host.NoHelper(reason=f"{self.path}: {reason}") from error
            with failures.translated((OSError, ValueError),
                    lambda error: errors.host.HelperDied(call=call, reason=str(error))):
                wire.send(connection, request)
                connection.settimeout(LOOK_S)
                answer = wire.receive(connection, concurrency.check_cancelled)
        if not answer:
            raise errors.host.HelperDied(call=call, reason="it closed the connection")
        return answer


__all__ = ["SocketHelper"]
