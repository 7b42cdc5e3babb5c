"""Steps and helpers of all moves: clean up after earlier moves, claim both hosts, order hosts, leave pending
cleanups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from nova import errors, failures
from nova.conductor import zones
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps import move_ends
from nova.conductor.steps.guests import ORDERS, results_of
from nova.conductor.steps.placement import claim_of, cleanup_hosts, reschedule, taken, wanted_flavor
from nova.conductor.steps.volumes import VolumeStep, connect_next
from nova.db.host import hosts, services
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import migrations
from nova.db.server.servers import instance_name
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.model.base import HostName
from nova.model.guest.orders import Outcome
from nova.model.server.migrations import ERROR, EVACUATION, LIVE_MIGRATION, MIGRATION, PRE_MIGRATING, PREPARING, RESIZE
from nova.model.server.servers import ServerMemo
from nova.model.server.states import VmState
from nova.rpc.contracts.compute import ComputeRPC

O = TypeVar("O")  # noqa: E741  (an order's type)

LOG = logging.getLogger(__name__)

COLD = (MIGRATION, RESIZE)
KEPT_DISKS = (LIVE_MIGRATION, EVACUATION)  # the disks that these create at a destination may be the server's only ones


class MoveStep(Step):
    """A step for one server at a time. ``status``: the migration's status, once the step's intent is written."""

    status: ClassVar[str] = ""

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return each(ops, lambda op: self._advance(tx, deps, op))

    def _advance(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        shown = self.shows(tx, op)
        if self.status:
            shown = {"status": self.status, **shown}
        if shown and not migrations.advance(tx, move_ends.move_of(op), **shown):
            raise errors.move.Cancelled(server=op.uuid)
        return self.row(tx, deps, op)

    def shows(self, tx: Connection, op: Op) -> Mapping[str, object]:
        """Return more columns of the migration's row."""
        return {}

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        """Return the columns of the server's row that change with the step's intent."""
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._guarded(deps, op) for op in ops]

    def _guarded(self, deps: Deps, op: Op) -> Result:
        try:
            return self.act(deps, op)
        except (DatabaseUnavailable, errors.daemon.WorkflowNotYet):
            raise
        except errors.NovaError as error:
            return error

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        """Run the step for a single server, and return fields of OperationProgress. An error that it raises is the
        server's result; DatabaseUnavailable and daemon.WorkflowNotYet park the operation for retry."""
        return {}


def each(ops: Sequence[Op], change: Callable[[Op], Mapping[str, object]]) -> Mapping[str, object]:
    """Return the changes that ``change`` gives for each op, as columns with a value for each server."""
    changes: dict[str, PerServer] = {}
    for op in ops:
        for name, value in change(op).items():
            changes.setdefault(name, PerServer())[op.uuid] = value
    return changes


# -- hosts

#: A call of ComputeRPC: (the client, the host, its orders) -> the outcome of each.
Call = Callable[[ComputeRPC, HostName, tuple[O, ...]], tuple[Outcome, ...]]


def ask(deps: Deps, call: Call[O], host: str, op: Op, order: O) -> Outcome:
    """Send one order to a host and return its outcome. Raises host.NoAnswer if it cannot be reached; its own errors
    keep their kind."""
    with failures.replaced(errors.Unavailable, lambda error: errors.host.NoAnswer(error.message)):
        outcomes: tuple[Outcome, ...] = getattr(deps.compute, call.__name__)(host, (order,))
    [result] = results_of([op], outcomes)
    if isinstance(result, errors.NovaError):
        raise result
    return next(one for one in outcomes if one.server_uuid == op.uuid)


def ask_source(deps: Deps, call: Call[O], op: Op, order: O) -> Outcome:
    """Send an order to the source. Raises move.SourceFailed, so that no other destination is tried without success."""
    host = move_ends.source(op).host
    with failures.replaced(errors.NovaError, lambda error: errors.move.SourceFailed(
            host=host, server=op.uuid, why=error.message), but=errors.Overtaken):
        return ask(deps, call, host, op, order)


def remove(deps: Deps, op: Op, end: move_ends.MoveEnd, keep_disks: bool = False) -> None:
    """Remove the server from a host where it must not be. A failure becomes a pending cleanup."""
    with failures.parked(lambda error: add_removal_cleanup(deps, op, end, error.message, keep_disks),
                         on=errors.NovaError, but=(errors.Overtaken, DatabaseUnavailable)):
        ask(deps, ComputeRPC.destroy_guests, end.host, op, move_ends.order_at(deps, op, end, keep_disks))


