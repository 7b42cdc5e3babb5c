"""The handshake of a VNC connection (RFB 3.8) through the proxy: the proxy authenticates to the hypervisor with the
configured scheme, and admits the viewer without authentication, because the viewer has shown its token.

After :func:`secure` the server's security result is the next message on its side, and all further bytes are relayed
unchanged. Any protocol error ends the connection; the viewer gets the reason in RFB's own failure message.
"""

from __future__ import annotations

import contextlib
import ssl
import struct
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from nova import errors, failures
from nova.conf._options import Options
from nova.console import codes, vencrypt
from nova.console.stream import Closed, Stream, StreamEnd, TooSlow, Violation
from nova.console.target import TargetError

VERSION = b"RFB 003.008\n"
T = TypeVar("T")

NONE, VENCRYPT = 1, 19
FAILED = 1
RESULT = 4  # bytes of the security result
MAX_REASON = 1024  # bytes of a server's reason
TELL_S = 2.0  # to send a failure to the viewer

NOT_RFB = "The server's console does not support the VNC version of this proxy (RFB 3.8)."
BAD_VIEWER = "The viewer does not support the VNC version of this proxy (RFB 3.8)."
NO_SCHEME = "The server's console offers no authentication scheme that this proxy is configured for."
REFUSED = "The server's console refuses connections: "
CUT_OFF = "The server's console closed the connection before it was set up."
SLOW = "The server's console took too long to set up the connection."

TYPES = {"none": NONE, "vencrypt": VENCRYPT}


class Security(NamedTuple):
    """The security of a connection. ``schemes``: names from :data:`TYPES`, the preferred one first; ``tls``: the
    proxy's files for vencrypt; ``peers``: name and addresses of the console's host, one of which its certificate must
    have."""

    schemes: tuple[str, ...] = ("none",)
    tls: vencrypt.TlsFiles = vencrypt.TlsFiles()
    timeout_s: float = 10
    peers: tuple[str, ...] = ()

    def of(self, *peers: str | None) -> Security:
        """Return the settings for the console of one host."""
        return self._replace(peers=tuple(filter(None, peers)))

    @classmethod
    def from_conf(cls, options: Options) -> Security:
        """Return the settings of ``[vnc]`` and ``[console]``, after loading vencrypt's files. Raises Invalid with the
        faulty option."""
        group = options.vnc
        found = cls(tuple(group.auth_schemes), vencrypt.TlsFiles(
            group.vencrypt_ca_certs, group.vencrypt_client_cert, group.vencrypt_client_key),
            options.console.connect_timeout)
        if not found.schemes:
            raise errors.Invalid("[vnc]auth_schemes is empty: name none or vencrypt")
        if "vencrypt" in found.schemes:
            found.tls.context()
        return found


class ViewerError(Exception):
    """The viewer has disconnected or broken the protocol: a close code and a message."""

    def __init__(self, words: str, code: int = codes.PROTOCOL_ERROR) -> None:
        super().__init__(words)
        self.words, self.code = words, code


class _Failed(Exception):
    """A failure: (message for the user, detail for the log)."""

    def __init__(self, words: str, detail: str = "") -> None:
        super().__init__(words, detail)
        self.words, self.detail = words, detail


class _Viewer:
    """The viewer's side; each step runs once."""

    def __init__(self, front: StreamEnd) -> None:
        self._front = front
        self._done: set[str] = set()

    def _once(self, name: str) -> bool:
        if name in self._done:
            return False
        self._done.add(name)
        return True

    def greet(self, deadline: float) -> None:
        """Exchange versions. Raises ViewerError for another version of the viewer."""
        if self._once("greet"):
            self._front.say(VERSION, deadline)
            if self._front.exactly(len(VERSION), deadline) != VERSION:
                raise ViewerError(BAD_VIEWER)

    def admit(self, deadline: float) -> None:
        """Offer security type None, which the viewer must choose."""
        if self._once("admit"):
            self._front.say(bytes((1, NONE)), deadline)
            if self._front.exactly(1, deadline) != bytes((NONE,)):
                raise ViewerError(BAD_VIEWER)

    def refuse(self, words: str) -> None:
        """Send the viewer the failure, as the security result: it must have completed the steps before it."""
        deadline = time.monotonic() + TELL_S
        with contextlib.suppress(ViewerError, Closed, TooSlow, OSError, Violation):
            self.greet(deadline)
            self.admit(deadline)
            reason = words.encode()
            self._front.say(struct.pack(">II", FAILED, len(reason)) + reason, deadline)


