"""``nova-manage placement``: what is held of hosts against what servers need, and both against what hosts report.

All of them work while the cloud does (see :mod:`nova.conductor.upkeep.allocation_audit`). Exit codes are upstream's
where it has the command; ``rebuild``: 0 done, or nothing to do; 1 not all could be corrected; 3 (``--dry-run``)
something would change.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

from nova import errors
from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Judged, Stores
from nova.db.placement import audits
from nova.model.base import Library
from nova.model.placement.audits import MISSING, TOO_MUCH, Difference, summary

Say = Callable[[str], None]

CLEAN, FOUND, DELETED = 0, 3, 4  # audit
HEALED, LIMITED, NO_NODE, UNWRITTEN, NOTHING = 0, 1, 2, 3, 4  # heal_allocations
BAD_INPUT = 127
WOULD_CHANGE = 3  # rebuild --dry-run


def audit(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Allocations of what is no more, or is not there any more; those that are missing or wrong are told, too."""
    tree = None
    if given.resource_provider:
        with stores.api.reading() as tx:
            tree = audits.root_of(tx, given.resource_provider)
        if tree is None:
            say(f"There is no resource provider {given.resource_provider}.")
            return BAD_INPUT
    found = list(_differences(_judged(stores, tree, TOO_MUCH if given.delete else (), given.verbose, say), tree))
    for one in found:
        done = "deleted: " if given.delete and one.kind in TOO_MUCH else ""
        say(done + one.words())
    _say_overuse(stores, tree, say)
    if not found:
        say("Every allocation belongs to a server or a move of one, and every server has its allocations.")
        return CLEAN
    rest = [one for one in found if one.kind not in TOO_MUCH]
    say(f"Found: {summary(found)}.")
    if rest:
        say("Missing ones: nova-manage placement heal_allocations; wrong ones: the same with --force.")
    return FOUND if not given.delete else DELETED if len(rest) < len(found) else FOUND


def _judged(stores: Stores, tree: Library, cure: Iterable[str], verbose: bool, say: Say) -> Iterator[Judged]:
    for uuid in allocation_audit.review(stores, tree.id if tree is not None else None):
        one = allocation_audit.judge(stores, uuid, tuple(cure))
        if one.unsure and verbose:
            say(f"server {uuid}: nothing is said of it, for {one.unsure}")
        yield one


def _differences(found: Iterable[Judged], tree: Library) -> Iterator[Difference]:
    """Of one node, where one was asked about."""
    for judged in found:
        yield from (one for one in judged.differences
                    if tree is None or (one.place.host, one.place.node) == (tree.host, tree.name))


def _say_overuse(stores: Stores, tree: Library, say: Say) -> None:
    """No fault of the records: a host shrank, or its ratio did."""
    with stores.api.reading() as tx:
        found = audits.overused(tx, tree.host if tree is not None else None)
    for one in found:
        say(f"{one.host} ({one.provider}) has room for {one.capacity} {one.resource_class}, and {one.used} are in use: "
            "it takes no more until some are given back")


def heal(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Allocations of servers that have none where they are; with ``--force``, those that differ are written anew.
    A dry run heals nothing, so that its exit status says so."""
    if given.max_count is not None and given.max_count <= 0:
        say("--max-count must be at least 1.")
        return BAD_INPUT
    if given.instance and not _exists(stores, given.instance):
        say(f"--instance {given.instance}: there is no such server.")
        return BAD_INPUT
    kinds = allocation_audit.ALL if given.force else (MISSING,)
    worst, healed = HEALED, 0
    for uuid in [given.instance] if given.instance else allocation_audit.review(stores):
        if given.max_count is not None and healed >= given.max_count:
            say(f"{healed} servers are healed, and there may be more: --max-count is reached.")
            return worst or LIMITED
        judged = allocation_audit.judge(stores, uuid, () if given.dry_run else kinds)
        mine = [one for one in judged.differences if one.kind in kinds]
        if judged.failed is not None:
            say(f"not healed: {judged.failed.message}")
            worst = NO_NODE if isinstance(judged.failed, errors.quota.AuditNoNode) else worst or UNWRITTEN
            continue
        if judged.unsure and (given.verbose or given.instance):
            say(f"server {uuid}: nothing is said of it, for {judged.unsure}")
        healed += bool(mine)
        for one in mine if given.verbose or given.dry_run else ():
            say(("would heal: " if given.dry_run else "healed: ") + one.words())
    if worst:
        return worst
    say(f"{healed} servers {'would be' if given.dry_run else 'are'} healed." if healed else
        "Nothing to heal: every server that nothing works on has its allocations.")
    return HEALED if healed and not given.dry_run else NOTHING


def _exists(stores: Stores, uuid: str) -> bool:
    with stores.cell.reading() as tx:
        return audits.server_exists(tx, uuid)


def sync_aggregates(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """0 always. Upstream's command copies aggregates to Placement."""
    say("Nothing to do: Placement's API shows the aggregates of hosts themselves.")
    return 0


def rebuild(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Inventories by what hosts reported last, and allocations by where servers are, both derived again."""
    would = "would be " if given.dry_run else ""
    changed = failed = 0
    for host in allocation_audit.rebuild_inventories(stores, change=not given.dry_run):
        changed += 1
        say(f"{host}: its providers {would or 'are '}as it reported them last")
    for uuid in allocation_audit.review(stores):
        judged = allocation_audit.judge(stores, uuid, () if given.dry_run else allocation_audit.ALL)
        if judged.failed is not None:
            failed += 1
            say(f"not corrected: {judged.failed.message}")
            continue
        if judged.unsure and given.verbose:
            say(f"server {uuid}: left alone, for {judged.unsure}")
        changed += bool(judged.differences)
        for one in judged.differences:
            say(f"{would}corrected: {one.words()}")
    _say_overuse(stores, None, say)
    if not changed and not failed:
        say("Nothing to change: inventories are as hosts reported them, allocations are as servers need them.")
    return 1 if failed else WOULD_CHANGE if changed and given.dry_run else 0


__all__ = ["audit", "heal", "rebuild", "sync_aggregates"]
