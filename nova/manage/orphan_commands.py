"""``nova-manage orphan``: guests, files, ports and allocations without a record."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from nova.manage.command import JSON, Command, ConductorOf, Table, argument
from nova.manage.output import write_json
from nova.model.guest.orphans import Orphan, OrphanKind
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

SIGHTINGS = 2  # a host reports an orphan that it has seen twice
LOOK_S = 3.0  # seconds in which most hosts complete a check


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List orphans, the oldest first; with ``--all`` also ended ones, and how they ended. ``--now``: hosts check
    first."""
    for _sighting in range(SIGHTINGS if given.now else 0):
        conductor.look_for_strangers(given.host)
        time.sleep(LOOK_S)
    found = [one for one in conductor.list_strangers(given.all) if given.host in (None, one.host)]
    if given.json:
        return write_json(found)
    if not found:
        say("No orphans: everything that hosts reported, and all allocations, have a record.")
        return 0
    table(("Id", "Kind", "Host", "Server", "Since", "State", "Why"),
          [(one.id, one.kind, one.host, one.server_uuid, one.first_seen_at, _state(one), one.why) for one in found])
    return 0


def _state(one: Orphan) -> str:
    if one.ended_at is not None:
        return f"{one.ending} {one.ended_at}"
    return f"removal ordered {one.ordered_at}" if one.ordered_at is not None else "kept"


def remove(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Remove an orphan. Return 0 if removed, or its removal is ordered; 1 without --yes, which only shows it.

    Raises NotFound; Conflict if it has a record by now."""
    if not given.yes:
        found = [one for one in conductor.list_strangers(False) if one.id == given.id]
        table(("Id", "Kind", "Host", "Server", "Why"),
              [(one.id, one.kind, one.host, one.server_uuid, one.why) for one in found])
        say("This would be removed permanently: a guest with its disks. Repeat with --yes to remove it." if found else
            f"Unknown orphan {given.id}: see nova-manage orphan list.")
        return 1
    one = conductor.remove_stranger(given.id)
    say("The orphan is removed." if one.kind in (OrphanKind.ALLOCATION, OrphanKind.PORT) else
        f"{one.host} removes it when its nova-compute is up, unless it has a record by then. After the removal, "
        "'nova-manage orphan list --all' shows it.")
    return 0


def adopt(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Make a guest a server again. Return 0; 1 without --yes, which only shows the server.

    Raises NotFound; Conflict if the guest cannot be adopted."""
    found = conductor.adopt_stranger(given.id, given.yes)
    table(("Server", "Name", "Project", "User", "Flavor", "Host", "State", "Addresses"),
          [(found.orphan.server_uuid, found.name, found.project_id, found.user_id, found.flavor, found.orphan.host,
            found.vm_state, ", ".join(found.addresses))])
    for note in found.notes:
        say(note)
    what = "The server has no record: one would be created" if found.is_new else \
        f"Its record has it on {found.former_host or 'no host'}: that would be corrected"
    say("It is done." if given.yes else f"{what} from the report of {found.orphan.host}. If you trust that host, "
        "repeat with --yes.")
    return 0 if given.yes else 1


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {
        "list": Command(lambda options, given: listed(conductor_of(options), given, say, table),
                        "list orphans: guests, files, ports and allocations without a record", (
            argument("--host", help="only orphans of this host"),
            argument("--now", action="store_true", help="make hosts check now instead of within ten minutes"),
            argument("--all", action="store_true", help="also removed and adopted orphans, and how they ended"),
            JSON)),
        "adopt": Command(lambda options, given: adopt(conductor_of(options), given, say, table),
                         "make a guest a server again, as after a restore of older databases", (
            argument("id", type=int, help="as 'orphan list' shows it"),
            argument("--yes", action="store_true", help="apply the change (default: dry run)"))),
        "remove": Command(lambda options, given: remove(conductor_of(options), given, say, table),
                          "remove an orphan from its host", (
            argument("id", type=int, help="as 'orphan list' shows it"),
            argument("--yes", action="store_true", help="apply the change (default: dry run)")))}
