"""Doctor check that the database servers allow as many connections as the conductors may open."""

from __future__ import annotations

from collections.abc import Sequence

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf._options import Options
from nova.db.sql.server_limits import ServerLimit, limit_of
from nova.manage.doctor.finding import BAD, OK, Finding, asked
from nova.model.host.services import DatabaseConnections, Service, ServiceQuery


def connections(options: Options) -> Finding:
    """Compare all pools of all conductors that are up with each server's limit; only on a conductor's host."""
    from nova.cmd.conductor_databases import connections as own
    from nova.cmd.conductor_databases import databases

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "connections to the databases are checked on a conductor's host")
    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-conductor")))
    if isinstance(found, Finding):
        return found
    api, cell = databases(options)
    try:
        limits = limit_of(api), limit_of(cell)
    except errors.NovaError as error:
        return Finding(BAD, described(error), "see the line 'database'")
    finally:
        api.dispose()
        cell.dispose()
    return evaluate(found, own(options), *limits)


def evaluate(conductors: Sequence[Service], own: DatabaseConnections, api: ServerLimit | None,
            cell: ServerLimit | None) -> Finding:
    """Return the finding for the connections that ``conductors`` may open. ``own``: the connections that a conductor
    here may open, also assumed for conductors that do not report theirs (older releases). A limit of None: no limit."""
    needs = [one.connections or own for one in conductors if one.up] or [own]
    wanted: dict[ServerLimit, int] = {}
    for limit, count in ((api, sum(one.api for one in needs)), (cell, sum(one.cell for one in needs))):
        if limit is not None:
            wanted[limit] = wanted.get(limit, 0) + count
    short = [f"{limit.server} allows {limit.connections} connections, but {len(needs)} conductors may open {count}"
             for limit, count in wanted.items() if count > limit.connections]
    if short:
        return Finding(BAD, "; ".join(short), "raise max_connections there; or lower [conductor]workers, or "
                       "max_pool_size and max_overflow in [database] and [api_database]")
    if not wanted:
        return Finding(OK, "SQLite does not limit connections")
    return Finding(OK, "; ".join(f"{len(needs)} conductors may open {count} of {limit.connections} connections"
                                 for limit, count in wanted.items()))
