"""Database rows with sensible defaults."""

from __future__ import annotations

import datetime
import uuid as uuids
from typing import Any

import sqlalchemy as sa

from nova.db.host import reports
from nova.db.models import api, cell
from nova.db.network import networks
from nova.db.quota import ledger
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Database
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import Inventory, Node
from nova.model.network import addressing
from nova.model.network.networks import FixedAddress, Interface, NewNetwork
from nova.model.scheduling.decisions import Resources

SMALL = Resources(vcpus=1, memory_mb=512, disk_gb=1)
BORN = datetime.datetime(2026, 1, 1)


def new_uuid() -> str:
    return str(uuids.uuid4())


def server_row(**fields: Any) -> dict[str, Any]:
    return {"uuid": new_uuid(), "project_id": "demo", "user_id": "joe", "name": "vm", "created_at": BORN,
            "vm_state": "active", "flavorid": "1",
            "flavor": Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1), **fields}


def server_value(**fields: Any) -> ServerRow:
    """Return a server's complete row in the form that is read."""
    unset = {column.name: column.default.arg if column.default is not None else None for column in cell.servers.c}
    return ServerRow(**{**unset, "id": 1, "epoch": 1, **server_row(**fields)})


def add_servers(database: Database, *rows: dict[str, Any]) -> list[str]:
    """Insert servers and return their uuids."""
    if rows:
        database.transact(lambda tx: [tx.execute(sa.insert(cell.servers).values(**row)) for row in rows])
    return [row["uuid"] for row in rows]


def add_provider(database: Database, host: str = "host1", vcpus: int = 4, **fields: Any) -> int:
    """Add a host with this number of vcpus and an allocation ratio of 1, and return its provider's key."""
    node = Node(name=host, uuid=new_uuid(), hypervisor_type="fake", **{
        "vcpus": vcpus, "memory_mb": 65536, "local_gb": 1000, "cpu_allocation_ratio": 1.0, **fields})
    inventory = Inventory(host=host, host_id=new_uuid(), nodes=(node,), version=1)
    database.transact(lambda tx: reports.write_providers(tx, inventory))
    with database.reading() as tx:
        return int(tx.execute(sa.select(api.providers.c.id).where(api.providers.c.uuid == node.uuid)).scalar_one())


def add_ledger(database: Database, count: int = 1, **fields: Any) -> list[str]:
    """Add open ledger rows of future servers, and return their uuids."""
    found = [new_uuid() for _ in range(count)]
    database.transact(lambda tx: ledger.open_rows(tx, [{
        "server_uuid": one, "project_id": "demo", "user_id": "joe", "vcpus": 1, "memory_mb": 512, **fields}
        for one in found]))
    return found


def add_network(database: Database, cidr: str = "10.0.0.0/28", **fields: Any) -> str:
    """Add a network and return its uuid."""
    plan = addressing.plan(NewNetwork(label="private", cidr=cidr, bridge="br100", **fields), (), addressing.Defaults())
    database.transact(lambda tx: networks.insert(tx, plan.networks))
    return plan.networks[0].network.uuid


def plugged(*addresses: str) -> tuple[Interface, ...]:
    """Return an interface with these fixed addresses; its other addresses are different."""
    return tuple(Interface(id="v", mac="fa:16:3e:00:00:01", network_id="n", label="private", gateway="10.0.0.254",
                           addresses=(FixedAddress(address=one, version=6 if ":" in one else 4),),
                           floating_addresses=(FixedAddress(address="192.0.2.7"),)) for one in addresses)
