"""The table of nova-manage's commands, by category and action.

A category that needs a database is imported only if the command line names it: SQLAlchemy takes longer to import than
all other modules together.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence

from nova.conf._options import Options
from nova.manage import (
    compat_commands,
    enrolment_commands,
    firewall_commands,
    floating_commands,
    host_commands,
    isolation_table,
    network_commands,
    orphan_commands,
    server_commands,
    service_commands,
    volume_attachment_commands,
    vpn_commands,
    x509_commands,
)
from nova.manage.command import JSON, Command, Run, argument
from nova.manage.output import framed, say, say_now, table, write_json
from nova.model.host.services import PendingCleanup
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.version import RELEASE

Actions = dict[str, Command]


# -- through the conductor

def _conductor(options: Options) -> ConductorRPC:
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    return Bus(options, options.host).client(ConductorRPC)


def _certs(options: Options) -> CertRPC:
    from nova.rpc.contracts.cert import CertRPC
    from nova.rpc.transport import Bus

    return Bus(options, options.host).client(CertRPC)


def host_show(options: Options, given: argparse.Namespace) -> int:
    """Show a compute host. Return 0; 1 if no nova-compute is registered for it."""
    return host_commands.show(_conductor(options), given.host, say, table)


def host_drain(options: Options, given: argparse.Namespace) -> int:
    """Move all servers that can leave the host, several at a time, and print why the others stay."""
    try:
        request = host_commands.drain_request(given)
    except host_commands.BadSkipFile as error:
        say(str(error))
        return 2
    work = host_commands.dry_run if given.dry_run else host_commands.drain
    return work(_conductor(options), request, say_now, table)


def host_undrain(options: Options, given: argparse.Namespace) -> int:
    """Enable a host that a drain disabled. Return 0; 3 if it was enabled; 1 if it was disabled for another reason."""
    return host_commands.undrain(_conductor(options), given.host, say)


def request_show(options: Options, given: argparse.Namespace) -> int:
    """Show the operation history of a request, or of a server, from the journal."""
    from nova.manage import request_commands

    if given.json:
        return request_commands.show_json(_conductor(options), given.request)
    return request_commands.show(_conductor(options), given.request, say, table)


def placement(name: str) -> Run:
    """Return the command for the function of that name in :mod:`nova.manage.placement_commands`, which reads and writes
    the databases directly."""
    def run(options: Options, given: argparse.Namespace) -> int:
        from nova.manage import placement_commands
        from nova.manage.databases import stores

        return int(getattr(placement_commands, name)(stores(options), given, say_now))
    return run


def cleanups_list(options: Options, given: argparse.Namespace) -> int:
    """List pending cleanups: undos that could not reach their hosts. A host runs them automatically once it is back."""
    host = given.named or given.host
    found = _conductor(options).list_debts(host)
    if given.json:
        return write_json(found)
    if not found:
        say("No cleanup is pending." if host is None else f"No cleanup is pending on {host}.")
        return 0
    _cleanup_table(found)
    say("A host runs them when its nova-compute is back. For a lost host: mark it down (openstack compute service "
        "set --down HOST nova-compute), delete its service (openstack compute service delete ID), then run "
        "'nova-manage cleanup drop HOST'.")
    return 0


def cleanups_drop(options: Options, given: argparse.Namespace) -> int:
    """Drop the pending cleanups of a removed host. Without --yes only show them."""
    conductor = _conductor(options)
    if not given.yes:
        found = conductor.list_debts(given.host)
        if not found:
            say(f"No cleanup is pending on {given.host}.")
            return 3
        _cleanup_table(found)
        say(f"These would be dropped, and nothing would be undone on {given.host}: its guests and disks would stay. "
            "Repeat with --yes to drop them.")
        return 1
    dropped = conductor.forgive_debts(given.host)
    say(f"{len(dropped)} cleanups of {given.host} are dropped; their claims there are released."
        if dropped else f"No cleanup is pending on {given.host}.")
    return 0 if dropped else 3


def _cleanup_table(found: Sequence[PendingCleanup]) -> None:
    table(("Host", "Server", "Step", "Since"),
          [(one.host, one.server_uuid, one.step, one.created_at) for one in found])


def flavor_create(options: Options, given: argparse.Namespace) -> int:
    """Create a flavor and print its id and name. Raises Conflict if its id or its name is taken."""
    from nova.model.flavor.flavors import NewFlavor

    made = _conductor(options).create_flavor(NewFlavor(
        name=given.name, flavorid=given.flavor, memory_mb=given.memory, vcpus=given.cpu, root_gb=given.root_gb,
        ephemeral_gb=given.ephemeral_gb, swap_mb=given.swap, is_public=not given.private))
    say(f"{made.flavorid}  {made.name}")
    return 0


def doctor(options: Options, given: argparse.Namespace) -> int:
    """Run the doctor's checks. Return 0 if all succeed; 1 with warnings; 2 if a check failed."""
    from nova.manage import doctor as checks

    return checks.run(options, say, checks.Manner(given.check, given.json))


