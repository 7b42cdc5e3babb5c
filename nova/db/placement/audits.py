"""Reads and writes of the allocation audit: actual and expected allocations, and corrections under the owner's lock."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import allocations, consumers, inventories, ledger, provider_traits, providers
from nova.db.models.cell import cleanups, migrations, nodes, operations, servers
from nova.db.quota.ledger import in_cells
from nova.db.sql.statements import insert_all
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import Inventory
from nova.model.image.images import Image
from nova.model.network.networks import PortDemand
from nova.model.numa.topology import HostTopology
from nova.model.placement.audits import Amounts, NodeHolder
from nova.model.server.migrations import OVER
from nova.model.volumes import BlockDevice

_root = providers.alias("root_provider")
_owner = sa.func.coalesce(allocations.c.moving, allocations.c.consumer)
_tree = sa.func.coalesce(providers.c.root_id, providers.c.id)


# -- the api database

def held(tx: Connection, uuids: Sequence[str]) -> dict[str, dict[NodeHolder, Amounts]]:
    """Return server -> node -> the amounts that it and its migrations hold in the node's tree. Excludes devices' own
    providers, according to the recorded PCI and NUMA claims."""
    mine = sa.or_(allocations.c.consumer.in_(list(uuids)), allocations.c.moving.in_(list(uuids)))
    rows = tx.execute(
        sa.select(_owner.label("server"), allocations.c.consumer, _root.c.host, _root.c.name,
                  providers.c.name.label("provider"), allocations.c.resource_class, allocations.c.used,
                  allocations.c.packing)
        .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
        .join(_root, _root.c.id == _tree).where(mine)).all()
    devices: dict[NodeHolder, Counter[str]] = {}
    for row in rows:
        if row.packing is not None:
            devices[NodeHolder(row.host, row.name, row.consumer)] = Counter(
                f"{row.name}_{address}" for one in row.packing.devices for address in (one.address, one.parent))
    found: dict[str, dict[NodeHolder, dict[str, int]]] = defaultdict(dict)
    for row in rows:
        place = NodeHolder(row.host, row.name, row.consumer)
        amounts = found[row.server].setdefault(place, {})
        used = row.used - devices.get(place, {}).get(row.provider, 0)
        if used > 0:
            amounts[row.resource_class] = amounts.get(row.resource_class, 0) + used
    return {server: dict(places) for server, places in found.items()}


def owners(tx: Connection, after: str, limit: int, cell: str, tree: int | None = None) -> list[str]:
    """Return a page of servers (by UUID, after ``after``) with allocations: any, or in one tree. Excluded are consumers
    that allocate through the Placement API, and servers that the ledger has in another cell."""
    elsewhere = sa.exists().where(ledger.c.server_uuid == _owner, sa.not_(in_cells(cell)))
    chosen = sa.select(_owner).where(_owner > after, ~sa.exists().where(consumers.c.uuid == allocations.c.consumer),
                                     ~elsewhere)
    if tree is not None:
        chosen = chosen.join_from(allocations, providers, providers.c.id == allocations.c.provider_id) \
            .where(_tree == tree)
    return list(tx.execute(chosen.distinct().order_by(_owner).limit(limit)).scalars())


def opened_lately(tx: Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the servers whose ledger row is open: they may be about to be created."""
    return set(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(list(uuids)),
                                                                ledger.c.closed == sa.false())).scalars())


