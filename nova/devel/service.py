"""Common parts of the fakes: a table of routes, authentication, JSON bodies, errors as responses."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar, cast
from wsgiref.types import StartResponse, WSGIEnvironment

import msgspec
import webob

from nova import context, errors, failures
from nova.model.base import JsonValue
from nova.web import bodies, paths
from nova.web.routing import Router

LOG = logging.getLogger(__name__)

class KeptState(Protocol):
    """A state that can outlive its process."""

    def packed(self) -> bytes:
        """Return the serialized state."""

    def restore(self, packed: bytes) -> None:
        """Load a state that :meth:`packed` returned. Raises msgspec.MsgspecError if it is of another kind."""


State = TypeVar("State")
LARGEST_BODY = 114688  # bytes of JSON, the limit of oslo.middleware


class FakeError(Exception):
    """Error response to a client: an HTTP status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True)
class TokenOwner:
    """Owner of a token. ``roles``: names. ``restricted``: the token was issued for a credential, and may not create
    further credentials."""

    user_id: str
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    domain_id: str | None = None
    restricted: bool = False

    @property
    def is_admin(self) -> bool:
        """True if the token has administrator rights."""
        return "admin" in self.roles


#: Function from a token's text to its owner; None if the token is not valid.
Identify = Callable[[str], TokenOwner | None]


class FakeAnswer(NamedTuple):
    """A response with status or headers. ``data``: parts of a body that is not JSON; its length is in the headers."""

    status: int = 200
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = {}
    data: Iterable[bytes] | None = None


@dataclass
class FakeCall:
    """A request for a handler. ``named``: the path's parameters; ``raw``: the body, unless the row streams;
    ``token``: X-Auth-Token."""

    http: webob.Request
    named: Mapping[str, str]
    raw: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    owner: TokenOwner | None = None

    @property
    def caller(self) -> TokenOwner:
        """Owner of the request's token. Raises 401 without a valid token."""
        if self.owner is None:
            raise FakeError(401, "The request you have made requires authentication.")
        return self.owner

    def body(self) -> JsonValue:
        """Return the JSON of the request. Raises 400."""
        with failures.replaced(errors.NovaError, lambda error: FakeError(400, f"Invalid JSON: {error.message}")):
            decoded: JsonValue = bodies.decode(self.raw)
            return decoded

    def member(self, name: str) -> dict[str, JsonValue]:
        """Return the object that is the body's only member of that name. Raises 400, which names it."""
        body = self.body()
        found = body.get(name) if isinstance(body, dict) else None
        if not isinstance(found, dict):
            raise FakeError(400, f"'{name}' is a required property: an object.")
        return found


Rule = Callable[[FakeCall], bool]


def anybody(call: FakeCall) -> bool:
    """Return True: also for requests without a token."""
    return True


def authenticated(call: FakeCall) -> bool:
    """Return True for requests with a valid token. Raises 401."""
    return bool(call.caller)


def admin(call: FakeCall) -> bool:
    """Return whether the token has the role admin, in any scope. Raises 401."""
    return call.caller.is_admin


@dataclass(frozen=True)
class FakeRoute(Generic[State]):
    """A row of the table. The handler returns JSON, sent with status ``success``, or a FakeAnswer. ``streams``: the
    handler transfers data at the client's speed, and acquires the service's lock itself if needed. ``passing``: its
    changes are not saved."""

    method: str
    path: str
    handler: Callable[[State, FakeCall], Mapping[str, object] | FakeAnswer | None]
    rule: Rule = authenticated
    success: int = 200
    streams: bool = False
    passing: bool = False


