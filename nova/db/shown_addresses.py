"""The addresses in servers' rows, taken apart by the database.

Whichever network service gave them, a row's ``interfaces`` has them all: those of Neutron's ports are in no table here,
and of IPv6 nova-network keeps ranges alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from nova.db.types import AnyColumn


class shows_address(FunctionElement[bool]):
    """Whether a fixed address of this version in a column of interfaces matches (``column, pattern, colons``: whether
    the version's addresses have any)."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(shows_address)
def _shows(element: AnyColumn, compiler: AnyColumn, **kw: AnyColumn) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    return (f"EXISTS (SELECT 1 FROM JSON_TABLE({column}, '$[*].addresses[*]' "
            "COLUMNS (address VARCHAR(64) PATH '$.address')) AS held "
            f"WHERE held.address REGEXP {pattern} AND (LOCATE(':', held.address) > 0) = {colons})")


@compiles(shows_address, "postgresql")
def _shows_postgresql(element: AnyColumn, compiler: AnyColumn, **kw: AnyColumn) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    address = "(held.address #>> '{}')"
    return (f"EXISTS (SELECT 1 FROM jsonb_path_query(CAST({column} AS jsonb), '$[*].addresses[*].address') "
            f"AS held(address) WHERE {address} ~ {pattern} AND (strpos({address}, ':') > 0) = {colons})")


@compiles(shows_address, "sqlite")
def _shows_sqlite(element: AnyColumn, compiler: AnyColumn, **kw: AnyColumn) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    return (f"EXISTS (SELECT 1 FROM json_tree({column}) AS held WHERE held.key = 'address' "
            f"AND instr(held.path, '].addresses[') > 0 AND held.value REGEXP {pattern} "
            f"AND (instr(held.value, ':') > 0) = {colons})")


__all__ = ["shows_address"]
