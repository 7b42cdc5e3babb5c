"""Decoding of bodies with ``Content-Encoding: aws-chunked``: signed or unsigned chunks, and an optional trailer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused
from nova.legacy.signatures.v4 import (
    STREAM_SIGNED,
    STREAM_SIGNED_TRAILER,
    STREAM_UNSIGNED_TRAILER,
    chunk_string_to_sign,
    trailer_string_to_sign,
)

CHUNKED_PAYLOADS = {STREAM_SIGNED, STREAM_SIGNED_TRAILER, STREAM_UNSIGNED_TRAILER}
LONGEST_LINE = 4096
MOST_TRAILERS = 16
PIECE = 262144
_HEAD = re.compile(r"([0-9A-Fa-f]{1,10})(?:;chunk-signature=([0-9a-f]{64}))?\r\n", re.ASCII)

#: (string to sign, signature) -> whether they match, as :func:`nova.legacy.signatures.request.is_signed` with the
#: secret.
Check = Callable[[str, str], bool]


class ChunksMalformed(Exception):
    """The body lacks the announced chunk framing, or ends too early."""


class ByteSource(Protocol):
    """The source of a body, as WSGI's input."""

    def read(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes, or to the end of the line."""


class ChunkedBody:
    """The content of a chunked body, as an iterator of pieces.

    The content is verified only when the iteration has ended without an error; do not keep it before. ``trailers``:
    lower-case name -> value, available at the end.
    """

    def __init__(self, source: ByteSource, signature: Signature, check: Check) -> None:
        self.trailers: Mapping[str, str] = {}
        self._source, self._signature, self._check = source, signature, check
        self._before = signature.value
        self._is_signed = signature.payload != STREAM_UNSIGNED_TRAILER
        self._has_trailer = signature.payload != STREAM_SIGNED

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces and verify the signatures.

        Raises ChunksMalformed; SignatureRefused (MISSING, MISMATCH) for a chunk or the trailer.
        """
        size = 1
        while size:
            size, given = self._head()
            digest = hashlib.sha256()
            for piece in self._pieces(size):
                digest.update(piece)
                yield piece
            if size:
                self._line_end()
            if self._is_signed:
                self._prove(chunk_string_to_sign(self._signature, self._before, digest.hexdigest()), given, "chunk")
        if self._has_trailer:
            self._trailer()
        else:
            self._line_end()

    def _head(self) -> tuple[int, str]:
        match = _HEAD.fullmatch(self._source.readline(LONGEST_LINE).decode("latin-1"))
        if match is None:
            raise ChunksMalformed("a chunk has no header")
        return int(match[1], 16), match[2] or ""

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._source.read(min(size, PIECE))
            if not piece:
                raise ChunksMalformed("the body ends within a chunk")
            size -= len(piece)
            yield piece

    def _line_end(self) -> None:
        if self._source.readline(2) != b"\r\n":
            raise ChunksMalformed("a chunk has no terminator")

    def _prove(self, text: str, given: str, what: str) -> None:
        if not given:
            raise SignatureRefused(SignatureFault.MISSING, f"{what}-signature")
        if not self._check(text, given):
            raise SignatureRefused(SignatureFault.MISMATCH, f"{what}-signature")
        self._before = given

    def _trailer(self) -> None:
        """Read lines of ``name:value`` up to an empty line or the end; the last one is the trailer's signature."""
        found: dict[str, str] = {}
        while line := self._source.readline(LONGEST_LINE).rstrip(b"\r\n").decode("utf-8", "surrogateescape"):
            name, colon, value = line.partition(":")
            if not colon or len(found) == MOST_TRAILERS or name.strip().lower() in found:
                raise ChunksMalformed("a trailer is malformed")
            found[name.strip().lower()] = value.strip()
        given = found.pop("x-amz-trailer-signature", "")
        if self._is_signed:
            signed = "".join(f"{name}:{value}\n" for name, value in sorted(found.items()))
            digest = hashlib.sha256(signed.encode("utf-8", "surrogateescape")).hexdigest()
            self._prove(trailer_string_to_sign(self._signature, self._before, digest), given, "trailer")
        self.trailers = found
