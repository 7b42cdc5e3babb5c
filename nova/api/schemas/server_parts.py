"""Bodies and queries of further parts of a server."""

from __future__ import annotations

from nova.web.schema import Body, row
from nova.web.specs import Rules

TAG: Rules = {"min_length": 1, "max_length": 60, "pattern": "^[^,/]*$"}

TAGS = Body(
    row("tags", "array", max_items=50, required=True),
    row("tags[]", "string", **TAG))

ONE_TAG = Body(row("(body)", "null"))  # the path has the tag

RESET_STATE = Body(
    row("os-resetState", "object", required=True),
    row("os-resetState.state", "string", allowed=("active", "error"), required=True))

_OLD_EVENTS = ("network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted")
_EVENTS = (
    (None, "2.50", _OLD_EVENTS),
    ("2.51", "2.75", (*_OLD_EVENTS, "volume-extended")),
    ("2.76", "2.81", (*_OLD_EVENTS, "volume-extended", "power-update")),
    ("2.82", "2.92", (*_OLD_EVENTS, "volume-extended", "power-update", "accelerator-request-bound")),
    ("2.93", None, (*_OLD_EVENTS, "volume-extended", "power-update", "accelerator-request-bound", "volume-reimaged")),
)
EXTERNAL_EVENTS = Body(
    row("events", "array", min_items=1, required=True),
    row("events[]", "object"),
    *(row("events[].name", "string", allowed=names, required=True, since=since, until=until)
      for since, until, names in _EVENTS),
    row("events[].server_uuid", "string", format="uuid", required=True),
    row("events[].status", "string", allowed=("failed", "completed", "in-progress")),
    row("events[].tag", "string", max_length=255))
