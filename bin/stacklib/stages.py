"""Stages with dependencies, run in parallel. Each prints a line when it ends, and one every ten seconds until then."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from .errors import StackError

WIDTH = 14
TELL_S = 10.0  # between two progress lines of a running stage
END_OF_LOG = 8192  # bytes at the end of the log that are searched for the last step
#: Lines of apt, dpkg, pip and uv that name the current step.
STEP = re.compile(r"^ ?(?:Get:\d+ \S+ \S+ \S+ (?P<fetched>\S+)|(?P<step>(?:Unpacking|Setting up|Collecting|Downloading|"
                  r"Downloaded|Prepared|Building|Built|Installed) [^\n]{1,60}))", re.M)


@dataclass(frozen=True)
class Stage:
    """One stage of a command. `work` returns a short summary; it begins when all of `after` have ended. `at` returns
    the current step, or an empty string."""

    name: str
    work: Callable[[], str]
    after: tuple[str, ...] = ()
    at: Callable[[], str] = str


class Progress:
    """Progress output; `seconds` has the duration of each stage."""

    def __init__(self, quiet: bool = False) -> None:
        self.begin = time.monotonic()
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()
        self._quiet = quiet

    def line(self, text: str) -> None:
        if not self._quiet:
            with self._lock:
                print(f"[{time.monotonic() - self.begin:6.1f}s] {text}", flush=True)

    def timed(self, stage: Stage) -> None:
        start = time.monotonic()
        with self._told_again(stage, start):
            words = stage.work()
        self.seconds[stage.name] = time.monotonic() - start
        self.line(f"{stage.name:{WIDTH}} {words} ({self.seconds[stage.name]:.1f} s)")

    @contextlib.contextmanager
    def _told_again(self, stage: Stage, start: float) -> Iterator[None]:
        """Print a progress line every TELL_S seconds: without output, a user would take the program for dead."""
        ended = threading.Event()

        def tell() -> None:
            while not ended.wait(TELL_S):
                step = stage.at()
                self.line(f"{stage.name:{WIDTH}} ... {time.monotonic() - start:.0f} s{f': {step}' if step else ''}")
        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def total(self) -> float:
        return time.monotonic() - self.begin


def last_step(log: Path) -> str:
    """Return the last step that an installer wrote to its log; empty if there is none yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - END_OF_LOG))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    found = list(STEP.finditer(text))
    if not found:
        return ""
    return found[-1]["step"] or f"fetching {found[-1]['fetched']}"


def run(stages: list[Stage], progress: Progress, workers: int = 8) -> None:
    """Run all stages. After a failure, start no new stage, wait for the running ones and raise the first failure."""
    names = {stage.name for stage in stages}
    left = [Stage(s.name, s.work, tuple(a for a in s.after if a in names)) for s in stages]
    done: set[str] = set()
    running: dict[Future, Stage] = {}
    failure: BaseException | None = None
    pool = ThreadPoolExecutor(workers)
    while left or running:
        for stage in [s for s in left if failure is None and set(s.after) <= done]:
            left.remove(stage)
            running[pool.submit(progress.timed, stage)] = stage
        if not running:
            break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            stage = running.pop(future)
            failure = _note(future, stage, progress, failure)
            done.add(stage.name)
    pool.shutdown()
    if failure:
        raise failure
    if left:
        raise StackError(f"stages depend on each other: {', '.join(s.name for s in left)}")


def _note(future: Future, stage: Stage, progress: Progress, before: BaseException | None) -> BaseException | None:
    """Report a failed stage and return the failure to raise: the first one, since later ones often follow from it."""
    error = future.exception()
    if error is None:
        return before
    progress.line(f"{stage.name:{WIDTH}} FAILED" + (f": {error}" if before else ""))
    return before or error
