"""Images in a pool of Ceph's: argument lists for ``rbd`` and ``ceph``. Sizes in bytes; images are whole MiB."""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import NamedTuple

from nova import errors
from nova.privileged.runner import CommandRunner, Completed

MIB = 1 << 20
NOT_THERE, THERE, BUSY, INVALID = 2, 17, 16, 22  # exit codes are errno's: ENOENT, EEXIST, EBUSY, EINVAL
FULL = (28, 122)  # ENOSPC, EDQUOT
SNAPSHOT = "base"  # what clones are made of
DISK_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_disk")


class CephPool(NamedTuple):
    """Empty ``user`` and ``conf``: Ceph's own defaults. ``connect_s``: seconds to wait for a monitor; -1: Ceph's own
    choice, five minutes."""

    name: str
    user: str = ""
    conf: str = ""
    connect_s: int = -1

    def options(self) -> list[str]:
        """The words that every rbd(8) and ceph(8) command begins with."""
        patience = [f"--client_mount_timeout={self.connect_s}"] if self.connect_s > 0 else []
        return [*(["--id", self.user] if self.user else []), *(["--conf", self.conf] if self.conf else []), *patience]

    def uri(self, image: str) -> str:
        """The image as qemu-img names it; ``\\`` keeps a character from having a meaning there."""
        parts = [f"rbd:{_plain(self.name)}/{_plain(image)}", *([f"id={_plain(self.user)}"] if self.user else []),
                 *([f"conf={_plain(self.conf)}"] if self.conf else [])]
        return ":".join(parts)


class RbdSnapshot(NamedTuple):
    """``protected``: clones may be made of it."""

    size_bytes: int
    protected: bool


