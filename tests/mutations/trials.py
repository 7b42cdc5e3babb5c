"""What becomes of a mutation: whether the tests of its row, and none beside them, fail by it."""

from __future__ import annotations

import enum
import queue
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from tests.contract.proofs import FUNCTIONAL, MACHINE, Proof
from tests.mutations.copies import Case, Copy, Ran
from tests.mutations.form import Mutation

#: Tests that want daemons of others, or the whole machine for themselves.
LARGE = (f"{FUNCTIONAL}/", f"{MACHINE}/")
#: Errors of a mutation that is no code, not of one that takes a property away.
NO_CODE = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError", "UnboundLocalError")


class Verdict(enum.Enum):
    """The only good one is the first; of the last nothing is known."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    TOO_BROAD = "too broad"
    NO_APPLICATION = "does not apply"
    BROKEN = "broken"
    UNSTEADY = "unsteady"
    SKIPPED = "skipped"


class Trial(NamedTuple):
    """``tests``: of the row, those that are run."""

    row: str
    mutation: Mutation
    tests: tuple[str, ...]


class Tried(NamedTuple):
    """``why``: in a line."""

    row: str
    verdict: Verdict
    seconds: float = 0.0
    why: str = ""


def trial(row: str, proof: Proof, mutation: Mutation) -> Trial:
    """Large tests are left out where there are others."""
    small = tuple(name for name in proof.tests if not name.startswith(LARGE))
    return Trial(row, mutation, small or proof.tests)


def is_large(one: Trial) -> bool:
    """Whether it wants the machine for itself."""
    return any(name.startswith(LARGE) for name in one.tests)


def tried(trials: Sequence[Trial], copies: Sequence[Copy]) -> Iterator[Tried]:
    """As they come: small ones side by side, then large ones."""
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(asked: Trial) -> Tried:
        copy = free.get()
        try:
            return outcome(asked, copy)
        finally:
            free.put(copy)
    pool = ThreadPoolExecutor(len(copies))
    try:
        yield from (done.result() for done in as_completed(
            [pool.submit(one, asked) for asked in trials if not is_large(asked)]))
    finally:
        pool.shutdown(cancel_futures=True)  # who interrupts it waits for none that has not begun
    yield from (one(asked) for asked in trials if is_large(asked))


def outcome(asked: Trial, copy: Copy) -> Tried:
    """Of one mutation, in a copy that is as the checkout before and afterwards."""
    begun, mutation = time.monotonic(), asked.mutation
    if problem := mutation.problem((copy.top / mutation.file).read_text()):
        return Tried(asked.row, Verdict.NO_APPLICATION, 0.0, problem)
    files = tuple(dict.fromkeys(name.partition("::")[0] for name in asked.tests))
    with copy.mutated(mutation):
        ran = copy.run(files)
        if others := _beside(asked, ran):  # a busy machine's, perhaps: what fails by the mutation fails twice
            ran = _steady(ran, copy.run(sorted(others)))
    verdict, why = judged(asked, ran)
    if verdict in (Verdict.CAUGHT, Verdict.TOO_BROAD) and (red := _red(ran.cases, copy)):
        verdict, why = Verdict.UNSTEADY, f"fail without it, too: {', '.join(red)}"
    return Tried(asked.row, verdict, time.monotonic() - begun, why)


def _beside(asked: Trial, ran: Ran) -> set[str]:
    """Tests that failed, and should not."""
    failed = {case.test for case in ran.cases if case.outcome == "failed"}
    return failed - {*asked.tests, *asked.mutation.spreads}


def _steady(ran: Ran, again: Ran) -> Ran:
    """Without the tests that passed at their second try."""
    failed = {case.test for case in again.cases if case.outcome != "passed"}
    passed = {case.test for case in again.cases} - failed
    return ran._replace(cases=[case for case in ran.cases if case.test not in passed])


def _red(cases: Collection[Case], copy: Copy) -> list[str]:
    """Of the tests that failed, those that fail without the mutation."""
    names = sorted({case.test for case in cases if case.outcome == "failed"})
    ran = copy.run(names)
    return [ran.trouble] if ran.trouble else sorted({case.test for case in ran.cases if case.outcome != "passed"})


def judged(asked: Trial, ran: Ran) -> tuple[Verdict, str]:
    """The verdict on what its files' tests did, and why."""
    if ran.trouble:
        return Verdict.BROKEN, ran.trouble
    if broken := [case for case in ran.cases if case.outcome == "error" or case.outcome == "failed"
                  and case.said.startswith(NO_CODE)]:
        return Verdict.BROKEN, f"{broken[0].test}: {broken[0].said}"
    failed = {case.test for case in ran.cases if case.outcome == "failed"}
    if not failed & {*asked.tests}:
        ran_at_all = {case.test for case in ran.cases if case.outcome != "skipped"} & {*asked.tests}
        return (Verdict.SURVIVED, _listed(failed)) if ran_at_all else (Verdict.SKIPPED, "its tests are skipped here")
    if others := _beside(asked, ran):
        return Verdict.TOO_BROAD, _listed(others)
    if missing := {*asked.mutation.spreads} - failed:
        return Verdict.TOO_BROAD, f"it does not spread to {', '.join(sorted(missing))}"
    return Verdict.CAUGHT, ""


def _listed(tests: Collection[str]) -> str:
    return f"{', '.join(sorted(tests))} failed" if tests else ""


def trials(proofs: Mapping[str, Proof], mutations: Mapping[str, Mutation], rows: Collection[str]) -> list[Trial]:
    """Of these rows; of all with a mutation where none is named."""
    return [trial(row, proofs[row], mutation) for row, mutation in mutations.items() if not rows or row in rows]
