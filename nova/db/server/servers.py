"""Server rows: inserted at admission, read completely, and updated (except for states) on request."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.host.services import COMPUTE
from nova.db.models.cell import (
    console_tokens,
    guest_facts,
    migrations,
    operations,
    security_group_members,
    server_metadata,
    server_tags,
    servers,
    services,
    volume_holders,
)
from nova.db.server.server_row import ServerRow
from nova.db.sql.row_text import TextRows
from nova.db.sql.statements import delete_keys, insert_all
from nova.db.sql.types import AnyRow, Columns, later, utc_now
from nova.model.base import Scope, Time
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.model.server.server_parts import ServerPassword
from nova.model.server.servers import STOP, AttachedVolume, Fault, ServerDetail, ServerMemo, ServerTarget
from nova.model.server.states import PowerState, TaskState, VmState
from nova.model.volumes import BlockDevice

_HOSTS = [services.c.disabled, services.c.forced_down, services.c.last_seen_at, utc_now()]


class DetailRow(NamedTuple):
    """A row of :func:`details`: the columns of that name, and the state of the host's nova-compute (None: none)."""

    uuid: str
    id: int
    name: str
    project_id: str
    user_id: str
    created_at: Time
    updated_at: Time | None
    launched_at: Time | None
    terminated_at: Time | None
    progress: int
    reservation_id: str
    launch_index: int
    host: str | None
    node: str | None
    pinned_availability_zone: str | None
    flavor: Flavor
    image_id: str
    kernel_id: str
    ramdisk_id: str
    hostname: str | None
    root_device_name: str | None
    user_data: str | None
    key_name: str | None
    access_ip_v4: str | None
    access_ip_v6: str | None
    config_drive: bool
    disk_config: str
    locked_by: str | None
    locked_reason: str | None
    description: str | None
    fault: Fault | None
    deleted: int
    vm_state: str
    task_state: str | None
    power_state: int
    image: Image | None
    interfaces: tuple[Interface, ...] | None
    security_groups: tuple[str, ...] | None
    trusted_certs: tuple[str, ...] | None
    scheduler_hints: Mapping[str, Any] | None
    availability_zone: str | None
    volumes: tuple[BlockDevice, ...] | None
    memo: ServerMemo | None
    instance_name: str | None
    host_disabled: bool | None
    host_forced_down: bool | None
    host_seen_at: Time | None
    clock: Time


#: Columns that are fields of ServerDetail unchanged; :func:`detail` derives the others.
_PLAIN = DetailRow._fields[:DetailRow._fields.index("deleted")]
_OF_SERVER = DetailRow._fields[:DetailRow._fields.index("host_disabled")]
DETAILS = TextRows(DetailRow, [*[servers.c[name] for name in _OF_SERVER], *_HOSTS])


@functools.cache
def details() -> sa.Select[str]:
    """Select complete servers with the columns of their host's state, as the text of DETAILS, in one statement: a page
    takes three at most. The construction of its fifty columns takes longer than that of all conditions."""
    of_host = sa.and_(services.c.host == servers.c.host, services.c.binary == COMPUTE, services.c.deleted == 0)
    return sa.select(DETAILS.text).join_from(servers, services, of_host, isouter=True)


#: Statements that are built once; ``uuids`` and similar parameters are bound at execution.
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
SERVER_ROWS = TextRows(ServerRow, [servers.c[name] for name in ServerRow.__struct_fields__])
_ROWS = sa.select(SERVER_ROWS.text).where(servers.c.uuid.in_(_UUIDS))
_LIVE_ROWS = _ROWS.where(servers.c.deleted == 0)
_EPOCHS = sa.select(servers.c.uuid, servers.c.epoch).where(servers.c.uuid.in_(_UUIDS), servers.c.deleted == 0)


