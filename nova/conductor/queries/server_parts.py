"""Parts of a server: tags, password, topology, diagnostics, and the reset of its state."""

from __future__ import annotations

import contextlib

import msgspec

from nova import context, errors, failures
from nova.conductor.engine.begin import builtins, check_arrived
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import ResetState
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import migrations, operation_arguments, server_tags, servers, states
from nova.db.sql.engine import Connection
from nova.model.base import utcnow
from nova.model.numa.topology import TopologyClaim
from nova.model.quota.counting import classes
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.migrations import ERROR
from nova.model.server.server_parts import (
    MOST_TAGS,
    NumaNode,
    ServerPassword,
    ServerTopology,
    StateReset,
    TagChange,
    TagSet,
)
from nova.model.server.servers import ServerQuery, ServerTarget
from nova.model.server.states import ACTIONS, METADATA_STATES, VmState


class ServerParts:
    """Server calls of ConductorRPC about its parts."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    # -- tags

    def change_tags(self, change: TagChange) -> TagSet:
        """Change a server's tags. Raises server.NotFound, server.WrongState; server.NoSuchTag if a tag to remove does
        not exist; server.TooManyTags."""
        return self.deps.cell.transact(lambda tx: _change_tags(tx, change))

    # -- the password

    def get_server_password(self, query: ServerQuery) -> ServerPassword:
        """Return the password that the guest posted, or an empty one. Raises server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            return servers.password(tx, query.uuid, query.scope)

    def clear_server_password(self, uuid: str) -> None:
        """Clear the server's password, if it has one. Raises server.NotFound."""
        self.deps.cell.transact(lambda tx: servers.update(tx, uuid, {"guest_password": None}))

    # -- topology and diagnostics

    def get_server_topology(self, query: ServerQuery) -> ServerTopology:
        """Return the server's NUMA topology as claimed on its host; without nodes if it has no NUMA claim."""
        with self.deps.cell.reading() as tx:
            target = servers.target(tx, query.uuid, query.scope)
        found = self._packing(target)
        nodes = tuple(NumaNode(memory_mb=cell.memory_mb, vcpus=cell.vcpus, siblings=cell.siblings,
                               host_node=cell.host_cell, cpu_pinning=cell.pins) for cell in found.cells)
        return ServerTopology(project_id=target.project_id, user_id=target.user_id, nodes=nodes,
                              page_kb=found.cells[0].page_kb if found.cells else None)

    def _packing(self, target: ServerTarget) -> TopologyClaim:
        """Return the PCI and NUMA claim on the server's current host; an empty one without a host."""
        if not target.host:
            return TopologyClaim()
        with self.deps.api.reading() as tx:
            return claims.topology_claim_at(tx, target.uuid, target.host) or TopologyClaim()

    def get_diagnostics(self, uuid: str) -> Diagnostics:
        """Return a server's diagnostics; ``uptime_s`` counts from the server's launch.

        Raises server.NotFound, server.NoHost, server.NoGuest; NotSupported by the host's driver; Unavailable if the
        host does not answer.
        """
        with self.deps.cell.reading() as tx:
            row = servers.rows_of(tx, [uuid]).get(uuid)
        if row is None:
            raise errors.server.NotFound(server=uuid)
        if not row.host:
            raise errors.server.NoHost(server=uuid)
        with failures.replaced(errors.NotFound, lambda _: errors.server.NoGuest(server=uuid)):
            diagnostics: Diagnostics = self.deps.compute.get_diagnostics(row.host, uuid)
        up = max(0, int((utcnow() - row.launched_at).total_seconds())) if row.launched_at else None
        return msgspec.structs.replace(diagnostics, uptime_s=up, config_drive=row.config_drive)

    # -- states

    def reset_state(self, reset: StateReset) -> None:
        """Reset a server's state with a fenced write: a running operation loses the server at its next step. The hosts
        where that may have left a guest are recorded for the delete.

        Raises server.HalfDestroyed, because a server that a delete has begun to destroy must not become active again;
        move.BetweenCells.
        """
        who = context.current()

        def write(tx: Connection) -> states.Entry | None:
            entry, overtaken, server = states.begin(tx, states.Begin(
                action=ACTIONS["reset_state"], server_uuid=reset.uuid,
                arguments=builtins(ResetState(state=reset.state)),
                request_id=who.request_id, user_id=who.user_id, project_id=who.project_id,
                runner_id=self.deps.journal.runner_id, step=""))
            check_arrived(self.deps, "reset_state", server, overtaken)
            if overtaken:
                entry = operation_arguments.remember(tx, entry, overtaken)
                migrations.end_open(tx, reset.uuid, ERROR, with_finished=False)
            states.finish(tx, [states.StateChange([entry], {"vm_state": VmState(reset.state).value})], "success")
            return entry if any(old.action == "resize" for old in overtaken) else None
        if (entry := self.deps.cell.transact(write)) is not None:
            self._count(entry)

    def _count(self, entry: states.Entry) -> None:
        """Stop counting the larger flavor of an overtaken resize."""
        with self.deps.cell.reading() as tx:
            row = servers.rows_of(tx, [entry.server_uuid]).get(entry.server_uuid)
        if row is not None:
            counted = {"vcpus": row.flavor.vcpus, "memory_mb": row.flavor.memory_mb,
                       "classes": classes(row.flavor, row.image.properties if row.image else {})}
            with contextlib.suppress(errors.Overtaken):  # a newer operation counts its own flavor
                self.deps.api.transact(lambda tx: ledger.count_as(tx, row.uuid, entry.epoch, counted))


def _change_tags(tx: Connection, change: TagChange) -> TagSet:
    row = servers.lock_row(tx, change.uuid)
    if VmState(row.vm_state) not in METADATA_STATES:
        raise errors.server.WrongState(action=change.verb, server=change.uuid, attribute="vm_state", value=row.vm_state)
    now = server_tags.of(tx, change.uuid)
    missing = [tag for tag in change.remove if tag not in now]
    if missing:
        raise errors.server.NoSuchTag(server=change.uuid, tag=missing[0])
    after = (set() if change.replace else now - set(change.remove)) | set(change.add)
    if len(after) > MOST_TAGS:
        raise errors.server.TooManyTags(limit=MOST_TAGS)
    server_tags.change(tx, change.uuid, after - now, now - after)
    return TagSet(tags=tuple(sorted(after)), changed=after != now)
