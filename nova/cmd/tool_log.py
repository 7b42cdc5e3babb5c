"""Log set-up of tools: an operator at a terminal reads a tool's output, not its log.

nova-manage writes a log next to the services' logs, in ``[DEFAULT]log_dir``: who ran which command, and its result. If
the log cannot be written, commands run nevertheless, unless the command line requests the log.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import warnings
from collections.abc import Sequence

from nova import logs
from nova.cmd import common
from nova.conf._options import Options

MODE = 0o640
DEBUG = {"-d", "--debug"}
#: Command-line options that request a log.
ASKED = ("--log", "--use-syslog", "--use_syslog", "--use-json", "--use_json")


class _Quiet(logging.StreamHandler):  # type: ignore[type-arg, unused-ignore]
    """A handler that ignores lines that cannot be written: the disk is full, but the command works."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing."""


def set_up(options: Options, binary: str, words: Sequence[str], keeps_one: bool = False) -> None:
    """Set up the log. ``words``: the command line's options about logs. ``keeps_one``: whether the program has a file
    in ``log_dir``. Warnings of libraries, and lines that services would log, are shown only with --debug."""
    if any(word.startswith(ASKED) for word in words):
        common.open_log(options, binary)
        return
    talks = not DEBUG.isdisjoint(words)
    if not talks:
        warnings.simplefilter("ignore")
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.DEBUG if talks else logging.ERROR)
    terminal.setFormatter(logs.OneLine() if talks else logging.Formatter("%(message)s"))
    handlers: list[logging.Handler] = [terminal]
    if keeps_one and options.log_dir and (kept := _file(options.log_dir, binary)) is not None:
        kept.setFormatter(logs.OneObject(binary, options.host) if options.use_json else logs.OneLine())
        handlers.append(kept)
    for handler in handlers:
        logging.getLogger().addHandler(handler)
    logs.set_levels(options)


def _file(folder: str, binary: str) -> logging.Handler | None:
    """Return a handler for the log file; None if this user cannot write it. A new file gets the owner of the directory,
    so that a first command by root does not lock out other users; links are not followed, because the directory does
    not belong to root."""
    path = os.path.join(folder, f"{binary}.log")
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, MODE)
            if os.geteuid() == 0:
                owned = os.stat(folder)
                os.fchown(descriptor, owned.st_uid, owned.st_gid)
        except FileExistsError:
            descriptor = os.open(path, flags)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return _Quiet(os.fdopen(descriptor, "a"))

