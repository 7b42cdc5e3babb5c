"""Each past security bug is made again, alone, and its tests must see it: ``python -m tests.mutations [ROW ...]``.

A row of the table of past bugs (tests/contract/past_advisories.py and past_notes.py) has one mutation here, which
takes its property away. In a copy of the checkout the tests of the row must fail by it, and all others of their files
pass.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.contract.past_advisories import ADVISORIES
from tests.contract.past_notes import NOTES
from tests.mutations import MUTATIONS
from tests.mutations.copies import copies
from tests.mutations.trials import Tried, Verdict, is_large, trials, tried

BESIDE = 2
UNKNOWN = (Verdict.SKIPPED,)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/test mutations", description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="ids of past bugs; all when left out")
    parser.add_argument("--quick", action="store_true", help="none that want daemons or the machine (root)")
    parser.add_argument("--beside", type=int, default=BESIDE, help=f"mutations side by side ({BESIDE})")
    parser.add_argument("--counts", type=Path, help=argparse.SUPPRESS)  # a file for "PASSED FAILED SKIPPED"
    args = parser.parse_args(argv)
    if unknown := [row for row in args.rows if row not in MUTATIONS]:
        parser.error(f"no mutation of {', '.join(unknown)}; there are {', '.join(MUTATIONS)}")
    chosen = trials(ADVISORIES | NOTES, MUTATIONS, args.rows)
    left_out = [one for one in chosen if is_large(one) and (args.quick or os.geteuid())]
    begun, found = time.monotonic(), Counter[Verdict]()
    for one in left_out:
        tell(Tried(one.row, Verdict.SKIPPED, why="it needs daemons or root"))
    with copies(args.beside) as made:
        for result in tried([one for one in chosen if one not in left_out], made):
            tell(result)
            found[result.verdict] += 1
    found[Verdict.SKIPPED] += len(left_out)
    passed, skipped = found[Verdict.CAUGHT], sum(found[one] for one in UNKNOWN)
    failed = found.total() - passed - skipped
    print(f"{passed} of {passed + failed} mutations are caught in {time.monotonic() - begun:.0f} s, "
          f"{skipped} left out", flush=True)
    if args.counts:
        args.counts.write_text(f"{passed} {failed} {skipped}")
    return 1 if failed or not passed else 0


def tell(result: Tried) -> None:
    print(f"{result.row:16} {result.verdict.value:14} {result.seconds:6.1f} s  {result.why}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
