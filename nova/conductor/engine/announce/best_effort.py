"""Best-effort notifications: no cost when off, one read, and errors are only logged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from nova import failures
from nova.conductor.engine.deps import Deps
from nova.db.server import notification_rows
from nova.db.server.servers import instance_name
from nova.db.sql.types import AnyColumn
from nova.model.base import utcnow
from nova.model.quota import periods
from nova.notifications.facts import SHOWN, NotifiedServer, Period, Who, shown
from nova.notifications.message import Event


class HasDeps(Protocol):
    deps: Deps


HasNotifier = Deps | HasDeps


def quietly(method: Callable[..., None]) -> Callable[..., None]:
    """Decorate functions and methods whose first argument is a :class:`Deps` or has one. They do nothing while
    notifications are off; an exception counts as a lost event."""
    @functools.wraps(method)
    def call(first: HasNotifier, *args: object, **kwargs: object) -> None:
        notifier = first.notifier if isinstance(first, Deps) else first.deps.notifier
        if not notifier.on:
            return
        # no operation fails or waits because of a notification
        if error := failures.failure_of(method, first, *args, **kwargs):
            notifier.lost(1, f"{method.__name__}: {type(error).__name__}: {error}")
    return call


def read(deps: Deps, uuids: Sequence[str]) -> dict[str, notification_rows.Announced]:
    """Return the notified data of the existing servers among these, by UUID, read in one transaction."""
    with deps.cell.reading() as tx:
        return notification_rows.read(tx, uuids, SHOWN)


def facts(deps: Deps, found: notification_rows.Announced, who: Who, **more: AnyColumn) -> NotifiedServer:
    """Return a server's facts as they were read; ``more``: the other fields of ServerFacts."""
    name = instance_name(deps.settings.instance_name_template, found.row)
    return NotifiedServer(row=shown(found.row), who=who, metadata=found.metadata, tags=found.tags, instance_name=name,
                          shows_disks=deps.notifier.options.shows_disks, **more)


def period(deps: Deps) -> Period:
    """Return the current period of the usage audit, up to now."""
    now = utcnow()
    return Period(periods.last_complete(deps.settings.instance_usage_audit_period, now)[1], now)


def tell(deps: Deps, events: Iterable[Event]) -> None:
    """Queue the events in their order, without waiting for consumers."""
    for event in events:
        deps.notifier.tell(event)
