"""The fake driver: the whole driver interface, quick and without a hypervisor, with failure knobs."""

from __future__ import annotations

import datetime
import functools
import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nova import concurrency, errors
from nova.model.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.hosts import Node
from nova.model.orders import BuildOrder, GuestState
from nova.model.states import PowerState
from nova.virt.fake.knobs import Knobs
from nova.virt.fake.store import FakeGuest, Store
from nova.virt.interface import LocalImages, PowerListener

NODES = uuid.UUID("6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11")  # namespace of the nodes' uuids: the same at every start
WATCH_S = 1.0  # how often the knobs' file is looked at for guests that change by themselves
SUPPORTED = tuple((architecture, kind, "hvm") for architecture in ("x86_64", "i686", "aarch64")
                  for kind in ("fake", "kvm", "qemu"))
CPU_INFO = {"arch": "x86_64", "model": "fake", "vendor": "fake", "features": [],
            "topology": {"cells": 1, "sockets": 1, "cores": 1, "threads": 1}}


class NoGuest(errors.NotFound):
    code, message = "guest.not_defined", "There is no guest {uuid} on this host."


class NoHostAction(errors.NotSupported):
    code, message = "host.no_such_action", "A fake host can not do {action}."


#: action on the host -> what it is then, and the word for it
HOST_WORDS = {"startup": ("on", "startup"), "shutdown": ("off", "shutdown"), "reboot": ("on", "reboot"),
              "maintenance_on": ("maintenance", "on_maintenance"), "maintenance_off": ("on", "off_maintenance")}


class NoDisks(errors.Conflict):
    code, message = "guest.no_disks", "The disks of guest {uuid} are not there."