class FakeService(Generic[State]):
    """A WSGI application. ``state`` is changed under ``lock`` only. HEAD is GET without the body."""

    def __init__(self, name: str, state: State, routes: Sequence[FakeRoute[State]], identify: Identify,
                 lock: threading.RLock | None = None) -> None:
        self.name, self.state, self.identify = name, state, identify
        self.router = Router(routes)
        self.lock = lock or threading.RLock()
        self._file: Path | None = None

    def keep_in(self, file: Path) -> bool:
        """Load the state from the file, and save it there after each change; return whether the file existed. Only for
        a state that is a KeptState. Raises ValueError for an invalid file."""
        state: KeptState = cast(KeptState, self.state)
        found = file.exists()
        if found:
            with failures.replaced(msgspec.MsgspecError, lambda error: ValueError(
                    f"{file} cannot be read: {error}. Remove it to start with an empty state")):
                state.restore(file.read_bytes())
        self._file = file
        return found

    def save(self) -> None:
        """Save the state to its file, if any: atomically, with access for this user only."""
        if self._file is None:
            return
        with self.lock:
            fresh = self._file.with_suffix(".new")
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(cast(KeptState, self.state).packed())
            os.replace(fresh, self._file)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        http = webob.Request(environ)
        response = None
        try:
            with failures.keep_running(LOG, "%s failed at %s %s", self.name, http.method, paths.logged(environ),
                    but=FakeError):
                response = self._handled(http)
        except FakeError as error:
            response = _response(self.refused(http, error))
        if response is None:
            response = _response(self.refused(http, FakeError(500, "An unexpected error prevented the server from "
                                                                   "fulfilling your request.")))
        LOG.debug("%s: %s %s: %s", self.name, http.method, paths.logged(environ), response.status_int)
        response.headers["X-Openstack-Request-Id"] = context.new_request_id()
        return response(environ, start_response)

    def refused(self, http: webob.Request, error: FakeError) -> FakeAnswer:
        """Return an error response in this service's format."""
        raise NotImplementedError

    def _handled(self, http: webob.Request) -> webob.Response:
        """Return the response, serialized before another request changes the state. Raises FakeError."""
        row, named = self._found(http)
        token, raw = http.headers.get("X-Auth-Token", ""), b"" if row.streams else _body(http)
        with self.lock:
            call = FakeCall(http, named, raw, token, self.identify(token) if token else None)
            if not row.rule(call):
                raise FakeError(403, "You are not authorized to perform the requested action.")
        with contextlib.nullcontext() if row.streams else self.lock:
            answer = row.handler(self.state, call)
            if row.method != "GET" and not row.passing:
                self.save()
            return _response(answer if isinstance(answer, FakeAnswer) else FakeAnswer(row.success, answer))

    def _found(self, http: webob.Request) -> tuple[FakeRoute[State], Mapping[str, str]]:
        """Return the row of the request, and the path's parameters. Raises 404 or 405."""
        path = paths.text_of(http.environ)
        method = "GET" if http.method == "HEAD" else http.method
        found = None if path is None else self.router.match(method, path or "/")
        if found is not None:
            return found[0][0], found[1]
        others = self.router.rows(path or "/") if path is not None else []
        raise FakeError(405 if others else 404, "The method is not allowed for this resource." if others
                        else "The resource could not be found.")


def _body(http: webob.Request) -> bytes:
    """Read the request's body before the lock is acquired, so that a slow client blocks no others. Raises 400 or
    413."""
    with failures.replaced(OSError, lambda _: FakeError(400, "The body is incomplete.")):
        raw = http.body_file.read(LARGEST_BODY + 1)
    if len(raw) > LARGEST_BODY:
        raise FakeError(413, f"The body is too large: at most {LARGEST_BODY} bytes are accepted.")
    return raw


def _response(answer: FakeAnswer) -> webob.Response:
    """Return the webob response, which supports ranges of data."""
    headers = [(name, value) for name, value in answer.headers.items()]
    if answer.data is not None:
        response = webob.Response(status=answer.status, app_iter=answer.data, conditional_response=True)
        response.headers.update(headers)
        return response
    if answer.body is None:
        response = webob.Response(status=answer.status)
        response.headers.pop("Content-Type", None)
    else:
        response = webob.Response(status=answer.status, content_type="application/json",
                                  body=json.dumps(answer.body).encode())
    response.headers.update(headers)
    return response
