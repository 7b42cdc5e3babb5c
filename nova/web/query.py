"""Parsing of query strings."""

from __future__ import annotations

import urllib.parse
from wsgiref.types import WSGIEnvironment

from nova import errors, failures


def query_pairs(environ: WSGIEnvironment) -> list[tuple[str, str]]:
    """Return the query string's (name, value) pairs, in order. Raises api.BadQuery."""
    with failures.replaced(UnicodeError, lambda _: errors.api.BadQuery()):
        text = environ.get("QUERY_STRING", "").encode("latin-1").decode("utf-8")
        return urllib.parse.parse_qsl(text, keep_blank_values=True, errors="strict")
