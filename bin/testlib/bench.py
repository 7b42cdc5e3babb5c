"""The test environment, and the parts that run in it."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

from stacklib import packages, venvs
from stacklib.layout import PLAIN_STATE, Choices, Layout
from stacklib.stages import Progress, Stage, last_step
from testlib import budgets, reports
from testlib.covered import Covered
from testlib.parts import BUDGETS_S, CHECKS, CYCLES, FUZZ_S, GREEN_NATIVE_IN, LONG_TESTS, PARTS, Part
from testlib.reports import Count
from testlib.shares import Share, changed_in, seed_of, shares_of
from testlib.turns import places

TOP = Path(__file__).resolve().parents[2]
UNSTEADY = 4  # up to this many failures may be the effect of a busy machine
NOTHING_RAN = 5  # as pytest's exit status
RAN = (0, 1, NOTHING_RAN)
SLOWEST = 12  # number of files that the end of a part lists


class Failed(NamedTuple):
    """A test, and the mode of the process in which it failed (None: the environment's default)."""

    name: str
    mode: str | None


def results_file() -> Path:
    """Return the file of the turns that passed on this machine, for all checkouts. A rebuild of the environments does
    not remove it."""
    return Layout(PLAIN_STATE, Choices()).venvs / "turns.jsonl"


def _for(share: Share, options: list[str]) -> list[str]:
    """Return pytest's options for a share; without --only-turns if all of its files belong to a turn."""
    return [word for word in options if not share.turns or not word.startswith("--only-turns")]


class Bench:
    def __init__(self, seed: int | None = None) -> None:
        self.layout = Layout(PLAIN_STATE, Choices())
        self.log = Path(tempfile.gettempdir()) / f"nova-test-install-{os.getuid()}.log"
        self.long = False  # everything, no samples
        self.seed = seed_of(TOP) if seed is None else seed
        self.output: IO[bytes] | None = None  # pytest's output, of a part that runs while another one prints
        self.cycles: tuple[int, ...] = ()  # run only cases with a turn in one of these; empty: all cases
        self.seconds: Counter[str] = Counter()  # of a part's files
        self.left_out: Counter[str] = Counter()  # of a part
        self.covered = Covered()  # by a part
        self.processor_s: list[float] = []  # of each process of a part, with its children
        self.slower = budgets.slowness()  # slowness factor against the machine of the budgets, measured before all runs
        self.bin = self.layout.venvs / "test" / "bin"
        # outside of the checkout; without a cache, each process compiles all modules and rewrites all assertions
        self.bytecode = self.layout.venvs / "test" / "bytecode"

    def beside(self) -> Bench:
        """Return a second bench for the same samples, for a part that runs in parallel. It prints at its end."""
        other = Bench(self.seed)
        other.output = tempfile.TemporaryFile()  # noqa: SIM115 - it ends with the process
        return other

    def install(self, parts: tuple[str, ...], environments: tuple[str, ...] = ()) -> None:
        progress, builder = Progress(), venvs.Builder(self.layout, self.log)
        at = functools.partial(last_step, self.log)
        print(f"-- installing the tests' dependencies; the full output is in {self.log}", flush=True)
        if os.getuid() == 0:
            progress.timed(Stage("packages", lambda: packages.install(("nova", *parts), self.log), at=at))
        for name in ("test", *environments):
            progress.timed(Stage(f"venv {name}", getattr(builder, name), at=at))
        print(f"-- installed in {progress.total():.0f} s", flush=True)

    def run(self, command: tuple[str, ...], output: IO[bytes] | None = None, **environment: str) -> int:
        program = str(self.bin / command[0]) if (self.bin / command[0]).exists() else command[0]
        path = f"{self.bin}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        # this variable would make each process compile all its libraries: there is no bytecode at the cache prefix
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "PATH": path, "PYTHONPATH": str(TOP), "PYTHONPYCACHEPREFIX": str(self.bytecode), **environment}
        process = subprocess.Popen([program, *command[1:]], cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_s.append(usage.ru_utime + usage.ru_stime)
        return process.returncode

    # --- parts

    def check(self) -> Count:
        total = Count()
        for name, command in CHECKS.items():
            print(f"-- check: {name}", flush=True)
            total += (1, 0, 0) if self.run(command) == 0 else (0, 1, 0)
        return total

    def pytest(self, name: str, extra: list[str]) -> Count:
        part = PARTS[name]
        folders = [folder for folder in part.folders if (TOP / folder).is_dir()]
        given = [word for word in extra if (TOP / word.split("::")[0]).exists()]
        print(f"-- {name}: {' '.join(given or folders)}", flush=True)
        limit_s = part.test_s * (LONG_TESTS if self.long else 1)
        # the method "thread" also ends a test that blocks in a C function or in eventlet's hub
        options = ["--durations=5", f"--timeout={limit_s}", "--timeout-method=thread", *self._chosen(),
                   *self._selected(), *([] if given else ["--in-turn"]), *extra]
        if (part.plain or part.beside) and not given:
            count, failed = self._side_by_side(self._shares(part), options)
        else:
            workers = ["-n", str(part.workers)] if part.workers > 1 else []
            workers += ["--dist", "loadfile", "--no-loadscope-reorder"] if part.whole_files else []
            count, failed = self._pytest([*workers, *options, *([] if given else folders)])
        if 0 < len(failed) <= UNSTEADY and len(failed) == count.failed:
            count = self._once_more(count, failed)
        return count

    def known(self, name: str) -> Covered:
        """Return all turns of a part, by collecting its tests; none of them has passed."""
        found = Covered()
        for of in (*CYCLES.get(name, ()), *([GREEN_NATIVE_IN] if PARTS[name].green else [])):
            found.known.update(places(of, 0, every=True))
        if PARTS[name].folders:
            with tempfile.TemporaryDirectory() as folder, open(os.devnull, "wb") as nowhere:
                told = Path(folder, "told")
                self.run(("python", "-m", "pytest", "--collect-only", f"--told-to={told}", *PARTS[name].folders),
                         nowhere)
                found.add(reports.told(told).turns)
        return found

    def bench(self, module: str, extra: list[str]) -> int:
        return self.run(("python", "-m", module, *extra))

    def fuzz(self, extra: list[str]) -> Count:
        """Fuzz the API for the given seconds; ``--nova-seed N`` after them repeats a run."""
        seconds = extra.pop(0) if extra and extra[0].isdigit() else FUZZ_S
        os.environ["NOVA_FUZZ_SECONDS"] = seconds
        print(f"-- fuzz: {seconds} s", flush=True)
        return self._pytest(["-n", "0", *self._chosen(), "tests/functional/test_fuzz.py", *extra])[0]

    def tempest(self, extra: list[str]) -> Count:
        count = self._counted("tests.tempest", [*([] if extra or self.long else [f"--turn={self.seed}"]), *extra])
        if count.passed:
            had = [place for of in CYCLES["tempest"] for place in places(of, self.seed, self.long)]
            self.covered.whole(had, None if count.failed else [])
        return count + self._counted("tests.tempest", ["--cells"]) if self.long and not extra else count

    def clients(self, extra: list[str]) -> Count:
        return self._counted("tests.clients", extra)

    def mutations(self, extra: list[str]) -> Count:
        return self._counted("tests.mutations", extra)

    def docs(self, extra: list[str]) -> Count:
        return Count(1, 0, 0) if self.run(("python", "-m", "tests.docs", *extra)) == 0 else Count(0, 1, 0)

    def told(self, name: str, whole: bool) -> bool:
        """Print the cost of a part and the number of tests that did not run. Return False if it exceeds its budget,
        which is checked only if the part ran as a ``whole``."""
        kept = True
        if self.output is not None:
            self.output.seek(0)
            print(self.output.read().decode(errors="replace"), end="", flush=True)
        if self.seconds:
            slowest = ", ".join(f"{file} {spent:.0f}" for file, spent in self.seconds.most_common(SLOWEST))
            print(f"-- {name}: slowest files, in seconds: {slowest}", flush=True)
        if whole and not self.long and not self.cycles and name in BUDGETS_S:
            slower = max(self.slower, budgets.slowness())  # the load by other processes may have changed
            kept, line = budgets.verdict(name, sum(self.processor_s), BUDGETS_S[name], slower)
            print(line, flush=True)
        if line := reports.in_words(self.left_out):
            print(f"-- {name}: {line}", flush=True)
        self.seconds.clear()
        self.left_out.clear()
        self.covered = Covered()
        self.processor_s.clear()
        return kept

    # --- inside

    def _chosen(self) -> list[str]:
        return [f"--nova-seed={self.seed}", *(["--long"] if self.long else [])]

    def _selected(self) -> list[str]:
        if self.cycles:
            return [f"--only-turns={','.join(map(str, self.cycles))}"]
        return [f"--changed={','.join(changed_in(TOP))}"]

    def _shares(self, part: Part) -> list[Share]:
        """Return the part's shares that have tests to run."""
        shares = shares_of(part, TOP, self.seed, self.long)
        if not self.cycles:
            return shares
        others = [one for one in shares if not one.turns] if {*self.cycles} != {GREEN_NATIVE_IN} else []
        chosen = others + [one for one in shares if {place.of for place in one.turns} & {*self.cycles}]
        self.covered.complete &= len(chosen) == len(shares)  # turns of the other shares still exist
        return chosen

    def _counted(self, module: str, words: list[str]) -> Count:
        """Run a module that runs other projects' tests, and return the numbers that it writes to ``--counts``."""
        with tempfile.TemporaryDirectory() as folder:
            counts = Path(folder, "counts")
            code = self.run(("python", "-m", module, f"--counts={counts}", *words))
            count = Count(*map(int, counts.read_text().split())) if counts.exists() else Count()
        # a test that must pass was skipped, or the module ended without a result
        return count + (0, 1, 0) if code and not count.failed else count

    def _side_by_side(self, shares: list[Share], options: list[str]) -> tuple[Count, list[Failed]]:
        """Run each share's files in its own process; print the output of the first one directly, the others' later."""
        with contextlib.ExitStack() as stack:
            outputs = [None, *(stack.enter_context(tempfile.TemporaryFile()) for _ in shares[1:])]
            pool = stack.enter_context(ThreadPoolExecutor(len(shares)))
            runs = [pool.submit(self._pytest, ["-n", "0", *_for(share, options), *share.files], output, share.mode,
                                share.core)
                    for share, output in zip(shares, outputs, strict=True)]
            results = [run.result() for run in runs]
            for share, (count, failed) in zip(shares, results, strict=True):
                if share.turns and count.passed:
                    names = [one.name for one in failed]
                    self.covered.whole(share.turns, names if len(names) >= count.failed else None)
            for output in filter(None, outputs):
                output.seek(0)
                print(output.read().decode(errors="replace"), end="", flush=True)
        return sum((count for count, _ in results), Count()), [one for _, failed in results for one in failed]

    def _pytest(self, words: list[str], output: IO[bytes] | None = None,
                mode: str | None = None, core: bool = False) -> tuple[Count, list[Failed]]:
        """Run pytest; return the counts and the failed tests. ``core``: make only the core importable
        (``tests/core_only.py``)."""
        with tempfile.TemporaryDirectory() as folder:
            report, told = Path(folder, "report.xml"), Path(folder, "told")
            chosen = {**({"NOVA_CONCURRENCY": mode} if mode else {}), **({"NOVA_TEST_CORE": "1"} if core else {})}
            code = self.run(("python", "-m", "pytest", f"--junitxml={report}", f"--told-to={told}", *words),
                            output or self.output, **chosen)
            count, (failed, left_out, turns) = reports.count_of(report), reports.told(told)
            self.seconds += reports.seconds_by_file(report)
            self.left_out += left_out
            self.covered.add(turns if code in RAN else {})
        if code not in (0, NOTHING_RAN) and not count.failed:
            count += (0, 1, 0)  # it ended without a report
        return count, [Failed(name, mode) for name in failed]

    def _once_more(self, count: Count, failed: list[Failed]) -> Count:
        """Run a few failed tests again, alone, and report how many of them were unsteady because of a busy machine."""
        print(f"-- run again, alone: {' '.join(one.name for one in failed)}", flush=True)
        again = 0
        for mode in dict.fromkeys(one.mode for one in failed):
            names = [one.name for one in failed if one.mode == mode]
            second, still = self._pytest([*self._chosen(), *names], mode=mode)
            again += second.failed
            self.covered.excuse({*names} - {one.name for one in still} if len(still) >= second.failed else ())
        steady = len(failed) - again
        print(f"-- unsteady: {steady} of {len(failed)} passed at the second attempt", flush=True)
        return Count(count.passed + steady, count.failed - steady, count.skipped)
