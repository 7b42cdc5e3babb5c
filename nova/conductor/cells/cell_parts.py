"""Substitutes of a cell conductor for the api database, the schedulers and the runner. Calls of hosts change the cell's
database alone; super conductors find the remaining work in it (:mod:`nova.conductor.cells.carrying`)."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from nova import errors, failures
from nova.db.host import carried
from nova.db.placement.claims import ProviderUsage
from nova.db.server import guest_facts
from nova.db.server.server_row import ServerRow
from nova.db.server.states import Entry
from nova.db.sql.engine import Database, Engine
from nova.model.base import HostName, Time
from nova.model.guest.guests import ApiFacts
from nova.model.host.hosts import HostStates, Inventory, NodeStamp
from nova.model.placement.accepted_capacity import Capacities

LOG = logging.getLogger(__name__)

#: Modules between a use of a database and the caller that needs it.
_BETWEEN = ("nova.db.sql.engine", "contextlib", __name__)


class NoApiDatabase(Database):
    """The api database of a cell conductor: each use is a bug, and raises daemon.NotInACell with the user's name."""

    def __init__(self) -> None:
        super().__init__("none://", schema="api")

    @property
    def engine(self) -> Engine:
        """Raise daemon.NotInACell."""
        _refuse("the api database")


class NoClient:
    """The client of a service that a cell conductor does not reach: each call raises daemon.NotInACell."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> NoReturn:
        _refuse(self._name)


def _refuse(what: str) -> NoReturn:
    caller = next(one for one in inspect.stack(context=0) if one.frame.f_globals["__name__"] not in _BETWEEN)
    raise errors.daemon.NotInACell(caller=f"{caller.frame.f_globals['__name__']}.{caller.function}", what=what)


class CarriedApiSide:
    """The api database's side of hosts' calls, left to super conductors."""

    def __init__(self, cell: Database) -> None:
        self._cell = cell

    def apply_inventory(self, inventory: Inventory, limits: Capacities) -> None:
        """Do nothing: the report is complete in the cell's database, with a newer version than the providers have."""

    def complete_cleanup(self, host: HostName, cleanup_id: int) -> None:
        """Mark the cleanup as done: the host is not asked for it again."""
        if self._cell.transact(lambda tx: carried.mark_done(tx, host, cleanup_id)):
            LOG.info("host %s has done its pending cleanup %d; a super conductor releases the claim", host, cleanup_id)

    def guest_facts(self, row: ServerRow) -> ApiFacts:
        """Return the carried facts of a guest, and request newer ones if an operation may have changed them. Raises
        guest.FactsNotHere if there are none yet: they are carried within seconds, and the guest asks again."""
        with self._cell.reading() as tx:
            kept = guest_facts.find(tx, row.uuid)
        if kept is None or not (kept.wanted or kept.are_of(row)):
            self._cell.transact(lambda tx: guest_facts.want(tx, row))
        if kept is None or kept.facts is None:
            raise errors.guest.FactsNotHere(server=row.uuid)
        return kept.facts


class CarriedFeed:
    """Updates for the schedulers, left to super conductors: services' versions and heartbeats tell them all.
    ``reach``: sends something to the hosts' broker, and raises NovaError if it is away."""

    def __init__(self, reach: Callable[[], object]) -> None:
        self._reach = reach

    def alive(self, heartbeats: Sequence[tuple[str, Time]], now: Time | None) -> bool:
        """Return whether hosts can report: their broker answers."""
        return failures.failure_of(self._reach) is None

    def host_changed(self, host: str) -> None:
        """Do nothing: the version of the host's service has changed."""

    def states(self, known: Sequence[NodeStamp] = (), everything: bool = True) -> HostStates:
        """Raise daemon.NotInACell, like the following calls: only schedulers and workflows make them."""
        _refuse("the schedulers")

    def after_claims(self, usages: Sequence[ProviderUsage], claimed: Sequence[str]) -> None:
        """Raise daemon.NotInACell."""
        _refuse("the schedulers")

    def after_release(self, providers: Sequence[int]) -> None:
        """Raise daemon.NotInACell."""
        _refuse("the schedulers")

    def host_gone(self, host: str, nodes: Sequence[str]) -> None:
        """Raise daemon.NotInACell."""
        _refuse("the schedulers")

    def aggregates_changed(self) -> None:
        """Raise daemon.NotInACell."""
        _refuse("the schedulers")


class LeftOperations:
    """Operations that calls of hosts begin, left to super conductors: their journal rows have no runner, so that the
    next sweep of any super conductor takes them over (``nova.conductor.engine.deps.OperationRunner``)."""

    workflows: Mapping[str, object] = {}
    running = 0

    def start(self, entries: Sequence[Entry], servers: Mapping[str, object] | None = None,
              secrets: object = None) -> None:
        """Do nothing: the journal rows are committed. No call of a host has secrets."""

    def go_on(self, entries: Sequence[Entry], left: object) -> None:
        """Do nothing, likewise."""

    def holding(self, entry: Entry) -> contextlib.AbstractContextManager[None]:
        """Raise daemon.NotInACell: an operation without a runner cannot be held."""
        _refuse("a runner")

    def sweep(self) -> int:
        """Take over no operations."""
        return 0
