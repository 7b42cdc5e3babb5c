"""`bin/test turns`: what passed when, what did not for too long, and the runs that catch up."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from testlib import history, passed, turns
from testlib.command import TURNS
from testlib.covered import Covered
from testlib.parts import CYCLES, PARTS
from testlib.passed import Run
from testlib.turns import Place, Table

SOON = 100  # commits after which a turn runs again, if it is asked for
#: Parts that have turns.
TURNING = tuple(name for name in PARTS if PARTS[name].folders and name != "books" or name in CYCLES)


class Record:
    """The table of a checkout, and what passed on this machine since."""

    def __init__(self, top: Path, results: Path) -> None:
        self.top, self.results = top, results
        self.path = top / turns.FILE
        self.number = history.number(top)

    def table(self) -> Table:
        """As committed."""
        return turns.read(self.path)

    def now(self) -> Table:
        """With what passed since. What passed only in other branches does not count."""
        return passed.merged(self.table(), passed.read(self.results, history.ancestors(self.top, passed.KEPT)))

    def keep(self, part: str, covered: Covered) -> str:
        """Write down what a run had. A line to print, empty where there is nothing to say."""
        if not covered.known or covered.broken:
            return ""
        if self.number is None:
            return "turns are not recorded: the history of the checkout is cut off, or there is none"
        if history.is_changed(self.top, besides=turns.FILE):
            return "turns are not recorded: files differ from the commit's"
        run = Run(part, self.number, history.commit(self.top), covered.passed(), sorted(covered.known),
                  covered.complete)
        try:
            passed.append(self.results, run)
        except OSError as error:
            return f"turns are not recorded: {error}"
        return f"turns that passed: {', '.join(map(str, run.passed)) or 'none'}"

    def strange(self, part: str, covered: Covered) -> str:
        """Turns that the committed table lacks, so that nobody would see if they never passed."""
        lacking = passed.unknown(self.table(), part, covered.known)
        if not lacking:
            return ""
        return (f"{turns.FILE} lacks {'; '.join(map(str, lacking))}: "
                "run `bin/test turns --record`, and commit the file")

    # --- what is asked for

    def check(self) -> int:
        """The exit status: 1 where a turn of the committed table has not passed within the limit."""
        if self.number is None:
            print("turns: not checked: the history of the checkout is cut off, or there is none")
            return 0
        table = self.table()
        old = turns.stale(table, self.number, turns.LIMIT)
        for turn in old:
            was = f"passed last at commit {table[turn].number}" if table[turn].commit else "has never passed"
            print(f"{turn}: {was}, and this is commit {self.number}: more than {turns.LIMIT} commits. Run "
                  f"`bin/test {TURNS} {turn.part}`, then `bin/test {TURNS} --record`, and commit {turns.FILE}")
        print(f"turns: {len(table) - len(old)} of {len(table)} passed within {turns.LIMIT} commits")
        return 1 if old else 0

    def record(self) -> int:
        found = self.now()
        turns.write(self.path, found)
        print(f"{turns.FILE}: {len(found)} turns, {sum(not one.commit for one in found.values())} never passed")
        return 0

    def show(self) -> int:
        for turn, last in sorted(self.now().items()):
            ago = "" if self.number is None else f", {self.number - last.number} commits ago"
            print(f"{turn}: " + (f"passed at {last.number} {last.commit}{ago}" if last.commit else "never passed"))
        return 0

    def wanted(self, part: str, known: set[Place], within: int) -> set[Place]:
        """Those of a part that did not pass within so many commits."""
        found = {Place(turn.of, turn.place): last for turn, last in self.now().items() if turn.part == part}
        return {place for place in known if place not in found or not found[place].commit
                or (self.number or 0) - found[place].number > within}


def arguments(words: list[str], fail: Callable[[str], object]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"bin/test {TURNS}", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="run what is due of it, and nothing else")
    parser.add_argument("--within", type=int, default=SOON, metavar="N",
                        help=f"a turn that passed within so many commits is not due ({SOON}; -1: all are)")
    parser.add_argument("--plan", action="store_true", help="of the parts, say what would run, and run nothing")
    parser.add_argument("--record", action="store_true", help=f"take what passed here over into {turns.FILE}")
    parser.add_argument("--check", action="store_true", help="fail if a turn has not passed for too long")
    found = parser.parse_args(words)
    if strange := [name for name in found.parts if name not in TURNING]:
        fail(f"{strange[0]} has no turns; parts with turns are {', '.join(TURNING)}")
    return found
