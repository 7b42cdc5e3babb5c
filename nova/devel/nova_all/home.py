"""Where the files of a ``nova-all`` are: a folder that the user named, or one that goes with the process."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from nova import errors
from nova.model.security.secret_wrap import new_key
from nova.scratch import ScratchDirectory, lock

PREFIX = "nova-all-home-"
ROOM = 2 ** 30  # bytes that are free, or the folder is made on a disk
IN_MEMORY = Path("/dev/shm")  # where Linux keeps files in memory


class Home:
    """``path``: the folder, which this process alone uses until :meth:`leave`. service.CannotStart: another one has
    it, or it cannot be made."""

    def __init__(self, named: Path | None) -> None:
        self.lasting = named is not None
        if named is None:
            self._take_scratch()
        else:
            self._take(named)

    def _take_scratch(self) -> None:
        """Those that a killed nova-all left are removed before."""
        parent = _parent()
        try:
            scratch = ScratchDirectory(PREFIX, parent)
        except OSError as error:
            raise errors.service.CannotStart(reason=f"no directory could be created in {parent}: {error.strerror}. "
                                             "Make it writable, or name a directory with --state or TMPDIR") from None
        self.path, self._lock = scratch.path, scratch.lock

    def _take(self, named: Path) -> None:
        try:
            self.path = _made(named)
            self._lock = lock(self.path)
        except BlockingIOError:
            raise errors.service.CannotStart(reason=f"another nova-all uses {named}: end it, or name another folder "
                                             "with --state") from None
        except OSError as error:
            raise errors.service.CannotStart(reason=f"--state {named} cannot be used: {error.strerror}. Name a "
                                             "directory that you can write to") from None

    def secret(self, name: str, made: str | None = None) -> str:
        """A secret of this cloud, the same as long as the folder lives; ``made``: what it is from now on."""
        file = self.path / name
        if made is None and file.exists():
            return file.read_text()
        text = made or (new_key() if name.endswith("key") else secrets.token_urlsafe(12))
        write(file, text)
        return text

    def count_start(self) -> int:
        """How often a cloud was started here before."""
        file = self.path / "starts"
        before = int(file.read_text()) if file.exists() else 0
        write(file, str(before + 1))
        return before

    def check_choice(self, option: str, chosen: str) -> None:
        """What was chosen when the cloud was new stays. service.CannotStart: another thing is chosen now."""
        file = self.path / option
        before = file.read_text() if file.exists() else chosen
        if before != chosen:
            raise errors.service.CannotStart(reason=f"the cloud in {self.path} was made with --{option} {before}: "
                                             "start it so, or name another folder with --state")
        write(file, chosen)

    def leave(self) -> None:
        """Remove what shall not last. May be called twice."""
        if not self.lasting:
            shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def write(path: Path, text: str) -> None:
    """Whole or not at all, and for this user alone. OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(fresh, path)


def _made(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path.resolve()


def _parent() -> Path:
    """The place of folders that go with their process: memory where there is room, else the disk."""
    return IN_MEMORY if _is_large(IN_MEMORY) else Path(tempfile.gettempdir())


def _is_large(folder: Path) -> bool:
    """Whether there is room for databases and images: containers have 64 MB there."""
    return os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free >= ROOM
