"""What telling has in common: it is off at no cost, it reads once, and it never fails what it tells of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from nova.conductor.engine.deps import Deps
from nova.db.server import notification_rows
from nova.db.server.servers import instance_name
from nova.db.sql.types import AnyColumn
from nova.model.base import utcnow
from nova.model.quota import periods
from nova.notifications.facts import SHOWN, NotifiedServer, Period, Who
from nova.notifications.message import Event


class HasDeps(Protocol):
    deps: Deps


HasNotifier = Deps | HasDeps


def quietly(method: Callable[..., None]) -> Callable[..., None]:
    """For functions and methods whose first argument is a :class:`Deps`, or has one. Nothing happens while
    notifications are off; what fails is counted as events that were lost."""
    @functools.wraps(method)
    def call(first: HasNotifier, *args: object, **kwargs: object) -> None:
        notifier = first.notifier if isinstance(first, Deps) else first.deps.notifier
        if not notifier.on:
            return
        try:
            method(first, *args, **kwargs)
        except Exception as error:  # no operation fails or waits because nobody could be told of it
            notifier.lost(1, f"{method.__name__}: {type(error).__name__}: {error}")
    return call


def read(deps: Deps, uuids: Sequence[str]) -> dict[str, notification_rows.Announced]:
    """What events show of these servers, by uuid: of those that there are, in one transaction."""
    with deps.cell.reading() as tx:
        return notification_rows.read(tx, uuids, SHOWN)


def facts(deps: Deps, found: notification_rows.Announced, who: Who, **more: AnyColumn) -> NotifiedServer:
    """A server's facts as it was read; ``more``: the other fields of ServerFacts."""
    name = instance_name(deps.settings.instance_name_template, found.row.id, found.row.uuid)
    return NotifiedServer(row=found.row, who=who, metadata=found.metadata, tags=found.tags, instance_name=name,
                          shows_disks=deps.notifier.options.shows_disks, **more)


def period(deps: Deps) -> Period:
    """The usage audit's period that runs now, so far."""
    now = utcnow()
    return Period(periods.last_complete(deps.settings.instance_usage_audit_period, now)[1], now)


def tell(deps: Deps, events: Iterable[Event]) -> None:
    """In their order. It does not wait for who listens."""
    for event in events:
        deps.notifier.tell(event)
