"""The body of a resource class."""

from __future__ import annotations

from nova.web.schema import Body, row

CREATE = Body(row("name", "string", required=True, min_length=8, max_length=255, pattern="^CUSTOM_[A-Z0-9_]+$"))
