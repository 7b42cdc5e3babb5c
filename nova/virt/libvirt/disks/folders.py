"""What is kept beside each guest: ``instances_path/<uuid>/``.

``order.json`` is the newest order without its secrets, ``disks.json`` what disks were made and in which format (so that
no format is ever guessed), ``plugged.json`` what was plugged, ``volumes.json`` what was connected. All are readable by
root alone.

``owner`` names the host whose guest it is: hosts may share the directory. Another host that has to do with the guest
(it comes there, or has just left) keeps its own order and plugs in files with that host's name in theirs, and removes
nothing but these. A guest that left in a cold move has its source copy in ``<uuid>_resize/``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from nova import concurrency, decoding
from nova.model.guest.orders import BuildOrder, kept_part
from nova.model.numa.topology import Packing
from nova.virt.libvirt.disks.records import DiskRecord, PlugRecord, RescueRecord, VolumeRecord

T = TypeVar("T")

PORTS, VOLUMES = "ports.json", "volumes.json"
SOURCE_SUFFIX = "_resize"  # upstream's name for it: operators' scripts know it


class Folder:
    """One guest's."""

    def __init__(self, path: Path, host: str = "") -> None:
        self.path, self._host = path, host

    # --- whose it is

    @property
    def host(self) -> str:
        """What names this host; empty when nothing does."""
        return self._host

    @property
    def owned(self) -> bool:
        """Whether it is this host's (or nobody's yet)."""
        return self._owner() in ("", self._host)

    @property
    def concerns_us(self) -> bool:
        """Whether this host has to do with the guest: it is its own (or nobody's yet), or this host keeps an order of
        another's."""
        return self.owned or self._file_of_ours("order.json").exists()

    def own(self) -> None:
        """The guest is this host's from now on, with what this host kept of it."""
        if not self._host or self._owner() == self._host:
            return
        for name in ("plugged.json", "order.json"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._file_of_ours(name), self.file(name))
        self._file_of_ours(PORTS).unlink(missing_ok=True)
        ours = self._file_of_ours(VOLUMES)
        if ours.exists():
            os.replace(ours, self.file(VOLUMES))
        else:
            self.file(VOLUMES).unlink(missing_ok=True)  # of the host that it was on
        self._write("owner", self._host)

    def leave(self) -> None:
        """Forget what this host kept of another's guest. Nothing when it is ours."""
        if not self.owned:
            for name in ("order.json", "plugged.json", PORTS):
                self._file_of_ours(name).unlink(missing_ok=True)

    def _owner(self) -> str:
        return self._read("owner", str) or ""

    def _file_of_ours(self, name: str) -> Path:
        stem, _, suffix = name.rpartition(".")
        return self.file(f"{stem}.{self._host}.{suffix}")

    def _mine(self, name: str) -> str:
        return name if self.owned else self._file_of_ours(name).name

    # --- what is in it

    def file(self, name: str) -> Path:
        """Its path in the folder, whether it is there or not."""
        return self.path / name

    def base_file(self, disk: DiskRecord) -> Path:
        """What an overlay lies over, which may be beside it, and be in the source copy with it."""
        path = Path(disk.backing or "")
        return self.file(path.name) if path.parent.name == self.path.name.removesuffix(SOURCE_SUFFIX) else path

    def exists(self) -> bool:
        """Whether there is such a folder, whosever guest it is."""
        return self.path.is_dir()

    def make(self) -> None:
        """Have the folder, with this host as its owner where it has none yet. Another's stays another's. It may be
        repeated."""
        self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.path.chmod(0o711)  # QEMU's user may open the disks it is told of; nobody may list
        if self._host and not self._owner():
            self._write("owner", self._host)

    def remove(self) -> None:
        """With all that is in it. Nothing when it is not there; another host's guest stays."""
        if not self.owned:
            self.leave()
        elif self.exists():
            concurrency.run_in_thread(shutil.rmtree, self.path)

    def discard(self) -> None:
        """Whosever it is: the guest is another host's again."""
        if self.exists():
            concurrency.run_in_thread(shutil.rmtree, self.path)

    def order(self) -> BuildOrder | None:
        """This host's newest order, as ``keep_order`` wrote it. None when there is none, or it cannot be read."""
        return self._read(self._mine("order.json"), BuildOrder)

    def orders(self) -> tuple[BuildOrder, ...]:
        """Of every host that has to do with the guest, which may be another's."""
        found = (self._read(path.name, BuildOrder) for path in sorted(self.path.glob("order*.json")))
        return tuple(order for order in found if order is not None)

    def keep_order(self, order: BuildOrder) -> None:
        """Without its secrets (``kept_part``)."""
        self._write(self._mine("order.json"), kept_part(order))

    def disks(self) -> tuple[DiskRecord, ...]:
        """The guest's own disks, in the order in which it sees them; () when none were noted yet. A rescue's are not
        among them."""
        return self._read("disks.json", tuple[DiskRecord, ...]) or ()

    def keep_disks(self, disks: tuple[DiskRecord, ...]) -> None:
        """Note these as all of the guest's own disks, in place of those that were noted before."""
        self._write("disks.json", disks)

    def copy_of(self) -> str | None:
        """Whose copies its disks are, while a guest moves here (a source's probe)."""
        return self._read("copy-of.json", str)

    def keep_copy_of(self, probe: str | None) -> None:
        """None: the guest has come."""
        if probe is not None:
            self._write("copy-of.json", probe)
        else:
            self.file("copy-of.json").unlink(missing_ok=True)

    def reserved_ports(self) -> tuple[int, ...]:
        """Of this host's, for the serial ports of a guest that is to come; from its arrival on its definition says."""
        return self._read(self._mine(PORTS), tuple[int, ...]) or ()

    def reserve_ports(self, ports: tuple[int, ...]) -> None:
        """(): no more."""
        if ports:
            self._write(self._mine(PORTS), ports)
        else:
            self.file(self._mine(PORTS)).unlink(missing_ok=True)

    def rescue(self) -> RescueRecord | None:
        return self._read("rescue.json", RescueRecord)

    def keep_rescue(self, record: RescueRecord | None) -> None:
        """None: it is over."""
        if record is not None:
            self._write("rescue.json", record)
        else:
            self.file("rescue.json").unlink(missing_ok=True)

    def shown_disks(self) -> tuple[DiskRecord, ...]:
        """The disks that the guest sees when it starts."""
        rescue = self.rescue()
        return self.disks() if rescue is None else rescue.shown(self.disks())

    def keep_only(self, kinds: frozenset[str]) -> None:
        """Remove all but the disks of these kinds, and what is known of them and of what was plugged."""
        if not self.exists():
            return
        if not self.owned:
            return self.leave()
        kept = tuple(disk for disk in self.disks() if disk.kind in kinds)
        stay = {"order.json", "plugged.json", VOLUMES, "disks.json", "owner", *(disk.name for disk in kept)}
        for entry in os.scandir(self.path):
            if entry.name not in stay:
                if entry.is_dir(follow_symlinks=False):
                    concurrency.run_in_thread(shutil.rmtree, entry.path)
                else:
                    os.unlink(entry.path)
        self.keep_disks(kept)

    def plugs(self) -> tuple[PlugRecord, ...]:
        """The interfaces that this host plugged, as it noted them; () when there are none."""
        return self._read(self._mine("plugged.json"), tuple[PlugRecord, ...]) or ()

    def keep_plugs(self, plugs: tuple[PlugRecord, ...]) -> None:
        """Note these as all that this host has plugged for the guest, in place of what was noted before."""
        self._write(self._mine("plugged.json"), plugs)

    def volumes(self) -> tuple[VolumeRecord, ...]:
        """The volumes that this host has connected for the guest, as it noted them; () when there are none."""
        return self._read(self._mine(VOLUMES), tuple[VolumeRecord, ...]) or ()

    def keep_volumes(self, volumes: tuple[VolumeRecord, ...]) -> None:
        """Note these as all that this host has connected, in place of what was noted before."""
        if volumes:
            self._write(self._mine(VOLUMES), volumes)
        else:
            self.file(self._mine(VOLUMES)).unlink(missing_ok=True)

    def note_targets(self, targets: Mapping[str, str]) -> None:
        """The names that the guest's definition has for these of its volumes."""
        volumes = self.volumes()
        named = tuple(msgspec.structs.replace(one, target=targets.get(one.volume_id, one.target)) for one in volumes)
        if named != volumes:
            self.keep_volumes(named)

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            return decoding.from_json(self.file(name).read_bytes(), kind)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None

    def _write(self, name: str, content: object) -> None:
        """Whole or not at all: a reader, and we after a kill, see the old or the new."""
        descriptor, fresh = tempfile.mkstemp(prefix=f".{name}.", dir=self.path)
        try:
            with os.fdopen(descriptor, "wb") as target:
                target.write(msgspec.json.encode(content))
            os.replace(fresh, self.file(name))
        except BaseException:  # a full disk, say
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise


