"""The S3 operations, one method each, and the table that dispatches to them."""

from __future__ import annotations

import base64
import binascii
import contextlib
import email.utils
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nova import failures
from nova.legacy.objectstore import documents
from nova.legacy.objectstore.conditions import is_unchanged, span_of
from nova.legacy.objectstore.content import Content, Identity
from nova.legacy.objectstore.documents import LONGEST_DOCUMENT, document, owner_tree
from nova.legacy.objectstore.listing import MOST_KEYS, ListingAsked
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectRecord, ObjectStore, OpenObject, PutObject
from nova.legacy.objectstore.uploads import MultipartUploads, UploadRecord

#: Headers that are stored with an object, in addition to ``x-amz-meta-*``.
KEPT_HEADERS = ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type",
                "expires")
LONGEST_HEADERS = 8192  # characters of all stored headers
XML = {"Content-Type": "application/xml"}


class Call(NamedTuple):
    """A request. ``headers``: with lower-case names. ``content``: the body of a PUT or POST."""

    identity: Identity
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: Content | None

    @property
    def owner(self) -> str:
        """The caller's project."""
        return self.identity.owner


@dataclass
class S3Answer:
    """A response. ``body``: bytes, or pieces if ``headers`` have their length."""

    status: int
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)


class S3Operations:
    """The S3 operations. Each may raise S3Error, and the errors of reading the request body."""

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._uploads = store, MultipartUploads(store)

    # -- buckets

    def list_buckets(self, call: Call) -> S3Answer:
        """Serve GET /: list the caller's buckets."""
        owner = owner_tree(call.owner, call.identity.name)
        return S3Answer(200, documents.buckets_document(owner, self._store.list_buckets(call.owner)), XML)

    def create_bucket(self, call: Call) -> S3Answer:
        """Serve PUT /b: create a bucket. The location that the body may request is ignored."""
        _body(call).whole(LONGEST_DOCUMENT)
        self._store.create_bucket(call.owner, call.bucket)
        return S3Answer(200, b"", {"Location": f"/{call.bucket}"})

    def head_bucket(self, call: Call) -> S3Answer:
        """Serve HEAD /b: check access to a bucket."""
        self._store.bucket(call.owner, call.bucket)
        return S3Answer(200)

    def delete_bucket(self, call: Call) -> S3Answer:
        """Serve DELETE /b: delete an empty bucket."""
        self._store.delete_bucket(call.owner, call.bucket)
        return S3Answer(204)

    def list_objects(self, call: Call) -> S3Answer:
        """Serve GET /b: list objects, version 1 or 2."""
        query, is_v2 = call.query, call.query.get("list-type") == "2"
        token, encoding = query.get("continuation-token") if is_v2 else None, query.get("encoding-type")
        if encoding not in (None, "url"):
            raise S3Error("InvalidArgument", "Invalid Encoding Method specified in Request")
        marker = query.get("start-after" if is_v2 else "marker", "")
        most = min(_number(query.get("max-keys", str(MOST_KEYS)), "max-keys"), MOST_KEYS)
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        asked = ListingAsked(prefix, delimiter, _after(token) if token else marker, most)
        page, records = self._store.list_objects(call.owner, call.bucket, asked)
        next_token = base64.urlsafe_b64encode(page.last.encode()).decode() if page.truncated else None
        words = documents.ListingWords(call.bucket, prefix, delimiter, marker, most, is_v2, token, next_token, encoding)
        return S3Answer(200, documents.listing_document(words, page, records, self._owner(call)), XML)

    def _owner(self, call: Call) -> documents.Tree:
        return owner_tree(call.owner, call.identity.name)

    def delete_objects(self, call: Call) -> S3Answer:
        """Serve POST /b?delete: delete several objects."""
        asked = documents.read_delete(_body(call).whole(LONGEST_DOCUMENT))
        self._store.bucket(call.owner, call.bucket)
        found: list[tuple[str, documents.Tree]] = []
        for key in asked.keys:
            try:
                self._store.delete(call.owner, call.bucket, key)
                found += [] if asked.quiet else [("Deleted", [("Key", key)])]
            except S3Error as error:
                found.append(("Error", [("Key", documents.printable(key)), ("Code", error.code),
                                        ("Message", error.message)]))
        return S3Answer(200, document("DeleteResult", found), XML)

    def location(self, call: Call) -> S3Answer:
        """Serve GET /b?location: the location is always empty."""
        self._store.bucket(call.owner, call.bucket)
        return S3Answer(200, document("LocationConstraint", []), XML)

    def versioning(self, call: Call) -> S3Answer:
        """Serve GET /b?versioning: versioning is not supported."""
        self._store.bucket(call.owner, call.bucket)
        return S3Answer(200, document("VersioningConfiguration", []), XML)

    def policy(self, call: Call) -> S3Answer:
        """Serve GET /b?policy: buckets never have a policy."""
        self._store.bucket(call.owner, call.bucket)
        raise S3Error("NoSuchBucketPolicy")

    def bucket_acl(self, call: Call) -> S3Answer:
        """Serve GET /b?acl: the owner has full control."""
        self._store.bucket(call.owner, call.bucket)
        return S3Answer(200, documents.acl_document(self._owner(call)), XML)

    def list_uploads(self, call: Call) -> S3Answer:
        """Serve GET /b?uploads: list multipart uploads."""
        found = self._uploads.list_uploads(call.owner, call.bucket)
        return S3Answer(200, documents.uploads_document(call.bucket, found), XML)

    # -- objects

    def put_object(self, call: Call) -> S3Answer:
        """Serve PUT /b/k: write an object, or copy another object."""
        if "x-amz-copy-source" in call.headers:
            return self._copy(call)
        content = _body(call)
        new = call.headers.get("if-none-match", "").strip() == "*"
        record = self._store.put(call.owner, call.bucket, call.key,
                                 PutObject(content, content.etag, _kept(call.headers), new))
        return S3Answer(200, b"", {"ETag": f'"{record.etag}"'})

    def _copy(self, call: Call) -> S3Answer:
        _body(call).whole(LONGEST_DOCUMENT)
        source = urllib.parse.unquote(call.headers["x-amz-copy-source"].partition("?")[0]).removeprefix("/")
        bucket, _, key = source.partition("/")
        with contextlib.closing(self._store.get(call.owner, bucket, key)) as found:
            is_new = call.headers.get("x-amz-metadata-directive", "").upper() == "REPLACE"
            headers = _kept(call.headers) if is_new else found.record.headers
            record = self._store.put(call.owner, call.bucket, call.key,
                                     PutObject(found.pieces(), lambda: found.record.etag, headers))
        return S3Answer(200, document("CopyObjectResult", [("LastModified", documents.iso(record.modified)),
                                                          ("ETag", f'"{record.etag}"')]), XML)

    def get_object(self, call: Call) -> S3Answer:
        """Serve GET /b/k: read an object or a range of it."""
        found = self._store.get(call.owner, call.bucket, call.key)
        with failures.on_failure(found.close, on=BaseException):
            return self._of_object(call, found)

    def _of_object(self, call: Call, found: OpenObject) -> S3Answer:
        record, headers = found.record, _shown(found.record, call.query)
        if is_unchanged(call.headers, record):
            found.close()
            return S3Answer(304, b"", headers)
        try:
            span = span_of(call.headers.get("range"), record.size)
        except S3Error as error:
            error.headers["Content-Range"] = f"bytes */{record.size}"
            raise
        headers["Content-Length"] = str(span.size)
        if span.is_part:
            headers["Content-Range"] = f"bytes {span.start}-{span.start + span.size - 1}/{record.size}"
        return S3Answer(206 if span.is_part else 200, found.pieces(span.start, span.size), headers)

    def head_object(self, call: Call) -> S3Answer:
        """Serve HEAD /b/k: return an object's headers."""
        with contextlib.closing(self._store.get(call.owner, call.bucket, call.key)) as found:
            return self._of_object(call, found)

    def delete_object(self, call: Call) -> S3Answer:
        """Serve DELETE /b/k: delete an object."""
        self._store.delete(call.owner, call.bucket, call.key)
        return S3Answer(204)

    def object_acl(self, call: Call) -> S3Answer:
        """Serve GET /b/k?acl: the owner has full control."""
        self._store.get(call.owner, call.bucket, call.key).close()
        return S3Answer(200, documents.acl_document(self._owner(call)), XML)

    # -- multipart uploads

    def start_upload(self, call: Call) -> S3Answer:
        """Serve POST /b/k?uploads: start a multipart upload."""
        upload = self._uploads.start(call.owner, call.bucket, call.key, _kept(call.headers))
        return S3Answer(200, document("InitiateMultipartUploadResult", [
            ("Bucket", call.bucket), ("Key", call.key), ("UploadId", upload.id)]), XML)

    def put_part(self, call: Call) -> S3Answer:
        """Serve PUT /b/k?partNumber&uploadId: write a part."""
        if "x-amz-copy-source" in call.headers:
            raise S3Error("NotImplemented")
        number, content = _number(call.query["partNumber"], "partNumber"), _body(call)
        record = self._uploads.put_part(self._upload(call), number, PutObject(content, content.etag))
        return S3Answer(200, b"", {"ETag": f'"{record.etag}"'})

    def list_parts(self, call: Call) -> S3Answer:
        """Serve GET /b/k?uploadId: list parts."""
        upload = self._upload(call)
        return S3Answer(200, documents.parts_document(upload, self._uploads.list_parts(upload)), XML)

    def complete_upload(self, call: Call) -> S3Answer:
        """Serve POST /b/k?uploadId: complete a multipart upload."""
        upload = self._upload(call)
        parts = documents.read_parts(_body(call).whole(LONGEST_DOCUMENT))
        record = self._uploads.complete(upload, parts)
        return S3Answer(200, document("CompleteMultipartUploadResult", [
            ("Location", f"/{call.bucket}/{urllib.parse.quote(call.key)}"), ("Bucket", call.bucket),
            ("Key", call.key), ("ETag", f'"{record.etag}"')]), XML)

    def abort_upload(self, call: Call) -> S3Answer:
        """Serve DELETE /b/k?uploadId: abort a multipart upload."""
        self._uploads.abort(self._upload(call))
        return S3Answer(204)

    def _upload(self, call: Call) -> UploadRecord:
        return self._uploads.find(call.owner, call.bucket, call.key, call.query["uploadId"])