def knobbed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A driver call: recorded, and failing, waiting or dying as the knobs say. Its first argument names a guest."""
    call = function.__name__

    @functools.wraps(function)
    def wrapper(self: FakeDriver, subject: BuildOrder | str, *args: Any) -> Any:
        server_uuid = subject if isinstance(subject, str) else subject.server_uuid
        names = (server_uuid, *self.names_of(subject))
        self.calls.append((call, server_uuid))
        self.knobs.apply(call, "before", names)
        result = function(self, subject, *args)
        self.knobs.apply(call, "after", names)
        return result
    return wrapper


class FakeDriver:
    """``options`` is the group ``[fake]``; with ``state_path`` guests live on in files and knobs are read from one."""

    needs_images = False

    def __init__(self, options: Any, host: str, state_path: Path | None = None) -> None:
        self._options, self._host = options, host
        self.knobs = Knobs(state_path)
        keep = state_path if options.keep_state else None
        self._store = Store(keep / "fake" / "guests" if keep else None)
        self._watched = state_path is not None
        self._listener: PowerListener | None = None
        self._closed = threading.Event()
        self._started = time.monotonic()
        self.host_power = "on"  # on, off, or maintenance
        self.calls: deque[tuple[str, str]] = deque(maxlen=10_000)  # (call, uuid), the newest last

    # --- the driver itself

    def connect(self) -> None:
        self._store.load()
        if self._watched:
            concurrency.spawn(self._watch, name="fake-knobs")

    def close(self) -> None:
        self._closed.set()

    def nodes(self) -> tuple[Node, ...]:
        guests = self._store.all()
        return tuple(self._node(name, [guest for guest in guests if guest.node in (name, "")])
                     for name in self._node_names())

    def guests(self) -> tuple[GuestState, ...]:
        return tuple(GuestState(server_uuid=guest.uuid, power_state=PowerState(guest.power_state))
                     for guest in self._store.all())

    def on_power_change(self, listener: PowerListener) -> None:
        self._listener = listener

    # --- guests made and unmade

    @knobbed
    def create_disks(self, order: BuildOrder, images: LocalImages | None) -> None:
        with self._changed(order) as guest:
            guest.disks = [f"{disk.kind}{disk.index or ''}" for disk in order.disks] or ["root"]
            guest.disk_gb = sum(disk.size_gb for disk in order.disks)

    @knobbed
    def remove_disks(self, server_uuid: str) -> None:
        with self._changed(server_uuid) as guest:
            guest.disks, guest.config_drive, guest.disk_gb = [], {}, 0

    @knobbed
    def plug(self, order: BuildOrder) -> None:
        with self._changed(order) as guest:
            guest.taps = [interface.device or f"tap{interface.id[:11]}" for interface in order.interfaces]
            guest.macs = [interface.mac for interface in order.interfaces]

    @knobbed
    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        with self._changed(server_uuid) as guest:
            guest.taps = guest.macs = []

    @knobbed
    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        with self._changed(order) as guest:
            guest.config_drive = dict(files)
            guest.disks = [*(disk for disk in guest.disks if disk != "config"), "config"]

    @knobbed
    def start_new(self, order: BuildOrder) -> PowerState:
        found = self._store.find(order.server_uuid)
        if found is None or not found.disks:
            raise NoDisks(uuid=order.server_uuid)
        if self._options.boot_delay:
            concurrency.sleep(self._options.boot_delay)
        with self._changed(order) as guest:
            guest.defined, guest.instance_name = True, order.instance_name
            guest.node = order.node or guest.node
            guest.vcpus, guest.memory_mb = order.flavor.vcpus, order.flavor.memory_mb
            self._boot(guest)
        return self._told(order.server_uuid, PowerState.RUNNING)

    @knobbed
    def destroy(self, server_uuid: str) -> None:
        found = self._store.find(server_uuid)
        ran = found is not None and found.power_state == PowerState.RUNNING
        with self._changed(server_uuid) as guest:
            guest.defined, guest.power_state = False, PowerState.NOSTATE
            guest.vcpus = guest.memory_mb = 0
        if ran:
            self._told(server_uuid, PowerState.SHUTDOWN)

    # --- guests started and stopped

    @knobbed
    def start(self, server_uuid: str) -> PowerState:
        if self._defined(server_uuid).power_state == PowerState.RUNNING:
            return PowerState.RUNNING
        if self._options.boot_delay:
            concurrency.sleep(self._options.boot_delay)
        with self._changed(server_uuid) as guest:
            self._boot(guest)
        return self._told(server_uuid, PowerState.RUNNING)

    @knobbed
    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        if self._defined(server_uuid).power_state == PowerState.SHUTDOWN:
            return PowerState.SHUTDOWN
        return self.change_power(server_uuid, PowerState.SHUTDOWN, "halted" if timeout_s else "powered off")

    @knobbed
    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        if self._defined(server_uuid).power_state != PowerState.RUNNING:
            return False
        with self._changed(server_uuid) as guest:
            self._boot(guest)
        return True

    def power_state(self, server_uuid: str) -> PowerState | None:
        guest = self._store.find(server_uuid)
        return PowerState(guest.power_state) if guest is not None and guest.defined else None

    def change_power(self, server_uuid: str, state: PowerState, said: str = "went down by itself") -> PowerState:
        """What a guest does by itself: change its power state and let the listener know."""
        self._defined(server_uuid)
        with self._changed(server_uuid) as guest:
            guest.power_state = state
            guest.say(f"{guest.name}: {said}")
        return self._told(server_uuid, state)

    # --- consoles and uptime

    @knobbed
    def console_output(self, server_uuid: str, lines: int | None) -> str:
        console = self._defined(server_uuid).console
        wanted = console if lines is None else console[-lines:] if lines > 0 else []
        return "".join(f"{line}\n" for line in wanted)

    @knobbed
    def diagnostics(self, server_uuid: str) -> Diagnostics:
        """Of a guest that does nothing. It says libvirt, which it stands in for: the API knows only real drivers."""
        guest = self._defined(server_uuid)
        nothing = {"read_bytes": 0, "read_requests": 0, "write_bytes": 0, "write_requests": 0, "errors": 0}
        idle = dict.fromkeys((f"{way}_{what}" for way in ("rx", "tx")
                              for what in ("octets", "packets", "errors", "drop", "rate")), 0)
        return Diagnostics(
            power_state=PowerState(guest.power_state), driver="libvirt", hypervisor="fake", hypervisor_os="fake",
            cpus=tuple(CpuUse(id=number, time_ns=0, utilisation=0) for number in range(guest.vcpus)),
            nics=tuple(NicUse(device=tap, mac=mac, **idle) for tap, mac in zip(guest.taps, guest.macs, strict=True)),
            disks=tuple(DiskUse(device=f"vd{chr(ord('a') + number)}", **nothing)
                        for number, disk in enumerate(disk for disk in guest.disks if disk != "config")),
            memory_max_mb=guest.memory_mb, memory_used_mb=0)

    def uptime(self) -> str:
        up = int(time.monotonic() - self._started)
        now = datetime.datetime.now()
        return f" {now:%H:%M:%S} up {up // 3600:2}:{up // 60 % 60:02},  0 users,  load average: 0.00, 0.00, 0.00"

    # --- the host itself, which is none: it only remembers

    def change_host_power(self, action: str) -> str:
        if action not in HOST_WORDS:
            raise NoHostAction(action=action)
        self.host_power, told = HOST_WORDS[action]
        return told

    # --- for tests and knobs

    def inspect(self, server_uuid: str) -> FakeGuest | None:
        """All there is of a guest; None when nothing is left of it."""
        return self._store.find(server_uuid)

    def names_of(self, subject: BuildOrder | str) -> tuple[str, ...]:
        """The server's name, where it is known."""
        if isinstance(subject, BuildOrder):
            return (subject.name,)
        guest = self._store.find(subject)
        return (guest.name,) if guest is not None and guest.name else ()

    # --- within

    def _changed(self, subject: BuildOrder | str) -> _Change:
        return _Change(self._store, subject)

    def _defined(self, server_uuid: str) -> FakeGuest:
        guest = self._store.find(server_uuid)
        if guest is None or not guest.defined:
            raise NoGuest(uuid=server_uuid)
        return guest

    def _boot(self, guest: FakeGuest) -> None:
        guest.power_state = PowerState.RUNNING
        guest.say(f"[    0.000000] fake kernel: {guest.instance_name}, {guest.vcpus} vcpus, {guest.memory_mb} MB")
        guest.say("[    0.000001] fake init: nothing to start")
        guest.say(f"{guest.name} login:")

    def _told(self, server_uuid: str, state: PowerState) -> PowerState:
        if self._listener is not None:
            self._listener(GuestState(server_uuid=server_uuid, power_state=state))
        return state

    def _watch(self) -> None:
        """Let guests change by themselves as the knobs' file says, until the driver is closed."""
        while not self._closed.wait(WATCH_S):
            for rule in self.knobs.power_changes():
                for guest in self._store.all():
                    if guest.defined and rule.matches("*", rule.when, (guest.uuid, guest.name)):
                        self.change_power(guest.uuid, PowerState(rule.power_state))

    def _node_names(self) -> tuple[str, ...]:
        count = self._options.nodes
        return (self._host,) if count == 1 else tuple(f"{self._host}-{number}" for number in range(1, count + 1))

    def _node(self, name: str, guests: list[FakeGuest]) -> Node:
        options = self._options
        disk_used = sum(guest.disk_gb for guest in guests)
        return Node(
            name=name, uuid=str(uuid.uuid5(NODES, name)), hypervisor_type="fake", hypervisor_version=1000,
            vcpus=options.vcpus, memory_mb=options.memory_mb, local_gb=options.local_gb,
            memory_mb_used=sum(guest.memory_mb for guest in guests), local_gb_used=disk_used,
            disk_available_least_gb=options.local_gb - disk_used, cpu_info=json.dumps(CPU_INFO), supported=SUPPORTED)


class _Change:
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
        return self._guest

    def __exit__(self, *_: object) -> None:
        try:
            self._store.keep(self._guest)
        finally:
            self._store.lock.release()
