"""What becomes of a guest's disks that this host cannot make, or has not got."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova import errors


@contextlib.contextmanager
def as_refusals() -> Iterator[None]:
    """A tool that fails on this host need not fail on the next."""
    try:
        yield
    except errors.host.CommandFailed as error:
        raise errors.host.CouldNot(reason=str(error)) from error
