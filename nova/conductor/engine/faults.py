"""What a server's owner and its operators are told of an operation that failed."""

from __future__ import annotations

import re

from nova import errors
from nova.conductor.engine.operation import Op, PlacementArguments
from nova.model.base import utcnow
from nova.model.servers import Fault

LONGEST = 255  # what a fault's message may have
#: An absolute path of two names or more, which is the operator's to know; a device of the guest's is no such.
PATH = re.compile(r"""(?<![\w:/.-])/(?!dev/)[^\s/'"<>(),;:]+(?:/[^\s/'"<>(),;:]*)+""")


def fault_of(error: errors.NovaError, op: Op) -> Fault:
    """The message is the owner's, and names no host and no path on one; the details, for admins, have it as it was."""
    return Fault(code=error.status if error.status >= 500 else 500, message=nameless(error.message, op)[:LONGEST],
                 details=op.progress.fault_details or op.progress.traceback or error.message,
                 created_at=utcnow())


def nameless(message: str, op: Op) -> str:
    """The message without the names of hosts that the operation had to do with, and without paths of theirs."""
    message = PATH.sub("a file of the host", message)
    asked, found = op.asked(PlacementArguments), op.progress
    names = {op.server.host, found.host, asked.source, asked.host, *found.tried}
    for name in sorted(filter(None, names), key=len, reverse=True):
        message = re.sub(rf"(?:[Hh]ost )?(?<![\w.-])'?{re.escape(name)}'?(?![\w-])", "the host", message)
    return message


__all__ = ["fault_of", "nameless"]
