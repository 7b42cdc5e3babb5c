"""What a log may have of what strangers send: nothing that could be a token, printable letters, and not endless."""

from __future__ import annotations

import re

MAX_LETTERS = 200

_SECRETS = re.compile(r"(?i)[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|token[^/]*")
_UNPRINTABLE = re.compile(r"[^!-~]")


def masked(text: str) -> str:
    """The text with what looks like a uuid or a token as ``***``, other than printable ASCII as ``?``, 200 letters at
    most."""
    return _UNPRINTABLE.sub("?", _SECRETS.sub("***", text))[:MAX_LETTERS]