def _body(call: Call) -> Content:
    assert call.content is not None  # the table has these operations only for PUT and POST
    return call.content


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise S3Error("InvalidArgument", f"Provided {name} not an integer or within integer range")
    return int(text)


def _after(token: str) -> str:
    with failures.replaced((binascii.Error, ValueError), lambda _: S3Error("InvalidArgument",
            "The continuation token provided is incorrect")):
        return base64.urlsafe_b64decode(token).decode()


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to store with the object. HTTP header values cannot contain line breaks."""
    found = {name: value for name, value in headers.items() if name in KEPT_HEADERS or name.startswith("x-amz-meta-")}
    codings = [one.strip() for one in found.pop("content-encoding", "").split(",")]
    if stays := ",".join(one for one in codings if one and one != "aws-chunked"):  # it applies only to the request
        found["content-encoding"] = stays
    if sum(len(name) + len(value) for name, value in found.items()) > LONGEST_HEADERS:
        raise S3Error("InvalidRequest", "The object's headers are too long.")
    with failures.replaced(UnicodeError,
            lambda _: S3Error("InvalidRequest", "A header of the object is not valid UTF-8.")):
        "".join(found.values()).encode()
    return found


def _shown(record: ObjectRecord, query: Mapping[str, str]) -> dict[str, str]:
    """Return the response headers of an object, in WSGI's encoding."""
    kept = {"content-type": "binary/octet-stream", **record.headers}
    kept |= {name: query[f"response-{name}"] for name in KEPT_HEADERS
             if f"response-{name}" in query}
    if any(ord(letter) < 32 for value in kept.values() for letter in value):
        raise S3Error("InvalidArgument", "A header contains control characters.")
    # clients show the name after ``x-amz-meta-`` unchanged
    named = {name if name.startswith("x-amz-") else name.title(): value for name, value in kept.items()}
    return {"ETag": f'"{record.etag}"', "Accept-Ranges": "bytes",
            "Last-Modified": email.utils.formatdate(record.modified, usegmt=True),
            **{name: value.encode("utf-8", "replace").decode("latin-1") for name, value in named.items()}}


