"""Images in a Ceph pool: argument lists for ``rbd`` and ``ceph``. Sizes in bytes; images are whole MiB."""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import NamedTuple

from nova import errors
from nova.privileged.runner import CommandRunner, Completed

MIB = 1 << 20
NOT_THERE, THERE, BUSY, INVALID = 2, 17, 16, 22  # exit codes are errno values: ENOENT, EEXIST, EBUSY, EINVAL
FULL = (28, 122)  # ENOSPC, EDQUOT
SNAPSHOT = "base"  # parent of clones
DISK_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_disk")


class CephPool(NamedTuple):
    """A pool and its client options. Empty ``user`` and ``conf``: Ceph's own defaults. ``connect_s``: seconds to wait
    for a monitor; -1: Ceph's own default, five minutes."""

    name: str
    user: str = ""
    conf: str = ""
    connect_s: int = -1

    def options(self) -> list[str]:
        """Return the options with which every rbd(8) and ceph(8) command begins."""
        patience = [f"--client_mount_timeout={self.connect_s}"] if self.connect_s > 0 else []
        return [*(["--id", self.user] if self.user else []), *(["--conf", self.conf] if self.conf else []), *patience]

    def uri(self, image: str) -> str:
        """Return the image's address for qemu-img; ``\\`` escapes special characters."""
        parts = [f"rbd:{_plain(self.name)}/{_plain(image)}", *([f"id={_plain(self.user)}"] if self.user else []),
                 *([f"conf={_plain(self.conf)}"] if self.conf else [])]
        return ":".join(parts)


class RbdSnapshot(NamedTuple):
    """A snapshot. ``protected``: clones may be made of it."""

    size_bytes: int
    protected: bool


