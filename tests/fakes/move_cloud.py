"""The failing cloud for moves: how each is begun, and what must be true when it has ended."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from nova import context
from nova.db import flavors
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.model.flavors import NewFlavor
from nova.model.server_orders import EvacuateServer, LiveMigrateServer, MigrateServer, ResizeServer
from nova.model.services import ServiceUpdate
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO

BIG = NewFlavor(name="big", flavorid="2", memory_mb=128, vcpus=2, root_gb=2)
#: Moves, by their actions; the ends of a resize come after it.
MOVES = ("resize", "migrate", "confirmResize", "revertResize", "live-migration", "evacuate")


LONG_AGO = datetime.datetime(2000, 1, 1)


class MoveCloud(FailingCloud):
    """Three hosts, flavors 1 and (larger) 2."""

    def __init__(self, folder: Path, templates: Path) -> None:
        super().__init__(folder, templates)
        self.api.transact(lambda tx: flavors.insert(tx, BIG))

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
        """A server that the move can begin with, on host1 (or RESIZED, on host2)."""
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
        """Its last heartbeat was long ago."""
        table = cell_tables.services
        self.cell.transact(lambda tx: tx.execute(sa.update(table).where(
            table.c.host == host, table.c.binary == "nova-compute").values(last_seen_at=LONG_AGO)))

    def moves(self, uuid: str) -> list[Any]:
        table = cell_tables.migrations
        return self.rows("cell", sa.select(table).where(table.c.server_uuid == uuid).order_by(table.c.id))

    def ends(self, uuid: str) -> dict[str, list[str]]:
        """Hosts of what the server holds ("own"), and of what its moves hold ("moves")."""
        held, given = api_tables.allocations, api_tables.providers
        query = sa.select(given.c.host, held.c.consumer, held.c.moving).join_from(
            held, given, given.c.id == held.c.provider_id).distinct()
        rows = [row for row in self.rows("api", query) if uuid in (row.consumer, row.moving)]
        return {"own": sorted(row.host for row in rows if row.consumer == uuid),
                "moves": sorted(row.host for row in rows if row.consumer != uuid)}

    def counted(self, uuid: str) -> tuple[int, int]:
        """(cores, MB) that quota counts."""
        table = api_tables.ledger
        row = self.rows("api", sa.select(table).where(table.c.server_uuid == uuid))[0]
        return row.vcpus, row.memory_mb

    def taken(self, uuid: str) -> dict[str, int]:
        """Host -> vcpus that are held there for the server, by itself or by its moves."""
        held, given = api_tables.allocations, api_tables.providers
        query = sa.select(given.c.host, held.c.used, held.c.consumer, held.c.moving).join_from(
            held, given, given.c.id == held.c.provider_id).where(held.c.resource_class == "VCPU")
        found: dict[str, int] = {}
        for row in self.rows("api", query):
            if uuid in (row.consumer, row.moving):
                found[row.host] = found.get(row.host, 0) + row.used
        return found

    def whole(self, uuid: str, host: str) -> None:
        """The server's guest is on this host and nothing of it elsewhere; claims are what hosts have; no debts."""
        row = self.server(uuid)
        assert row.host == host and row.node == host, row.host
        held = self.held()
        assert held["guests"] == [(host, uuid)], held
        assert "moving" not in held and "debts" not in held, held
        assert self.ends(uuid) == {"own": [host], "moves": []}, self.ends(uuid)
        assert self.taken(uuid) == {host: row.flavor.vcpus}
        assert self.counted(uuid) == (row.flavor.vcpus, row.flavor.memory_mb)
        assert self.guests()[host, uuid].flavor.flavorid == row.flavorid
