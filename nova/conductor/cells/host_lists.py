"""Services, hypervisors and zones of all cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from nova import errors
from nova.conductor.cells.fan_out import PerCell
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.queries.hosts import Hosts, statistics_of, zones_of
from nova.model.host.services import (
    Hypervisor,
    HypervisorQuery,
    HypervisorStatistics,
    Service,
    ServiceQuery,
    ServiceUpdate,
    Zone,
)

T = TypeVar("T")


class MergedHostLists:
    """The calls of ConductorRPC about services and hypervisors. Lists have the cells in the order of their UUIDs. Cells
    that do not answer are left out of sums and zones."""

    def __init__(self, cells: LiveCells, hosts: Callable[[Deps], Hosts] = Hosts) -> None:
        self.cells, self._hosts = cells, PerCell(hosts)

    # -- services

    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Return services. Raises Unavailable for a cell that does not answer, unless ``with_unknown``: then its
        compute hosts are unknown."""
        cells = self.cells
        if not cells.several:
            return self._hosts(cells.entry).list_services(query)
        each = msgspec.structs.replace(query, with_unknown=False)
        answers = self.cells.fan_out.ask(lambda cell: self._hosts(cell).list_services(each))
        if not (query.with_unknown and answers.away):
            return _joined(answers.values())
        found = _joined([answer.value for answer in answers.found])
        elsewhere = {one.host for one in found}
        return (*found, *[one for one in self._hosts(cells.entry).unknown_services(query)
                          if one.host not in elsewhere])

    def update_service(self, update: ServiceUpdate) -> Service:
        """Change a service in its cell. Raises service.NotFound."""
        query = ServiceQuery(uuid=update.uuid, host=update.host, binary=update.binary, hidden=True)
        return self._of_service(query).update_service(update)

    def delete_service(self, query: ServiceQuery) -> None:
        """Delete a service in its cell. Raises service.NotFound; service.SeveralCells for a number that several cells
        use."""
        self._of_service(query).delete_service(query)

    def _of_service(self, query: ServiceQuery) -> Hosts:
        cells = self.cells
        if not cells.several:
            return self._hosts(cells.entry)
        answers = self.cells.fan_out.ask(lambda cell: self._hosts(cell).list_services(query))
        having = [answer.cell for answer in answers.found if answer.value]
        if len(having) > 1:
            raise errors.service.SeveralCells(id=query.id)
        if not having and answers.away:
            raise answers.away[0].value
        return self._hosts(having[0] if having else cells.entry)  # which raises that there is none

    # -- hypervisors

    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Return hypervisors; of several with the number of the query, the first cell's. Raises
        host.HypervisorNotFound if the query names a node that does not exist, api.PageMarkerNotFound; Unavailable for a
        cell that does not answer."""
        cells = self.cells
        if not cells.several:
            return self._hosts(cells.entry).list_hypervisors(query)
        after = self._marked(query)
        pages = self.cells.fan_out.ask(lambda cell: self._page(cell, query, after)).values()
        found = _joined(pages)[:query.limit if query.id is None else 1]
        if not found:
            self._hosts(cells.entry).refuse_unknown(query)
        return found

    def _marked(self, query: HypervisorQuery) -> str:
        """Return the cell of the marker; "" without one."""
        if query.marker is None:
            return ""
        for answer in self.cells.fan_out.ask(lambda cell: self._hosts(cell).has_hypervisor(str(query.marker))).all():
            if answer.value:
                return answer.cell.cell_uuid
        raise errors.api.PageMarkerNotFound(marker=query.marker)

    def _page(self, cell: Deps, query: HypervisorQuery, after: str) -> tuple[Hypervisor, ...]:
        if cell.cell_uuid < after:
            return ()
        marker = query.marker if cell.cell_uuid == after else None
        return self._hosts(cell).found_hypervisors(msgspec.structs.replace(query, marker=marker))

    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        """Return sums over the nodes whose nova-compute is not disabled."""
        answers = self.cells.fan_out.ask(lambda cell: self._hosts(cell).found_hypervisors(HypervisorQuery()))
        return statistics_of(_joined([answer.value for answer in answers.found]))

    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        """Return the zones by name."""
        answers = self.cells.fan_out.ask(lambda cell: self._hosts(cell).list_services(ServiceQuery()))
        return zones_of(_joined([answer.value for answer in answers.found]),
                        self.cells.entry.settings.internal_service_availability_zone, with_services)


def _joined(parts: Sequence[Sequence[T]]) -> tuple[T, ...]:
    return tuple(one for part in parts for one in part)
