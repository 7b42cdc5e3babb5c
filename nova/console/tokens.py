"""Tokens of consoles: made here, and never whole in any log."""

from __future__ import annotations

import uuid


def new() -> str:
    """122 random bits, in the form that everybody expects."""
    return str(uuid.uuid4())


def short(token_hash: str) -> str:
    """What a log may say of a token: enough to find its lines, and no way to it."""
    return token_hash[:8]
