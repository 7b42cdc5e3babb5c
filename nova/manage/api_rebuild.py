"""``nova-manage api_db rebuild``: the api database that was lost, derived again from the cell's records of servers."""

from __future__ import annotations

import argparse
import functools
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator

from nova import errors
from nova.conf.base import Options
from nova.db import keypairs
from nova.db.schema import lost_api
from nova.db.sql.engine import Database
from nova.db.sql.types import AnyRow
from nova.manage.command import Command, argument
from nova.manage.databases import synced
from nova.manage.output import say_now
from nova.model.flavor.flavors import Flavor
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_groups import hinted
from nova.web import keys

WOULD_CHANGE = 3
PAGE = 500
LOST = ("Not derived, for no record has it: limits of projects, flavors and key pairs that no server has, aggregates "
        "that are no zones, server groups, and what was written by Placement's API. Now: nova-manage placement rebuild")


class Evidence:
    """What servers prove of other things; of two servers that say different things the newer one is right."""

    def __init__(self, default_zone: str) -> None:
        self._default_zone = default_zone
        self.flavors: dict[str, Flavor] = {}
        self.projects: dict[str, set[str]] = defaultdict(set)  # flavor's id -> who has servers of it
        self.keypairs: dict[tuple[str, str], NewKeypair] = {}
        self.zones: dict[str, str] = {}  # by host
        self.groups: Counter[str] = Counter()  # servers that were asked into it

    def add(self, row: AnyRow) -> None:
        """Rows come in the order of their making."""
        self.flavors[row.flavor.flavorid] = row.flavor
        self.projects[row.flavor.flavorid].add(row.project_id)
        zone = row.pinned_availability_zone or row.availability_zone
        if row.host and zone and zone != self._default_zone:
            self.zones[row.host] = zone
        if row.key_name and row.public_key:
            self._add_key(row)
        if group := hinted(row.scheduler_hints or {}):
            self.groups[str(uuid.UUID(group))] += 1

    def _add_key(self, row: AnyRow) -> None:
        try:
            fingerprint = keys.fingerprint(row.key_type, row.public_key)
        except errors.NovaError:
            return  # older rules took it; its server has it
        self.keypairs[row.user_id, row.key_name] = NewKeypair(
            name=row.key_name, user_id=row.user_id, type=row.key_type, fingerprint=fingerprint,
            public_key=row.public_key)


def rebuild(options: Options, given: argparse.Namespace) -> int:
    """0 done, or nothing to do; 1 not all could be made; 3 (--dry-run) something is missing. Daemons may run: what is
    there is left as it is, and a repetition adds nothing."""
    api, cell = synced(options, "api"), synced(options, "cell")
    evidence, change, missing, failed = Evidence(options.default_availability_zone), not given.dry_run, 0, 0
    ledger = _ledger(api, cell, evidence, change)
    if ledger:
        say_now(f"{_verb(change)} {ledger} ledger rows: quota counts these servers{' again' if change else ''}")
    for what, make in _others(api, evidence):
        missing += 1
        try:
            if change:
                make()
        except errors.NovaError as error:
            failed += 1
            say_now(f"not made: {what}: {error.message}")
        else:
            say_now(f"{_verb(change)} {what}")
    _say_lost_groups(api, evidence)
    say_now(LOST if ledger or missing else "Nothing is missing that servers' records prove.")
    return 1 if failed else WOULD_CHANGE if given.dry_run and (ledger or missing) else 0


def _verb(change: bool) -> str:
    return "made" if change else "would make"


def _ledger(api: Database, cell: Database, evidence: Evidence, change: bool) -> int:
    """Read all servers, a page at a time, and give those a ledger row that have none: how many."""
    count, after = 0, 0
    while True:
        with cell.reading() as tx:
            page = lost_api.living(tx, after, PAGE)
        for row in page:
            evidence.add(row)
        if page:
            with api.reading() as tx:
                missing = lost_api.without_ledger_row(tx, page)
            if missing and change:
                api.transact(functools.partial(lost_api.open_rows, rows=missing))
            count, after = count + len(missing), page[-1].id
        if len(page) < PAGE:
            return count


def _others(api: Database, evidence: Evidence) -> Iterator[tuple[str, functools.partial[None]]]:
    """(what is missing, what makes it)."""
    with api.reading() as tx:
        flavors = lost_api.missing_flavors(tx, evidence.flavors)
        pairs = lost_api.missing_keypairs(tx, evidence.keypairs)
        zones = lost_api.missing_zones(tx, evidence.zones)
    for flavor in flavors:
        projects = () if flavor.is_public else sorted(evidence.projects[flavor.flavorid])
        access = f", for projects {', '.join(projects)}" if projects else ""
        yield (f"flavor {flavor.name} ({flavor.flavorid}){access}",
               functools.partial(api.transact, functools.partial(lost_api.add_flavor, flavor=flavor,
                                                                 projects=projects)))
    for pair in pairs:
        yield (f"key pair {pair.name} of user {pair.user_id}",
               functools.partial(api.transact, functools.partial(keypairs.insert, keypair=pair)))
    for zone, hosts in zones.items():
        yield (f"zone {zone}, of hosts {', '.join(hosts)}",
               functools.partial(api.transact, functools.partial(lost_api.add_zone, zone=zone, hosts=hosts)))


def _say_lost_groups(api: Database, evidence: Evidence) -> None:
    with api.reading() as tx:
        missing = lost_api.missing_groups(tx, sorted(evidence.groups))
    for group in missing:
        say_now(f"lost: server group {group}, of {evidence.groups[group]} servers: its policy is in no record")


REBUILD = Command(rebuild, "make again what servers' records prove, after the api database was lost", (
    argument("--dry-run", action="store_true", help="only say what is missing (exit status 3 if anything is)"),))
