"""Console tokens: creation, and a short form for logs."""

from __future__ import annotations

import uuid


def new() -> str:
    """Return 122 random bits, in the usual form of a UUID."""
    return str(uuid.uuid4())


def short(token_hash: str) -> str:
    """Return the loggable part of a token's hash: enough to find its lines, but not the token."""
    return token_hash[:8]
