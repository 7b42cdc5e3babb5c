"""Simulated hypervisor: the base of all parts of the fake driver, with its guests' records and its knobs."""

from __future__ import annotations

import functools
import re
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from nova import concurrency, errors
from nova.compute.orders.kind import Order, build_of
from nova.conf.fake import FakeOptions
from nova.devel.fake.knobs import Knobs
from nova.devel.fake.store import FakeGuest, Store
from nova.model.guest.orders import BuildOrder, Disk, GuestState, boots_from_volume, persistent_part
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeDisk
from nova.virt.interface import PowerListener

Subject = Order | str  # an order for a guest, or its uuid

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})
UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})


class FakeHypervisor:
    """Simulated hypervisor. ``options`` is the group ``[fake]``; with ``state_path``, guests are stored in files and
    knobs are read from one."""

    def __init__(self, options: FakeOptions, host: str, state_path: Path | None = None) -> None:
        self.options, self.host = options, host
        self.knobs = Knobs(state_path)
        keep = state_path / "fake" if state_path is not None and options.keep_state else None
        self.room = keep  # directory of its files; None if not created yet
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._making_room = threading.Lock()
        self.store = Store(keep / "guests" if keep else None)
        self.source_copies = Store(keep / "aside" if keep else None)
        self.listener: PowerListener | None = None
        self.calls: deque[tuple[str, str]] = deque(maxlen=10_000)  # (call, uuid), the newest last

    def folder(self, name: str) -> Path:
        """Return a directory for files of this host; without saved state it is deleted with the process."""
        with self._making_room:
            if self.room is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="nova-fake-")
                self.room = Path(self._temporary.name)
        made = self.room / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    # --- its guests

    def changed(self, subject: BuildOrder | str) -> Change:
        """Return a block in which the guest's record may be changed, for an order or a uuid. Others wait for its end.
        The record is saved then, also after an error."""
        return Change(self.store, subject)

    def defined(self, server_uuid: str) -> FakeGuest:
        """Return the record of a defined guest. Raises guest.NotDefined."""
        guest = self.store.find(server_uuid)
        if guest is None or not guest.defined:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return guest

    def define(self, order: BuildOrder) -> PowerState:
        """Define the guest and return its power state. Raises guest.NoDisks or host.VolumeNotConnected."""
        found = self.store.find(order.server_uuid)
        if found is None or not (found.disks or boots_from_volume(order)):
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        for disk in order.volumes:
            self.check_connected(found, disk)
        with self.changed(order) as guest:
            if not guest.defined:
                guest.power_state = PowerState.SHUTDOWN
            guest.defined, guest.instance_name, guest.arriving = True, order.instance_name, False
            guest.node, guest.packing = order.node or guest.node, order.packing
            guest.volumes = {one.device.volume_id: one.device.size_gb or 0 for one in order.volumes}
            guest.vcpus, guest.memory_mb = order.flavor.vcpus, order.flavor.memory_mb
            return PowerState(guest.power_state)

    @staticmethod
    def check_connected(guest: FakeGuest, disk: VolumeDisk) -> None:
        """Raise host.VolumeNotConnected unless the volume is connected."""
        if disk.device.volume_id not in guest.connected:
            raise errors.host.VolumeNotConnected(volume=disk.device.volume_id, uuid=guest.uuid)

    def power_state(self, server_uuid: str) -> PowerState | None:
        guest = self.store.find(server_uuid)
        return PowerState(guest.power_state) if guest is not None and guest.defined else None

    def take_time(self) -> None:
        """Sleep for the configured delay of a boot, so that clients can observe operations in progress."""
        if self.options.boot_delay:
            concurrency.sleep(self.options.boot_delay)

    def boot(self, guest: FakeGuest) -> None:
        """Change the record to that of a guest that has just started, and write boot messages to its console. The
        caller saves the record and notifies the listener."""
        guest.power_state, guest.saved = PowerState.RUNNING, False
        guest.boots += 1
        guest.say(f"[    0.000000] fake kernel: {guest.instance_name}, {guest.vcpus} vcpus, {guest.memory_mb} MB")
        guest.say("[    0.000001] fake init: nothing to start")
        guest.say(f"{guest.name} login:")

    def boot_of(self, guest: FakeGuest) -> str:
        """Return the identifier of the boot to which the consoles' ports belong."""
        return f"{self.host} {guest.boots}"

    def change_power(self, server_uuid: str, state: PowerState, said: str = "shut itself down") -> PowerState:
        """Change a guest's power state without an order, and notify the listener."""
        self.defined(server_uuid)
        with self.changed(server_uuid) as guest:
            guest.power_state = state
            guest.say(f"{guest.name}: {said}")
        return self.notify(server_uuid, state)

    def notify(self, server_uuid: str, state: PowerState) -> PowerState:
        """Notify the listener; return ``state``."""
        if self.listener is not None:
            self.listener(GuestState(server_uuid=server_uuid, power_state=state))
        return state

    # --- for tests and knobs

    def inspect(self, server_uuid: str) -> FakeGuest | None:
        """Return the record of a guest; None without any remains of it."""
        return self.store.find(server_uuid)

    def inspect_source_copy(self, server_uuid: str) -> FakeGuest | None:
        """Return the record of the guest's source copy; None if it has none."""
        return self.source_copies.find(server_uuid)

    def write_mark(self, server_uuid: str, mark: str, disk: str = "root") -> None:
        """Write a mark to a guest's disk, as a program inside it would: the mark moves with the disk's data."""
        with self.changed(server_uuid) as guest:
            if disk not in guest.disks:
                raise errors.guest.NoDisks(uuid=server_uuid, names="all")
            guest.marks = {**guest.marks, disk: mark}

    def names_of(self, subject: Subject) -> tuple[str, ...]:
        """Return the server's name, if it is known."""
        if isinstance(subject, str):
            guest = self.store.find(subject) or self.source_copies.find(subject)
            return (guest.name,) if guest is not None and guest.name else ()
        build = build_of(subject)
        return (build.name,) if build is not None else self.names_of(subject.server_uuid)


