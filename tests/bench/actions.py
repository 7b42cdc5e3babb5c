"""What each action in a server's life costs, and how fast a host is drained: real daemons, the fake driver."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from nova.db.models.cell import migrations, operations, servers
from nova.model.server.migrations import CONFIRMED, OVER
from tests.bench.meters import Meters
from tests.functional.backends import wait_until
from tests.functional.client import Client
from tests.functional.cloud import Cloud
from tests.functional.life_kills import BIGGER, ORDERS, OTHER_IMAGE

#: One server's life, in an order in which each action may follow the one before.
LIFE = ("stop", "start", "soft_reboot", "hard_reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue",
        "changePassword", "trigger_crash_dump", "createImage", "createBackup", "rebuild", "resize", "revertResize",
        "migrate", "confirmResize", "live-migration", "shelve", "shelveOffload", "unshelve", "soft_delete", "restore")
#: Deleted servers can be restored, and shelved ones keep their place until they are offloaded.
OPTIONS = {"reclaim_instance_interval": 3600, "shelved_offload_time": -1}
LIMITS = (1, 5, 10)
END_S = 60.0
COUNTED = 3  # lives: timers of the daemons fall into one or the other
IDLE_S = 8.0
AFTER_S = 0.3  # what follows an action's end: the scheduler is told, the guest's state is reported

Rows = Callable[..., Any]


class Costs:
    """Counts and times of one server's actions. What the asking for their end costs is not counted."""

    def __init__(self, cloud: Cloud, meters: Meters) -> None:
        self.cloud, self.meters, self.api = cloud, meters, cloud.api("admin", "bench")
        self.uuid, self._asked = "", 0
        self.idle = self._idle()

    def _idle(self) -> tuple[float, float]:
        """(statements, messages) a second of a cloud that does nothing."""
        return self._around(lambda: time.sleep(IDLE_S), IDLE_S)

    def _around(self, work: Callable[[], Any], share: float = 1.0) -> tuple[float, float]:
        """(statements, messages) while ``work`` is done, by ``share``. The broker's counter takes a second to read."""
        messages, statements = self.meters.messages(), self.meters.statements()
        work()
        statements = self.meters.statements() - statements
        return statements / share, (self.meters.messages() - messages) / share

    def count(self, action: str) -> tuple[int, int]:
        """(statements, messages) of an action, its request included."""
        took = [0.0]

        def work() -> None:
            took[0] = self.do(action)
            time.sleep(AFTER_S)
        asked = self._asked
        statements, messages = self._around(work)
        seconds = took[0] + AFTER_S
        return (round(statements - (self._asked - asked) - seconds * self.idle[0]),
                max(0, round(messages - (seconds + 1) * self.idle[1])))

    def do(self, action: str) -> float:
        """Seconds from the request to the end of the operation."""
        started = time.monotonic()
        if action == "soft_delete":
            self.api.delete(self.uuid)
        else:
            self.api.act(self.uuid, *ORDERS[action])
        wait_until(f"{action} ends", self._over, END_S, 0.01)
        return time.monotonic() - started

    def _over(self) -> bool:
        self._asked += 1
        open_ = sa.exists().where(operations.c.server_uuid == servers.c.uuid, operations.c.finished_at.is_(None))
        [row] = self.cloud.stores.rows("cell", sa.select(servers.c.vm_state, servers.c.task_state, open_.label("open"))
                                       .where(servers.c.uuid == self.uuid))
        assert row.vm_state != "error", f"{self.uuid} is in ERROR: {self.cloud.stores.journal(self.uuid)[-1].fault}"
        return row.task_state is None and not row.open


def create_sample_data(cloud: Cloud) -> None:
    """What the actions need: another image and another flavor."""
    cloud.glance.add(b"another image", id=OTHER_IMAGE, name="other")
    cloud.api("admin").call("POST", "/flavors", {"flavor": {
        "name": "m1.bigger", "id": BIGGER, "ram": 1024, "vcpus": 2, "disk": 2}})


