"""``nova-manage api_db rebuild``: derive a lost api database from the cell's records of servers."""

from __future__ import annotations

import argparse
import functools
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator

from nova import errors
from nova.conductor.upkeep.allocation_audit import Stores
from nova.conf._options import Options
from nova.db import keypairs
from nova.db.schema import api_rebuild
from nova.db.schema.api_rebuild import Proof
from nova.db.sql.engine import Database
from nova.manage.command import Command, argument
from nova.manage.databases import stores
from nova.manage.output import say_now
from nova.model.flavor.flavors import Flavor
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_groups import hinted
from nova.web import keys

WOULD_CHANGE = 3
PAGE = 500
LOST = ("Not derived, because no record has them: project limits, flavors and key pairs without servers, aggregates "
        "that are not zones, server groups, and data written by Placement's API. Next: nova-manage placement rebuild")


class Evidence:
    """Resources that server records prove; if two servers contradict each other, the newer one wins."""

    def __init__(self, default_zone: str) -> None:
        self._default_zone = default_zone
        self.flavors: dict[str, Flavor] = {}
        self.projects: dict[str, set[str]] = defaultdict(set)  # flavor id -> projects with servers of it
        self.keypairs: dict[tuple[str, str], NewKeypair] = {}
        self.zones: dict[str, str] = {}  # by host
        self.groups: Counter[str] = Counter()  # number of servers requested in each group

    def add(self, row: Proof) -> None:
        """Add a server's row; rows must come in the order of their creation."""
        self.flavors[row.flavor.flavorid] = row.flavor
        self.projects[row.flavor.flavorid].add(row.project_id)
        zone = row.pinned_availability_zone or row.availability_zone
        if row.host and zone and zone != self._default_zone:
            self.zones[row.host] = zone
        if row.key_name and row.public_key:
            self._add_key(row)
        if group := hinted(row.scheduler_hints or {}):
            self.groups[str(uuid.UUID(group))] += 1

    def _add_key(self, row: Proof) -> None:
        try:
            fingerprint = keys.fingerprint(row.key_type, row.public_key)
        except errors.NovaError:
            return  # accepted by older rules; only its server has it
        self.keypairs[row.user_id, row.key_name] = NewKeypair(
            name=row.key_name, user_id=row.user_id, type=row.key_type, fingerprint=fingerprint,
            public_key=row.public_key)


def rebuild(options: Options, given: argparse.Namespace) -> int:
    """Derive missing rows of the api database. Return 0 if done, or nothing to do; 1 if not all rows could be created;
    3 (--dry-run) if rows are missing.

    Services may run: existing rows are unchanged, and a repetition adds nothing."""
    both = stores(options)
    api = both.api
    evidence, change, missing, failed = Evidence(options.default_availability_zone), not given.dry_run, 0, 0
    ledger = _ledger(both, evidence, change)
    if ledger:
        say_now(f"{_verb(change)} {ledger} ledger rows: quota counts these servers{' again' if change else ''}")
    for what, make in _others(api, evidence):
        missing += 1
        try:
            if change:
                make()
        except errors.NovaError as error:
            failed += 1
            say_now(f"not created: {what}: {error.message}")
        else:
            say_now(f"{_verb(change)} {what}")
    _say_lost_groups(api, evidence)
    say_now(LOST if ledger or missing else "Nothing to do: no row that server records prove is missing.")
    return 1 if failed else WOULD_CHANGE if given.dry_run and (ledger or missing) else 0


def _verb(change: bool) -> str:
    return "created" if change else "would create"


def _ledger(both: Stores, evidence: Evidence, change: bool) -> int:
    """Read all servers, one page at a time, and create missing ledger rows. Return how many were missing."""
    api, cell, cell_uuid, _cells = both
    count, after = 0, 0
    while True:
        with cell.reading() as tx:
            page = api_rebuild.living(tx, after, PAGE)
        for row in page:
            evidence.add(row)
        if page:
            with api.reading() as tx:
                missing = api_rebuild.without_ledger_row(tx, page)
            if missing and change:
                api.transact(functools.partial(api_rebuild.open_rows, rows=missing, cell=cell_uuid))
            count, after = count + len(missing), page[-1].id
        if len(page) < PAGE:
            return count


def _others(api: Database, evidence: Evidence) -> Iterator[tuple[str, functools.partial[None]]]:
    """Yield (description, function) pairs for all other missing resources; the function creates the resource."""
    with api.reading() as tx:
        flavors = api_rebuild.missing_flavors(tx, evidence.flavors)
        pairs = api_rebuild.missing_keypairs(tx, evidence.keypairs)
        zones = api_rebuild.missing_zones(tx, evidence.zones)
    for flavor in flavors:
        projects = () if flavor.is_public else sorted(evidence.projects[flavor.flavorid])
        access = f", for projects {', '.join(projects)}" if projects else ""
        yield (f"flavor {flavor.name} ({flavor.flavorid}){access}",
               functools.partial(api.transact, functools.partial(api_rebuild.add_flavor, flavor=flavor,
                                                                 projects=projects)))
    for pair in pairs:
        yield (f"key pair {pair.name} of user {pair.user_id}",
               functools.partial(api.transact, functools.partial(keypairs.insert, keypair=pair)))
    for zone, hosts in zones.items():
        yield (f"zone {zone}, of hosts {', '.join(hosts)}",
               functools.partial(api.transact, functools.partial(api_rebuild.add_zone, zone=zone, hosts=hosts)))


def _say_lost_groups(api: Database, evidence: Evidence) -> None:
    with api.reading() as tx:
        missing = api_rebuild.missing_groups(tx, sorted(evidence.groups))
    for group in missing:
        say_now(f"lost: server group {group}, of {evidence.groups[group]} servers: no record has its policy")


REBUILD = Command(rebuild, "derive a lost api database from the records of servers", (
    argument("--dry-run", action="store_true", help="only show missing resources (exit status 3 if any is)"),))
