"""Fault injection for tests: a process dies or stops at a named point, as if it were killed there.

Inert unless ``NOVA_FAULT_POINT`` is in the environment when the process starts. The format is
``ACTION:STEP:WHEN:WHAT``, or ``@FILE`` for a file with that content. The first process that reaches the file's point
removes the file, so that only one process is hit. WHEN is ``before`` or ``after`` (the step's work; its intent is in
the journal by then), ``undo`` or ``undone``. WHAT: ``kill`` (SIGKILL) or ``pause`` (SIGSTOP; SIGCONT resumes the
process).
"""

from __future__ import annotations

import contextlib
import os
import signal

SWITCH = "NOVA_FAULT_POINT"
SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}

_armed = os.environ.get(SWITCH, "")


def reached(action: str, step: str, when: str) -> None:
    """Trigger the fault if this process has reached its point."""
    if _armed:
        _hit(f"{action}:{step}:{when}:")


def _hit(point: str) -> None:
    said = _read(_armed[1:]) if _armed.startswith("@") else _armed
    if said.startswith(point) and (said is _armed or _take(_armed[1:])):
        os.kill(os.getpid(), SIGNALS[said.removeprefix(point)])


def _read(path: str) -> str:
    with contextlib.suppress(FileNotFoundError), open(path) as file:
        return file.read().strip()
    return ""


def _take(path: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        return True
    return False
