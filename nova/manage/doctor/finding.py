"""Findings of the checks of ``nova-manage doctor``, and helpers that the checks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.rpc.contracts.conductor import ConductorRPC

OK, WARN, BAD = "ok", "warning", "FAILED"
NAMED = 5
LIBRARYS_URL = "rabbit://"  # the library's default of transport_url

T = TypeVar("T")

#: One of several items that a finding is about.
Detail = Mapping[str, str]


class Finding(NamedTuple):
    """The result of a check. ``cure``: the action to take; empty if none is needed. ``details``: the single items of a
    long list, for programs."""

    state: str
    what: str
    cure: str = ""
    details: tuple[Detail, ...] = ()


Check = Callable[[Options], Finding]


def is_host(options: Options) -> bool:
    """True if this is the configuration of a compute or network host and not of a control plane service: the broker
    user of such a host may use only the conductors' API for hosts."""
    if options.database.connection:
        return False
    return bool(options.compute_driver or options.hosts_transport_url and not _control_url(options))


def _control_url(options: Options) -> bool:
    """True if the transport between control plane services is configured, which compute hosts do not have."""
    from nova.rpc import transport

    source = oslo_conf(options)
    if "transport_url" not in source:
        transport.open_transport(source)  # declares the option, and connects to nothing
    return source.transport_url not in (None, "", LIBRARYS_URL)


def asked(options: Options, ask: Callable[[ConductorRPC], T]) -> T | Finding:
    """Return the conductor's reply, or a finding if it cannot be asked."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    if is_host(options):
        return Finding(OK, "not checked on a compute host: run this on a host with nova-api or nova-conductor")
    try:
        return ask(Bus(options, options.host).client(ConductorRPC))
    except errors.NovaError as error:
        return unanswered(error)


def unanswered(error: errors.NovaError) -> Finding:
    """Return the finding of a check that needs a conductor's reply and got none."""
    if isinstance(error, errors.PeerTooOld):
        return Finding(WARN, "this cannot be checked: the conductors are of an older release",
                       "check again after the upgrade")
    if of_database(error):
        return Finding(WARN, "this cannot be checked: the conductor's database does not answer",
                       "see the line 'database', on a conductor's host")
    return Finding(WARN, "this cannot be checked: no conductor answers", "see the line 'broker'")


def of_database(error: errors.NovaError) -> bool:
    """True if a conductor reported an error of its database: the conductor and the broker work."""
    from nova.db.sql.engine import DatabaseBusy, DatabaseUnavailable

    return error.code in (DatabaseUnavailable.code, DatabaseBusy.code)


def some(names: list[str]) -> str:
    """Return the first five names, and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
