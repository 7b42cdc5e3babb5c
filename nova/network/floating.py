"""Floating addresses on this host's devices: put there when their rules stand, taken away when those are gone.

What we put where is written down first, beside the networks' files: a daemon that was killed finds it again, and an
address that somebody else put on a device is never taken away. Connections through an address end with it: the kernel
would else go on translating what it has begun.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence, Set

import msgspec

from nova import decoding, errors
from nova.network.gateway import HostLinks
from nova.network.options import NetworkHostOptions
from nova.network.translation import Translated
from nova.privileged.announcements import Which, announce, forget_connections
from nova.privileged.files import write_whole
from nova.privileged.links import Address
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

RECORD = "floating.json"
ALONE = 32  # the prefix of what we put on a device


class Carried(msgspec.Struct, frozen=True):
    """What the record says of an address: to whom it was translated, and where it stands. ``ours``: we put it there."""

    fixed: str
    device: str
    ours: bool = True


class FloatingOnDevices:
    """Brings the host's devices to what is wanted. Calls repeat harmlessly; one at a time."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner
        self._path = options.networks_path / RECORD

    def check(self, interface: str | None) -> None:
        """network.NoFloatingInterface where an address could not stand."""
        device = interface or self._options.public_interface
        if not self._links.exists(device):
            raise errors.network.NoFloatingInterface(interface=device)

    def converge(self, wanted: Sequence[Translated]) -> None:
        """To be called when the packet filter has the rules of ``wanted``, and no others'."""
        read = self._read()
        noted = read or {}
        target = {one.address: Carried(one.fixed, one.device) for one in wanted}
        for address, old in noted.items():
            self._leave(address, old, target.get(address))
        present = {device: self._present(device) for device in {one.device for one in target.values()}}
        foreign = {device: {address for address, prefix in (there or {}).items() if read is not None or prefix != ALONE}
                   for device, there in present.items()}
        noted = {address: self._carried(address, one, noted.get(address), foreign[one.device])
                 for address, one in target.items() if present[one.device] is not None}
        for address, one in target.items():
            if present[one.device] is None:
                LOG.error("The floating address %s cannot stand on %s: there is no such device", address, one.device)
        self._write(noted)
        for address, carried in noted.items():
            if carried.ours and address not in (present[carried.device] or ()):
                self._put(address, carried)
                self._forget(Which.TO, address)  # flows that went nowhere would go on doing so

    # --- inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _carried(address: str, wanted: Carried, before: Carried | None, foreign: Set[str]) -> Carried:
        """An address that is there, and that we did not note, is somebody else's; where the notes are lost, those that
        stand alone (/32) are taken for ours."""
        if before is not None and before.device == wanted.device:
            return msgspec.structs.replace(wanted, ours=before.ours)
        return msgspec.structs.replace(wanted, ours=address not in foreign)

    def _leave(self, address: str, old: Carried, new: Carried | None) -> None:
        """What of an address is to be no more: its place, and the connections that it had."""
        if old.ours and (new is None or new.device != old.device):
            self._remove(address, old.device)
        if new is None or new.fixed != old.fixed:
            self._end_connections(address, old.fixed)

    def _put(self, address: str, carried: Carried) -> None:
        try:
            self._links.ensure_address(carried.device, Address(address, ALONE))
        except errors.host.Link as error:  # the device went just now; the next look tries again
            LOG.error("The floating address %s could not be put on %s: %s", address, carried.device, error.message)
            return
        LOG.info("Floating address %s of %s stands on %s", address, carried.fixed, carried.device)
        if self._options.send_arp_for_ha:
            with contextlib.suppress(errors.host.CommandFailed):  # it hastens what ARP finds out by itself
                announce(self._runner, carried.device, address, self._options.send_arp_for_ha_count)

    def _remove(self, address: str, device: str) -> None:
        if self._links.exists(device):
            with contextlib.suppress(errors.host.Link):  # the device goes, and its addresses with it
                self._links.delete_address(device, Address(address, ALONE))
        LOG.info("Floating address %s is gone from %s", address, device)

    def _end_connections(self, address: str, fixed: str) -> None:
        """Those to the guest, and those that it began and that have the address outside."""
        self._forget(Which.ANSWERED_BY, fixed)
        self._forget(Which.ANSWERED_TO, address)

    def _forget(self, which: Which, address: str) -> None:
        try:
            forget_connections(self._runner, which, address)
        except errors.host.CommandFailed as error:
            LOG.warning("What the kernel knows of connections of %s may last: %s", address, error)

    def _present(self, device: str) -> dict[str, int] | None:
        """Addresses that stand on a device, with their prefixes; None: there is no such device."""
        if not self._links.exists(device):
            return None
        try:
            return {one.address: one.prefix for one in self._links.addresses(device)}
        except errors.host.Link:
            return None

    def _read(self) -> dict[str, Carried] | None:
        """None: it cannot be read."""
        try:
            return decoding.from_json(self._path.read_bytes(), dict[str, Carried])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError:
            LOG.error("%s cannot be read: of what it names, what is no guest's now stays", self._path)
            return None

    def _write(self, noted: dict[str, Carried]) -> None:
        if noted or self._path.exists():
            write_whole(self._path, msgspec.json.encode(noted).decode(), 0o600)


__all__ = ["Carried", "FloatingOnDevices"]
