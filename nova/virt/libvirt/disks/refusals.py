"""Conversion of failed disk tools to HostRefused errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova import errors, failures


@contextlib.contextmanager
def convert_tool_errors() -> Iterator[None]:
    """Convert CommandFailed to host.CouldNot: a tool that fails on this host may succeed on the next."""
    with failures.translated(errors.host.CommandFailed, lambda error: errors.host.CouldNot(reason=str(error))):
        yield