def closed(tx: Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the servers whose ledger row is closed: they are deleted. Only a restore of an older cell, and an
    import of a guest by an operator, open a row again."""
    return set(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(list(uuids)),
                                                                ledger.c.closed == sa.true())).scalars())


def hold(tx: Connection, server_uuid: str) -> None:
    """Block claims and releases of the server until the transaction ends. Must be its first statement."""
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid).values(epoch=ledger.c.epoch))


def root_of(tx: Connection, uuid: str) -> object:
    """Return id, host and name of the node at the root of a provider's tree; None if the provider does not exist."""
    return tx.execute(sa.select(_root.c.id, _root.c.host, _root.c.name).join_from(providers, _root, _root.c.id == _tree)
                      .where(providers.c.uuid == uuid)).one_or_none()


def root_at(tx: Connection, place: NodeHolder) -> int | None:
    """Return the key of a node's provider."""
    return tx.execute(sa.select(providers.c.id).where(providers.c.host == place.host, providers.c.name == place.node,
                                                      providers.c.root_id.is_(None))).scalar_one_or_none()


def give_back(tx: Connection, place: NodeHolder) -> None:
    """Delete what the consumer holds in the node's tree."""
    keys = _lock_tree(tx, place)
    tx.execute(sa.delete(allocations).where(allocations.c.provider_id.in_(keys),
                                            allocations.c.consumer == place.consumer))


def write(tx: Connection, place: NodeHolder, server_uuid: str, amounts: Amounts) -> None:
    """Set the consumer's allocations on the node itself, regardless of free capacity: the guest is running there."""
    give_back(tx, place)
    moving = None if place.consumer == server_uuid else server_uuid
    insert_all(tx, allocations, [{"provider_id": root_at(tx, place), "consumer": place.consumer, "moving": moving,
                                  "resource_class": name, "used": amount} for name, amount in amounts.items()])


def _lock_tree(tx: Connection, place: NodeHolder) -> list[int]:
    """Lock a tree by incrementing the generations of its providers; return their keys."""
    chosen = sa.select(providers.c.id).join_from(providers, _root, _root.c.id == _tree).where(
        _root.c.host == place.host, _root.c.name == place.node)
    keys = sorted(tx.execute(chosen).scalars())
    for key in keys:
        tx.execute(sa.update(providers).where(providers.c.id == key).values(generation=providers.c.generation + 1))
    return keys


class Overuse(NamedTuple):
    host: str
    provider: str
    resource_class: str
    used: int
    capacity: int


def overused(tx: Connection, host: str | None = None) -> list[Overuse]:
    """Return providers whose usage exceeds their (current) capacity."""
    used = (sa.select(allocations.c.provider_id, allocations.c.resource_class,
                      sa.func.sum(allocations.c.used).label("used"))
            .group_by(allocations.c.provider_id, allocations.c.resource_class).subquery())
    query = (sa.select(providers.c.host, providers.c.name, used.c.resource_class, used.c.used, inventories.c.total,
                       inventories.c.reserved, inventories.c.allocation_ratio)
             .join_from(used, providers, providers.c.id == used.c.provider_id)
             .join(inventories, sa.and_(inventories.c.provider_id == used.c.provider_id,
                                        inventories.c.resource_class == used.c.resource_class), isouter=True)
             .order_by(providers.c.host, providers.c.name, used.c.resource_class))
    rows = tx.execute(query if host is None else query.where(providers.c.host == host))
    found = [Overuse(row.host, row.name, row.resource_class, int(row.used),
                     0 if row.total is None else int((row.total - row.reserved) * row.allocation_ratio))
             for row in rows]
    return [one for one in found if one.used > one.capacity]


@dataclasses.dataclass
class ReportedProvider:
    """The reported data of a provider in comparable form. ``inventories``: the columns by resource class."""

    name: str
    host: str
    parent_id: int | None
    topology: HostTopology | None
    inventories: dict[str, tuple[object, ...]] = dataclasses.field(default_factory=dict)
    traits: set[tuple[str, bool]] = dataclasses.field(default_factory=set)


def shape(tx: Connection, uuids: Sequence[str]) -> dict[str, ReportedProvider]:
    """Return the reported data of some nodes' trees, by provider."""
    mine = sa.or_(providers.c.uuid.in_(list(uuids)),
                  providers.c.root_id.in_(sa.select(_root.c.id).where(_root.c.uuid.in_(list(uuids)))))
    rows = {row.id: row for row in tx.execute(sa.select(
        providers.c.id, providers.c.uuid, providers.c.name, providers.c.host, providers.c.parent_id,
        providers.c.topology).where(mine))}
    found = {row.uuid: ReportedProvider(row.name, row.host, row.parent_id, row.topology) for row in rows.values()}
    for one in tx.execute(sa.select(inventories).where(inventories.c.provider_id.in_(list(rows)))):
        found[rows[one.provider_id].uuid].inventories[one.resource_class] = tuple(one)[2:]
    for trait in tx.execute(sa.select(provider_traits).where(provider_traits.c.provider_id.in_(list(rows)))):
        found[rows[trait.provider_id].uuid].traits.add((trait.trait, trait.reported))
    return found


# -- the cell database

class AuditedServer(NamedTuple):
    """The columns of a live server that determine its allocations."""

    uuid: str
    vm_state: str
    task_state: str | None
    host: str | None
    node: str
    flavor: Flavor
    image: Image | None
    volumes: tuple[BlockDevice, ...] | None
    port_demands: tuple[PortDemand, ...] | None


class AuditedMove(NamedTuple):
    """An unfinished move, with its flavor and place at the source."""

    uuid: str
    server_uuid: str
    source_compute: str
    source_node: str
    old_flavor: Flavor | None


class Rows(NamedTuple):
    """The cell's data on some servers, by UUID. ``cleanup_hosts``: hosts with a pending cleanup for them."""

    servers: Mapping[str, AuditedServer]
    busy: frozenset[str]
    moves: Mapping[str, Sequence[AuditedMove]]
    cleanup_hosts: Mapping[str, frozenset[str]]


def rows(tx: Connection, uuids: Sequence[str]) -> Rows:
    """Read the cell's data. Cleanups come first: a host's claim is released before its cleanup is deleted."""
    mine = list(uuids)
    cleanup_hosts: dict[str, set[str]] = defaultdict(set)
    for one in tx.execute(sa.select(cleanups.c.server_uuid, cleanups.c.host).where(cleanups.c.server_uuid.in_(mine))):
        cleanup_hosts[one.server_uuid].add(one.host)
    found = {row.uuid: row for row in map(AuditedServer._make, tx.execute(
        sa.select(*[servers.c[name] for name in AuditedServer._fields])
        .where(servers.c.uuid.in_(mine), servers.c.deleted == 0)))}
    busy = tx.execute(sa.select(operations.c.server_uuid).where(operations.c.server_uuid.in_(mine),
                                                                operations.c.finished_at.is_(None))).scalars()
    moves: dict[str, list[AuditedMove]] = defaultdict(list)
    unfinished = sa.select(*[migrations.c[name] for name in AuditedMove._fields]).where(
        migrations.c.server_uuid.in_(mine), migrations.c.status.not_in(OVER))
    for move in map(AuditedMove._make, tx.execute(unfinished)):
        moves[move.server_uuid].append(move)
    return Rows(found, frozenset(busy), moves, {uuid: frozenset(hosts) for uuid, hosts in cleanup_hosts.items()})


def has_node(tx: Connection, host: str) -> bool:
    """Return whether the cell has a node of a host of this name."""
    return tx.execute(sa.select(nodes.c.id).where(nodes.c.host == host).limit(1)).first() is not None


def server_exists(tx: Connection, uuid: str) -> bool:
    """Return whether a server with that UUID exists that is not deleted."""
    return tx.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid, servers.c.deleted == 0)).first() is not None


