"""Buckets and objects as files in a directory.

``buckets/NAME/bucket`` records the owner; ``buckets/NAME/objects/HASH`` is an object. The only client-supplied part of
a path is a bucket's name, which has no slash and no leading dot. ``uploads/`` has multipart uploads, ``new/`` has
unfinished files, ``usage/`` has each owner's lock and count. An object is acknowledged when its bytes and its name are
on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from nova import failures
from nova.legacy.objectstore import files
from nova.legacy.objectstore.disk_space import DiskSpace, SpaceWatch
from nova.legacy.objectstore.listing import ListingAsked, ListingPage, page_of
from nova.legacy.objectstore.names import check_bucket, check_key, file_name
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.usage import OBJECTS, Usage, UsageChange, UsageCounts, usage_in, usage_of

LOG = logging.getLogger(__name__)

PIECE = 262144
UNLIMITED = -1


class StoreLimits(NamedTuple):
    """The limits of the store; sizes are in bytes.

    ``bytes_per_owner`` and ``objects_per_owner``: quotas, -1 means unlimited. ``least_part``: minimum size of the parts
    of a multipart upload, except the last. ``buckets_per_owner`` and ``uploads_per_owner`` (unfinished ones) apply also
    without quotas: each takes some files, which requests of other owners scan. ``least_free``: space to keep free on
    the disk.
    """

    bytes_per_owner: int = UNLIMITED
    objects_per_owner: int = UNLIMITED
    longest_object: int = 5 * 2 ** 30
    least_part: int = 5 * 2 ** 20
    buckets_per_owner: int = 1000
    uploads_per_owner: int = 1000
    least_free: int = 0


class BucketRecord(msgspec.Struct, frozen=True):
    """The record of a bucket. ``created``: seconds since 1970."""

    name: str
    owner: str
    created: float


class ObjectRecord(msgspec.Struct, frozen=True):
    """The record of an object. ``modified``: seconds since 1970. ``etag``: without quotes. ``headers``: lower-case name
    -> value, returned with the object."""

    key: str
    size: int
    etag: str
    modified: float
    headers: dict[str, str] = {}


class OpenObject:
    """An object open for reading. Its content does not change if the object is replaced or deleted meanwhile."""

    def __init__(self, record: ObjectRecord, stream: BinaryIO) -> None:
        self.record, self._stream = record, stream

    def pieces(self, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield ``size`` bytes from ``start`` (None: up to the end). Closes the object afterwards."""
        left = self.record.size - start if size is None else size
        try:
            self._stream.seek(start)
            while left:
                piece = self._stream.read(min(left, PIECE))
                if not piece:
                    raise files.RecordDamaged(str(self._stream.name))
                left -= len(piece)
                yield piece
        finally:
            self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class PutObject(NamedTuple):
    """An object to write. ``pieces`` raises if the data is incomplete or does not match the announced length or digest;
    then nothing is stored. ``etag`` is called after the last piece. ``must_be_new``: the object must not exist."""

    pieces: Iterable[bytes]
    etag: Callable[[], str]
    headers: dict[str, str] = {}
    must_be_new: bool = False


