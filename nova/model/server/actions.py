"""Instance actions and their events: the operation history as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import Time, Value
from nova.model.scheduling.decisions import NoHost


class ActionEvent(Value):
    """A step of an operation, done or undone. ``result`` is Success, Error, or None while it runs."""

    event: str
    started_at: Time
    finished_at: Time | None = None
    result: str | None = None
    host: str | None = None
    details: str | None = None
    traceback: str | None = None
    step: str = ""
    attempt: int = 1
    duration_ms: int | None = None


class PlacementTrace(Value):
    """Scheduling history of an operation, for operators. ``wishes``: its requirements, as text. ``tried``: selected
    hosts in their order; ``host``: the last of them; ``left``: remaining alternates. ``no_host``: the reason why no
    host was found."""

    requirements: Mapping[str, str] = msgspec.field(default_factory=dict, name="wishes")
    host: str | None = None
    tried: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    no_host: NoHost | None = None


class InstanceAction(Value):
    id: int
    action: str
    server_uuid: str
    request_id: str
    user_id: str | None = None
    project_id: str | None = None
    started_at: Time
    updated_at: Time | None = None
    finished_at: Time | None = None
    message: str | None = None  # None, or Error when it failed
    fault: str | None = None
    events: tuple[ActionEvent, ...] = ()
    placement: PlacementTrace | None = None  # only in queries for the history of one operation
    trace: str = ""  # likewise: its trace id, 32 hexadecimal digits


class ActionQuery(Value):
    """A page of one server's actions, newest first. ``changes_*`` are compared with updated_at."""

    server_uuid: str
    project_id: str | None = None
    limit: int | None = None
    marker: str | None = None  # a request id
    changes_since: Time | None = None
    changes_before: Time | None = None
    with_deleted: bool = True
    request_id: str | None = None
