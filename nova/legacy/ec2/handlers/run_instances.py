"""RunInstances: translation of its parameters to the conductor call that the compute API uses, too."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Sequence

import msgspec

from nova import errors
from nova.legacy.ec2 import devices
from nova.legacy.ec2.devices import BlockDeviceMapping
from nova.legacy.ec2.faults import Ec2Error, invalid, unsupported
from nova.legacy.ec2.handlers.images import image_named
from nova.legacy.ec2.handlers.instances import GONE, of_uuids
from nova.legacy.ec2.parameters import Ec2Arguments
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views import instances as views
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery
from nova.model.image.images import Image
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import STOP, TERMINATE, CreatedServers, NewServer, ServerDetail

CREATE = "os_compute_api:servers:create"
ATTACH_VOLUME, ATTACH_NETWORK = f"{CREATE}:attach_volume", f"{CREATE}:attach_network"
FORCED_HOST = f"{CREATE}:forced_host"
USUAL_TYPE = "m1.small"
DEFAULT_GROUP = "default"
TOKENS = uuid.UUID("6d1b5c54-0d4f-5d0c-9a44-7a1c3f0f2f0e")  # the UUID namespace of idempotency keys from client tokens
LONGEST_TOKEN = 64
MOST_ROUNDS = 100  # reuses of a token after its servers were deleted
WRITTEN_S, LOOK_EVERY_S = 5.0, 0.05  # deadline and interval of polling for the server rows of a concurrent request
LONGEST_USER_DATA = 65535  # characters of base64, the compute API's limit
#: The error code of a create that was already made with the same key, according to the ledger.
CAME_BEFORE = "ledger.open"


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    availability_zone: str | None = None
    tenancy: str | None = None
    group_name: str | None = None


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str = ""


class TagSpecification(msgspec.Struct, frozen=True, kw_only=True):
    resource_type: str | None = None
    tag: tuple[Tag, ...] = ()


class AskedMonitoring(msgspec.Struct, frozen=True, kw_only=True):
    enabled: bool = False


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True):
    device_index: int = 0
    subnet_id: str | None = None
    private_ip_address: str | None = None
    security_group_id: tuple[str, ...] = ()
    delete_on_termination: bool | None = None
    associate_public_ip_address: bool | None = None


class RunInstances(Ec2Arguments, frozen=True, kw_only=True):
    image_id: str
    min_count: int = 1
    max_count: int = 1
    instance_type: str | None = None
    key_name: str | None = None
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    user_data: bytes | None = None
    security_group: tuple[str, ...] = ()
    security_group_id: tuple[str, ...] = ()
    placement: Placement | None = None
    client_token: str | None = None
    instance_initiated_shutdown_behavior: str = STOP
    block_device_mapping: tuple[BlockDeviceMapping, ...] = ()
    tag_specification: tuple[TagSpecification, ...] = ()
    network_interface: tuple[NetworkInterface, ...] = ()
    subnet_id: str | None = None
    private_ip_address: str | None = None
    monitoring: AskedMonitoring | None = None
    ebs_optimized: bool = False
    disable_api_termination: bool = False
    addressing_type: str | None = None  # of old clients; ignored, since every server has its own address


def run_instances(req: Ec2Request, args: RunInstances) -> Tree:
    """Create up to MaxCount and at least MinCount servers. A repeated ClientToken returns the servers it created.

    Raises InvalidAMIID.NotFound, InvalidKeyPair.NotFound, InvalidGroup.NotFound, InvalidBlockDeviceMapping,
    IncorrectState if the image is not available, ResourceLimitExceeded, InvalidParameterValue.
    """
    req.authorize(CREATE)
    _check(args)
    image = image_named(req, args.image_id)
    if image.status != "active" or image.properties.get("image_state", "available") != "available":
        raise Ec2Error("IncorrectState", f"Image {args.image_id} is not available.")
    order = _order(req, args, image)
    reservation_id, servers = _made(req, order, args.client_token)
    return views.reservation(req, reservation_id, servers, views.names_of(req, servers))


def _check(args: RunInstances) -> None:
    if args.min_count < 1 or args.max_count < args.min_count:
        raise invalid("MinCount", args.min_count, f"It must be at least 1 and at most MaxCount ({args.max_count}).")
    if args.instance_initiated_shutdown_behavior not in (STOP, TERMINATE):
        raise invalid("InstanceInitiatedShutdownBehavior", args.instance_initiated_shutdown_behavior,
                      f"It must be {STOP} or {TERMINATE}.")
    if args.client_token is not None and not 0 < len(args.client_token) <= LONGEST_TOKEN:
        raise invalid("ClientToken", args.client_token, f"It must have 1 to {LONGEST_TOKEN} characters.")
    if args.monitoring and args.monitoring.enabled:
        raise unsupported("Monitoring.Enabled: this cloud has no detailed monitoring.")
    if args.ebs_optimized:
        raise unsupported("EbsOptimized: no instance type has dedicated bandwidth to volumes.")
    if any(one.associate_public_ip_address for one in args.network_interface):
        raise unsupported("NetworkInterface.AssociatePublicIpAddress: use AllocateAddress and AssociateAddress.")
    if args.disable_api_termination:
        raise unsupported("DisableApiTermination: lock the server with the compute API instead.")


def _order(req: Ec2Request, args: RunInstances, image: Image) -> NewServer:
    tags = _tags(args.tag_specification)
    asked = devices.asked(req, args.block_device_mapping, image, args.max_count)
    if args.block_device_mapping:
        req.authorize(ATTACH_VOLUME)
    zone, host = _place(req, args.placement)
    encoded = base64.b64encode(args.user_data).decode() if args.user_data else None
    if encoded and len(encoded) > LONGEST_USER_DATA:
        raise invalid("UserData", f"{len(encoded)} characters of base64", f"The limit is {LONGEST_USER_DATA}.")
    return NewServer(
        name=tags.get("Name") or f"Server {args.image_id}", flavor_id=_flavor(req, args.instance_type).flavorid,
        image_id=image.id, min_count=args.min_count, max_count=args.max_count, metadata=tags,
        networks=_networks(req, args), security_groups=_groups(req, args), availability_zone=zone, host=host,
        forced=host is not None, key_name=args.key_name or None, user_data=encoded, disk_config_asked=False,
        may_zero_disk=True, disks=asked.disks, volumes=asked.volumes, unmapped=asked.unmapped,
        client_token=args.client_token, shutdown_behavior=args.instance_initiated_shutdown_behavior,
        kernel_id=_part(req, args.kernel_id), ramdisk_id=_part(req, args.ramdisk_id))


def _made(req: Ec2Request, order: NewServer, token: str | None) -> tuple[str, list[ServerDetail]]:
    """Create the servers with an idempotency key derived from the token; return the reservation id and the servers.

    A token may be reused after its servers were deleted: then the next key in the token's sequence is used.
    """
    for number in range(MOST_ROUNDS if token else 1):
        name = f"{req.project_id}/{req.context.user_id}/{token}/{number}"
        key = str(uuid.uuid5(TOKENS, name) if token else uuid.uuid4())
        try:
            made: CreatedServers = req.conductor.create_servers(msgspec.structs.replace(order, key=key))
        except errors.NovaError as error:
            if error.code != CAME_BEFORE:
                raise
            continue
        servers = _those_there(req, made.uuids)
        if servers:
            return made.reservation_id, sorted(servers, key=lambda one: one.launch_index)
    raise invalid("ClientToken", token, "Its instances are terminated, and it was reused too often.")


def _those_there(req: Ec2Request, uuids: Sequence[str]) -> list[ServerDetail]:
    """Return the existing servers of one request. Waits for the rows that a concurrent duplicate is still writing."""
    until = time.monotonic() + WRITTEN_S
    while not (found := of_uuids(req, uuids, with_deleted=True)) and time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)
    return [one for one in found.values() if not one.deleted and one.vm_state not in GONE]


def _flavor(req: Ec2Request, name: str | None) -> Flavor:
    """Return a flavor by name. Raises InvalidParameterValue (FlavorNotFoundByName for old clients)."""
    wanted = name or USUAL_TYPE
    found: Sequence[Flavor] = req.conductor.list_flavors(FlavorQuery(
        scope=Scope(project_id=req.project_id), is_public=None, name=wanted))
    for flavor in found:
        if flavor.name == wanted and not flavor.disabled:
            return flavor
    if req.is_old:
        raise Ec2Error("FlavorNotFoundByName", f"Flavor with name {wanted} could not be found.", 404)
    raise invalid("InstanceType", wanted, "DescribeInstanceTypes lists the valid types.")


def _part(req: Ec2Request, shown: str | None) -> str | None:
    """Return the image id of a kernel or initial RAM disk; the caller must have access to the image."""
    return image_named(req, shown).id if shown else None


def _tags(specifications: Sequence[TagSpecification]) -> dict[str, str]:
    """Return the instances' tags as metadata. Raises UnsupportedOperation for tags of other created resources."""
    for one in specifications:
        if one.resource_type not in ("instance", None) and one.tag:
            raise unsupported(f"TagSpecification.ResourceType={one.resource_type}: RunInstances supports tags of "
                              "instances only.")
    return {tag.key: tag.value for one in specifications for tag in one.tag}


