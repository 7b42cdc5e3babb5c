"""What the helper and its clients tell one another: msgpack, and on a socket each message's length before it."""

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
    """``arguments``: a map of the call's parameters."""

    call: str
    arguments: msgspec.Raw


class HelperReply(msgspec.Struct, frozen=True):
    """A result, or one of our errors as (kind, code, message, data), or the kernel's (errno and its text)."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: WireError | None = None
    os_error: tuple[int, str] | None = None


def error_of(error: errors.NovaError) -> WireError:
    """An error as it is sent."""
    data = {key: value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
            for key, value in error.data.items()}
    return error.kind, error.code, error.message, data


def raised(sent: WireError) -> errors.NovaError:
    """The error to raise: of its own class, which callers catch by name."""
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
    """OSError."""
    connection.sendall(LENGTH.pack(len(message)) + message)


def receive(connection: socket.socket, waiting: Callable[[], None] = lambda: None) -> bytes:
    """One message; empty when the other end has closed. ``waiting`` is called whenever the connection's time-out has
    passed, and may raise. ValueError: it is longer than any; OSError."""
    head = _exactly(connection, LENGTH.size, waiting)
    if not head:
        return b""
    (length,) = LENGTH.unpack(head)
    if length > LARGEST:
        raise ValueError(f"a message of {length} bytes")
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
