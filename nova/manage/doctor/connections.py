"""Whether the database servers take as many connections as the conductors may ask for."""

from __future__ import annotations

from collections.abc import Sequence

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf.base import Options
from nova.db.sql.server_limits import ServerLimit, limit_of
from nova.manage.doctor.finding import BAD, OK, Finding, asked
from nova.model.host.services import DatabaseConnections, Service, ServiceQuery


def connections(options: Options) -> Finding:
    """All pools of all conductors that are up, against each server's limit: on a conductor's host."""
    from nova.cmd.conductor import connections as own
    from nova.cmd.conductor import databases

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "connections to the databases are counted on a conductor's host")
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
    return judged(found, own(options), *limits)


def judged(conductors: Sequence[Service], own: DatabaseConnections, api: ServerLimit | None,
           cell: ServerLimit | None) -> Finding:
    """``own``: what a conductor here may take; one that has not said its own (an older release) is counted so. A limit
    of None: the database takes any number."""
    needs = [one.connections or own for one in conductors if one.up] or [own]
    wanted: dict[ServerLimit, int] = {}
    for limit, count in ((api, sum(one.api for one in needs)), (cell, sum(one.cell for one in needs))):
        if limit is not None:
            wanted[limit] = wanted.get(limit, 0) + count
    short = [f"{limit.server} takes {limit.connections}, and {len(needs)} conductors may ask for {count}"
             for limit, count in wanted.items() if count > limit.connections]
    if short:
        return Finding(BAD, "; ".join(short), "raise max_connections there; or lower [conductor]workers, or "
                       "max_pool_size and max_overflow in [database] and [api_database]")
    if not wanted:
        return Finding(OK, "SQLite takes any number of connections")
    return Finding(OK, "; ".join(f"{len(needs)} conductors may ask for {count} of {limit.connections} connections"
                                 for limit, count in wanted.items()))
