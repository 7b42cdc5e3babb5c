"""nova-network's networks: create, associate and delete them; projects' own networks; single addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from nova import decoding, errors, failures
from nova.api.handlers.server_targets import target
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import networks as views
from nova.model.base import JsonValue, Scope
from nova.model.network.networks import NetworkChange, NewNetwork
from nova.model.server.servers import ServerQuery

TEXTS = ("label", "cidr", "cidr_v6", "bridge", "bridge_interface", "gateway", "gateway_v6", "dhcp_server", "dns1",
         "dns2", "fixed_cidr", "allowed_start", "allowed_end", "uuid", "project_id")
NUMBERS = ("vlan", "vlan_start", "vpn_start", "num_networks", "network_size", "mtu", "priority")
FLAGS = ("multi_host", "enable_dhcp", "share_address")
#: Fields that a project may set for its own network. All others are for hosts: interfaces, VLANs, hosts' addresses.
OF_PROJECT = frozenset({"label", "cidr", "cidr_v6", "num_networks", "network_size"})
IGNORED = ("host", "uuid")  # of a project's network
MOST, LARGEST = 16, 4096  # maximum networks that a project creates by one request, and addresses of each
HOST_FIELDS_RULE = "os_compute_api:os-tenant-networks:create:host_fields"


@contextlib.contextmanager
def _meaning(kind: type[errors.NovaError], of: tuple[type[errors.NovaError], ...], **data: str) -> Iterator[None]:
    """Convert errors of these kinds to another."""
    with failures.translated(of, lambda error: kind(reason=error.message, **data)):
        yield


# -- os-networks

@answers({"network": views.FULL})
def create(req: Request) -> dict[str, object]:
    """Create networks, and show the first one."""
    made = req.conductor.create_network(_new(req.body["network"]))
    return {"network": views.FULL(made[0], req, views.flags(req))}


def _new(body: Mapping[str, JsonValue]) -> NewNetwork:
    given = {name: body[name] for name in (*TEXTS, *NUMBERS, *FLAGS) if body.get(name) not in (None, "")}
    return decoding.convert({**given, "single_host": given.get("multi_host") is False}, NewNetwork)


def delete(req: Request, network_id: str) -> None:
    """Delete a network without a project, with its addresses. Raises network.NotFound (404); network.HasProject,
    network.InUse (409)."""
    req.conductor.delete_network(network_id)


def add(req: Request) -> None:
    """Add a network to the caller's project: the named one, or any network without a project."""
    if "id" not in req.body:
        raise errors.network.NoId
    wanted, project = req.body["id"], req.project_id
    with _meaning(errors.network.CannotAdd, (errors.NotFound, errors.Conflict), network=wanted, project=project):
        req.conductor.add_network_to_project(wanted, project)


def disassociate(req: Request, network_id: str) -> None:
    """Disassociate a network from both project and host."""
    req.conductor.change_network(NetworkChange(uuid=network_id, fields=("project_id", "host")))


def disassociate_host(req: Request, network_id: str) -> None:
    """Disassociate the network from its host. Raises network.NotFound (404); network.NoOwners (501)."""
    req.conductor.change_network(NetworkChange(uuid=network_id, fields=("host",)))


def disassociate_project(req: Request, network_id: str) -> None:
    """Disassociate the network from its project. Raises network.NotFound (404); network.NoOwners (501)."""
    req.conductor.change_network(NetworkChange(uuid=network_id, fields=("project_id",)))


def associate_host(req: Request, network_id: str) -> None:
    """Set the host that serves the network. Raises network.NotFound (404); network.NoOwners (501)."""
    req.conductor.change_network(NetworkChange(uuid=network_id, fields=("host",), host=req.body["associate_host"]))


# -- os-tenant-networks

@answers({"networks": [views.OF_PROJECT]})
def of_project(req: Request) -> dict[str, object]:
    """List the networks that the caller's project may use, also for administrators."""
    return {"networks": views.OF_PROJECT.all(req.conductor.list_networks(_own(req)), req)}


@answers({"network": views.OF_PROJECT})
def one_of_project(req: Request, network_id: str) -> dict[str, object]:
    """Show one network that the caller's project may use. Raises network.NotFound, network.Absent (404)."""
    return {"network": views.OF_PROJECT(req.conductor.get_network(network_id, _own(req)), req)}


@answers({"network": views.OF_PROJECT})
def create_own(req: Request) -> dict[str, object]:
    """Create networks of the caller's project, and show the first one."""
    body = {name: value for name, value in req.body["network"].items() if name not in IGNORED}
    body["project_id"] = req.project_id
    if not (body.get("cidr") or body.get("cidr_v6")):
        raise errors.network.NoCidr()
    new = _new(body)
    _check_own(req, body, new)
    with _meaning(errors.network.CreationFailed, (errors.Conflict,)):
        made = req.conductor.create_network(_by_project(new))
    return {"network": views.OF_PROJECT(made[0], req)}


def _check_own(req: Request, body: dict[str, object], new: NewNetwork) -> None:
    """Raise Forbidden or Invalid for fields and sizes reserved to operators, who manage hosts' interfaces, VLANs and
    capacity."""
    if req.allows(HOST_FIELDS_RULE):
        return
    if any(body.get(name) not in (None, "") for name in {*TEXTS, *NUMBERS, *FLAGS} - OF_PROJECT - {"project_id"}):
        req.authorize(rule=HOST_FIELDS_RULE)
    for field, most in (("num_networks", MOST), ("network_size", LARGEST)):
        given = getattr(new, field)
        if given is not None and given > most:
            raise errors.network.TooLarge(field=field, most=most, given=given)


def _by_project(new: NewNetwork) -> NewNetwork:
    fields = {name: getattr(new, name) for name in NewNetwork.__struct_fields__}
    return NewNetwork(**{**fields, "by_project": True})


def delete_own(req: Request, network_id: str) -> None:
    """Delete a network of the caller's project, with its addresses. Raises network.NotFound (404); network.InUse
    (409)."""
    req.conductor.delete_own_network(network_id, req.project_id)


def _own(req: Request) -> Scope:
    return Scope(project_id=req.project_id)


# -- os-fixed-ips

@answers({"fixed_ip": views.FIXED})
def fixed(req: Request, fixed_ip: str) -> dict[str, object]:
    """Show one address of a pool, with its network's range, and the host and name of its server. Raises
    network.NoSuchAddress (404); network.BadAddress (400)."""
    return {"fixed_ip": views.FIXED(req.conductor.get_fixed_address(fixed_ip), req)}


def reserve(req: Request, fixed_ip: str) -> None:
    """Reserve an address, so that no server gets it. Idempotent. Raises network.NoSuchAddress (404); network.BadAddress
    (400)."""
    req.conductor.reserve_fixed_address(fixed_ip, True)


def unreserve(req: Request, fixed_ip: str) -> None:
    """Make an address available to servers again. Idempotent. Raises network.NoSuchAddress (404); network.BadAddress
    (400)."""
    req.conductor.reserve_fixed_address(fixed_ip, False)


# -- os-virtual-interfaces

@answers({"virtual_interfaces": [views.VIF]})
def virtual_interfaces(req: Request, server_id: str) -> dict[str, object]:
    """List the interfaces of a server with their MACs. Raises server.NotFound (404)."""
    target(req, server_id)
    found = req.conductor.list_interfaces(ServerQuery(uuid=server_id, scope=req.scope()))
    return {"virtual_interfaces": views.VIF.all(found, req, frozenset({views.LEGACY} if req.legacy else ()))}
