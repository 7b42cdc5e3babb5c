"""The scheduler at 10 to 10,000 made-up hosts: decisions, placements to committed claims, conflicts, memory, packing.

    python -m tests.bench.scheduler [--quick] [--database mariadb|postgresql|sqlite] [part ...]

Real scheduler services, conductor steps and a real database, in databases of their own that go with the run; broker
and computes are left out, and calls go through the codec. Times are for comparing within one run: machines are noisy.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.scheduler import conflicts, filling, fleet, idle, placing, starting
from tests.bench.scheduler.report import Report, say
from tests.functional.backends import Backends

PARTS = ("placing", "conflicts", "start", "filling", "idle")
SIZES, LARGE, SMALL = (10, 100, 1_000, 10_000), 10_000, 100


class Bench:
    def __init__(self, backends: Backends, arguments: argparse.Namespace) -> None:
        self.server, self.quick = backends.database(arguments.database), arguments.quick
        self.kind = arguments.database
        self.report = Report()
        self._made = 0

    def fleet(self, hosts: int, used: float = 0.4) -> fleet.Databases:
        self._made += 1
        made = fleet.make(self.server, f"{self._made}_{hosts}")
        fleet.fill(made, hosts, used)
        return made

    def placing(self) -> None:
        self.report.table(f"one decision, and placements a second to a committed claim ({self.kind})",
                          *placing.HEADINGS)
        found = {}
        for hosts in SIZES:
            databases = self.fleet(hosts)
            for filters in placing.FILTERS:
                found[hosts, filters] = placing.measure(databases, hosts, filters, 100 if self.quick else 500,
                                                        self.report)
            databases.close()
        for filters in placing.FILTERS:
            large, small = found[LARGE, filters], found[SMALL, filters]
            judge, label = self.report.judge, f"{filters} filters"
            judge(f"{label}: a decision at 10,000 hosts / at 100", large.p50 / small.p50, 4)
            judge(f"{label}: deciding on 1,000 servers / on one, at 10,000, kind unknown", large.batch / large.first,
                  40)
            judge(f"{label}: deciding on 1,000 servers / on one, at 10,000, kind known", large.batch / large.p50, 40)
            judge(f"{label}: a batch of 1,000 / one server, to committed claims, at 10,000",
                  1000 * large.rates[1] / large.rates[1000], 40)
            judge(f"{label}: placements a second in batches of 100, at 10,000", large.rates[100], 500, at_most=False)

    def conflicts(self) -> None:
        conflicts.measure(self.server, self.report, 30 if self.quick else 100)

    def start(self) -> None:
        databases = self.fleet(LARGE)
        starting.measure(databases, LARGE, self.report)
        databases.close()

    def filling(self) -> None:
        filling.measure(self.report, 30 if self.quick else 100)

    def idle(self) -> None:
        idle.measure(self.server, self.report, 500 if self.quick else 1000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test bench-scheduler", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all when left out")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller fleets to fill")
    parser.add_argument("--database", choices=("mariadb", "postgresql", "sqlite"), default="mariadb")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    logging.getLogger("nova").setLevel(logging.ERROR)  # on a small fleet a batch of 1,000 finds no host for some
    root = Path(tempfile.mkdtemp(prefix="nova-bench-scheduler-"))
    backends = Backends(root)
    try:
        say(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before this began")
        bench = Bench(backends, arguments)
        for part in arguments.parts or PARTS:
            measure: Callable[[], None] = getattr(bench, part)
            measure()
        bench.report.finish()
    finally:
        backends.close()
        shutil.rmtree(root, ignore_errors=True)
        say()
    return 0


if __name__ == "__main__":
    sys.exit(main())
