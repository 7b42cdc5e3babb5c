"""Compute hosts of the conductor's tests: ComputeRPC over dictionaries; orders end immediately, or as a test sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from nova import context, errors
from nova.model.guest.consoles import ConsoleAddress
from nova.model.guest.guests import DevicePlace
from nova.model.guest.orders import (
    BuildOrder,
    ConsoleOutput,
    DiskSnapshot,
    GuestArrival,
    GuestOnSource,
    NetworkEvent,
    Outcome,
)
from nova.model.host.aggregates import CachedImage
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.states import PowerState
from nova.rpc.contracts.compute import ComputeRPC
from tests.fakes.contract import ContractFake

Answer = Callable[[str, Any], Outcome]

#: Call -> kind of its orders: usually the first word of its name; for volumes, ``attach_volume`` etc.
KINDS = {name: name[:-1] if name.endswith("_volumes") else {"set": "password"}.get(
    word := name.partition("_")[0], word)
         for name, method in ComputeRPC.methods.items() if "orders" in method.arguments.__struct_fields__}
#: Kinds that MovingGuests handles.
MOVES = ("leave", "fetch", "finish", "return", "forget", "describe", "prepare", "migrate", "land")
#: Kind of order -> reported power state, if it is not RUNNING; some orders report none.
POWER_AFTER = {"pause": PowerState.PAUSED, "suspend": PowerState.SUSPENDED, "password": PowerState.NOSTATE,
               "crash": PowerState.NOSTATE}


class FakeCompute(ContractFake, contract=ComputeRPC):
    """One host. ``answers``: kind of order -> its handler (returns an Outcome, or raises). ``before``: kind ->
    function called before a call's orders."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host
        self.guests: dict[str, BuildOrder] = {}
        self.moving = MovingGuests(host, self.guests)
        self.answers: dict[str, Answer] = {}
        self.before: dict[str, Callable[[Sequence[Any]], None]] = {}
        self.ports: dict[str, int] = {}
        self.snapshots: set[tuple[str, str]] = set()  # (server, image)
        self.ceph: set[str] | None = None  # images of snapshots in Ceph; None: they are files
        self.swapped: dict[tuple[str, str], str] = {}  # (server, volume) -> the volume that replaced it
        self.files: dict[tuple[str, str], list[str]] = {}  # (server, volume) -> overlay files on its first one
        self.plugged: dict[str, list[str]] = {}  # server -> ids of hot-plugged interfaces
        self.on_upload: Callable[[str], None] = lambda image_id: None
        self.on_find: Callable[[], None] | None = None  # called before each answer about a console's address
        self.given(get_console_output=ConsoleOutput(text=""), get_host_uptime="up 1 day", ping=host,
                   change_host_power=lambda host, action: action, volume_connector={"host": host, "ip": "192.0.2.7"},
                   **{call: self._doer(kind) for call, kind in KINDS.items()})

    # -- received calls

    @property
    def orders(self) -> list[tuple[str, Any]]:
        """Return all received orders as (kind, order)."""
        return [(KINDS[call.name], order) for call in [*self.calls] if call.name in KINDS
                for order in call.arguments["orders"]]

    @property
    def contexts(self) -> list[context.RequestContext]:
        """Return the contexts of the calls with orders."""
        return [call.context for call in self.calls if call.name in KINDS]

    @property
    def events(self) -> list[NetworkEvent]:
        return [event for _host, events in self.asked("network_events") for event in events]

    @property
    def cached(self) -> list[str]:
        """Return the ids of images that the host was asked to cache."""
        return [image.id for _host, images, _tickets in self.asked("cache_images") for image in images]

    def built(self) -> list[BuildOrder]:
        return [order for kind, order in self.orders if kind == "build"]

    # -- answers

    def find_console(self, host: str, server_uuid: str, type: Any) -> ConsoleAddress:
        if self.on_find:
            self.on_find()
        self._guest(server_uuid)
        return ConsoleAddress(access_url_base="http://a.host.says/", host=self.host,
                              port=self.ports.setdefault(server_uuid, 5900 + len(self.ports)))

    def device_places(self, host: str, server_uuid: str) -> Mapping[str, DevicePlace]:
        return {one.mac: DevicePlace(bus="pci", address="0000:00:03.0")
                for one in self._guest(server_uuid).interfaces}

    def get_diagnostics(self, host: str, server_uuid: str) -> Diagnostics:
        self._guest(server_uuid)
        return Diagnostics(power_state=PowerState.RUNNING, driver="libvirt", memory_max_mb=64)

    def cache_images(self, host: str, images: Any, tickets: Any = ()) -> tuple[CachedImage, ...]:
        return tuple(CachedImage(image_id=image.id, state="cached") for image in images)

    def _guest(self, server_uuid: str) -> BuildOrder:
        if server_uuid not in self.guests:
            raise errors.NotFound("no such guest")
        return self.guests[server_uuid]

    # -- orders

    def _doer(self, kind: str) -> Callable[..., tuple[Outcome, ...]]:
        def do(host: str, orders: Sequence[Any]) -> tuple[Outcome, ...]:
            if kind in self.before:
                self.before[kind](orders)
            return tuple(self._one(kind, order) for order in orders)
        return do

    def _one(self, kind: str, order: Any) -> Outcome:
        outcome = self.answers[kind](kind, order) if kind in self.answers else self._done(kind, order)
        if kind in ("attach", "detach") and outcome.ok:
            others = [one for one in self.plugged.get(order.server_uuid, []) if one != order.interface.id]
            self.plugged[order.server_uuid] = [*others, *([order.interface.id] if kind == "attach" else [])]
        return outcome

    def _done(self, kind: str, order: Any) -> Outcome:
        if kind == "build":
            self.guests[order.server_uuid] = order
        if kind in ("rebuild", "attach", "detach", "attach_volume", "detach_volume"):
            self.guests[order.server_uuid] = order.build
        if kind in MOVES:
            return self.moving.one(kind, order)
        if kind == "destroy":
            self.moving.destroy(order)
            self.guests.pop(order.server_uuid, None)
            self.snapshots = {one for one in self.snapshots if one[0] != order.server_uuid}
        if kind in ("snapshot", "upload", "drop"):
            return self._snapshot(kind, order)
        if kind in ("swap_volume", "unswap_volume"):
            return self._swap(kind, order)
        if kind in ("snapshot_volume", "merge"):
            self._change_files(kind, order)
        off = kind in ("stop", "destroy") or (kind == "rebuild" and not order.start)
        power = PowerState.SHUTDOWN if off else POWER_AFTER.get(kind, PowerState.RUNNING)
        return Outcome(server_uuid=order.server_uuid, power_state=power)

    def _change_files(self, kind: str, order: Any) -> None:
        key = (order.server_uuid, order.device.volume_id)
        files = [one for one in self.files.get(key, []) if one not in (order.new_file, order.file_to_merge)]
        self.files[key] = [order.new_file, *files] if kind == "snapshot_volume" else files

    def _swap(self, kind: str, order: Any) -> Outcome:
        key = (order.server_uuid, order.disk.device.volume_id)
        if kind == "swap_volume":
            self.swapped[key] = order.successor.device.volume_id
        elif self.swapped.get(key) == order.successor.device.volume_id:
            return refused(errors.guest.HasSuccessor(uuid=key[0], volume=key[1]))(kind, order)
        return Outcome(server_uuid=order.server_uuid, power_state=PowerState.RUNNING)

    def _snapshot(self, kind: str, order: Any) -> Outcome:
        key = (order.server_uuid, order.image_id)
        if kind == "snapshot":
            self.snapshots.add(key)
            kept = DiskSnapshot(format="qcow2", size_bytes=1 << 20, virtual_size_bytes=1 << 30)
            if self.ceph is not None:
                self.ceph.add(order.image_id)
                kept = msgspec.structs.replace(kept, format="raw", in_ceph=True)
            return Outcome(server_uuid=order.server_uuid, snapshot=kept)
        if kind == "upload" and key in self.snapshots:
            self.on_upload(order.image_id)
        if kind == "drop" and not order.given and self.ceph is not None:
            self.ceph.discard(order.image_id)
        self.snapshots.discard(key)
        return Outcome(server_uuid=order.server_uuid)


