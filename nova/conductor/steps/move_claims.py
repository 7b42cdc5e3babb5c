"""Claims of a move: quota and both hosts while it runs, its end, and the cleanup after earlier moves."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from nova import errors, failures
from nova.conductor import zones
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op
from nova.conductor.steps.cleanups import clean_up_elsewhere, is_elsewhere
from nova.conductor.steps.guests import ORDERS
from nova.conductor.steps.moves import MoveEnd, MoveStep, ask, counted, move_of, move_order, order_at, remove, source
from nova.conductor.steps.placement import claim_of, cleanup_hosts, reschedule, taken, wanted_flavor
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import migrations
from nova.db.sql.engine import Connection
from nova.model.server.migrations import ERROR, EVACUATION, LIVE_MIGRATION, MIGRATION, RESIZE
from nova.model.server.states import VmState
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

COLD = (MIGRATION, RESIZE)
KEPT_DISKS = (LIVE_MIGRATION, EVACUATION)  # the disks that these create at a destination may be the server's only ones


class CountResize(MoveStep):
    """Count the larger of both flavors against quota while a resize is open; undo: count the old one."""

    uses = ("api",)
    pure = True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        old = source(op).flavor
        count(deps, op, counted(op.server, old, wanted_flavor(op)))
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            count(deps, op, counted(op.server, source(op).flavor))


def count(deps: Deps, op: Op, counted: Mapping[str, object]) -> None:
    """Set the quota usage of the server. Raises Overtaken."""
    deps.api.transact(lambda tx: ledger.count_as(tx, op.uuid, op.entry.epoch, counted))


class ClaimMove(MoveStep):
    """Transfer the server's claim to the move, and claim the destination next to it; undo: restore the claim. Within
    one host both claims are on the same provider."""

    uses = ("api", "cell", "cell_uuid", "cells", "feed", "scheduler", "settings")

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        cell = self._cell_elsewhere(deps, op)
        wanted = claim_of(deps, op, wanted_flavor(op))

        def take(tx: Connection) -> tuple[dict[str, errors.NovaError | None], list[claims.ProviderUsage]]:
            ledger.begin_move(tx, op.uuid, op.entry.epoch, move_of(op))
            return claims.claim(tx, [wanted])
        results, usages = deps.api.transact(take)
        deps.feed.after_claims(usages, [op.uuid])
        refused = results[op.uuid]
        reschedule(deps, op, refused)
        if refused is not None:
            raise refused
        found = zones.for_server(deps, op, usages)
        if isinstance(found, errors.NovaError):
            raise found
        # forget the reports of an earlier destination
        return {**found, "arrival": None, "shared": None, "to_cell": cell.cell_uuid if cell is not None else None}

    @staticmethod
    def _cell_elsewhere(deps: Deps, op: Op) -> Deps | None:
        """Return the cell of the host that the operation took, if it is another one. Raises HostRefused if that cell
        does not answer."""
        with failures.replaced(errors.Unavailable, lambda error: errors.HostRefused(error.message)):
            return deps.cells.of_host_outside(deps.cell_uuid, taken(op).host)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            kept = cleanup_hosts(deps, [op]).get(op.uuid, ())
            unused = op.progress.host if op.progress.to_cell else None  # the server never entered the host's cell
            self._give_back(deps, op, [host for host in kept if host != unused])

    @staticmethod
    def _give_back(deps: Deps, op: Op, kept: Sequence[str]) -> None:
        deps.feed.after_release(deps.api.transact(
            lambda tx: ledger.undo_move(tx, op.uuid, op.entry.epoch, move_of(op), kept)))


class EndMove(MoveStep):
    """End the move: release the claim on the old host, unless it has a pending cleanup of the server."""

    uses = ("api", "cell", "cell_uuid", "cells", "feed")
    pure = True  # may be repeated, and is never undone

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        kept = cleanup_hosts(deps, [op]).get(op.uuid, ())

        def give_back(tx: Connection) -> list[int]:
            changed = ledger.end_move(tx, op.uuid, op.entry.epoch, move_of(op), kept)
            ledger.count_as(tx, op.uuid, op.entry.epoch, counted(op.server, op.server.flavor))
            ledger.describe(tx, op.uuid, op.server.flavor)
            return changed
        deps.feed.after_release(deps.api.transact(give_back))
        return {}


class CleanUpEarlierMoves(MoveStep):
    """Finish this server's overtaken moves (by a reset of its state or an evacuation).

    A guest that they set aside is restored, and their guests and claims on other hosts are removed. Without such moves
    this costs one statement.
    """

    uses = (*ORDERS, "feed", "journal", "networking")
    pure, formerly = True, "Settle"
    source_answers = True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        def look(tx: Connection) -> list[ledger.HoldingHost]:
            usage = counted(op.server, op.server.flavor, wanted_flavor(op))
            ledger.count_as(tx, op.uuid, op.entry.epoch, usage)
            return ledger.held_by(tx, op.uuid)
        held = deps.api.transact(look)
        elsewhere = [host for host in dict.fromkeys(one.host for one in held)
                     if host != op.server.host and is_elsewhere(deps, host)]
        if any(one.move or one.host != op.server.host for one in held):
            self._settle(deps, op, held, elsewhere)
        elif op.asked(Arguments).hosts is not None:  # it overtook an operation, maybe a move without a claim yet
            self._end_moves(deps, op)
        # a host with a pending cleanup of this server cannot be its destination: the cleanup would end the new claim
        # too
        pending = [*cleanup_hosts(deps, [op]).get(op.uuid, ()), *elsewhere]
        return {"tried": tuple(dict.fromkeys(pending))} if pending else {}

    def _settle(self, deps: Deps, op: Op, held: Sequence[ledger.HoldingHost], elsewhere: Sequence[str]) -> None:
        here, pending = op.server.host, cleanup_hosts(deps, [op]).get(op.uuid, ())
        with deps.cell.reading() as tx:
            kinds = migrations.types_of(tx, [one.move for one in held if one.move])
        keep = not set(kinds.values()).isdisjoint(KEPT_DISKS)
        apart = op.asked(Arguments).apart
        for host in elsewhere:
            with failures.parked(lambda error: LOG.warning("the cleanup of an earlier move waits: %s", error.message,
                                                           extra={"server": op.uuid}), on=errors.daemon.WorkflowNotYet):
                clean_up_elsewhere(deps, op, host)
        for host in dict.fromkeys(one.host for one in held if one.host not in (here, *pending, *elsewhere)):
            remove(deps, op, self._end(op, host), keep and host not in apart)
            with failures.best_effort(LOG, "the network service keeps a binding of an earlier move: %s",
                    but=errors.Overtaken, extra={"server": op.uuid}):  # the next arrival there replaces it
                deps.networking.abandon_arrival(op, host)
        overtaken = [one.move for one in held if one.host == here and one.move]
        if self.source_answers:
            self._restore_guests(deps, op, overtaken, kinds)
        self._end_moves(deps, op)  # (the removals closed the epoch on hosts that may be the next destination)
        kept = [*cleanup_hosts(deps, [op]).get(op.uuid, ()), *elsewhere]
        finished = op.server.memo.move if op.server.memo else None
        back = next((move for move in overtaken if kinds.get(move) in COLD and move != finished), "")
        deps.feed.after_release(deps.api.transact(
            lambda tx: ledger.end_overtaken_moves(tx, op.uuid, op.entry.epoch, here, kept, back)))

    @staticmethod
    def _end_moves(deps: Deps, op: Op) -> None:
        op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: migrations.end_open(
            tx, op.uuid, ERROR, but=move_of(op)))

    def _restore_guests(self, deps: Deps, op: Op, moves: Sequence[str], kinds: Mapping[str, str]) -> None:
        """Restore a guest that a cold move set aside on the server's host, or remove it if the move had finished."""
        finished = op.server.memo.move if op.server.memo else None
        end = self._end(op, op.server.host or "")
        for move in moves:
            if kinds.get(move) not in COLD:
                continue
            if move == finished:
                ask(deps, ComputeRPC.forget_guests, end.host, op, order_at(deps, op, end))
            else:
                start = op.server.vm_state == VmState.ACTIVE.value
                ask(deps, ComputeRPC.return_guests, end.host, op, move_order(deps, op, end, start=start))

    @staticmethod
    def _end(op: Op, host: str) -> MoveEnd:
        return MoveEnd(host, op.server.node or "", op.server.availability_zone, op.server.flavor)
