"""Error kinds, with their HTTP statuses and their meaning for a workflow."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self, cast

STATUSES: dict[str, int] = {}  # code -> HTTP status, of rows with a status of their own: it is not on the wire


class NovaError(Exception):
    """Base of all errors. ``data`` fills the message template and crosses the wire (JSON scalars only). ``cure`` tells
    the recipient what to do, for ``doc/generated/errors.rst``; a row has its own if its message does not say it.
    """

    kind: ClassVar[str] = "bug"
    status: int = 500
    code: str = "nova.bug"
    message: str = "An unexpected failure happened."
    cure: ClassVar[str] = "Look for the request id in the logs, and report it."

    def __init__(self, message: str | None = None, **data: object) -> None:
        self.data = data
        self.message = message if message is not None else self.message.format(**data)
        super().__init__(self.message)

    @classmethod
    def row(cls, code: str, message: str = "", cure: str = "", *, status: int | None = None) -> type[Self]:
        """Return a row of a catalogue: an error class of this kind, named by its code's words after the noun. Omitted
        arguments keep the kind's values."""
        if status is not None:
            STATUSES[code] = status
        noun, _, words = code.partition(".")
        own: dict[str, Any] = {"code": code, "message": message, "cure": cure, "status": status}
        own = {name: value for name, value in own.items() if value} | {"__module__": f"nova.errors.{noun}"}
        return cast("type[Self]", type("".join(map(str.capitalize, re.split("[._]", words))), (cls,), own))


class Bug(NovaError):
    """An unexpected failure: a 500 with the request id and no internals."""


class NotFound(NovaError):
    kind, status, code, message = "not_found", 404, "nova.not_found", "The resource could not be found."
    cure = "Check that the resource exists and belongs to your project: `list` it, then repeat the request with its id."


class Invalid(NovaError):
    kind, status, code, message = "invalid", 400, "nova.invalid", "The request is invalid."
    cure = "Correct the part of the request that the message names, and send the request again."


class Conflict(NovaError):
    kind, status, code, message = "conflict", 409, "nova.conflict", "The request conflicts with the present state."
    cure = "Check the resource's current state; resolve or wait for the conflict, then repeat the request."


class WrongState(NovaError):
    """A state change that the state table does not allow, or that another request made first."""

    kind, status, code, message = "wrong_state", 409, "server.wrong_state", "The server is in the wrong state."
    cure = "Wait until the action in progress has ended (`openstack server show`), then repeat the request."


class Forbidden(NovaError):
    kind, status, code, message = "forbidden", 403, "nova.forbidden", "Policy doesn't allow this to be performed."
    cure = "Ask a user who has the role, or ask an operator for another policy."


class OverQuota(NovaError):
    kind, status, code, message = "over_quota", 403, "nova.over_quota", "Quota exceeded."
    cure = "Delete what is not needed, or ask an operator for a higher quota."


class Unavailable(NovaError):
    """A required service does not answer; the message names it. The request may be retried."""

    kind, status, code, message = "unavailable", 503, "nova.unavailable", "A needed service does not answer."
    cure = "Try again later. Operators: check the service that the message names, with `nova-manage doctor`."


class Gone(NovaError):
    kind, status, code, message = "gone", 410, "nova.gone", "This API has been removed."
    cure = "Use the API that replaced it."


class NotSupported(NovaError):
    kind, status, code, message = "not_supported", 501, "nova.not_supported", "The back end cannot do this."
    cure = "Do not use the feature, or use another host, hypervisor or back end."


class HostRefused(NovaError):
    """A host refuses an order, or cannot be reached: try the next host."""

    kind, status, code, message = "host_refused", 500, "host.refused", "The host refused."
    cure = "Nova tries the next host. If it recurs, check this host's nova-compute log and `nova-manage doctor`."


class ClaimConflict(NovaError):
    """The resources the scheduler proposed are taken: try the next host."""

    kind, status, code, message = "claim_conflict", 500, "claim.conflict", "The resources are taken."
    cure = "No action needed: nova tries the next host."


class NoValidHost(NovaError):
    """All hosts are full, down, or refuse; not a failure of nova itself. The API's fault code is 500, as in OpenStack
    Nova."""

    kind, status, code, message = "no_valid_host", 500, "scheduler.no_valid_host", "No valid host was found."
    cure = "Add hosts, or request less; `nova-manage request show` shows which filter rejected which host."


class PeerTooOld(NovaError):
    kind, status, code, message = "peer_too_old", 503, "rpc.peer_too_old", "The peer is too old for this call."
    cure = "Upgrade the service that the message names, or wait until its upgrade is complete."


class Overtaken(NovaError):
    """A newer epoch owns the server: the recipient must stop immediately and change nothing more."""

    kind, status, code, message = "overtaken", 409, "server.overtaken", "A newer operation owns the server."
    cure = "No action needed: a newer action owns the server."


KINDS: dict[str, type[NovaError]] = {
    cls.kind: cls
    for cls in (Bug, NotFound, Invalid, Conflict, WrongState, Forbidden, OverQuota, Unavailable, Gone, NotSupported,
                HostRefused, ClaimConflict, NoValidHost, PeerTooOld, Overtaken)
}


#: Codes of the previous release -> today's. They stay on the wire in this release, because daemons of the previous one
#: compare them during an upgrade; the next release sends today's, and reads both.
FORMER_CODES = {
    "console.can_not_tell": "console.cannot_tell", "host.can_not": "host.cannot",
    "network.can_not_add": "network.cannot_add", "service.can_not_start": "service.cannot_start",
    "volume.can_not_replace": "volume.cannot_replace",
    "stranger.bad_report": "orphan.bad_report", "stranger.known": "orphan.known",
    "stranger.not_adoptable": "orphan.not_adoptable", "stranger.not_found": "orphan.not_found",
    "stranger.not_removable": "orphan.not_removable",
}
_ON_WIRE = {code: former for former, code in FORMER_CODES.items()}


def code_on_wire(code: str) -> str:
    """Return the code by which peers of the previous release know the error."""
    return _ON_WIRE.get(code, code)


def from_wire(kind: str, code: str, message: str, data: dict[str, object]) -> NovaError:
    """Return the error that a peer sent, as its kind; an unknown kind becomes a :class:`Bug` with the same message."""
    code = FORMER_CODES.get(code, code)
    error = KINDS.get(kind, Bug)(message)
    error.status = STATUSES.get(code, error.status)
    error.code, error.data = code, data  # not as arguments: a peer may use any names in its data
    return error