def secure(front: StreamEnd, target: Stream, security: Security) -> Stream:
    """Complete RFB's security handshake on both sides, and return the target, which is another stream after a switch to
    TLS.

    Raises TargetError, after an RFB failure message to the viewer; ViewerError. Does not close the front.
    """
    deadline = time.monotonic() + security.timeout_s
    viewer = _Viewer(front)
    try:
        _ask(target, lambda: _version(target, deadline))
        _answer(lambda: viewer.greet(deadline))
        chosen = _ask(target, lambda: _scheme(target, security, deadline))
        _answer(lambda: viewer.admit(deadline))
        return _ask(target, lambda: _begin(target, chosen, security, deadline))
    except _Failed as failure:
        viewer.refuse(failure.words)
        raise TargetError(failure.words, failure.detail) from None


def _ask(target: Stream, step: Callable[[], T]) -> T:
    """Run a step with the server."""
    try:
        return step()
    except TooSlow:
        raise _Failed(SLOW) from None
    except vencrypt.VencryptRefused as refused:
        raise _Failed(refused.words, refused.detail) from None
    except (Closed, OSError) as error:
        raise _Failed(CUT_OFF, f"{CUT_OFF} ({type(error).__name__})") from None


def _answer(step: Callable[[], None]) -> None:
    """Run a step with the viewer; its failure cannot be reported to it."""
    try:
        step()
    except TooSlow:
        raise ViewerError("The viewer took too long to set up the connection.") from None
    except Violation as wrong:
        raise ViewerError(wrong.words, wrong.code) from None
    except (Closed, OSError):
        raise ViewerError("The viewer closed the connection before it was set up.", codes.ABNORMAL) from None


def _version(target: Stream, deadline: float) -> None:
    said = target.exactly(len(VERSION), deadline)
    if said != VERSION:
        raise _Failed(NOT_RFB, f"the server's version is {said!r}")
    target.say(VERSION, deadline)


def _scheme(target: Stream, security: Security, deadline: float) -> str:
    """Return the first configured scheme that the server offers."""
    count, = target.exactly(1, deadline)
    if not count:
        raise _Failed(REFUSED + _reason(target, deadline))
    offered = target.exactly(count, deadline)
    for name in security.schemes:
        if TYPES[name] in offered:
            return name
    raise _Failed(NO_SCHEME, f"it offers the types {list(offered)}, [vnc]auth_schemes is {', '.join(security.schemes)}")


def _reason(target: Stream, deadline: float) -> str:
    """Return the printable part of a server's reason."""
    length, = struct.unpack(">I", target.exactly(4, deadline))
    text = target.exactly(min(length, MAX_REASON), deadline).decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else " " for letter in text).strip() or "no reason given"


def _begin(target: Stream, scheme: str, security: Security, deadline: float) -> Stream:
    """Return the stream at whose beginning is the security result. Waits for the result, because with TLS 1.3 a server
    that rejects the proxy's certificate reports it only now."""
    target.say(bytes((TYPES[scheme],)), deadline)
    if scheme == "vencrypt":
        target = vencrypt.wrap(target, security.tls, security.peers, deadline)
    with failures.on_failure(target.close, on=BaseException), failures.replaced(
            ssl.SSLError, lambda error: _Failed(vencrypt.UNTRUSTED, f"TLS: {error.reason or error}")):
        target.early = target.exactly(RESULT, deadline)
    return target
