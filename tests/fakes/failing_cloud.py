"""The small cloud with what tests of failures ask: what servers hold anywhere, and runners that can be replaced."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.registry import ALL
from nova.db.models import cell
from nova.model.orders import BuildOrder
from tests.fakes import moving_guests
from tests.fakes.small_cloud import SmallCloud, until

HOSTS = ("host1", "host2", "host3")
KINDS = ("build", "destroy", "start", "stop", "reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue",
         "rebuild", "password", "crash", "snapshot", "upload", "drop", *moving_guests.KINDS)
SETTLED_S = 10.0


class FailingCloud(SmallCloud):
    def __init__(self, folder: Path, templates: Path) -> None:
        super().__init__(folder, templates, HOSTS)

    def runner(self, journal: type[Journal] = Journal, **more: Any) -> Runner:
        """A new runner process takes the conductor's work from here on."""
        opened = journal(self.cell, "runner", **more)
        opened.open()
        self.deps.runner = Runner(self.deps, opened, ALL, again_s=0.001)
        return self.deps.runner

    def on_order(self, before: Callable[[str, str], None]) -> None:
        """``before(kind, host)`` is called ahead of each order to any host, and may raise."""
        for host, compute in self.computes.items():
            compute.before = {kind: lambda _orders, kind=kind, host=host: before(kind, host) for kind in KINDS}

    def settle(self, uuid: str, seconds: float = SETTLED_S) -> Any:
        """The server's row once its operations have ended and the runner runs none."""
        end = time.monotonic() + seconds
        while self.deps.runner.running or self.open(uuid):
            assert time.monotonic() < end, f"still open: {self.journal(uuid)[-1]}"
            time.sleep(0.005)
        return self.server(uuid)

    def idle(self) -> None:
        """Wait until the runner has ended, or put aside, all it had."""
        until(lambda: not self.deps.runner.running, "the runner is idle")

    def guests(self) -> dict[tuple[str, str], BuildOrder]:
        return {(host, uuid): order for host, compute in self.computes.items() for uuid, order in
                compute.guests.items()}

    def held(self) -> dict[str, list[Any]]:
        """What servers hold, anywhere; empty when there is nothing."""
        told = {one.network.uuid: one.addresses for one in self.network.served}  # the newest of each network
        found = {
            "guests": sorted(self.guests()), "allocations": sorted(self.claims()),
            "addresses": sorted(self.addresses()),
            "interfaces": [row.server_uuid for row in self.rows("cell", sa.select(cell.vifs.c.server_uuid))],
            "debts": [(debt.host, debt.server_uuid) for debt in self.debts()],
            "told": [one.server_uuid for addresses in told.values() for one in addresses],
            "moving": sorted(thing for compute in self.computes.values() for thing in compute.moving.things()),
            "snapshots": sorted(key for compute in self.computes.values() for key in compute.snapshots)}
        return {what: left for what, left in found.items() if left}

    def expire_leases(self) -> None:
        """All runners so far count as dead."""
        self.write("cell", sa.update(cell.runners).values(lease_until=sa.text("'2000-01-01 00:00:00'")))