class Folders:
    """All guests' of this host, below ``instances_path``."""

    def __init__(self, root: Path, host: Callable[[], str] = lambda: "") -> None:
        self.root, self._host = root, host  # ``host``: what no other host that shares the directory is called

    def of(self, server_uuid: str) -> Folder:
        """The guest's folder; ValueError when ``server_uuid`` is no uuid in its usual form (it becomes a path)."""
        if str(uuid.UUID(server_uuid)) != server_uuid:
            raise ValueError(f"{server_uuid!r} is no uuid")
        return Folder(self.root / server_uuid, self._host())

    def source_copy(self, server_uuid: str) -> Folder:
        """Where the guest is kept that left, until the move is confirmed or reverted."""
        return Folder(self.root / f"{self.of(server_uuid).path.name}{SOURCE_SUFFIX}", self._host())

    def kept_sources(self) -> tuple[str, ...]:
        """Uuids of this host's guests that left."""
        return tuple(uuid for uuid in self._named(SOURCE_SUFFIX) if self.source_copy(uuid).owned)

    def all(self) -> tuple[Folder, ...]:
        """Every host's that shares the directory, source copies included."""
        return tuple(Folder(self.root / f"{uuid}{suffix}", self._host())
                     for suffix in ("", SOURCE_SUFFIX) for uuid in self._named(suffix))

    def uuids(self) -> tuple[str, ...]:
        """Of every folder that is a guest's by its name, and this host's."""
        return tuple(uuid for uuid in self._named("") if self.of(uuid).concerns_us)

    # --- what they tell: Packed, KeptOrders and ImageUsers of nova.virt.interface

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        return self.of(server_uuid).order()

    def packings(self, node: str = "", source_copies: bool = False) -> dict[str, Packing]:
        of, uuids = (self.source_copy, self.kept_sources()) if source_copies else (self.of, self.uuids())
        orders = {uuid: of(uuid).order() for uuid in uuids}
        return {uuid: order.packing for uuid, order in orders.items() if order is not None and order.packing}

    def packing(self, server_uuid: str) -> Packing | None:
        order = self.kept_order(server_uuid)
        return order.packing if order is not None else None

    def images_in_use(self) -> frozenset[str]:
        """Ids of the images that guests and source copies were made from: their cached files are needed. Those of other
        hosts, too, which share the directory."""
        found: set[str] = set()
        for folder in self.all():
            for order in folder.orders():
                found |= {image.id for image in (order.image, order.kernel, order.ramdisk) if image is not None}
            rescue = folder.rescue()
            if rescue is not None:
                found |= set(rescue.image_ids)
        return frozenset(found)

    def bases(self, server_uuid: str) -> frozenset[str]:
        return frozenset(disk.backing for disk in self.of(server_uuid).disks() if disk.backing)

    # --- inside

    def _named(self, suffix: str) -> tuple[str, ...]:
        if not self.root.is_dir():
            return ()
        names = (entry.name for entry in os.scandir(self.root) if entry.name.endswith(suffix) and entry.is_dir())
        return tuple(sorted(name for name in (found.removesuffix(suffix) for found in names) if _is_uuid(name)))


def _is_uuid(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