def actions(cloud: Cloud, meters: Meters, report: Callable[..., Any], rounds: int) -> None:
    """``report``: makes a table. The first lives are counted, the others are timed."""
    table = report("Actions on the fake driver, of one server", "action", "SQL", "messages", "median ms", "worst ms")
    costs = Costs(cloud, meters)
    lives: list[dict[str, float]] = []
    counted: list[dict[str, tuple[int, int]]] = []
    for number in range(COUNTED + rounds):
        costs.uuid = costs.api.boot(f"life{number}")["id"]
        if number < COUNTED:
            counted.append({action: costs.count(action) for action in LIFE})
        else:
            lives.append({action: 1000 * costs.do(action) for action in LIFE})
        costs.api.act(costs.uuid, "forceDelete")
        costs.api.gone(costs.uuid)
    for action in LIFE:
        times = [life[action] for life in lives]
        counts = (statistics.median_low([life[action][kind] for life in counted]) for kind in (0, 1))
        table.row(action, *counts, statistics.median(times), max(times))


# -- drain

class Watch:
    """How many moves are under way at the same time, at most; and for how long any is (``seconds``)."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self.most = rows, 0
        self._first = self._last = 0.0

    @property
    def seconds(self) -> float:
        return self._last - self._first

    @contextmanager
    def looking(self) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            query = sa.select(sa.func.count()).select_from(migrations).where(
                migrations.c.status.not_in([*OVER, CONFIRMED]))
            while not over.wait(0.1):
                count = int(self._rows("cell", query)[0][0])
                self.most = max(self.most, count)
                if count:
                    self._last = time.monotonic()
                    self._first = self._first or self._last
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(10)


def one_move(cloud: Cloud, api: Client, uuid: str) -> float:
    """Seconds that the live migration of one server takes, there and back again; the mean."""
    started = time.monotonic()
    for _ in range(2):
        before = api.show(uuid)["OS-EXT-SRV-ATTR:host"]
        api.act(uuid, *ORDERS["live-migration"])
        wait_until("it has moved", lambda before=before: (
            lambda shown: shown["OS-EXT-SRV-ATTR:host"] != before and shown["OS-EXT-STS:task_state"] is None)(
                api.show(uuid)), END_S, 0.05)
    return (time.monotonic() - started) / 2


def drain(cloud: Cloud, report: Callable[..., Any], say: Callable[[str], None], count: int) -> None:
    """All servers of one host to the other and back, so many at a time. The cloud has two hosts."""
    api = cloud.api("admin", "bench")
    here, there = cloud.hosts
    uuids = [api.create(f"drained{number}", host=here)["id"] for number in range(count)]
    wait_until("all are ACTIVE", lambda: {one["status"] for one in api.servers("?limit=1000")} == {"ACTIVE"}, 120, 0.1)
    alone = one_move(cloud, api, uuids[0])
    say(f"\none live migration takes {alone:.2f} s")
    table = report(f"A drain of {count} fake servers", "at a time", "seconds", "ratio to one", "at its limit",
                   "at most at once")
    for limit in LIMITS:
        watch = Watch(cloud.stores.rows)
        with watch.looking():
            cloud.manage("host", "drain", here, "--parallel", str(limit), seconds=60 + 5 * alone * count)
        left = [one for one in api.servers("?limit=1000") if one["OS-EXT-SRV-ATTR:host"] == here]
        assert not left, f"{len(left)} servers stayed on {here}"
        table.row(limit, watch.seconds, watch.seconds / alone, math.ceil(count / limit), watch.most)
        cloud.manage("host", "undrain", here)
        here, there = there, here
    for uuid in uuids:
        api.act(uuid, "forceDelete")
    wait_until("all are gone", lambda: not api.servers("?limit=1"), 120, 0.1)
