"""Neutron's ports against deleted servers, all the time: a page of servers a turn, by one conductor at a time.

A port of a server that was deleted is a row of ``strangers`` until it is gone. Ports of servers that we never had are
not looked at: another cloud may share the network service.
"""

from __future__ import annotations

import logging

from nova.conductor.engine.deps import Deps
from nova.db.placement import audits
from nova.db.server import servers
from nova.db.upkeep import strangers
from nova.db.upkeep.strangers import StrangerFacts, StrangerKey
from nova.model.guest.strangers import StrangerKind
from nova.model.network.ports import Port

LOG = logging.getLogger(__name__)

WALK, PAGE = "ports", 100
TURN_S = 240
DELETED_S = 600  # for so long a delete may still be about its ports


def run(deps: Deps) -> int:
    """One turn; how many ports are left. Nothing with nova-network. Unavailable: the turn is done again."""
    left_ports = deps.networking.left_ports
    if left_ports is None:
        return 0
    after = deps.cell.transact(lambda tx: strangers.take_turn(tx, WALK, TURN_S))
    if after is None:
        return 0
    with deps.cell.reading() as tx:
        uuids = strangers.deleted_servers(tx, after, PAGE, DELETED_S)
        busy = audits.rows(tx, uuids).busy
        rows = servers.rows_of(tx, [uuid for uuid in uuids if uuid not in busy], with_deleted=True)
    last = uuids[-1] if len(uuids) == PAGE else None
    found = {StrangerKey(port.host, StrangerKind.PORT, port.id): StrangerFacts(port.device_id, _words(port))
             for port in (left_ports.of(rows) if rows else ())}
    among = strangers.of_servers(StrangerKind.PORT, after, last)
    new = deps.cell.transact(lambda tx: strangers.write(tx, among, found))
    for key in sorted(new):
        LOG.warning("%s. See nova-manage orphan list", found[key].what, extra={"server": found[key].server_uuid})
    deps.cell.transact(lambda tx: strangers.go_on(tx, WALK, last))
    return len(found)


def _words(port: Port) -> str:
    return f"port {port.id} of network {port.network_id} is of a server that was deleted"
