"""The fake driver: the whole driver interface, fast and without a hypervisor, with fault injection.

``hypervisor.py`` has the code that its parts share.
"""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path

from nova import concurrency
from nova.conf._options import Options
from nova.conf.fake import FakeOptions
from nova.devel.fake.arrivals import Arrivals
from nova.devel.fake.consoles import FakeRemoteConsoles
from nova.devel.fake.disks import FakeDisks, FakeSnapshots
from nova.devel.fake.facts import FakeGuestFacts, FakeHost
from nova.devel.fake.hypervisor import FakeHypervisor
from nova.devel.fake.life import FakeAgent, FakePausing, FakeRescuing
from nova.devel.fake.lifecycle import FakeLifecycle
from nova.devel.fake.live import FakeLiveMoves
from nova.devel.fake.moves import FakeColdMoves
from nova.devel.fake.plugging import FakeHotPlug, FakeInterfaces
from nova.devel.fake.store import FakeGuest
from nova.devel.fake.topology import parse
from nova.devel.fake.volumes import FakeVolumes
from nova.model.guest.orders import GuestState
from nova.model.host.hosts import Node
from nova.model.server.states import PowerState
from nova.virt import interface
from nova.virt.pci.providers import children

NODES = uuid.UUID("6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11")  # namespace of the nodes' uuids, which never change
WATCH_S = 1.0  # interval of reading the knobs file for spontaneous power changes
SUPPORTED = tuple((architecture, kind, "hvm") for architecture in ("x86_64", "i686", "aarch64")
                  for kind in ("fake", "kvm", "qemu"))
CPU_INFO = {"arch": "x86_64", "model": "fake", "vendor": "fake", "features": [],
            "maxphysaddr": {"mode": "emulate", "bits": 48},
            "topology": {"cells": 1, "sockets": 1, "cores": 1, "threads": 1}}


def from_conf(conf: Options, host: str) -> FakeDriver:
    """Return the driver configured by ``nova.conf``."""
    return FakeDriver(conf.fake, host, Path(conf.state_path))


class FakeDriver(interface.Driver):
    """Fake driver. ``options`` is the group ``[fake]``; with ``state_path``, guests are stored in files and knobs are
    read from one."""

    needs_images = False

    def __init__(self, options: FakeOptions, host: str, state_path: Path | None = None) -> None:
        self.hypervisor = FakeHypervisor(options, host, state_path)
        self.knobs, self.calls = self.hypervisor.knobs, self.hypervisor.calls
        self._options, self._host, self._watched = options, host, state_path is not None
        self._made = parse(options.topology) if options.topology else None
        self._closed = threading.Event()
        self._arrivals = Arrivals(self.hypervisor)
        self._compose(self.hypervisor, self._arrivals)

    def _compose(self, hypervisor: FakeHypervisor, arrivals: Arrivals) -> None:
        self.disks = FakeDisks(hypervisor)
        self.interfaces = FakeInterfaces(hypervisor)
        self.lifecycle = FakeLifecycle(hypervisor, arrivals)
        self.pausing = self.suspending = self.held_starts = FakePausing(hypervisor)
        self.hot_plug = FakeHotPlug(hypervisor)
        self.rescuing = FakeRescuing(hypervisor)
        self.agent = self.crash_dumps = FakeAgent(hypervisor)
        self.snapshots = FakeSnapshots(hypervisor)
        self.cold_moves = FakeColdMoves(hypervisor)
        self.volumes = volumes = FakeVolumes(hypervisor)
        self.live_moves = FakeLiveMoves(hypervisor, arrivals, volumes)
        self.consoles = self.diagnosis = self.device_places = FakeGuestFacts(hypervisor)
        self.packed = self.kept_orders = FakeGuestFacts(hypervisor)
        self.remote_consoles = FakeRemoteConsoles(hypervisor)
        self.host_uptime = self.host_power = FakeHost()

    def connect(self) -> None:
        self.hypervisor.store.load()
        self.hypervisor.source_copies.load()
        if self._watched:
            concurrency.spawn(self._watch, name="fake-knobs")

    def check_alive(self) -> None:
        """Do nothing: a simulated hypervisor always answers."""

    def close(self) -> None:
        self._closed.set()

    def nodes(self) -> tuple[Node, ...]:
        guests = self.hypervisor.store.all()
        return tuple(self._node(name, [guest for guest in guests if guest.node in (name, "")])
                     for name in self._node_names())

    def guests(self) -> tuple[GuestState, ...]:
        for guest in self.hypervisor.store.all():
            self._arrivals.absorb(guest.uuid)
        return tuple(GuestState(server_uuid=guest.uuid, power_state=PowerState(guest.power_state))
                     for guest in self.hypervisor.store.all())

    def on_power_change(self, listener: interface.PowerListener) -> None:
        self.hypervisor.listener = listener

    # --- within

    def _watch(self) -> None:
        """Change guests' power states by the knobs file until the driver is closed."""
        while not self._closed.wait(WATCH_S):
            for rule in self.knobs.power_changes():
                for guest in self.hypervisor.store.all():
                    if guest.defined and rule.matches("*", rule.when, (guest.uuid, guest.name)):
                        self.hypervisor.change_power(guest.uuid, PowerState(rule.power_state))

    def _node_names(self) -> tuple[str, ...]:
        count = self._options.nodes
        return (self._host,) if count == 1 else tuple(f"{self._host}-{number}" for number in range(1, count + 1))

    def _node(self, name: str, guests: list[FakeGuest]) -> Node:
        options, made = self._options, self._made
        disk_used = sum(guest.disk_gb for guest in guests)
        own_uuid = str(uuid.uuid5(NODES, name))
        topology = made.topology if made else None
        return Node(
            name=name, uuid=own_uuid, hypervisor_type="fake", hypervisor_version=1000, topology=topology,
            inventories=made.inventories if made else (),
            children=children(name, own_uuid, made.topology.devices) if made and options.devices_in_placement else (),
            traits=made.traits if made else (),
            vcpus=made.vcpus if made else options.vcpus,
            memory_mb=made.memory_mb if made else options.memory_mb, local_gb=options.local_gb,
            memory_mb_used=sum(guest.memory_mb for guest in guests), local_gb_used=disk_used,
            disk_available_least_gb=options.local_gb - disk_used, cpu_info=json.dumps(CPU_INFO), supported=SUPPORTED)
