"""Log lines as entries of systemd's journal, with the fields of oslo.log (systemd.journal-fields(7))."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Mapping

from nova import context, failures
from nova.log_text import shortened

SOCKET = "/run/systemd/journal/socket"
#: Levels of syslog(3), which the journal also uses.
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.NOTSET, 7))


class JournalHandler(logging.Handler):
    """Handler that sends entries over journald's socket. The constructor raises OSError if the socket is missing."""

    def __init__(self, binary: str, path: str = SOCKET) -> None:
        super().__init__()
        self._binary, self._path = binary, path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with failures.on_failure(self._socket.close, on=OSError):
            self._socket.connect(path)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one entry; reconnects after a restart of journald."""
        try:
            entry = _encoded(self._fields(record))
            try:
                self._socket.send(entry)
            except OSError:
                self._socket.connect(self._path)
                self._socket.send(entry)
        except Exception:  # like every handler of the standard library: a failure to log must not stop a service
            self.handleError(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> Mapping[str, object]:
        who = context.current_or_none()
        found = {"MESSAGE": shortened(self.format(record)), "SYSLOG_IDENTIFIER": self._binary,
                 "PRIORITY": next(code for level, code in _PRIORITIES if record.levelno >= level),
                 "CODE_FILE": record.pathname, "CODE_LINE": record.lineno, "CODE_FUNC": record.funcName,
                 "THREAD_NAME": record.threadName, "PROCESS_NAME": record.processName, "LOGGER_NAME": record.name,
                 "LOGGER_LEVEL": record.levelname, "REQUEST_ID": who.request_id if who else None,
                 "INSTANCE_UUID": getattr(record, "server", None)}
        if record.exc_info and (formatter := self.formatter):
            found["EXCEPTION_TEXT"] = shortened(formatter.formatException(record.exc_info))
        return {name: value for name, value in found.items() if value is not None}


def _encoded(fields: Mapping[str, object]) -> bytes:
    """Encode an entry for journald: NAME=VALUE or, for values with line ends, the name, its length and the value."""
    made = bytearray()
    for name, value in fields.items():
        data = str(value).encode("utf-8", "replace")
        made += name.encode() + (b"\n" + struct.pack("<Q", len(data)) if b"\n" in data else b"=") + data + b"\n"
    return bytes(made)
