"""`bin/test turns`: the commits at which turns passed last, overdue turns, and the runs that execute them."""

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

SOON = 100  # commits after which a turn is due, by default
#: Parts that have turns.
TURNING = tuple(name for name in PARTS if PARTS[name].folders and name != "books" or name in CYCLES)


class Record:
    """The table of a checkout, and the turns that have passed on this machine since."""

    def __init__(self, top: Path, results: Path) -> None:
        self.top, self.results = top, results
        self.path = top / turns.FILE
        self.number = history.number(top)

    def table(self) -> Table:
        """Return the table as committed."""
        return turns.read(self.path)

    def now(self) -> Table:
        """Return the table with the turns that have passed since. Passes of commits in other branches are ignored."""
        return passed.merged(self.table(), passed.read(self.results, history.ancestors(self.top, passed.KEPT)))

    def keep(self, part: str, covered: Covered) -> str:
        """Record the turns of a run. Return a line to print, or an empty one."""
        if not covered.known or covered.broken:
            return ""
        if self.number is None:
            return "turns are not recorded: the checkout has a shallow history, or none"
        if history.is_changed(self.top, besides=turns.FILE):
            return "turns are not recorded: files differ from the commit"
        run = Run(part, self.number, history.commit(self.top), covered.passed(), sorted(covered.known),
                  covered.complete)
        try:
            passed.append(self.results, run)
        except OSError as error:
            return f"turns are not recorded: {error}"
        return f"turns that passed: {', '.join(map(str, run.passed)) or 'none'}"

    def strange(self, part: str, covered: Covered) -> str:
        """Return a line with the turns that the committed table lacks: the check would not notice their failures."""
        lacking = passed.unknown(self.table(), part, covered.known)
        if not lacking:
            return ""
        return (f"{turns.FILE} lacks {'; '.join(map(str, lacking))}: "
                "run `bin/test turns --record`, and commit the file")

    # --- commands

    def check(self) -> int:
        """Return the exit status: 1 if a turn of the committed table has not passed within the limit."""
        if self.number is None:
            print("turns: not checked: the checkout has a shallow history, or none")
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
        """Return the turns of a part that did not pass within this number of commits."""
        found = {Place(turn.of, turn.place): last for turn, last in self.now().items() if turn.part == part}
        return {place for place in known if place not in found or not found[place].commit
                or (self.number or 0) - found[place].number > within}


def arguments(words: list[str], fail: Callable[[str], object]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"bin/test {TURNS}", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="run only the turns of this part that are due")
    parser.add_argument("--within", type=int, default=SOON, metavar="N",
                        help=f"a turn that passed within N commits is not due (default: {SOON}; -1: all are due)")
    parser.add_argument("--plan", action="store_true", help="print the runs of the parts without running them")
    parser.add_argument("--record", action="store_true", help=f"add the turns that passed here to {turns.FILE}")
    parser.add_argument("--check", action="store_true", help="fail if a turn is overdue")
    found = parser.parse_args(words)
    if strange := [name for name in found.parts if name not in TURNING]:
        fail(f"{strange[0]} has no turns; parts with turns are {', '.join(TURNING)}")
    return found
