"""Floating addresses: pools, projects' addresses, and servers that have them. In bulk, for operators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova import errors
from nova.api.handlers.server_targets import target
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views.floating_addresses import FLOATING, IN_BULK, POOL
from nova.model.base import Scope
from nova.model.network.floating import FloatingAssociation, FloatingQuery, FloatingRange

DELETE = "delete"  # in place of a host's name in the path of a bulk delete


@contextlib.contextmanager
def _legacy(req: Request, meant: type[errors.NovaError]) -> Iterator[None]:
    """Convert conflicts to another kind of error under /v2."""
    try:
        yield
    except errors.Conflict as error:
        if not req.legacy:
            raise
        raise meant(error.message) from error


@answers({"floating_ip_pools": [POOL]})
def pools(req: Request) -> dict[str, object]:
    """List the names of the pools that floating addresses come from."""
    return {"floating_ip_pools": POOL.all(req.conductor.list_floating_pools(_own(req)), req)}


@answers({"floating_ips": [FLOATING]})
def index(req: Request) -> dict[str, object]:
    """List the floating addresses of the caller's project, also for administrators."""
    found = req.conductor.list_floating_addresses(FloatingQuery(scope=_own(req)))
    return {"floating_ips": FLOATING.all(found, req)}


@answers({"floating_ip": FLOATING})
def show(req: Request, floating_ip_id: str) -> dict[str, object]:
    """Show one floating address by its id. Raises floating.BadId, network.BadId (400); floating.NotFound,
    network.Absent (404)."""
    return {"floating_ip": FLOATING(req.conductor.get_floating_address(floating_ip_id, req.scope()), req)}


@answers({"floating_ip": FLOATING})
def create(req: Request) -> dict[str, object]:
    """Allocate the next free floating address of a pool (the body's, or the configured one) to the project. Raises
    floating.NoSuchPool, NoPool, PoolEmpty (404); floating.OverQuota (403); floating.SeveralPools (400)."""
    pool = req.body.get("pool") if req.body else None
    made = req.conductor.allocate_floating_address(req.project_id, pool or None)
    return {"floating_ip": FLOATING(made, req)}


def delete(req: Request, floating_ip_id: str) -> None:
    """Return a floating address to its pool; a server that has it loses it first. Raises floating.BadId (400);
    floating.NotFound (404); floating.NotYours, floating.AutoAssigned (403)."""
    req.conductor.release_floating_address(floating_ip_id, req.scope())


def add_to_server(req: Request, server_id: str) -> None:
    """Associate a floating address with a server; another server that has it loses it. Without ``fixed_address`` it is
    associated with the first fixed address. Raises server.NotFound, floating.NoSuchAddress (404); floating.NotYours
    (403); floating.NoFixedAddresses, floating.NotItsFixedAddress (400)."""
    found, asked = target(req, server_id), req.body["addFloatingIp"]
    req.conductor.associate_floating_address(FloatingAssociation(
        server_uuid=found.uuid, address=asked["address"], fixed_address=asked.get("fixed_address")))


def remove_from_server(req: Request, server_id: str) -> None:
    """Disassociate a floating address from its server; the project keeps it. Raises server.NotFound,
    floating.NoSuchAddress (404); floating.NotAssociated (409, below /v2 422); floating.AutoAssigned, floating.NotYours
    (403)."""
    found, address = target(req, server_id), req.body["removeFloatingIp"]["address"]
    with _legacy(req, errors.api.Unprocessable):
        req.conductor.disassociate_floating_address(FloatingAssociation(server_uuid=found.uuid, address=address))


# -- in bulk

@answers({"floating_ip_info": [IN_BULK]})
def bulk_index(req: Request) -> dict[str, object]:
    """List all floating addresses of all pools and projects, including free ones. The list is not paged."""
    found = req.conductor.list_floating_addresses(FloatingQuery(all_rows=True))
    return {"floating_ip_info": IN_BULK.all(found, req)}


@answers({"floating_ip_info": [IN_BULK]})
def bulk_show(req: Request, host_name: str) -> dict[str, object]:
    """List the floating addresses on one host. Raises floating.NoneOnHost (404)."""
    found = req.conductor.list_floating_addresses(FloatingQuery(host=host_name, all_rows=True))
    if not found:
        raise errors.floating.NoneOnHost(host=host_name)
    return {"floating_ip_info": IN_BULK.all(found, req)}


@answers({"floating_ips_bulk_create": dict.fromkeys(("ip_range", "pool", "interface"), "string")})
def bulk_create(req: Request) -> dict[str, object]:
    """Add a range of floating addresses to a pool, completely or not at all. Raises floating.BadRange (400);
    floating.Exists (409, below /v2 400)."""
    asked = req.body["floating_ips_bulk_create"]
    wanted = FloatingRange(ip_range=asked["ip_range"], pool=asked.get("pool") or req.options.floating_pool,
                           interface=asked.get("interface"))  # None: each host's own
    with _legacy(req, errors.Invalid):
        req.conductor.create_floating_addresses(wanted)
    return {"floating_ips_bulk_create": {"ip_range": wanted.ip_range, "pool": wanted.pool,
                                         "interface": wanted.interface or req.options.public_interface}}


@answers({"floating_ips_bulk_delete": "string"})
def bulk_update(req: Request, host_name: str) -> dict[str, object]:
    """Delete the addresses of a range that no project has; ``host_name`` must be ``delete``, anything else is NotFound
    (404). Raises floating.BadRange (400)."""
    if host_name != DELETE:
        raise errors.NotFound(f"Unknown action: {host_name}")
    ip_range = req.body["ip_range"]
    req.conductor.delete_floating_addresses(FloatingRange(ip_range=ip_range))
    return {"floating_ips_bulk_delete": ip_range}


def _own(req: Request) -> Scope:
    return Scope(project_id=req.project_id)
