"""The api database of a cloud that lost it, derived again from what the cell's records of servers prove.

Each function adds what is missing and leaves all else as it is, so that a repetition adds nothing. What the cell does
not know (limits, aggregates that are no zones, server groups, flavors and key pairs that no server has) stays lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db import flavors
from nova.db.host import aggregates
from nova.db.models.api import flavor_projects, keypairs, ledger, server_groups
from nova.db.models.cell import servers
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import AnyRow
from nova.model.flavor.flavors import Flavor, NewFlavor
from nova.model.host.aggregates import ZONE
from nova.model.quota.counting import classes
from nova.model.server.keypairs import NewKeypair
from nova.model.server.servers import ServerFacts

_PROOFS = tuple(servers.c[name] for name in (
    "id", "uuid", "project_id", "user_id", "created_at", "epoch", "flavor", "image", "image_id", "key_name",
    "public_key", "key_type", "host", "availability_zone", "pinned_availability_zone", "scheduler_hints"))


def living(cell: Connection, after: int, limit: int) -> Sequence[AnyRow]:
    """A page of servers that are not deleted, behind the key ``after``: what of a record proves something."""
    return cell.execute(sa.select(*_PROOFS).where(servers.c.deleted == 0, servers.c.id > after)
                        .order_by(servers.c.id).limit(limit)).all()


def proofs(cell: Connection, uuids: Sequence[str]) -> Sequence[AnyRow]:
    """The same of these servers; none of one that is deleted."""
    return cell.execute(sa.select(*_PROOFS).where(servers.c.uuid.in_(uuids), servers.c.deleted == 0)).all()


def without_ledger_row(tx: Connection, rows: Sequence[AnyRow]) -> list[AnyRow]:
    """Those that the ledger has never heard of: quota does not count them, and nothing can be claimed for them."""
    known = set(tx.execute(sa.select(ledger.c.server_uuid).where(
        ledger.c.server_uuid.in_([row.uuid for row in rows]))).scalars())
    return [row for row in rows if row.uuid not in known]


def open_rows(tx: Connection, rows: Sequence[AnyRow]) -> None:
    """Ledger rows of these servers. A server that has a row by now keeps it."""
    insert_ignoring(tx, ledger, [{
        "server_uuid": row.uuid, "project_id": row.project_id, "user_id": row.user_id, "cell": "", "closed": False,
        "vcpus": row.flavor.vcpus, "memory_mb": row.flavor.memory_mb, "epoch": row.epoch, "created_at": row.created_at,
        "facts": ServerFacts(flavor=row.flavor, image_id=row.image_id,
                             availability_zone=row.pinned_availability_zone),
        "classes": classes(row.flavor, row.image.properties if row.image else {})} for row in rows])


def missing_flavors(tx: Connection, found: Mapping[str, Flavor]) -> list[Flavor]:
    """Those of ``found`` (by the id that users see) whose id is not in use."""
    return [flavor for flavorid, flavor in sorted(found.items()) if not _is_there(tx, flavorid)]


def _is_there(tx: Connection, flavorid: str) -> bool:
    try:
        flavors.locked_id(tx, flavorid)
    except errors.NotFound:
        return False
    return True


def add_flavor(tx: Connection, flavor: Flavor, projects: Sequence[str]) -> None:
    """With its extra specs; the ``projects`` may use it, where it is private. Conflict: its name is taken."""
    asked = {name: getattr(flavor, name) for name in NewFlavor.__struct_fields__ if hasattr(flavor, name)}
    flavors.insert(tx, NewFlavor(**asked))
    if flavor.extra_specs:
        flavors.set_specs(tx, flavor.flavorid, flavor.extra_specs)
    if not flavor.is_public and projects:
        key = flavors.locked_id(tx, flavor.flavorid)
        insert_ignoring(tx, flavor_projects, [{"flavor_id": key, "project_id": one} for one in sorted(projects)])


def missing_keypairs(tx: Connection, found: Mapping[tuple[str, str], NewKeypair]) -> list[NewKeypair]:
    """Those of ``found`` (by user and name) that are not there."""
    users = sorted({user for user, _name in found})
    known = {(row.user_id, row.name) for row in tx.execute(sa.select(keypairs.c.user_id, keypairs.c.name)
                                                           .where(keypairs.c.user_id.in_(users)))}
    return [pair for key, pair in sorted(found.items()) if key not in known]


def missing_zones(tx: Connection, found: Mapping[str, str]) -> dict[str, list[str]]:
    """Zone -> hosts that no aggregate puts into a zone, of ``found`` (host -> zone)."""
    placed = aggregates.zones(tx, list(found))
    missing: dict[str, list[str]] = {}
    for host, zone in sorted(found.items()):
        if host not in placed:
            missing.setdefault(zone, []).append(host)
    return missing


def add_zone(tx: Connection, zone: str, hosts: Sequence[str]) -> None:
    """An aggregate with the zone's name that puts the hosts into it, or the hosts into the aggregate that is there."""
    aggregates.changing(tx)
    mine = [one for one in aggregates.select(tx) if one.metadata.get(ZONE) == zone]
    key = mine[0].id if mine else aggregates.insert(tx, zone, zone)
    for host in hosts:
        aggregates.add_host(tx, key, host)


def missing_groups(tx: Connection, uuids: Sequence[str]) -> list[str]:
    """Those of these server groups that are not there."""
    known = set(tx.execute(sa.select(server_groups.c.uuid).where(server_groups.c.uuid.in_(list(uuids)))).scalars())
    return [uuid for uuid in uuids if uuid not in known]
