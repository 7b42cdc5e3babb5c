"""Hypervisors: the nodes of compute hosts."""

from __future__ import annotations

import contextlib

from nova import errors
from nova.api import versions
from nova.api.request import Request
from nova.api.view import LINKS, View, answers
from nova.api.views import hypervisors as views
from nova.model.host.services import Hypervisor, HypervisorQuery
from nova.web.formats import is_uuid


@answers({"hypervisors": [views.BRIEF], "hypervisors_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List the hypervisors' names and states; paged from 2.33. Raises host.HypervisorBadId for a marker,
    host.HypervisorPatternIsNotPaged (400); host.HypervisorNoMatch for a pattern (404)."""
    return _listed(req, views.BRIEF)


@answers({"hypervisors": [views.FULL], "hypervisors_links?": LINKS})
def detail(req: Request) -> dict[str, object]:
    """List hypervisors with details; paged from 2.33. Raises host.HypervisorBadId for a marker,
    host.HypervisorPatternIsNotPaged (400); host.HypervisorNoMatch for a pattern (404)."""
    return _listed(req, views.FULL, uptime=versions.details_have_uptime(req.version))


@answers({"hypervisor": views.FULL})
def show(req: Request, hypervisor_id: str) -> dict[str, object]:
    """Show one hypervisor: by uuid from 2.53, before by number. Raises host.HypervisorBadId (400);
    host.HypervisorNotFound (404)."""
    found = _one(req, hypervisor_id, versions.details_have_uptime(req.version))
    return {"hypervisor": views.FULL(found, req)}


@answers({"hypervisor": views.UPTIME})
def uptime(req: Request, hypervisor_id: str) -> dict[str, object]:
    """Show one hypervisor with the uptime its host reported. Raises host.HypervisorNotFound (404);
    host.HypervisorBadId, host.HypervisorHostDown (400); host.HypervisorUptimeUnknown (501)."""
    found = _one(req, hypervisor_id, True)
    if found.uptime is None:
        if found.service is not None and not found.service.up:
            raise errors.host.HypervisorHostDown(host=found.host)
        raise errors.host.HypervisorUptimeUnknown(name=found.hostname)
    return {"hypervisor": views.UPTIME(found, req)}


@answers({"hypervisors": [views.BRIEF]})
def search(req: Request, hypervisor_hostname_pattern: str) -> dict[str, object]:
    """List the hypervisors whose name contains a text. The list is not paged. Raises host.HypervisorNoMatch (404)."""
    return views.page(views.BRIEF, _matching(req, hypervisor_hostname_pattern, False), req, linked=False)


@answers({"hypervisors": [views.BRIEF]})
def servers(req: Request, hypervisor_hostname_pattern: str) -> dict[str, object]:
    """List the hypervisors whose name contains a text, each with its servers' UUIDs and names. Raises
    host.HypervisorNoMatch (404)."""
    return views.page(views.BRIEF, _matching(req, hypervisor_hostname_pattern, True), req, linked=False)


@answers({"hypervisor_statistics": views.STATISTICS})
def statistics(req: Request) -> dict[str, object]:
    """Sum up the resources and usage of all hypervisors (MiB, GiB), except those with a disabled or deleted service."""
    return {"hypervisor_statistics": views.STATISTICS(req.conductor.get_hypervisor_statistics(), req)}


def _listed(req: Request, view: View, uptime: bool = False) -> dict[str, object]:
    """Return a page, or (from 2.53) all hypervisors whose name matches a pattern."""
    query = req.query
    with_servers, pattern = query.one("with_servers", False), query.one("hypervisor_hostname_pattern")
    if pattern is not None:
        if "limit" in query or "marker" in query:
            raise errors.host.HypervisorPatternIsNotPaged
        return views.page(view, _matching(req, pattern, with_servers, uptime), req, linked=False)
    paged = versions.hypervisors_are_paged(req.version)
    wanted = HypervisorQuery(with_servers=with_servers, with_uptime=uptime, limit=req.limit() if paged else None,
                             marker=_marker(req, query.one("marker")))
    found: tuple[Hypervisor, ...] = ()
    # kolla-ansible lists the hosts before it starts a conductor
    with contextlib.suppress(errors.daemon.RpcNoConductorYet):
        found = req.conductor.list_hypervisors(wanted)
    return views.page(view, found, req, linked=paged)


def _matching(req: Request, pattern: str, with_servers: bool, uptime: bool = False) -> tuple[Hypervisor, ...]:
    found: tuple[Hypervisor, ...] = req.conductor.list_hypervisors(HypervisorQuery(
        hostname_pattern=pattern, with_servers=with_servers, with_uptime=uptime))
    if not found:
        raise errors.host.HypervisorNoMatch(pattern=pattern)
    return found


def _is_number(id: str) -> bool:
    return id.isascii() and id.isdigit() and len(id) <= 18


def _marker(req: Request, marker: str | None) -> str | None:
    """Return the marker. Raises host.HypervisorBadId if it is not a UUID (from 2.53), or not a number (before)."""
    if marker is not None:
        by_uuid = versions.known_by_uuid(req.version)
        if not (is_uuid(marker) if by_uuid else _is_number(marker)):
            raise errors.host.HypervisorBadId(what="marker", id=marker, wanted="a UUID" if by_uuid else "a number")
    return marker


def _one(req: Request, id: str, with_uptime: bool) -> Hypervisor:
    """Return the hypervisor by UUID (from 2.53; host.HypervisorBadId if it is not a UUID) or number."""
    with_servers = req.query.one("with_servers", False)
    if versions.known_by_uuid(req.version):
        if not is_uuid(id):
            raise errors.host.HypervisorBadId(what="hypervisor id", id=id, wanted="a UUID")
        query = HypervisorQuery(uuid=id, with_servers=with_servers, with_uptime=with_uptime)
    else:
        if not _is_number(id):
            raise errors.host.HypervisorNotFound(id=id)
        query = HypervisorQuery(id=int(id), with_uptime=with_uptime)
    (found,) = req.conductor.list_hypervisors(query)
    return found
