"""Random actions on a whole cloud in one process, which is killed at random; hosts in it die and come back."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import sampling
from tests.fakes.invariants import wrong
from tests.functional.client import Client, Refused
from tests.functional.cloud import ADMIN, Plan
from tests.functional.scene import Truth
from tests.functional.whole import WholeCloud

pytestmark = pytest.mark.in_turn(4, 10)

HOSTS, SERVERS, STEPS, ALL_STEPS = 3, 8, 60, 600
SETTLED_S, RIGHT_S = 60.0, 40.0
ACTIONS: tuple[tuple[str, Any], ...] = (
    ("os-stop", None), ("os-start", None), ("reboot", {"type": "HARD"}), ("reboot", {"type": "SOFT"}),
    ("pause", None), ("unpause", None), ("suspend", None), ("resume", None), ("rebuild", {"imageRef": None}),
    ("resize", {"flavorRef": "2"}), ("resize", {"flavorRef": "1"}), ("confirmResize", None), ("revertResize", None),
    ("shelve", None), ("unshelve", None), ("rescue", None), ("unrescue", None), ("lock", None), ("unlock", None),
    ("createImage", {"name": "taken"}), ("os-migrateLive", {"host": None, "block_migration": "auto"}),
    ("migrate", None), ("evacuate", {}))


@pytest.fixture
def cloud(make_cloud: Callable[[Plan], WholeCloud]) -> WholeCloud:
    made = make_cloud(Plan(whole=True, computes=HOSTS, options={
        "DEFAULT": {"shelved_offload_time": 0, "resize_confirm_window": 0}}))
    made.start()
    made.api(ADMIN).call("POST", "/flavors", {"flavor": {"name": "m1.small", "id": "2", "ram": 1024, "vcpus": 2,
                                                         "disk": 2}})
    return made


class Walker:
    """Who does something to the cloud at each step, and knows nothing of what comes of it."""

    def __init__(self, cloud: WholeCloud, seed: int) -> None:
        self.cloud, self.dice = cloud, random.Random(seed)
        self.admin: Client = cloud.api(ADMIN, "demo")
        self.dead: set[str] = set()
        self.accepted: set[str] = set()

    def step(self) -> None:
        kind = self.dice.choices((self.act, self.create, self.delete, self.kill_host, self.heal, self.kill),
                                 (60, 25, 10, 3, 5, 2))[0]
        with contextlib.suppress(Refused):  # most actions do not fit the server's state, and many hosts are dead
            kind()

    def servers(self) -> list[str]:
        return sorted(server["id"] for server in self.admin.servers())

    def act(self) -> None:
        servers = self.servers()
        if servers:
            action, argument = self.dice.choice(ACTIONS)
            if action == "rebuild":
                argument = {"imageRef": self.admin.show(servers[0])["image"]["id"]}
            self.admin.act(self.dice.choice(servers), action, argument)
            self.accepted.add(action)

    def create(self) -> None:
        if len(self.servers()) < SERVERS:
            self.admin.create(f"vm{self.dice.randrange(1000)}", flavorRef=self.dice.choice("12"))
            self.accepted.add("create")

    def delete(self) -> None:
        servers = self.servers()
        if len(servers) > SERVERS // 2:
            with contextlib.suppress(Refused):
                self.admin.act(servers[0], "unlock")
            self.admin.call("DELETE", f"/servers/{self.dice.choice(servers)}")

    def kill_host(self) -> None:
        if len(self.dead) < HOSTS - 1:
            host = self.dice.choice(self.cloud.hosts)
            self.cloud.fault("POST", kind="host", host=host)
            self.dead.add(host)

    def heal(self) -> None:
        self.cloud.fault("DELETE")
        self.dead.clear()

    def kill(self) -> None:
        """kill -9 of everything at once; what was begun goes on at the next start, with all hosts."""
        self.cloud.daemons["all"].restart()
        self.dead.clear()

    # -- once nothing happens any more

    def settle(self) -> None:
        self.heal()
        until = time.monotonic() + SETTLED_S
        while busy := [server["id"] for server in self.admin.servers() if server["OS-EXT-STS:task_state"]
                       or server["status"] == "BUILD"]:
            assert time.monotonic() < until, f"these do not settle: {busy}"
            time.sleep(0.2)
        self._wait_right()

    def _wait_right(self) -> None:
        until = time.monotonic() + RIGHT_S
        while found := wrong(Truth(self.cloud)):  # type: ignore[arg-type]
            assert time.monotonic() < until, found
            time.sleep(0.3)


@pytest.mark.parametrize("walked", sampling.seeds(3 if sampling.LONG else 1))
def test_walk_when_the_process_and_its_hosts_die_at_random_then_all_is_as_the_records_say(
        cloud: WholeCloud, walked: int, tmp_path: Path) -> None:
    print(f"seed {walked}")
    walker = Walker(cloud, walked)
    for number in range(ALL_STEPS if sampling.LONG else STEPS):
        walker.step()
        if number % 20 == 19:
            walker.settle()
    assert len(walker.accepted) > 5
    for uuid in walker.servers():
        walker.admin.act(uuid, "unlock")
        walker.admin.call("DELETE", f"/servers/{uuid}")
    cloud.wait_clean(SETTLED_S)
