"""Records of the devices and addresses that nova made on this host for a network, in a file next to dnsmasq's files. A
later run uses them to remove nova's own devices.

A record is written before anything is created, so that no device of nova is ever without one. Only devices that nova
created are removed: devices that existed before, or that are in use, stay.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from nova import decoding, errors, failures
from nova.network.gateway import HostLinks
from nova.privileged.files import write_whole
from nova.privileged.links import Address

LOG = logging.getLogger(__name__)
SUFFIX = "standing"


class NetworkDevices(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a network on this host. ``device``: the device with nova's ``addresses``; ``made``: devices that did
    not exist before, in the order of their removal; ``interface``: the bridge's port to the outside."""

    network: str
    device: str
    interface: str | None = None
    made: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()


class NetworkDeviceRecords:
    """The device records of one host."""

    def __init__(self, directory: Path, links: HostLinks) -> None:
        self._directory, self._links = directory, links

    def devices(self) -> frozenset[str]:
        """Return the devices that have a network's addresses and a record here, of this run or an earlier one."""
        return frozenset(path.name.removeprefix("nova-").removesuffix(f".{SUFFIX}")
                         for path in self._directory.glob(f"nova-*.{SUFFIX}"))

    def read(self, device: str) -> NetworkDevices | None:
        """Return the device's record; None if it is missing or unreadable (which is logged)."""
        path = self._path(device)
        with contextlib.suppress(FileNotFoundError), failures.expected(
                LOG, "cannot read %s; not removing the devices and addresses in it", path, on=msgspec.DecodeError,
                level=logging.ERROR):
            return decoding.from_json(path.read_bytes(), NetworkDevices)
        return None

    def note(self, wanted: NetworkDevices) -> NetworkDevices:
        """Record the wanted state before it is created, and remove addresses of an earlier record that are not in it.

        Devices in ``wanted.made`` that do not exist will be created. Existing devices that are not recorded do not
        belong to nova.
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
        """Remove the recorded addresses and devices, and then the record. True if nothing is left.

        A bridge with guests or foreign addresses stays, together with the devices under it, and the record is kept for
        the next try.
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

    def _still_used(self, record: NetworkDevices) -> Iterator[str]:
        """Delete the created devices from the top down, and yield the ones in use and all devices under them."""
        used = False
        for name in record.made:
            if not self._links.exists(name):
                continue
            used = used or self._in_use(name, record)
            if used:
                yield name
            else:
                LOG.info("Removing %s: network %s no longer needs it", name, record.network)
                self._links.delete(name)

    def _in_use(self, name: str, record: NetworkDevices) -> bool:
        ours = {record.interface, *record.made}
        return bool(set(self._links.ports(name)) - ours or self._links.addresses(name))

    def _drop_addresses(self, device: str, addresses: Sequence[Address]) -> None:
        if not self._links.exists(device):
            return
        for address in addresses:
            with contextlib.suppress(errors.host.Link):  # the device was just removed
                self._links.delete_address(device, address)

    def _write(self, record: NetworkDevices) -> None:
        write_whole(self._path(record.device), msgspec.json.encode(record).decode(), 0o600)

    def _path(self, device: str) -> Path:
        return self._directory / f"nova-{device}.{SUFFIX}"
