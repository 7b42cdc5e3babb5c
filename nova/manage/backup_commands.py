"""``nova-manage backup`` and ``restore``: write databases to a file, and restore it into new databases."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nova import errors
from nova.conf._options import Options
from nova.db.host import cell_mappings
from nova.manage import databases
from nova.manage.command import Command, argument
from nova.manage.databases import CellsOfBackup
from nova.manage.output import say, say_now
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.db.schema.backup import BackupFile, Databases
    from nova.db.sql.engine import Database

AFTERWARDS = """\
The databases are restored to their state of {taken}. Before you admit users:
  nova-manage api_db sync; nova-manage db sync        if this release is newer than the backup
  systemctl start nova-conductor, then the other control plane services; services on hosts need no restart
  nova-manage doctor                                  shows orphans on hosts, and missing guests
  nova-manage placement rebuild                       derives inventories and allocations again
The page 'Backup and restore' describes each step."""
OF_CELL_AFTERWARDS = """\
The cell's database is restored to its state of {taken}. To serve it:
  nova-manage db sync                                 with the configuration of the cell, if this release is newer
  nova-manage cell_v2 update_cell --cell_uuid {cell} --database_connection URL
  systemctl start nova-conductor                      of the cell, with this URL in [database]connection
  nova-manage orphan list --now                       guests that the records do not know
  nova-manage placement rebuild                       with the api database and this one: derives inventories and
                                                      allocations again
The page 'Backup and restore' describes each step."""
NAMED = 20  # servers that a line names


def backup(options: Options, given: argparse.Namespace) -> int:
    """Write the backup file, while services run. Return 1 if it exists already or cannot be written. Raises
    cell.NotOne."""
    if given.cell_uuid is not None:
        return _write({"cell": databases.recorded_cell(options, given.cell_uuid)}, given.file,
                      CellsOfBackup(given.cell_uuid, apart=False, others=()))
    found = {"api": databases.serving(options, "api"), "cell": databases.serving(options, "cell")}
    return _write(found, given.file, databases.cells_of_backup(options, found["cell"]))


def _write(found: Databases, file: str, cells: CellsOfBackup) -> int:
    from nova.db.schema import backup as backups

    path = Path(file)
    try:
        head, counts = backups.write(found, path, RELEASE, cells.uuid, cells.apart)
    except FileExistsError:
        say(f"{path} exists already. Use another file name.")
        return 1
    except OSError as error:
        say(f"{path} cannot be written: {error.strerror or error}.")
        return 1
    say(f"{path}: {sum(counts.values())} rows, {counts['cell.servers']} servers, as at {head.taken_at} UTC" + (
        ", at one moment." if head.one_moment else f"; {head.gap_ms} ms lie between the two databases, and operations "
        "continued in this time. After a restore they are resumed as after a crash."))
    say("It contains the hosts' encrypted secrets, but not their key, [conductor]host_secret_key: keep both, in "
        "separate places.")
    for other in cells.others:
        say(f"Not in this file: cell {other.name or 'without a name'}. Back it up with: nova-manage backup FILE "
            f"--cell_uuid {other.uuid}")
    return 0


def restore(options: Options, given: argparse.Namespace) -> int:
    """Restore the file into new databases. Without --yes it is only read and checked. Return 1 if it is not clear into
    which database. Raises cell.NotOne."""
    from nova.db.schema import backup as backups

    file = backups.BackupFile(Path(given.file))
    head, counts = file.head, file.check()
    say(f"{given.file}: {sum(counts.values())} rows, taken at {head.taken_at} UTC by release {head.release}.")
    url = given.database_connection
    if not url and (head.of_cell or head.apart):
        say(f"{'It is the backup of one cell' if head.of_cell else 'Its cell had another database than [database]'}: "
            "name a new, empty database for the cell with --database_connection.")
        return 1
    cell = databases.given_cell(options, url) if url else databases.database_of(options, "cell")
    others = _other_cells(options, given.cell_uuid or head.cell) if head.of_cell else ()
    if not given.yes:
        say("The file is complete. Repeat with --yes to restore it into " + (
            "this database" if head.of_cell else "the api database of nova-conductor.conf and this database" if url else
            "the databases of nova-conductor.conf") + ", which must be empty.")
        return 0
    if head.of_cell:
        _restore_cell(options, file, cell, given.cell_uuid or head.cell, others)
    else:
        _fill({"api": databases.serving(options, "api"), "cell": cell}, file)
        say(AFTERWARDS.format(taken=head.taken_at))
    return 0


def _other_cells(options: Options, cell_uuid: str) -> tuple[str, ...]:
    """Return the UUIDs of the other recorded cells. Raises cell.NotOne if this one is not recorded."""
    api = databases.synced(options, "api")
    with api.reading() as tx:
        known = cell_mappings.known(tx)
    api.dispose()
    if cell_uuid not in known:
        raise errors.cell.NotOne(count=0, cell=cell_uuid)
    return tuple(known.keys() - {cell_uuid})


def _restore_cell(options: Options, file: BackupFile, database: Database, cell_uuid: str, others: Sequence[str]
                  ) -> None:
    """Restore a cell's database, which no conductor serves yet, and let the ledger agree with it."""
    from nova.db.schema import restored_cell

    api = databases.synced(options, "api")
    _fill({"cell": database}, file)
    changed = restored_cell.agree(api, database, cell_uuid, others)
    for uuids, meaning in (
            (changed.again, "were deleted since the backup and are there again. Delete them again"),
            (changed.elsewhere, "moved to another cell since the backup, and stay there"),
            (changed.lost, "were created since the backup. Adopt their guests: nova-manage orphan adopt")):
        if uuids:
            more = f" and {len(uuids) - NAMED} more" if len(uuids) > NAMED else ""
            say(f"{len(uuids)} servers {meaning}: {', '.join(uuids[:NAMED])}{more}.")
    say(OF_CELL_AFTERWARDS.format(taken=file.head.taken_at, cell=cell_uuid))


def _fill(found: Databases, file: BackupFile) -> None:
    from nova.db.schema import backup as backups
    from nova.db.schema import restore

    backups.make_schemas(found, file.head)
    for name, number in backups.read_into(found, file):
        if number:
            say_now(f"  {name}: {number}")
    say(f"Raised all epochs by {restore.adapt(found, file.head.cell)}, so that hosts accept new orders.")


BACKUP = Command(backup, "write the api database and a cell's, or one cell's alone, to a file, while services run", (
    argument("file", help="a new file; it is private (mode 0600) and compressed"),
    argument("--cell_uuid", metavar="UUID", help="only this cell (default: the api database, and the cell of this "
                                                 "configuration)")))
RESTORE = Command(restore, "restore a backup into new databases", (
    argument("file", help="a file that 'nova-manage backup' wrote"),
    argument("--database_connection", metavar="URL",
             help="a new, empty database for the cell (default: [database]connection, if the file has the api "
                  "database, too)"),
    argument("--cell_uuid", metavar="UUID", help="the cell's UUID, if the cell was recorded again since the backup"),
    argument("--yes", action="store_true", help="restore it (default: only read and check the file)")))
