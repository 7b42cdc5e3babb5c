"""Doctor check of the recorded cells: their databases, brokers, conductors and hosts."""

from __future__ import annotations

import collections
import functools
import socket
from typing import NamedTuple

from nova import errors, failures
from nova.conf._options import Options
from nova.db.host import services
from nova.db.sql.engine import Connection
from nova.manage.cell_contents import CellContents
from nova.manage.cell_store import CellStore
from nova.manage.databases import of_cell
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, some
from nova.manage.doctor.services import broker_address
from nova.model.host.cells import CellMapping
from nova.model.host.sealed_cells import url_of
from nova.model.host.services import ServiceQuery

CONDUCTOR = "nova-conductor"
CONNECT_S = 5.0


class CellState(NamedTuple):
    """A cell whose database answers: how many of its hosts and conductors are up."""

    cell: CellMapping
    hosts: int
    hosts_up: int
    conductors_up: int


def cells(options: Options) -> Finding:
    """Check each recorded cell; only on a host with the api database."""
    from nova.cmd.conductor_databases import database

    if not options.api_database.connection:
        return Finding(OK, "cells are checked on a host with [api_database]connection")
    api = database(options, "api")
    try:
        contents = CellContents(CellStore.of(options, api), of_cell)
        if len(contents.store.known()) < 2:
            return Finding(OK, "the cloud has one cell")
        return evaluate(options, contents)
    except errors.NovaError as error:
        return Finding(BAD, error.message, error.cure)
    finally:
        api.dispose()


def evaluate(options: Options, contents: CellContents) -> Finding:
    """Return the finding about these cells."""
    away: list[str] = []
    states = [CellState(cell, *counts) for cell, counts in contents.read(
        contents.cells(), functools.partial(_count, down_s=options.service_down_time), away.append)]
    away += [reason for state in states if (reason := _no_broker(contents, state.cell))]
    if away:
        return Finding(BAD, some(away), "start the database or broker there, or correct its URL: nova-manage cell_v2 "
                       "update_cell")
    alone = [_name(state.cell) for state in states if not state.conductors_up]
    if alone:
        return Finding(WARN, f"no conductor of the cell is up, so its hosts cannot report: {some(alone)}",
                       "start nova-conductor with the configuration of the cell")
    return Finding(OK, "; ".join(f"{_name(one.cell)}: {one.hosts_up} of {one.hosts} hosts are up"
                                 f"{' (disabled)' if one.cell.disabled else ''}" for one in states))


def _count(tx: Connection, down_s: int) -> tuple[int, int, int]:
    """Return the number of compute hosts, of the ones among them that are up, and of the conductors that are up."""
    rows = services.select(tx, ServiceQuery(hidden=True))
    found = [services.value(row, clock, down_s, "") for row, clock in rows]
    up = collections.Counter(one.binary for one in found if one.up)
    return sum(one.binary == services.COMPUTE for one in found), up[services.COMPUTE], up[CONDUCTOR]


def _no_broker(contents: CellContents, cell: CellMapping) -> str:
    """Return that the cell's broker does not accept connections; "" if it does."""
    store = contents.store
    host, port = broker_address(url_of(store.reader(), cell, "transport_url", store.urls) or "rabbit://")
    reasons: list[str] = []
    with failures.parked(lambda error: reasons.append(error.strerror or str(error)), on=OSError):
        socket.create_connection((host, port), CONNECT_S).close()
    return f"cell {_name(cell)}: no broker at {host}:{port} ({reasons[0]})" if reasons else ""


def _name(cell: CellMapping) -> str:
    return cell.name or cell.uuid
