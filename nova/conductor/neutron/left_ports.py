"""Ports that a deleted server still has: found by the server's row, and let go when an operator says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nova import errors
from nova.clients.neutron import Neutron
from nova.db.server.server_row import ServerRow
from nova.model.network.ports import Port, belongs


class LeftPorts:
    """``free``: gives a port that a user had made back to its owner."""

    def __init__(self, client: Neutron, free: Callable[[Port], None]) -> None:
        self._client, self._free = client, free

    def of(self, rows: Mapping[str, ServerRow]) -> tuple[Port, ...]:
        """Of these servers, by uuid. A port that names a server of another project counts for nothing. Unavailable."""
        return tuple(port for port in self._client.ports_of(rows)
                     if port.device_id in rows and _is_left(port, rows[port.device_id]))

    def let_go(self, port_id: str, row: ServerRow) -> None:
        """Deleted, if it was made for the server; else its owner's again. Nothing when it is gone or another's by now.
        Unavailable."""
        try:
            port = self._client.port(port_id)
        except errors.service.ResourceNotFound:
            return
        if _is_left(port, row):
            self._client.delete_port(port.id) if port.id in _made(row) else self._free(port)


def _is_left(port: Port, row: ServerRow) -> bool:
    return belongs(port, row.uuid, row.project_id, {one.id for one in row.interfaces or ()})


def _made(row: ServerRow) -> set[str]:
    """What the row proves to have been made for the server."""
    asked = {one.port_id for one in row.requested_networks or ()}
    return {one.id for one in row.interfaces or () if not one.given} - asked