def any_server(tx: Connection) -> bool:
    """Return whether there is any server that is not deleted."""
    return tx.execute(sa.select(servers.c.id).where(servers.c.deleted == 0).limit(1)).first() is not None


def placed(tx: Connection, after: int, limit: int) -> list[tuple[int, str]]:
    """Return a page of live servers on a host, as (key, UUID), after a key."""
    chosen = sa.select(servers.c.id, servers.c.uuid).where(
        servers.c.id > after, servers.c.deleted == 0, servers.c.host.is_not(None))
    return [(row.id, row.uuid) for row in tx.execute(chosen.order_by(servers.c.id).limit(limit))]


def placed_by_uuid(tx: Connection, after: str, limit: int) -> list[str]:
    """Return a page of UUIDs of live servers on a host, after a UUID."""
    return list(tx.execute(sa.select(servers.c.uuid).where(
        servers.c.uuid > after, servers.c.deleted == 0, servers.c.host.is_not(None))
        .order_by(servers.c.uuid).limit(limit)).scalars())


def reports(tx: Connection, after: str, limit: int) -> list[Inventory]:
    """Return a page of the last complete reports of hosts, after a host name."""
    hosts = list(tx.execute(sa.select(nodes.c.host).where(nodes.c.host > after).distinct().order_by(nodes.c.host)
                            .limit(limit)).scalars())
    return _whole_reports(tx, hosts)


def report(tx: Connection, host: str) -> Inventory | None:
    """Return a host's last report; None if there is none."""
    return next(iter(_whole_reports(tx, [host])), None)


def _whole_reports(tx: Connection, hosts: Sequence[str]) -> list[Inventory]:
    found: dict[str, list[Any]] = {host: [] for host in hosts}
    for row in tx.execute(sa.select(nodes.c.host, nodes.c.host_id, nodes.c.version, nodes.c.facts)
                          .where(nodes.c.host.in_(hosts)).order_by(nodes.c.id)):
        found[row.host].append(row)
    return [Inventory(host=host, host_id=rows[0].host_id, version=min(row.version for row in rows),
                      nodes=tuple(row.facts for row in rows)) for host, rows in found.items() if rows]
