"""Rows that the database encodes as JSON arrays, and msgspec decodes directly into their type.

PyMySQL is written in Python, and reads rows value by value: 1,000 servers of fifty columns take it 25 ms. As one text
each they take 6, with the decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from nova import decoding, errors, failures
from nova.db.sql.types import Ident, Json, utc_now

R = TypeVar("R")
#: The column in an error of msgspec, whose paths begin with its index.
_PLACE = re.compile(r" - at `\$\[(\d+)\](.*)`$")
_DAMAGED = (msgspec.DecodeError, TypeError)  # a TypeError is of None: the row is longer than max_allowed_packet
Encode = Callable[[str], str]  # a value's SQL -> the SQL of its JSON


def _same(value: str) -> str:
    return value


class RowText(FunctionElement[str]):
    """The values of these columns as the text of a JSON array."""

    type = sa.Text()
    inherit_cache = True


#: The JSON of a value on MariaDB, by the type of its column. NULL stays NULL. The server's own JSON_ARRAY takes twice
#: the time of these, and quotes JSON texts.
_MARIADB: tuple[tuple[type, Encode], ...] = (
    (Json, _same),
    (sa.Boolean, lambda value: f"IF({value}, 'true', IF({value} IS NULL, NULL, 'false'))"),
    (sa.Integer, _same),
    (sa.DateTime, lambda value: f"CONCAT('\"', {value}, '\"')"),
    (sa.String, lambda value: f"JSON_QUOTE({value})"),
    (Ident, lambda value: f"JSON_QUOTE({value})"),
)
#: What ``json_build_array`` and ``json_array`` would not encode as it is read.
_POSTGRESQL = ((Json, lambda value: f"CAST({value} AS JSON)"),)
_SQLITE = ((Json, lambda value: f"json({value})"),
           (sa.Boolean, lambda value: f"json(CASE WHEN {value} THEN 'true' WHEN NOT {value} THEN 'false' END)"))


def _encoded(element: RowText, compiler: SQLCompiler, table: Sequence[tuple[type, Encode]],
             otherwise: Encode | None, **kw: object) -> list[str]:
    """Return the SQL of each column's JSON. Raises TypeError for a type that has none."""
    found = []
    for column in element.clauses:
        encode = next((encode for kind, encode in table if isinstance(column.type, kind)), otherwise)
        if encode is None:
            raise TypeError(f"{column}: rows as JSON have no values of the type {column.type!r}")
        found.append(encode(compiler.process(column, **kw)))
    return found


@compiles(RowText)
def _mariadb(element: RowText, compiler: SQLCompiler, **kw: object) -> str:
    values = [f"COALESCE({value}, 'null')" for value in _encoded(element, compiler, _MARIADB, None, **kw)]
    return "CONCAT('[', " + ", ',', ".join(values) + ", ']')"


@compiles(RowText, "postgresql")
def _postgresql(element: RowText, compiler: SQLCompiler, **kw: object) -> str:
    return f"CAST(json_build_array({', '.join(_encoded(element, compiler, _POSTGRESQL, _same, **kw))}) AS TEXT)"


@compiles(RowText, "sqlite")
def _sqlite(element: RowText, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_array({', '.join(_encoded(element, compiler, _SQLITE, _same, **kw))})"


class TextRows(Generic[R]):
    """Rows of a type: ``kind`` is a NamedTuple, or a Struct that is ``array_like``, with a field for each column.

        rows = TextRows(Flavor, [flavors.c.id, flavors.c.name])
        rows.of(tx.execute(sa.select(rows.text).where(...)))
    """

    def __init__(self, kind: type[R], columns: Sequence[sa.ColumnElement[object] | utc_now]) -> None:
        self.text = RowText(*columns)
        self._names = [str(column) for column in columns]
        self._decode: Callable[[str], R] = decoding.json_decoder(kind)

    def value(self, text: str | None) -> R:
        """Return the value of one row's text. Raises db.DamagedRow if a column does not match its field,
        db.RowTooLong."""
        with failures.replaced(_DAMAGED, lambda error: self._damaged(text, error)):
            return self._decode(text)  # type: ignore[arg-type]  # None raises

    def of(self, found: Iterable[sa.Row[str]]) -> list[R]:
        """Return the values of a statement's rows, which are only ``text``. Raises as :meth:`value`."""
        decode, texts = self._decode, [text for text, in found]
        with failures.replaced(_DAMAGED, lambda error: self._damaged(self._first_damaged(texts), error)):
            return list(map(decode, texts))

    def _first_damaged(self, texts: Iterable[str]) -> str:
        return next(text for text in texts if failures.failure_of(self._decode, text))

    def _damaged(self, text: str | None, error: Exception) -> errors.NovaError:
        """Return the error with the first column and its value, which identify the row, and the damaged column."""
        if text is None:
            return errors.daemon.RowTooLong(table=self._names[0].partition(".")[0])
        place = _PLACE.search(str(error))
        return errors.daemon.DamagedRow(
            row=f"{self._names[0]} = {text[1:].split(',', 1)[0]}",
            column=self._names[int(place[1])] + place[2] if place else "one of its columns",
            reason=_PLACE.sub("", str(error)))
