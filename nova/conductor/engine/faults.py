"""What a server's owner and its operators are told of an operation that failed."""

from __future__ import annotations

import re

from nova import errors
from nova.conductor.engine.operation import Op, PlacementArguments
from nova.model.base import utcnow
from nova.model.server.servers import Fault

LONGEST = 255  # what a fault's message may have
#: An absolute path of two names or more, which is the operator's to know; a device of the guest's is no such.
PATH = re.compile(r"""(?<![\w:/.-])/(?!dev/)[^\s/'"<>(),;:]+(?:/[^\s/'"<>(),;:]*)+""")

#: Where hosts and services are: the operators' to know. (A web page may stand in a message for its owner.)
URI = re.compile(r"\b(?!https?:)[a-z][a-z0-9+]{0,20}://[^\s'\"<>]+")
ANY_URI = re.compile(r"\b[a-z][a-z0-9+]{0,20}://[^\s'\"<>]+")
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?")


def fault_of(error: errors.NovaError, op: Op) -> Fault:
    """The message is the owner's, and names no host and no path on one; the details, for admins, have it as it was."""
    return Fault(code=error.status if error.status >= 500 else 500, message=_for_owner(error, op)[:LONGEST],
                 details=op.progress.fault_details or op.progress.traceback or error.message,
                 created_at=utcnow())


def _for_owner(error: errors.NovaError, op: Op) -> str:
    """Of who did not answer the owner reads no address at all."""
    message = error.message
    if isinstance(error, errors.Unavailable):
        message = ADDRESS.sub("a host of the cloud", ANY_URI.sub("a service of the cloud", message))
    return nameless(message, op)


def nameless(message: str, op: Op) -> str:
    """The message without the names of hosts that the operation had to do with, without paths and addresses of
    theirs."""
    message = PATH.sub("a file of the host", URI.sub("a service of the host", message))
    asked, found = op.asked(PlacementArguments), op.progress
    names = {op.server.host, found.host, asked.source, asked.host, *found.tried}
    for name in sorted(filter(None, names), key=len, reverse=True):
        message = re.sub(rf"(?:[Hh]ost )?(?<![\w.-])'?{re.escape(name)}'?(?![\w-])", "the host", message)
    return message


__all__ = ["fault_of", "nameless"]
