"""Context of a request: user and request id, kept per thread, added to every log line and sent with every RPC. It also
has the caller's deadline, after which no further calls should be made for the request."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

import msgspec


class RequestContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about one request. ``token`` is the user's: never logged, never stored in the journal."""

    request_id: str
    global_request_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    user_name: str | None = None
    project_name: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    roles: tuple[str, ...] = ()
    is_admin: bool = False
    system_scope: str | None = None
    domain_id: str | None = None
    token: str | None = None
    traceparent: str | None = None  # W3C Trace Context: the parent span

    def without_token(self) -> RequestContext:
        """Return the same context without the token, for services that must not act as the user."""
        return msgspec.structs.replace(self, token=None) if self.token else self

    def __repr__(self) -> str:
        return f"<RequestContext {self.request_id} user={self.user_id} project={self.project_id}>"


_current: ContextVar[RequestContext | None] = ContextVar("nova_context", default=None)


def new_request_id() -> str:
    """Return ``req-`` followed by a random uuid."""
    return f"req-{uuid.uuid4()}"


def current() -> RequestContext:
    """Return the context of this thread; a new one without a user if none was entered (periodic work)."""
    return _current.get() or RequestContext(request_id=new_request_id())


def current_or_none() -> RequestContext | None:
    """Return the context of this thread; None if it serves no request."""
    return _current.get()


@contextlib.contextmanager
def entered(context: RequestContext) -> Iterator[RequestContext]:
    """Make ``context`` the current one for the block."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


_doing: ContextVar[Mapping[str, str]] = ContextVar("nova_doing", default=MappingProxyType({}))


def what() -> Mapping[str, str]:
    """Return the current work of this thread as log fields: ``action`` and ``step``."""
    return _doing.get()


@contextlib.contextmanager
def doing(**facts: str) -> Iterator[None]:
    """Add these fields to all log lines within the block."""
    token = _doing.set({**_doing.get(), **facts})
    try:
        yield
    finally:
        _doing.reset(token)


def internal(request_id: str | None = None) -> RequestContext:
    """Return an internal context: for periodic work, or a workflow that another process began."""
    return RequestContext(request_id=request_id or new_request_id(), is_admin=True)


class Deadline(NamedTuple):
    """Deadline of a caller. ``until`` is on the monotonic clock; ``again``: failed calls may be repeated until then."""

    until: float = math.inf
    again: bool = True
    clock: Callable[[], float] = time.monotonic

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; negative after it, ``math.inf`` without a deadline."""
        return self.until - self.clock()


ENDLESS = Deadline()
_patience: ContextVar[Deadline] = ContextVar("nova_patience", default=ENDLESS)


def deadline() -> Deadline:
    """Return the deadline of this thread's current caller; none for work that continues after the answer."""
    return _patience.get()


@contextlib.contextmanager
def waited_for(seconds: float, again: bool = True, clock: Callable[[], float] | None = None) -> Iterator[None]:
    """Set a deadline for the block, at most the enclosing one. ``clock``: used for the outermost block."""
    around = _patience.get()
    clock = clock or around.clock
    token = _patience.set(Deadline(min(around.until, clock() + seconds), again and around.again, clock))
    try:
        yield
    finally:
        _patience.reset(token)
