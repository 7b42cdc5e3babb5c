"""Online data migrations: convert rows of an older release to this release's format, while daemons run.

Each migration is one item of ``DATA_MIGRATIONS``. Conductors run them automatically, a page each turn and one conductor
at a time; ``nova-manage db online_data_migrations`` runs them immediately. The progress of each is a row of the
database, so that any process continues where the last one stopped. A migration is done when a pass reached the end of
the table without finding rows to change. No daemon of an older release may be registered then, because it could write
such rows again.

Add an item here when a column gets a new meaning. A contract migration may remove the old meaning in a later release,
when ``nova-status upgrade check`` reports that all data migrations are done.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.host import services
from nova.db.schema import data_migrations as rows
from nova.db.schema.data_migrations import Walk
from nova.model.quota.counting import classes
from nova.model.server.servers import ServerFacts
from nova.version import is_older

LOG = logging.getLogger(__name__)

PAGE, PAGES = 200, 20
TURN_S = 50  # shorter than the time between two turns of a process


class RowsChanged(NamedTuple):
    """Result of one page. ``last``: its last key; empty at the end of the table."""

    needed: int
    changed: int
    last: str


class DataMigration(NamedTuple):
    """An online data migration. ``name``: fixed, because it names the row with its progress. ``page``: converts the
    rows behind a key (as text; empty for the first page); repeating it is harmless. ``left``: whether any row needs
    it."""

    name: str
    page: Callable[[Stores, str], RowsChanged]
    left: Callable[[Stores], bool]


def _ledger_facts(stores: Stores, after: str) -> RowsChanged:
    with stores.api.reading() as tx:
        page = rows.ledger_page(tx, int(after or 0), PAGE)
    lacking = {row.server_uuid: row.id for row in page if row.lacking}
    last = str(page[-1].id) if len(page) == PAGE else ""
    if not lacking:
        return RowsChanged(0, 0, last)
    with stores.cell.reading() as tx:
        known = rows.described(tx, lacking)
    changed = 0
    for uuid, row in known.items():
        facts = ServerFacts(flavor=row.flavor, image_id=row.image_id, availability_zone=row.pinned_availability_zone)
        changed += stores.api.transact(functools.partial(
            rows.describe, key=lacking[uuid], facts=facts,
            classes=classes(row.flavor, row.image.properties if row.image else {})))
    return RowsChanged(len(known), changed, last)


def _ledger_facts_left(stores: Stores) -> bool:
    with stores.api.reading() as tx:
        return rows.any_lacking(tx)


DATA_MIGRATIONS = (
    # ledger rows of servers hold their flavor, image, zone and resource classes: quotas and lists need no cell
    DataMigration("ledger_facts", _ledger_facts, _ledger_facts_left),)


class MigrationTurn(NamedTuple):
    """Result of one turn of the migration ``name``. ``needed``: rows that had to be changed. ``clean``: a whole pass
    over the table found none."""

    name: str
    needed: int = 0
    changed: int = 0
    clean: bool = False


def turn(stores: Stores, migration: DataMigration) -> MigrationTurn | None:
    """Run the next page of the migration; None if another process has its turn."""
    name = walk_of(migration)
    walk = stores.cell.transact(lambda tx: rows.take_turn(tx, name, TURN_S))
    if walk is None or walk.done:
        return MigrationTurn(migration.name, clean=True) if walk else None
    page = migration.page(stores, walk.after)
    found = walk.found or page.needed > 0
    clean = not page.last and not found
    following = Walk(page.last, found=found and bool(page.last), done=clean and not _older_daemons(stores))
    stores.cell.transact(lambda tx: rows.go_on(tx, name, following))
    if page.changed:
        LOG.info("online data migration %s: %d rows changed", migration.name, page.changed)
    return MigrationTurn(migration.name, page.needed, page.changed, clean)


def pages(stores: Stores, again_s: float) -> Iterator[MigrationTurn]:
    """Run all migrations page by page, each until a pass is clean. Waits for a turn that another process has."""
    for migration in DATA_MIGRATIONS:
        while True:
            outcome = turn(stores, migration)
            if outcome is None:
                time.sleep(again_s)
                continue
            yield outcome
            if outcome.clean:
                break


def walk_of(migration: DataMigration) -> str:
    """Return the name of the row with the migration's progress."""
    return f"migration {migration.name}"


def _older_daemons(stores: Stores) -> bool:
    with stores.cell.reading() as tx:
        return any(is_older(row.release) for row in services.releases(tx))


def run(deps: Deps) -> None:
    """Run a conductor's turn: some pages of each unfinished migration."""
    stores = Stores(deps.api, deps.cell)
    for migration in DATA_MIGRATIONS:
        for _page in range(PAGES):
            outcome = turn(stores, migration)
            if outcome is None or outcome.clean:
                break


def pending(stores: Stores) -> list[DataMigration]:
    """Return the migrations that some row needs."""
    with stores.cell.reading() as tx:
        going_on = [one for one in DATA_MIGRATIONS if not rows.walk(tx, walk_of(one)).done]
    return [one for one in going_on if one.left(stores)]