class Part:
    """Base class of the driver's parts."""

    def __init__(self, hypervisor: FakeHypervisor) -> None:
        self._hypervisor = hypervisor


F = TypeVar("F", bound=Callable[..., object])


def knobbed(function: F) -> F:
    """Decorate a call of a part: it is recorded, and fails, waits or dies as the knobs define. Its first argument names
    a guest."""
    call = function.__name__

    @functools.wraps(function)
    def wrapper(self: Part, subject: Subject, *args: object) -> object:
        hypervisor = self._hypervisor
        server_uuid = subject if isinstance(subject, str) else subject.server_uuid
        names = (server_uuid, *hypervisor.names_of(subject))
        hypervisor.calls.append((call, server_uuid))
        hypervisor.knobs.apply(call, "before", names)
        result = function(self, subject, *args)
        hypervisor.knobs.apply(call, "after", names)
        return result
    return cast(F, wrapper)


def disk_name(disk: Disk) -> str:
    """Return ``root``, ``swap`` or ``ephemeral``, followed by the disk's index if that is not 0."""
    return f"{disk.kind}{disk.index or ''}"


class Change:
    """Context manager to change one guest's record: created if missing, saved (or removed, if empty) at the end."""

    def __init__(self, store: Store, subject: BuildOrder | str) -> None:
        self._store, self._subject = store, subject

    def __enter__(self) -> FakeGuest:
        self._store.lock.acquire()
        if isinstance(self._subject, str):
            self._guest = self._store.find(self._subject) or FakeGuest(uuid=self._subject)
        else:
            order = self._subject
            self._guest = self._store.find(order.server_uuid) or FakeGuest(
                uuid=order.server_uuid, name=order.name, instance_name=order.instance_name, node=order.node)
            self._guest.order = persistent_part(order)
        return self._guest

    def __exit__(self, *_: object) -> None:
        try:
            self._store.keep(self._guest)
        finally:
            self._store.lock.release()


def file_name(text: str) -> str:
    """Return ``text`` as a valid part of a file name."""
    return re.sub(r"[^A-Za-z0-9-]", "_", text)