def add_removal_cleanup(deps: Deps, op: Op, end: move_ends.MoveEnd, why: str, keep_disks: bool = False) -> None:
    """Continue without the host and write a pending cleanup, which it executes when it is back."""
    LOG.warning("host %s could not remove the remains of a move; the cleanup is pending: %s", end.host, why,
                extra={"server": op.uuid})
    cleanup = cleanup_of(deps, op, end.host, keep_disks)
    op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: services.add_cleanups(tx, [cleanup]))


def host_is_up(deps: Deps, host: str) -> bool:
    """True if the host's nova-compute has reported lately and is not forced down."""
    with deps.cell.reading() as tx:
        return bool(services.host_up(tx, host, deps.settings.service_down_time))


def cleanup_of(deps: Deps, op: Op, host: str, keep_disks: bool, move: str = "") -> dict[str, object]:
    """Return a host's pending cleanup, which removes the server there. ``move``: the evacuation that the cleanup
    completes."""
    name = instance_name(deps.settings.instance_name_template, op.server.id, op.uuid)
    arguments = {"instance_name": name, "operation_id": str(op.entry.id)}
    if keep_disks:
        arguments["keep_disks"] = "1"
    if move:
        arguments["move"] = move
    return {"host": host, "server_uuid": op.uuid, "epoch": op.entry.epoch, "step": "destroy_guests",
            "arguments": arguments}


def rebind(deps: Deps, op: Op, end: move_ends.MoveEnd) -> None:
    """Bind the server's interfaces to its current host, and update the hosts of the network that must serve it."""
    deps.networking.bind_to(op, end.host)


def place(tx: Connection, deps: Deps, op: Op, end: move_ends.MoveEnd) -> Mapping[str, object]:
    """Assign the server's row, and the addresses that follow it, to this end of the move."""
    deps.networking.follow(tx, op, end.host)
    changes = move_ends.row_at(op, end)
    op.see(**changes)
    return changes


# -- the ledger

class CountResize(MoveStep):
    """Count the larger of both flavors against quota while a resize is open; undo: count the old one."""

    uses = ("api",)
    pure = True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        old = move_ends.source(op).flavor
        count(deps, op, move_ends.counted(op.server, old, wanted_flavor(op)))
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            count(deps, op, move_ends.counted(op.server, move_ends.source(op).flavor))


def count(deps: Deps, op: Op, counted: Mapping[str, object]) -> None:
    """Set the quota usage of the server. Raises Overtaken."""
    deps.api.transact(lambda tx: ledger.count_as(tx, op.uuid, op.entry.epoch, counted))


class ClaimMove(MoveStep):
    """Transfer the server's claim to the move, and claim the destination next to it; undo: restore the claim. Within
    one host both claims are on the same provider."""

    uses = ("api", "cell", "feed", "scheduler", "settings")

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        wanted = claim_of(deps, op, wanted_flavor(op))

        def take(tx: Connection) -> tuple[dict[str, errors.NovaError | None], list[claims.ProviderUsage]]:
            ledger.begin_move(tx, op.uuid, op.entry.epoch, move_ends.move_of(op))
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
        return {**found, "arrival": None, "shared": None}  # forget the reports of an earlier destination

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            self._give_back(deps, op, cleanup_hosts(deps, [op]).get(op.uuid, ()))

    @staticmethod
    def _give_back(deps: Deps, op: Op, kept: Sequence[str]) -> None:
        deps.feed.after_release(deps.api.transact(
            lambda tx: ledger.undo_move(tx, op.uuid, op.entry.epoch, move_ends.move_of(op), kept)))


class EndMove(MoveStep):
    """End the move: release the claim on the old host, unless it has a pending cleanup of the server."""

    uses = ("api", "cell", "feed")
    pure = True  # may be repeated, and is never undone

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        kept = cleanup_hosts(deps, [op]).get(op.uuid, ())

        def give_back(tx: Connection) -> list[int]:
            changed = ledger.end_move(tx, op.uuid, op.entry.epoch, move_ends.move_of(op), kept)
            ledger.count_as(tx, op.uuid, op.entry.epoch, move_ends.counted(op.server, op.server.flavor))
            ledger.describe(tx, op.uuid, op.server.flavor)
            return changed
        deps.feed.after_release(deps.api.transact(give_back))
        return {}


