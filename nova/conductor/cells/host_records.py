"""Enrolments, orphans, consoles and snapshots by the volume service, in the cells that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nova import errors
from nova.conductor.cells.record_lists import Everywhere
from nova.conductor.engine.deps import Deps
from nova.db import volumes
from nova.db.host import cell_mappings, enrolments
from nova.db.server import consoles
from nova.db.sql.engine import Connection
from nova.db.upkeep import orphans
from nova.model.base import HostName
from nova.model.guest.consoles import ConsoleConnection, TokenCheck
from nova.model.guest.orphans import GuestTakeover, Orphan
from nova.model.host.cells import CELL0
from nova.model.host.services import EnrolledHost
from nova.model.volumes import ComparedAttachments, NewAssistedSnapshot, OldAssistedSnapshot
from nova.rpc.contracts.conductor import ConductorRPC


class MergedHostRecords(Everywhere):
    """The calls of ConductorRPC about rows that name a host or a volume, and are in one cell."""

    def _service_with(self, has: Callable[[Connection], object]) -> ConductorRPC:
        """Return the service of the cell whose database has it."""
        def asked(cell: Deps) -> bool:
            with cell.cell.reading() as tx:
                return bool(has(tx))
        return self.services(self.where(asked))

    # -- enrolments

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """Return the enrolled hosts of all cells, by name."""
        found = self.each(lambda service: service.list_enrolled_hosts())
        return tuple(sorted((one for part in found for one in part), key=lambda one: one.host))

    def enroll_host(self, host: HostName, runs: tuple[str, ...], addresses: tuple[str, ...] = (),
                    cell: str = "") -> str:
        """Enrol a host in the cell of this name or UUID; without one, where it was enrolled before, else in the only
        cell with hosts. Raises cell.NotOne, cell.NotServed, cell.HasHost, cell.SeveralForHosts."""
        where = self._chosen(host, cell) if cell else self._of_new(host)
        return self.services(where).enroll_host(host, runs, addresses)

    def accept_host(self, host: HostName, room: Mapping[str, int]) -> None:
        """Accept the capacity of a host."""
        self._of_enrolled(host).accept_host(host, room)

    def expel_host(self, host: HostName) -> None:
        """Revoke the trust in a host."""
        self._of_enrolled(host).expel_host(host)

    def _of_enrolled(self, host: HostName) -> ConductorRPC:
        return self.services(next(iter(self._enrolled_in(host)), self.cells.entry))

    def _of_new(self, host: HostName) -> Deps:
        """Return the cell of a host whose cell is not named."""
        known = self._enrolled_in(host) or self.cells.with_hosts()
        if len(known) > 1:
            raise errors.cell.SeveralForHosts(host=host)
        return known[0] if known else self.cells.entry

    def _chosen(self, host: HostName, name: str) -> Deps:
        """Return the cell of this name or UUID, which may enrol the host."""
        with self.cells.entry.api.reading() as tx:
            known = cell_mappings.known(tx).items()
        found = [uuid for uuid, one in known if uuid != CELL0 and name in (uuid, one.name)]
        if len(found) != 1:
            raise errors.cell.NotOne(count=len(found), cell=name)
        chosen = self.cells.named(found[0])
        if others := [one.cell_uuid for one in self._enrolled_in(host) if one.cell_uuid != found[0]]:
            raise errors.cell.HasHost(host=host, cell=others[0])
        return chosen

    def _enrolled_in(self, host: HostName) -> Sequence[Deps]:
        """Return the cells in which a host is enrolled. Raises Unavailable if a cell does not answer."""
        def enrolled(cell: Deps) -> bool:
            with cell.cell.reading() as tx:
                return host in enrolments.names(tx)
        if not self.cells.several:
            return [self.cells.entry]
        return [answer.cell for answer in self.cells.fan_out.ask(enrolled).all() if answer.value]

    # -- orphans

    def list_strangers(self, with_ended: bool) -> tuple[Orphan, ...]:
        """Return the orphans of all cells."""
        return tuple(one for part in self.each(lambda service: service.list_strangers(with_ended)) for one in part)

    def look_for_strangers(self, host: str | None) -> int:
        """Ask hosts to look for orphans, and return how many."""
        return sum(self.each(lambda service: service.look_for_strangers(host)))

    def remove_stranger(self, stranger_id: int) -> Orphan:
        """Order the removal of an orphan. Raises orphan.SeveralCells if several cells have one of that number."""
        return self._of_orphan(stranger_id).remove_stranger(stranger_id)

    def adopt_stranger(self, stranger_id: int, change: bool) -> GuestTakeover:
        """Return a guest to its server, or import it. Raises orphan.SeveralCells likewise."""
        return self._of_orphan(stranger_id).adopt_stranger(stranger_id, change)

    def _of_orphan(self, number: int) -> ConductorRPC:
        def has(cell: Deps) -> bool:
            with cell.cell.reading() as tx:
                return orphans.exists(tx, number)
        cells = self.cells
        having = [answer.cell for answer in self.cells.fan_out.ask(has).all() if answer.value]
        if len(having) > 1:
            raise errors.orphan.SeveralCells(id=number)
        return self.services(having[0] if having else cells.entry)

    # -- consoles

    def check_console(self, check: TokenCheck) -> ConsoleConnection:
        """Return the console of a token."""
        return self._service_with(lambda tx: consoles.find(tx, check.token_hash)).check_console(check)

    def get_console(self, token_hash: str) -> ConsoleConnection:
        """Return the console of a token for an administrator."""
        return self._service_with(lambda tx: consoles.find(tx, token_hash)).get_console(token_hash)

    # -- volumes

    def compare_attachments(self, limit: int) -> ComparedAttachments:
        """Compare attachments with the volume service's, ``limit`` of them in each cell."""
        found = self.each(lambda service: service.compare_attachments(limit))
        return ComparedAttachments(servers=sum(one.servers for one in found), whole=all(one.whole for one in found),
                                   differences=tuple(each for one in found for each in one.differences))

    def create_assisted_snapshot(self, wanted: NewAssistedSnapshot) -> None:
        """Begin a snapshot on the host of the volume's server."""
        self._service_with(lambda tx: volumes.holders(tx, wanted.volume_id)).create_assisted_snapshot(wanted)

    def delete_assisted_snapshot(self, gone: OldAssistedSnapshot) -> None:
        """Begin to merge such a snapshot."""
        self._service_with(lambda tx: volumes.holders(tx, gone.volume_id)).delete_assisted_snapshot(gone)
