"""``nova-manage api_db|db``: schemas made and looked at, old rows purged."""

from __future__ import annotations

import argparse
import contextlib
import datetime

from nova import errors
from nova.conf.base import Options
from nova.db.engine import Database
from nova.manage.command import Run
from nova.manage.doctor.finding import described
from nova.manage.output import say

REVISION_DIGITS = 4  # of an alembic revision's name
BAD_ROWS, BAD_BEFORE = 2, 4  # archive_deleted_rows
NO_DATE = "--before {}: not a date. Write it as 2026-11-21 or 2026-11-21T10:00:00."
_DAYS = ("%m/%d/%y", "%m/%d/%Y", "%Y/%m/%d", "%b %d %Y", "%B %d %Y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")
#: What is no ISO 8601; a day before a month that is a number is nowhere taken.
DATES = (*_DAYS, *(f"{day} {time}" for day in _DAYS for time in ("%H:%M", "%H:%M:%S")), "%Y%m%d%H%M%S",
         "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Z %Y", "%a, %d %b %Y %H:%M:%S %z", "%a %d %b %Y %H:%M:%S")


def database_of(options: Options, schema: str) -> Database:
    """The database of ``schema``: api, or else the cell's. config.Missing: its URL is not set."""
    from nova.cmd.conductor import database

    return database(options, schema)


def synced(options: Options, schema: str) -> Database:
    """The same, with this release's tables in it. daemon.DbSchemaBehind."""
    from nova.db import migrate

    database = database_of(options, schema)
    migrate.check(schema, database)
    return database


def sync(schema: str) -> Run:
    """What brings that schema's database to a revision (without ``version``, the newest), and says what it was."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.db import migrate

        wanted = given.version or "head"
        revision = wanted.zfill(REVISION_DIGITS) if wanted.isdecimal() else wanted
        before, after = migrate.sync(schema, database_of(options, schema), revision)
        say(f"The {schema} database is at schema {after}" + (f" (was {before or 'empty'})." if before != after
                                                            else ", as before."))
        return 0
    return run


def version(schema: str) -> Run:
    """What prints the number of the revision that schema's database is at, 0 for an empty one: scripts compare it, so
    that it has no zeros in front, and no words."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.db import migrate

        say(str(int(migrate.current(schema, database_of(options, schema)) or 0)))
        return 0
    return run


def date_of(words: str) -> datetime.datetime | None:
    """A date, with or without a time, in ISO 8601 or as date(1) and cron jobs write it; UTC where no zone is named.
    None: it is no date."""
    plain = " ".join(words.removesuffix("UTC").split())
    found = None
    with contextlib.suppress(ValueError):
        found = datetime.datetime.fromisoformat(plain)
    for form in DATES if found is None else ():
        with contextlib.suppress(ValueError):
            found = datetime.datetime.strptime(plain, form)
            break
    return found.replace(tzinfo=datetime.UTC) if found is not None and found.tzinfo is None else found


def purge(options: Options, given: argparse.Namespace) -> int:
    """Removes servers deleted before the date (all deleted ones for --all), in small batches."""
    if not given.all and not given.before:
        say("One of --before DATE and --all is needed.")
        return 1
    age_s = -60
    if given.before:
        at = date_of(given.before)
        if at is None:
            say(NO_DATE.format(given.before))
            return 2
        age_s = int((datetime.datetime.now(datetime.UTC) - at).total_seconds())
    from nova.db import ledger, servers

    api, cell = synced(options, "api"), synced(options, "cell")
    total = 0
    while count := cell.transact(lambda tx: servers.purge(tx, age_s, 200)):
        total += count
        if given.verbose:
            say(f"{total} servers removed")
    while api.transact(lambda tx: ledger.purge(tx, age_s, 1000)):
        pass
    say(f"{total} deleted servers were removed for good." if total else "Nothing to remove.")
    return 0 if total else 3


def archive(options: Options, given: argparse.Namespace) -> int:
    """Nothing to do: says so, and 0. Upstream's arguments are checked as upstream does: 2, a wrong ``--max_rows``; 4, a
    wrong ``--before``."""
    if given.max_rows < 1:
        say(f"--max_rows {given.max_rows}: must be a number above 0.")
        return BAD_ROWS
    if given.before and date_of(given.before) is None:
        say(NO_DATE.format(given.before))
        return BAD_BEFORE
    say("Nothing to archive: deleted servers stay in their own tables for [DEFAULT]deleted_retention and are "
        "then removed by nova-conductor itself. 'nova-manage db purge' removes them at once.")
    return 0


#: Upstream's exit status: all is done; rows were changed, and there may be more (``--max-count``); a page failed; bad
#: input.
MIGRATED, LIMITED, MIGRATION_FAILED, BAD_COUNT = 0, 1, 2, 127
AGAIN_S = 1.0  # after which a turn is asked for again that another process has


def online_data_migrations(options: Options, given: argparse.Namespace) -> int:
    """Does them now, a page after the other, as conductors do in the background."""
    from nova.conductor.upkeep import data_migrations
    from nova.conductor.upkeep.allocation_audit import Stores

    if given.max_count is not None and given.max_count < 1:
        say(f"--max-count {given.max_count}: must be a number above 0.")
        return BAD_COUNT
    try:
        stores, total = Stores(synced(options, "api"), synced(options, "cell")), 0
    except errors.daemon.DbSchemaBehind as error:
        say(error.message)
        return MIGRATION_FAILED
    try:
        for changed in data_migrations.pages(stores, AGAIN_S):
            total += changed
            if given.max_count is not None and total >= given.max_count:
                say(f"{total} rows are changed, and there may be more: --max-count is reached.")
                return LIMITED
    except errors.NovaError as error:
        say(f"{total} rows are changed; then: {described(error)} Repeat the command: it goes on where it stopped.")
        return MIGRATION_FAILED
    say(f"{total} rows are changed." if total else "No row has to be changed.")
    return MIGRATED
