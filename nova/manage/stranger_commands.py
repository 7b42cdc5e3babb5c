"""``nova-manage orphan``: guests, files, ports and allocations without a record."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

from nova.manage.command import JSON, Command, ConductorOf, argument
from nova.manage.output import write_json
from nova.model.guest.strangers import Stranger, StrangerKind
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]

SIGHTINGS = 2  # a host reports what it saw twice
LOOK_S = 3.0  # seconds in which most hosts have looked


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """The oldest first; with ``--all`` those that are over, too, and how they ended. ``--now``: hosts look first."""
    for _sighting in range(SIGHTINGS if given.now else 0):
        conductor.look_for_strangers(given.host)
        time.sleep(LOOK_S)
    found = [one for one in conductor.list_strangers(given.all) if given.host in (None, one.host)]
    if given.json:
        return write_json(found)
    if not found:
        say("Records explain everything that hosts reported and the ledger has.")
        return 0
    table(("Id", "Kind", "Host", "Server", "Since", "State", "Why"),
          [(one.id, one.kind, one.host, one.server_uuid, one.first_seen_at, _state(one), one.why) for one in found])
    return 0


def _state(one: Stranger) -> str:
    if one.ended_at is not None:
        return f"{one.ending} {one.ended_at}"
    return f"removal ordered {one.ordered_at}" if one.ordered_at is not None else "left as it is"


def remove(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """0: ordered, or done. 1: without --yes, it is only shown. NotFound; Conflict: a record explains it by now."""
    if not given.yes:
        found = [one for one in conductor.list_strangers(False) if one.id == given.id]
        table(("Id", "Kind", "Host", "Server", "Why"),
              [(one.id, one.kind, one.host, one.server_uuid, one.why) for one in found])
        say("This would be removed for good: a guest with its disks. Repeat with --yes to do it." if found else
            f"There is no orphan {given.id}: see nova-manage orphan list.")
        return 1
    one = conductor.remove_stranger(given.id)
    say("It is done." if one.kind in (StrangerKind.ALLOCATION, StrangerKind.PORT) else
        f"{one.host} removes it when its nova-compute is up, unless a record explains it by then. When it is gone, "
        "'nova-manage orphan list --all' shows it.")
    return 0


def adopt(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """0: it is a server's. 1: without --yes, it is only shown. NotFound; Conflict: it cannot be adopted."""
    found = conductor.adopt_stranger(given.id, given.yes)
    table(("Server", "Name", "Project", "User", "Flavor", "Host", "State", "Addresses"),
          [(found.stranger.server_uuid, found.name, found.project_id, found.user_id, found.flavor, found.stranger.host,
            found.vm_state, ", ".join(found.addresses))])
    for note in found.notes:
        say(note)
    what = "No record knows it: one is made" if found.is_new else \
        f"Its record says that it is on {found.former_host or 'no host'}: it is put right"
    say("It is done." if given.yes else f"{what}, as {found.stranger.host} says. Believe that host? Repeat with --yes.")
    return 0 if given.yes else 1


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table of commands."""
    return {
        "list": Command(lambda options, given: listed(conductor_of(options), given, say, table),
                        "list orphans: guests, files, ports and allocations without a record", (
            argument("--host", help="only this host's"),
            argument("--now", action="store_true", help="have hosts look now, and not in ten minutes at most"),
            argument("--all", action="store_true", help="also orphans that are gone, and how they ended"), JSON)),
        "adopt": Command(lambda options, given: adopt(conductor_of(options), given, say, table),
                         "make a guest a server again, as after a restore of older databases", (
            argument("id", type=int, help="as orphan list shows it"),
            argument("--yes", action="store_true", help="do it; without it, only show what it would be"))),
        "remove": Command(lambda options, given: remove(conductor_of(options), given, say, table),
                          "remove an orphan from its host", (
            argument("id", type=int, help="as orphan list shows it"),
            argument("--yes", action="store_true", help="do it; without it, only show what would be removed")))}
