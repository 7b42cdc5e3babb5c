"""The recorded cells, as commands with one configuration read and change them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable
from typing import NamedTuple

from nova import errors
from nova.cmd.conductor_hosts import cells_wrap, configured_urls
from nova.conf._options import Options
from nova.db.host import cell_mappings, services
from nova.db.host.generated_keys import CELLS
from nova.db.sql.engine import Connection, Database
from nova.model.host import cell_urls
from nova.model.host.cell_urls import CellUrls, filled, of_one_broker, of_one_database
from nova.model.host.cells import CELL, CELL0, FIRST, CellMapping
from nova.model.host.sealed_cells import opened, sealed
from nova.model.security.secret_wrap import SecretWrap, new_key

Say = Callable[[str], None]
RENEWED = ("The generated key of cells' URLs could not be decrypted, because the password in [api_database]connection "
           "has changed. It is replaced with a new key: run update_cell for each cell.")


class CellStore(NamedTuple):
    """The records in ``api``. ``urls``: those of this configuration."""

    options: Options
    api: Database
    urls: CellUrls

    @classmethod
    def of(cls, options: Options, api: Database) -> CellStore:
        """Return the store of a configuration."""
        return cls(options, api, configured_urls(options))

    def known(self) -> dict[str, CellMapping]:
        """Return the cells by UUID, with the first one once it is recorded or has hosts."""
        with self.api.reading() as tx:
            return cell_mappings.known(tx)

    def has_first(self) -> bool:
        """Return whether the first cell is recorded."""
        with self.api.reading() as tx:
            return CELL in cell_mappings.by_uuid(tx)

    # -- keys

    def writer(self) -> SecretWrap:
        """Return the encryption of URLs. Raises config.HostSecretKey, config.GeneratedCellKey."""
        return cells_wrap(self.options, self.api)

    def reader(self) -> SecretWrap:
        """Return an encryption for reading only. If the generated key is lost, it decrypts nothing, but records without
        encrypted URLs can still be read."""
        with contextlib.suppress(errors.config.GeneratedCellKey):
            return self.writer()
        return SecretWrap((new_key(),))

    def renewer(self, say: Say) -> SecretWrap:
        """Return the encryption of URLs. A generated key that is lost is replaced: the database's password has changed,
        so no conductor can use it."""
        with contextlib.suppress(errors.config.GeneratedCellKey):
            return self.writer()
        self.api.transact(CELLS.drop)
        say(RENEWED)
        return self.writer()

    def readable(self, wrap: SecretWrap, cells: Iterable[CellMapping]) -> list[CellMapping]:
        """Return those of the cells whose URLs can be decrypted, with these URLs."""
        found = []
        for one in cells:
            with contextlib.suppress(errors.config.CellUrlSealed):
                found.append(opened(wrap, one, self.urls))
        return found

    # -- changes

    def record_cell0(self, connection: str | None = None) -> bool:
        """Record cell0 unless it is recorded; return False if it was. It becomes the entry if this configuration's
        database is cell0's."""
        missing = CELL0 not in self.known()
        wrap = self.writer() if missing else self.reader()
        url = connection or cell_urls.with_suffix(self.urls.database_connection)

        def record(tx: Connection) -> bool:
            cell_mappings.lock(tx)
            made = missing and cell_mappings.add(tx, CellMapping(
                CELL0, "cell0", cell_urls.NO_TRANSPORT, sealed(wrap, CELL0, "database_connection", url)))
            self.enter(tx, wrap)
            return made
        return self.api.transact(record)

    def enter(self, tx: Connection, wrap: SecretWrap) -> None:
        """Make cell0 the entry if this configuration's database is cell0's, and no other cell's as well."""
        mine = [one.uuid for one in self.readable(wrap, cell_mappings.by_uuid(tx).values())
                if of_one_database(one.database_connection or "", self.urls.database_connection)]
        if mine == [CELL0]:
            cell_mappings.make_entry(tx, CELL0)

    def create(self, wrap: SecretWrap, name: str, urls: CellUrls, disabled: bool = False) -> tuple[CellMapping, bool]:
        """Record a cell with these URLs or templates. Return it, and whether it is new: an existing cell is returned if
        it has the same database or broker. The first cell has a UUID that is the same in every cloud."""
        whole = self.whole(urls)

        def record(tx: Connection) -> tuple[CellMapping, bool]:
            cell_mappings.lock(tx)  # two concurrent calls would both find no cell with these URLs
            if not shares(CellMapping(CELL, "", *self.urls), whole):
                self._record_first(tx, wrap)
            have = {one.uuid: opened(wrap, one, self.urls) for one in cell_mappings.by_uuid(tx).values()}
            cell0 = have.pop(CELL0, None)
            for one in have.values():
                if shares(one, whole):
                    return one, False
            made = CellMapping(str(uuid.uuid4()) if CELL in have else CELL, name, disabled=disabled)
            cell_mappings.add(tx, made.with_urls(*(sealed(wrap, made.uuid, column, url)
                                                   for column, url in urls._asdict().items())))
            if cell0 is not None and cell0.is_entry and shares(cell0, whole):
                cell_mappings.make_entry(tx, made.uuid)  # cell0 has no database of its own
            return made, True
        return self.api.transact(record)

    def _record_first(self, tx: Connection, wrap: SecretWrap) -> None:
        """Record the first cell if it has hosts but no record: it is this configuration's, and the cell to be recorded
        is not the first one."""
        if CELL in cell_mappings.known(tx) and CELL not in cell_mappings.by_uuid(tx):
            cell_mappings.add(tx, FIRST.with_urls(*(sealed(wrap, CELL, column, url)
                                                    for column, url in self.urls._asdict().items())))

    def is_of_another(self) -> bool:
        """Return whether the first cell has hosts but no record, and this configuration's database has no hosts: it is
        another cell's."""
        if self.has_first() or CELL not in self.known():
            return False
        database = Database(self.urls.database_connection, schema="cell")
        try:
            with database.reading() as tx:
                return not services.compute_hosts(tx)
        finally:
            database.dispose()

    def whole(self, urls: CellUrls) -> CellUrls:
        """Return the URLs, with templates filled from the configured ones."""
        return CellUrls(*(filled(url, configured) for url, configured in zip(urls, self.urls, strict=True)))


def shares(cell: CellMapping, urls: CellUrls) -> bool:
    """Return whether a cell (with decrypted URLs) has one of these: cells share no database and no broker."""
    return of_one_database(cell.database_connection or "", urls.database_connection) or of_one_broker(
        cell.transport_url or "", urls.transport_url)
