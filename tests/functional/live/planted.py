"""Rows that no call of today's API can bring about: put into the databases as a later workflow or a guest would."""

from __future__ import annotations

import datetime
import uuid
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from nova.db.models import cell
from nova.db.sql.engine import Database
from nova.model.flavor.flavors import Flavor
from nova.model.server.migrations import MigrationProgress
from tests.functional.live.caller import MEMBER, PROJECT

if TYPE_CHECKING:
    from tests.functional.live.world import World

LONG_AGO = datetime.datetime(2016, 1, 29, 11, 42, 2)
SECOND = datetime.timedelta(seconds=1)
LATER = datetime.datetime(2036, 1, 1)
PROGRESS = MigrationProgress(memory_total_bytes=123456, memory_processed_bytes=12345, memory_remaining_bytes=111111,
                             disk_total_bytes=234567, disk_processed_bytes=23456, disk_remaining_bytes=211111)


def write(world: World, *statements: Any) -> list[Any]:
    """Run statements in the cell's database; the key each one inserted, where it did."""
    database = Database(world.cloud.database_urls["database"], 1)
    try:
        return database.transact(lambda tx: [_key(tx.execute(statement)) for statement in statements])
    finally:
        database.dispose()


def _key(result: Any) -> Any:
    return result.inserted_primary_key[0] if result.is_insert else None


def service(world: World, host: str, version: int) -> str:
    """The id (a number, from 2.53 a uuid) of a compute service that was once seen."""
    its_uuid = str(uuid.uuid4())
    key = write(world, sa.insert(cell.services).values(
        uuid=its_uuid, host=host, binary="nova-compute", topic="compute", created_at=LONG_AGO,
        last_seen_at=LONG_AGO, host_id=""))[0]
    return its_uuid if version >= 53 else str(key)


def password(world: World, server: str, text: str) -> None:
    """What a Windows guest posts through the metadata service: its password, encrypted with the server's keypair."""
    write(world, sa.update(cell.servers).where(cell.servers.c.uuid == server).values(guest_password=text))


def migrations(world: World, server: str) -> None:
    """A live migration that failed and two resizes that failed, a second after each other, long ago; and a resize that
    is newer than all there will be."""
    flavor = Flavor(id=1, flavorid="1", name="m1.tiny", memory_mb=512, vcpus=1, root_gb=1)

    def row(at: datetime.datetime, kind: str) -> Any:
        return sa.insert(cell.migrations).values(
            uuid=str(uuid.uuid4()), server_uuid=server, type=kind, status="error", user_id=MEMBER, project_id=PROJECT,
            source_compute="compute1", source_node="node1", dest_compute="compute2", dest_node="node2",
            dest_host="1.2.3.4", old_flavor=flavor, new_flavor=flavor,
            created_at=at, updated_at=at)
    kinds = ("live-migration", "resize", "resize")
    write(world, *(row(LONG_AGO + number * SECOND, kind) for number, kind in enumerate(kinds)), row(LATER, "resize"))


def audits(world: World) -> None:
    """The audit of usage is done on host1, and was never begun on host2, for the month before this one."""
    this = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, day=1, hour=0, minute=0, second=0, microsecond=0)
    before = (this - datetime.timedelta(days=1)).replace(day=1)
    write(world, sa.insert(cell.usage_audits).values(
        host="host1", period_beginning=before, period_ending=this, state="DONE", servers=1, errors=1,
        message="Instance usage audit ran for host host1, 1 instances in 0.01 seconds."))


def soft_deleted(world: World, server: str) -> None:
    """A server that is deleted and can be restored."""
    write(world, sa.update(cell.servers).where(cell.servers.c.uuid == server).values(vm_state="soft-delete"))


def progress(world: World, server: str) -> None:
    """What the host of a larger guest reports of a live migration that is half done."""
    write(world, sa.update(cell.migrations).where(cell.migrations.c.server_uuid == server,
                                                  cell.migrations.c.status == "running").values(progress=PROGRESS))
