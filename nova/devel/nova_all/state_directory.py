"""Directory with the files of a ``nova-all``: one given by the user, or a temporary one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from nova import errors, failures
from nova.model.security.secret_wrap import new_key
from nova.scratch import ScratchDirectory, lock

PREFIX = "nova-all-home-"
ROOM = 2 ** 30  # bytes that must be free in memory; otherwise the directory is on a disk
REMOVE_S, AGAIN_S = 2.0, 0.02  # timeout of the removal, and time between its attempts
IN_MEMORY = Path("/dev/shm")  # Linux's file system in memory


class StateDirectory:
    """Directory of this process. ``path``: in exclusive use until :meth:`leave`. Raises service.CannotStart if another
    process uses it, or if it cannot be created."""

    def __init__(self, named: Path | None) -> None:
        self.lasting = named is not None
        if named is None:
            self._take_scratch()
        else:
            self._take(named)

    def _take_scratch(self) -> None:
        """Create a temporary directory, after removing those of killed processes."""
        parent = _parent()
        with failures.replaced(OSError, lambda error: errors.service.CannotStart(
                reason=f"no directory could be created in {parent}: {error.strerror}. Make it writable, or set a "
                       "directory with --state or TMPDIR")):
            scratch = ScratchDirectory(PREFIX, parent)
        self.path, self._lock = scratch.path, scratch.lock

    def _take(self, named: Path) -> None:
        try:
            self.path = _made(named)
            self._lock = lock(self.path)
        except BlockingIOError:
            raise errors.service.CannotStart(reason=f"another nova-all uses {named}: stop it, or set another directory "
                                             "with --state") from None
        except OSError as error:
            raise errors.service.CannotStart(reason=f"--state {named} cannot be used: {error.strerror}. Set a "
                                             "directory that you can write to") from None

    def secret(self, name: str, made: str | None = None) -> str:
        """Return a secret of this cloud, stored in the directory; ``made``: its new value."""
        file = self.path / name
        if made is None and file.exists():
            return file.read_text()
        text = made or (new_key() if name.endswith("key") else secrets.token_urlsafe(12))
        write(file, text)
        return text

    def count_start(self) -> int:
        """Return the number of earlier starts of this cloud, and count this one."""
        file = self.path / "starts"
        before = int(file.read_text()) if file.exists() else 0
        write(file, str(before + 1))
        return before

    def check_choice(self, option: str, chosen: str) -> None:
        """Check that an option has the value of the cloud's first start. Raises service.CannotStart if it differs."""
        file = self.path / option
        before = file.read_text() if file.exists() else chosen
        if before != chosen:
            raise errors.service.CannotStart(reason=f"the cloud in {self.path} was created with --{option} {before}: "
                                             "start it with that value, or set another directory with --state")
        write(file, chosen)

    def leave(self) -> None:
        """Release the directory, and remove it if it is temporary. May be called twice."""
        if not self.lasting:
            _remove(self.path)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _remove(path: Path) -> None:
    """Remove a directory in which threads of an interrupted start may still create files. It is renamed first, so that
    they find no directory at its path."""
    removed = path.with_name(f"{path.name}-removed")
    with contextlib.suppress(OSError):
        path.rename(removed)
    until = time.monotonic() + REMOVE_S
    while (left := [one for one in (removed, path) if one.exists()]) and time.monotonic() < until:
        for one in left:
            shutil.rmtree(one, ignore_errors=True)
        time.sleep(AGAIN_S)


def write(path: Path, text: str) -> None:
    """Write a file atomically, with access for this user only. Raises OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(fresh, path)


def _made(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path.resolve()


def _parent() -> Path:
    """Return the parent of temporary directories: memory if it has enough free space, otherwise the disk."""
    return IN_MEMORY if _is_large(IN_MEMORY) else Path(tempfile.gettempdir())


def _is_large(folder: Path) -> bool:
    """Return whether the directory has enough free space for databases and images: containers have 64 MB in memory."""
    return os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free >= ROOM
