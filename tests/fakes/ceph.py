"""Pools of a Ceph cluster, accessed by the commands rbd(8) and ceph(8); other programs are executed, or only
recorded."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nova.privileged.runner import CommandRunner, Completed
from tests.unit.virt.libvirt.acting import tool_of

MIB = 1 << 20
NOT_THERE, BUSY, THERE, INVALID = 2, 16, 17, 22
FSID = "42232501-085c-48e2-97b8-c0da3f3056a0"
LOOKS = {"info", "snap ls", "trash ls", "image-meta list"}
NOTES = {"image-meta set", "image-meta remove"}


@dataclass
class FakeImage:
    """An RBD image. ``content``: its source, or data of a test; ``parent``: the snapshot that it is cloned from."""

    size: int
    content: str = ""
    parent: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, FakeImage] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)


class FakeCeph:
    """A cluster. ``images``: by pool/image. ``open``: images with a watcher. ``fails``: verb -> (exit code, message).
    ``ran``: commands that changed data, except notes. ``tools``: runs other programs; None: they are only recorded.
    ``options``: the words that every command must begin with."""

    def __init__(self, tools: CommandRunner | None = None) -> None:
        self.images: dict[str, FakeImage] = {}
        self.trash: dict[str, FakeImage] = {}  # by name
        self.open: set[str] = set()
        self.ran: list[str] = []
        self.fails: dict[str, tuple[int, str]] = {}
        self.tools = tools
        self.options = ["--id", "nova", "--conf", "/etc/ceph/c.conf", "--client_mount_timeout=5"]

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == "ceph":
            if argv[-1] == "fsid":
                return Completed(0, f"{FSID}\n")
            return Completed(0, json.dumps({"pools": [{"name": "vms", "stats": {"max_avail": 70, "stored": 30}}]}))
        if argv[0] != "rbd":
            if self.tools is not None:
                return self.tools.run(argv, **options)
            self.ran.append(_short(tool_of(argv)))
            return Completed(0)
        begin = 1 + len(self.options)
        assert list(argv[1:begin]) == self.options
        words = [word for word in argv[begin:] if word != "--no-progress"]
        verb = " ".join(words[:2]) if words[0] in ("snap", "image-meta", "trash") else words[0]
        if verb not in LOOKS | NOTES:
            self.ran.append(_short(words))
        if verb in self.fails:
            return Completed(self.fails[verb][0], "", self.fails[verb][1])
        done = getattr(self, "_" + verb.replace(" ", "_").replace("-", "_"))(*words[len(verb.split()):])
        return Completed(done or 0) if done is None or isinstance(done, int) else Completed(0, json.dumps(done))

    # --- queries: JSON, or an exit code

    def _info(self, _format: str, _json: str, at: str) -> Any:
        name, _, snapshot = at.partition("@")
        image = self.images.get(name)
        if image is None or snapshot and snapshot not in image.snapshots:
            return NOT_THERE
        parent = image.parent.replace("@", "/").split("/") if image.parent and not snapshot else None
        return {"size": (image.snapshots[snapshot] if snapshot else image).size,
                **({"parent": dict(zip(("pool", "image", "snapshot"), parent, strict=True))} if parent else {}),
                **({"protected": str(snapshot in image.protected).lower()} if snapshot else {})}

    def _snap_ls(self, _format: str, _json: str, at: str) -> Any:
        if at not in self.images:
            return NOT_THERE
        image = self.images[at]
        return [{"name": name, "protected": str(name in image.protected).lower()} for name in image.snapshots]

    def _trash_ls(self, _format: str, _json: str, pool: str) -> Any:
        return [{"id": f"id-{name}", "name": name} for name in self.trash]

    def _image_meta_list(self, _format: str, _json: str, at: str) -> Any:
        return self.images[at].notes if at in self.images else NOT_THERE

    # --- changes: an exit code; None means 0

    def _image_meta_set(self, at: str, key: str, value: str) -> int | None:
        if at not in self.images:
            return NOT_THERE
        self.images[at].notes[key] = value
        return None

    def _image_meta_remove(self, at: str, key: str) -> int | None:
        if at not in self.images or key not in self.images[at].notes:
            return NOT_THERE
        del self.images[at].notes[key]
        return None

    def _create(self, _option: str, size: str, at: str) -> int | None:
        if at in self.images:
            return THERE
        self.images[at] = FakeImage(int(size) * MIB)
        return None

    def _import(self, file: str, at: str) -> None:
        path = Path(file)
        self.images[at] = FakeImage(path.stat().st_size if path.exists() else 64 * MIB, path.name)

    def _clone(self, snapshot: str, at: str) -> None:
        base, _, name = snapshot.partition("@")
        assert name in self.images[base].protected
        self.images[at] = FakeImage(self.images[base].size, self.images[base].content, snapshot)

    def _flatten(self, at: str) -> int | None:
        if self.images[at].parent is None:
            return INVALID
        self.images[at].parent = None
        return None

    def _resize(self, _option: str, size: str, at: str) -> None:
        self.images[at].size = int(size) * MIB

    def _mv(self, old: str, new: str) -> int | None:
        if new in self.images:
            return THERE
        self.images[new] = self.images.pop(old)
        return None

    def _rm(self, at: str) -> int | None:
        if at not in self.images:
            return NOT_THERE
        if at in self.open:
            return BUSY
        del self.images[at]
        return None

    def _snap_create(self, at: str) -> int | None:
        image, _, name = at.partition("@")
        if name in self.images[image].snapshots:
            return THERE
        self.images[image].snapshots[name] = copy.copy(self.images[image])
        return None

    def _snap_rollback(self, at: str) -> int | None:
        image, _, name = at.partition("@")
        if image not in self.images or name not in self.images[image].snapshots:
            return NOT_THERE
        then = self.images[image].snapshots[name]
        self.images[image].size, self.images[image].content = then.size, then.content
        return None

    def _snap_protect(self, at: str) -> None:
        image, _, name = at.partition("@")
        self.images[image].protected.add(name)

    def _snap_unprotect(self, at: str) -> int | None:
        if at.partition("@")[0] not in self.images:
            return NOT_THERE
        if any(one.parent == at for one in self.images.values()):
            return BUSY
        image, _, name = at.partition("@")
        self.images[image].protected.discard(name)
        return None

    def _snap_rm(self, at: str) -> int | None:
        image, _, name = at.partition("@")
        gone = image in self.images and self.images[image].snapshots.pop(name, None)
        return None if gone else NOT_THERE

    def _snap_purge(self, at: str) -> int | None:
        if at not in self.images:
            return NOT_THERE
        if self.images[at].protected & set(self.images[at].snapshots):
            return BUSY
        self.images[at].snapshots.clear()
        return None

    def _trash_mv(self, at: str) -> None:
        self.trash[at.partition("/")[2]] = self.images.pop(at)

    def _trash_rm(self, at: str) -> int | None:
        pool, _, name = at.replace("/id-", "/").partition("/")
        if f"{pool}/{name}" in self.open:
            return BUSY
        del self.trash[name]
        return None


def _short(words: Sequence[str]) -> str:
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)
