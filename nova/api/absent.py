"""Operations that are not served: removed permanently (410 at every version), or planned for a later release (501).

An operation that gets a handler moves from here to ``routes.ROUTES``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from nova import errors
from nova.api.request import Request
from nova.api.routing import Route

#: Removed from the API: 410 at every version. (With nova-network, ``legacy_networks.ROUTES`` serves some of them.)
GONE = (
    "GET /os-agents",
    "POST /os-agents",
    "PUT /os-agents/{agent_build_id}",
    "DELETE /os-agents/{agent_build_id}",
    "POST /os-cells",
    "GET /os-cells",
    "GET /os-cells/capacities",
    "GET /os-cells/detail",
    "GET /os-cells/info",
    "POST /os-cells/sync_instances",
    "GET /os-cells/{cell_id}",
    "PUT /os-cells/{cell_id}",
    "DELETE /os-cells/{cell_id}",
    "GET /os-cells/{cell_id}/capacities",
    "POST /os-certificates",
    "GET /os-certificates/{id}",
    "GET /os-cloudpipe",
    "POST /os-cloudpipe",
    "PUT /os-cloudpipe/{id}",
    "GET /os-fixed-ips/{fixed_ip}",
    "POST /os-fixed-ips/{fixed_ip}/action#reserve",
    "POST /os-fixed-ips/{fixed_ip}/action#unreserve",
    "GET /os-floating-ip-dns",
    "PUT /os-floating-ip-dns/{domain}",
    "DELETE /os-floating-ip-dns/{domain}",
    "GET /os-floating-ip-dns/{domain}/entries/{name}",
    "PUT /os-floating-ip-dns/{domain}/entries/{name}",
    "DELETE /os-floating-ip-dns/{domain}/entries/{name}",
    "GET /os-floating-ips-bulk",
    "POST /os-floating-ips-bulk",
    "GET /os-floating-ips-bulk/{host_name}",
    "PUT /os-floating-ips-bulk/{host_name}",
    "GET /os-fping",
    "GET /os-fping/{server_id}",
    "POST /os-networks",
    "POST /os-networks/add",
    "DELETE /os-networks/{network_id}",
    "POST /os-networks/{network_id}/action#disassociate",
    "POST /os-networks/{network_id}/action#disassociate_host",
    "POST /os-networks/{network_id}/action#disassociate_project",
    "POST /os-networks/{network_id}/action#associate_host",
    "GET /os-security-group-default-rules",
    "POST /os-security-group-default-rules",
    "GET /os-security-group-default-rules/{rule_id}",
    "DELETE /os-security-group-default-rules/{rule_id}",
    "POST /os-tenant-networks",
    "DELETE /os-tenant-networks/{network_id}",
    "POST /servers/{server_id}/action#resetNetwork",
    "GET /servers/{server_id}/consoles",
    "POST /servers/{server_id}/consoles",
    "GET /servers/{server_id}/consoles/{console_id}",
    "DELETE /servers/{server_id}/consoles/{console_id}",
    "GET /servers/{server_id}/os-virtual-interfaces",
)

#: Not implemented yet: (first version, last version, operations).
NOT_YET: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("2.97", None, (
        "GET /servers/{server_id}/shares",
        "POST /servers/{server_id}/shares",
        "GET /servers/{server_id}/shares/{share_id}",
        "DELETE /servers/{server_id}/shares/{share_id}",
    )),
)


def _parts(id: str) -> tuple[str, str, str | None]:
    """Split ``POST /servers/{server_id}/action#pause`` into (method, path, action)."""
    method, rest = id.split(" ", 1)
    path, _, action = rest.partition("#")
    return method, path, action or None


def _gone(id: str) -> Callable[..., object]:
    def handler(req: Request, **names: str) -> object:
        raise errors.api.Gone(operation=id)
    return handler


def _not_yet(id: str) -> Callable[..., object]:
    def handler(req: Request, **names: str) -> object:
        raise errors.api.NotYet(operation=id)
    return handler


def rows(without: Container[str] = ()) -> Iterator[Route]:
    """Yield a row for each operation that no table of routes serves; ``without``: removed operations served here."""
    for id in GONE:
        if id in without:
            continue
        method, path, action = _parts(id)
        yield Route(method, path, _gone(id), action=action)
    for since, until, ids in NOT_YET:
        for id in ids:
            method, path, action = _parts(id)
            yield Route(method, path, _not_yet(id), since=since, until=until, action=action)
