"""Failure knobs: make the fake driver fail, wait, block or die at a chosen call.

Within a process: :meth:`Knobs.fail_next`, :meth:`Knobs.delay`, :meth:`Knobs.block`. From outside a running daemon:
the file ``state_path/fake-knobs.json``, read again at each call::

    {"rules": [
      {"call": "start_new", "do": "fail", "name": "bad-*", "kind": "host_refused", "message": "no luck"},
      {"call": "create_disks", "do": "delay", "seconds": 2.5},
      {"call": "start_new", "do": "block"},                       # until the rule leaves the file
      {"call": "destroy", "do": "die", "when": "after", "times": 1},  # kill -9 of the process
      {"call": "*", "do": "power", "name": "vm1", "power_state": 4}   # the guest stops by itself, once
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
LOOK_AGAIN_S = 0.02  # how soon a released call goes on


class KnobRule(Value):
    """What to ``do`` (fail, delay, block, die, power) at a ``call``, for servers whose name or uuid matches ``name``.

    ``times`` None means always. ``kind`` is one of ``errors.KINDS``, or ``crash`` for an exception nobody foresaw.
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
        """Whether the rule speaks of this moment of the call (``when``: before or after its work). One of the server's
        ``names`` that fits the pattern is enough; it tells capital letters from small ones."""
        return (self.when == when and self.call in (call, "*")
                and any(fnmatch.fnmatchcase(name, self.name) for name in names))


class _File(Value):
    rules: tuple[KnobRule, ...] = ()


class Block:
    """A call that waits: ``reached`` is set when the first one is there; :meth:`release` lets all go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        """Let go on who waits, and who comes later. It may be called again."""
        self._released.set()

    def wait(self, timeout_s: float = 60.0) -> None:
        """Say that the call is here, and wait for ``release``. After ``timeout_s`` it goes on all the same."""
        self.reached.set()
        self._released.wait(timeout_s)


class _Own:
    """A rule of this process, and how often it was used."""

    def __init__(self, rule: KnobRule, block: Block | None) -> None:
        self.rule, self.block, self.used = rule, block, 0


class Knobs:
    """All rules in force. ``state_path`` None: only those of this process."""

    def __init__(self, state_path: Path | None = None) -> None:
        self._file = state_path / FILE if state_path else None
        self._blocked = state_path / "fake" / "blocked" if state_path else None
        self._own: list[_Own] = []
        self._used: dict[KnobRule, int] = {}  # of the file's rules
        self._lock = threading.Lock()
        self._last: tuple[KnobRule, ...] = ()

    def fail_next(self, call: str, error: str = "bug", name: str = "*", when: str = "before", times: int = 1) -> None:
        """The next ``times`` calls of ``call`` fail; ``when`` after: only once the work is done."""
        self.add(KnobRule(call=call, do="fail", kind=error, name=name, when=when, times=times))

    def delay(self, call: str, seconds: float, name: str = "*") -> None:
        """Every call of ``call`` waits ``seconds`` before its work, until ``clear``."""
        self.add(KnobRule(call=call, do="delay", seconds=seconds, name=name))

    def block(self, call: str, name: str = "*", when: str = "before") -> Block:
        """Calls of ``call`` wait until the answer's ``release()``."""
        block = Block()
        self.add(KnobRule(call=call, do="block", name=name, when=when), block)
        return block

    def add(self, rule: KnobRule, block: Block | None = None) -> None:
        """A rule for this process alone, in force until ``clear``. ``block``: what the calls of a rule that blocks wait
        for."""
        with self._lock:
            self._own.append(_Own(rule, block))

    def clear(self) -> None:
        """Forget the rules of this process, and release what is blocked."""
        with self._lock:
            own, self._own = self._own, []
        for each in own:
            if each.block is not None:
                each.block.release()

    def apply(self, call: str, when: str, names: tuple[str, ...]) -> None:
        """Do what the rules say at this call; raises what they say."""
        for own in list(self._own):
            if own.rule.matches(call, when, names) and self._take_own(own):
                self._act(own.rule, call, names, own.block)
        for rule in self._from_file():
            if rule.do != "power" and rule.matches(call, when, names) and self._take(rule):
                self._act(rule, call, names, None)

    def power_changes(self) -> Iterator[KnobRule]:
        """Power rules of the file; each one once, until it leaves the file."""
        for rule in self._from_file():
            if rule.do == "power" and self._take(msgspec.structs.replace(rule, times=1)):
                yield rule

    def _take_own(self, own: _Own) -> bool:
        with self._lock:
            own.used += 1
            return own.rule.times is None or own.used <= own.rule.times

    def _take(self, rule: KnobRule) -> bool:
        """Whether a rule of the file has a time left; takes it."""
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
        """Wait while the file has the rule, and show that we do."""
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
        LOG.error("%s is not valid (see nova/devel/fake/knobs.py); the rules before it stay in force", self._file)
        return self._last

    def _forget_absent(self) -> None:
        """A rule that left the file and comes back counts from nought again."""
        if not self._used:
            return
        present = {*self._last, *(msgspec.structs.replace(rule, times=1) for rule in self._last)}
        with self._lock:
            for rule in [rule for rule in self._used if rule not in present]:
                del self._used[rule]
