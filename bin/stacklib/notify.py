"""The receiving end of sd_notify: one datagram socket for each daemon."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

#: Status of a daemon that is not ready, but has sent READY=1 so that systemd starts other units.
WAITS = b"STATUS=still waits"


class NotifySocket:
    def __init__(self, path: Path, user: str | None) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(str(path))
        if user:
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        path.chmod(0o600)

    def says_ready(self, pid: int | None) -> bool:
        """Read all messages and return whether READY=1 is among them. Only the daemon's own user can send here."""
        ready = False
        while True:
            try:
                message = self.socket.recv(4096)
            except BlockingIOError:
                break
            ready = ready or (b"READY=1" in message.split(b"\n") and WAITS not in message)
        return ready and pid is not None
