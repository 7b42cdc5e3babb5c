"""Sanitizing of client input for logs: without possible tokens, only printable characters, and of limited length."""

from __future__ import annotations

import re

MAX_LETTERS = 200

_SECRETS = re.compile(r"(?i)[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|token[^/]*")
_UNPRINTABLE = re.compile(r"[^!-~]")


def masked(text: str) -> str:
    """Return the text with every possible uuid or token as ``***``, other characters than printable ASCII as ``?``, and
    at most 200 characters."""
    return _UNPRINTABLE.sub("?", _SECRETS.sub("***", text))[:MAX_LETTERS]
