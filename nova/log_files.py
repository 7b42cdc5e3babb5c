"""The file that log lines go to: turned by the daemon itself (``log_rotation_type``), or by logrotate.

A daemon's workers write the same file. Whoever finds it due turns it, under a lock on the file; the others go on in the
new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import logging.handlers
import os
import time
from collections.abc import Iterator

from nova.conf.base import Options

MB = 2 ** 20
#: log_rotate_interval_type -> the name of the standard library.
INTERVALS = {"seconds": "S", "minutes": "M", "hours": "H", "days": "D", "weekday": "W", "midnight": "MIDNIGHT"}


def opened(conf: Options, path: str) -> logging.Handler:
    """A handler for the file, as ``conf`` says. OSError."""
    kind = conf.log_rotation_type.lower()
    if kind == "size":
        return BySize(path, maxBytes=conf.max_logfile_size_mb * MB, backupCount=conf.max_logfile_count)
    if kind == "interval":
        when, interval = INTERVALS[conf.log_rotate_interval_type.lower()], conf.log_rotate_interval
        if when == "W":  # the interval is the day of the week then, Monday is 0
            when, interval = f"W{interval}", 1
        return ByTime(path, when=when, interval=interval, backupCount=conf.max_logfile_count)
    return logging.handlers.WatchedFileHandler(path)


class BySize(logging.handlers.RotatingFileHandler):
    """Turns the file before a line that would make it too large."""

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """Whether the line would make the file too large that the path leads to now."""
        _follow(self)
        return super().shouldRollover(record)  # type: ignore[no-any-return, misc, unused-ignore]

    def doRollover(self) -> None:
        """Turn the file, unless another process has done so."""
        with _turning(self) as mine:
            if mine:
                super().doRollover()


class ByTime(logging.handlers.TimedRotatingFileHandler):
    """Turns the file when its time is over."""

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """Whether the time is over of the file that the path leads to now."""
        if _follow(self):  # its time begins with it
            self.rolloverAt = self.computeRollover(int(time.time()))
        return super().shouldRollover(record)  # type: ignore[no-any-return, misc, unused-ignore]

    def doRollover(self) -> None:
        """Turn the file, unless another process has done so."""
        with _turning(self) as mine:
            if mine:
                super().doRollover()
            else:
                self.rolloverAt = self.computeRollover(int(time.time()))


def _descriptor(handler: logging.handlers.BaseRotatingHandler) -> int:
    assert handler.stream is not None, "the file was closed"
    return handler.stream.fileno()


def _is_other(handler: logging.handlers.BaseRotatingHandler) -> bool:
    """Whether the path leads to another file than the one that is open, or to none."""
    try:
        return not os.path.samestat(os.stat(handler.baseFilename), os.fstat(_descriptor(handler)))
    except FileNotFoundError:
        return True


def _follow(handler: logging.handlers.BaseRotatingHandler) -> bool:
    """Open what the path leads to, where another process turned the file; whether it did."""
    if handler.stream is None or not _is_other(handler):
        return False  # closed: the next line opens it
    handler.stream.close()
    handler.stream = handler._open()
    return True


@contextlib.contextmanager
def _turning(handler: logging.handlers.BaseRotatingHandler) -> Iterator[bool]:
    """Alone among the processes that have the file open. False: another one has turned it, and it is followed."""
    held = os.dup(_descriptor(handler))  # the lock outlives the stream, which is closed before files get new names
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield not _follow(handler)
    finally:
        os.close(held)
