"""Protocol between the helper and its clients: msgpack, on a socket with each message's length before it."""

from __future__ import annotations

import functools
import socket
import struct
from collections.abc import Callable
from types import ModuleType

import msgspec

from nova import errors

#: The longest message. A host's rules for thousands of guests are a few megabytes.
LARGEST = 32 << 20
LENGTH = struct.Struct(">I")
CHUNK = 1 << 18

WireError = tuple[str, str, str, dict[str, str | int | float | bool | None]]


class HelperRequest(msgspec.Struct, frozen=True):
    """A call. ``arguments``: a map of the call's parameters."""

    call: str
    arguments: msgspec.Raw


class HelperReply(msgspec.Struct, frozen=True):
    """A result, or a nova error as (kind, code, message, data), or a kernel error (errno and its text)."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: WireError | None = None
    os_error: tuple[int, str] | None = None


def error_of(error: errors.NovaError) -> WireError:
    """Return an error in its wire form."""
    data = {key: value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
            for key, value in error.data.items()}
    return error.kind, error.code, error.message, data


def raised(sent: WireError) -> errors.NovaError:
    """Return the error to raise, of its original class, so that callers can catch it by name."""
    kind, code, message, data = sent
    row = _rows().get(code)
    if row is None:
        return errors.from_wire(kind, code, message, dict(data))
    error = row(message)
    error.data = dict(data)
    return error


@functools.cache
def _rows() -> dict[str, type[errors.NovaError]]:
    catalogues = [found for found in vars(errors).values() if isinstance(found, ModuleType)]
    return {row.code: row for catalogue in catalogues for row in vars(catalogue).values()
            if isinstance(row, type) and issubclass(row, errors.NovaError)}


def send(connection: socket.socket, message: bytes) -> None:
    """Send a message. Raises OSError."""
    connection.sendall(LENGTH.pack(len(message)) + message)


def receive(connection: socket.socket, waiting: Callable[[], None] = lambda: None) -> bytes:
    """Receive one message; empty if the peer has closed. ``waiting`` is called after each timeout of the connection,
    and may raise. Raises ValueError if the message exceeds the limit; OSError."""
    head = _exactly(connection, LENGTH.size, waiting)
    if not head:
        return b""
    (length,) = LENGTH.unpack(head)
    if length > LARGEST:
        raise ValueError(f"message of {length} bytes is too long")
    return _exactly(connection, length, waiting)


def _exactly(connection: socket.socket, count: int, waiting: Callable[[], None]) -> bytes:
    found = bytearray()
    while len(found) < count:
        try:
            part = connection.recv(min(CHUNK, count - len(found)))
        except TimeoutError:
            waiting()
            continue
        if not part:
            return b""
        found += part
    return bytes(found)


__all__ = ["LARGEST", "HelperReply", "HelperRequest", "error_of", "raised", "receive", "send"]
