"""``nova-manage limits``: copy the limits in nova's database to Keystone, which keeps unified limits.

Limits that Keystone has already are unchanged. An interrupted run can be repeated. Exit codes are upstream's: 0 done; 1
not all could be written; 3 flavors need resources for which no limit is registered, listed in a table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nova import errors
from nova.conductor.quota.limits import NAMES
from nova.conf import quota
from nova.conf._options import Options
from nova.db import flavors
from nova.db.quota import class_usage, quotas
from nova.db.sql.engine import Connection, Database
from nova.manage.command import Command, Table, argument
from nova.manage.databases import synced
from nova.model.base import Page
from nova.model.flavor.flavors import Flavor, FlavorQuery
from nova.model.quota import counting
from nova.model.quota.quotas import DEFAULT_CLASS

if TYPE_CHECKING:
    from nova.clients.keystone import Keystone

Say = Callable[[str], None]

UNREGISTERED = 3
PAGE = 500  # flavors

#: A limit's name in the Compute API -> its registered name in Keystone.
REGISTERED = {ours: name for name, ours in NAMES.items()}


class LimitsMigration(NamedTuple):
    """Options of a migration. ``project_id`` None: all projects. ``dry``: write nothing. ``tell``: called for each
    limit."""

    project_id: str | None = None
    dry: bool = False
    tell: Say = lambda _line: None


def migrate(api: Database, keystone: Keystone, defaults: Mapping[str, int], asked: LimitsMigration, say: Say
            ) -> int:
    """Write the limits to Keystone. Return 0; 1 if some could not be written. Raises Keystone's error of the first
    request."""
    with api.reading() as tx:
        everybody = {**defaults, **quotas.class_limits(tx, DEFAULT_CLASS)}
        projects, users = quotas.of_projects(tx), quotas.count_users(tx)
    if asked.project_id is not None:
        projects = {asked.project_id: projects.get(asked.project_id, {})}
    missing = _missing("all projects", everybody, keystone.limits("").registered, asked.tell)
    if missing and not asked.dry:
        keystone.register(missing)
    failed = [project for project, own in projects.items() if not _migrate_one(keystone, project, own, asked, say)]
    if users:
        say(f"{users} users have their own limits in a project. Keystone has no such limits: they will not apply.")
    if failed:
        say(f"The limits of {len(failed)} projects could not be written. Fix the errors above, and try again.")
    return int(bool(failed))


def _migrate_one(keystone: Keystone, project: str, own: Mapping[str, int], asked: LimitsMigration,
                 say: Say) -> bool:
    """Write a project's limits. Return False if Keystone refuses them, so that other projects are still migrated."""
    try:
        missing = _missing(f"project {project}", own, keystone.limits(project).own, asked.tell)
        if missing and not asked.dry:
            keystone.limit(project, missing)
    except errors.Unavailable:
        raise
    except errors.NovaError as error:
        say(f"project {project}: {error.message}")
        return False
    return True


def _missing(whose: str, ours: Mapping[str, int], theirs: Mapping[str, int], tell: Say) -> dict[str, int]:
    """Return the limits that Keystone lacks, by their registered names."""
    wanted = {REGISTERED[name]: limit for name, limit in ours.items() if name in REGISTERED}
    for name, limit in sorted(wanted.items()):
        if name not in theirs:
            tell(f"{whose}: {name} = {limit}")
        elif theirs[name] != limit:
            tell(f"{whose}: {name} stays {theirs[name]}, Keystone's value; nova's value is {limit}")
    return {name: limit for name, limit in wanted.items() if name not in theirs}


# -- unregistered resources

def unregistered(api: Database, keystone: Keystone, embedded: bool) -> list[str]:
    """Return the sorted names of resources that flavors use and that have no registered limit. ``embedded``: also those
    of deleted flavors that servers still have. Raises Keystone's error."""
    with api.reading() as tx:
        needed = {f"class:{name}" for flavor in _flavors(tx) for name in counting.classes(flavor, {})}
        needed |= class_usage.names(tx) if embedded else set()
    return sorted(needed - set(keystone.limits("").registered))


def _flavors(tx: Connection) -> Iterator[Flavor]:
    marker = None
    while page := flavors.select(tx, FlavorQuery(is_public=None, page=Page(marker=marker)), PAGE):
        yield from page
        marker = page[-1].flavorid


def _tell_unregistered(names: Sequence[str], say: Say, table: Table) -> None:
    table(("Resource", "Registered Limit"), [(name, "missing") for name in names])
    say("Flavors use these resources, but Keystone has no registered limits for them: their effect depends on "
        "[quota]unified_limits_resource_strategy and unified_limits_resource_list. To register one: openstack "
        "registered limit create.")


# -- the command

def _run(options: Options, given: argparse.Namespace, say: Say, table: Table) -> int:
    said = _quiet if given.quiet else say
    keystone = _keystone(options, given)
    if keystone is None:
        say("No credentials for Keystone: set [oslo_limit]auth_type, auth_url, username and password. Only an "
            "administrator can write limits: system_scope = all, with the role admin there.")
        return 1
    api = synced(options, "api")
    defaults = {quota.API_NAMES.get(name, name): getattr(options.quota, name) for name in quota.LIMITS}
    tell = said if given.verbose or given.dry_run else _quiet
    code = migrate(api, keystone, defaults, LimitsMigration(given.project_id, given.dry_run, tell), said)
    said("Nothing was written." if given.dry_run else "Done." if not code else "Not all could be written.")
    if code:
        return code
    missing = unregistered(api, keystone, given.embedded_flavor_scan)
    if given.dry_run:  # a run that is not dry would register these
        missing = [name for name in missing if name not in NAMES]
    if missing and not given.quiet:
        _tell_unregistered(missing, say, table)
    if not given.dry_run:
        said("To enforce them, set [quota]driver = nova.quota.UnifiedLimitsDriver, and restart the conductors.")
    return UNREGISTERED if missing else 0


def _quiet(_line: str) -> None:
    """Print nothing."""


def _keystone(options: Options, given: argparse.Namespace) -> Keystone | None:
    """Return a client of Keystone; None without credentials."""
    from nova.clients import keystone, session

    credentials = session.load(options, "oslo_limit")
    if credentials.auth is None:
        return None
    group = options.oslo_limit
    if given.region_id is not None:
        group = msgspec.structs.replace(group, endpoint_region_name=given.region_id)
    return keystone.of_groups(group, credentials)


def actions(say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {"migrate_to_unified_limits": Command(
        lambda options, given: _run(options, given, say, table),
        "copy limits to Keystone, which keeps unified limits", (
            argument("--project-id", metavar="UUID", help="only this project's limits, and the default limits"),
            argument("--region-id", metavar="REGION", help="the region in which to register the limits"),
            argument("--verbose", action="store_true", help="print each limit that is written"),
            argument("--dry-run", action="store_true", help="only show what would be written"),
            argument("--quiet", action="store_true", help="print only errors; check the exit status"),
            argument("--no-embedded-flavor-scan", action="store_false", dest="embedded_flavor_scan",
                     help="do not check the flavors that servers keep, which may be deleted")))}
