"""The benchmark: what reads and boots cost, as counts and times of one run on this machine.

    python -m tests.bench [--quick] [reads|load|boots|actions|drain|daemons|singles ...]
    python -m tests.bench profile create|delete|show|list [--out FOLDER]
    python -m tests.bench cores
    python -m tests.bench memory [--operations N]
    python -m tests.bench --compare

Counts are of MariaDB's and RabbitMQ's own counters. Times are for comparing within one run: machines are noisy.
The databases here do not wait for the disk (see tests/functional/backends.py).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import requests

from tests.bench import actions, calls, cores, load, memory, profile, singles
from tests.bench.meters import Meters, children, percentile, pss_mb
from tests.functional.backends import Backends, wait_until
from tests.functional.client import Client
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP

sys.path.append(str(TOP / "bin"))

from testlib import budgets  # noqa: E402

PARTS = ("reads", "load", "boots", "actions", "drain", "daemons", "singles")
SIZES = (1, 100, 1000)
VERSION = "2.96"
#: Heartbeats as seldom as counting wants them; everything else as it is.
QUIET = {"DEFAULT": {"report_interval": 60, "service_down_time": 180}}


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Report:
    """Rows under headings, printed as they come."""

    def __init__(self, title: str, *headings: str) -> None:
        self.widths = [max(14, len(heading) + 2) for heading in headings]
        self.widths[0] = 44
        say(f"\n{title}")
        self.row(*headings)

    def row(self, *cells: object) -> None:
        shown = [f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells]
        say("".join(cell.ljust(width) for cell, width in zip(shown, self.widths, strict=True)))


def latency(call: Callable[[requests.Session], None], clients: int, calls: int) -> tuple[float, float, float]:
    """(p50 ms, p95 ms, requests a second) of ``calls`` calls by ``clients`` clients side by side."""
    def one(share: int) -> list[float]:
        times = []
        with requests.Session() as session:
            call(session)
            for _ in range(share):
                started = time.monotonic()
                call(session)
                times.append(1000 * (time.monotonic() - started))
        return times
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        times = [one_time for part in pool.map(one, [max(1, calls // clients)] * clients) for one_time in part]
    return percentile(times, 0.5), percentile(times, 0.95), len(times) / (time.monotonic() - started)


def boot_many(client: Client, count: int) -> list[str]:
    """One request for ``count`` servers; their uuids once all are ACTIVE."""
    answer = client.create("many", min_count=count, max_count=count, return_reservation_id=True)
    reservation = answer["reservation_id"]

    def there() -> list[dict] | None:
        found = client.servers(f"?reservation_id={reservation}&limit=1000")
        return found if len(found) == count and all(one["status"] == "ACTIVE" for one in found) else None
    return [one["id"] for one in wait_until(f"{count} servers", there, 120, 0.05)]


def delete_all(client: Client, uuids: list[str]) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(client.delete, uuids))
    wait_until("all are gone", lambda: not client.servers("?limit=1"), 120, 0.05)


def reads(cloud: Cloud, meters: Meters, quick: bool) -> None:
    client = cloud.api("admin", "bench")
    uuids: list[str] = []
    report = Report("Reads", "request", "SQL", "messages", "c1 p50 ms", "c1 p95 ms", "c8 p50 ms", "c8 p95 ms",
                    "c8 req/s")
    medians = {}
    for size in SIZES[:2] if quick else SIZES:
        uuids += boot_many(client, size - len(uuids)) if size > len(uuids) else []
        for path in (f"/servers/detail?limit={size}", f"/servers?limit={size}"):
            medians[path] = _read(report, cloud, meters, f"{path} ({size} there)", path, max(8, 200 // size))
    for path in (f"/servers/{uuids[0]}", "/flavors/detail", "/"):
        _read(report, cloud, meters, path.replace(uuids[0], "{id}"), path, 200)
    top = SIZES[1] if quick else SIZES[2]
    ratio = medians[f"/servers/detail?limit={top}"] / medians["/servers/detail?limit=1"]
    say(f"{top} servers with details cost {ratio:.1f} times one" + ("" if quick else " (at most 16 wanted)"))
    started = time.monotonic()
    delete_all(client, uuids)
    say(f"{len(uuids)} deleted in {time.monotonic() - started:.2f} s")


def _read(report: Report, cloud: Cloud, meters: Meters, name: str, path: str, calls: int) -> float:
    call = calls.getting(cloud, path)
    with requests.Session() as session:
        call(session)
        sql, messages, _ = meters.cost(lambda: call(session), 0.1)
    one, eight = latency(call, 1, calls), latency(call, 8, calls)
    report.row(name, sql, messages, one[0], one[1], eight[0], eight[1], eight[2])
    return one[0]


def loads(cloud: Cloud, quick: bool) -> None:
    """What eight clients get at once, and where the time goes."""
    client = cloud.api("admin", "bench")
    count, seconds = (100, 3.0) if quick else (1000, load.SECONDS)
    uuids = boot_many(client, count)
    say("\nLoad")
    for name, path in ((f"GET /servers/detail, {count} servers", f"/servers/detail?limit={count}"),
                       ("GET /servers/{id}", f"/servers/{uuids[0]}"), ("GET /flavors/detail", "/flavors/detail")):
        load.measure(cloud, name, calls.getting(cloud, path), say, seconds)
    load.measure(cloud, "POST /servers, no network", calls.posting(cloud), say, seconds)
    delete_all(client, all_servers(client))


def all_servers(client: Client) -> list[str]:
    """Every server's uuid, page after page."""
    uuids: list[str] = []
    while page := client.servers("?limit=1000" + (f"&marker={uuids[-1]}" if uuids else "")):
        uuids += [one["id"] for one in page]
    return uuids


