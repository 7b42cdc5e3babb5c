"""Made-up hosts, in databases that the benchmark made for them, and in no others."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.schema import migrate
from nova.db.sql.engine import Connection, Database
from nova.db.sql.statements import insert_all
from nova.db.sql.types import utc_now
from nova.model.host.hosts import Node

MARK = "made_by_the_scheduler_bench"  # a table: databases without it are somebody's
CHUNK = 1000


class NotOurs(Exception):
    """A database that the benchmark did not make: made-up hosts must not come into it."""


class Kind(NamedTuple):
    """One generation of hosts. ``share`` of the fleet."""

    share: float
    vcpus: int
    memory_mb: int
    local_gb: int
    hypervisor_version: int


KINDS = (Kind(0.3, 32, 393_216, 4_000, 6_002_000), Kind(0.5, 64, 524_288, 6_000, 7_002_000),
         Kind(0.2, 128, 1_048_576, 14_000, 7_002_000))
RATIOS = {"VCPU": 4.0, "MEMORY_MB": 1.0, "DISK_GB": 1.0}
SUPPORTED = (("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm"))
TRAITS = ("COMPUTE_NET_VIRTIO", "COMPUTE_RESCUE_BFV", "COMPUTE_STORAGE_BUS_VIRTIO", "HW_CPU_X86_AVX2")


class Databases(NamedTuple):
    """Both schemas, made by :func:`make` and empty but for its mark."""

    api: Database
    cell: Database

    def close(self) -> None:
        self.api.dispose()
        self.cell.dispose()


def make(server: Any, name: str) -> Databases:
    """Two databases of ``server`` (see ``tests.functional.backends``) with today's schemas."""
    made = []
    for schema in ("api", "cell"):
        database = Database(server.create(f"bench_{name}_{schema}"), pool_size=20)
        migrate.sync(schema, database)
        with database.reading() as tx:
            tx.exec_driver_sql(f"CREATE TABLE {MARK} (id INTEGER)")
        made.append(database)
    return Databases(*made)


def check_ours(databases: Databases) -> None:
    """NotOurs for a database that :func:`make` did not make, or that has hosts already."""
    for database in databases:
        if not sa.inspect(database.engine).has_table(MARK):
            raise NotOurs(f"{database.engine.url.render_as_string()} was not made by this benchmark: it gets no hosts")
    with databases.cell.reading() as tx:
        if tx.execute(sa.select(cell_tables.services.c.id).limit(1)).first() is not None:
            raise NotOurs(f"{databases.cell.engine.url.render_as_string()} has hosts already")


def kinds_of(count: int) -> list[Kind]:
    """The kind of each host, mixed, the same at each run."""
    found = [kind for kind in KINDS for _ in range(round(kind.share * count))][:count]
    found += [KINDS[1]] * (count - len(found))
    random.Random(count).shuffle(found)
    return found


def fill(databases: Databases, count: int, used: float = 0.5, kinds: Sequence[Kind] | None = None) -> None:
    """Register ``count`` hosts, each with about so much in use, as on a cloud that spreads its servers. NotOurs."""
    check_ours(databases)
    found = list(kinds or kinds_of(count))
    rng = random.Random(7)
    for first in range(0, count, CHUNK):
        part = list(enumerate(found))[first:first + CHUNK]
        databases.cell.transact(lambda tx, part=part: _fill_cell(tx, part))
        databases.api.transact(lambda tx, part=part: _fill_api(tx, part, used, rng))


def name_of(number: int) -> str:
    return f"bench{number:05}"


def _id(what: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{what}-{number}"))


def node(number: int, kind: Kind) -> Node:
    return Node(name=name_of(number), uuid=_id("node", number), hypervisor_type="QEMU",
                hypervisor_version=kind.hypervisor_version, vcpus=kind.vcpus, memory_mb=kind.memory_mb,
                local_gb=kind.local_gb, supported=SUPPORTED, traits=TRAITS,
                host_ip=f"10.0.{number >> 8}.{number & 255}",
                capabilities={"cpu_model": "EPYC-Rome", "hypervisor_type": "QEMU"})


def _fill_cell(tx: Connection, part: Sequence[tuple[int, Kind]]) -> None:
    insert_all(tx, cell_tables.services, [{
        "uuid": _id("service", number), "host": name_of(number), "binary": "nova-compute", "topic": "compute",
        "host_id": _id("host", number), "contracts": (), "last_seen_at": utc_now(), "created_at": utc_now()}
        for number, _ in part])
    insert_all(tx, cell_tables.nodes, [{
        "uuid": _id("node", number), "host": name_of(number), "host_id": _id("host", number), "name": name_of(number),
        "facts": node(number, kind), "version": 1, "created_at": utc_now()} for number, kind in part])


def _fill_api(tx: Connection, part: Sequence[tuple[int, Kind]], used: float, rng: random.Random) -> None:
    insert_all(tx, api_tables.providers, [{
        "uuid": _id("node", number), "name": name_of(number), "host": name_of(number), "host_id": _id("host", number)}
        for number, _ in part])
    table = api_tables.providers
    keys = {row.name: row.id for row in tx.execute(
        sa.select(table.c.id, table.c.name).where(table.c.name.in_([name_of(number) for number, _ in part])))}
    inventories, allocations = [], []
    for number, kind in part:
        key, share = keys[name_of(number)], used * rng.uniform(0.9, 1.1)
        for name, total in (("VCPU", kind.vcpus), ("MEMORY_MB", kind.memory_mb), ("DISK_GB", kind.local_gb)):
            inventories.append({"provider_id": key, "resource_class": name, "total": total, "reserved": 0,
                                "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": RATIOS[name]})
            taken = int(total * RATIOS[name] * share * rng.uniform(0.9, 1.0))
            if taken:
                allocations.append({"provider_id": key, "consumer": _id("guest", number), "resource_class": name,
                                    "used": taken})
    insert_all(tx, api_tables.inventories, inventories)
    insert_all(tx, api_tables.allocations, allocations)
