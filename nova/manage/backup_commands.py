"""``nova-manage backup`` and ``restore``: both databases as a file, and back into new ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nova.conf.base import Options
from nova.manage.command import Command, argument
from nova.manage.databases import serving
from nova.manage.output import say, say_now
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.db.schema.backup import Databases

AFTERWARDS = """\
The databases are as they were at {taken}. Before you start the daemons, and let users in:
  nova-manage api_db sync; nova-manage db sync        where this release is newer than the backup
  systemctl start nova-conductor, then the other control daemons; the hosts' daemons need no restart
  nova-manage doctor                                  what hosts have that no record knows, and what is missing there
  nova-manage placement rebuild                       what hosts have, and who holds it
The page 'Backup and restore' says what to do about each."""


def _databases(options: Options) -> Databases:
    from nova.db.schema.backup import Databases

    return Databases(serving(options, "api"), serving(options, "cell"))


def backup(options: Options, given: argparse.Namespace) -> int:
    """Writes the file, while daemons run. 1: it is there already, or cannot be written."""
    from nova.db.schema import backup as backups

    path = Path(given.file)
    try:
        head, counts = backups.write(_databases(options), path, RELEASE)
    except FileExistsError:
        say(f"{path} is there already. Name another file.")
        return 1
    except OSError as error:
        say(f"{path} cannot be written: {error.strerror or error}.")
        return 1
    say(f"{path}: {sum(counts.values())} rows, {counts['cell.servers']} servers, as at {head.taken_at} UTC" + (
        ", at one moment." if head.one_moment else f"; {head.gap_ms} ms lie between the two databases, and operations "
        "went on in them. After a restore they are gone on with as after a crash."))
    say("It has the hosts' wrapped secrets. Their key, [conductor]host_secret_key, is not in it: keep both, apart.")
    return 0


def restore(options: Options, given: argparse.Namespace) -> int:
    """Fills new databases from the file. Without --yes it is only read and checked."""
    from nova.db.schema import backup as backups
    from nova.db.schema import restored

    file = backups.BackupFile(Path(given.file))
    counts = file.check()
    say(f"{given.file}: {sum(counts.values())} rows, taken at {file.head.taken_at} UTC by release {file.head.release}.")
    if not given.yes:
        say("It is whole. Repeat with --yes to restore it into the databases of nova-conductor.conf, which have to be "
            "empty.")
        return 0
    databases = _databases(options)
    backups.make_schemas(databases, file.head)
    for name, number in backups.read_into(databases, file):
        if number:
            say_now(f"  {name}: {number}")
    jump = restored.adapt(databases)
    say(f"Epochs were raised by {jump}, so that hosts take orders.")
    say(AFTERWARDS.format(taken=file.head.taken_at))
    return 0


BACKUP = Command(backup, "write both databases into a file, while daemons run", (
    argument("file", help="a new file; it is private (mode 0600) and compressed"),))
RESTORE = Command(restore, "fill new databases from a backup", (
    argument("file", help="what 'nova-manage backup' wrote"),
    argument("--yes", action="store_true", help="do it; without it, the file is only read and checked")))
