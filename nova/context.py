"""Who asks, and under which request id: carried by the thread, into every log line and over every RPC. And how long
whoever asks waits: what serves a request should not ask others for longer than anybody listens."""

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
    """Facts about one request. ``token`` is the user's: never logged, never in the journal."""

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
    traceparent: str | None = None  # W3C's: the span below which this is done

    def without_token(self) -> RequestContext:
        """The same request, for those who must not act as its user."""
        return msgspec.structs.replace(self, token=None) if self.token else self

    def __repr__(self) -> str:
        return f"<RequestContext {self.request_id} user={self.user_id} project={self.project_id}>"


_current: ContextVar[RequestContext | None] = ContextVar("nova_context", default=None)


def new_request_id() -> str:
    """``req-`` and a random uuid."""
    return f"req-{uuid.uuid4()}"


def current() -> RequestContext:
    """The context of this thread; a fresh one without a user where none was entered (periodic work)."""
    return _current.get() or RequestContext(request_id=new_request_id())


def current_or_none() -> RequestContext | None:
    """The context of this thread; None where no request is served."""
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
    """What this thread works on, in words for the log: ``action`` and ``step``."""
    return _doing.get()


@contextlib.contextmanager
def doing(**facts: str) -> Iterator[None]:
    """Log lines within the block say this of themselves."""
    token = _doing.set({**_doing.get(), **facts})
    try:
        yield
    finally:
        _doing.reset(token)


def internal(request_id: str | None = None) -> RequestContext:
    """A context of our own: periodic work, or a workflow that another runner began."""
    return RequestContext(request_id=request_id or new_request_id(), is_admin=True)


class Patience(NamedTuple):
    """``until`` on the monotonic clock; ``again``: whether what failed may be tried again till then."""

    until: float = math.inf
    again: bool = True
    clock: Callable[[], float] = time.monotonic

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative when they are over, ``math.inf`` when nobody waits."""
        return self.until - self.clock()


ENDLESS = Patience()
_patience: ContextVar[Patience] = ContextVar("nova_patience", default=ENDLESS)


def patience() -> Patience:
    """Of whoever waits for this thread; endless where nobody does (work that goes on behind an answer)."""
    return _patience.get()


@contextlib.contextmanager
def waited_for(seconds: float, again: bool = True, clock: Callable[[], float] | None = None) -> Iterator[None]:
    """The block is waited for no longer than this, nor than those who are waited for around it. ``clock``: the one
    of the outermost of them."""
    around = _patience.get()
    clock = clock or around.clock
    token = _patience.set(Patience(min(around.until, clock() + seconds), again and around.again, clock))
    try:
        yield
    finally:
        _patience.reset(token)
