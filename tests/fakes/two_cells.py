"""A cloud with two cells: an entry cell with hosts ``a`` and ``b``, and another one with hosts ``c`` and ``d``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.model.host.services import Registration
from tests.fakes.databases import QuickDatabase
from tests.fakes.small_cloud import NEUTRON, SmallCloud

OTHER = "0e3ff0a5-0000-4000-8000-000000000002"


class OtherCell(SmallCloud):
    """A cell with its own database, hosts and bus, in the cloud of ``first``."""

    reuses_data = False

    def __init__(self, folder: Path, templates: Path, first: SmallCloud, computes: Sequence[str] = ("c", "d")) -> None:
        self.first = first
        super().__init__(folder, templates, computes, first.networks)
        self.choices = list(self.scheduler.choices)

    def api_database(self) -> QuickDatabase:
        return self.first.api

    def use_neutron(self) -> None:
        self.neutron, self.net = self.first.neutron, self.first.net

    def conductor(self, name: str = "ctl") -> Deps:
        deps = super().conductor(name)
        deps.cell_uuid, deps.images = OTHER, self.first.image_service
        return deps

    def _furnish(self, computes: Sequence[str]) -> None:
        self.enroll("net", *computes)
        self.daemons.register(Registration(host="net", binary="nova-network", topic="network"))
        for host in computes:
            self.add_compute(host)


class TwoCells:
    """Both cells behind one super conductor, and more of them by :meth:`conductor`."""

    def __init__(self, folder: Path, templates: Path) -> None:
        for name in ("one", "two"):
            (folder / name).mkdir()
        self.entry = SmallCloud(folder / "one", templates, networks=NEUTRON)
        self.other = OtherCell(folder / "two", templates, self.entry)
        self.choices = {one.host: one for one in (*self.entry.scheduler.choices, *self.other.choices)}
        self.cells = LiveCells(self.entry.deps)
        self.cells.add(self.other.deps)

    def conductor(self, name: str) -> LiveCells:
        """Return the cells of another super conductor."""
        made = LiveCells(self.entry.conductor(name))
        made.add(self.other.conductor(name))
        return made

    def kill(self, cells: LiveCells) -> None:
        """End the leases of a conductor, as if it had been killed."""
        for cell, deps in ((self.entry, cells.entry), (self.other, cells.named(OTHER))):
            cell.die(deps)
            cell.conductors.remove(deps)

    def choose(self, *hosts: str) -> None:
        """Let the scheduler return these hosts, the best first."""
        self.entry.scheduler.choices[:] = [self.choices[host] for host in hosts]

    def close(self) -> None:
        self.other.close()
        self.entry.close()
