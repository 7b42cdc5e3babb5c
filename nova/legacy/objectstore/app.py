"""The S3 API as a WSGI application with path-style addresses: authentication, dispatch and error responses."""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from http.client import responses
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from nova import context, errors, failures
from nova.legacy.objectstore import documents
from nova.legacy.objectstore.content import Content, Identity
from nova.legacy.objectstore.identity import READING
from nova.legacy.objectstore.names import NO_TEXT
from nova.legacy.objectstore.operations import OPERATIONS, Call, S3Answer, S3Operations
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore
from nova.legacy.signatures.request import (
    S3_ERRORS,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    signed_request,
    sole_values,
)
from nova.legacy.signatures.s3_v2 import SUBRESOURCES
from nova.legacy.signatures.taken import TakenSignatures
from nova.legacy.signatures.versions import is_s3_link
from nova.web import paths

LOG = logging.getLogger(__name__)

#: Returns the caller's identity; raises SignatureRefused if the signature is invalid.
Identify = Callable[[SignedRequest], Identity]
#: Query parameters that change response headers and do not select an operation.
OVERRIDES = {name for name in SUBRESOURCES if name.startswith("response-")}
#: Newer sub-resources that signature version 2 does not sign: such a request must not read or write the object itself.
NEWER = {"abac", "annotation", "attributes", "encryption", "intelligent-tiering", "legal-hold", "metadataConfiguration",
         "metadataTable", "ownershipControls", "policyStatus", "publicAccessBlock", "renameObject", "retention",
         "session"}
#: Concurrent requests of one owner per process, a quarter of the process's total: a client that sends slowly, or waits
#: for the store's lock, leaves capacity for others.
MOST_AT_ONCE = 64
FULL = (errno.ENOSPC, errno.EDQUOT)
#: Prefix of encryption headers, which are refused: the object would be stored unencrypted.
ENCRYPTION = "x-amz-server-side-encryption"
#: ACLs that are refused: they ask for access by others, which is not supported. ACLs that old tools send for the cloud
#: itself, such as aws-exec-read, are ignored.
OPEN = {"public-read", "public-read-write", "authenticated-read"}


class S3Target(NamedTuple):
    """The resource of a request. ``key`` is empty for a bucket, ``bucket`` is empty for the service."""

    bucket: str
    key: str

    @property
    def kind(self) -> str:
        """The kind of resource in the table of operations."""
        return "object" if self.key else "bucket" if self.bucket else "service"


