"""Reconstruction of a lost api database from the cell's server records.

Each function adds missing rows and leaves all others unchanged, so that repeating it adds nothing. Data that the cell
does not have stays lost: limits, aggregates without a zone, server groups, and flavors and key pairs of no server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db import flavors
from nova.db.host import aggregates
from nova.db.models.api import flavor_projects, keypairs, ledger, server_groups
from nova.db.models.cell import servers
from nova.db.sql.statements import insert_ignoring
from nova.model.base import Time
from nova.model.flavor.flavors import Flavor, NewFlavor
from nova.model.host.aggregates import ZONE
from nova.model.host.cells import CELL
from nova.model.image.images import Image
from nova.model.quota.counting import classes
from nova.model.server.keypairs import NewKeypair
from nova.model.server.servers import ServerFacts


class Proof(NamedTuple):
    """The columns of a live server that the reconstruction reads."""

    id: int
    uuid: str
    project_id: str
    user_id: str
    created_at: Time
    epoch: int
    flavor: Flavor
    image: Image | None
    image_id: str
    key_name: str  # valid with a public key
    public_key: str
    key_type: str
    host: str | None
    availability_zone: str | None
    pinned_availability_zone: str | None
    scheduler_hints: Mapping[str, Any] | None


_PROOFS = tuple(servers.c[name] for name in Proof._fields)


def living(cell: Connection, after: int, limit: int) -> list[Proof]:
    """Return a page of live servers after the key ``after``, with the columns used for the reconstruction."""
    rows = cell.execute(sa.select(*_PROOFS).where(servers.c.deleted == 0, servers.c.id > after)
                        .order_by(servers.c.id).limit(limit))
    return list(map(Proof._make, rows))


def proofs(cell: Connection, uuids: Sequence[str]) -> list[Proof]:
    """Return the same columns of these servers, without deleted ones."""
    rows = cell.execute(sa.select(*_PROOFS).where(servers.c.uuid.in_(uuids), servers.c.deleted == 0))
    return list(map(Proof._make, rows))


def without_ledger_row(tx: Connection, rows: Sequence[Proof]) -> list[Proof]:
    """Return the servers that have no ledger row: quota does not count them, and they cannot claim resources."""
    known = set(tx.execute(sa.select(ledger.c.server_uuid).where(
        ledger.c.server_uuid.in_([row.uuid for row in rows]))).scalars())
    return [row for row in rows if row.uuid not in known]


def open_rows(tx: Connection, rows: Sequence[Proof], cell: str = CELL) -> None:
    """Insert ledger rows for these servers of a cell; existing rows stay unchanged."""
    insert_ignoring(tx, ledger, [{
        "server_uuid": row.uuid, "project_id": row.project_id, "user_id": row.user_id, "cell": cell, "closed": False,
        "vcpus": row.flavor.vcpus, "memory_mb": row.flavor.memory_mb, "epoch": row.epoch, "created_at": row.created_at,
        "facts": ServerFacts(flavor=row.flavor, image_id=row.image_id,
                             availability_zone=row.pinned_availability_zone),
        "classes": classes(row.flavor, row.image.properties if row.image else {})} for row in rows])


def missing_flavors(tx: Connection, found: Mapping[str, Flavor]) -> list[Flavor]:
    """Return the flavors of ``found`` (by flavorid) whose id does not exist."""
    return [flavor for flavorid, flavor in sorted(found.items()) if not _is_there(tx, flavorid)]


def _is_there(tx: Connection, flavorid: str) -> bool:
    with contextlib.suppress(errors.NotFound):
        flavors.locked_id(tx, flavorid)
        return True
    return False


def add_flavor(tx: Connection, flavor: Flavor, projects: Sequence[str]) -> None:
    """Insert a flavor with its extra specs, and access for ``projects`` if it is private. Raises Conflict if its name
    is taken."""
    asked = {name: getattr(flavor, name) for name in NewFlavor.__struct_fields__ if hasattr(flavor, name)}
    flavors.insert(tx, NewFlavor(**asked))
    if flavor.extra_specs:
        flavors.set_specs(tx, flavor.flavorid, flavor.extra_specs)
    if not flavor.is_public and projects:
        key = flavors.locked_id(tx, flavor.flavorid)
        insert_ignoring(tx, flavor_projects, [{"flavor_id": key, "project_id": one} for one in sorted(projects)])


def missing_keypairs(tx: Connection, found: Mapping[tuple[str, str], NewKeypair]) -> list[NewKeypair]:
    """Return the keypairs of ``found`` (by user and name) that do not exist."""
    users = sorted({user for user, _name in found})
    known = {(row.user_id, row.name) for row in tx.execute(sa.select(keypairs.c.user_id, keypairs.c.name)
                                                           .where(keypairs.c.user_id.in_(users)))}
    return [pair for key, pair in sorted(found.items()) if key not in known]


def missing_zones(tx: Connection, found: Mapping[str, str]) -> dict[str, list[str]]:
    """Return zone -> hosts of ``found`` (host -> zone) that no aggregate assigns to a zone."""
    placed = aggregates.zones(tx, list(found))
    missing: dict[str, list[str]] = {}
    for host, zone in sorted(found.items()):
        if host not in placed:
            missing.setdefault(zone, []).append(host)
    return missing


def add_zone(tx: Connection, zone: str, hosts: Sequence[str]) -> None:
    """Add the hosts to the aggregate of the zone; create the aggregate, with the zone's name, if there is none."""
    aggregates.changing(tx)
    mine = [one for one in aggregates.select(tx) if one.metadata.get(ZONE) == zone]
    key = mine[0].id if mine else aggregates.insert(tx, zone, zone)
    for host in hosts:
        aggregates.add_host(tx, key, host)


def missing_groups(tx: Connection, uuids: Sequence[str]) -> list[str]:
    """Return the server groups of ``uuids`` that do not exist."""
    known = set(tx.execute(sa.select(server_groups.c.uuid).where(server_groups.c.uuid.in_(list(uuids)))).scalars())
    return [uuid for uuid in uuids if uuid not in known]
