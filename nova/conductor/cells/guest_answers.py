"""Metadata for guests of all cells, for metadata services of the API tier."""

from __future__ import annotations

import msgspec

from nova import errors, failures
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.guest_answers import GuestAnswers
from nova.model.base import HostName
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery


class MergedGuestAnswers:
    """The guests' calls of ConductorMetadataRPC. A guest is found by its UUID, or its address at a provider of Neutron;
    an address alone is nova-network's, and belongs to the entry cell."""

    def __init__(self, cells: LiveCells) -> None:
        self._cells = cells

    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return the metadata facts of the guest that asks. Raises guest.UnknownName; Invalid and Unavailable as
        :meth:`nova.conductor.hosts.guest_answers.GuestAnswers.guest_facts`."""
        if self._cells.several and query.provider_id is not None:
            query = self._resolved(query)
        cell = self._cells.entry if query.server_uuid is None else self._of(query.server_uuid)
        return GuestAnswers(cell, believed=True).guest_facts(host, query)

    def _resolved(self, query: GuestQuery) -> GuestQuery:
        """Return the query with the guest's UUID, which Neutron knows, in place of its address."""
        uuid, project = self._cells.entry.networking.guest_at(str(query.provider_id), query.address or "")
        if query.project_id not in (None, project):
            raise errors.guest.UnknownName(name=query.address)
        return msgspec.structs.replace(query, provider_id=None, server_uuid=uuid, project_id=project)

    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store the guest's password. Raises guest.UnknownName, guest.PasswordKept."""
        GuestAnswers(self._of(password.server_uuid), believed=True).set_guest_password(host, password)

    def _of(self, uuid: str) -> Deps:
        with failures.replaced(errors.server.NotFound, lambda _: errors.guest.UnknownName(name=uuid)):
            return self._cells.of_server(uuid)
