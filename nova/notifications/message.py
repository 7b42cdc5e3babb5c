"""An event, and the message for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nova.notifications.facts import Who


@dataclasses.dataclass(frozen=True)
class Event:
    """An occurrence. ``name`` and ``phase`` are from ``kinds.TYPES``; ``subject`` is the source of its payload;
    ``host`` and ``source`` (empty: the table's) form the publisher's id."""

    name: str
    phase: str
    subject: Any
    host: str
    source: str = ""
    who: Who = Who()


@dataclasses.dataclass(frozen=True)
class NotificationMessage:
    """An outgoing message, without the id and the time, which the library adds."""

    type: str
    priority: str
    publisher: str
    payload: Mapping[str, Any]
    who: Who
