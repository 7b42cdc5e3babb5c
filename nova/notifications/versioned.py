"""Versioned messages: every event of the table, with a payload that has a class name and a version."""

from __future__ import annotations

from nova.notifications.kinds import TYPES, event_type
from nova.notifications.message import Event, NotificationMessage


def message(event: Event, level: str) -> NotificationMessage | None:
    """Return the event in the versioned format; None if it has none. ``level``: the priority of non-error events."""
    kind = TYPES.get(event_type(event.name, event.phase))
    if kind is None:
        return None
    return NotificationMessage(type=event_type(event.name, event.phase), priority=priority(event, level),
                               publisher=f"{event.source or kind.source}:{event.host}",
                               payload=kind.payload(event.subject) or {}, who=event.who)


def priority(event: Event, level: str) -> str:
    """Return ``ERROR`` for phases and events about a failure, else ``level``."""
    return "ERROR" if event.phase == "error" or event.name == "compute.exception" else level
