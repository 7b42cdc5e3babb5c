"""The fault that a server's owner and its operators see after a failed operation."""

from __future__ import annotations

import re

from nova import errors
from nova.conductor.engine.operation import Op, PlacementArguments
from nova.model.base import utcnow
from nova.model.server.servers import Fault

LONGEST = 255  # maximum length of a fault's message
#: An absolute path of two names or more, which only operators may see; a device of the guest is not matched.
PATH = re.compile(r"""(?<![\w:/.-])/(?!dev/)[^\s/'"<>(),;:]+(?:/[^\s/'"<>(),;:]*)+""")

#: Addresses of hosts and services, which only operators may see. (A web page may stay in a message for its owner.)
URI = re.compile(r"\b(?!https?:)[a-z][a-z0-9+]{0,20}://[^\s'\"<>]+")
ANY_URI = re.compile(r"\b[a-z][a-z0-9+]{0,20}://[^\s'\"<>]+")
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?")


def fault_of(error: errors.NovaError, op: Op) -> Fault:
    """Return the fault. The message is for the owner, without host names and host paths; the details for admins keep
    them."""
    return Fault(code=error.status if error.status >= 500 else 500, message=for_owner(error, op),
                 details=op.progress.fault_details or op.progress.traceback or error.message,
                 created_at=utcnow())


def for_owner(error: errors.NovaError, op: Op) -> str:
    """Return the error's message for the owner, of at most ``LONGEST`` characters, without the names, paths and
    addresses of hosts. If a service did not answer, all addresses are removed. A host may have sent any text. Damage
    of the database is for operators only."""
    message = errors.Bug.message if isinstance(error, errors.daemon.DamagedRow) else error.message
    if isinstance(error, errors.Unavailable):
        message = ADDRESS.sub("a host of the cloud", ANY_URI.sub("a service of the cloud", message))
    return nameless(message, op)[:LONGEST]


def nameless(message: str, op: Op) -> str:
    """Return the message without the names of the operation's hosts, and without their paths and addresses."""
    message = PATH.sub("a file of the host", URI.sub("a service of the host", message))
    asked, found = op.asked(PlacementArguments), op.progress
    names = {op.server.host, found.host, asked.source, asked.host, *found.tried}
    for name in sorted(filter(None, names), key=len, reverse=True):
        message = re.sub(rf"(?:[Hh]ost )?(?<![\w.-])'?{re.escape(name)}'?(?![\w-])", "the host", message)
    return message


__all__ = ["fault_of", "for_owner", "nameless"]
