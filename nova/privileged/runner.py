"""Runs system programs; no other module does. Argument lists with limits of time and output, never a shell.

Output goes to files in memory instead of pipes: a child of the program that keeps the output open does not delay the
caller, and no reader is needed. The caller polls, because the standard library's own timeout raises another class if
eventlet has replaced its modules. This module behaves the same in green and in native threads.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple, Protocol

from nova import concurrency, errors, failures

LOG = logging.getLogger(__name__)

Process = subprocess.Popen[bytes]

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECRETS = re.compile(r"(file\.export=|\"export\": *\"|nbd://[^/]*/)[^,\"\s]+")
LONGEST_COMPLAINT = 400  # characters of stderr in a message
MAX_OUTPUT = 16 << 20  # bytes, of stdout and of stderr each
FIRST_LOOK_S, LAST_LOOK_S = 0.001, 0.05
#: A killed program that waits in the kernel (a hanging device) does not end. It is abandoned after this time.
DEATH_S = 2.0
REASONS = {errno.EAGAIN: "the system cannot start more processes", errno.EACCES: "it may not be executed",
           errno.ENOEXEC: "it is not an executable for this machine",
           errno.ENOMEM: "there is not enough memory to start it"}


class Completed(NamedTuple):
    """Result of a program: exit code (below 0: the signal that ended it), and its output as text."""

    code: int
    stdout: str = ""
    stderr: str = ""


class CommandRunner(Protocol):
    """Interface to run programs; in unit tests, a class that records them as data."""

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        """Run the program to its end. Raises host.CommandFailed if it cannot be started, exceeds the output limit, or
        returns a code not in ``ok``; host.CommandTooSlow."""


class SystemRunner:
    """Runs real programs with the system's search path and the C locale, for at most ``timeout_s`` seconds.
    ``descriptors``: file descriptors of this process that they inherit."""

    umask = -1  # of the programs; -1: that of this process

    def __init__(self, timeout_s: float = 30.0, descriptors: tuple[int, ...] = ()) -> None:
        self.timeout_s, self._descriptors = timeout_s, descriptors

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        with _in_memory() as given, _in_memory() as output, _in_memory() as complaints:
            given.write((stdin or "").encode())
            given.seek(0)
            process = _started(argv, {**system_environment(), **(environment or {})}, given, (output, complaints),
                               _Given(self.umask, self._descriptors))
            # an interrupted caller leaves no process behind: it has its own group
            with failures.on_failure(lambda: _kill(process), on=BaseException):
                self._wait(process, argv, (output, complaints))
            done = Completed(process.returncode, _text(output), _text(complaints))
        LOG.debug("ran %s: exit %d", hide(" ".join(argv)), done.code)
        if done.code not in ok:
            complaint = hide((done.stderr or done.stdout).strip())[:LONGEST_COMPLAINT]
            raise _failed(argv, complaint or _how_it_ended(done.code))
        return done

    def _wait(self, process: Process, argv: Sequence[str], outputs: Collection[BinaryIO]) -> None:
        until, pause = time.monotonic() + self.timeout_s, FIRST_LOOK_S
        while process.poll() is None:
            self._check_wanted()
            if time.monotonic() > until:
                _kill(process)
                raise _failed(argv, f"it took longer than {self.timeout_s:g} s", errors.host.CommandTooSlow)
            _check_size(process, argv, outputs)
            concurrency.sleep(pause)
            pause = min(2 * pause, LAST_LOOK_S)
        _check_size(process, argv, outputs)


    def _check_wanted(self) -> None:
        """Do nothing: most programs are quick, and some clean up, so they run to their end. Subclasses may raise."""


class PrivateRunner(SystemRunner):
    """Runner for programs that write guests' disks: other users cannot read their files, not even while they are being
    written. A copy that is no longer wanted is aborted (``concurrency.cancellable``)."""

    umask = 0o077

    def _check_wanted(self) -> None:
        concurrency.check_cancelled()


class Conversation:
    """A line-based dialogue with a program.

    Uses a socket: eventlet's pipes try forever to write to a program that has ended.
    """

    def __init__(self, process: Process, channel: socket.socket) -> None:
        self.process, self._channel, self._lines = process, channel, channel.makefile("rb")

    def say(self, line: bytes) -> None:
        """Send a line. Raises OSError if the program has ended."""
        self._channel.sendall(line)

    def hear(self) -> bytes:
        """Return the next line; empty if the program has ended."""
        with contextlib.suppress(ConnectionError):  # it did not read the last line that was sent
            return self._lines.readline()
        return b""

    def end(self) -> None:
        """Kill the program and its children immediately."""
        _kill(self.process)

    def close(self) -> None:
        self._lines.close()
        self._channel.close()


@contextlib.contextmanager
def conversation(argv: Sequence[str], timeout_s: float, descriptors: tuple[int, ...] = ()) -> Iterator[Conversation]:
    """Start a program that outlives the conversation; after ``timeout_s`` it is killed, which ends a conversation that
    hangs. It leads its own process group, and inherits these ``descriptors``. Raises host.CommandFailed if it cannot be
    started."""
    ours, theirs = socket.socketpair()
    os.set_blocking(theirs.fileno(), True)  # eventlet makes both ends non-blocking
    try:
        with failures.replaced((OSError, ValueError), lambda error: _failed(argv, _why_not(argv, error))), \
                failures.on_failure(ours.close, on=(OSError, ValueError)):
            process = subprocess.Popen(list(argv), stdin=theirs.fileno(), stdout=theirs.fileno(),
                                       stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
                                       pass_fds=descriptors, env={"PATH": SYSTEM_PATH, "LC_ALL": "C"})
    finally:
        theirs.close()
    over = threading.Event()
    concurrency.spawn(_kill_unless, over, process, timeout_s, name="conversation")
    talk = Conversation(process, ours)
    try:
        yield talk
    finally:
        over.set()
        talk.close()
        concurrency.spawn(process.wait, name=argv[0])  # reaps the process, if this one still exists then


def system_environment() -> dict[str, str]:
    """Return the environment of system programs: that of this process, with their own search path and messages in
    English."""
    return {**os.environ, "LC_ALL": "C", "PATH": SYSTEM_PATH}


def hide(text: str) -> str:
    """Return the text without the names of exports, which are secrets (``nova.privileged.disk_exports``)."""
    return SECRETS.sub(r"\1***", text)


class _Given(NamedTuple):
    """Process attributes that a program gets."""

    umask: int
    descriptors: tuple[int, ...]


def _started(argv: Sequence[str], environment: Mapping[str, str], given: BinaryIO, outputs: tuple[BinaryIO, BinaryIO],
             more: _Given) -> Process:
    output, complaints = outputs
    with failures.replaced((OSError, ValueError), lambda error: _failed(argv, _why_not(argv, error))):
        return subprocess.Popen(list(argv), stdin=given, stdout=output, stderr=complaints, env=environment,
                                start_new_session=True, umask=more.umask, pass_fds=more.descriptors)


def _why_not(argv: Sequence[str], error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{argv[0]} is not installed"
    if isinstance(error, OSError) and error.errno in REASONS:
        return f"{REASONS[error.errno]} ({error.strerror})"
    return str(error)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    known = -code in signal.Signals.__members__.values()
    return f"it was ended by {signal.Signals(-code).name if known else f'signal {-code}'}"


def _check_size(process: Process, argv: Sequence[str], outputs: Collection[BinaryIO]) -> None:
    if any(os.fstat(output.fileno()).st_size > MAX_OUTPUT for output in outputs):
        _kill(process)
        raise _failed(argv, f"it wrote more than {MAX_OUTPUT >> 20} MB")


def _kill(process: Process) -> None:
    """Kill the program and its children, and wait briefly for its end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + DEATH_S
    while process.poll() is None and time.monotonic() < until:
        concurrency.sleep(0.01)


def _kill_unless(over: threading.Event, process: Process, timeout_s: float) -> None:
    if not over.wait(timeout_s):
        LOG.warning("%s did not answer within %g s; killing it", process.args[0], timeout_s)  # type: ignore[index]
        _kill(process)


def _in_memory() -> BinaryIO:
    return open(os.memfd_create("nova-command"), "w+b", buffering=0)


def _text(output: BinaryIO) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")


def _failed(argv: Sequence[str], reason: str,
            kind: type[errors.Unavailable] = errors.host.CommandFailed) -> errors.Unavailable:
    return kind(command=argv[0], where=os.uname().nodename, reason=reason)
