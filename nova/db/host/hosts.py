"""Nodes of compute hosts, and the resource providers of their capacity."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.host import reports
from nova.db.models.api import allocations, inventories, ledger, providers
from nova.db.models.cell import nodes, servers, services
from nova.db.sql.row_text import TextRows
from nova.db.sql.types import utc_now
from nova.model.base import Time
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import Inventory, Node


def write_nodes(tx: Connection, inventory: Inventory) -> bool:
    """Replace the recorded nodes of a host. False, and no change, for an older report. Raises host.NodeNotYours if a
    node belongs to another host."""
    known = {row.uuid: row for row in tx.execute(sa.select(nodes.c.id, nodes.c.uuid, nodes.c.version)
                                                 .where(nodes.c.host == inventory.host).with_for_update())}
    if any(row.version > inventory.version for row in known.values()):
        return False
    new = {node.uuid for node in inventory.nodes} - known.keys()
    taken = tx.execute(sa.select(nodes.c.uuid).where(nodes.c.uuid.in_(new)).limit(1)).scalar() if new else None
    if taken is not None:
        raise errors.host.NodeNotYours(host=inventory.host, uuid=taken)
    for node in inventory.nodes:
        values = {"host": inventory.host, "host_id": inventory.host_id, "name": node.name, "facts": node,
                  "version": inventory.version}
        if node.uuid in known:
            tx.execute(sa.update(nodes).where(nodes.c.uuid == node.uuid).values(**values, updated_at=utc_now()))
        else:
            tx.execute(sa.insert(nodes).values(**values, uuid=node.uuid, created_at=utc_now()))
    gone = [uuid for uuid in known if uuid not in {node.uuid for node in inventory.nodes}]
    if gone:
        tx.execute(sa.delete(nodes).where(nodes.c.uuid.in_(gone)))
    # schedulers reload a node's facts when the version of its host's service changes
    tx.execute(sa.update(services).where(services.c.host == inventory.host, services.c.binary == "nova-compute",
                                         services.c.deleted == 0).values(version=services.c.version + 1))
    return True


class HostProvider(NamedTuple):
    """A provider of a host: its node, or one below it."""

    id: int
    host: str
    name: str
    generation: int


def providers_of_hosts(tx: Connection, host: str | None = None) -> list[HostProvider]:
    """Return every provider of all hosts (or of one), including those below nodes."""
    chosen = providers.c.host != "" if host is None else providers.c.host == host
    rows = tx.execute(sa.select(providers.c.id, providers.c.host, providers.c.name, providers.c.generation)
                      .where(chosen).order_by(providers.c.id))
    return list(map(HostProvider._make, rows))


def claimants(tx: Connection, ids: Sequence[int]) -> set[str]:
    """Return the servers with an open ledger row that have allocations on these providers."""
    server = sa.func.coalesce(allocations.c.moving, allocations.c.consumer)
    return set(tx.execute(sa.select(server)
                          .join_from(allocations, ledger, ledger.c.server_uuid == server)
                          .where(allocations.c.provider_id.in_(list(ids)), ledger.c.closed == sa.false())
                          .distinct()).scalars())


def drop_providers(tx: Connection, generations: Mapping[int, int]) -> None:
    """Delete the providers of removed hosts, with their allocations and all providers below them. A provider whose
    generation has changed stays: its host has come back."""
    keys = [row.id for row in tx.execute(
        sa.select(providers.c.id, providers.c.generation).where(providers.c.id.in_(list(generations)),
                                                               providers.c.root_id.is_(None))
        .order_by(providers.c.id).with_for_update()) if generations[row.id] == row.generation]
    if keys:
        keys += tx.execute(sa.select(providers.c.id).where(providers.c.root_id.in_(keys),
                                                           providers.c.id.not_in(keys))).scalars()
        reports.forget(tx, keys)


_below = providers.alias()
_deep = sa.or_(providers.c.topology.is_not(None), sa.exists().where(_below.c.root_id == providers.c.id))


class ClassRow(NamedTuple):
    """A node's provider with its inventory and usage of one resource class; a row of :func:`provider_rows`."""

    id: int
    uuid: str
    host: str
    name: str
    generation: int
    resource_class: str
    total: int
    reserved: int
    allocation_ratio: float
    min_unit: int
    max_unit: int
    step_size: int
    deep: bool
    used: int
    consumers: int


