"""Conversion of failed disk tools to HostRefused errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova import errors


@contextlib.contextmanager
def convert_tool_errors() -> Iterator[None]:
    """Convert CommandFailed to host.CouldNot: a tool that fails on this host may succeed on the next."""
    try:
        yield
    except errors.host.CommandFailed as error:
        raise errors.host.CouldNot(reason=str(error)) from error
