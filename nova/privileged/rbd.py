"""Images in a pool of Ceph's: argument lists for ``rbd`` and ``ceph``. Sizes in bytes; images are whole MiB."""

from __future__ import annotations

import contextlib
import json
import os
from typing import NamedTuple

from nova import errors
from nova.privileged.runner import CommandRunner, Completed

MIB = 1 << 20
NOT_THERE, THERE, BUSY = 2, 17, 16  # exit codes are errno's: ENOENT, EEXIST, EBUSY
FULL = (28, 122)  # ENOSPC, EDQUOT
SNAPSHOT, OWNER = "base", "nova-host"


class CephPool(NamedTuple):
    """Empty ``user`` and ``conf``: Ceph's own defaults."""

    name: str
    user: str = ""
    conf: str = ""

    def options(self) -> list[str]:
        """The words that every rbd(8) and ceph(8) command begins with."""
        return [*(["--id", self.user] if self.user else []), *(["--conf", self.conf] if self.conf else [])]

    def uri(self, image: str) -> str:
        """The image as qemu-img names it; ``\\`` keeps a character from having a meaning there."""
        parts = [f"rbd:{_plain(self.name)}/{_plain(image)}", *([f"id={_plain(self.user)}"] if self.user else []),
                 *([f"conf={_plain(self.conf)}"] if self.conf else [])]
        return ":".join(parts)


class Rbd:
    """The pool's images."""

    def __init__(self, pool: CephPool, runner: CommandRunner) -> None:
        self.pool, self._runner = pool, runner

    def size(self, image: str) -> int | None:
        """None when there is no such image."""
        done = self._rbd("look at an image", ["info", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return None if done.code else int(json.loads(done.stdout)["size"])

    def space(self) -> tuple[int, int]:
        """Of the pool: all that may be stored in it, and what is free."""
        done = self._check("tell its size", self._runner.run(["ceph", *self.pool.options(), "df", "--format", "json"],
                                                             ok=range(-64, 256)))
        for pool in json.loads(done.stdout).get("pools", []):
            if pool.get("name") == self.pool.name:
                free = int(pool["stats"]["max_avail"])
                return free + int(pool["stats"].get("stored", 0)), free
        raise errors.host.Rbd(task="tell its size", reason=f"there is no pool {self.pool.name}")

    def create(self, image: str, size_bytes: int) -> None:
        """An empty image, up to the next whole MiB; it takes no space yet. host.Rbd: there is an image of that name.
        host.DiskFull."""
        self._rbd("create an image", ["create", "--size", _mib(size_bytes), self._at(image)])

    def bring(self, file: str, image: str) -> None:
        """Import a raw file; its holes take no space."""
        self._rbd("import an image", ["import", "--no-progress", file, self._at(image)])

    def clone(self, base: str, image: str) -> None:
        """An image that shows ``base``'s snapshot until it is written to."""
        self._rbd("clone an image", ["clone", f"{self._at(base)}@{SNAPSHOT}", self._at(image)])

    def freeze(self, image: str) -> None:
        """Make and protect the snapshot that clones are made of. Harmless when it is there."""
        at = f"{self._at(image)}@{SNAPSHOT}"
        self._rbd("make a snapshot", ["snap", "create", "--no-progress", at], ok=(0, THERE))
        self._rbd("protect a snapshot", ["snap", "protect", at], ok=(0, BUSY, THERE))

    def thaw(self, image: str) -> bool:
        """Undo ``freeze``; False when clones need the snapshot."""
        at = f"{self._at(image)}@{SNAPSHOT}"
        if self._rbd("free a snapshot", ["snap", "unprotect", at], ok=(0, BUSY, NOT_THERE, 22)).code == BUSY:
            return False
        self._rbd("remove a snapshot", ["snap", "rm", "--no-progress", at], ok=(0, NOT_THERE))
        return True

    def frozen(self, image: str) -> bool:
        """Whether the snapshot that clones are made of is there and protected. False when there is no such image."""
        done = self._rbd("list snapshots", ["snap", "ls", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return not done.code and any(snap.get("name") == SNAPSHOT and str(snap.get("protected")).lower() == "true"
                                     for snap in json.loads(done.stdout))

    def resize(self, image: str, size_bytes: int) -> None:
        """Let it grow."""
        self._rbd("resize an image", ["resize", "--no-progress", "--size", _mib(size_bytes), self._at(image)])

    def rename(self, old: str, new: str) -> bool:
        """False when there is one of the new name."""
        return not self._rbd("rename an image", ["mv", self._at(old), self._at(new)], ok=(0, THERE)).code

    def owner(self, image: str) -> str:
        """Whom ``own`` named last; empty when there is none, or no such image."""
        done = self._rbd("read an image's owner", ["image-meta", "get", self._at(image), OWNER], ok=(0, NOT_THERE))
        return "" if done.code else done.stdout.strip()

    def own(self, image: str, owner: str) -> None:
        self._rbd("note an image's owner", ["image-meta", "set", self._at(image), OWNER, owner])

    def remove(self, image: str) -> None:
        """Nothing when it is not there."""
        self._rbd("remove snapshots", ["snap", "purge", "--no-progress", self._at(image)], ok=(0, NOT_THERE))
        self._rbd("remove an image", ["rm", "--no-progress", self._at(image)], ok=(0, NOT_THERE))

    def _at(self, image: str) -> str:
        return f"{self.pool.name}/{image}"

    def _rbd(self, task: str, argv: list[str], ok: tuple[int, ...] = (0,)) -> Completed:
        done = self._runner.run(["rbd", *self.pool.options(), *argv], ok=range(-64, 256))
        return done if done.code in ok else self._check(task, done)

    def _check(self, task: str, done: Completed) -> Completed:
        if not done.code:
            return done
        if done.code in FULL:
            raise errors.host.DiskFull(what="a disk", host=os.uname().nodename)
        with contextlib.suppress(IndexError):
            raise errors.host.Rbd(task=task, reason=(done.stderr or done.stdout).strip().splitlines()[-1][:300])
        raise errors.host.Rbd(task=task, reason=f"exit {done.code}")


def _mib(size_bytes: int) -> str:
    return str(-(-size_bytes // MIB))


def _plain(text: str) -> str:
    return "".join(f"\\{char}" if char in ":@=\\" else char for char in text)