_VERBOSE = argument("--verbose", action="store_true", help="print more details")
_PLACEMENT = {
    "audit": Command(placement("audit"), "find (and delete) allocations of servers that are gone", (
        _VERBOSE, argument("--resource_provider", metavar="UUID", help="only allocations of this provider's node"),
        argument("--delete", action="store_true", help="delete the allocations that are found"))),
    "heal_allocations": Command(placement("heal"), "create the allocations of servers that have none", (
        argument("--max-count", type=int, metavar="N", help="maximum number of servers to heal"), _VERBOSE,
        argument("--dry-run", action="store_true", help="only show what would be healed"),
        argument("--instance", metavar="UUID", help="only allocations of this server"),
        argument("--skip-port-allocations", action="store_true", help="accepted; ports have no own allocations"),
        argument("--cell", metavar="UUID", help="accepted; there is one cell"),
        argument("--force", action="store_true", help="also correct allocations that differ from the server's needs"))),
    "sync_aggregates": Command(placement("sync_aggregates"), "no effect; prints the reason", (_VERBOSE,)),
    "rebuild": Command(placement("rebuild"), "derive inventories and allocations again from hosts and servers", (
        _VERBOSE, argument("--dry-run", action="store_true", help="only show what would change")))}
_VERSION = argument("version", nargs="?", help="schema revision (default: the newest)")
_PURGE = (argument("--before", metavar="DATE", help="only servers deleted before this date (UTC)"),
          argument("--all", action="store_true", help="all deleted servers"),
          argument("--verbose", action="store_true", help="print the progress"),
          argument("--all-cells", action="store_true", help="accepted; there is one cell"))
_ARCHIVE = (
    argument("--max_rows", type=int, default=1000, metavar="N", help="maximum number of servers to archive (1000)"),
    argument("--before", metavar="DATE", help="only servers deleted before this date (UTC)"),
    argument("--verbose", action="store_true", help="print a table of archived rows"),
    argument("--until-complete", action="store_true", help="archive all servers, --max_rows at a time"),
    argument("--sleep", type=int, metavar="SECONDS", help="wait this long between batches"),
    argument("--purge", action="store_true", help="remove archived servers from the database"),
    argument("--all-cells", action="store_true", help="accepted; there is one cell"),
    argument("--task-log", action="store_true", help="accepted; conductors remove old usage records themselves"))