def _place(req: Ec2Request, placement: Placement | None) -> tuple[str | None, str | None]:
    """Return (zone, host). Callers that may choose a host specify ``zone:host``."""
    if placement is None:
        return None, None
    if placement.tenancy not in (None, "", "default"):
        raise unsupported(f"Placement.Tenancy={placement.tenancy}: only the default is supported.")
    if placement.group_name:
        raise unsupported("Placement.GroupName: use the compute API for server groups.")
    zone, _, host = (placement.availability_zone or "").partition(":")
    if host:
        req.authorize(FORCED_HOST)
    return zone or None, host or None


def _groups(req: Ec2Request, args: RunInstances) -> tuple[str, ...]:
    """Return group names as given, and the compute API's ids for EC2 ids. Raises InvalidGroup.NotFound."""
    ids = [*args.security_group_id, *(id for one in args.network_interface for id in one.security_group_id)]
    named = (*args.security_group, *(views.groups_of(req, ids) if ids else ()))
    return tuple(dict.fromkeys(named)) or (DEFAULT_GROUP,)


def _networks(req: Ec2Request, args: RunInstances) -> tuple[RequestedNetwork, ...] | None:
    """Return the requested networks; None: the networks that the project may use."""
    wanted = [(one.subnet_id, one.private_ip_address) for one in
              sorted(args.network_interface, key=lambda one: one.device_index)]
    if args.subnet_id or args.private_ip_address:
        wanted.insert(0, (args.subnet_id, args.private_ip_address))
    if not any(subnet for subnet, _address in wanted):
        if any(address for _subnet, address in wanted):
            raise Ec2Error("MissingParameter", "PrivateIpAddress requires SubnetId.")
        return None
    req.authorize(ATTACH_NETWORK)
    if args.max_count > 1 and any(address for _subnet, address in wanted):
        raise Ec2Error("InvalidParameterCombination", "A private address cannot be assigned to several instances.")
    return tuple(RequestedNetwork(network_id=req.one_meant("subnet", subnet), fixed_ip=address)
                 for subnet, address in wanted if subnet)