def boots(cloud: Cloud, meters: Meters, hosts: int, quick: bool) -> None:
    client = cloud.api("admin", "bench")
    report = Report(f"Boots on {hosts} fake compute(s)", "servers", "SQL", "messages", "seconds", "a second",
                    "messages a host")
    boot_many(client, 1)
    for count in (1, 10, 100) if quick else (1, 10, 50, 100, 200):
        sql, messages, _ = meters.cost(lambda count=count: boot_many_quietly(client, count))
        started = time.monotonic()
        boot_many(client, count)
        seconds = time.monotonic() - started
        report.row(f"{count} in one request", sql, messages, f"{seconds:.2f}", count / seconds, messages / hosts)
    for count in (10, 50) if quick else (10, 50, 200):
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _n: client.create("one"), range(count)))
        wait_until("all are up", lambda: all(one["status"] == "ACTIVE" for one in client.servers("?limit=1000")),
                   120, 0.05)
        seconds = time.monotonic() - started
        report.row(f"{count} requests, eight at a time", "-", "-", f"{seconds:.2f}", count / seconds, "-")
    uuids = [one["id"] for one in client.servers("?limit=1000")]
    started = time.monotonic()
    delete_all(client, uuids)
    say(f"{len(uuids)} deleted in {time.monotonic() - started:.2f} s")


def boot_many_quietly(client: Client, count: int) -> None:
    """As :func:`boot_many`, but asking seldom: what is counted shall be the boot's, not the asking's."""
    client.create("quiet", min_count=count, max_count=count, return_reservation_id=True)
    time.sleep(1.5 + count / 50)


def daemons(cloud: Cloud) -> None:
    report = Report("Daemons, idle", "daemon", "processes", "PSS MB", "start s", "stop s")
    total = 0.0
    for name, daemon in cloud.daemons.items():
        assert daemon.process
        pids = children(daemon.process.pid)
        memory = pss_mb(pids)
        total += memory
        started = time.monotonic()
        daemon.process.popen.terminate()
        daemon.process.popen.wait(30)
        stopped = time.monotonic() - started
        started = time.monotonic()
        daemon.start().ready()
        report.row(name, len(pids), memory, f"{time.monotonic() - started:.2f}", f"{stopped:.2f}")
    report.row("together", "", total, "", "")


def lives(backends: Backends, root: Path, what: Sequence[str], quick: bool) -> None:
    """What is done to servers that are there, between two hosts."""
    options = {"DEFAULT": {**QUIET["DEFAULT"], **actions.OPTIONS}}
    if "actions" in what:
        with running(Cloud(backends, root, Plan(computes=2, options=options))) as cloud:
            actions.create_sample_data(cloud)
            actions.actions(cloud, Meters(backends.database("mariadb"), backends.broker), Report, 2 if quick else 10)
    if "drain" in what:
        slow = {**options, "fake": {"live_migration_time": 1.0 if quick else 5.0}}
        with running(Cloud(backends, root.with_name("drained"), Plan(computes=2, options=slow))) as cloud:
            actions.drain(cloud, Report, say, 10 if quick else 20)


@contextlib.contextmanager
def backing() -> Iterator[tuple[Backends, Path]]:
    """Provide the broker and the databases, and a folder for clouds."""
    root = Path(tempfile.mkdtemp(prefix="nova-bench-"))
    root.chmod(0o755)
    (root / "backends").mkdir()
    backends = Backends(root / "backends")
    try:
        yield backends, root
    finally:
        backends.close()
        shutil.rmtree(root, ignore_errors=True)


