"""Each guest's folder with its records: ``instances_path/<uuid>/``.

``order.json`` is the newest order without its secrets, ``disks.json`` the disks and their formats (so that no format
is ever probed), ``plugged.json`` the plugged interfaces, ``volumes.json`` the connected volumes. Only root can read
them.

``owner`` names the host that has the guest: hosts may share the directory. Another host that handles the guest (it
arrives there, or has just left) keeps its own order and plugs in files with its name in theirs, and removes only these.
A guest that left in a cold migration has its source copy in ``<uuid>_resize/``.
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

from nova import concurrency, decoding, failures
from nova.model.guest.orders import BuildOrder, persistent_part
from nova.model.numa.topology import TopologyClaim
from nova.virt.libvirt.disks.records import DiskRecord, PlugRecord, RescueRecord, VolumeRecord

T = TypeVar("T")

PORTS, VOLUMES = "ports.json", "volumes.json"
SOURCE_SUFFIX = "_resize"  # upstream's name: operators' scripts use it


class Folder:
    """The folder of one guest."""

    def __init__(self, path: Path, host: str = "") -> None:
        self.path, self._host = path, host

    # --- ownership

    @property
    def host(self) -> str:
        """Return the name of this host; empty if it has none."""
        return self._host

    @property
    def owned(self) -> bool:
        """Return whether this host owns the guest, or no host does yet."""
        return self._owner() in ("", self._host)

    @property
    def concerns_us(self) -> bool:
        """Return whether this host handles the guest: it owns the guest (or no host does yet), or it keeps an order of
        a guest of another host."""
        return self.owned or self._file_of_ours("order.json").exists()

    def own(self) -> None:
        """Make this host the owner of the guest, with the records that this host kept of it."""
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
            self.file(VOLUMES).unlink(missing_ok=True)  # of the previous host
        self._write("owner", self._host)

    def leave(self) -> None:
        """Remove this host's records of a guest of another host. Does nothing if this host owns the guest."""
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

    # --- content

    def file(self, name: str) -> Path:
        """Return the path of a file in the folder, whether it exists or not."""
        return self.path / name

    def base_file(self, disk: DiskRecord) -> Path:
        """Return the backing file of an overlay. It may be in the same folder, and so move to the source copy with
        it."""
        path = Path(disk.backing or "")
        return self.file(path.name) if path.parent.name == self.path.name.removesuffix(SOURCE_SUFFIX) else path

    def exists(self) -> bool:
        """Return whether the folder exists, for any owner of the guest."""
        return self.path.is_dir()

    def make(self) -> None:
        """Ensure that the folder exists, with this host as its owner if it has none. Safe to repeat."""
        self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.path.chmod(0o711)  # QEMU's user may open the disks that it is given, but no other user may list them
        if self._host and not self._owner():
            self._write("owner", self._host)

    def remove(self) -> None:
        """Remove the folder and its content, if it exists; another host's guest stays."""
        if not self.owned:
            self.leave()
        elif self.exists():
            concurrency.run_in_thread(shutil.rmtree, self.path)

    def discard(self) -> None:
        """Remove the folder, for any owner: the guest belongs to another host again."""
        if self.exists():
            concurrency.run_in_thread(shutil.rmtree, self.path)

    def order(self) -> BuildOrder | None:
        """Return this host's newest order, as ``keep_order`` wrote it; None if there is none, or it cannot be read."""
        return self._read(self._mine("order.json"), BuildOrder)

    def orders(self) -> tuple[BuildOrder, ...]:
        """Return the orders of every host that handles the guest."""
        found = (self._read(path.name, BuildOrder) for path in sorted(self.path.glob("order*.json")))
        return tuple(order for order in found if order is not None)

    def keep_order(self, order: BuildOrder) -> None:
        """Store the order without its secrets (``persistent_part``)."""
        self._write(self._mine("order.json"), persistent_part(order))

    def disks(self) -> tuple[DiskRecord, ...]:
        """Return the guest's own disks, in guest order, without rescue disks; () if none are recorded yet."""
        return self._read("disks.json", tuple[DiskRecord, ...]) or ()

    def keep_disks(self, disks: tuple[DiskRecord, ...]) -> None:
        """Record these as all of the guest's own disks, in place of the earlier record."""
        self._write("disks.json", disks)

    def copy_of(self) -> str | None:
        """Return the source's probe while a guest moves here: its disks are copies of that source's."""
        return self._read("copy-of.json", str)

    def keep_copy_of(self, probe: str | None) -> None:
        """Record the source's probe; None: the guest has arrived."""
        if probe is not None:
            self._write("copy-of.json", probe)
        else:
            self.file("copy-of.json").unlink(missing_ok=True)

    def reserved_ports(self) -> tuple[int, ...]:
        """Return this host's ports reserved for the serial ports of an arriving guest; after that, its definition has
        them."""
        return self._read(self._mine(PORTS), tuple[int, ...]) or ()

    def reserve_ports(self, ports: tuple[int, ...]) -> None:
        """Reserve these ports; () releases them."""
        if ports:
            self._write(self._mine(PORTS), ports)
        else:
            self.file(self._mine(PORTS)).unlink(missing_ok=True)

    def rescue(self) -> RescueRecord | None:
        return self._read("rescue.json", RescueRecord)

    def keep_rescue(self, record: RescueRecord | None) -> None:
        """Record the rescue; None: it is over."""
        if record is not None:
            self._write("rescue.json", record)
        else:
            self.file("rescue.json").unlink(missing_ok=True)

    def shown_disks(self) -> tuple[DiskRecord, ...]:
        """Return the disks that the guest sees when it starts."""
        rescue = self.rescue()
        return self.disks() if rescue is None else rescue.shown(self.disks())

    def keep_only(self, kinds: frozenset[str]) -> None:
        """Remove everything except the disks of these kinds, the records, and the order."""
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
        """Return the interfaces that this host plugged, as recorded; () if there are none."""
        return self._read(self._mine("plugged.json"), tuple[PlugRecord, ...]) or ()

    def keep_plugs(self, plugs: tuple[PlugRecord, ...]) -> None:
        """Record these as all interfaces that this host plugged for the guest, in place of the earlier record."""
        self._write(self._mine("plugged.json"), plugs)

    def volumes(self) -> tuple[VolumeRecord, ...]:
        """Return the volumes that this host connected for the guest, as recorded; () if there are none."""
        return self._read(self._mine(VOLUMES), tuple[VolumeRecord, ...]) or ()

    def keep_volumes(self, volumes: tuple[VolumeRecord, ...]) -> None:
        """Record these as all volumes that this host connected, in place of the earlier record."""
        if volumes:
            self._write(self._mine(VOLUMES), volumes)
        else:
            self.file(self._mine(VOLUMES)).unlink(missing_ok=True)

    def note_targets(self, targets: Mapping[str, str]) -> None:
        """Record the names that the guest's definition has for these volumes."""
        volumes = self.volumes()
        named = tuple(msgspec.structs.replace(one, target=targets.get(one.volume_id, one.target)) for one in volumes)
        if named != volumes:
            self.keep_volumes(named)

    def _read(self, name: str, kind: type[T]) -> T | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return decoding.from_json(self.file(name).read_bytes(), kind)
        return None

    def _write(self, name: str, content: object) -> None:
        """Write a file atomically: readers, and this process after a kill, see the old content or the new."""
        descriptor, fresh = tempfile.mkstemp(prefix=f".{name}.", dir=self.path)

        def undo() -> None:  # a full disk, for example
            with contextlib.suppress(OSError):
                os.unlink(fresh)
        with failures.on_failure(undo, on=BaseException):
            with os.fdopen(descriptor, "wb") as target:
                target.write(msgspec.json.encode(content))
            os.replace(fresh, self.file(name))


