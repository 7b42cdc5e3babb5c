"""Errors of one guest as outcomes, which tell the conductor what to do next and the owner what went wrong."""

from __future__ import annotations

import logging
import traceback

from nova import errors
from nova.model.orders import Outcome

LOG = logging.getLogger(__name__)

DETAILS = 4000  # characters of a traceback that are kept


class BuildFailed(errors.HostRefused):
    """A host that fails in an unforeseen way: another may do better."""

    code, message = "build.failed", "The host could not build the guest ({reason})."


def failure(server_uuid: str, error: Exception, kind: str) -> Outcome:
    """The outcome of an order of ``kind`` that ended with ``error``, logged once."""
    if not isinstance(error, errors.NovaError):
        LOG.error("the order to %s failed unexpectedly", kind, exc_info=error, extra={"server": server_uuid})
        known = (BuildFailed(reason=type(error).__name__) if kind == "build" else
                 errors.Bug(f"The host failed to {kind} the guest ({type(error).__name__})."))
    else:
        LOG.warning("the order to %s failed: %s", kind, error, extra={"server": server_uuid})
        known = error
    details = "".join(traceback.format_exception(error))[-DETAILS:]
    return Outcome(server_uuid=server_uuid, ok=False, error_kind=known.kind, error_code=known.code,
                   error_message=known.message, details=details)
