"""Unfinished jobs on the disk: one file for each image that is being created.

A file is locked while its process lives, so that other processes can find abandoned jobs. The files have no secrets:
a bundle's key is encrypted in them, as in the manifest.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from nova import decoding, failures
from nova.legacy.objectstore import files
from nova.legacy.objectstore.bundles.manifest import BundleManifest

LOG = logging.getLogger(__name__)

SUFFIX = ".json"


class BundleJob(msgspec.Struct, frozen=True):
    """An image to create. ``manifest``: as at the time of registration. ``created``: seconds since 1970."""

    image_id: str
    project_id: str
    bucket_owner: str
    location: str
    created: float
    manifest: BundleManifest


class HeldJob:
    """A job that this process has locked, until it is done or released."""

    def __init__(self, job: BundleJob, path: Path, stream: BinaryIO) -> None:
        self.job, self._path, self._stream = job, path, stream

    def done(self) -> None:
        """Delete a finished job."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
            files.sync_folder(self._path.parent)
        self.release()

    def release(self) -> None:
        """Unlock the job, for another process, or for this process later. May be called twice."""
        self._stream.close()


class JobFolder:
    """The directory of jobs. Safe for concurrent use by several processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def add(self, job: BundleJob) -> HeldJob:
        """Write a new, locked job durably to the disk. Raises OSError."""
        path = self.folder / f"{_word(job.project_id)}.{job.image_id}{SUFFIX}"
        descriptor, name = tempfile.mkstemp(prefix="new.", dir=self.folder)  # 0600
        stream = os.fdopen(descriptor, "r+b")

        def undo() -> None:
            stream.close()
            for left in (Path(name), path):
                left.unlink(missing_ok=True)
        with failures.on_failure(undo, on=BaseException):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            stream.write(msgspec.json.encode(job))
            stream.flush()
            os.fsync(descriptor)
            os.replace(name, path)
            files.sync_folder(self.folder)
        return HeldJob(job, path, stream)

    def waiting(self) -> Iterator[HeldJob]:
        """Yield the jobs without a process, oldest first; locks each for the caller."""
        for path in sorted(self.folder.glob(f"*{SUFFIX}"), key=_age):
            held = self._take(path)
            if held is not None:
                yield held

    def count(self, project_id: str) -> tuple[int, int]:
        """Return the number of all jobs and of the project's jobs."""
        names = [path.name for path in self.folder.glob(f"*{SUFFIX}")]
        return len(names), sum(name.startswith(f"{_word(project_id)}.") for name in names)

    def sweep(self, young_s: float = files.YOUNG_S) -> None:
        """Remove partly written files of killed processes."""
        files.sweep(self.folder, young_s)

    def _take(self, path: Path) -> HeldJob | None:
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.stat()  # raises if the job was done meanwhile
            return HeldJob(decoding.from_json(stream.read(), BundleJob), path, stream)
        except (BlockingIOError, FileNotFoundError):
            pass
        except msgspec.MsgspecError as error:
            LOG.error("Bundle job %s is unreadable; renamed it to %s.damaged: %s. Its image stays pending: "
                      "delete the image, and register its manifest again", path, path.name, error)
            path.rename(path.with_suffix(f"{SUFFIX}.damaged"))
        stream.close()
        return None


def _word(project_id: str) -> str:
    """Return a hash of the project id that is safe in file names."""
    return hashlib.sha256(project_id.encode()).hexdigest()[:32]


def _age(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
