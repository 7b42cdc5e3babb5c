"""Files that the helper may use, below directories of its own configuration: resolved component by component.

The directories belong to nova, and an attacker with nova's rights can put a link anywhere in them at any moment. So
each component is opened relative to the one before it, without following links, and the result is used by its
descriptor. A link made by root, in a directory that only root writes to, is followed: operators use such links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from nova import errors
from nova.privileged.helper.arguments import refused
from nova.privileged.opened_files import OpenedFile

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
MOST_PARTS = 64


class HelperFolders:
    """The open files of a call. ``roots``: the directories that must contain a path. Files stay open until
    :meth:`close`."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = tuple(root.parts for root in roots)
        self._on_the_way: list[int] = []
        self._given: list[int] = []

    def file(self, path: str) -> OpenedFile:
        """Open an existing regular file that has no other name. Raises host.HelperRefused, OSError."""
        folder, name = self._folder_of(path)
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        self._given.append(opened)
        _check_plain(path, os.fstat(opened))
        return OpenedFile(path, opened)

    def folder(self, path: str) -> OpenedFile:
        """Open an existing directory."""
        folder, name = self._folder_of(path)
        opened = self._next(folder, name, path)
        self._given.append(opened)
        return OpenedFile(path, opened)

    def made(self, path: str) -> OpenedFile:
        """Open a regular file, and create it if needed (0600, with the owner of its directory)."""
        folder, name = self._folder_of(path)
        try:
            fresh = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600,
                            dir_fd=folder)
        except FileExistsError:
            return self.file(path)
        try:
            owner = os.fstat(folder)
            os.fchown(fresh, owner.st_uid, owner.st_gid)
        finally:
            os.close(fresh)
        return self.file(path)

    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors for bubblewrap, which closes them: those of the opened files, but not of the
        directories above them."""
        return tuple(self._given)

    def close(self) -> None:
        """Close all files."""
        for kept in (self._given, self._on_the_way):
            while kept:
                os.close(kept.pop())

    # --- internals

    def _kept(self, descriptor: int) -> int:
        self._on_the_way.append(descriptor)
        return descriptor

    def _folder_of(self, path: str) -> tuple[int, str]:
        """Open the directory that contains the path's last component. No program gets its descriptor: the whole host is
        above it."""
        parts = Path(path).parts
        if "\0" in path or not path.startswith("/") or ".." in parts or len(parts) > MOST_PARTS:
            raise _refused(path, "it is not an absolute, normalized path")
        if not any(parts[:len(root)] == root and len(parts) > len(root) for root in self._roots):
            raise _refused(path, "it lies outside the directories of guests, images and volumes in nova.conf")
        folder = self._kept(os.open("/", FOLDER))
        for part in parts[1:-1]:
            folder = self._kept(self._next(folder, part, path))
        return folder, parts[-1]

    def _next(self, folder: int, part: str, path: str) -> int:
        try:
            return os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except NotADirectoryError:
            if _is_root_s(os.fstat(folder)) and _is_root_s_link(folder, part):
                return os.open(part, FOLDER, dir_fd=folder)
            raise _refused(path, f"{part} is not a directory, or is a link that does not belong to root") from None


def _refused(path: str, reason: str) -> errors.HostRefused:
    return refused(f"the use of {path[:200]}", reason)


def _is_root_s(facts: os.stat_result) -> bool:
    return facts.st_uid == 0 and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_root_s_link(folder: int, name: str) -> bool:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return facts.st_uid == 0 and stat.S_ISLNK(facts.st_mode)


def _check_plain(path: str, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise _refused(path, "it is not a regular file")
    if facts.st_nlink != 1:
        raise _refused(path, "the file has other names")
