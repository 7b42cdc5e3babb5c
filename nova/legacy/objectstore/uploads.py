"""Multipart uploads: parts are separate files until they are joined to one object.

The directory ``uploads/HASH.ID/`` (hash of the owner) has ``upload``, the record of the upload, and ``part.NNNNN``.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import failures
from nova.legacy.objectstore import files
from nova.legacy.objectstore.names import file_name
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectRecord, ObjectStore, OpenObject, PutObject
from nova.legacy.objectstore.usage import Usage, usage_in

MOST_PARTS = 10000


class UploadRecord(msgspec.Struct, frozen=True):
    """The record of an upload. ``started``: seconds since 1970. ``headers``: of the future object."""

    id: str
    owner: str
    bucket: str
    key: str
    started: float
    headers: dict[str, str] = {}


class GivenPart(NamedTuple):
    """A part as the completing request specifies it. ``etag``: without quotes."""

    number: int
    etag: str


class MultipartUploads:
    """The multipart uploads of a store. Safe for concurrent use by threads and processes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def start(self, owner: str, bucket: str, key: str, headers: dict[str, str]) -> UploadRecord:
        """Start an upload.

        Raises S3Error: NoSuchBucket, AccessDenied, QuotaExceeded if too many uploads are in progress,
        InsufficientStorage, and the errors of the key.
        """
        self._store.check_space()
        self._store.bucket(owner, bucket)
        self._store.object_path(bucket, key)
        if sum(1 for _ in self._store.uploads.glob(f"{file_name(owner)}.*")) >= self._store.limits.uploads_per_owner:
            raise S3Error("QuotaExceeded", "Too many multipart uploads are in progress: complete or abort some.")
        record = UploadRecord(secrets.token_hex(16), owner, bucket, key, self._store.clock(), headers)
        made = files.new_folder(self._store.new)
        new = files.NewFile(made)
        try:
            new.seal(record)
            new.move(made / "upload")
            made.rename(self._folder(owner, record.id))
        finally:
            new.close()
            shutil.rmtree(made, ignore_errors=True)
        files.sync_folder(self._store.uploads)
        return record

    def put_part(self, upload: UploadRecord, number: int, given: PutObject) -> ObjectRecord:
        """Write a part; replaces an existing part with the same number.

        Raises S3Error: NoSuchUpload, InvalidArgument for the number, QuotaExceeded, InsufficientStorage.
        """
        if not 1 <= number <= MOST_PARTS:
            raise S3Error("InvalidArgument", f"Part number must be an integer between 1 and {MOST_PARTS}, inclusive")
        folder = self._folder(upload.owner, upload.id)
        with self._store.writing() as new:
            size = self._store.fill(new, upload.owner, given.pieces)
            record = ObjectRecord(str(number), size, given.etag(), self._store.clock())
            new.seal(record)
            self._store.place(upload.owner, upload.bucket, new, folder / f"part.{number:05}")
        return record

    def find(self, owner: str, bucket: str, key: str, upload_id: str) -> UploadRecord:
        """Return an upload. Raises S3Error: NoSuchUpload, also for an upload of another object or owner."""
        with failures.replaced(FileNotFoundError, lambda _: S3Error("NoSuchUpload")), \
                (self._folder(owner, upload_id) / "upload").open("rb") as stream:
            record = files.read_record(stream, UploadRecord)
        if (record.bucket, record.key) != (bucket, key):
            raise S3Error("NoSuchUpload")
        return record

    def list_uploads(self, owner: str, bucket: str) -> list[UploadRecord]:
        """Return the bucket's uploads, sorted by key and start time."""
        self._store.bucket(owner, bucket)
        return sorted((one for one in self._of(owner) if one.bucket == bucket), key=lambda one: (one.key, one.started))

    def _of(self, owner: str) -> Iterator[UploadRecord]:
        for folder in self._store.uploads.glob(f"{file_name(owner)}.*"):
            with contextlib.suppress(FileNotFoundError), (folder / "upload").open("rb") as stream:
                yield files.read_record(stream, UploadRecord)

    def list_parts(self, upload: UploadRecord) -> list[ObjectRecord]:
        """Return the parts, sorted by number, which is the ``key`` of their records."""
        found = []
        for path in sorted(self._folder(upload.owner, upload.id).glob("part.*")):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
                found.append(files.read_record(stream, ObjectRecord))
        return found

    def complete(self, upload: UploadRecord, given: Sequence[GivenPart]) -> ObjectRecord:
        """Join the parts to one object. May be repeated after a kill, which leaves the upload, the object, or both.

        Raises S3Error: NoSuchUpload, InvalidPart, InvalidPartOrder, EntityTooSmall, MalformedXML without parts,
        QuotaExceeded, InsufficientStorage.
        """
        numbers = [part.number for part in given]
        if not numbers:
            raise S3Error("MalformedXML")
        if sorted(set(numbers)) != numbers:
            raise S3Error("InvalidPartOrder")
        folder = self._folder(upload.owner, upload.id)
        for at, part in enumerate(given, 1):
            with contextlib.closing(self._part(folder, part)) as found:
                if found.record.size < self._store.limits.least_part and at < len(given):
                    raise S3Error("EntityTooSmall")
        record = self._join(upload, given, folder)
        self.abort(upload)
        return record

    def _join(self, upload: UploadRecord, given: Sequence[GivenPart], folder: Path) -> ObjectRecord:
        digests = b"".join(bytes.fromhex(part.etag) for part in given)
        etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(given)}"
        target = self._store.object_path(upload.bucket, upload.key)
        with self._store.writing() as new:
            # one open file at a time: 10000 parts of several clients would exceed the limit of open files
            size = self._store.fill(new, upload.owner, (
                piece for part in given for piece in self._part(folder, part).pieces()))
            record = ObjectRecord(upload.key, size, etag, self._store.clock(), upload.headers)
            new.seal(record)
            self._store.place(upload.owner, upload.bucket, new, target, without=folder)
        return record

    def _part(self, folder: Path, given: GivenPart) -> OpenObject:
        """Open a part; the caller must read it to its end or close it. Raises S3Error: NoSuchUpload, InvalidPart."""
        with failures.replaced(FileNotFoundError,
                lambda _: S3Error("InvalidPart" if folder.exists() else "NoSuchUpload")):
            stream = (folder / f"part.{given.number:05}").open("rb")
        with failures.on_failure(stream.close, on=BaseException):
            record = files.read_record(stream, ObjectRecord)
            if record.etag != given.etag:
                raise S3Error("InvalidPart")
        return OpenObject(record, stream)

    def abort(self, upload: UploadRecord) -> None:
        """Delete an upload. Does nothing if another request already ended it."""
        folder = self._folder(upload.owner, upload.id)
        with self._store.usage.changing(upload.owner) as change:
            if folder.exists():
                change.begin(Usage().minus(usage_in(folder.glob("part.*"))))
                files.discard(folder, self._store.new)

    def expire(self, age_s: float) -> int:
        """Abort unfinished uploads older than ``age_s`` seconds; return their number."""
        count = 0
        for folder in self._store.uploads.glob("*.*"):
            with contextlib.suppress(FileNotFoundError), (folder / "upload").open("rb") as stream:
                record = files.read_record(stream, UploadRecord)
                if record.started < self._store.clock() - age_s:
                    self.abort(record)
                    count += 1
        return count

    def _folder(self, owner: str, upload_id: str) -> Path:
        if not re.fullmatch("[0-9a-f]{32}", upload_id):
            raise S3Error("NoSuchUpload")
        return self._store.uploads / f"{file_name(owner)}.{upload_id}"
