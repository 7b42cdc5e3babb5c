"""What more processors would bring: rates and CPU time on one and on two, and what is serialized whatever their number.

Processes are pinned (sched_setaffinity(2)), with MariaDB, RabbitMQ, the hosts and the clients, so that a rate on two
processors is that of the whole cloud on them. The time for which transactions hold the locks of common rows is read
from MariaDB's general log: from the statement after the one that locks the row, which had to wait for it, to the
COMMIT. It includes what the conductor does meanwhile, and its waits for a processor. It does not include the flush of
the log at the commit, of which one serves all transactions that wait for it.
"""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import calls
from tests.bench.load import cpu_ms, processes
from tests.bench.meters import percentile
from tests.functional.cloud import Cloud

SECONDS = 6.0
SERVERS = 240
SETTLED_S = 2.0
CREATES_BY = (1, 8, 64)  # clients: the more come at once, the more share a transaction
#: A row that many requests lock -> the statement that locks it.
LOCKED = {"a project's quota": re.compile(r"^UPDATE quota_locks SET turns"),
          "a host's resources": re.compile(r"^UPDATE resource_providers SET generation")}
_UUID = r"'([0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})'"
#: Row -> the statement that names the servers, and where in it.
_NAMED = {"a project's quota": (re.compile(r"^INSERT INTO ledger "), re.compile(rf"\({_UUID}")),
          "a host's resources": (re.compile(r"^(INSERT INTO|DELETE FROM) allocations"), re.compile(_UUID))}


class Held(NamedTuple):
    """A transaction that held a common row. ``servers``: those that it served."""

    row: str
    ms: float
    servers: int


def pinned(cloud: Cloud, count: int) -> None:
    """Let all processes of the cloud, and this one, run on so many processors."""
    cpus = set(range(count))
    for pid in [os.getpid(), *(pid for pids in processes(cloud).values() for pid in pids)]:
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                os.sched_setaffinity(int(task.name), cpus)
            except ProcessLookupError:  # a thread that has ended
                continue


def rates(cloud: Cloud, say: Callable[[str], None], seconds: float) -> None:
    """Print requests a second and CPU time by daemon, on one processor and on two."""
    first = str(calls.each(calls.posting(cloud), 1)[0][0])
    calls.all_up(cloud, 1)
    for name, call in (("show", calls.getting(cloud, f"/servers/{first}")), ("create", calls.posting(cloud))):
        say(f"\n{name}, {calls.CLIENTS} clients")
        before = 0.0
        for count in (1, 2):
            pinned(cloud, count)
            time.sleep(SETTLED_S)
            pids = processes(cloud)
            used = {who: cpu_ms(mine) for who, mine in pids.items()}
            times, took = calls.for_a_while(call, calls.CLIENTS, seconds)
            rate = len(times) / took
            time.sleep(SETTLED_S)
            spent = {who: (cpu_ms(mine) - used[who]) / len(times) for who, mine in pids.items()}
            shown = ", ".join(f"{who} {ms:.1f}" for who, ms in _by_kind(spent).items() if ms >= 0.05)
            gain = f" ({rate / before:.2f} times)" if before else ""
            say(f"  {count} processor{'s' if count > 1 else ' '}: {rate:6.1f} a second{gain}; CPU ms each: {shown}")
            before = rate


def _by_kind(spent: dict[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for who, ms in spent.items():
        kind = "hosts" if who.startswith("compute") else who
        found[kind] = found.get(kind, 0.0) + ms
    return found


def serialized(cloud: Cloud, connection: Any, say: Callable[[str], None], count: int = SERVERS) -> None:
    """Print for how long the common rows are locked for each server, by the number of requests at once."""
    say(f"\n{'locked row':<24}{'servers':<26}{'transactions':>14}{'servers each':>14}{'held ms p50':>13}"
        f"{'p99':>8}{'ms a server':>13}{'limit a second':>16}")
    for clients in CREATES_BY:
        _report(say, f"created by {clients} clients", _logged(connection, lambda clients=clients: (  # type: ignore[misc]
            calls.each(calls.posting(cloud), count, clients), _ended(cloud))))
        uuids = [one["id"] for one in calls.all_servers(cloud)]
        _report(say, f"deleted by {clients} clients", _logged(
            connection, lambda clients=clients, uuids=uuids: (  # type: ignore[misc]
                calls.each(calls.deleting(cloud, uuids), len(uuids), clients), calls.none_left(cloud))))


def _ended(cloud: Cloud) -> None:
    while calls.count_of(cloud, "BUILD"):
        time.sleep(calls.ASKED_S)


def _report(say: Callable[[str], None], what: str, found: Iterable[Held]) -> None:
    of_row: dict[str, list[Held]] = {}
    for one in found:
        of_row.setdefault(one.row, []).append(one)
    for row, held in of_row.items():
        servers, total = sum(one.servers for one in held), sum(one.ms for one in held)
        times = [one.ms for one in held]
        say(f"{row:<24}{what:<26}{len(held):>14}{servers / len(held):>14.1f}{percentile(times, 0.5):>13.2f}"
            f"{percentile(times, 0.99):>8.2f}{total / servers:>13.2f}{1000 * servers / total:>16.0f}")


def _logged(connection: Any, work: Callable[[], object]) -> list[Held]:
    """Return the transactions of ``work`` that held common rows."""
    with connection.cursor() as cursor:
        cursor.execute("SET GLOBAL log_output = 'TABLE'")
        cursor.execute("TRUNCATE mysql.general_log")
        cursor.execute("SET GLOBAL general_log = 1")
        try:
            work()
            time.sleep(SETTLED_S)
        finally:
            cursor.execute("SET GLOBAL general_log = 0")
        cursor.execute("SELECT thread_id, event_time, argument FROM mysql.general_log WHERE command_type = 'Query' "
                       "ORDER BY event_time, thread_id")
        return list(held(cursor.fetchall()))


class _Transaction:
    """A transaction of the log. ``locked``: row -> since when, None: with the next statement."""

    def __init__(self) -> None:
        self.locked: dict[str, datetime.datetime | None] = {}
        self.servers: dict[str, set[str]] = {}

    def run(self, at: datetime.datetime, statement: str) -> None:
        self.locked = {row: since or at for row, since in self.locked.items()}
        for row, locking in LOCKED.items():
            if locking.match(statement):
                self.locked.setdefault(row, None)
            naming, uuid = _NAMED[row]
            if naming.match(statement):
                self.servers.setdefault(row, set()).update(uuid.findall(statement))

    def end(self, at: datetime.datetime) -> Iterator[Held]:
        for row, since in self.locked.items():
            if servers := self.servers.get(row):
                yield Held(row, (at - (since or at)).total_seconds() * 1000, len(servers))


def held(log: Iterable[tuple[int, datetime.datetime, bytes]]) -> Iterator[Held]:
    """Yield the transactions of a log that lock common rows: (thread, time, statement) in the order of time."""
    open_: dict[int, _Transaction] = {}
    for thread, at, argument in log:
        statement = " ".join((argument.decode() if isinstance(argument, bytes) else argument).split())
        if statement == "BEGIN":
            open_[thread] = _Transaction()
        elif statement == "COMMIT":
            yield from open_.pop(thread, _Transaction()).end(at)
        elif statement == "ROLLBACK":  # it is repeated
            open_.pop(thread, None)
        elif thread in open_:
            open_[thread].run(at, statement)
