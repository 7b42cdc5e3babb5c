"""Clients that others wrote judge nova-all, unmodified: ``python -m tests.clients [--quick] [JUDGE ...]``.

openstacksdk's, openstackclient's and novaclient's own functional tests, gophercloud's acceptance tests, a play of
Ansible's openstack.cloud, and libcloud. Each has a cloud of its own. What is known not to pass is in known/, with the
cause; what passes though it is listed there, fails.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.clients.judges import JUDGES, LOGS, QUICK, Heard, hear
from tests.clients.verdict import Verdict

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bin"))  # bin/ is not a package

from stacklib.layout import PLAIN_STATE, Choices, Layout  # noqa: E402


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/test clients", description=__doc__.splitlines()[0])
    parser.add_argument("judges", nargs="*", metavar="JUDGE", help=f"of {', '.join(JUDGES)}; all when left out")
    parser.add_argument("--quick", action="store_true", help=f"{' and '.join(QUICK)} alone")
    parser.add_argument("--speed", type=float, default=1.0, help="how slow fake guests are: 1 as real ones (1)")
    parser.add_argument("--beside", type=int, default=2, help="judges side by side (2)")
    parser.add_argument("--counts", type=Path, help=argparse.SUPPRESS)  # a file for "PASSED FAILED SKIPPED"
    args = parser.parse_args(argv)
    chosen = args.judges or (QUICK if args.quick else tuple(JUDGES))
    if unknown := [name for name in chosen if name not in JUDGES]:
        parser.error(f"no such judge: {', '.join(unknown)}; there are {', '.join(JUDGES)}")
    for name in chosen:
        shutil.rmtree(LOGS / name, ignore_errors=True)
    total = (0, 0, 0)
    for heard in verdicts(chosen, args):
        tell(heard)
        total = tuple(map(sum, zip(total, heard.verdict.counts, strict=True)))
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped; logs are in {LOGS}", flush=True)
    if args.counts:
        args.counts.write_text(" ".join(map(str, total)))
    return 1 if total[1] or not total[0] else 0


def verdicts(chosen: tuple[str, ...] | list[str], args: argparse.Namespace) -> Iterator[Heard]:
    """As they come. A judge that breaks down has failed, with what it said."""
    venvs = Layout(PLAIN_STATE, Choices()).venvs
    with ThreadPoolExecutor(args.beside) as pool:
        running = {pool.submit(hear, name, venvs, args.speed): name for name in chosen}
        for done in as_completed(running):
            name = running[done]
            try:
                yield done.result()
            except Exception as error:
                yield Heard(name, Verdict(failed={name: "".join(traceback.format_exception(error))}), 0.0)


def tell(heard: Heard) -> None:
    if heard.unable:
        print(f"{heard.name}: skipped: {heard.unable}", flush=True)
        return
    for word, rows in (("FAILED", heard.verdict.failed), ("KNOWN", heard.verdict.known),
                       ("SKIPPED", heard.verdict.skipped)):
        for name, reason in sorted(rows.items()):
            print(f"{word} {heard.name}: {name}\n       {reason}")
    print(heard.verdict.line(heard.name, heard.seconds), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
