"""What a check of ``nova-manage doctor`` says, and what they all ask of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from nova import errors
from nova.conf.base import Options
from nova.rpc.contracts.conductor import ConductorRPC

OK, WARN, BAD = "ok", "warning", "FAILED"
NAMED = 5
LIBRARYS_URL = "rabbit://"  # where transport_url is not set

T = TypeVar("T")

#: One of several things that a finding is about.
Detail = Mapping[str, str]


class Finding(NamedTuple):
    """``cure`` is what to do; empty when nothing is to be done. ``details``: for programs, where there are many."""

    state: str
    what: str
    cure: str = ""
    details: tuple[Detail, ...] = ()


Check = Callable[[Any], Finding]


def is_host(options: Options) -> bool:
    """Whether this is the configuration of a compute or network host and of no control daemon: its broker user may
    speak to the conductors' door for hosts alone."""
    if options.database.connection:
        return False
    return bool(options.compute_driver or options.hosts_transport_url and not _control_url(options))


def _control_url(options: Options) -> bool:
    """Whether the way between control daemons is configured, which a host does not have."""
    from nova.rpc import transport

    if "transport_url" not in options:
        transport.open_transport(options)  # declares the option, and connects to nothing
    return options.transport_url not in (None, "", LIBRARYS_URL)


def asked(options: Options, ask: Callable[[ConductorRPC], T]) -> T | Finding:
    """What the conductor says; a finding where it can't be asked."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    if is_host(options):
        return Finding(OK, "a compute host does not ask: run this beside nova-api or nova-conductor")
    try:
        return ask(Bus(options, options.host).client(ConductorRPC))
    except errors.NovaError as error:
        return unanswered(error)


def unanswered(error: errors.NovaError) -> Finding:
    """Of a check that needs a conductor's word, and got none."""
    if isinstance(error, errors.PeerTooOld):
        return Finding(WARN, "this cannot be looked at: the conductors are of an older release",
                       "look again after the upgrade")
    if of_database(error):
        return Finding(WARN, "this cannot be looked at: the conductor's database does not answer",
                       "see the line 'database', on a conductor's host")
    return Finding(WARN, "this cannot be looked at: no conductor answers", "see the line 'broker'")


def of_database(error: errors.NovaError) -> bool:
    """Whether a conductor said it, of its database: it answers, and so does the broker."""
    from nova.db.sql.engine import DatabaseAway, DatabaseBusy

    return error.code in (DatabaseAway.code, DatabaseBusy.code)


def some(names: list[str]) -> str:
    """The first five names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
