"""The small cloud for tests of failures and moves: resources that servers hold, replaceable runners, the start of each
move, and the invariants at its end."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from nova import context
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.registry import ALL
from nova.db.models import api as api_tables
from nova.db.models import cell
from nova.model.flavor.flavors import NewFlavor
from nova.model.guest.orders import BuildOrder
from nova.model.host.services import ServiceUpdate
from nova.model.server.server_orders import EvacuateServer, LiveMigrateServer, MigrateServer, ResizeServer
from tests.fakes.compute_hosts import KINDS
from tests.fakes.small_cloud import DEMO, NOVA_NETWORK, TINY, Networks, SmallCloud, until

HOSTS = ("host1", "host2", "host3")
BIG = NewFlavor(name="big", flavorid="2", memory_mb=128, vcpus=2, root_gb=2)
#: Moves, by their actions; a resize precedes its confirm and revert.
MOVES = ("resize", "migrate", "confirmResize", "revertResize", "live-migration", "evacuate")
SETTLED_S = 10.0
LONG_AGO = datetime.datetime(2000, 1, 1)


class FailingCloud(SmallCloud):
    """Three hosts, flavors 1 and (larger) 2."""

    flavors = (TINY, BIG)

    def __init__(self, folder: Path, templates: Path, networks: Networks = NOVA_NETWORK) -> None:
        super().__init__(folder, templates, HOSTS, networks)

    # -- failures

    def runner(self, journal: type[Journal] = Journal, **more: Any) -> Runner:
        """Replace the conductor's runner by a new runner process."""
        self.deps.journal = journal(self.cell, "runner", **more)
        self.deps.journal.open()
        self.deps.runner = Runner(self.deps, ALL, again_s=0.001)
        return self.deps.runner

    def on_order(self, before: Callable[[str, str], None]) -> None:
        """Call ``before(kind, host)`` before each order to any host; it may raise."""
        for host, compute in self.computes.items():
            compute.before = {kind: lambda _orders, kind=kind, host=host: before(kind, host) for kind in KINDS.values()}

    def settle(self, uuid: str, seconds: float = SETTLED_S) -> Any:
        """Wait until the server's operations have ended and the runner is idle; return its row."""
        end = time.monotonic() + seconds
        while self.deps.runner.running or self.open(uuid):
            assert time.monotonic() < end, f"still open: {self.journal(uuid)[-1]}"
            time.sleep(0.005)
        return self.server(uuid)

    def idle(self) -> None:
        """Wait until the runner has ended or parked all its operations."""
        until(lambda: not self.deps.runner.running, "the runner is idle")

    def guests(self) -> dict[tuple[str, str], BuildOrder]:
        return {(host, uuid): order for host, compute in self.computes.items() for uuid, order in
                compute.guests.items()}

    def held(self) -> dict[str, list[Any]]:
        """Return all resources that servers hold; empty if there are none."""
        reported = {one.network.uuid: one.addresses for one in self.network.served}  # the newest of each network
        found = {
            "guests": sorted(self.guests()), "allocations": sorted(self.claims()),
            "addresses": sorted(self.addresses()),
            "interfaces": [row.server_uuid for row in self.rows("cell", sa.select(cell.vifs.c.server_uuid))],
            "debts": [(debt.host, debt.server_uuid) for debt in self.debts()],
            "told": [one.server_uuid for addresses in reported.values() for one in addresses],
            "moving": sorted(thing for compute in self.computes.values() for thing in compute.moving.things()),
            "snapshots": sorted(key for compute in self.computes.values() for key in compute.snapshots)}
        if self.networks.neutron:
            found["ports"] = sorted((port["binding:host_id"], port["device_id"])
                                    for port in self.neutron.ports.values() if port["device_id"])
        return {what: left for what, left in found.items() if left}

    def expire_leases(self) -> None:
        """Expire the leases of all runners."""
        self.write("cell", sa.update(cell.runners).values(lease_until=sa.text("'2000-01-01 00:00:00'")))

    # -- moves

    def settings(self, **changes: Any) -> None:
        self.deps.settings = dataclasses.replace(self.deps.settings, **changes)

    def begin(self, uuid: str, action: str, **fields: Any) -> None:
        calls = {"resize": lambda: self.control.resize_server(ResizeServer(uuid=uuid, flavor_id="2", **fields)),
                 "migrate": lambda: self.control.migrate_server(MigrateServer(uuid=uuid, **fields)),
                 "live-migration": lambda: self.control.live_migrate_server(LiveMigrateServer(uuid=uuid, **fields)),
                 "evacuate": lambda: self.control.evacuate_server(EvacuateServer(uuid=uuid, **fields))}
        with context.entered(DEMO):
            if action in calls:
                calls[action]()
            else:
                self.order(uuid, action)

    def ready(self, action: str) -> str:
        """Create a server for the move, on host1 (or RESIZED, on host2)."""
        [uuid] = self.active()
        if action in ("confirmResize", "revertResize"):
            self.begin(uuid, "resize")
            assert self.settle(uuid).vm_state == "resized", self.journal(uuid)[-1].fault
        if action == "evacuate":
            self.down(self.server(uuid).host)
        return uuid

    def down(self, host: str, forced_down: bool = True) -> None:
        self.control.update_service(ServiceUpdate(host=host, binary="nova-compute", forced_down=forced_down))

    def fall_silent(self, host: str) -> None:
        """Set a host's last heartbeat to a time long ago."""
        table = cell.services
        self.cell.transact(lambda tx: tx.execute(sa.update(table).where(
            table.c.host == host, table.c.binary == "nova-compute").values(last_seen_at=LONG_AGO)))

    def moves(self, uuid: str) -> list[Any]:
        table = cell.migrations
        return self.rows("cell", sa.select(table).where(table.c.server_uuid == uuid).order_by(table.c.id))

    def ends(self, uuid: str) -> dict[str, list[str]]:
        """Return the hosts of the server's allocations ("own") and of its moves' allocations ("moves")."""
        held, given = api_tables.allocations, api_tables.providers
        query = sa.select(given.c.host, held.c.consumer, held.c.moving).join_from(
            held, given, given.c.id == held.c.provider_id).distinct()
        rows = [row for row in self.rows("api", query) if uuid in (row.consumer, row.moving)]
        return {"own": sorted(row.host for row in rows if row.consumer == uuid),
                "moves": sorted(row.host for row in rows if row.consumer != uuid)}

    def counted(self, uuid: str) -> tuple[int, int]:
        """Return the cores and MB that quota counts."""
        table = api_tables.ledger
        row = self.rows("api", sa.select(table).where(table.c.server_uuid == uuid))[0]
        return row.vcpus, row.memory_mb

    def taken(self, uuid: str) -> dict[str, int]:
        """Return the vcpus that are allocated to the server or its moves: host -> number."""
        held, given = api_tables.allocations, api_tables.providers
        query = sa.select(given.c.host, held.c.used, held.c.consumer, held.c.moving).join_from(
            held, given, given.c.id == held.c.provider_id).where(held.c.resource_class == "VCPU")
        found: dict[str, int] = {}
        for row in self.rows("api", query):
            if uuid in (row.consumer, row.moving):
                found[row.host] = found.get(row.host, 0) + row.used
        return found

    def whole(self, uuid: str, host: str) -> None:
        """Check that the guest is only on this host, claims match the hosts, and no cleanup is pending."""
        row = self.server(uuid)
        assert row.host == host and row.node == host, row.host
        held = self.held()
        assert held["guests"] == [(host, uuid)], held
        assert "moving" not in held and "debts" not in held, held
        assert self.ends(uuid) == {"own": [host], "moves": []}, self.ends(uuid)
        assert self.taken(uuid) == {host: row.flavor.vcpus}
        assert self.counted(uuid) == (row.flavor.vcpus, row.flavor.memory_mb)
        assert self.guests()[host, uuid].flavor.flavorid == row.flavorid
        if self.networks.neutron:
            self.bound(uuid, host)
            assert len(self.neutron.of(uuid)) == 1

    def bound(self, uuid: str, host: str) -> None:
        """Check that the server's ports are bound to this host only, and that its row has the same ports."""
        row, ports = self.server(uuid), self.neutron.of(uuid)
        assert [one.id for one in row.interfaces] == [port["id"] for port in ports]
        for port in ports:
            assert self.neutron.hosts_of(port["id"]) == {host: "ACTIVE"}, self.neutron.hosts_of(port["id"])
            assert port["binding:host_id"] == host