@dataclasses.dataclass
class NodeProviderRow:
    """The provider of a node. ``deep``: it has providers below it, or a topology."""

    id: int
    host: str
    name: str
    generation: int
    deep: bool
    consumers: int = 0
    classes: dict[str, ClassRow] = dataclasses.field(default_factory=dict)


def provider_rows(tx: Connection, ids: Sequence[int] | None = None, host: str | None = None,
                  uuids: Collection[str] | None = None) -> dict[str, NodeProviderRow]:
    """Return the providers of nodes, by UUID. Covers all nodes, or some (by UUID, by the id of any provider in their
    trees, or by host): usage is then summed for these only."""
    root = sa.func.coalesce(providers.c.root_id, providers.c.id)
    of_trees = None if ids is None else sa.select(root).where(providers.c.id.in_(list(ids))).scalar_subquery()
    wanted = [providers.c.root_id.is_(None), providers.c.host != ""]
    if of_trees is not None:
        wanted.append(providers.c.id.in_(of_trees))
    if uuids is not None:
        wanted.append(providers.c.uuid.in_(list(uuids)))
    if host is not None:
        wanted.append(providers.c.host == host)
    chosen = sa.and_(*wanted)
    claims = sa.select(allocations.c.provider_id, allocations.c.resource_class,
                       sa.func.sum(allocations.c.used).label("used"), sa.func.count().label("consumers"))
    if len(wanted) > 2:
        claims = claims.where(allocations.c.provider_id.in_(sa.select(providers.c.id).where(chosen)))
    used = claims.group_by(allocations.c.provider_id, allocations.c.resource_class).subquery()
    query = (sa.select(providers.c.id, providers.c.uuid, providers.c.host, providers.c.name, providers.c.generation,
                       inventories.c.resource_class, inventories.c.total, inventories.c.reserved,
                       inventories.c.allocation_ratio, inventories.c.min_unit, inventories.c.max_unit,
                       inventories.c.step_size, _deep.label("deep"), sa.func.coalesce(used.c.used, 0).label("used"),
                       sa.func.coalesce(used.c.consumers, 0).label("consumers"))
             .join_from(providers, inventories, inventories.c.provider_id == providers.c.id)
             .join(used, sa.and_(used.c.provider_id == providers.c.id,
                                 used.c.resource_class == inventories.c.resource_class), isouter=True)
             .where(chosen))
    found: dict[str, NodeProviderRow] = {}
    for row in map(ClassRow._make, tx.execute(query)):
        one = found.get(row.uuid)
        if one is None:
            one = found[row.uuid] = NodeProviderRow(row.id, row.host, row.name, row.generation, bool(row.deep))
        one.classes[row.resource_class] = row
        one.consumers = max(one.consumers, int(row.consumers))
    return found


class NodesWanted(NamedTuple):
    """A filter of nodes; all conditions apply. ``after`` is the id of the last node of the previous page."""

    host: str | None = None
    id: int | None = None
    uuid: str | None = None
    name_part: str | None = None  # a substring of the name
    after: int | None = None
    limit: int | None = None


ALL = NodesWanted()


class NodeRow(NamedTuple):
    """A node with its host's compute service; ``clock`` is the database's time."""

    id: int
    uuid: str
    host: str
    name: str
    facts: Node
    service_id: int
    service_uuid: str
    binary: str
    topic: str | None
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_at: Time | None
    created_at: Time
    updated_at: Time | None
    release: str
    service_version: int
    clock: Time


_NODES = TextRows(NodeRow, [
    nodes.c.id, nodes.c.uuid, nodes.c.host, nodes.c.name, nodes.c.facts, services.c.id, services.c.uuid,
    services.c.binary, services.c.topic, services.c.disabled, services.c.disabled_reason, services.c.forced_down,
    services.c.last_seen_at, services.c.created_at, services.c.updated_at, services.c.release, services.c.version,
    utc_now()])


