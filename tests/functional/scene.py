"""A cloud in which a process is about to die, and what must be true once everything has come to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import sqlalchemy as sa

from nova.db.models import cell as cell_tables
from nova.db.models.cell import servers
from nova.devel.fake.store import FakeGuest
from tests.fakes import claims
from tests.fakes.invariants import wrong
from tests.functional.backends import wait_until
from tests.functional.cloud import Cloud

BOUND_S = 40.0  # for a lease of 4 s, 4 s of silence of a host, and a machine that is busy with other things


class Scene:
    """A cloud in which something is about to die. Its plan has ``NOVA_FAULT_POINT`` name a file."""

    def __init__(self, cloud: Cloud, user: str = "demo") -> None:
        self.cloud, self.api = cloud, cloud.api(user, "demo")
        self.point = Path(cloud.plan.env["NOVA_FAULT_POINT"].removeprefix("@"))

    def repair(self) -> None:
        """All daemons run again, nothing is armed."""
        self.point.unlink(missing_ok=True)
        self.wake()
        for host in self.cloud.hosts:
            (self.cloud.state(host) / "fake-knobs.json").unlink(missing_ok=True)
        for daemon in self.cloud.daemons.values():
            if not daemon.running:
                daemon.restart()

    def arm(self, action: str, step: str, when: str, what: str) -> None:
        self.point.write_text(f"{action}:{step}:{when}:{what}")

    def sleepers(self) -> list[int]:
        """Conductor processes that were stopped."""
        return [pid for pid in self.cloud.daemons["conductor"].workers()
                if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"]

    def wake(self) -> None:
        for pid in self.sleepers():
            os.kill(pid, signal.SIGCONT)

    # -- what is true

    def row(self, uuid: str) -> Any:
        return self.cloud.stores.rows("cell", sa.select(servers).where(servers.c.uuid == uuid))[0]

    def open(self, uuid: str) -> list[Any]:
        return [row for row in self.cloud.stores.journal(uuid) if row.finished_at is None]

    def settled(self, uuid: str, seconds: float = BOUND_S) -> Any:
        """The server's row once nothing goes on (read behind the API, whose calls may wait for the sleeper)."""
        def look() -> Any:
            row = self.row(uuid)
            idle = row.vm_state != "building" and row.task_state is None and not self.open(uuid)
            return row if row.deleted or idle else None
        try:
            return wait_until("the operation ends", look, seconds, 0.1)
        except AssertionError:
            row = self.row(uuid)
            raise AssertionError(f"{uuid} is {row.vm_state}/{row.task_state}: {self.story(uuid)}") from None

    def story(self, uuid: str) -> list[Any]:
        """The server's operations, for whoever reads of a failure."""
        return [(one.action, one.step, one.direction, one.outcome, one.fault, one.finished_at)
                for one in self.cloud.stores.journal(uuid)]

    def wait_right(self, uuid: str, seconds: float = BOUND_S) -> None:
        """All that must be true of a cloud at rest is true: owners, claims, quota, addresses, moves, leftovers."""
        truth, found = Truth(self.cloud), [""]

        def look() -> bool:
            found[:] = wrong(truth, self.cloud.wrong_addresses)  # type: ignore[arg-type]
            return not found
        try:
            wait_until("all is right", look, seconds, 0.3)
        except AssertionError:
            raise AssertionError("\n".join(["it stays wrong:", *found, *map(str, self.story(uuid))])) from None


class Truth:
    """What ``tests.fakes.invariants`` looks at, of real daemons: both databases and the files of the hosts."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud, self.rows = cloud, cloud.stores.rows
        self.computes = {host: SimpleNamespace(path=cloud.state(host)) for host in cloud.hosts}
        for host in cloud.hosts:
            (cloud.state(host) / "building").mkdir(exist_ok=True)

    def debts(self) -> list[Any]:
        return self.rows("cell", sa.select(cell_tables.cleanups))

    def guests(self) -> Mapping[tuple[str, str], FakeGuest]:
        return self._records("guests")

    def source_copies(self) -> set[tuple[str, str]]:
        return set(self._records("aside"))

    def _records(self, folder: str) -> dict[tuple[str, str], FakeGuest]:
        found = {}
        for host in self._cloud.hosts:
            for path in (self._cloud.state(host) / "fake" / folder).glob("*.json"):
                try:
                    found[host, path.stem] = msgspec.json.decode(path.read_bytes(), type=FakeGuest)
                except FileNotFoundError:  # it went while we looked
                    continue
        return found

    def amounts(self) -> dict[tuple[str, str, str], int]:
        """(host, consumer, resource class) -> how much is claimed."""
        return claims.amounts(self.rows)

    @property
    def moving(self) -> dict[str, str]:
        """Consumer -> the server whose move it is."""
        return claims.moving(self.rows)
