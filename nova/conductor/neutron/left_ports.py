"""Leftover ports of deleted servers: found by the server's row, and released on an operator's request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nova import errors
from nova.clients.neutron import Neutron
from nova.db.server.server_row import ServerRow
from nova.model.network.ports import Port, belongs


class LeftPorts:
    """Leftover ports in Neutron. ``free``: releases a user's port to its owner."""

    def __init__(self, client: Neutron, free: Callable[[Port], None]) -> None:
        self._client, self._free = client, free

    def of(self, rows: Mapping[str, ServerRow]) -> tuple[Port, ...]:
        """Return the leftover ports of these servers (UUID -> row). A port that names a server of another project is
        ignored. Raises Unavailable."""
        return tuple(port for port in self._client.ports_of(rows)
                     if port.device_id in rows and _is_left(port, rows[port.device_id]))

    def release(self, port_id: str, row: ServerRow) -> None:
        """Delete the port if it was created for the server; otherwise release it to its owner. No error if it is gone
        or another server's by now. Raises Unavailable."""
        try:
            port = self._client.port(port_id)
        except errors.service.ResourceNotFound:
            return
        if _is_left(port, row):
            self._client.delete_port(port.id) if port.id in _made(row) else self._free(port)


def _is_left(port: Port, row: ServerRow) -> bool:
    return belongs(port, row.uuid, row.project_id, {one.id for one in row.interfaces or ()})


def _made(row: ServerRow) -> set[str]:
    """Return the IDs of ports that were created for the server, as its row proves."""
    asked = {one.port_id for one in row.requested_networks or ()}
    return {one.id for one in row.interfaces or () if not one.given} - asked
