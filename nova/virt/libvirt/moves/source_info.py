"""A source's description and exports of a guest's files, and the destination's checks of them (it trusts none)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nova import decoding, errors, failures
from nova.model.guest.orders import DiskOnSource, GuestOnSource
from nova.privileged import disk_exports
from nova.virt.libvirt.disks import header
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import CONFIG_NAME, KERNEL, RAMDISK
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.guest.firmware import NVRAM, SECURE_NVRAM
from nova.virt.libvirt.moves.tpm_transfer import SECRET, STATE
from nova.virt.libvirt.settings.moves import MoveSettings

PROBE = "probe-"
#: Files of a guest that are not disks, and move with it.
ALONG = (KERNEL, RAMDISK, NVRAM, SECURE_NVRAM, SECRET, STATE)
ALONG_LIVE = (KERNEL, RAMDISK, SECRET)
MOVED = frozenset({"root", "ephemeral", "swap", "config"})
BASE = "base:"  # before a disk's name: its backing file
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
FORMATS = frozenset({"raw", "qcow2"})
STORES = frozenset({"file", "rbd"})
#: The only name that a disk of each kind may have: a file of another name could be read as a record of this host.
NAMES = {"root": "disk", "ephemeral": "disk.eph{index}", "swap": "disk.swap", "config": CONFIG_NAME}
DEVICES = frozenset({"disk", "cdrom"})


def check_files(folder: Folder, uuid: str) -> None:
    """Raise move.NoFiles if a disk is neither a file nor in a shared pool."""
    for disk in folder.disks():
        if disk.store != "file" and not disk.pooled:
            raise errors.move.NoFiles(uuid=uuid, store=disk.store)


def probe_of(folder: Folder) -> str:
    """Return a name that only a host that sees this folder finds; the same until the folder is renamed."""
    for path in folder.path.glob(f"{PROBE}*"):
        return f"{folder.path.name}/{path.name}"
    path = folder.file(PROBE + secrets.token_hex(16))
    path.touch(mode=0o600)
    return f"{folder.path.name}/{path.name}"


def drop_probe(folder: Folder) -> None:
    """Remove the folder's probe; ``probe_of`` then makes another. Does nothing if it has none."""
    for path in folder.path.glob(f"{PROBE}*"):
        path.unlink(missing_ok=True)


def sees(root: Path, probe: str) -> bool:
    """Return whether this host sees the folder of another host's ``probe``, below ``root``. False for an invalid
    probe."""
    parts = probe.split("/")
    return len(parts) == 2 and all(PLAIN_NAME.fullmatch(part) for part in parts) and root.joinpath(*parts).is_file()


def files_of(folder: Folder, live: bool = False) -> dict[str, Path]:
    """Return the files that another host may have to copy, by export name. ``live``: without the disks that the
    hypervisor copies."""
    found = {}
    for disk in folder.disks():
        if disk.pooled:
            continue
        if disk.kind in MOVED and (not live or disk.kind == "config"):
            found[disk.name] = folder.file(disk.name)
        if disk.backing:
            found[BASE + disk.name] = folder.base_file(disk)
    return found | {name: folder.file(name) for name in (ALONG_LIVE if live else ALONG) if folder.file(name).exists()}


def offer_of(folder: Folder, moves: MoveSettings, live: bool = False) -> disk_exports.ExportOffer:
    """Export the files, for another host to read."""
    listen = disk_exports.Listen(moves.address, moves.ports)
    return disk_exports.offer(folder.path, files_of(folder, live), listen)


