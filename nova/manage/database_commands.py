"""``nova-manage api_db|db``: sync and show database schemas, archive and purge old rows."""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Iterator

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf._options import Options
from nova.db.sql.engine import Database
from nova.manage.command import Run
from nova.manage.databases import database_of, one_cell, stores
from nova.manage.dates import date_of
from nova.manage.output import framed, say

REVISION_DIGITS = 4  # of an alembic revision's name
BAD_ROWS, BAD_BEFORE = 2, 4  # archive_deleted_rows
NO_DATE = "--before {}: not a date. Write it as 2026-11-21 or 2026-11-21T10:00:00."
EVERY_S = -60  # minimum age in seconds that every deleted server has
BATCH = 200  # servers archived or removed in one transaction


def sync(schema: str) -> Run:
    """Return the command that migrates the schema's database to a revision (default: the newest) and prints the old
    one."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.db.schema import migrate

        wanted = given.version or "head"
        revision = wanted.zfill(REVISION_DIGITS) if wanted.isdecimal() else wanted
        before, after = migrate.sync(schema, database_of(options, schema), revision)
        say(f"The {schema} database is at schema {after}" + (f" (was {before or 'empty'})." if before != after
                                                            else ", as before."))
        return 0
    return run


def version(schema: str) -> Run:
    """Return the command that prints the revision number of the schema's database, 0 for an empty one. Scripts compare
    it, so it has no leading zeros and no text."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.db.schema import revisions

        say(str(int(revisions.current(schema, database_of(options, schema)) or 0)))
        return 0
    return run


def purge(options: Options, given: argparse.Namespace) -> int:
    """Remove servers deleted before the date (with --all, all deleted ones), archived or not, in small batches."""
    if not given.all and not given.before:
        say("--before DATE or --all is required.")
        return 1
    age_s = _age_s(given.before)
    if age_s is None:
        say(NO_DATE.format(given.before))
        return 2
    from nova.db.quota import ledger

    api, cell, *_ = stores(options)
    total = _purged(cell, age_s, False, say if given.verbose else None)
    while api.transact(lambda tx: ledger.purge(tx, age_s, 1000)):
        pass
    say(f"{total} deleted servers were purged." if total else "Nothing to remove.")
    return 0 if total else 3


def _age_s(before: str | None) -> int | None:
    """Return the seconds since that date, or without a date an age that all deleted servers have. None: not a date."""
    if not before:
        return EVERY_S
    at = date_of(before)
    return None if at is None else int((datetime.datetime.now(datetime.UTC) - at).total_seconds())


def _purged(cell: Database, age_s: int, archived: bool, tell: Callable[[str], None] | None) -> int:
    """Remove servers of that age, batch by batch, and return how many. ``archived``: only archived ones."""
    from nova.db.server import servers

    total = 0
    while count := cell.transact(lambda tx: servers.purge(tx, age_s, BATCH, archived)):
        total += count
        if tell is not None:
            tell(f"{total} servers removed")
    return total


SOME_ARCHIVED = 1


def archive(options: Options, given: argparse.Namespace) -> int:
    """Hide deleted servers from users: ``--max_rows`` of them, or all in steps of that size (``--until-complete``).
    Return 0 if there were none; 1 if some were archived, and there may be more; 2 for a wrong ``--max_rows``; 4 for a
    wrong ``--before``."""
    if given.max_rows < 1:
        say(f"--max_rows {given.max_rows}: must be a number above 0.")
        return BAD_ROWS
    age_s = _age_s(given.before)
    if age_s is None:
        say(NO_DATE.format(given.before))
        return BAD_BEFORE
    cell = one_cell(options)
    total = sum(_archived(cell, age_s, given))
    if given.verbose and total:
        framed(("Table", "Number of Rows Archived"), [("cell.servers", total)])
    if given.purge:
        say(f"{_purged(cell, age_s, True, None)} archived servers were removed.")
    say(f"{total} deleted servers are archived: lists no longer show them. 'nova-manage db purge' removes them, as "
        "nova-conductor does after [DEFAULT]deleted_retention." if total else "Nothing to archive.")
    return SOME_ARCHIVED if total else 0


def _archived(cell: Database, age_s: int, given: argparse.Namespace) -> Iterator[int]:
    """Archive in batches and yield the size of each: transactions are short, regardless of ``--max_rows``."""
    from nova.db.server import servers

    def archive(most: int) -> int:
        return cell.transact(lambda tx: servers.archive(tx, age_s, most))
    left = given.max_rows
    while count := archive(min(left, BATCH)):
        yield count
        left -= count
        if left <= 0:
            if not given.until_complete:
                return
            left = given.max_rows
            time.sleep(given.sleep or 0)


#: Upstream's exit statuses: all done; rows were changed, and there may be more (``--max-count``); a page failed;
#: invalid input.
MIGRATED, LIMITED, MIGRATION_FAILED, BAD_COUNT = 0, 1, 2, 127
AGAIN_S = 1.0  # wait before the next attempt to get the lock that another process holds


def online_data_migrations(options: Options, given: argparse.Namespace) -> int:
    """Run the data migrations now, page by page, as conductors do in the background."""
    from nova.conductor.upkeep import data_migrations

    if given.max_count is not None and given.max_count < 1:
        say(f"--max-count {given.max_count}: must be a number above 0.")
        return BAD_COUNT
    try:
        both = stores(options)
    except errors.daemon.DbSchemaBehind as error:
        say(error.message)
        return MIGRATION_FAILED
    code, trouble = MIGRATED, ""
    needed, changed = (dict.fromkeys([one.name for one in data_migrations.DATA_MIGRATIONS], 0) for _column in "12")
    try:
        for page in data_migrations.pages(both, AGAIN_S):
            needed[page.name] += page.needed
            changed[page.name] += page.changed
            if given.max_count is not None and sum(changed.values()) >= given.max_count:
                code, trouble = LIMITED, " There may be more: --max-count was reached."
                break
    except errors.NovaError as error:
        code = MIGRATION_FAILED
        trouble = f" Then: {described(error)} Repeat the command: it continues where it stopped."
    framed(("Migration", "Total Needed", "Completed"), [(name, needed[name], changed[name]) for name in needed])
    total = sum(changed.values())
    say((f"{total} rows were changed." if total or code else "No rows need changes.") + trouble)
    return code
