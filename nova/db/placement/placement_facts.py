"""Data on other servers that the scheduler needs to place one, each in one statement for any number of servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import aggregate_metadata
from nova.db.models.cell import servers
from nova.model.host.aggregates import TENANT
from nova.model.image.images import Image
from nova.model.server.states import TaskState as T

#: Task states in which the server's host reads and writes whole disks.
COSTLY = tuple(task.value for task in (
    T.BLOCK_DEVICE_MAPPING, T.NETWORKING, T.SPAWNING,
    T.IMAGE_SNAPSHOT_PENDING, T.IMAGE_SNAPSHOT, T.IMAGE_PENDING_UPLOAD, T.IMAGE_UPLOADING, T.IMAGE_BACKUP,
    T.REBUILDING, T.REBUILD_BLOCK_DEVICE_MAPPING, T.REBUILD_SPAWNING,
    T.MIGRATING, T.RESIZE_PREP, T.RESIZE_MIGRATING, T.RESIZE_MIGRATED, T.RESIZE_FINISH, T.RESIZE_REVERTING,
    T.RESCUING, T.UNRESCUING,
    T.SHELVING, T.SHELVING_IMAGE_PENDING_UPLOAD, T.SHELVING_IMAGE_UPLOADING, T.SHELVING_OFFLOADING, T.UNSHELVING))

#: Uses only ``ix_servers_tasks``, which has all its columns: as many rows are read as tasks are in progress.
_BUSY = (sa.select(servers.c.host, sa.func.count().label("count"))
         .where(servers.c.deleted == 0, servers.c.task_state.in_(COSTLY), servers.c.host.is_not(None))
         .group_by(servers.c.host))
_HOSTS = sa.select(servers.c.uuid, servers.c.host).where(
    servers.c.uuid.in_(sa.bindparam("uuids", expanding=True)), servers.c.deleted == 0, servers.c.host.is_not(None))
_IMAGES = (sa.select(servers.c.host, servers.c.image_id, sa.func.count().label("count"),
                     sa.func.max(servers.c.id).label("newest"))
           .where(servers.c.deleted == 0, servers.c.host.is_not(None), servers.c.image_id != "")
           .group_by(servers.c.host, servers.c.image_id))
_PROPERTIES = sa.select(servers.c.image_id, servers.c.image).where(
    servers.c.id.in_(sa.bindparam("ids", expanding=True)))


def busy(tx: Connection) -> dict[str, int]:
    """Return host -> number of its servers with a task that causes heavy I/O."""
    return dict(tx.execute(_BUSY).tuples().all())


def hosts_of(tx: Connection, uuids: Iterable[str]) -> dict[str, str]:
    """Return server -> host for live servers; servers without a host are omitted."""
    return {row.uuid: row.host for row in tx.execute(_HOSTS, {"uuids": sorted(set(uuids))})}


def image_matches(tx: Connection, properties: Mapping[str, str], counts: Mapping[str, float]) -> dict[str, float]:
    """Return host -> the sum of the weights of image properties that its servers' images share with these. ``counts``:
    weight of each property; empty: 1 for all. Two statements, the first over all servers. Servers with the same image
    are assumed to have the properties of the newest one."""
    wanted = {name: counts.get(name, 1.0) for name, value in properties.items() if not counts or name in counts}
    if not any(wanted.values()):
        return {}
    groups = tx.execute(_IMAGES).all()
    newest: dict[str, int] = {}
    for row in groups:
        newest[row.image_id] = max(row.newest, newest.get(row.image_id, 0))
    shared = {image_id: _shared(image, properties, wanted) for image_id, image in _images(tx, list(newest.values()))}
    found: dict[str, float] = {}
    for host, image_id, count, _ in groups:
        if value := shared.get(image_id, 0.0):
            found[host] = found.get(host, 0.0) + value * count
    return found


BATCH = 500  # ids in one statement


def _images(tx: Connection, ids: list[int]) -> list[sa.Row[str, Image | None]]:
    return [row for start in range(0, len(ids), BATCH)
            for row in tx.execute(_PROPERTIES, {"ids": ids[start:start + BATCH]})]


def _shared(image: Image | None, properties: Mapping[str, str], wanted: Mapping[str, float]) -> float:
    theirs = image.properties if image is not None else {}
    return sum(value for name, value in wanted.items() if theirs.get(name) == properties[name])


_NAMED = sa.select(aggregate_metadata.c.value).where(aggregate_metadata.c.key.startswith(TENANT, autoescape=True))


def has_aggregates(tx: Connection, project_id: str) -> bool:
    """Return whether any aggregate, with or without hosts, is reserved for the project."""
    return any(project_id in (part.strip() for part in value.split(",")) for value in tx.scalars(_NAMED))


__all__ = ["COSTLY", "busy", "has_aggregates", "hosts_of", "image_matches"]
