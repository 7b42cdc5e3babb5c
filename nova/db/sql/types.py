"""Column types and functions that mean the same on MariaDB, PostgreSQL and SQLite."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import CursorResult, Row
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

from nova import decoding

if TYPE_CHECKING:
    AnyRow = Row[*tuple[Any, ...]]  # whatever its columns are
else:
    AnyRow = Row
#: An SQL expression: a column, a condition, a subquery's value.
Clause = Any
#: A value of a column, whichever the column is: who names the column knows its type.
AnyColumn = Any


def text(length: int = 255) -> sa.types.TypeEngine[Any]:
    """Text that compares and sorts by bytes on every database."""
    return (sa.String(length)
            .with_variant(sa.String(length, collation="C"), "postgresql")
            .with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"))


class Ident(sa.types.TypeDecorator[str]):
    """A uuid as text, in ASCII. What a client asks for may be anything: MariaDB refuses to compare such a column with
    other letters, so they are spelt out, and the text is nobody's uuid.
    """

    impl = sa.CHAR(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        """36 bytes that compare letter by letter, on every database."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.CHAR(36, charset="ascii", collation="ascii_bin"))
        return dialect.type_descriptor(sa.CHAR(36, collation="C" if dialect.name == "postgresql" else None))

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """Letters outside ASCII are spelt as escapes, so that the text can be compared, and is nobody's uuid."""
        if value is None or value.isascii():
            return value
        return value.encode("ascii", "backslashreplace").decode()


def ident() -> Ident:
    """The type of a column with a uuid."""
    return Ident()


def key() -> sa.types.TypeEngine[Any]:
    """The type of a numbered key: 64 bits, and on SQLite what it counts up by itself."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def moment() -> sa.types.TypeEngine[Any]:
    """A time, UTC without zone, microseconds kept."""
    return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def long_text() -> sa.types.TypeEngine[Any]:
    """Text of up to 65,535 characters, however many bytes each has; compares by bytes."""
    return (sa.Text()
            .with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"))


class Json(sa.types.TypeDecorator[Any]):
    """A wire value kept as JSON text. ``kind`` is its type; NULL reads as None."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        """LONGTEXT on MariaDB, in UTF-8; TEXT elsewhere."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """None is kept as NULL."""
        return None if value is None else msgspec.json.encode(value).decode()

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        """The value as its kind. msgspec.ValidationError: the text is no such value."""
        return None if value is None else decoding.from_json(value, self.kind)

    @property
    def static_cache_key(self) -> Any:  # two kinds are two types, though both are text
        """What SQLAlchemy's cache of statements knows the type by: its kind, too."""
        return (Json, str(self.kind))


def new_key(made: CursorResult[Any]) -> int:
    """The number that the database gave the row that an INSERT made."""
    key = made.inserted_primary_key
    assert key is not None
    return int(key[0])


class utc_now(FunctionElement[datetime.datetime]):
    """The database's own clock: the only one that decides leases and who is up."""

    type = moment()
    inherit_cache = True


@compiles(utc_now)
def _utc_now(element: Any, compiler: Any, **kw: Any) -> str:
    return "utc_timestamp(6)"


@compiles(utc_now, "postgresql")
def _utc_now_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return "timezone('utc', clock_timestamp())"


@compiles(utc_now, "sqlite")
def _utc_now_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"


class later(FunctionElement[datetime.datetime]):
    """The database's clock, some whole seconds on (or back, for a negative number)."""

    type = moment()
    inherit_cache = True

    def __init__(self, seconds: int) -> None:
        super().__init__(sa.literal(int(seconds), sa.Integer()))


@compiles(later)
def _later(element: Any, compiler: Any, **kw: Any) -> str:
    return f"utc_timestamp(6) + INTERVAL {compiler.process(element.clauses, **kw)} SECOND"


@compiles(later, "postgresql")
def _later_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"timezone('utc', clock_timestamp()) + make_interval(secs => {seconds})"


@compiles(later, "sqlite")
def _later_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {compiler.process(element.clauses, **kw)} || ' seconds')"
