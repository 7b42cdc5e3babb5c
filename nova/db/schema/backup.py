"""Backup of databases to one file, and restore: rows as stored, on any supported database product. A file has the api
database and a cell's, or one cell's alone.

The file is compressed JSON, one value a line: a head, each table's columns and rows, and an end with row counts. Rows
are restored into empty tables of the same schema revisions. Hosts may have continued since the backup
(:mod:`nova.db.schema.restore`).
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.models.cell import operations
from nova.db.schema import migrate, revisions
from nova.db.sql.engine import Database
from nova.db.sql.types import Json
from nova.model.base import Time, utcnow

FORMAT = 2
READ = (1, FORMAT)  # formats; the heads of format 1 have no cell
TABLES = {"api": api_tables.metadata, "cell": cell_tables.metadata}
BATCH = 500
TRIES = 20  # attempts to find a moment in which no operation progressed between the two snapshots


class BackupHead(NamedTuple):
    """The head of a backup file. ``one_moment``: no operation progressed between the two databases' snapshots;
    otherwise they are ``gap_ms`` apart, the cell's first, and operations in between are repaired as after a crash.
    ``schemas``: the schema revisions of the databases that the file has. ``cell``: the cell's UUID; empty if it is not
    known. ``apart``: ``[database]`` was another database than the cell's."""

    release: str
    taken_at: str
    schemas: Mapping[str, str]
    one_moment: bool
    gap_ms: int
    cell: str = ""
    apart: bool = False

    @property
    def of_cell(self) -> bool:
        """Return whether the file has no api database."""
        return "api" not in self.schemas


#: Schema ("cell", and "api" unless the file is one cell's) -> its database.
Databases = Mapping[str, Database]


# -- writing


def write(databases: Databases, path: Path, release: str, cell: str = "", apart: bool = False
          ) -> tuple[BackupHead, Counter[str]]:
    """Write the backup file, readable only by its owner from the start; return its head and the rows by table. Daemons
    may keep running. An unfinished file has another name (``.part``). ``cell``, ``apart``: see :class:`BackupHead`.
    Raises FileExistsError, OSError or errors.daemon.DbSchemaBehind."""
    if path.exists():
        raise FileExistsError(path)
    for schema, database in databases.items():
        revisions.check(schema, database)
    part = path.with_name(path.name + ".part")
    with _snapshots(databases) as taken, _new_file(part) as file:
        head = BackupHead(release, utcnow().isoformat(), {
            schema: revisions.current(schema, database) or "" for schema, database in databases.items()},
            *taken.moment, cell, apart)
        counts = Counter[str]()
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=3, filename="") as packed:
            _line(packed, {"nova-backup": FORMAT, **head._asdict()})
            for schema in databases:
                for table in TABLES[schema].sorted_tables:
                    name = f"{schema}.{table.name}"
                    counts[name] = _write_table(packed, name, table, taken.connections[schema])
            _line(packed, {"end": counts})
        file.flush()
        os.fsync(file.fileno())
    os.link(part, path)  # fails if the file was created meanwhile, where a rename would overwrite it
    part.unlink()
    return head, counts


def _new_file(path: Path) -> IO[bytes]:
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _line(file: IO[bytes] | gzip.GzipFile, value: object) -> None:
    file.write(json.dumps(value, default=_plain, separators=(",", ":")).encode() + b"\n")


