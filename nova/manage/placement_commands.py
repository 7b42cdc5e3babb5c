"""``nova-manage placement``: compare allocations with the needs of servers, and both with the hosts' inventories.

All commands work while the cloud runs (see :mod:`nova.conductor.upkeep.allocation_audit`). Exit codes are upstream's
for the commands that upstream has. ``rebuild``: 0 done, or nothing to do; 1 not all could be corrected; 3
(``--dry-run``) something would change.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast

from nova import errors
from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Audited, Stores
from nova.db.placement import audits
from nova.model.placement.audits import MISSING, TOO_MUCH, Difference, summary

Say = Callable[[str], None]


class ProviderRoot(Protocol):
    """The row of a node at the root of a provider's tree."""

    @property
    def id(self) -> int:
        """The key of the provider."""

    @property
    def host(self) -> str:
        """The host of the node."""

    @property
    def name(self) -> str:
        """The name of the node."""


CLEAN, FOUND, DELETED = 0, 3, 4  # audit
HEALED, LIMITED, NO_NODE, UNWRITTEN, NOTHING = 0, 1, 2, 3, 4  # heal_allocations
BAD_INPUT = 127
WOULD_CHANGE = 3  # rebuild --dry-run


def audit(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Report allocations of servers that are deleted or have left the node, and missing or wrong allocations."""
    tree: ProviderRoot | None = None
    if given.resource_provider:
        with stores.api.reading() as tx:
            tree = cast(ProviderRoot | None, audits.root_of(tx, given.resource_provider))
        if tree is None:
            say(f"Resource provider {given.resource_provider} could not be found.")
            return BAD_INPUT
    found = list(_differences(_audited(stores, tree, TOO_MUCH if given.delete else (), given.verbose, say), tree))
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
        say("To create missing ones: nova-manage placement heal_allocations; to correct wrong ones: add --force.")
    return FOUND if not given.delete else DELETED if len(rest) < len(found) else FOUND


def _audited(stores: Stores, tree: ProviderRoot | None, cure: Iterable[str], verbose: bool, say: Say
             ) -> Iterator[Audited]:
    for uuid in allocation_audit.review(stores, tree.id if tree is not None else None):
        one = allocation_audit.audit(stores, uuid, tuple(cure))
        if one.unsure and verbose:
            say(f"server {uuid}: not checked: {one.unsure}")
        yield one


def _differences(found: Iterable[Audited], tree: ProviderRoot | None) -> Iterator[Difference]:
    """Yield the differences, only those of one node if ``tree`` is given."""
    for audited in found:
        yield from (one for one in audited.differences
                    if tree is None or (one.place.host, one.place.node) == (tree.host, tree.name))


def _say_overuse(stores: Stores, tree: ProviderRoot | None, say: Say) -> None:
    """Print overused inventories. The records are not at fault: the host, or its allocation ratio, shrank."""
    with stores.api.reading() as tx:
        found = audits.overused(tx, tree.host if tree is not None else None)
    for one in found:
        say(f"{one.host} ({one.provider}) has capacity for {one.capacity} {one.resource_class}, but {one.used} are in "
            "use: no more can be allocated until usage drops")


def heal(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Create allocations of servers that have none on their node; with ``--force``, also correct wrong allocations.
    A dry run heals nothing, and its exit status says so."""
    if given.max_count is not None and given.max_count <= 0:
        say("--max-count must be at least 1.")
        return BAD_INPUT
    if given.instance and not _exists(stores, given.instance):
        say(f"--instance {given.instance}: server could not be found.")
        return BAD_INPUT
    kinds = allocation_audit.ALL if given.force else (MISSING,)
    worst, healed = HEALED, 0
    for uuid in [given.instance] if given.instance else allocation_audit.review(stores):
        if given.max_count is not None and healed >= given.max_count:
            say(f"{healed} servers are healed. There may be more: --max-count is reached.")
            return worst or LIMITED
        audited = allocation_audit.audit(stores, uuid, () if given.dry_run else kinds)
        mine = [one for one in audited.differences if one.kind in kinds]
        if audited.failed is not None:
            say(f"not healed: {audited.failed.message}")
            worst = NO_NODE if isinstance(audited.failed, errors.quota.AuditNoNode) else worst or UNWRITTEN
            continue
        if audited.unsure and (given.verbose or given.instance):
            say(f"server {uuid}: not checked: {audited.unsure}")
        healed += bool(mine)
        for one in mine if given.verbose or given.dry_run else ():
            say(("would heal: " if given.dry_run else "healed: ") + one.words())
    if worst:
        return worst
    say(f"{healed} servers {'would be' if given.dry_run else 'are'} healed." if healed else
        "Nothing to heal: every server without an operation in progress has its allocations.")
    return HEALED if healed and not given.dry_run else NOTHING


def _exists(stores: Stores, uuid: str) -> bool:
    with stores.cell.reading() as tx:
        return audits.server_exists(tx, uuid)


def sync_aggregates(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Print that there is nothing to do, and return 0. Upstream's command copies aggregates to Placement."""
    say("Nothing to do: Placement's API shows the host aggregates directly.")
    return 0


def rebuild(stores: Stores, given: argparse.Namespace, say: Say) -> int:
    """Derive inventories from the hosts' last reports again, and allocations from the servers' hosts."""
    would = "would be " if given.dry_run else ""
    changed = failed = 0
    for host in allocation_audit.rebuild_inventories(stores, change=not given.dry_run):
        changed += 1
        say(f"{host}: its providers {would or 'are '}restored to its last report")
    for uuid in allocation_audit.review(stores):
        audited = allocation_audit.audit(stores, uuid, () if given.dry_run else allocation_audit.ALL)
        if audited.failed is not None:
            failed += 1
            say(f"not corrected: {audited.failed.message}")
            continue
        if audited.unsure and given.verbose:
            say(f"server {uuid}: skipped: {audited.unsure}")
        changed += bool(audited.differences)
        for one in audited.differences:
            say(f"{would}corrected: {one.words()}")
    _say_overuse(stores, None, say)
    if not changed and not failed:
        say("Nothing to change: inventories match the hosts' reports, and allocations match the servers' needs.")
    return 1 if failed else WOULD_CHANGE if changed and given.dry_run else 0


__all__ = ["audit", "heal", "rebuild", "sync_aggregates"]
