"""What stands on this host for a network, in a file beside dnsmasq's: how a later run takes away what is ours.

It is written before anything is made, so that nothing of ours is ever without its record. Only what we made is
removed: a device that was there before us, or that somebody uses, stays.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from nova import decoding, errors
from nova.network.gateway import HostLinks
from nova.privileged.files import write_whole
from nova.privileged.links import Address

LOG = logging.getLogger(__name__)
SUFFIX = "standing"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """``device`` bears our ``addresses``; ``made``: devices that were not there before us, in the order in which they
    go again; ``interface``: the bridge's port that leads outside."""

    network: str
    device: str
    interface: str | None = None
    made: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()


class Standings:
    """The records of one host."""

    def __init__(self, directory: Path, links: HostLinks) -> None:
        self._directory, self._links = directory, links

    def devices(self) -> frozenset[str]:
        """Devices that bear a network's addresses and have a record here, of this run or an earlier run."""
        return frozenset(path.name.removeprefix("nova-").removesuffix(f".{SUFFIX}")
                         for path in self._directory.glob(f"nova-*.{SUFFIX}"))

    def read(self, device: str) -> Standing | None:
        """What stands on the device. None when there is no record, or it cannot be read (which is logged)."""
        with contextlib.suppress(FileNotFoundError):
            try:
                return decoding.from_json(self._path(device).read_bytes(), Standing)
            except msgspec.DecodeError:
                LOG.error("%s cannot be read: what it names is not removed", self._path(device))
        return None

    def note(self, wanted: Standing) -> Standing:
        """Write down what is about to be; addresses that an earlier word put there, and this one does not, go.

        ``wanted.made`` is what will be made where it is not there; what is there and not noted is not ours.
        """
        before = self.read(wanted.device)
        noted = set(before.made) if before and before.network == wanted.network else set()
        made = tuple(name for name in wanted.made if name in noted or not self._links.exists(name))
        record = msgspec.structs.replace(wanted, made=made)
        stale = [old for old in before.addresses if old not in record.addresses] if before else []
        if before is None or stale or before != record:
            union = (*record.addresses, *stale)
            self._write(msgspec.structs.replace(record, addresses=union))
        if stale:
            self._drop_addresses(wanted.device, stale)
            self._write(record)
        return record

    def clear(self, device: str) -> bool:
        """Take away what the record names, and then the record; whether nothing is left.

        Guests still on the bridge, or addresses of somebody else's, keep it and what is under it: the record stays
        for the next try.
        """
        record = self.read(device)
        if record is None:
            self._path(device).unlink(missing_ok=True)
            return True
        self._drop_addresses(device, record.addresses)
        left = tuple(self._still_used(record))
        if left:
            self._write(msgspec.structs.replace(record, made=left, addresses=()))
            return False
        self._path(device).unlink(missing_ok=True)
        return True

    def _still_used(self, record: Standing) -> Iterator[str]:
        """Delete what was made, from the top down; what somebody uses, and all under it, is given back."""
        used = False
        for name in record.made:
            if not self._links.exists(name):
                continue
            used = used or self._in_use(name, record)
            if used:
                yield name
            else:
                LOG.info("Removing %s: network %s needs it no more", name, record.network)
                self._links.delete(name)

    def _in_use(self, name: str, record: Standing) -> bool:
        ours = {record.interface, *record.made}
        return bool(set(self._links.ports(name)) - ours or self._links.addresses(name))

    def _drop_addresses(self, device: str, addresses: Sequence[Address]) -> None:
        if not self._links.exists(device):
            return
        for address in addresses:
            with contextlib.suppress(errors.host.Link):  # the device went just now
                self._links.delete_address(device, address)

    def _write(self, record: Standing) -> None:
        write_whole(self._path(record.device), msgspec.json.encode(record).decode(), 0o600)

    def _path(self, device: str) -> Path:
        return self._directory / f"nova-{device}.{SUFFIX}"
