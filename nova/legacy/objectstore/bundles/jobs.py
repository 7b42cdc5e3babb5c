"""What is still to be done, on the disk: one file for each image that is being made.

A file is locked as long as its process lives, so that another knows which jobs nobody works on. It has no secrets: a
bundle's key is in it as the manifest has it, encrypted.
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

from nova import decoding
from nova.legacy.objectstore import files
from nova.legacy.objectstore.bundles.manifest import BundleManifest

LOG = logging.getLogger(__name__)

SUFFIX = ".json"


class BundleJob(msgspec.Struct, frozen=True):
    """An image to be made. The manifest is as it was when its owner was answered. ``created``: seconds since 1970."""

    image_id: str
    project_id: str
    bucket_owner: str
    location: str
    created: float
    manifest: BundleManifest


class HeldJob:
    """A job that is this process's alone, until it is done or let go."""

    def __init__(self, job: BundleJob, path: Path, stream: BinaryIO) -> None:
        self.job, self._path, self._stream = job, path, stream

    def done(self) -> None:
        """Nobody need go on with it."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
            files.sync_folder(self._path.parent)
        self.release()

    def release(self) -> None:
        """Another may go on with it, or this process later. May be called twice."""
        self._stream.close()


class JobFolder:
    """Every method may be called by several processes at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def add(self, job: BundleJob) -> HeldJob:
        """It is on the disk for good. OSError: it cannot be."""
        path = self.folder / f"{_word(job.project_id)}.{job.image_id}{SUFFIX}"
        descriptor, name = tempfile.mkstemp(prefix="new.", dir=self.folder)  # 0600
        stream = os.fdopen(descriptor, "r+b")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            stream.write(msgspec.json.encode(job))
            stream.flush()
            os.fsync(descriptor)
            os.replace(name, path)
            files.sync_folder(self.folder)
        except BaseException:
            stream.close()
            for left in (Path(name), path):
                left.unlink(missing_ok=True)
            raise
        return HeldJob(job, path, stream)

    def waiting(self) -> Iterator[HeldJob]:
        """Jobs that nobody works on, the oldest first; the caller has them from then on."""
        for path in sorted(self.folder.glob(f"*{SUFFIX}"), key=_age):
            held = self._take(path)
            if held is not None:
                yield held

    def count(self, project_id: str) -> tuple[int, int]:
        """All jobs, and those of the project."""
        names = [path.name for path in self.folder.glob(f"*{SUFFIX}")]
        return len(names), sum(name.startswith(f"{_word(project_id)}.") for name in names)

    def sweep(self, young_s: float = files.YOUNG_S) -> None:
        """Remove what a killed process did not come to write to its end."""
        files.sweep(self.folder, young_s)

    def _take(self, path: Path) -> HeldJob | None:
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.stat()  # done meanwhile: then its file is gone
            return HeldJob(decoding.from_json(stream.read(), BundleJob), path, stream)
        except (BlockingIOError, FileNotFoundError):
            pass
        except msgspec.MsgspecError as error:
            LOG.error("The job %s cannot be read, and is put aside as %s.damaged: %s. Its image waits for ever: "
                      "delete it, and register its manifest again", path, path.name, error)
            path.rename(path.with_suffix(f"{SUFFIX}.damaged"))
        stream.close()
        return None


def _word(project_id: str) -> str:
    """Whatever is in the id, it is a part of a file's name."""
    return hashlib.sha256(project_id.encode()).hexdigest()[:32]


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