class Folders:
    """The folders of all guests of this host, below ``instances_path``."""

    def __init__(self, root: Path, host: Callable[[], str] = lambda: "") -> None:
        self.root, self._host = root, host  # ``host``: a name that is unique among the hosts that share the directory

    def of(self, server_uuid: str) -> Folder:
        """Return the guest's folder. Raises ValueError if ``server_uuid`` is not a canonical uuid (it becomes a
        path)."""
        if str(uuid.UUID(server_uuid)) != server_uuid:
            raise ValueError(f"{server_uuid!r} is not a valid UUID")
        return Folder(self.root / server_uuid, self._host())

    def source_copy(self, server_uuid: str) -> Folder:
        """Return the source copy of a guest that left, kept until the move is confirmed or reverted."""
        return Folder(self.root / f"{self.of(server_uuid).path.name}{SOURCE_SUFFIX}", self._host())

    def kept_sources(self) -> tuple[str, ...]:
        """Return the uuids of this host's guests that left."""
        return tuple(uuid for uuid in self._named(SOURCE_SUFFIX) if self.source_copy(uuid).owned)

    def all(self) -> tuple[Folder, ...]:
        """Return the folders of all hosts that share the directory, source copies included."""
        return tuple(Folder(self.root / f"{uuid}{suffix}", self._host())
                     for suffix in ("", SOURCE_SUFFIX) for uuid in self._named(suffix))

    def uuids(self) -> tuple[str, ...]:
        """Return the uuids of all guest folders that concern this host."""
        return tuple(uuid for uuid in self._named("") if self.of(uuid).concerns_us)

    # --- Packed, KeptOrders and ImageUsers of nova.virt.interface

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        return self.of(server_uuid).order()

    def packings(self, node: str = "", source_copies: bool = False) -> dict[str, TopologyClaim]:
        of, uuids = (self.source_copy, self.kept_sources()) if source_copies else (self.of, self.uuids())
        orders = {uuid: of(uuid).order() for uuid in uuids}
        return {uuid: order.packing for uuid, order in orders.items() if order is not None and order.packing}

    def packing(self, server_uuid: str) -> TopologyClaim | None:
        order = self.kept_order(server_uuid)
        return order.packing if order is not None else None

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of images from which guests and source copies were made, and whose cached files are needed.
        Includes those of other hosts that share the directory."""
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

    # --- internal

    def _named(self, suffix: str) -> tuple[str, ...]:
        if not self.root.is_dir():
            return ()
        names = (entry.name for entry in os.scandir(self.root) if entry.name.endswith(suffix) and entry.is_dir())
        return tuple(sorted(name for name in (found.removesuffix(suffix) for found in names) if _is_uuid(name)))


def _is_uuid(name: str) -> bool:
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(name)) == name
    return False
