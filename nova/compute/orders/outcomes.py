"""Errors of one guest as outcomes, which tell the conductor what to do next and the owner what went wrong."""

from __future__ import annotations

import errno
import logging
import os
import traceback

from nova import errors
from nova.compute.orders.kind import OrderKind, OrderT
from nova.model.guest.orders import Outcome

LOG = logging.getLogger(__name__)

DETAILS = 4000  # characters of a traceback that are kept


def failure(server_uuid: str, error: Exception, kind: OrderKind[OrderT]) -> Outcome:
    """Return the outcome of an order of ``kind`` that ended with ``error``, and log it once."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        error = errors.host.DiskFull(what="the guest's files", host=os.uname().nodename).with_traceback(
            error.__traceback__)
    if not isinstance(error, errors.NovaError):
        LOG.error("the order to %s failed unexpectedly", kind, exc_info=error, extra={"server": server_uuid})
        reason = type(error).__name__
        known: errors.NovaError = (errors.server.BuildFailed(kind=kind.name, reason=reason) if kind.chosen else
                                   errors.Bug(f"The host failed to {kind} the guest ({reason})."))
    else:
        LOG.warning("the order to %s failed: %s", kind, error, extra={"server": server_uuid})
        known = error
    details = "".join(traceback.format_exception(error))[-DETAILS:]
    return Outcome(server_uuid=server_uuid, ok=False, error_kind=known.kind, error_code=known.code,
                   error_message=known.message, details=details)