#: (method, kind of resource, sub-resources in the query) -> the operation
OPERATIONS: Mapping[tuple[str, str, frozenset[str]], Callable[[S3Operations, Call], S3Answer]] = {
    (method, kind, frozenset(asked)): run for method, kind, asked, run in (
        ("GET", "service", (), S3Operations.list_buckets),
        ("PUT", "bucket", (), S3Operations.create_bucket),
        ("HEAD", "bucket", (), S3Operations.head_bucket),
        ("DELETE", "bucket", (), S3Operations.delete_bucket),
        ("GET", "bucket", (), S3Operations.list_objects),
        ("GET", "bucket", ("acl",), S3Operations.bucket_acl),
        ("GET", "bucket", ("location",), S3Operations.location),
        ("GET", "bucket", ("policy",), S3Operations.policy),
        ("GET", "bucket", ("uploads",), S3Operations.list_uploads),
        ("GET", "bucket", ("versioning",), S3Operations.versioning),
        ("POST", "bucket", ("delete",), S3Operations.delete_objects),
        ("PUT", "object", (), S3Operations.put_object),
        ("GET", "object", (), S3Operations.get_object),
        ("HEAD", "object", (), S3Operations.head_object),
        ("DELETE", "object", (), S3Operations.delete_object),
        ("GET", "object", ("acl",), S3Operations.object_acl),
        ("POST", "object", ("uploads",), S3Operations.start_upload),
        ("PUT", "object", ("partNumber", "uploadId"), S3Operations.put_part),
        ("GET", "object", ("uploadId",), S3Operations.list_parts),
        ("POST", "object", ("uploadId",), S3Operations.complete_upload),
        ("DELETE", "object", ("uploadId",), S3Operations.abort_upload))}
