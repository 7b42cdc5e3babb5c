"""Host aggregates: none can be made yet, so the list that clients ask for beside hypervisors is empty."""

from __future__ import annotations

from typing import Any

from nova.api.request import Request


def index(req: Request) -> dict[str, Any]:
    """All aggregates; the operations that make them are in :mod:`nova.api.absent`."""
    return {"aggregates": []}