def rows_of(tx: Connection, uuids: Sequence[str], with_deleted: bool = False) -> dict[str, ServerRow]:
    """Return complete rows by UUID, for workflows."""
    found = tx.execute(_ROWS if with_deleted else _LIVE_ROWS, {"uuids": list(uuids)})
    return {row.uuid: row for row in SERVER_ROWS.of(found)}


class _One(NamedTuple):
    """The shape of a single-server statement: the columns read, and the restrictions."""

    what: str
    of_project: bool
    of_user: bool
    with_deleted: bool


_TARGET = ("uuid", "project_id", "user_id", "host", "node", "locked_by", "key_name", "availability_zone")


@functools.cache
def _one(shape: _One) -> sa.Select[*tuple[object, ...]]:
    columns: dict[str, Callable[[], sa.Select[*tuple[object, ...]]]] = {
        "details": details,
        "target": lambda: sa.select(*[servers.c[name] for name in _TARGET], servers.c.vm_state,
                                    servers.c.task_state, servers.c.power_state, servers.c.launched_at),
        "password": lambda: sa.select(servers.c.project_id, servers.c.user_id, servers.c.guest_password)}
    query = columns[shape.what]().where(servers.c.uuid == sa.bindparam("wanted", type_=servers.c.uuid.type))
    if shape.of_project:
        query = query.where(servers.c.project_id == sa.bindparam("of_project"))
    if shape.of_user:
        query = query.where(servers.c.user_id == sa.bindparam("of_user"))
    return query.where(servers.c.archived_at.is_(None) if shape.with_deleted else servers.c.deleted == 0)


def _read(tx: Connection, what: str, uuid: str, scope: Scope, with_deleted: bool = False) -> AnyRow:
    """Read one server. Raises server.NotFound if it is outside the scope."""
    bound = {"wanted": uuid, "of_project": scope.project_id, "of_user": scope.user_id}
    bound = {name: value for name, value in bound.items() if value is not None}
    row = tx.execute(_one(_One(what, "of_project" in bound, "of_user" in bound, with_deleted)), bound).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return row


def detail_row(tx: Connection, uuid: str, scope: Scope, with_deleted: bool) -> DetailRow:
    """Return one row of :func:`details`. Raises server.NotFound if it is outside the scope."""
    return DETAILS.value(_read(tx, "details", uuid, scope, with_deleted)[0])


def epochs(tx: Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Return the newest epoch of each live server, in one indexed read."""
    return {row.uuid: row.epoch for row in tx.execute(_EPOCHS, {"uuids": list(uuids)})}


def on_host(tx: Connection, host: str) -> list[ServerRow]:
    """Return complete rows of the live servers on a host."""
    chosen = sa.select(SERVER_ROWS.text).where(servers.c.host == host, servers.c.deleted == 0)
    return SERVER_ROWS.of(tx.execute(chosen))


def target(tx: Connection, uuid: str, scope: Scope, with_deleted: bool = False) -> ServerTarget:
    """Return the fields of a server that actions check. Raises server.NotFound if it is outside the scope."""
    row = _read(tx, "target", uuid, scope, with_deleted)
    return ServerTarget(**{name: getattr(row, name) for name in _TARGET}, vm_state=VmState(row.vm_state),
                        task_state=TaskState(row.task_state) if row.task_state else None,
                        power_state=PowerState(row.power_state), locked=row.locked_by is not None,
                        launched=row.launched_at is not None)


def password(tx: Connection, uuid: str, scope: Scope) -> ServerPassword:
    """Return the password that the guest posted, with the server's owner. Raises server.NotFound if it is outside the
    scope."""
    row = _read(tx, "password", uuid, scope)
    return ServerPassword(project_id=row.project_id, user_id=row.user_id, password=row.guest_password or "")


class PlacedServer(NamedTuple):
    """A live server and its host."""

    uuid: str
    host: str | None


def places(tx: Connection, uuids: Iterable[str]) -> dict[str, PlacedServer]:
    """Return the places of live servers by UUID."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.host).where(servers.c.uuid.in_(list(uuids)),
                                                                     servers.c.deleted == 0))
    return {row.uuid: row for row in map(PlacedServer._make, rows)}