def _plain(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(f"not a column value: {value!r}")


def _write_table(file: gzip.GzipFile, name: str, table: sa.Table, tx: Connection) -> int:
    columns, number = list(table.columns), 0
    _line(file, {"table": name, "columns": [column.name for column in columns]})
    raw = [sa.type_coerce(column, sa.Text).label(column.name) if isinstance(column.type, Json) else column
           for column in columns]
    query = sa.select(*raw).order_by(*table.primary_key.columns)
    for row in tx.execution_options(stream_results=True, yield_per=BATCH).execute(query):
        _line(file, list(row))
        number += 1
    return number


class _Snapshots(NamedTuple):
    """Read-only transactions of both databases; for ``moment`` see :class:`BackupHead`."""

    connections: Mapping[str, Connection]
    moment: tuple[bool, int]


#: Statements that begin a transaction with a stable snapshot. On PostgreSQL and SQLite the first read takes the
#: snapshot.
_BEGIN = {"postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",), "sqlite": ("BEGIN",),
          "mysql": ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")}
_BEGIN["mariadb"] = _BEGIN["mysql"]


@contextlib.contextmanager
def _snapshots(databases: Databases) -> Iterator[_Snapshots]:
    """Open the snapshots, the cell's first. The api database has a server's ledger row before the cell has the server.
    So a create or delete in between looks as after a crash, and is repaired in the same way."""
    for attempt in range(TRIES):
        with contextlib.ExitStack() as stack:
            began = utcnow()
            cell = stack.enter_context(_snapshot(databases["cell"]))
            if "api" not in databases:
                yield _Snapshots({"cell": cell}, (True, 0))
                return
            before = _progress(cell)
            api = stack.enter_context(_snapshot(databases["api"]))
            gap_ms = int((utcnow() - began).total_seconds() * 1000)
            with databases["cell"].reading() as tx:
                still = _progress(tx) == before
            if still or attempt == TRIES - 1:
                yield _Snapshots({"api": api, "cell": cell}, (still, gap_ms))
                return


def _progress(tx: Connection) -> tuple[int | Time | None, ...]:
    """Return values that change with each step of an operation."""
    return tuple(tx.execute(sa.select(sa.func.max(operations.c.id), sa.func.max(operations.c.updated_at),
                                      sa.func.max(operations.c.finished_at))).one())


@contextlib.contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    with database.reading() as connection:
        try:
            for words in _BEGIN[database.dialect]:
                connection.exec_driver_sql(words)
            connection.execute(sa.select(1))
            yield connection
        finally:
            connection.invalidate()  # its isolation level and transaction must not return to the pool


# -- reading


class BackupFile:
    """An existing backup file. Raises errors.daemon.BackupUnreadable if it is not a backup, incomplete, or of a newer
    format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self._lines(), None)
        if not isinstance(first, dict) or first.pop("nova-backup", None) not in READ:
            raise errors.daemon.BackupUnreadable(path=path, reason="it has no backup header of this format")
        self.head = BackupHead(**first)

    def check(self) -> Counter[str]:
        """Read the whole file and return its rows by table. The end has the expected counts; a truncated file has no
        end."""
        counts, name, end = Counter[str](), "", None
        for line in self._lines():
            if isinstance(line, list):
                counts[name] += 1
            elif isinstance(line, dict) and "table" in line:
                name = line["table"]
            end = line.get("end") if isinstance(line, dict) else None
        if end is None or Counter(end) != counts:
            raise errors.daemon.BackupUnreadable(path=self.path, reason="it is incomplete")
        return counts

    def tables(self) -> Iterator[tuple[str, sa.Table, Iterator[list[dict[str, object]]]]]:
        """Yield (schema, table, batches of its rows) in insertion order. Consume each table's rows before the next
        table."""
        lines = self._lines()
        line = next(lines, None)
        while line is not None:
            if isinstance(line, dict) and "table" in line:
                schema, _, name = line["table"].partition(".")
                table = TABLES[schema].tables[name]
                held: list[object] = []
                yield schema, table, self._batches(lines, line["columns"], table, held)
                line = held[0] if held else next(lines, None)
            else:
                line = next(lines, None)

    @staticmethod
    def _batches(lines: Iterator[object], names: Sequence[str], table: sa.Table, held: list[object]
                 ) -> Iterator[list[dict[str, object]]]:
        """Yield a table's rows in batches; append the line after the table's last row to ``held``."""
        times = {name for name in names if isinstance(table.c[name].type, sa.DateTime)}
        batch: list[dict[str, object]] = []
        for line in lines:
            if not isinstance(line, list):
                held.append(line)
                break
            batch.append({name: _time(value) if name in times else value
                          for name, value in zip(names, line, strict=True)})
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _lines(self) -> Iterator[object]:
        with failures.replaced((OSError, EOFError, ValueError, gzip.BadGzipFile),
                lambda error: errors.daemon.BackupUnreadable(
                    path=self.path, reason=str(error) or type(error).__name__)), gzip.open(self.path, "rb") as file:
            for text in file:
                yield json.loads(text)


def _time(value: str | None) -> Time | None:
    return None if value is None else datetime.datetime.fromisoformat(value)


def make_schemas(databases: Databases, head: BackupHead) -> None:
    """Create the file's schema revisions in empty databases. Raises errors.daemon.RestoreNotEmpty if there are rows or
    newer schemas."""
    for schema, database in databases.items():
        if revisions.current(schema, database) is None:
            migrate.sync(schema, database, head.schemas[schema])
        if (have := revisions.current(schema, database)) != head.schemas[schema]:
            raise errors.daemon.RestoreNotEmpty(schema=schema, what=f"schema {have}, but the backup has "
                                                                    f"{head.schemas[schema]}")
        with database.reading() as tx:
            there = set(sa.inspect(tx).get_table_names())
            for table in TABLES[schema].sorted_tables:  # some may be newer than the backup's schema
                if table.name in there and tx.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first():
                    raise errors.daemon.RestoreNotEmpty(schema=schema, what=f"rows in {table.name}")


def read_into(databases: Databases, file: BackupFile) -> Iterator[tuple[str, int]]:
    """Insert all rows; yield (table, rows) after each table. JSON columns are copied as text."""
    for schema, table, batches in file.tables():
        plain = sa.table(table.name, *(sa.column(column.name, sa.Text if isinstance(column.type, Json) else column.type)
                                       for column in table.columns))
        number = 0
        for batch in batches:
            databases[schema].transact(functools.partial(_insert, table=plain, rows=batch))
            number += len(batch)
        yield f"{schema}.{table.name}", number


def _insert(tx: Connection, table: sa.TableClause, rows: Iterable[Mapping[str, object]]) -> None:
    tx.execute(sa.insert(table), list(rows))