_HOST = argument("host", help="as 'nova-manage host list' shows it")
_DRAIN = (
    _HOST, argument("--parallel", type=int, default=4, metavar="N", help="number of servers to move at a time (4)"),
    argument("--cold", action="store_true",
             help="migrate running servers cold: each is off while its disks are copied"),
    argument("--to", metavar="HOST", help="move all servers to this host (default: the scheduler selects hosts)"),
    argument("--skip", nargs="+", default=[], metavar="UUID", help="servers that stay"),
    argument("--skip-file", metavar="FILE", help="file of servers that stay, one UUID per line; # starts a comment"),
    argument("--timeout", type=float, metavar="SECONDS",
             help="after this time start no new moves, and do not wait; running moves continue"),
    argument("--dry-run", action="store_true", help="only show what would be done with each server"))
_FLAVOR = (
    argument("--name", required=True), argument("--flavor", help="its id (default: a generated one)"),
    argument("--memory", type=int, required=True, help="MB"), argument("--cpu", type=int, required=True),
    argument("--root_gb", type=int, required=True), argument("--ephemeral_gb", type=int, default=0),
    argument("--swap", type=int, default=0, help="MB"), argument("--private", action="store_true"))

def api_schema(options: Options, given: argparse.Namespace) -> int:
    """Print the OpenAPI document of a version; ``2.0`` means the API under /v2."""
    import json

    from nova.api import openapi

    chosen = openapi.chosen(given.version)
    if chosen is None:
        say(f"--version {given.version}: use a version of the API, such as 2.96 or latest, or 2.0 for /v2.")
        return 2
    say(json.dumps(openapi.document(*chosen), indent=given.indent))
    return 0


CLEANUP_LIST = Command(cleanups_list, "list pending cleanups of hosts that could not be reached", (
    argument("named", nargs="?", metavar="HOST", help="same as --host"),
    argument("--host", help="only cleanups of this host"), JSON))
CLEANUP_DROP = Command(cleanups_drop, "drop the pending cleanups of a removed host", (
    argument("host", help="a host whose nova-compute service was deleted"),
    argument("--yes", action="store_true", help="apply the change (default: dry run)")))

# -- the table

def _api_db() -> Actions:
    from nova.manage.api_rebuild import REBUILD
    from nova.manage.database_commands import sync, version

    return {"sync": Command(sync("api"), "migrate the api database to this release's schema", (_VERSION,)),
            "version": Command(version("api"), "print its schema revision"),
            "rebuild": REBUILD}


def _db() -> Actions:
    from nova.manage.database_commands import archive, online_data_migrations, purge, sync, version

    return {
        "sync": Command(sync("cell"), "migrate the cell database to this release's schema", (
            argument("--local_cell", action="store_true", help="accepted; there is one cell"), _VERSION)),
        "version": Command(version("cell"), "print its schema revision"),
        "purge": Command(purge, "remove the rows of deleted servers", _PURGE),
        "archive_deleted_rows": Command(archive, "hide deleted servers from lists, until they are purged", _ARCHIVE),
        "online_data_migrations": Command(
            online_data_migrations, "migrate rows of an older release, as conductors do in the background", (
                argument("--max-count", type=int, metavar="N", help="change N rows, or a few more, and stop"),)),
        **compat_commands.actions("db", say)}


def _host() -> Actions:
    return {
        **enrolment_commands.actions(_conductor, say, table), **isolation_table.actions(say),
        "show": Command(host_show, "show a compute host: its service, servers, and pending cleanups", (_HOST,)),
        "drain": Command(host_drain, "take a compute host out of use: disable it, and move its servers away. "
                                     "Exit status 0: no server stays, except skipped servers", _DRAIN),
        "undrain": Command(host_undrain, "enable a host that a drain disabled", (_HOST,))}


def _daemon() -> Actions:
    from nova.manage.secret_files import commands

    return commands.daemon_actions(say)


def _secrets() -> Actions:
    from nova.manage.secret_files import commands

    return commands.secrets_actions(say_now)


def _cell_v2() -> Actions:
    from nova.manage import cell_commands
    from nova.manage.databases import of_cell, synced

    return cell_commands.actions(synced, of_cell, say, framed)


