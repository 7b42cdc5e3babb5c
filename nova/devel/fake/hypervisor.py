"""What all parts of the fake driver stand on: a hypervisor that is none, with its guests' records and its knobs."""

from __future__ import annotations

import functools
import re
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from nova import concurrency, errors
from nova.conf.base import Options
from nova.devel.fake.knobs import Knobs
from nova.devel.fake.store import FakeGuest, Store
from nova.model.base import Library
from nova.model.guest.orders import BuildOrder, Disk, GuestState, boots_from_volume, kept_part
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeDisk
from nova.virt.interface import PowerListener

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})
UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})


class FakeHypervisor:
    """``options`` is the group ``[fake]``; with ``state_path`` guests live on in files and knobs are read from one."""

    def __init__(self, options: Options, host: str, state_path: Path | None = None) -> None:
        self.options, self.host = options, host
        self.knobs = Knobs(state_path)
        keep = state_path / "fake" if state_path is not None and options.keep_state else None
        self.room = keep  # where its files are; None: there are none yet
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._making_room = threading.Lock()
        self.store = Store(keep / "guests" if keep else None)
        self.source_copies = Store(keep / "aside" if keep else None)
        self.listener: PowerListener | None = None
        self.calls: deque[tuple[str, str]] = deque(maxlen=10_000)  # (call, uuid), the newest last

    def folder(self, name: str) -> Path:
        """A directory for files of this host's; without kept state one that goes with the process."""
        with self._making_room:
            if self.room is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="nova-fake-")
                self.room = Path(self._temporary.name)
        made = self.room / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    # --- its guests

    def changed(self, subject: BuildOrder | str) -> Change:
        """A block in which the guest's record may be changed: of an order, or of a uuid alone. Others wait until it
        ends; the record is kept then, after an error, too."""
        return Change(self.store, subject)

    def defined(self, server_uuid: str) -> FakeGuest:
        """guest.NotDefined."""
        guest = self.store.find(server_uuid)
        if guest is None or not guest.defined:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return guest

    def define(self, order: BuildOrder) -> PowerState:
        """guest.NoDisks; host.VolumeNotConnected."""
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
        """host.VolumeNotConnected."""
        if disk.device.volume_id not in guest.connected:
            raise errors.host.VolumeNotConnected(volume=disk.device.volume_id, uuid=guest.uuid)

    def power_state(self, server_uuid: str) -> PowerState | None:
        guest = self.store.find(server_uuid)
        return PowerState(guest.power_state) if guest is not None and guest.defined else None

    def take_time(self) -> None:
        """As much as a boot shall, or what else a client may want to see under way."""
        if self.options.boot_delay:
            concurrency.sleep(self.options.boot_delay)

    def boot(self, guest: FakeGuest) -> None:
        """Change the record to that of a guest that has just started, and write a boot's lines to its console. The
        caller keeps the record, and tells the listener."""
        guest.power_state, guest.saved = PowerState.RUNNING, False
        guest.boots += 1
        guest.say(f"[    0.000000] fake kernel: {guest.instance_name}, {guest.vcpus} vcpus, {guest.memory_mb} MB")
        guest.say("[    0.000001] fake init: nothing to start")
        guest.say(f"{guest.name} login:")

    def boot_of(self, guest: FakeGuest) -> str:
        """What its consoles' ports go with."""
        return f"{self.host} {guest.boots}"

    def change_power(self, server_uuid: str, state: PowerState, said: str = "went down by itself") -> PowerState:
        """What a guest does by itself: change its power state and let the listener know."""
        self.defined(server_uuid)
        with self.changed(server_uuid) as guest:
            guest.power_state = state
            guest.say(f"{guest.name}: {said}")
        return self.notify(server_uuid, state)

    def notify(self, server_uuid: str, state: PowerState) -> PowerState:
        """Let the listener know; ``state``."""
        if self.listener is not None:
            self.listener(GuestState(server_uuid=server_uuid, power_state=state))
        return state

    # --- for tests and knobs

    def inspect(self, server_uuid: str) -> FakeGuest | None:
        """All there is of a guest; None when nothing is left of it."""
        return self.store.find(server_uuid)

    def inspect_source_copy(self, server_uuid: str) -> FakeGuest | None:
        """The same of its source copy."""
        return self.source_copies.find(server_uuid)

    def write_mark(self, server_uuid: str, mark: str, disk: str = "root") -> None:
        """Write to a guest's disk, as a program inside it would: where the disk's data goes, the mark goes."""
        with self.changed(server_uuid) as guest:
            if disk not in guest.disks:
                raise errors.guest.NoDisks(uuid=server_uuid, names="all")
            guest.marks = {**guest.marks, disk: mark}

    def names_of(self, subject: Library) -> tuple[str, ...]:
        """The server's name, where it is known."""
        if isinstance(subject, str):
            guest = self.store.find(subject) or self.source_copies.find(subject)
            return (guest.name,) if guest is not None and guest.name else ()
        build = subject if isinstance(subject, BuildOrder) else getattr(subject, "build", None)
        return (build.name,) if build is not None else self.names_of(subject.server_uuid)


class Part:
    """Base of the driver's parts."""

    def __init__(self, hypervisor: FakeHypervisor) -> None:
        self._hypervisor = hypervisor


F = TypeVar("F", bound=Callable[..., Any])


def knobbed(function: F) -> F:
    """A call of a part: recorded, and failing, waiting or dying as the knobs say. Its first argument names a guest."""
    call = function.__name__

    @functools.wraps(function)
    def wrapper(self: Part, subject: Library, *args: Library) -> Library:
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
    """``root``, ``swap``, ``ephemeral``; a number follows where the disk's index is not 0."""
    return f"{disk.kind}{disk.index or ''}"


class Change:
    """One guest's record while it is changed: made when it isn't there, kept (or dropped, when empty) at the end."""

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
            self._guest.order = kept_part(order)
        return self._guest

    def __exit__(self, *_: object) -> None:
        try:
            self._store.keep(self._guest)
        finally:
            self._store.lock.release()


def file_name(text: str) -> str:
    """``text`` as the part of a file's name that it may be."""
    return re.sub(r"[^A-Za-z0-9-]", "_", text)
