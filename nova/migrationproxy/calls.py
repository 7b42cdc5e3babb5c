"""Filters of the libvirt protocol: which calls of a source's libvirtd reach the destination's, and which replies
return.

A call passes if it belongs to the one migration that this host prepared: its name, its sockets, its disks, and a
definition that references no host resources except those of this guest. All other calls are refused. Free of I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova.migrationproxy import LIBVIRT_URI, references
from nova.migrationproxy.references import Refused
from nova.migrationproxy.wire import (
    KEEPALIVE_PROGRAM,
    REMOTE_PROGRAM,
    REMOTE_VERSION,
    Message,
    Messages,
    Procedure,
    Status,
    Type,
    XdrReader,
    refusal,
)

#: virDomainMigrateFlags: those that nova-compute sets, and PAUSED, which libvirt adds for a paused guest.
LIVE, PEER2PEER = 1 << 0, 1 << 1
ALLOWED_FLAGS = (LIVE | PEER2PEER | 1 << 3 | 1 << 4 | 1 << 5  # PERSIST_DEST, UNDEFINE_SOURCE, PAUSED
                 | 1 << 7 | 1 << 9 | 1 << 13 | 1 << 15)  # NON_SHARED_INC, UNSAFE, AUTO_CONVERGE, POSTCOPY
#: Parts of libvirt's migration cookie (an XML document of both ends) that reference no host resources.
COOKIE_PARTS = frozenset({"name", "uuid", "hostname", "hostuuid", "feature", "nbd", "cpu", "capabilities", "statistics",
                          "allowReboot", "network", "graphics"})
#: Calls about the features of both ends, and the end of the connection.
PLAIN = frozenset({Procedure.AUTH_LIST, Procedure.SUPPORTS_FEATURE, Procedure.REGISTER_CLOSE_CALLBACK,
                   Procedure.UNREGISTER_CLOSE_CALLBACK, Procedure.CLOSE})
TARGET = re.compile(r"[a-z]{2,3}")


class AllowedMove(NamedTuple):
    """The migration of a gate. URIs are in libvirt's form."""

    definition: str
    memory_uri: str
    disks_uri: str


class Passed(NamedTuple):
    """Result of a filter: ``onward`` goes to the other side, ``back`` to the sender."""

    onward: bytes = b""
    back: bytes = b""


class ListenerFilter:
    """The filter between a source's libvirtd and the local one. ``refused`` receives the text of each refused call."""

    def __init__(self, move: AllowedMove, refused: Callable[[str], object]) -> None:
        self._move, self._refused, self._messages = move, refused, Messages()
        self.prepared = self.finished = False

    def pass_(self, data: bytes) -> Passed:
        """Filter a piece of the stream. Raises BadMessage: the connection is unusable."""
        onward, back = [], []
        for message in self._messages.feed(data):
            try:
                self._check(message)
                onward.append(message)
            except Refused as error:
                self._refused(str(error))
                back.append(refusal(message, f"the destination refused the call: {error}"))
        return Passed(b"".join(one.encode() for one in onward), b"".join(one.encode() for one in back))

    def _check(self, message: Message) -> None:
        if message.program == KEEPALIVE_PROGRAM and not message.payload:
            return
        if (message.program, message.version, message.type) != (REMOTE_PROGRAM, REMOTE_VERSION, Type.CALL):
            raise Refused(f"message {message.type} of program {message.program:#x}")
        if message.procedure in PLAIN:
            return
        check = {Procedure.OPEN: self._check_open, Procedure.PREPARE: self._check_prepare,
                 Procedure.FINISH: self._check_finish}.get(message.procedure)  # type: ignore[call-overload]
        if check is None:
            raise Refused(f"libvirt's procedure {message.procedure}, which is not part of a migration")
        check(XdrReader(message.payload))

    def _check_open(self, call: XdrReader) -> None:
        name, flags = call.optional_text(), call.number()
        call.end()
        if name != LIBVIRT_URI or flags:
            raise Refused(f"a connection to {name!r}")

    def _check_prepare(self, call: XdrReader) -> None:
        self._check_parameters(call)
        self._check_cookie(call.opaque())
        self._check_flags(call.number())
        call.end()
        self.prepared = True

    def _check_finish(self, call: XdrReader) -> None:
        self._check_parameters(call)
        self._check_cookie(call.opaque())
        self._check_flags(call.number())
        call.number()  # the cancelled flag
        call.end()
        self.finished = True

    def _check_parameters(self, call: XdrReader) -> None:
        """Check the virDomainMigrateParam... values: host resources in them must match the prepared ones."""
        move, given = self._move, call.parameters()
        name = references.name_of(move.definition)
        for parameter, value in given:
            known: Mapping[str, bool] = {
                "destination_name": value == name, "migrate_uri": value == move.memory_uri,
                "disks_uri": value == move.disks_uri, "bandwidth": isinstance(value, int),
                "migrate_disks": isinstance(value, str) and TARGET.fullmatch(value) is not None,
                "destination_xml": True}
            if not known.get(parameter, False):
                raise Refused(f"parameter {parameter}={str(value)[:100]!r}")
            if parameter == "destination_xml":
                references.check(str(value), move.definition)
        missing = {"migrate_uri", "destination_xml"} - {parameter for parameter, _ in given}
        if missing:  # libvirt would use defaults: a port on every address, the source's own definition
            raise Refused(f"missing parameters {' and '.join(sorted(missing))}")

    def _check_cookie(self, cookie: bytes) -> None:
        if not cookie:
            return
        root = references.parsed(cookie.rstrip(b"\0").decode(errors="replace"))
        for part in root:
            if part.tag == "domain":
                references.check_domain(part, self._move.definition)
            elif part.tag not in COOKIE_PARTS:
                raise Refused(f"a cookie with {part.tag}")

    def _check_flags(self, flags: int) -> None:
        if flags & ~ALLOWED_FLAGS or flags & (LIVE | PEER2PEER) != LIVE | PEER2PEER:
            raise Refused(f"flags {flags:#x}")


class TunnelFilter:
    """The filter between a destination's libvirtd and the local one, which trusts its replies. Only replies pass, and
    none that redirects the guest to another destination."""

    def __init__(self, memory_uri: str, refused: Callable[[str], object]) -> None:
        self._memory_uri, self._refused, self._messages = memory_uri, refused, Messages()

    def pass_(self, data: bytes) -> Passed:
        """Filter a piece of the stream. Raises BadMessage and Refused: the connection is unusable."""
        found = self._messages.feed(data)
        for message in found:
            try:
                self._check(message)
            except Refused as error:
                self._refused(str(error))
                raise
        return Passed(onward=b"".join(one.encode() for one in found))

    def _check(self, message: Message) -> None:
        if message.program == KEEPALIVE_PROGRAM and not message.payload:
            return
        if (message.program, message.version, message.type) != (REMOTE_PROGRAM, REMOTE_VERSION, Type.REPLY):
            raise Refused(f"the destination's libvirtd sent message {message.type} of program {message.program:#x}")
        if message.procedure == Procedure.PREPARE and message.status == Status.OK:
            answer = XdrReader(message.payload)
            answer.opaque()
            uri = answer.optional_text()
            if uri is not None and uri != self._memory_uri:
                raise Refused(f"the destination tried to redirect the guest to {uri[:200]!r}")
