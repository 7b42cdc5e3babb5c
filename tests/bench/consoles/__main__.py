"""Consoles through nova-novncproxy against direct connections to the same QEMU, in the same run.

    python -m tests.bench.consoles [--quick] [--sessions N]

A real QEMU (TCG, no disk) shows its screen to so many viewers at once, each of which asks for the whole of it, raw,
again and again; then to as many through one proxy process. Times are for comparing within one run: machines are noisy.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.bench.consoles import machines
from tests.bench.consoles.viewers import Crowd, Where, round_trips
from tests.bench.meters import percentile, pss_mb
from tests.bench.scheduler.report import Report, say

HALF = 50  # percent
SETTLE_S = 1.0
MEMORY_KB = 512  # a session that shows something


class Bench:
    def __init__(self, folder: Path, sessions: int, quick: bool) -> None:
        self.folder, self.sessions = folder, sessions
        self.seconds, self.turns, self.trips = (2, 2, 200) if quick else (5, 4, 1000)
        self.report = Report()

    def run(self) -> None:
        with machines.qemu() as screen, machines.echo() as echo, \
                machines.proxy(self.folder, {machines.QEMU_TOKEN: screen, machines.ECHO_TOKEN: echo}) as (port, pid):
            behind = Where(port, machines.QEMU_TOKEN)
            Crowd(behind, 1).close()  # what is loaded at the first use is no session's
            time.sleep(SETTLE_S)
            self.memory_and_speed(Where(screen), behind, pid)
            self.latency(Where(echo), Where(port, machines.ECHO_TOKEN), behind)

    def memory_and_speed(self, direct: Where, behind: Where, pid: int) -> None:
        before = pss_mb([pid])
        through = Crowd(behind, self.sessions)
        idle = pss_mb([pid])
        width, height = through.viewers[0].screen
        through.close()
        self.report.table(f"{self.sessions} viewers at once, each the whole screen ({width}x{height}, raw) again and "
                          f"again, {self.seconds} s a turn", "way", "MB/s", "pictures", "fewest", "CPU of proxy")
        rates: dict[str, list[float]] = {"direct": [], "proxy": []}
        for _ in range(self.turns):  # in turns: what the machine does beside this meets both
            for name in rates:
                rates[name].append(self._turn(name, direct if name == "direct" else behind, pid))
        busy = self._busy(behind, pid)
        self.report.table("memory of the proxy (PSS)", "state", "MB", "KB a session")
        self.report.row("no session", before, 0)
        self.report.row(f"{self.sessions} idle", idle, round((idle - before) * 1024 / self.sessions))
        self.report.row(f"{self.sessions} busy", busy, round((busy - before) * 1024 / self.sessions))
        percent = 100 * sum(rates["proxy"]) / sum(rates["direct"])
        self.report.judge("throughput through the proxy, percent of direct", percent, HALF, at_most=False)
        self.report.judge("KB of the proxy's memory a busy session", (busy - before) * 1024 / self.sessions, MEMORY_KB)

    def _turn(self, name: str, where: Where, pid: int) -> float:
        crowd = Crowd(where, self.sessions)
        used = cpu_s(pid)
        rate, pictures, fewest = crowd.watch(self.seconds)
        self.report.row(name, rate, pictures, fewest, (cpu_s(pid) - used) / self.seconds)
        crowd.close()
        return rate

    def _busy(self, behind: Where, pid: int) -> float:
        """Megabytes while all sessions show something."""
        crowd = Crowd(behind, self.sessions)
        found: list[float] = []
        timer = threading.Timer(1.0, lambda: found.append(pss_mb([pid])))
        timer.start()
        crowd.watch(1.5)
        timer.join()
        crowd.close()
        return found[0]

    def latency(self, direct: Where, through: Where, screen: Where) -> None:
        self.report.table("a small message to a console that echoes, and back (ms)", "way", "p50", "p99")
        for name, where in (("direct", direct), ("proxy", through)):
            self._trips(name, where)
        crowd = Crowd(screen, self.sessions)
        watching = threading.Thread(target=crowd.watch, args=(2.0,))
        watching.start()
        self._trips("proxy, busy", through, 100)
        watching.join()
        crowd.close()

    def _trips(self, name: str, where: Where, count: int = 0) -> None:
        times = [1000 * seconds for seconds in round_trips(where, count or self.trips)]
        self.report.row(name, percentile(times, 0.5), percentile(times, 0.99))


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test bench-consoles", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--sessions", type=int, default=50, metavar="N")
    arguments = parser.parse_args()
    if shutil.which(machines.QEMU) is None:
        say(f"{machines.QEMU} is not installed")
        return 1
    logging.getLogger("nova").setLevel(logging.ERROR)
    say(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before this began; the proxy runs on "
        f"{os.environ.get('NOVA_CONCURRENCY') or 'eventlet'}")
    with tempfile.TemporaryDirectory(prefix="nova-bench-consoles-") as folder:
        bench = Bench(Path(folder), arguments.sessions, arguments.quick)
        bench.run()
        bench.report.finish()
    return int(not all(verdict.kept for verdict in bench.report.verdicts))


if __name__ == "__main__":
    sys.exit(main())
