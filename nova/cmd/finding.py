"""What a check of ``nova-manage doctor`` says, and what they all ask of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

OK, WARN, BAD = "ok", "warning", "FAILED"


class Finding(NamedTuple):
    """``cure`` is what to do; empty when nothing is to be done."""

    state: str
    what: str
    cure: str = ""


Check = Callable[[Any], Finding]


def is_compute(options: Any) -> bool:
    """Whether this is a compute host's configuration: its broker user may speak to the conductors' door for hosts."""
    return bool(options.compute_driver) and not options.database.connection
