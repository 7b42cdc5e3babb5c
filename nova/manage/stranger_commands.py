"""``nova-manage stranger``: what hosts and the ledger have that no record explains."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nova.manage.command import JSON, Command, ConductorOf, argument
from nova.manage.output import write_json
from nova.model.strangers import Stranger, StrangerKind
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """The oldest first; with ``--all`` those that are over, too, and how they ended."""
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
            f"There is no stranger {given.id}: see nova-manage stranger list.")
        return 1
    one = conductor.remove_stranger(given.id)
    say("It is done." if one.kind in (StrangerKind.ALLOCATION, StrangerKind.PORT) else
        f"{one.host} removes it when its nova-compute is up, unless a record explains it by then. When it is gone, "
        "'nova-manage stranger list --all' shows it.")
    return 0


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table of commands."""
    return {
        "list": Command(lambda options, given: listed(conductor_of(options), given, say, table),
                        "guests, files and allocations that no record explains", (
            argument("--host", help="only this host's"),
            argument("--all", action="store_true", help="those that are over, too, and how they ended"), JSON)),
        "remove": Command(lambda options, given: remove(conductor_of(options), given, say, table),
                          "have one removed from its host", (
            argument("id", type=int, help="as stranger list shows it"),
            argument("--yes", action="store_true", help="do it; without it, only show what would be removed")))}
