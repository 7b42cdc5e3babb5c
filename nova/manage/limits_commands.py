"""``nova-manage limits``: limits that are in our database, written to Keystone, which keeps unified limits.

What Keystone has already stays. A run that was cut off is said again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nova import errors
from nova.conductor.engine.limits import NAMES
from nova.conf import quota
from nova.conf.base import Options
from nova.db import quotas
from nova.db.engine import Database
from nova.manage.command import Command, argument
from nova.manage.database_commands import synced
from nova.model.quotas import DEFAULT_CLASS

if TYPE_CHECKING:
    from nova.clients.keystone import Keystone

Say = Callable[[str], None]

#: What the Compute API calls a limit -> the name it is registered by.
REGISTERED = {ours: name for name, ours in NAMES.items()}


class LimitsMigration(NamedTuple):
    """``project_id`` None: of all projects. ``dry``: nothing is written. ``tell``: hears of each limit."""

    project_id: str | None = None
    dry: bool = False
    tell: Say = lambda _line: None


def migrate(api: Database, keystone: Keystone, defaults: Mapping[str, int], asked: LimitsMigration, say: Say
            ) -> int:
    """0; 1 when some could not be written. What Keystone says of the first request is raised."""
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
        say(f"{users} users have limits of their own in a project: Keystone has no such limits: they will not count.")
    if failed:
        say(f"The limits of {len(failed)} projects could not be written. Mend what is said above, and try again.")
    return int(bool(failed))


def _migrate_one(keystone: Keystone, project: str, own: Mapping[str, int], asked: LimitsMigration,
                 say: Say) -> bool:
    """One that Keystone refuses keeps no other back."""
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
    """What Keystone has not got, by its names."""
    wanted = {REGISTERED[name]: limit for name, limit in ours.items() if name in REGISTERED}
    for name, limit in sorted(wanted.items()):
        if name not in theirs:
            tell(f"{whose}: {name} = {limit}")
        elif theirs[name] != limit:
            tell(f"{whose}: {name} stays {theirs[name]}, as Keystone has it; here it is {limit}")
    return {name: limit for name, limit in wanted.items() if name not in theirs}


def _run(options: Options, given: argparse.Namespace, say: Say) -> int:
    from nova.clients import keystone, session

    credentials = session.load(options, "oslo_limit")
    if credentials.auth is None:
        say("There are no credentials for Keystone: set [oslo_limit]auth_type, auth_url, username and password. An "
            "administrator is needed to write limits: system_scope = all, and the role admin there.")
        return 1
    if given.region_id is not None:
        options.set_override("endpoint_region_name", given.region_id, "oslo_limit")
    asked = LimitsMigration(given.project_id, given.dry_run)
    if given.verbose or given.dry_run:
        asked = asked._replace(tell=say)
    defaults = {quota.API_NAMES.get(name, name): options.quota[name] for name in quota.LIMITS}
    code = migrate(synced(options, "api"), keystone.of_groups(options.oslo_limit, credentials), defaults, asked,
                   say)
    say("Nothing was written." if given.dry_run else "Done." if not code else "Not all could be written.")
    if not code and not given.dry_run:
        say("To have them count, set [quota]driver = nova.quota.UnifiedLimitsDriver, and restart the conductors.")
    return code


def actions(say: Say) -> dict[str, Command]:
    """The rows of nova-manage's table."""
    return {"migrate_to_unified_limits": Command(
        lambda options, given: _run(options, given, say), "write limits to Keystone, which keeps unified limits", (
            argument("--project-id", metavar="UUID", help="only this project's own, beside those of all projects"),
            argument("--region-id", metavar="REGION", help="the region in which they are registered"),
            argument("--verbose", action="store_true", help="say each limit that is written"),
            argument("--dry-run", action="store_true", help="only say what would be written")))}
