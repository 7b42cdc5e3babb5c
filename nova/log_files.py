"""Log files, rotated by the service itself (``log_rotation_type``) or by logrotate.

A service's workers write to the same file. The first worker that finds it due rotates it, under a lock on the file; the
others then continue in the new file.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import logging.handlers
import os
import time
from collections.abc import Iterator

from nova.conf._options import Options

MB = 2 ** 20
#: log_rotate_interval_type -> code in the standard library.
INTERVALS = {"seconds": "S", "minutes": "M", "hours": "H", "days": "D", "weekday": "W", "midnight": "MIDNIGHT"}


def opened(conf: Options, path: str) -> logging.Handler:
    """Return a handler for the file, configured by ``conf``. Raises OSError."""
    kind = conf.log_rotation_type.lower()
    if kind == "size":
        return BySize(path, maxBytes=conf.max_logfile_size_mb * MB, backupCount=conf.max_logfile_count)
    if kind == "interval":
        when, interval = INTERVALS[conf.log_rotate_interval_type.lower()], conf.log_rotate_interval
        if when == "W":  # the interval is then the day of the week, Monday is 0
            when, interval = f"W{interval}", 1
        return ByTime(path, when=when, interval=interval, backupCount=conf.max_logfile_count)
    return logging.handlers.WatchedFileHandler(path)


class BySize(logging.handlers.RotatingFileHandler):
    """Handler that rotates the file before a line that would exceed its size."""

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """Return whether the line would exceed the size of the file at the path."""
        _follow(self)
        return super().shouldRollover(record)  # type: ignore[no-any-return, misc, unused-ignore]

    def doRollover(self) -> None:
        """Rotate the file, unless another process has done so."""
        with _turning(self) as mine:
            if mine:
                super().doRollover()


class ByTime(logging.handlers.TimedRotatingFileHandler):
    """Handler that rotates the file when its interval has passed."""

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """Return whether the interval of the file at the path has passed."""
        if _follow(self):  # its interval begins with the new file
            self.rolloverAt = self.computeRollover(int(time.time()))
        return super().shouldRollover(record)  # type: ignore[no-any-return, misc, unused-ignore]

    def doRollover(self) -> None:
        """Rotate the file, unless another process has done so."""
        with _turning(self) as mine:
            if mine:
                super().doRollover()
            else:
                self.rolloverAt = self.computeRollover(int(time.time()))


def _descriptor(handler: logging.handlers.BaseRotatingHandler) -> int:
    assert handler.stream is not None, "the file was closed"
    return handler.stream.fileno()


def _is_other(handler: logging.handlers.BaseRotatingHandler) -> bool:
    """Return whether the path has another file than the open one, or none."""
    with contextlib.suppress(FileNotFoundError):
        return not os.path.samestat(os.stat(handler.baseFilename), os.fstat(_descriptor(handler)))
    return True


def _follow(handler: logging.handlers.BaseRotatingHandler) -> bool:
    """Open the file at the path if another process has rotated it; return whether it has."""
    if handler.stream is None or not _is_other(handler):
        return False  # closed: the next line opens it
    handler.stream.close()
    handler.stream = handler._open()
    return True


@contextlib.contextmanager
def _turning(handler: logging.handlers.BaseRotatingHandler) -> Iterator[bool]:
    """Hold the lock on the file. Yields False if another process has rotated it, after opening the new file."""
    held = os.dup(_descriptor(handler))  # the lock outlives the stream, which is closed before files are renamed
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield not _follow(handler)
    finally:
        os.close(held)