def describe(folder: Folder, names: Mapping[str, str]) -> tuple[tuple[DiskOnSource, ...], dict[str, str]]:
    """Return the disks, and additional facts. ``names``: of exports, by the files' names."""
    order = folder.order()
    image_id = order.image.id if order and order.image else ""
    records = tuple(disk for disk in folder.disks() if disk.kind in MOVED)
    disks = [DiskOnSource(kind=disk.kind, index=disk.index, name=disk.name, format=disk.format,
                          size_bytes=disk.size_bytes, image_id=image_id if disk.backing else "",
                          export=names.get(disk.name, ""), base_export=names.get(BASE + disk.name, ""))
             for disk in records]
    disks += [DiskOnSource(kind="file", name=name, size_bytes=folder.file(name).stat().st_size,
                           export=names.get(name, "")) for name in ALONG if folder.file(name).exists()]
    facts = {"records": msgspec.json.encode(records).decode(), "folder": str(folder.path)}
    for disk in records:
        if disk.pooled:
            continue
        facts[f"bytes:{disk.name}"] = str(folder.file(disk.name).stat().st_size)
        facts[f"used:{disk.name}"] = str(folder.file(disk.name).stat().st_blocks * 512)
        if disk.backing:
            base = folder.base_file(disk)
            facts[f"bytes:{BASE}{disk.name}"] = str(base.stat().st_size)
            facts[f"size:{BASE}{disk.name}"] = str(header.size(base, disk.backing_format or "raw"))
    return tuple(disks), facts


class SourceInfo:
    """The checked description of a source. Raises move.BadOffer."""

    def __init__(self, source: GuestOnSource) -> None:
        with failures.translated((KeyError, msgspec.DecodeError),
                lambda error: errors.move.BadOffer(reason=f"its list of disks is missing or invalid ({error})")):
            self.records = decoding.from_json(source.facts["records"], tuple[DiskRecord, ...])
        self._facts = source.facts
        self._disks = {disk.name: disk for disk in source.disks}
        names = [*(disk.name for disk in self.records), *self._disks]
        for name in names:
            if not PLAIN_NAME.fullmatch(name):
                raise errors.move.BadOffer(reason=f"a file has the name {name[:60]!r}")
        for disk in self.records:
            known = disk.store in STORES and disk.kind in MOVED and disk.format in FORMATS
            if not known or disk.size_bytes < 0 \
                    or (disk.backing and (disk.format != "qcow2" or disk.backing_format not in FORMATS)):
                raise errors.move.BadOffer(reason=f"a disk is {disk.kind} {disk.format} based on {disk.backing_format}")
            if disk.pooled and (disk.format != "raw" or disk.backing):
                raise errors.move.BadOffer(reason=f"a disk in a pool is {disk.format}")
            if disk.name != NAMES[disk.kind].format(index=disk.index) or disk.device not in DEVICES:
                raise errors.move.BadOffer(reason=f"a {disk.kind} disk is the {disk.device} {disk.name[:60]!r}")
            if disk.kind == "config" and (disk.format != "raw" or disk.backing):  # its content is not checked
                raise errors.move.BadOffer(reason=f"a config drive is {disk.format}")

    def bytes(self, name: str) -> int:
        """Return the length of a file."""
        return self._number(f"bytes:{name}")

    def length(self, name: str) -> int:
        """Return the length of a file, including files that are not disks."""
        return self.bytes(name) or next((extra.size_bytes for extra in self.extras() if extra.name == name), 0)

    def used(self, name: str) -> int:
        """Return the allocated bytes of a disk."""
        return self._number(f"used:{name}")

    def base_size(self, name: str) -> int:
        """Return the virtual size of a disk's base; 0: unknown."""
        return self._number(f"size:{BASE}{name}")

    def image_id(self, name: str) -> str:
        """Return the image of a disk; empty if the source names none, or no such disk."""
        return self._disks[name].image_id if name in self._disks else ""

    def export(self, name: str) -> str:
        """Return the export of a file. Raises move.BadOffer if there is none."""
        disk = self._disks.get(name.removeprefix(BASE))
        found = (disk.base_export if name.startswith(BASE) else disk.export) if disk else ""
        if not re.fullmatch("[0-9a-f]{32}", found):
            raise errors.move.BadOffer(reason=f"{name} is not exported")
        return found

    def extras(self) -> tuple[DiskOnSource, ...]:
        """Return the files that are not disks and move with the guest, without those of unknown names."""
        return tuple(disk for disk in self._disks.values() if disk.kind == "file" and disk.name in ALONG)

    def _number(self, name: str) -> int:
        text = self._facts.get(name, "0")
        if not text.isdecimal():
            raise errors.move.BadOffer(reason=f"{name} is not a number")
        return int(text)