def alone(given: argparse.Namespace) -> int:
    """Print the figures of single requests, beside their targets and the last release's."""
    before = singles.last_release()
    report = Report("Single requests", "figure", "value", "at most", "last release")
    found = []
    with backing() as (backends, root), \
            running(Cloud(backends, root / "cloud", Plan(computes=10, glance=True, options=QUIET))) as cloud:
        for figure in singles.figures(cloud, budgets.slowness(), given.quick):
            found.append(figure)
            report.row(figure.name, figure.value, figure.most or "", before.get(figure.name.strip(), ""))
    if given.record:
        singles.record(found)
    worse = [one.name for one in found
             if given.compare and one.value > singles.WORSE * before.get(one.name.strip(), one.value)]
    for name in worse:
        say(f"worse by more than a fifth: {name}")
    return 1 if worse else 0


def profiled(names: Sequence[str], out: Path) -> int:
    if unknown := set(names) - set(profile.NAMES):
        say(f"no such request: {', '.join(sorted(unknown))}; there are {', '.join(profile.NAMES)}")
        return 2
    with backing() as (backends, root):
        for name in names:
            with running(Cloud(backends, root / name, Plan(glance=True, options=QUIET))) as cloud:
                profile.profile(cloud, Meters(backends.database("mariadb"), backends.broker), name, out, say)
    return 0


def on_cores(given: argparse.Namespace) -> int:
    """Print rates on one processor and on two, and for how long common rows are locked."""
    options = {**QUIET, "DEFAULT": {**QUIET["DEFAULT"], "osapi_compute_workers": 2}, "conductor": {"workers": 2},
               "scheduler": {"workers": 2}}
    with backing() as (backends, root), \
            running(Cloud(backends, root / "cloud", Plan(computes=10, glance=True, options=options))) as cloud:
        cores.rates(cloud, say, 1.0 if given.quick else cores.SECONDS)
        delete_all(cloud.api("admin", "bench"), [one["id"] for one in calls.all_servers(cloud)])
        cores.serialized(cloud, backends.database("mariadb")._connect(), say, 64 if given.quick else cores.SERVERS)
    return 0


def over_operations(operations: int) -> int:
    """Print a curve of the daemons' memory."""
    with backing() as (backends, root), \
            running(Cloud(backends, root / "cloud", Plan(glance=True, options=memory.OPTIONS))) as cloud:
        memory.say_curve(cloud, say, operations)
    return 0


@contextlib.contextmanager
def running(cloud: Cloud) -> Iterator[Cloud]:
    try:
        yield cloud.start()
    finally:
        cloud.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller numbers, a minute in all")
    parser.add_argument("--compare", action="store_true", help="compare single requests with the last release: exit "
                        "code 1 if a figure is worse by a fifth")
    parser.add_argument("--record", action="store_true", help="keep the figures of single requests as this release's")
    parser.add_argument("--operations", type=int, default=memory.OPERATIONS,
                        help="of the curve of memory (default: %(default)s, some hours)")
    parser.add_argument("--out", type=Path, default=Path("/tmp/nova-profile"), help="the folder of flame graphs")
    parser.add_argument("what", nargs="*", help=f"of {', '.join(PARTS)}; all when left out. Or: cores; memory; "
                        f"profile {'|'.join(profile.NAMES)}")
    given = parser.parse_args()
    if given.what[:1] == ["profile"]:
        return profiled(given.what[1:] or profile.NAMES, given.out)
    if given.what == ["memory"]:
        return over_operations(given.operations)
    if given.what == ["cores"]:
        return on_cores(given)
    if unknown := set(given.what) - set(PARTS):
        known = ", ".join((*PARTS, "cores", "memory", "profile"))
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {known}")
    if given.compare or given.record or given.what == ["singles"]:
        return alone(given)
    what = given.what or PARTS
    with backing() as (backends, root):
        if {"actions", "drain"} & set(what):
            lives(backends, root / "lives", what, given.quick)
        for hosts in (1, 10) if "boots" in what else (1,) if {"reads", "load", "daemons"} & set(what) else ():
            with running(Cloud(backends, root / f"cloud{hosts}", Plan(computes=hosts, glance=True, options=QUIET))
                         ) as cloud:
                meters = Meters(backends.database("mariadb"), backends.broker)
                if hosts == 1 and "reads" in what:
                    reads(cloud, meters, given.quick)
                if hosts == 1 and "load" in what:
                    loads(cloud, given.quick)
                if "boots" in what:
                    boots(cloud, meters, hosts, given.quick)
                if hosts == 1 and "daemons" in what:
                    daemons(cloud)
    return 0


if __name__ == "__main__":
    sys.exit(main())
