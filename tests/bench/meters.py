"""What a piece of work cost: SQL statements, AMQP messages, seconds; read from the servers, not from our own code."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.functional.backends import Broker, program

STATEMENTS = ("Com_select", "Com_insert", "Com_update", "Com_delete", "Com_replace", "Com_insert_select",
              "Com_update_multi", "Com_delete_multi")


class Meters:
    """Counters of MariaDB (statements, without BEGIN, COMMIT and pings) and RabbitMQ (messages that it received)."""

    def __init__(self, database: Any, broker: Broker) -> None:
        self.connection = database._connect()
        self.broker = broker
        self.ctl = program("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmqctl")

    def statements(self) -> int:
        """All clients' together; this connection's own SHOW is none of them."""
        with self.connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name IN %s", (STATEMENTS,))
            return sum(int(value) for _name, value in cursor.fetchall())

    def messages(self) -> int:
        done = subprocess.run([self.ctl, "-q", "eval", "rabbit_global_counters:overview()."], capture_output=True,
                              text=True, check=True, env=self.broker.environment(), timeout=60)
        return int(re.search(r"messages_received_total => (\d+)", done.stdout)[1])  # type: ignore[index]

    def bytes(self) -> int:
        """Bytes to and from clients of the database, and of the broker (of connections that are open now)."""
        with self.connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name IN ('Bytes_sent', 'Bytes_received')")
            database = sum(int(value) for _name, value in cursor.fetchall())
        done = subprocess.run([self.ctl, "-q", "list_connections", "recv_oct", "send_oct"], capture_output=True,
                              text=True, check=True, env=self.broker.environment(), timeout=60)
        return database + sum(int(word) for word in done.stdout.split() if word.isdigit())

    def cost(self, work: Callable[[], Any], settle_s: float = 0.5) -> tuple[int, int, float]:
        """(statements, messages, seconds) of ``work``, less what the idle cloud does in the same time."""
        before = self.statements(), self.messages()
        idle_from = time.monotonic()
        time.sleep(2)
        idle = self.statements(), self.messages()
        idle_s = time.monotonic() - idle_from
        started = time.monotonic()
        work()
        seconds = time.monotonic() - started
        time.sleep(settle_s)
        after = self.statements(), self.messages()
        busy_s = time.monotonic() - started
        rest = [(then - now) * busy_s / idle_s for then, now in zip(idle, before, strict=True)]
        used = [round(end - begin - quiet) for end, begin, quiet in zip(after, idle, rest, strict=True)]
        return used[0], used[1], seconds


def pss_mb(pids: list[int]) -> float:
    """Proportional set size of processes, in MB: shared pages count once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def children(pid: int) -> list[int]:
    """A process and those below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended
            for child in (task / "children").read_text().split():
                found += children(int(child))
    return found


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    started = time.monotonic()
    yield lambda: time.monotonic() - started
