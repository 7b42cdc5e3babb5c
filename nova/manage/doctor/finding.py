"""What a check of ``nova-manage doctor`` says, and what they all ask of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nova import errors
from nova.conf.base import Options
from nova.rpc.contracts.conductor import ConductorRPC

OK, WARN, BAD = "ok", "warning", "FAILED"
NAMED = 5

T = TypeVar("T")


class Finding(NamedTuple):
    """``cure`` is what to do; empty when nothing is to be done."""

    state: str
    what: str
    cure: str = ""


Check = Callable[[Any], Finding]


def is_compute(options: Options) -> bool:
    """Whether this is a compute host's configuration: its broker user may speak to the conductors' door for hosts."""
    return bool(options.compute_driver) and not options.database.connection


def asked(options: Options, ask: Callable[[ConductorRPC], T]) -> T | Finding:
    """What the conductor says; a finding where it can't be asked."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    if is_compute(options):
        return Finding(OK, "a compute host does not ask; run this beside nova-api or nova-conductor")
    try:
        return ask(Bus(options, options.host).client(ConductorRPC))
    except errors.NovaError:
        return Finding(WARN, "this can not be looked at: no conductor answers", "see the broker's line")


def described(error: errors.NovaError) -> str:
    """The message, with the reason that operators alone may read."""
    from nova.db.engine import DatabaseAway

    return f"{error.message} ({error.reason})" if isinstance(error, DatabaseAway) and error.reason else error.message


def some(names: list[str]) -> str:
    """The first five names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
