"""Spool of lease events for the conductor: a file that survives crashes of both ends, and a socket for the word "look".

nova-dhcpbridge imports this on every lease, so it imports little. Each line is an event as a JSON object: network
(uuid), action (add, old, del), mac, address, hostname (or null), expires (epoch seconds or null).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket

SPOOL, TAKEN, SOCKET = "leases.spool", "leases.sending", "leases.sock"
MODE = 0o600
BACKLOG = 64


def append(directory: str, event: dict[str, object]) -> None:
    """Append an event. Raises OSError if the disk is full."""
    line = (json.dumps(event) + "\n").encode()
    with _locked(os.path.join(directory, SPOOL)) as descriptor:
        os.lseek(descriptor.number, 0, os.SEEK_END)
        os.write(descriptor.number, line)


def take(directory: str) -> list[dict[str, object]]:
    """Return all events that are not yet :func:`done`, oldest first, including the events of an unfinished earlier
    take."""
    taken = os.path.join(directory, TAKEN)
    with _locked(os.path.join(directory, SPOOL)) as descriptor:
        fresh = os.read(descriptor.number, os.fstat(descriptor.number).st_size)
        if fresh:  # after a crash before the truncation the events are read twice: their order stays valid
            with open(os.open(taken, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE), "ab") as stream:
                stream.write(fresh)
            os.ftruncate(descriptor.number, 0)
    with contextlib.suppress(FileNotFoundError), open(taken, "rb") as stream:
        return [event for event in map(_parse, stream) if event is not None]
    return []


def done(directory: str) -> None:
    """Delete the taken events after their delivery. No other take may have begun since."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, TAKEN))


def ask(directory: str, words: dict[str, object], timeout_s: float) -> str:
    """Send one line to the local nova-network and return its whole answer. Raises OSError if there is none in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _Directory(directory) as place:
        connection.settimeout(timeout_s)
        connection.connect(place.path(SOCKET))
        connection.sendall((json.dumps(words) + "\n").encode())
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts).decode()


def listen(directory: str) -> socket.socket:
    """Return the listening socket, for root alone. A former process's socket is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _Directory(directory) as place:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place.path(SOCKET))
        before = os.umask(0o177)
        try:
            listener.bind(place.path(SOCKET))
        finally:
            os.umask(before)
    listener.listen(BACKLOG)
    return listener


def _parse(line: bytes) -> dict[str, object] | None:
    try:
        event = json.loads(line)
    except ValueError:  # truncated by a full disk
        return None
    return event if isinstance(event, dict) else None


class _Directory:
    """An open directory, whose number gives a socket in it a short path (at most 108 bytes are possible)."""

    def __init__(self, directory: str) -> None:
        self._number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)

    def path(self, name: str) -> str:
        return f"/proc/self/fd/{self._number}/{name}"

    def __enter__(self) -> _Directory:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._number)


class _locked:  # noqa: N801 - reads as a function
    """The spool file, open and locked; each holder needs it for microseconds."""

    def __init__(self, path: str) -> None:
        self.number = os.open(path, os.O_RDWR | os.O_CREAT, MODE)
        fcntl.flock(self.number, fcntl.LOCK_EX)

    def __enter__(self) -> _locked:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.number)
