"""Database rows of deleted servers, in the form that the code writes, many at a time."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from nova.db.models import api, cell
from nova.db.sql.engine import Database
from nova.db.sql.statements import insert_all
from nova.model.guest.consoles import ConsoleAddress
from nova.model.server.actions import ActionEvent
from tests.fakes.rows import BORN, new_uuid, server_row

Rows = dict[sa.Table, list[dict[str, Any]]]
OLD = datetime.datetime(2020, 1, 1)
LIFE = ("create", "stop", "start", "delete")


def operation(server_uuid: str, action: str = "reboot", finished_at: datetime.datetime | None = OLD, **fields: Any
              ) -> dict[str, Any]:
    """Return a row of the journal; it is open without ``finished_at``."""
    event = ActionEvent(event="compute_reboot_instance", started_at=BORN, finished_at=BORN, result="Success")
    return {"server_uuid": server_uuid, "action": action, "epoch": 1, "runner_id": 1, "step": "", "arguments": {},
            "data": {"host": "host1"}, "history": (event,), "request_id": f"req-{new_uuid()}", "user_id": "joe",
            "project_id": "demo", "started_at": OLD, "updated_at": OLD, "finished_at": finished_at,
            "outcome": "success" if finished_at else None, **fields}


def move(server_uuid: str, **fields: Any) -> dict[str, Any]:
    """Return the row of a finished migration."""
    return {"uuid": new_uuid(), "server_uuid": server_uuid, "type": "live-migration", "status": "completed",
            "source_compute": "host1", "dest_compute": "host2", "created_at": OLD, "updated_at": OLD, **fields}


def deleted_servers(count: int, at: datetime.datetime = OLD) -> tuple[Rows, Rows]:
    """Return all remaining rows (cell, api) of servers that were deleted at this time. ``deleted`` in their rows is not
    their key, as in rows of the code, but has the same effect."""
    uuids = [new_uuid() for _ in range(count)]
    left: Rows = {cell.servers: [server_row(
        uuid=uuid, name=f"vm-{uuid[:8]}", project_id=f"p{number % 20}", vm_state="deleted", deleted=number + 1,
        created_at=at, updated_at=at, terminated_at=at, deleted_at=at, host=f"host{number % 10}")
        for number, uuid in enumerate(uuids)]}
    left[cell.operations] = [operation(uuid, action, at, updated_at=at) for uuid in uuids for action in LIFE]
    left[cell.migrations] = [move(uuid, created_at=at, updated_at=at) for uuid in uuids]
    left[cell.server_metadata] = [{"server_uuid": uuid, "key": key, "value": "x" * 20}
                                  for uuid in uuids for key in ("role", "owner")]
    left[cell.server_tags] = [{"server_uuid": uuid, "tag": "web"} for uuid in uuids]
    left[cell.security_group_members] = [{"group_id": 1, "server_uuid": uuid} for uuid in uuids]
    address = ConsoleAddress(access_url_base="", host="10.0.0.1", port=5900)
    left[cell.console_tokens] = [{
        "token_hash": new_uuid(), "console_type": "novnc", "server_uuid": uuid, "host": "host1", "epoch": 1,
        "user_id": "joe", "address": address, "expires_at": 1, "created_at": at} for uuid in uuids]
    ledger = [{"server_uuid": uuid, "project_id": f"p{number % 20}", "user_id": "joe", "vcpus": 1, "memory_mb": 512,
               "closed": True, "created_at": at, "closed_at": at} for number, uuid in enumerate(uuids)]
    named = [{"kind": "instance", "external_id": uuid, "created_at": at} for uuid in uuids]
    return left, {api.ledger: ledger, api.ec2_ids: named}


def write(database: Database, rows: Mapping[sa.Table, Sequence[Mapping[str, object]]]) -> None:
    """Write rows in one transaction."""
    database.transact(lambda tx: [insert_all(tx, table, some) for table, some in rows.items()])


def counts(database: Database, tables: Sequence[sa.Table]) -> dict[str, int]:
    """Return the number of rows of each table."""
    with database.reading() as tx:
        return {table.name: int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
                for table in tables}
