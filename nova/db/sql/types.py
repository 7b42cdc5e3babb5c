"""Column types and functions with the same semantics on MariaDB, PostgreSQL and SQLite."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVarTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import CursorResult, Row
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from nova import decoding

if TYPE_CHECKING:
    AnyRow = Row[*tuple[Any, ...]]  # any columns
else:
    AnyRow = Row
#: A value of any column; code that names the column knows the type.
AnyColumn = Any
Columns = TypeVarTuple("Columns")  # of a statement or its rows


def text(length: int = 255) -> sa.String:
    """Return a text type that compares and sorts by bytes on every database."""
    return (sa.String(length)
            .with_variant(sa.String(length, collation="C"), "postgresql")
            .with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"))


class Ident(sa.types.TypeDecorator[str]):
    """A UUID as ASCII text. Clients may send any text, and MariaDB refuses to compare an ASCII column with other
    letters: these are escaped, which makes the text match no UUID."""

    impl = sa.CHAR(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        """Return a type of 36 bytes, compared byte by byte on every database."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.CHAR(36, charset="ascii", collation="ascii_bin"))
        return dialect.type_descriptor(sa.CHAR(36, collation="C" if dialect.name == "postgresql" else None))

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Escape letters outside ASCII, so that the text is comparable and matches no UUID."""
        if value is None or value.isascii():
            return value
        return value.encode("ascii", "backslashreplace").decode()


def ident() -> Ident:
    """Return the type of a UUID column."""
    return Ident()


def key() -> sa.BigInteger:
    """Return the type of a numeric primary key: 64 bits; on SQLite the type that auto-increments."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def moment() -> sa.DateTime:
    """Return the type of a timestamp: UTC without time zone, with microseconds."""
    return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def long_text() -> sa.Text:
    """Return a type for text of up to 65,535 characters of any byte length; compares by bytes."""
    return (sa.Text()
            .with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"))


class Json(sa.types.TypeDecorator[Any]):
    """A wire value stored as JSON text. ``kind`` is the value's type; NULL reads as None."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        """Return LONGTEXT in UTF-8 on MariaDB, TEXT elsewhere."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: object, dialect: sa.Dialect) -> str | None:
        """Encode the value as JSON; None is stored as NULL."""
        return None if value is None else msgspec.json.encode(value).decode()

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[str | None], Any]:
        """Return the function that decodes a value as its kind. It raises msgspec.ValidationError if the text does not
        match it. SQLAlchemy's own function would call three others for each value."""
        decode = decoding.json_decoder(self.kind)
        return lambda value: None if value is None else decode(value)

    @property
    def static_cache_key(self) -> tuple[object, ...]:  # two kinds are two types, though both are stored as text
        """The key of the type in SQLAlchemy's statement cache, including the kind."""
        return (Json, str(self.kind))


def new_key(made: CursorResult[*Columns]) -> int:
    """Return the primary key that the database generated for an INSERT."""
    key = made.inserted_primary_key
    assert key is not None
    return int(key[0])


class utc_now(FunctionElement[datetime.datetime]):
    """The database's clock, the only clock that decides leases and service liveness."""

    type = moment()
    inherit_cache = True


@compiles(utc_now)
def _utc_now(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    return "utc_timestamp(6)"


@compiles(utc_now, "postgresql")
def _utc_now_postgresql(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    return "timezone('utc', clock_timestamp())"


@compiles(utc_now, "sqlite")
def _utc_now_sqlite(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"


class later(FunctionElement[datetime.datetime]):
    """The database's clock plus whole seconds (minus, for a negative number)."""

    type = moment()
    inherit_cache = True

    def __init__(self, seconds: int) -> None:
        super().__init__(sa.literal(int(seconds), sa.Integer()))


@compiles(later)
def _later(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    return f"utc_timestamp(6) + INTERVAL {compiler.process(element.clauses, **kw)} SECOND"


@compiles(later, "postgresql")
def _later_postgresql(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"timezone('utc', clock_timestamp()) + make_interval(secs => {seconds})"


@compiles(later, "sqlite")
def _later_sqlite(element: FunctionElement[datetime.datetime], compiler: SQLCompiler, **kw: object) -> str:
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {compiler.process(element.clauses, **kw)} || ' seconds')"