class ServerOnHost(NamedTuple):
    """A live server on a host."""

    uuid: str
    name: str
    host: str
    node: str
    task_state: str | None


class PromisedServer(NamedTuple):
    """The project and flavor of a live server."""

    project_id: str
    flavor: Flavor


def node_rows(tx: Connection, wanted: NodesWanted = ALL) -> list[NodeRow]:
    """Return nodes with their hosts' compute services, by id."""
    query = (
        sa.select(_NODES.text)
        .join_from(nodes, services, sa.and_(services.c.host == nodes.c.host, services.c.binary == "nova-compute",
                                            services.c.deleted == 0))
        .order_by(nodes.c.id).limit(wanted.limit))
    for column, value in ((nodes.c.host, wanted.host), (nodes.c.id, wanted.id), (nodes.c.uuid, wanted.uuid)):
        if value is not None:
            query = query.where(column == value)
    if wanted.name_part is not None:  # not LIKE, which ignores case on SQLite
        query = query.where(sa.func.replace(nodes.c.name, wanted.name_part, "") != nodes.c.name)
    if wanted.after is not None:
        query = query.where(nodes.c.id > wanted.after)
    return _NODES.of(tx.execute(query))


def has_provider(row: NodeRow, found: Mapping[str, NodeProviderRow]) -> bool:
    """Return whether the provider of a node is there, and its host's. A cell does not know the nodes of other cells, so
    a host there may report one of their UUIDs; it never gets the provider."""
    return row.uuid in found and found[row.uuid].host == row.host


def node_id(tx: Connection, name: str) -> int | None:
    """Return the id of the node with this UUID or number; None if there is none."""
    same = nodes.c.id == int(name) if name.isascii() and name.isdigit() and len(name) <= 18 else nodes.c.uuid == name
    found = tx.execute(sa.select(nodes.c.id).where(same)).scalar_one_or_none()
    return None if found is None else int(found)


def servers_on(tx: Connection, hosts: Sequence[str]) -> list[ServerOnHost]:
    """Return the live servers on these hosts."""
    rows = tx.execute(sa.select(*[servers.c[name] for name in ServerOnHost._fields])
                      .where(servers.c.host.in_(list(hosts)), servers.c.deleted == 0).order_by(servers.c.id))
    return list(map(ServerOnHost._make, rows))


def promised_on(tx: Connection, host: str) -> list[PromisedServer]:
    """Return the project and flavor of every live server on a host."""
    rows = tx.execute(sa.select(servers.c.project_id, servers.c.flavor)
                      .where(servers.c.host == host, servers.c.deleted == 0).order_by(servers.c.project_id))
    return list(map(PromisedServer._make, rows))


# -- zones of hosts, as shown in servers' rows

def with_servers(tx: Connection, hosts: Sequence[str]) -> list[str]:
    """Return those of these hosts that have live servers."""
    return list(tx.execute(sa.select(servers.c.host).where(servers.c.host.in_(list(hosts)), servers.c.deleted == 0)
                           .distinct().order_by(servers.c.host)).scalars())


def has_pinned(tx: Connection, host: str, zone: str) -> bool:
    """Return whether a live server on the host requested this zone."""
    return tx.execute(sa.select(servers.c.id).where(
        servers.c.host == host, servers.c.deleted == 0, servers.c.pinned_availability_zone == zone).limit(1)
    ).first() is not None


def zones_shown(tx: Connection) -> list[tuple[str, str | None]]:
    """Return (host, zone) pairs from the rows of live servers."""
    rows = tx.execute(sa.select(servers.c.host, servers.c.availability_zone)
                      .where(servers.c.deleted == 0, servers.c.host.is_not(None)).distinct())
    return [(row.host, row.availability_zone) for row in rows]


def write_zone(tx: Connection, hosts: Sequence[str], zone: str) -> None:
    """Set the zone in the rows of servers on these hosts."""
    tx.execute(sa.update(servers).where(
        servers.c.host.in_(list(hosts)), servers.c.deleted == 0,
        sa.or_(servers.c.availability_zone.is_(None), servers.c.availability_zone != zone)).values(
            availability_zone=zone))
