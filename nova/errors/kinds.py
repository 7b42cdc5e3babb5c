"""The kinds of error there are, and what each means to HTTP and to a workflow."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self, cast

STATUSES: dict[str, int] = {}  # of the rows that have one of their own, by code: it is not on the wire


class NovaError(Exception):
    """Base of all our errors. ``data`` fills the message template and crosses the wire (JSON scalars only). ``cure``:
    what whoever gets it does next, for ``doc/generated/errors.rst``; a row has its own where its message does not say.
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
        """One row of a catalogue: an error of this kind, named by its code's words after the noun. What it does not
        say is as its kind has it."""
        if status is not None:
            STATUSES[code] = status
        noun, _, words = code.partition(".")
        own: dict[str, Any] = {"code": code, "message": message, "cure": cure, "status": status}
        own = {name: value for name, value in own.items() if value} | {"__module__": f"nova.errors.{noun}"}
        return cast("type[Self]", type("".join(map(str.capitalize, re.split("[._]", words))), (cls,), own))


class Bug(NovaError):
    """What should not happen: a 500 with the request id and no internals."""


class NotFound(NovaError):
    kind, status, code, message = "not_found", 404, "nova.not_found", "The resource could not be found."
    cure = "Look whether it is there, and whether it is yours: `list` it, then ask again with its id."


class Invalid(NovaError):
    kind, status, code, message = "invalid", 400, "nova.invalid", "The request is invalid."
    cure = "Change what the message names in the request, and send it again."


class Conflict(NovaError):
    kind, status, code, message = "conflict", 409, "nova.conflict", "The request conflicts with the present state."
    cure = "Look at the thing as it is now; change or wait for what stands in the way, then ask again."


class WrongState(NovaError):
    """A state change that the state table does not allow, or one that somebody else made first."""

    kind, status, code, message = "wrong_state", 409, "server.wrong_state", "The server is in the wrong state."
    cure = "Wait until the action under way has ended (`openstack server show`), then ask again."


class Forbidden(NovaError):
    kind, status, code, message = "forbidden", 403, "nova.forbidden", "Policy doesn't allow this to be performed."
    cure = "Ask somebody with the role, or an operator for another policy."


class OverQuota(NovaError):
    kind, status, code, message = "over_quota", 403, "nova.over_quota", "Quota exceeded."
    cure = "Delete what is not needed, or ask an operator for a higher quota."


class Unavailable(NovaError):
    """A service that is needed does not answer; the message names it. The request may be tried again."""

    kind, status, code, message = "unavailable", 503, "nova.unavailable", "A needed service does not answer."
    cure = "Try again later. The operator looks at the service that the message names, with `nova-manage doctor`."


class Gone(NovaError):
    kind, status, code, message = "gone", 410, "nova.gone", "This API is gone for good."
    cure = "Use what took its place."


class NotSupported(NovaError):
    kind, status, code, message = "not_supported", 501, "nova.not_supported", "The back end cannot do this."
    cure = "Do without it, or ask for another host, hypervisor or back end."


class HostRefused(NovaError):
    """A host will not take an order (or cannot be reached): try the next one."""

    kind, status, code, message = "host_refused", 500, "host.refused", "The host refused."
    cure = "The next host is tried. When it comes back, look at this host's nova-compute log and `nova-manage doctor`."


class ClaimConflict(NovaError):
    """The resources the scheduler proposed are taken: try the next host."""

    kind, status, code, message = "claim_conflict", 500, "claim.conflict", "The resources are taken."
    cure = "The next host is tried; nothing is to be done."


class NoValidHost(NovaError):
    """The hosts are full, silent, or refuse: nothing went wrong here. The API's fault code is a 500, as in Nova."""

    kind, status, code, message = "no_valid_host", 500, "scheduler.no_valid_host", "No valid host was found."
    cure = "Add hosts, or ask for less; `nova-manage request show` tells which filter took which host out."


class PeerTooOld(NovaError):
    kind, status, code, message = "peer_too_old", 503, "rpc.peer_too_old", "The peer is too old for this call."
    cure = "Upgrade the daemon that the message names, or wait until its upgrade is done."


class Overtaken(NovaError):
    """A newer epoch owns the server: whoever gets this stops at once and changes nothing more."""

    kind, status, code, message = "overtaken", 409, "server.overtaken", "A newer operation owns the server."
    cure = "Nothing: a newer action has the server."


KINDS: dict[str, type[NovaError]] = {
    cls.kind: cls
    for cls in (Bug, NotFound, Invalid, Conflict, WrongState, Forbidden, OverQuota, Unavailable, Gone, NotSupported,
                HostRefused, ClaimConflict, NoValidHost, PeerTooOld, Overtaken)
}


def from_wire(kind: str, code: str, message: str, data: dict[str, object]) -> NovaError:
    """The error a peer sent, as its kind; a kind we don't know is a :class:`Bug` that keeps the message."""
    error = KINDS.get(kind, Bug)(message)
    error.status = STATUSES.get(code, error.status)
    error.code, error.data = code, data  # not as arguments: a peer may name its data as it likes
    return error