class ObjectStore:
    """The store of buckets and objects. Safe for concurrent use by threads and processes.

    ``owner`` is the caller's project: only the owner of a bucket has access to it. Refused requests raise S3Error.
    """

    def __init__(self, folder: Path, limits: StoreLimits | None = None, clock: Callable[[], float] = time.time) -> None:
        self.limits, self.clock = limits or StoreLimits(), clock
        self.buckets, self.uploads, self.new = folder / "buckets", folder / "uploads", folder / "new"
        for path in (self.buckets, self.uploads, self.new):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.room = DiskSpace(folder, self.limits.least_free)
        self.usage = UsageCounts(folder / "usage", self._files_of)
        self._under_way: Counter[str] = Counter()
        self._counting = threading.Lock()

    def check(self) -> None:
        """Check that files can be created. Raises OSError."""
        files.NewFile(self.new).close()

    def sweep(self, young_s: float = files.YOUNG_S) -> int:
        """Remove unfinished files of killed processes; return their number."""
        return files.sweep(self.new, young_s)

    # -- buckets

    def create_bucket(self, owner: str, name: str) -> BucketRecord:
        """Create a bucket.

        Raises S3Error: InvalidBucketName, BucketAlreadyOwnedByYou, BucketAlreadyExists, TooManyBuckets,
        InsufficientStorage.
        """
        self.check_space()
        record = BucketRecord(check_bucket(name), owner, self.clock())
        made = files.new_folder(self.new)
        (made / OBJECTS).mkdir()
        written = files.NewFile(made)
        try:
            written.seal(record)
            written.move(made / "bucket")
        finally:
            written.close()
        try:
            with self.usage.changing(owner):
                self._check_free(owner, name)
                if len(self.list_buckets(owner)) >= self.limits.buckets_per_owner:
                    raise S3Error("TooManyBuckets")
                self._name_bucket(owner, made, name)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        files.sync_folder(self.buckets)
        return record

    def _check_free(self, owner: str, name: str) -> None:
        try:
            record = self._record(name)
        except S3Error:
            return
        raise S3Error("BucketAlreadyOwnedByYou" if record.owner == owner else "BucketAlreadyExists")

    def _name_bucket(self, owner: str, made: Path, name: str) -> None:
        """Rename the directory to the bucket's name. If two owners race, the second finds a non-empty directory."""
        try:
            os.replace(made, self.buckets / name)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise S3Error("BucketAlreadyExists") from None

    def bucket(self, owner: str, name: str) -> BucketRecord:
        """Return the owner's bucket. Raises S3Error: NoSuchBucket, AccessDenied for a bucket of another owner."""
        record = self._record(name)
        if record.owner != owner:
            raise S3Error("AccessDenied")
        return record

    def list_buckets(self, owner: str) -> list[BucketRecord]:
        """Return the owner's buckets, sorted by name."""
        return sorted((record for record in self._records() if record.owner == owner), key=lambda one: one.name)

    def delete_bucket(self, owner: str, name: str) -> None:
        """Delete an empty bucket. Raises S3Error: BucketNotEmpty, and the errors of :meth:`bucket`."""
        with self.usage.changing(owner):
            self.bucket(owner, name)
            if any((self.buckets / name / OBJECTS).iterdir()):
                raise S3Error("BucketNotEmpty")
            files.discard(self.buckets / name, self.new)

    def _record(self, name: str) -> BucketRecord:
        with failures.replaced(FileNotFoundError, lambda _: S3Error("NoSuchBucket")), \
                (self.buckets / check_bucket(name) / "bucket").open("rb") as stream:
            return files.read_record(stream, BucketRecord)

    def _records(self) -> Iterator[BucketRecord]:
        for entry in os.scandir(self.buckets):
            with contextlib.suppress(S3Error):  # deleted meanwhile, or not a bucket
                yield self._record(entry.name)

    # -- objects

    def put(self, owner: str, bucket: str, key: str, given: PutObject) -> ObjectRecord:
        """Write an object. Errors raised by ``given.pieces`` propagate.

        Raises S3Error: NoSuchBucket, AccessDenied, QuotaExceeded, EntityTooLarge, PreconditionFailed,
        InsufficientStorage, and the errors of the key.
        """
        self.bucket(owner, bucket)
        target = self.object_path(bucket, key)
        with self.writing() as new:
            size = self.fill(new, owner, given.pieces)
            record = ObjectRecord(key, size, given.etag(), self.clock(), given.headers)
            new.seal(record)
            self.place(owner, bucket, new, target, given.must_be_new)
        return record

    def check_space(self) -> None:
        """Check that the disk has free space. Raises S3Error: InsufficientStorage."""
        if self.room.lacks():
            raise S3Error("InsufficientStorage")

    @contextlib.contextmanager
    def writing(self) -> Iterator[files.NewFile]:
        """Provide a new file, which is deleted at the end unless it was moved to its place."""
        new = files.NewFile(self.new)
        try:
            yield new
        finally:
            new.close()

    def fill(self, new: files.NewFile, owner: str, pieces: Iterable[bytes]) -> int:
        """Write the pieces; return their size in bytes.

        Raises S3Error: EntityTooLarge, QuotaExceeded, InsufficientStorage.
        """
        self.check_space()
        size, watch = 0, SpaceWatch(self.room)
        try:
            for piece in pieces:
                size += len(piece)
                self._check_piece(owner, size, len(piece))
                if watch.lacks(len(piece)):
                    raise S3Error("InsufficientStorage")
                new.write(piece)
        finally:
            self._takes(owner, -size)
        return size

    def _check_piece(self, owner: str, size: int, more: int) -> None:
        has_room = self._takes(owner, more)
        if size > self.limits.longest_object:
            raise S3Error("EntityTooLarge")
        if not has_room:
            raise S3Error("QuotaExceeded")

    def _takes(self, owner: str, size: int) -> bool:
        """Count the bytes of the owner's unfinished writes in this process; return whether they are within the quota.

        The count is an upper bound, since the size of replaced objects is unknown here. Without this check, concurrent
        writes could fill the disk.
        """
        with self._counting:
            self._under_way[owner] += size
            found = self._under_way[owner]
            if not found:
                del self._under_way[owner]
        return self.limits.bytes_per_owner == UNLIMITED or found <= self.limits.bytes_per_owner

    def place(self, owner: str, bucket: str, new: files.NewFile, target: Path, must_be_new: bool = False,
              without: Path | None = None) -> None:
        """Move a finished file to the place of its object or part. ``without``: the directory of the upload that it
        completes, whose parts are deleted next.

        Raises S3Error: NoSuchBucket, QuotaExceeded, PreconditionFailed, NoSuchUpload if the upload was ended meanwhile.
        """
        with self.usage.changing(owner) as change:
            self.bucket(owner, bucket)
            if must_be_new and target.exists():
                raise S3Error("PreconditionFailed")
            if not all(folder.exists() for folder in (without, target.parent) if folder):
                raise S3Error("NoSuchUpload")
            difference = usage_of(new.path, target.parent.name).minus(usage_of(target))
            self._check_quota(change, difference, without)
            change.begin(difference)
            os.replace(new.path, target)
        files.sync_folder(target.parent)

    def _check_quota(self, change: UsageChange, difference: Usage, without: Path | None) -> None:
        """Check the quotas. A change that reduces usage is never refused."""
        objects, size = self.limits.objects_per_owner, self.limits.bytes_per_owner
        if objects == size == UNLIMITED:
            return
        more = difference.minus(usage_in(without.glob("part.*") if without else ()))
        after = change.usage().plus(more)
        if more.objects > 0 and UNLIMITED < objects < after.objects or more.size > 0 and UNLIMITED < size < after.size:
            raise S3Error("QuotaExceeded")

    def _files_of(self, owner: str) -> Iterator[Path]:
        """Yield the files of the owner's objects and of the parts of uploads."""
        for record in self.list_buckets(owner):
            yield from (self.buckets / record.name / OBJECTS).iterdir()
        for folder in self.uploads.glob(f"{file_name(owner)}.*"):
            yield from folder.glob("part.*")

    def get(self, owner: str, bucket: str, key: str) -> OpenObject:
        """Open an object; the caller must read it to its end or close it.

        Raises S3Error: NoSuchKey, and the errors of :meth:`bucket`.
        """
        self.bucket(owner, bucket)
        with failures.replaced(FileNotFoundError, lambda _: S3Error("NoSuchKey")):
            stream = self.object_path(bucket, key).open("rb")
        with failures.on_failure(stream.close, on=files.RecordDamaged):
            return OpenObject(files.read_record(stream, ObjectRecord), stream)

    def delete(self, owner: str, bucket: str, key: str) -> None:
        """Delete an object; a missing object is not an error. Raises the S3Errors of :meth:`bucket` and of the key."""
        self.bucket(owner, bucket)
        path = self.object_path(bucket, key)
        with self.usage.changing(owner) as change:
            found = usage_of(path)
            if found.objects:
                change.begin(Usage().minus(found))
                path.unlink()
        if found.objects:
            files.sync_folder(path.parent)

    def list_objects(self, owner: str, bucket: str,
                     asked: ListingAsked | None = None) -> tuple[ListingPage, list[ObjectRecord]]:
        """Return a page of the listing, and the records of its keys. Raises the S3Errors of :meth:`bucket`."""
        self.bucket(owner, bucket)
        records = {record.key: record for record in self._objects(bucket)}
        page = page_of(records, asked or ListingAsked())
        return page, [records[key] for key in page.keys]

    def _objects(self, bucket: str) -> Iterator[ObjectRecord]:
        for path in (self.buckets / bucket / OBJECTS).iterdir():
            with contextlib.suppress(FileNotFoundError), failures.best_effort(  # suppressed: deleted meanwhile
                    LOG, "File %s of the object store is damaged; omitted from the listing", on=files.RecordDamaged,
                    level=logging.ERROR), path.open("rb") as stream:
                yield files.read_record(stream, ObjectRecord)

    def object_path(self, bucket: str, key: str) -> Path:
        """Return the path of an object's file, which need not exist. Raises S3Error for invalid names."""
        return self.buckets / check_bucket(bucket) / OBJECTS / file_name(check_key(key))