# -- cleanup after earlier moves

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
            counted = move_ends.counted(op.server, op.server.flavor, wanted_flavor(op))
            ledger.count_as(tx, op.uuid, op.entry.epoch, counted)
            return ledger.held_by(tx, op.uuid)
        held = deps.api.transact(look)
        if any(one.move or one.host != op.server.host for one in held):
            self._settle(deps, op, held)
        elif op.asked(Arguments).hosts is not None:  # it overtook an operation, maybe a move without a claim yet
            self._end_moves(deps, op)
        # a host with a pending cleanup of this server cannot be its destination: the cleanup would end the new claim
        # too
        pending = cleanup_hosts(deps, [op]).get(op.uuid, ())
        return {"tried": tuple(pending)} if pending else {}

    def _settle(self, deps: Deps, op: Op, held: Sequence[ledger.HoldingHost]) -> None:
        here, pending = op.server.host, cleanup_hosts(deps, [op]).get(op.uuid, ())
        with deps.cell.reading() as tx:
            kinds = migrations.types_of(tx, [one.move for one in held if one.move])
        keep = not set(kinds.values()).isdisjoint(KEPT_DISKS)
        apart = op.asked(Arguments).apart
        for host in dict.fromkeys(one.host for one in held if one.host != here and one.host not in pending):
            remove(deps, op, self._end(op, host), keep and host not in apart)
            deps.networking.abandon_arrival(op, host)
        moves = [one.move for one in held if one.host == here and one.move]
        if self.source_answers:
            self._restore_guests(deps, op, moves, kinds)
        self._end_moves(deps, op)  # (the removals closed the epoch on hosts that may be the next destination)
        kept = cleanup_hosts(deps, [op]).get(op.uuid, ())
        finished = op.server.memo.move if op.server.memo else None
        back = next((move for move in moves if kinds.get(move) in COLD and move != finished), "")
        deps.feed.after_release(deps.api.transact(
            lambda tx: ledger.end_overtaken_moves(tx, op.uuid, op.entry.epoch, here, kept, back)))

    @staticmethod
    def _end_moves(deps: Deps, op: Op) -> None:
        op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: migrations.end_open(
            tx, op.uuid, ERROR, but=move_ends.move_of(op)))

    def _restore_guests(self, deps: Deps, op: Op, moves: Sequence[str], kinds: Mapping[str, str]) -> None:
        """Restore a guest that a cold move set aside on the server's host, or remove it if the move had finished."""
        finished = op.server.memo.move if op.server.memo else None
        end = self._end(op, op.server.host or "")
        for move in moves:
            if kinds.get(move) not in COLD:
                continue
            if move == finished:
                ask(deps, ComputeRPC.forget_guests, end.host, op, move_ends.order_at(deps, op, end))
            else:
                start = op.server.vm_state == VmState.ACTIVE.value
                ask(deps, ComputeRPC.return_guests, end.host, op, move_ends.move_order(deps, op, end, start=start))

    @staticmethod
    def _end(op: Op, host: str) -> move_ends.MoveEnd:
        return move_ends.MoveEnd(host, op.server.node or "", op.server.availability_zone, op.server.flavor)


# -- checks of the destination, before any change

class AskDestination(MoveStep):
    """Check that the destination answers, and record it in the migration's row."""

    uses: ClassVar[tuple[str, ...]] = ("compute",)

    def shows(self, tx: Connection, op: Op) -> Mapping[str, object]:
        there = taken(op)
        nodes = {row.name: row.facts for row in hosts.node_rows(tx, hosts.NodesWanted(host=there.host))}
        facts = nodes.get(there.node)
        return {"dest_compute": there.host, "dest_node": there.node,
                "dest_host": (facts.host_ip if facts is not None else None) or None}

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        deps.compute.ping(taken(op).host)
        return {}


class ConnectAtSource(VolumeStep):
    """Connect the host that the server returns to, to the server's volumes."""

    def act(self, deps: Deps, op: Op) -> None:
        connect_next(deps, op, move_ends.source(op).host)


class PrepareResize(AskDestination):
    status, event = PRE_MIGRATING, "compute_prep_resize"


class CheckDestination(AskDestination):
    status, event = PREPARING, "compute_check_can_live_migrate_destination"


def remembered(op: Op, **fields: object) -> ServerMemo:
    """Return the server's memo with these fields replaced."""
    memo = op.server.memo or ServerMemo()
    return ServerMemo(**{**{name: getattr(memo, name) for name in ServerMemo.__struct_fields__}, **fields})
