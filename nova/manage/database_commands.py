"""``nova-manage api_db|db``: schemas made and looked at, old rows purged."""

from __future__ import annotations

import argparse
import datetime

from nova import errors
from nova.conf.base import Options
from nova.db.engine import Database
from nova.manage.command import Run
from nova.manage.doctor.finding import described
from nova.manage.output import say


def database_of(options: Options, schema: str) -> Database:
    """The database of ``schema``: api, or else the cell's. config.Missing: its URL is not set."""
    from nova.cmd.conductor import databases

    api, cell = databases(options)
    return api if schema == "api" else cell


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

        before, after = migrate.sync(schema, database_of(options, schema), given.version or "head")
        say(f"The {schema} database is at schema {after}" + (f" (was {before or 'empty'})." if before != after
                                                            else ", as before."))
        return 0
    return run


def version(schema: str) -> Run:
    """What prints the revision that schema's database is at."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.db import migrate

        say(migrate.current(schema, database_of(options, schema)) or "none: run sync first")
        return 0
    return run


def purge(options: Options, given: argparse.Namespace) -> int:
    """Removes servers deleted before the date (all deleted ones for --all), in small batches."""
    if not given.all and not given.before:
        say("One of --before DATE and --all is needed.")
        return 1
    age_s = -60
    if given.before:
        try:
            before = datetime.datetime.fromisoformat(given.before)
        except ValueError:
            say(f"--before {given.before}: not a date. Write it as 2026-11-21 or 2026-11-21T10:00:00.")
            return 2
        at = before if before.tzinfo else before.replace(tzinfo=datetime.UTC)
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
    """Nothing to do: says so, and 0. Upstream's arguments are accepted."""
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