def _of_images(category: str) -> Callable[[], Actions]:
    def actions() -> Actions:
        from nova.manage import image_property_commands

        return image_property_commands.actions(say)[category]
    return actions


def _limits() -> Actions:
    from nova.manage import limits_commands

    return limits_commands.actions(say, framed)


def _project() -> Actions:
    return {**network_commands.project_actions(_conductor, say, table), **compat_commands.actions("project", say)}


@functools.cache
def _orphan() -> Actions:
    return orphan_commands.actions(_conductor, say, table)


#: Category -> a function that returns its actions.
COMMANDS: dict[str, Callable[[], Actions]] = {
    "api_db": _api_db,
    "db": _db,
    "service": lambda: service_commands.actions(_conductor, say, table),
    "host": _host,
    "daemon": _daemon,
    "secrets": _secrets,
    "request": lambda: {"show": Command(request_show, "show the history of a request, step by step", (
        argument("request", metavar="REQ_ID|SERVER",
                 help="a request's id (x-openstack-request-id of the response), or a server's UUID"), JSON))},
    "server": lambda: server_commands.actions(_conductor, say, table),
    "placement": lambda: _PLACEMENT,
    "cell_v2": _cell_v2,
    "image_property": _of_images("image_property"),
    "libvirt": _of_images("libvirt"),
    "volume_attachment": lambda: volume_attachment_commands.actions(_conductor, say, table),
    "limits": _limits,
    "orphan": _orphan,
    "stranger": _orphan,
    "cleanup": lambda: {"list": CLEANUP_LIST, "drop": CLEANUP_DROP},
    "debts": lambda: {"list": CLEANUP_LIST, "forgive": CLEANUP_DROP},
    "floating": lambda: floating_commands.actions(_conductor, say, table),
    "network": lambda: network_commands.network_actions(_conductor, say, table),
    "fixed": lambda: network_commands.fixed_actions(_conductor, say, table),
    "project": _project,
    "vpn": lambda: vpn_commands.actions(_conductor, say, table),
    "x509": lambda: x509_commands.actions(_certs, say),
    "firewall": lambda: firewall_commands.actions(_conductor, say, table),
    "flavor": lambda: {"create": Command(flavor_create, "create a flavor", _FLAVOR)},
    "api": lambda: {"schema": Command(api_schema, "print the compute API's OpenAPI document", (
        argument("--version", default="latest", help="version of the API: 2.96, latest, or 2.0 for the API under /v2"),
        argument("--indent", type=int, default=2)))},
}


def _release(_options: object, _given: argparse.Namespace) -> int:
    say(RELEASE)
    return 0


def completion(_options: object, given: argparse.Namespace) -> int:
    """Print the categories, or a category's actions, in one line."""
    if given.query_category:
        say(" ".join(COMMANDS.get(given.query_category, dict)()))
    else:
        say(" ".join((*SINGLE, *COMMANDS)))
    return 0


def _doctor() -> Command:
    from nova.manage import doctor as checks

    return Command(doctor, "check everything that this host's services need, and print cures. Exit status: 0 success, "
                           "1 warnings, 2 failures", (
        JSON, argument("--check", action="append", default=[], choices=checks.NAMES, metavar="NAME",
                       help=f"only this check; repeatable. The checks: `{'`, `'.join(checks.NAMES)}`")))


def _backup() -> Command:
    from nova.manage.backup_commands import BACKUP

    return BACKUP


def _restore() -> Command:
    from nova.manage.backup_commands import RESTORE

    return RESTORE


#: Command without a category -> a function that returns it.
SINGLE: dict[str, Callable[[], Command]] = {
    "doctor": _doctor,
    "backup": _backup,
    "restore": _restore,
    "version": lambda: Command(_release, "print the release"),
    "bash-completion": lambda: Command(completion, "print the categories, for shell completion", (
        argument("query_category", nargs="?", metavar="CATEGORY", help="print the actions of this category"),)),
}
