"""Runs a program of the system: an argument list, bounded in time, never a shell."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from nova.errors import Unavailable

LOG = logging.getLogger(__name__)

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECRETS = re.compile(r"(file\.export=|\"export\": *\"|nbd://[^/]*/)[^,\"\s]+")
LONGEST_COMPLAINT = 400  # characters of stderr in a message


class CommandFailed(Unavailable):
    code = "host.command_failed"
    message = "`{command}` failed on {where}: {reason}"


class Completed(NamedTuple):
    """What a program left: exit code, and its output as text."""

    code: int
    stdout: str = ""
    stderr: str = ""


class Runner(Protocol):
    """What runs programs; in unit tests, something that records them as data."""

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        """Run to the end. CommandFailed: not installed, too slow, or an exit code that is not in ``ok``."""


class SystemRunner:
    """Runs programs for real, with the system's search path and the C locale, for at most ``timeout_s`` seconds."""

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.timeout_s = timeout_s

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        env = {**os.environ, "LC_ALL": "C", "PATH": SYSTEM_PATH, **(environment or {})}
        try:
            done = subprocess.run(list(argv), input=stdin, env=env, timeout=self.timeout_s,
                                  capture_output=True, text=True, errors="replace", check=False)
        except FileNotFoundError:
            raise _failed(argv, f"{argv[0]} is not installed") from None
        except OSError as error:
            raise _failed(argv, str(error)) from error
        except subprocess.TimeoutExpired:
            raise _failed(argv, f"it took longer than {self.timeout_s:g} s") from None
        LOG.debug("ran %s: exit %d", hide(" ".join(argv)), done.returncode)
        if done.returncode not in ok:
            complaint = hide((done.stderr or done.stdout).strip())[:LONGEST_COMPLAINT]
            raise _failed(argv, complaint or f"exit {done.returncode}")
        return Completed(done.returncode, done.stdout, done.stderr)


def hide(text: str) -> str:
    """Without the names of exports, which are secrets (``nova.privileged.disk_exports``)."""
    return SECRETS.sub(r"\1***", text)


def _failed(argv: Sequence[str], reason: str) -> CommandFailed:
    return CommandFailed(command=argv[0], where=os.uname().nodename, reason=reason)
