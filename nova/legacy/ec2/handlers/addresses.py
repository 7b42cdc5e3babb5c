"""Actions on Elastic IPs, which are floating IPs identified by address or allocation id."""

from __future__ import annotations

from collections.abc import Sequence

from nova import errors, failures
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, missing, unsupported
from nova.legacy.ec2.handlers.instances import target
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.ec2 import ADDRESS
from nova.model.network.floating import FloatingAddress, FloatingAssociation, FloatingQuery

RULES = "os_compute_api:os-floating-ips"
STANDARD = "standard"

FILTERS: lists.FilterPaths = {
    "public-ip": "publicIp", "instance-id": "instanceId", "domain": "domain", "allocation-id": "allocationId",
    "association-id": "associationId", "private-ip-address": "privateIpAddress"}


class DescribeAddresses(Ec2Listing, frozen=True, kw_only=True):
    public_ip: tuple[str, ...] = ()
    allocation_id: tuple[str, ...] = ()


def describe_addresses(req: Ec2Request, args: DescribeAddresses) -> Tree:
    """List the project's addresses.

    Raises InvalidAddress.NotFound (UnsupportedOperation for old clients), InvalidAllocationID.NotFound.
    """
    found = own(req)
    for address in args.public_ip:
        by_address(found, address)
    if args.allocation_id:
        req.meant("eipalloc", args.allocation_id)
    shown = _addresses(req, found)
    if args.public_ip or args.allocation_id:
        asked = {*args.public_ip, *args.allocation_id}
        known = {one["allocationId"] for one in shown} if not req.is_old else set()
        for id in args.allocation_id:
            if id not in known:
                raise absent(ADDRESS, id)
        shown = [one for one in shown if {one["publicIp"], one.get("allocationId")} & asked]
    test = lists.tester(args.filter, FILTERS)
    return {"addressesSet": [one for one in shown if test(one)]}


def own(req: Ec2Request) -> Sequence[FloatingAddress]:
    """Return the project's addresses; the addresses of all projects for an administrator with an old client."""
    found: Sequence[FloatingAddress] = req.conductor.list_floating_addresses(FloatingQuery(scope=req.scope()))
    return found


def by_address(found: Sequence[FloatingAddress], address: str) -> FloatingAddress:
    """Return the floating IP with this address. Raises InvalidAddress.NotFound."""
    for one in found:
        if one.address == address:
            return one
    raise Ec2Error("InvalidAddress.NotFound", f"Address '{address}' not found.", 404)


def _addresses(req: Ec2Request, found: Sequence[FloatingAddress]) -> list[dict[str, object]]:
    servers = req.ids("i", [one.server_uuid or "" for one in found])
    allocations = {} if req.is_old else req.ids("eipalloc", [one.id for one in found])
    shown = []
    for one in found:
        instance = servers.get(one.server_uuid or "", "")
        tree: dict[str, object] = {"publicIp": one.address, "instanceId": instance}
        if req.decorates and instance:
            tree["instanceId"] = f"{instance} ({one.project_id})"
        if not req.is_old:
            id = allocations[one.id]
            tree |= {"domain": STANDARD, "allocationId": id, "publicIpv4Pool": one.pool,
                     "associationId": _association(id) if instance else None, "privateIpAddress": one.fixed_address,
                     "instanceId": instance or None}
        shown.append(tree)
    return shown


def _association(allocation: str) -> str:
    """Return the association id: the allocation's number, since an address has at most one association."""
    return allocation.replace("eipalloc-", "eipassoc-", 1)


class AllocateAddress(Ec2Arguments, frozen=True, kw_only=True):
    domain: str | None = None
    public_ipv4_pool: str | None = None
    address: str | None = None


def allocate_address(req: Ec2Request, args: AllocateAddress) -> Tree:
    """Allocate an address from the named pool, or from the configured pool.

    Raises ResourceLimitExceeded, UnsupportedOperation if the pool is empty.
    """
    if args.address:
        raise unsupported("Address: a specific address cannot be requested.")
    with failures.replaced(errors.NotFound, lambda error: unsupported(f"{error.message} An operator must add "
            "addresses: nova-manage floating create, or a subnet of Neutron's external network.")):
        made: FloatingAddress = req.conductor.allocate_floating_address(req.project_id, args.public_ipv4_pool or None)
    shown: dict[str, object] = {"publicIp": made.address}
    if not req.is_old:
        shown |= {"domain": STANDARD, "allocationId": req.id("eipalloc", made.id), "publicIpv4Pool": made.pool}
    return shown


class AddressNamed(Ec2Arguments, frozen=True, kw_only=True):
    public_ip: str | None = None
    allocation_id: str | None = None
    association_id: str | None = None
    network_border_group: str | None = None


def release_address(req: Ec2Request, args: AddressNamed) -> Tree:
    """Release an address. Raises InvalidAllocationID.NotFound, InvalidAddress.NotFound."""
    found = _named(req, args.public_ip, args.allocation_id)
    req.conductor.release_floating_address(found.id, Scope(project_id=req.project_id))
    return {"return": True}


def _named(req: Ec2Request, address: str | None, id: str | None) -> FloatingAddress:
    """Return a floating IP by allocation id or address. Raises MissingParameter without both."""
    if id:
        meant = req.one_meant("eipalloc", id.replace("eipassoc-", "eipalloc-", 1))
        for one in own(req):
            if one.id == meant:
                return one
        raise absent(ADDRESS, id)
    if not address:
        raise missing("PublicIp")
    return by_address(own(req), address)


class AssociateAddress(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: str | None = None
    public_ip: str | None = None
    allocation_id: str | None = None
    private_ip_address: str | None = None
    network_interface_id: str | None = None
    allow_reassociation: bool = True


def associate_address(req: Ec2Request, args: AssociateAddress) -> Tree:
    """Associate an address with the named fixed address of an instance, by default with its first.

    Raises Resource.AlreadyAssociated, InvalidInstanceID.NotFound.
    """
    if not args.instance_id:
        raise missing("InstanceId")
    found = _named(req, args.public_ip, args.allocation_id)
    server = target(req, args.instance_id, f"{RULES}:add")
    if not args.allow_reassociation and found.server_uuid not in (None, server.uuid):
        raise Ec2Error("Resource.AlreadyAssociated", f"{found.address} is already associated with another instance.")
    req.conductor.associate_floating_address(FloatingAssociation(
        server_uuid=server.uuid, address=found.address, fixed_address=args.private_ip_address))
    if req.is_old:
        return {"return": True}
    return {"return": True, "associationId": _association(req.id("eipalloc", found.id))}


def disassociate_address(req: Ec2Request, args: AddressNamed) -> Tree:
    """Disassociate an address from its instance. Raises InvalidAssociationID.NotFound if it has none."""
    found = _named(req, args.public_ip, args.association_id or args.allocation_id)
    if found.server_uuid is None:
        raise Ec2Error("InvalidAssociationID.NotFound", f"Address {found.address} is not associated.", 404)
    with failures.replaced(errors.Conflict, lambda _: Ec2Error("InvalidAssociationID.NotFound",
            f"Address {found.address} is not associated.", 404)):
        req.conductor.disassociate_floating_address(FloatingAssociation(
            server_uuid=found.server_uuid, address=found.address))
    return {"return": True}
