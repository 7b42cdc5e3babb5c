"""Versioned messages: every event of the table, with a payload that names its class and version."""

from __future__ import annotations

from nova.notifications.kinds import TYPES, event_type
from nova.notifications.message import Event, NotificationMessage


def message(event: Event, level: str) -> NotificationMessage | None:
    """The event in the versioned form; None when it has none. ``level``: the priority of what is no error."""
    kind = TYPES.get(event_type(event.name, event.phase))
    if kind is None:
        return None
    return NotificationMessage(type=event_type(event.name, event.phase), priority=priority(event, level),
                               publisher=f"{event.source or kind.source}:{event.host}",
                               payload=kind.payload(event.subject) or {}, who=event.who)


def priority(event: Event, level: str) -> str:
    """``ERROR`` for phases and events that tell of a failure, else ``level``."""
    return "ERROR" if event.phase == "error" or event.name == "compute.exception" else level