class Rbd:
    """The pool's images."""

    def __init__(self, pool: CephPool, runner: CommandRunner) -> None:
        self.pool, self._runner = pool, runner

    def size(self, image: str) -> int | None:
        """None when there is no such image."""
        done = self._rbd("look at an image", ["info", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return None if done.code else int(json.loads(done.stdout)["size"])

    def snapshot(self, pool: str, image: str, snapshot: str) -> RbdSnapshot | None:
        """Of any pool. None when there is no such thing."""
        done = self._rbd("look at a snapshot", ["info", "--format", "json", f"{pool}/{image}@{snapshot}"],
                         ok=(0, NOT_THERE))
        if done.code:
            return None
        found = json.loads(done.stdout)
        return RbdSnapshot(int(found["size"]), str(found.get("protected")).lower() == "true")

    def fsid(self) -> str:
        """The cluster's."""
        done = self._check("tell its id", self._runner.run(["ceph", *self.pool.options(), "fsid"], ok=range(-64, 256)))
        return done.stdout.strip()

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

    def ensure(self, image: str) -> None:
        """A small image, for what is noted with it. Harmless when it is there."""
        self._rbd("create an image", ["create", "--size", "1", self._at(image)], ok=(0, THERE))

    def bring(self, file: str, image: str) -> None:
        """Import a raw file; its holes take no space."""
        self._rbd("import an image", ["import", "--no-progress", file, self._at(image)])

    def clone(self, base: str, image: str) -> None:
        """An image that shows ``base``'s snapshot until it is written to."""
        self.clone_of(self.pool.name, base, SNAPSHOT, image)

    def clone_of(self, pool: str, base: str, snapshot: str, image: str) -> None:
        """The same, of an image of any pool that the user may read."""
        self._rbd("clone an image", ["clone", f"{pool}/{base}@{snapshot}", self._at(image)])

    def flatten(self, image: str) -> None:
        """Copy to a clone all that it shows, so that it shows nothing any more. Harmless when it is no clone."""
        self._rbd("flatten an image", ["flatten", "--no-progress", self._at(image)], ok=(0, INVALID))

    def parent(self, image: str) -> tuple[str, str, str] | None:
        """Pool, image and snapshot that it is a clone of. None: of none, or there is no such image."""
        done = self._rbd("look at an image", ["info", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        found = None if done.code else json.loads(done.stdout).get("parent")
        return (found["pool"], found["image"], found["snapshot"]) if found else None

    def freeze(self, image: str, snapshot: str = SNAPSHOT) -> None:
        """Make and protect a snapshot that clones are made of. Harmless when it is there."""
        self.keep(image, snapshot)
        self._rbd("protect a snapshot", ["snap", "protect", f"{self._at(image)}@{snapshot}"], ok=(0, BUSY, THERE))

    def thaw(self, image: str, snapshot: str = SNAPSHOT) -> bool:
        """Undo ``freeze``; False when clones need the snapshot."""
        at = f"{self._at(image)}@{snapshot}"
        if self._rbd("free a snapshot", ["snap", "unprotect", at], ok=(0, BUSY, NOT_THERE, INVALID)).code == BUSY:
            return False
        self.drop(image, snapshot)
        return True

    def frozen(self, image: str) -> tuple[str, ...]:
        """The snapshots that are protected, so that clones can be made of them. None when there is no such image."""
        done = self._rbd("list snapshots", ["snap", "ls", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return () if done.code else tuple(snap["name"] for snap in json.loads(done.stdout)
                                          if str(snap.get("protected")).lower() == "true")

    def resize(self, image: str, size_bytes: int) -> None:
        """Let it grow."""
        self._rbd("resize an image", ["resize", "--no-progress", "--size", _mib(size_bytes), self._at(image)])

    def rename(self, old: str, new: str) -> bool:
        """False when there is one of the new name."""
        return not self._rbd("rename an image", ["mv", self._at(old), self._at(new)], ok=(0, THERE)).code

    # --- what is noted with an image

    def notes(self, image: str) -> dict[str, str]:
        """Empty when there are none, or no such image."""
        done = self._rbd("read an image's notes", ["image-meta", "list", "--format", "json", self._at(image)],
                         ok=(0, NOT_THERE))
        return {} if done.code else dict(json.loads(done.stdout or "{}"))

    def note(self, image: str, key: str, value: str) -> None:
        """host.Rbd: there is no such image."""
        self._rbd("write an image's note", ["image-meta", "set", self._at(image), key, value])

    def drop_note(self, image: str, key: str) -> None:
        """Nothing when there is none."""
        self._rbd("remove an image's note", ["image-meta", "remove", self._at(image), key], ok=(0, NOT_THERE))

    # --- as it was at a moment

    def keep(self, image: str, snapshot: str) -> None:
        """Remember the image as it is now. Harmless when there is a snapshot of that name, which stays."""
        self._rbd("make a snapshot", ["snap", "create", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, THERE))

    def roll_back(self, image: str, snapshot: str) -> None:
        """The image is what it was then, and as large. Nothing when there is no such snapshot."""
        self._rbd("go back to a snapshot", ["snap", "rollback", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, NOT_THERE))

    def drop(self, image: str, snapshot: str) -> None:
        """Nothing when there is no such snapshot."""
        self._rbd("remove a snapshot", ["snap", "rm", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, NOT_THERE))

    # --- the end

    def remove(self, image: str) -> bool:
        """Nothing when it is not there. False: somebody has it open, and it is in the pool's trash now, by no name."""
        self._rbd("remove snapshots", ["snap", "purge", "--no-progress", self._at(image)], ok=(0, NOT_THERE))
        done = self._rbd("remove an image", ["rm", "--no-progress", self._at(image)], ok=(0, NOT_THERE, BUSY))
        if done.code != BUSY:
            return True
        self._rbd("move an image to the trash", ["trash", "mv", self._at(image)], ok=(0, NOT_THERE))
        return False

    def empty_trash(self) -> int:
        """Remove guests' disks that are in the trash; how many are left, because they are still open."""
        done = self._rbd("list the trash", ["trash", "ls", "--format", "json", self.pool.name])
        left = 0
        for one in json.loads(done.stdout or "[]"):
            if DISK_NAME.match(one["name"]):
                gone = self._rbd("remove an image", ["trash", "rm", "--no-progress", self._at(one["id"])],
                                 ok=(0, NOT_THERE, BUSY))
                left += gone.code == BUSY
        return left

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