def refused(error: errors.NovaError) -> Answer:
    """Return the handler of a host that reports this error."""
    return lambda _kind, order: Outcome(server_uuid=order.server_uuid, ok=False, error_kind=error.kind,
                                        error_code=error.code, error_message=error.message)


def silent(_kind: str, _order: Any) -> Outcome:
    """Handle an order as a host that does not answer."""
    raise errors.Unavailable("host did not answer")


class MovingGuests:
    """One host's part in moves: source copies, fetched disks and prepared hosts, in addition to ``guests`` (the guests
    of this host). ``peers``: all hosts by name."""

    def __init__(self, host: str, guests: dict[str, BuildOrder]) -> None:
        self.host, self.guests = host, guests
        self.peers: dict[str, Any] = {}
        self.kept_sources: dict[str, BuildOrder] = {}  # source copies
        self.fetched: set[str] = set()  # disks of an incoming guest
        self.ready: set[str] = set()  # prepared for an incoming live migration
        self.left: set[str] = set()  # disks left by an outgoing live migration
        self.kept_disks: list[bool] = []  # of each destroy
        self.shared = False
        self.starts: list[bool] = []

    def things(self) -> list[tuple[str, str, str]]:
        """Return (host, server, kind) of all resources on the host, except guests."""
        found = {"aside": self.kept_sources, "fetched": self.fetched, "ready": self.ready, "left": self.left}
        return [(self.host, uuid, what) for what, uuids in found.items() for uuid in uuids]

    def destroy(self, order: Any) -> None:
        self.kept_disks.append(order.keep_disks)
        self.kept_sources.pop(order.server_uuid, None)
        for those in (self.fetched, self.ready, self.left):
            those.discard(order.server_uuid)

    def one(self, kind: str, order: Any) -> Outcome:
        act: Callable[[Any], dict[str, Any]] = getattr(self, f"_{kind}")
        try:
            return Outcome(**{"server_uuid": order.server_uuid, "power_state": PowerState.RUNNING, **act(order)})
        except errors.NovaError as error:
            return Outcome(server_uuid=order.server_uuid, ok=False, error_kind=error.kind, error_code=error.code,
                           error_message=error.message)

    def _leave(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid in self.guests:
            self.kept_sources[uuid] = self.guests.pop(uuid)
        if uuid not in self.kept_sources:
            raise errors.NotFound("there is no such guest")
        return {"source": GuestOnSource(host=self.host, port=1), "power_state": PowerState.SHUTDOWN}

    def _fetch(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        source = self if order.source is None else self.peers[order.source.host].moving
        if uuid not in source.kept_sources and uuid not in self.guests:
            raise errors.HostRefused("there is nothing to fetch")
        assert source is self or order.source.host != self.host
        self.fetched.add(uuid)
        return {"power_state": PowerState.SHUTDOWN}

    def _finish(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid not in self.fetched and uuid not in self.guests:
            raise errors.NotFound("its disks are not here")
        self.fetched.discard(uuid)
        self.guests[uuid] = order.build
        self.starts.append(order.start)
        return {"power_state": PowerState.RUNNING if order.start else PowerState.SHUTDOWN}

    def _return(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid in self.kept_sources:
            self.kept_sources.pop(uuid)
            self.fetched.discard(uuid)
            self.guests[uuid] = order.build
        self.starts.append(order.start)
        return {"power_state": PowerState.RUNNING if order.start else PowerState.SHUTDOWN}

    def _forget(self, order: Any) -> dict[str, Any]:
        self.kept_sources.pop(order.server_uuid, None)
        return {}

    def _describe(self, order: Any) -> dict[str, Any]:
        if order.server_uuid not in self.guests:
            raise errors.NotFound("there is no such guest")
        return {"source": GuestOnSource(host=self.host, cpu="<cpu/>")}

    def _prepare(self, order: Any) -> dict[str, Any]:
        self.ready.add(order.server_uuid)
        return {"arrival": GuestArrival(uri=self.host, shared=self.shared)}

    def _migrate(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        destination = self.peers[order.arrival.uri]
        if uuid in self.guests:
            if uuid not in destination.moving.ready:
                raise errors.Conflict("the destination is not ready")
            destination.moving.ready.discard(uuid)
            destination.guests[uuid] = self.guests.pop(uuid)
            self.left.add(uuid)
        return {}

    def _land(self, order: Any) -> dict[str, Any]:
        if order.server_uuid not in self.guests:
            raise errors.NotFound("it is not here")
        self.guests[order.server_uuid] = order.build
        return {}
