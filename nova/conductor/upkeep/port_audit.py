"""Continuous audit of Neutron's ports against deleted servers: a page of servers each turn, by one conductor at a time.

A port of a deleted server is a row of ``strangers`` until it is gone. Ports of servers that this cloud never had are
ignored: another cloud may share the network service.
"""

from __future__ import annotations

import logging

from nova.conductor.engine.deps import Deps
from nova.db.placement import audits
from nova.db.server import servers
from nova.db.upkeep import orphans
from nova.db.upkeep.orphans import OrphanFacts, OrphanKey
from nova.model.guest.orphans import OrphanKind
from nova.model.network.ports import Port

LOG = logging.getLogger(__name__)

WALK, PAGE = "ports", 100
TURN_S = 240
DELETED_S = 600  # seconds for which a delete may still remove its ports


def run(deps: Deps) -> int:
    """Run one turn and return the number of leftover ports; 0 with nova-network. Raises Unavailable: the turn is then
    repeated."""
    left_ports = deps.networking.left_ports
    if left_ports is None:
        return 0
    after = deps.cell.transact(lambda tx: orphans.take_turn(tx, WALK, TURN_S))
    if after is None:
        return 0
    with deps.cell.reading() as tx:
        uuids = orphans.deleted_servers(tx, after, PAGE, DELETED_S)
        busy = audits.rows(tx, uuids).busy
        rows = servers.rows_of(tx, [uuid for uuid in uuids if uuid not in busy], with_deleted=True)
    last = uuids[-1] if len(uuids) == PAGE else None
    found = {OrphanKey(port.host, OrphanKind.PORT, port.id): OrphanFacts(port.device_id, _words(port))
             for port in (left_ports.of(rows) if rows else ())}
    among = orphans.of_servers(OrphanKind.PORT, after, last)
    new = deps.cell.transact(lambda tx: orphans.write(tx, among, found))
    for key in sorted(new):
        LOG.warning("%s. See nova-manage orphan list", found[key].what, extra={"server": found[key].server_uuid})
    deps.cell.transact(lambda tx: orphans.go_on(tx, WALK, last))
    return len(found)


def _words(port: Port) -> str:
    return f"port {port.id} of network {port.network_id} belongs to a deleted server"
