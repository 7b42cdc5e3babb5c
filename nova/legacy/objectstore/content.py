"""Decoding of a request body: removes chunk framing, limits the size, verifies the announced length and digests."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from nova import failures
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.signatures.request import Signature
from nova.legacy.signatures.v4 import CONTENT_HASH, STREAM_UNSIGNED_TRAILER
from nova.legacy.signatures.v4_chunks import CHUNKED_PAYLOADS, ByteSource, Check, ChunkedBody, ChunksMalformed

PIECE = 262144
CHECKSUM = "x-amz-checksum-"


class Identity(NamedTuple):
    """The caller. ``owner``: the project's id, which owns the buckets. ``signature``: the verified signature; None if
    requests are not authenticated. ``check``: verifies chunk signatures; None if they cannot be verified."""

    owner: str
    name: str
    signature: Signature | None = None
    check: Check | None = None


class _Bounded:
    """A reader limited to the announced number of bytes."""

    def __init__(self, source: ByteSource, size: int) -> None:
        self._source, self.left = source, size

    def read(self, size: int) -> bytes:
        data = self._source.read(min(size, self.left)) if self.left else b""
        self.left -= len(data)
        return data

    def readline(self, size: int) -> bytes:
        data = self._source.readline(min(size, self.left)) if self.left else b""
        self.left -= len(data)
        return data


class _Digest(Protocol):
    def update(self, piece: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, piece: bytes) -> None:
        self._value = zlib.crc32(piece, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


#: The checksums that are verified; others, which clients may choose, are accepted unverified.
DIGESTS: Mapping[str, Callable[[], _Digest]] = {
    "sha256": hashlib.sha256, "sha1": lambda: hashlib.sha1(usedforsecurity=False), "crc32": _Crc32}
_SHA256 = re.compile("[0-9a-f]{64}")


class Content:
    """The decoded content of a body, as an iterator of pieces. Keep it only if the iteration ends without an error."""

    def __init__(self, headers: Mapping[str, str], source: ByteSource, identity: Identity,
                 is_open: bool = False) -> None:
        """Prepare to read the body from ``source``. ``headers``: with lower-case names.

        ``is_open``: the source signals its end; then aws-chunked bodies, whose framing marks the end, need no
        Content-Length. Raises S3Error: MissingContentLength, InvalidDigest, NotImplemented.
        """
        self._headers = headers
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._wanted_md5 = _base64(headers["content-md5"], 16) if "content-md5" in headers else None
        self._payload = identity.signature.payload if identity.signature and identity.signature.payload \
            else headers.get(CONTENT_HASH, "")
        is_chunked = self._payload in CHUNKED_PAYLOADS
        length = str(sys.maxsize) if is_open and is_chunked else headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,19}", length, re.ASCII):
            raise S3Error("MissingContentLength")
        self._bounded = _Bounded(source, int(length))
        self._chunks = self._chunked(identity) if is_chunked else None
        self._digests = {name: make() for name, make in DIGESTS.items() if self._is_announced(name)}

    def _is_announced(self, name: str) -> bool:
        """Return whether a checksum is announced by a header, for the trailer, or (SHA-256) by the signature."""
        return CHECKSUM + name in self._headers or CHECKSUM + name in self._headers.get("x-amz-trailer", "") \
            or name == "sha256" and _SHA256.fullmatch(self._payload) is not None

    def _chunked(self, identity: Identity) -> ChunkedBody:
        if identity.signature is None:  # no authentication: this mode checks no signatures
            unsigned = Signature("", "", "", (), payload=STREAM_UNSIGNED_TRAILER)
            return ChunkedBody(self._bounded, unsigned, lambda *_: True)
        is_signed = self._payload != STREAM_UNSIGNED_TRAILER
        if identity.signature.version != "4" or is_signed and identity.check is None:
            raise S3Error("NotImplemented", "Signatures of chunks cannot be checked here.")
        return ChunkedBody(self._bounded, identity.signature, identity.check or (lambda *_: False))

    def etag(self) -> str:
        """Return the MD5 of the bytes read, in hex."""
        return self._md5.hexdigest()

    def whole(self, most: int) -> bytes:
        """Read the complete content.

        Raises S3Error: MalformedXML if it has more than ``most`` bytes, and the errors of the iteration.
        """
        found = bytearray()
        for piece in self:
            found += piece
            if len(found) > most:
                raise S3Error("MalformedXML")
        return bytes(found)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the decoded pieces, and verify length and digests at the end.

        Raises S3Error: IncompleteBody, BadDigest, InvalidDigest, XAmzContentSHA256Mismatch; SignatureRefused if a
        chunk's signature is wrong.
        """
        size = 0
        with failures.replaced(ChunksMalformed, lambda error: S3Error("IncompleteBody",
                f"The body's chunk framing is malformed: {error}.")):
            for piece in self._chunks or self._plain():
                size += len(piece)
                self._md5.update(piece)
                for digest in self._digests.values():
                    digest.update(piece)
                yield piece
        self._check(size)

    def _plain(self) -> Iterator[bytes]:
        while self._bounded.left:
            piece = self._bounded.read(PIECE)
            if not piece:
                raise S3Error("IncompleteBody")
            yield piece

    def _check(self, size: int) -> None:
        decoded = self._headers.get("x-amz-decoded-content-length")
        if self._chunks is not None and decoded is not None and decoded != str(size):
            raise S3Error("IncompleteBody")
        if self._wanted_md5 is not None and not hmac.compare_digest(self._md5.digest(), self._wanted_md5):
            raise S3Error("BadDigest")
        if _SHA256.fullmatch(self._payload) and not hmac.compare_digest(self._digests["sha256"].digest(),
                                                                        bytes.fromhex(self._payload)):
            raise S3Error("XAmzContentSHA256Mismatch")
        trailers = self._chunks.trailers if self._chunks is not None else {}
        for name, digest in self._digests.items():
            given, found = {**self._headers, **trailers}.get(CHECKSUM + name), digest.digest()
            if given is not None and not hmac.compare_digest(found, _base64(given, len(found))):
                raise S3Error("BadDigest")


def _base64(text: str, size: int) -> bytes:
    """Decode a base64 digest of ``size`` bytes. Raises S3Error: InvalidDigest."""
    value = b""
    with contextlib.suppress(binascii.Error, ValueError):
        value = base64.b64decode(text.strip(), validate=True)
    if len(value) != size:
        raise S3Error("InvalidDigest")
    return value
