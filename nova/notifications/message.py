"""An event, and a message that tells it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nova.notifications.facts import Who


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened. ``name`` and ``phase`` are of ``kinds.TYPES``; ``subject`` is what its payload is made
    of; ``host`` and ``source`` (empty: the table's) make the publisher's id."""

    name: str
    phase: str
    subject: Any
    host: str
    source: str = ""
    who: Who = Who()


@dataclasses.dataclass(frozen=True)
class NotificationMessage:
    """What goes out, but for the id and the time that the library adds."""

    type: str
    priority: str
    publisher: str
    payload: Mapping[str, Any]
    who: Who
