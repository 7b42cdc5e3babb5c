"""``nova-manage backup`` and ``restore``: write both databases to a file, and restore it into new databases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nova.conf._options import Options
from nova.manage.command import Command, argument
from nova.manage.databases import serving
from nova.manage.output import say, say_now
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.db.schema.backup import Databases

AFTERWARDS = """\
The databases are restored to their state of {taken}. Before you admit users:
  nova-manage api_db sync; nova-manage db sync        if this release is newer than the backup
  systemctl start nova-conductor, then the other control plane services; services on hosts need no restart
  nova-manage doctor                                  shows orphans on hosts, and missing guests
  nova-manage placement rebuild                       derives inventories and allocations again
The page 'Backup and restore' describes each step."""


def _databases(options: Options) -> Databases:
    from nova.db.schema.backup import Databases

    return Databases(serving(options, "api"), serving(options, "cell"))


def backup(options: Options, given: argparse.Namespace) -> int:
    """Write the backup file, while services run. Return 1 if it exists already or cannot be written."""
    from nova.db.schema import backup as backups

    path = Path(given.file)
    try:
        head, counts = backups.write(_databases(options), path, RELEASE)
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
    return 0


def restore(options: Options, given: argparse.Namespace) -> int:
    """Restore the file into new databases. Without --yes it is only read and checked."""
    from nova.db.schema import backup as backups
    from nova.db.schema import restore

    file = backups.BackupFile(Path(given.file))
    counts = file.check()
    say(f"{given.file}: {sum(counts.values())} rows, taken at {file.head.taken_at} UTC by release {file.head.release}.")
    if not given.yes:
        say("The file is complete. Repeat with --yes to restore it into the databases of nova-conductor.conf, which "
            "must be empty.")
        return 0
    databases = _databases(options)
    backups.make_schemas(databases, file.head)
    for name, number in backups.read_into(databases, file):
        if number:
            say_now(f"  {name}: {number}")
    jump = restore.adapt(databases)
    say(f"Raised all epochs by {jump}, so that hosts accept new orders.")
    say(AFTERWARDS.format(taken=file.head.taken_at))
    return 0


BACKUP = Command(backup, "write both databases to a file, while services run", (
    argument("file", help="a new file; it is private (mode 0600) and compressed"),))
RESTORE = Command(restore, "restore a backup into new databases", (
    argument("file", help="a file that 'nova-manage backup' wrote"),
    argument("--yes", action="store_true", help="restore it (default: only read and check the file)")))
