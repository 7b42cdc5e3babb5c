"""The helper by its unix socket (nova-privileged.service). Each call is a connection of its own: a helper that was
started anew is found again by the next call, and one whose caller has gone sees it by the connection's end."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from nova import concurrency, errors
from nova.privileged import wire

LOOK_S = 0.2  # how often a caller that waits asks whether the answer is wanted still
CONNECT_S = 30.0  # systemd listens for a helper that is being started


class SocketHelper:
    """``path``: where the helper listens."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, f"the socket {path}"

    def ask(self, request: bytes, call: str) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_S)
            try:
                connection.connect(str(self.path))
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)  # eventlet's own are names of numbers
                raise errors.host.NoHelper(reason=f"{self.path}: {reason}") from error
            try:
                wire.send(connection, request)
                connection.settimeout(LOOK_S)
                answer = wire.receive(connection, concurrency.check_wanted)
            except (OSError, ValueError) as error:
                raise errors.host.HelperDied(call=call, reason=str(error)) from error
        if not answer:
            raise errors.host.HelperDied(call=call, reason="it closed the connection")
        return answer


__all__ = ["SocketHelper"]
