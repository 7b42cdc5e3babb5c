"""Floating addresses on this host's devices: added when their rules are active, removed when those are gone.

Each address is recorded before it is added, next to the networks' files, so that it is found again after a crash.
Addresses that other software added are never removed. Connections through an address are ended with it: otherwise the
kernel would continue to translate them.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence, Set

import msgspec

from nova import decoding, errors, failures
from nova.network.gateway import HostLinks
from nova.network.options import NetworkHostOptions
from nova.network.translation import Translated
from nova.privileged.announcements import Which, announce, forget_connections
from nova.privileged.files import write_whole
from nova.privileged.links import Address
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

RECORD = "floating.json"
ALONE = 32  # prefix length of addresses that nova adds to a device


class Carried(msgspec.Struct, frozen=True):
    """Record of an address: the fixed address that it translates to, and its device. ``ours``: nova added it."""

    fixed: str
    device: str
    ours: bool = True


class FloatingOnDevices:
    """Reconciliation of floating addresses on the host's devices. Calls repeat harmlessly; only one may run at a
    time."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner
        self._path = options.networks_path / RECORD

    def check(self, interface: str | None) -> None:
        """Check that the device for floating addresses exists. Raises network.NoFloatingInterface."""
        device = interface or self._options.public_interface
        if not self._links.exists(device):
            raise errors.network.NoFloatingInterface(interface=device)

    def converge(self, wanted: Sequence[Translated]) -> None:
        """Add and remove addresses. Call it when the packet filter has exactly the rules of ``wanted``."""
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
                LOG.error("Floating address %s cannot be added to %s: no such device", address, one.device)
        self._write(noted)
        for address, carried in noted.items():
            if carried.ours and address not in (present[carried.device] or ()):
                self._put(address, carried)
                self._forget(Which.TO, address)  # flows without a destination would otherwise persist

    # --- internals ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _carried(address: str, wanted: Carried, before: Carried | None, foreign: Set[str]) -> Carried:
        """Return the new record. An existing address without a record belongs to other software. If the records are
        lost, addresses with prefix /32 are assumed to be nova's."""
        if before is not None and before.device == wanted.device:
            return msgspec.structs.replace(wanted, ours=before.ours)
        return msgspec.structs.replace(wanted, ours=address not in foreign)

    def _leave(self, address: str, old: Carried, new: Carried | None) -> None:
        """Remove the old device and connections of an address, as far as they changed."""
        if old.ours and (new is None or new.device != old.device):
            self._remove(address, old.device)
        if new is None or new.fixed != old.fixed:
            self._end_connections(address, old.fixed)

    def _put(self, address: str, carried: Carried) -> None:
        try:
            self._links.ensure_address(carried.device, Address(address, ALONE))
        except errors.host.Link as error:  # the device was just removed; the next run tries again
            LOG.error("Could not add floating address %s to %s: %s", address, carried.device, error.message)
            return
        LOG.info("Added floating address %s of %s to %s", address, carried.fixed, carried.device)
        if self._options.send_arp_for_ha:
            with contextlib.suppress(errors.host.CommandFailed):  # only speeds up ARP
                announce(self._runner, carried.device, address, self._options.send_arp_for_ha_count)

    def _remove(self, address: str, device: str) -> None:
        if self._links.exists(device):
            with contextlib.suppress(errors.host.Link):  # the device is being removed with its addresses
                self._links.delete_address(device, Address(address, ALONE))
        LOG.info("Removed floating address %s from %s", address, device)

    def _end_connections(self, address: str, fixed: str) -> None:
        """End connections to the guest, and connections from it that use the address as their source."""
        self._forget(Which.ANSWERED_BY, fixed)
        self._forget(Which.ANSWERED_TO, address)

    def _forget(self, which: Which, address: str) -> None:
        with failures.best_effort(LOG, "Could not end the tracked connections of %s: %s", address,
                on=errors.host.CommandFailed):
            forget_connections(self._runner, which, address)

    def _present(self, device: str) -> dict[str, int] | None:
        """Return a device's addresses with their prefixes; None if there is no such device."""
        if not self._links.exists(device):
            return None
        with contextlib.suppress(errors.host.Link):
            return {one.address: one.prefix for one in self._links.addresses(device)}
        return None

    def _read(self) -> dict[str, Carried] | None:
        """Return the records; None if they cannot be read."""
        try:
            return decoding.from_json(self._path.read_bytes(), dict[str, Carried])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError:
            LOG.error("cannot read %s; addresses in it that no guest has now stay in place", self._path)
            return None

    def _write(self, noted: dict[str, Carried]) -> None:
        if noted or self._path.exists():
            write_whole(self._path, msgspec.json.encode(noted).decode(), 0o600)


__all__ = ["Carried", "FloatingOnDevices"]
