"""The kinds of error there are, and what each means to HTTP and to a workflow.

A concrete error is a subclass with a stable ``code`` and a ``message`` template, written beside the code that raises
it. Between processes an error travels as (kind, code, message, data); the receiver raises the *kind*, and whoever
must tell two errors of a kind apart compares ``code``.
"""

from __future__ import annotations

from typing import Any, ClassVar


class NovaError(Exception):
    """Base of all our errors. ``data`` fills the message template and crosses the wire (JSON scalars only)."""

    kind: ClassVar[str] = "bug"
    status: ClassVar[int] = 500
    code: str = "nova.bug"
    message: str = "An unexpected failure happened."

    def __init__(self, message: str | None = None, **data: Any) -> None:
        self.data = data
        self.message = message if message is not None else self.message.format(**data)
        super().__init__(self.message)


class Bug(NovaError):
    """What should not happen: a 500 with the request id and no internals."""


class NotFound(NovaError):
    kind, status, code, message = "not_found", 404, "nova.not_found", "The resource could not be found."


class Invalid(NovaError):
    kind, status, code, message = "invalid", 400, "nova.invalid", "The request is invalid."


class Conflict(NovaError):
    kind, status, code, message = "conflict", 409, "nova.conflict", "The request conflicts with what is there."


class WrongState(NovaError):
    """A state change that the state table does not allow, or one that somebody else made first."""

    kind, status, code, message = "wrong_state", 409, "server.wrong_state", "The server is in the wrong state."


class Forbidden(NovaError):
    kind, status, code, message = "forbidden", 403, "nova.forbidden", "Policy doesn't allow this to be performed."


class OverQuota(NovaError):
    kind, status, code, message = "over_quota", 403, "nova.over_quota", "Quota exceeded."


class Unavailable(NovaError):
    """A service that is needed does not answer; the message names it. The request may be tried again."""

    kind, status, code, message = "unavailable", 503, "nova.unavailable", "A needed service does not answer."


class Gone(NovaError):
    kind, status, code, message = "gone", 410, "nova.gone", "This API is gone for good."


class NotSupported(NovaError):
    kind, status, code, message = "not_supported", 501, "nova.not_supported", "The back end can not do this."


class HostRefused(NovaError):
    """A host will not take an order (or can not be reached): try the next one."""

    kind, status, code, message = "host_refused", 500, "host.refused", "The host refused."


class ClaimConflict(NovaError):
    """The resources the scheduler proposed are taken: try the next host."""

    kind, status, code, message = "claim_conflict", 500, "claim.conflict", "The resources are taken."


class PeerTooOld(NovaError):
    kind, status, code, message = "peer_too_old", 503, "rpc.peer_too_old", "The peer is too old for this call."


class Overtaken(NovaError):
    """A newer epoch owns the server: whoever gets this stops at once and changes nothing more."""

    kind, status, code, message = "overtaken", 409, "server.overtaken", "A newer operation owns the server."


KINDS: dict[str, type[NovaError]] = {
    cls.kind: cls
    for cls in (Bug, NotFound, Invalid, Conflict, WrongState, Forbidden, OverQuota, Unavailable, Gone, NotSupported,
                HostRefused, ClaimConflict, PeerTooOld, Overtaken)
}


def from_wire(kind: str, code: str, message: str, data: dict[str, Any]) -> NovaError:
    """The error a peer sent, as its kind; a kind we don't know is a :class:`Bug` that keeps the message."""
    error = KINDS.get(kind, Bug)(message)
    error.code, error.data = code, data  # not as arguments: a peer may name its data as it likes
    return error
