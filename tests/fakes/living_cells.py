"""A living cloud of two cells: an entry cell, and another one with a database, hosts and a bus of its own. One super
conductor, which may be killed, serves both; their networks are Neutron's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.runner import Runner
from nova.conductor.service import cells_service
from nova.db.models import cell as cell_tables
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from tests.fakes.databases import QuickDatabase
from tests.fakes.living_cloud import SETTLED_S, LivingCloud, MortalJournal
from tests.fakes.small_cloud import NEUTRON, until
from tests.fakes.two_cells import OTHER


class OtherLivingCell(LivingCloud):
    """A cell in the cloud of ``first``."""

    reuses_data = False

    def __init__(self, folder: Path, templates: Path, computes: tuple[str, ...], first: LivingCloud, **fake: Any
                 ) -> None:
        self.first = first
        super().__init__(folder, templates, computes, networks=first.networks, **fake)

    def api_database(self) -> QuickDatabase:
        return self.first.api

    def use_neutron(self) -> None:
        self.neutron, self.net = self.first.neutron, self.first.net

    def conductor(self, name: str = "ctl") -> Deps:
        deps = super().conductor(name)
        self.image_service, self.volume_service = self.first.image_service, self.first.volume_service
        deps.cell_uuid, deps.images, deps.volumes = OTHER, self.image_service, self.volume_service
        deps.scheduler = self.first.bus.client(SchedulerRPC, name)
        return deps

    def new_journal(self) -> MortalJournal:
        """Return the journal of a conductor that serves both cells."""
        made = super().new_journal()
        made.partner = self.first.deps.journal
        return made

    def _furnish(self, computes: Sequence[str]) -> None:
        """Flavors and networks are the first cell's."""


class LivingCells(LivingCloud):
    """Both cells, with the methods of one cloud. Hosts are in turn in the entry cell and in the other one."""

    other: OtherLivingCell | None = None

    def __init__(self, folder: Path, templates: Path, computes: tuple[str, ...], seed: int = 1, **fake: Any) -> None:
        for name in ("one", "two"):
            (folder / name).mkdir()
        super().__init__(folder / "one", templates, computes[::2], seed, NEUTRON, **fake)
        self.other = OtherLivingCell(folder / "two", templates, computes[1::2], self, **fake)
        self.computes |= self.other.computes
        self.live = LiveCells(self.deps)
        self.live.add(self.other.deps)
        self.bus.serve(ConductorRPC, cells_service(self.live, self.daemons))
        assert self.living.sweep()

    @property
    def parts(self) -> tuple[LivingCloud, ...]:
        return (self,) if self.other is None else (self, self.other)

    def deps_of(self, uuid: str) -> Deps:
        return self.live.of_server(uuid)

    # -- deaths of processes

    def conductor_process(self) -> Runner:
        made = super().conductor_process()
        for part in self.parts[1:]:
            part.conductor_process()
        return made

    def replace_conductor(self) -> None:
        super().replace_conductor()
        for part in self.parts[1:]:
            part.deps.runner.sweep()

    # -- state

    def rows(self, schema: str, query: Any) -> list[Any]:
        """Return rows of the api database, or of both cells."""
        found = super().rows(schema, query)
        return found + [row for part in self.parts[1:] if schema == "cell" for row in part.rows(schema, query)]

    def write(self, schema: str, *statements: Any) -> None:
        super().write(schema, *statements)
        for part in self.parts[1:] if schema == "cell" else ():
            part.write(schema, *statements)

    def server(self, uuid: str) -> Any:
        """Return a server's row; while the server moves, a look at one cell after the other may find none."""
        query = sa.select(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid)
        return until(lambda: self.rows("cell", query), f"server {uuid} is in a cell")[0]

    def settle(self, *uuids: str, seconds: float = SETTLED_S) -> None:
        super().settle(*uuids, seconds=seconds)
        for part in self.parts[1:]:
            until(lambda part=part: not part.deps.runner.running, "the runner of the other cell is idle")

    def nudge(self) -> None:
        super().nudge()
        for part in self.parts[1:]:
            part.nudge()

    def host_changed(self, host: str) -> None:
        for part in self.parts:
            part.deps.feed.host_changed(host)

    def flush(self) -> None:
        for part in self.parts:
            part.daemons.flush()

    def close(self) -> None:
        for compute in self.computes.values():
            compute.end()
        for part in self.parts[1:]:
            part.close()
        super().close()