class Rbd:
    """The images of the pool."""

    def __init__(self, pool: CephPool, runner: CommandRunner) -> None:
        self.pool, self._runner = pool, runner

    def size(self, image: str) -> int | None:
        """Return the size; None if there is no such image."""
        done = self._rbd("inspect an image", ["info", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return None if done.code else int(json.loads(done.stdout)["size"])

    def snapshot(self, pool: str, image: str, snapshot: str) -> RbdSnapshot | None:
        """Return a snapshot of an image in any pool; None if it does not exist."""
        done = self._rbd("inspect a snapshot", ["info", "--format", "json", f"{pool}/{image}@{snapshot}"],
                         ok=(0, NOT_THERE))
        if done.code:
            return None
        found = json.loads(done.stdout)
        return RbdSnapshot(int(found["size"]), str(found.get("protected")).lower() == "true")

    def fsid(self) -> str:
        """Return the id of the cluster."""
        done = self._check("read its id", self._runner.run(["ceph", *self.pool.options(), "fsid"], ok=range(-64, 256)))
        return done.stdout.strip()

    def space(self) -> tuple[int, int]:
        """Return the pool's capacity and its free space."""
        done = self._check("read its size", self._runner.run(["ceph", *self.pool.options(), "df", "--format", "json"],
                                                             ok=range(-64, 256)))
        for pool in json.loads(done.stdout).get("pools", []):
            if pool.get("name") == self.pool.name:
                free = int(pool["stats"]["max_avail"])
                return free + int(pool["stats"].get("stored", 0)), free
        raise errors.host.Rbd(task="read its size", reason=f"there is no pool {self.pool.name}")

    def create(self, image: str, size_bytes: int) -> None:
        """Create an empty image, rounded up to whole MiB; it takes no space yet. Raises host.Rbd if there is an image
        of that name; host.DiskFull."""
        self._rbd("create an image", ["create", "--size", _mib(size_bytes), self._at(image)])

    def ensure(self, image: str) -> None:
        """Create a small image for metadata, if it does not exist."""
        self._rbd("create an image", ["create", "--size", "1", self._at(image)], ok=(0, THERE))

    def bring(self, file: str, image: str) -> None:
        """Import a raw file; its holes take no space."""
        self._rbd("import an image", ["import", "--no-progress", file, self._at(image)])

    def clone(self, base: str, image: str) -> None:
        """Create an image as a clone of ``base``'s snapshot."""
        self.clone_of(self.pool.name, base, SNAPSHOT, image)

    def clone_of(self, pool: str, base: str, snapshot: str, image: str) -> None:
        """Create a clone of a snapshot in any pool that the user may read."""
        self._rbd("clone an image", ["clone", f"{pool}/{base}@{snapshot}", self._at(image)])

    def flatten(self, image: str) -> None:
        """Copy the parent's data to a clone, so that it no longer depends on the parent. Does nothing if it is not a
        clone."""
        self._rbd("flatten an image", ["flatten", "--no-progress", self._at(image)], ok=(0, INVALID))

    def parent(self, image: str) -> tuple[str, str, str] | None:
        """Return pool, image and snapshot of the parent; None if the image is not a clone, or does not exist."""
        done = self._rbd("inspect an image", ["info", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        found = None if done.code else json.loads(done.stdout).get("parent")
        return (found["pool"], found["image"], found["snapshot"]) if found else None

    def freeze(self, image: str, snapshot: str = SNAPSHOT) -> None:
        """Create and protect a snapshot for clones, if it does not exist."""
        self.keep(image, snapshot)
        self._rbd("protect a snapshot", ["snap", "protect", f"{self._at(image)}@{snapshot}"], ok=(0, BUSY, THERE))

    def thaw(self, image: str, snapshot: str = SNAPSHOT) -> bool:
        """Undo ``freeze``; return False if clones need the snapshot."""
        at = f"{self._at(image)}@{snapshot}"
        if self._rbd("unprotect a snapshot", ["snap", "unprotect", at], ok=(0, BUSY, NOT_THERE, INVALID)).code == BUSY:
            return False
        self.drop(image, snapshot)
        return True

    def frozen(self, image: str) -> tuple[str, ...]:
        """Return the protected snapshots, of which clones can be made; empty if there is no such image."""
        done = self._rbd("list snapshots", ["snap", "ls", "--format", "json", self._at(image)], ok=(0, NOT_THERE))
        return () if done.code else tuple(snap["name"] for snap in json.loads(done.stdout)
                                          if str(snap.get("protected")).lower() == "true")

    def resize(self, image: str, size_bytes: int) -> None:
        """Extend the image."""
        self._rbd("resize an image", ["resize", "--no-progress", "--size", _mib(size_bytes), self._at(image)])

    def rename(self, old: str, new: str) -> bool:
        """Rename the image; return False if the new name exists."""
        return not self._rbd("rename an image", ["mv", self._at(old), self._at(new)], ok=(0, THERE)).code

    # --- image metadata

    def notes(self, image: str) -> dict[str, str]:
        """Return the image's metadata; empty if there is none, or no such image."""
        done = self._rbd("read an image's metadata", ["image-meta", "list", "--format", "json", self._at(image)],
                         ok=(0, NOT_THERE))
        return {} if done.code else dict(json.loads(done.stdout or "{}"))

    def note(self, image: str, key: str, value: str) -> None:
        """Set a metadata key. Raises host.Rbd if there is no such image."""
        self._rbd("write an image's metadata", ["image-meta", "set", self._at(image), key, value])

    def drop_note(self, image: str, key: str) -> None:
        """Remove a metadata key, if it exists."""
        self._rbd("remove an image's metadata", ["image-meta", "remove", self._at(image), key], ok=(0, NOT_THERE))

    # --- snapshots

    def keep(self, image: str, snapshot: str) -> None:
        """Create a snapshot of the image. An existing snapshot of that name is kept."""
        self._rbd("make a snapshot", ["snap", "create", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, THERE))

    def roll_back(self, image: str, snapshot: str) -> None:
        """Roll the image back to the snapshot, including its size. Does nothing if there is no such snapshot."""
        self._rbd("roll back to a snapshot", ["snap", "rollback", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, NOT_THERE))

    def drop(self, image: str, snapshot: str) -> None:
        """Remove the snapshot, if it exists."""
        self._rbd("remove a snapshot", ["snap", "rm", "--no-progress", f"{self._at(image)}@{snapshot}"],
                  ok=(0, NOT_THERE))

    # --- removal

    def remove(self, image: str) -> bool:
        """Remove the image, if it exists. Return False if it is still open; it is then in the pool's trash, without a
        name."""
        self._rbd("remove snapshots", ["snap", "purge", "--no-progress", self._at(image)], ok=(0, NOT_THERE))
        done = self._rbd("remove an image", ["rm", "--no-progress", self._at(image)], ok=(0, NOT_THERE, BUSY))
        if done.code != BUSY:
            return True
        self._rbd("move an image to the trash", ["trash", "mv", self._at(image)], ok=(0, NOT_THERE))
        return False

    def empty_trash(self) -> int:
        """Remove guests' disks from the trash; return how many are left, because they are still open."""
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