class S3Application:
    """The S3 API. ``identify``: authenticates a request. ``taken``: the record of signatures already used, to refuse
    replays; None: replays are not detected."""

    def __init__(self, store: ObjectStore, identify: Identify, taken: TakenSignatures | None = None) -> None:
        self._operations, self._identify, self._taken = S3Operations(store), identify, taken
        self._under_way: Counter[str] = Counter()
        self._counting = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a WSGI request. Raises ConnectionError or TimeoutError if the client disconnects within its body."""
        request_id = environ.get("nova.request_id") or context.new_request_id()
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        try:
            answer = self._answer(environ)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a bug is a response, too
            answer = _refused(error, environ, request_id)
        headers = {"x-amz-request-id": request_id, "Content-Type": "application/xml", **answer.headers}
        if answer.status in (204, 304):
            for name in ("Content-Type", "Content-Length"):
                headers.pop(name, None)
            answer.body = b""
        elif isinstance(answer.body, bytes) and not is_head:
            headers["Content-Length"] = str(len(answer.body))
        start_response(f"{answer.status} {responses[answer.status]}", list(headers.items()))
        if is_head:
            return []
        return [answer.body] if isinstance(answer.body, bytes) else answer.body

    def _answer(self, environ: WSGIEnvironment) -> S3Answer:
        request = signed_request(environ)
        identity = self._identify(request)
        self._take(request, identity)
        target = target_of(environ)
        environ[paths.ROUTE_KEY] = target.kind
        query = sole_values(request.query_pairs)
        if any(NO_TEXT.search(value) for value in query.values()):
            raise S3Error("InvalidArgument", "The query has characters that XML cannot represent.")
        run = _operation(request.method, target, query)
        if any(name.startswith(ENCRYPTION) for name in request.headers):
            raise S3Error("NotImplemented", "Encryption of objects is not supported.")
        if request.headers.get("x-amz-acl") in OPEN:
            raise S3Error("NotImplemented", "Public access to objects is not supported: use presigned URLs.")
        content = None
        if request.method in ("PUT", "POST"):
            is_empty = request.method == "POST" and not environ.get("wsgi.input_terminated")
            lengths = {"content-length": "0"} if is_empty else {}  # some clients send POST without a body or length
            content = Content({**lengths, **request.headers}, environ["wsgi.input"], identity,
                              bool(environ.get("wsgi.input_terminated")))
        with self._turn(identity.owner):
            return run(self._operations, Call(identity, target.bucket, target.key, query, request.headers, content))

    def _take(self, request: SignedRequest, identity: Identity) -> None:
        """Record the signature of a change. Raises SignatureRefused for a replay, except for presigned URLs, which may
        be used until they expire."""
        is_change = request.method not in READING and not is_s3_link(request)
        if is_change and self._taken is not None and identity.signature is not None:
            self._taken.take(identity.signature, request.peer)

    @contextlib.contextmanager
    def _turn(self, owner: str) -> Iterator[None]:
        """Count a request as in progress. Raises S3Error: SlowDown if the owner has reached the limit."""
        with self._counting:
            if self._under_way[owner] >= MOST_AT_ONCE:
                raise S3Error("SlowDown")
            self._under_way[owner] += 1
        try:
            yield
        finally:
            with self._counting:
                self._under_way[owner] -= 1
                if not self._under_way[owner]:
                    del self._under_way[owner]


def target_of(environ: WSGIEnvironment) -> S3Target:
    """Return the resource in the request's path. Raises S3Error: InvalidURI, InvalidBucketName."""
    with failures.replaced(UnicodeError, lambda _: S3Error("InvalidURI")):
        path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8")
    bucket, _, key = path.removeprefix("/").partition("/")
    if key and not bucket:
        raise S3Error("InvalidBucketName")
    return S3Target(bucket, key)


def _operation(method: str, target: S3Target, query: dict[str, str]) -> Callable[[S3Operations, Call], S3Answer]:
    """Return the operation's function. Raises S3Error: MethodNotAllowed, NotImplemented for unsupported features."""
    asked = frozenset((SUBRESOURCES | NEWER) & set(query)) - OVERRIDES
    run = OPERATIONS.get((method, target.kind, asked))
    if run is None:
        raise S3Error("NotImplemented" if asked else "MethodNotAllowed")
    return run


def _refused(error: Exception, environ: WSGIEnvironment, request_id: str) -> S3Answer:
    """Return the error response; for an unexpected error it reveals only the request id."""
    headers = {"Content-Type": "application/xml"}
    if isinstance(error, SignatureRefused):
        status, code = S3_ERRORS[error.fault]
        message = error.fault.value if error.fault is SignatureFault.MISMATCH else str(error)
    else:
        error = error if isinstance(error, S3Error) else _unexpected(error, request_id)
        status, code, message = error.status, error.code, error.message
        headers |= error.headers
    path = environ.get("PATH_INFO", "").encode("latin-1", "replace").decode("utf-8", "replace")
    return S3Answer(status, documents.document("Error", [
        ("Code", code), ("Message", documents.printable(message)), ("Resource", documents.printable(path)),
        ("RequestId", request_id)]), headers)


def _unexpected(error: Exception, request_id: str) -> S3Error:
    """Log an unexpected error, and return the error for the client."""
    if isinstance(error, OSError) and error.errno in FULL:
        LOG.error("Request %s to the object store failed: the disk is full", request_id)
        return S3Error("InsufficientStorage")
    if isinstance(error, errors.host.LockBusy):
        LOG.error("Request %s to the object store failed: %s", request_id, error.message)
        return S3Error("ServiceUnavailable")
    LOG.error("Request %s to the object store failed", request_id, exc_info=error)
    return S3Error("InternalError")
