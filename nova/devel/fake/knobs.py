"""Failure knobs: make the fake driver fail, wait, block or die at a chosen call.

Within a process: :meth:`Knobs.fail_next`, :meth:`Knobs.delay`, :meth:`Knobs.block`. From outside a running service: the
file ``state_path/fake-knobs.json``, read again at each call::

    {"rules": [
      {"call": "start_new", "do": "fail", "name": "bad-*", "kind": "host_refused", "message": "no luck"},
      {"call": "create_disks", "do": "delay", "seconds": 2.5},
      {"call": "start_new", "do": "block"},                       # until the rule is removed from the file
      {"call": "destroy", "do": "die", "when": "after", "times": 1},  # kill -9 of the process
      {"call": "*", "do": "power", "name": "vm1", "power_state": 4}   # the guest shuts itself down, once
    ]}

While a call is blocked, ``state_path/fake/blocked/CALL.UUID`` exists. Replace the file by a rename, never in place.
"""

from __future__ import annotations

import contextlib
import fnmatch
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nova import concurrency, decoding, errors
from nova.model.base import Value

LOG = logging.getLogger(__name__)

FILE = "fake-knobs.json"
LOOK_AGAIN_S = 0.02  # polling interval of a blocked call


class KnobRule(Value):
    """A rule: what to ``do`` (fail, delay, block, die, power) at a ``call``, for servers whose name or uuid matches
    ``name``.

    ``times`` None means always. ``kind`` is one of ``errors.KINDS``, or ``crash`` for an unexpected exception.
    """

    call: str
    do: str = "fail"
    name: str = "*"
    when: str = "before"
    times: int | None = None
    kind: str = "bug"
    message: str | None = None
    seconds: float = 0.0
    power_state: int = 4

    def matches(self, call: str, when: str, names: tuple[str, ...]) -> bool:
        """Return whether the rule applies to the call at this time (``when``: before or after its work). One matching
        name of ``names`` is enough; the pattern is case-sensitive."""
        return (self.when == when and self.call in (call, "*")
                and any(fnmatch.fnmatchcase(name, self.name) for name in names))


class _File(Value):
    rules: tuple[KnobRule, ...] = ()


class Block:
    """A blocking rule for calls: ``reached`` is set when the first one blocks; :meth:`release` resumes all."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        """Resume waiting calls, and let later ones pass. May be called twice."""
        self._released.set()

    def wait(self, timeout_s: float = 60.0) -> None:
        """Signal that the call has arrived, and wait for ``release``. It continues after ``timeout_s`` anyway."""
        self.reached.set()
        self._released.wait(timeout_s)


class _Own:
    """A rule of this process, with the number of its uses."""

    def __init__(self, rule: KnobRule, block: Block | None) -> None:
        self.rule, self.block, self.used = rule, block, 0


class Knobs:
    """All active rules. ``state_path`` None: only those of this process."""

    def __init__(self, state_path: Path | None = None) -> None:
        self._file = state_path / FILE if state_path else None
        self._blocked = state_path / "fake" / "blocked" if state_path else None
        self._own: list[_Own] = []
        self._used: dict[KnobRule, int] = {}  # of the file's rules
        self._lock = threading.Lock()
        self._last: tuple[KnobRule, ...] = ()

    def fail_next(self, call: str, error: str = "bug", name: str = "*", when: str = "before", times: int = 1) -> None:
        """Let the next ``times`` calls of ``call`` fail; ``when`` after: only once the work is done."""
        self.add(KnobRule(call=call, do="fail", kind=error, name=name, when=when, times=times))

    def delay(self, call: str, seconds: float, name: str = "*") -> None:
        """Let every call of ``call`` wait ``seconds`` before its work, until ``clear``."""
        self.add(KnobRule(call=call, do="delay", seconds=seconds, name=name))

    def block(self, call: str, name: str = "*", when: str = "before") -> Block:
        """Let calls of ``call`` wait until ``release()`` of the returned block."""
        block = Block()
        self.add(KnobRule(call=call, do="block", name=name, when=when), block)
        return block

    def add(self, rule: KnobRule, block: Block | None = None) -> None:
        """Add a rule for this process only, until ``clear``. ``block``: the block of a blocking rule."""
        with self._lock:
            self._own.append(_Own(rule, block))

    def clear(self) -> None:
        """Remove the rules of this process, and resume blocked calls."""
        with self._lock:
            own, self._own = self._own, []
        for each in own:
            if each.block is not None:
                each.block.release()

    def apply(self, call: str, when: str, names: tuple[str, ...]) -> None:
        """Apply the rules to this call; raises their errors."""
        for own in list(self._own):
            if own.rule.matches(call, when, names) and self._take_own(own):
                self._act(own.rule, call, names, own.block)
        for rule in self._from_file():
            if rule.do != "power" and rule.matches(call, when, names) and self._take(rule):
                self._act(rule, call, names, None)

    def power_changes(self) -> Iterator[KnobRule]:
        """Yield each power rule of the file once, until it is removed from the file."""
        for rule in self._from_file():
            if rule.do == "power" and self._take(msgspec.structs.replace(rule, times=1)):
                yield rule

    def _take_own(self, own: _Own) -> bool:
        with self._lock:
            own.used += 1
            return own.rule.times is None or own.used <= own.rule.times

    def _take(self, rule: KnobRule) -> bool:
        """Return whether a rule of the file has uses left; consumes one."""
        if rule.times is None:
            return True
        with self._lock:
            used = self._used.get(rule, 0)
            self._used[rule] = used + 1
            return used < rule.times

    def _act(self, rule: KnobRule, call: str, names: tuple[str, ...], block: Block | None) -> None:
        if rule.do == "delay":
            concurrency.sleep(rule.seconds)
        elif rule.do == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif rule.do == "block":
            block.wait() if block else self._wait_for_file(rule, call, names)
        elif rule.kind == "crash":
            raise RuntimeError(rule.message or f"injected into {call}")
        elif rule.kind in errors.KINDS and rule.kind != "bug":
            raise errors.KINDS[rule.kind](rule.message or errors.guest.FakeInjected(call=call).message)
        else:
            raise errors.guest.FakeInjected(rule.message, call=call)

    def _wait_for_file(self, rule: KnobRule, call: str, names: tuple[str, ...]) -> None:
        """Wait while the file has the rule; a marker file exists meanwhile."""
        assert self._blocked is not None
        sign = self._blocked / f"{call}.{names[0]}"
        self._blocked.mkdir(parents=True, exist_ok=True)
        sign.touch()
        try:
            while rule in self._from_file():
                time.sleep(LOOK_AGAIN_S)
        finally:
            sign.unlink(missing_ok=True)

    def _from_file(self) -> tuple[KnobRule, ...]:
        if self._file is None:
            return ()
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            self._last = ()
            self._forget_absent()
            return ()
        with contextlib.suppress(msgspec.MsgspecError):
            self._last = decoding.from_json(content, _File).rules
            self._forget_absent()
            return self._last
        LOG.error("%s is not valid (see nova/devel/fake/knobs.py); the previous rules stay active", self._file)
        return self._last

    def _forget_absent(self) -> None:
        """Reset the use counts of rules that were removed from the file."""
        if not self._used:
            return
        present = {*self._last, *(msgspec.structs.replace(rule, times=1) for rule in self._last)}
        with self._lock:
            for rule in [rule for rule in self._used if rule not in present]:
                del self._used[rule]