def within(query: sa.Select[*Columns], scope: Scope) -> sa.Select[*Columns]:
    """Restrict the query to rows that the scope may see."""
    if scope.project_id is not None:
        query = query.where(servers.c.project_id == scope.project_id)
    if scope.user_id is not None:
        query = query.where(servers.c.user_id == scope.user_id)
    return query


def _children(of: Callable[[sa.Column[str]], sa.ColumnElement[bool]]
              ) -> sa.CompoundSelect[*tuple[str, str, str | None]]:
    return sa.union_all(
        sa.select(server_metadata.c.server_uuid, server_metadata.c.key, server_metadata.c.value)
        .where(of(server_metadata.c.server_uuid)),
        sa.select(server_tags.c.server_uuid, server_tags.c.tag, sa.null()).where(of(server_tags.c.server_uuid)))


#: For one server, a statement without IN: its text is ready, while an expanded list is compiled at each execution.
_CHILDREN = _children(lambda column: column.in_(_UUIDS))
_CHILDREN_OF_ONE = _children(lambda column: column == sa.bindparam("wanted", type_=servers.c.uuid.type))


def children(tx: Connection, uuids: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Return the metadata and tags of many servers, in one statement."""
    if not uuids:
        return {}, {}
    metadata: dict[str, dict[str, str]] = {}
    tags: dict[str, list[str]] = {}
    found = (tx.execute(_CHILDREN_OF_ONE, {"wanted": uuids[0]}) if len(uuids) == 1
             else tx.execute(_CHILDREN, {"uuids": list(uuids)}))
    for uuid, key, value in found:
        if value is None:
            tags.setdefault(uuid, []).append(key)
        else:
            metadata.setdefault(uuid, {})[key] = value
    return metadata, tags


def detail(row: DetailRow, children: tuple[Mapping[str, str], Sequence[str]], template: str, host_status: str
           ) -> ServerDetail:
    """Return the value of a row of :func:`details` with its metadata and tags."""
    metadata, tags = children
    plain: dict[str, Any] = dict(zip(_PLAIN, row, strict=False))  # the first fields
    image, memo = row.image, row.memo
    return ServerDetail(
        **plain, deleted=row.deleted != 0, vm_state=VmState(row.vm_state),
        task_state=TaskState(row.task_state) if row.task_state else None,
        power_state=PowerState(row.power_state), image_properties=image.properties if image else {},
        interfaces=row.interfaces or (), security_groups=row.security_groups or (),
        trusted_certs=row.trusted_certs, scheduler_hints=row.scheduler_hints or {},
        availability_zone=row.availability_zone, locked=row.locked_by is not None,
        metadata=metadata, tags=tuple(sorted(tags)), volumes=tuple(
            AttachedVolume(id=one.volume_id, delete_on_termination=one.delete_on_termination, device=one.device_name,
                           is_root=one.boot_index == 0)
            for one in row.volumes or () if one.attachment_id),
        client_token=memo.client_token if memo else None,
        shutdown_behavior=memo.shutdown_behavior or STOP if memo else STOP,
        instance_name=instance_name(template, row), host_status=host_status)


class NamedRow(Protocol):
    """The columns of a server that its guest's name is made of."""

    @property
    def id(self) -> int:
        """The key in the cell's database."""

    @property
    def uuid(self) -> str:
        """The server's UUID."""

    @property
    def instance_name(self) -> str | None:
        """The name that the guest brought from another cell."""


def instance_name(template: str, row: NamedRow) -> str:
    """Return the guest's name on the hypervisor: its name from another cell, or ``instance_name_template`` filled with
    the key (or ``%(uuid)s``)."""
    if row.instance_name:
        return row.instance_name
    return template % {"uuid": row.uuid} if "%(" in template else template % row.id


def update(tx: Connection, uuid: str, changes: Mapping[str, object]) -> None:
    """Update columns other than the states. Raises server.NotFound."""
    changed = tx.execute(sa.update(servers).where(servers.c.uuid == uuid, servers.c.deleted == 0)
                         .values(**changes, updated_at=utc_now())).rowcount
    if not changed:
        raise errors.server.NotFound(server=uuid)


def change_metadata(tx: Connection, uuid: str, items: Mapping[str, str], gone: Sequence[str]) -> None:
    """Set the metadata ``items`` and remove the keys ``gone``."""
    out = [*gone, *items]
    if out:
        tx.execute(sa.delete(server_metadata).where(server_metadata.c.server_uuid == uuid,
                                                    server_metadata.c.key.in_(out)))
    insert_all(tx, server_metadata, [{"server_uuid": uuid, "key": key, "value": value}
                                     for key, value in items.items()])


class LockedServer(NamedTuple):
    """The columns of a server under its lock that decide whether a change is allowed."""

    vm_state: str
    task_state: str | None
    locked_by: str | None
    epoch: int


def lock_row(tx: Connection, uuid: str) -> LockedServer:
    """Lock and return the server's row; the first statement of any change to its metadata or tags. Raises
    server.NotFound."""
    row = tx.execute(sa.select(*[servers.c[name] for name in LockedServer._fields])
                     .where(servers.c.uuid == uuid, servers.c.deleted == 0).with_for_update()).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return LockedServer._make(row)


class KeptImage(NamedTuple):
    """The image properties stored in a server's record."""

    uuid: str
    host: str | None
    properties: Mapping[str, str]


def properties_of_images(tx: Connection) -> Iterator[KeptImage]:
    """Yield the image properties of every live server, in one statement."""
    for row in tx.execute(sa.select(servers.c.uuid, servers.c.host, servers.c.image).where(servers.c.deleted == 0)
                          .order_by(servers.c.id)):
        yield KeptImage(row.uuid, row.host, row.image.properties if row.image else {})


def _deleted(before_s: int, limit: int) -> sa.Select[int, str]:
    """Select up to ``limit`` servers deleted more than ``before_s`` seconds ago, the oldest first."""
    # a function's result, so that an index beginning with it is not used: MariaDB would read all deleted servers
    deleted = sa.func.coalesce(servers.c.deleted, 0)
    return sa.select(servers.c.id, servers.c.uuid).where(
        deleted != 0, servers.c.deleted_at < later(-before_s)).order_by(servers.c.deleted_at).limit(limit)


def archive(tx: Connection, before_s: int, limit: int) -> int:
    """Archive up to ``limit`` servers deleted more than ``before_s`` seconds ago; return their number. Users no longer
    see them; their rows stay until they are purged."""
    which = _deleted(before_s, limit).where(servers.c.archived_at.is_(None)).with_for_update()
    keys = [row.id for row in tx.execute(which)]
    if keys:
        tx.execute(sa.update(servers).where(servers.c.id.in_(keys)).values(archived_at=utc_now()))
    return len(keys)


def purge(tx: Connection, before_s: int, limit: int, archived: bool = False) -> int:
    """Delete the rows of up to ``limit`` servers deleted more than ``before_s`` seconds ago, and all their dependent
    rows; return their number. ``archived``: only archived servers."""
    which = _deleted(before_s, limit)
    old = tx.execute(which.where(servers.c.archived_at.is_not(None)) if archived else which).all()
    if not old:
        return 0
    uuids = [row.uuid for row in old]
    for table in (server_metadata, server_tags, operations, migrations, console_tokens, security_group_members,
                  volume_holders, guest_facts):
        tx.execute(sa.delete(table).where(table.c.server_uuid.in_(uuids)))
    return delete_keys(tx, servers, [row.id for row in old])


__all__ = ["AttachedVolume", "archive", "change_metadata", "children", "detail", "details", "instance_name", "lock_row",
           "password", "places", "purge", "rows_of", "target", "update", "within"]
