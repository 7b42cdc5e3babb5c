"""The VPC actions that tools use: VPCs do not exist here, and the project's networks appear as subnets."""

from __future__ import annotations

from collections.abc import Sequence

from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import absent
from nova.legacy.ec2.parameters import Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.ec2 import INTERFACE, NETWORK, SUBNET
from nova.model.network.networks import Network

SUBNET_FILTERS: lists.FilterPaths = {"subnet-id": "subnetId", "state": "state", "cidr-block": "cidrBlock",
                                     "cidr": "cidrBlock", "vpc-id": "vpcId"}


class DescribeVpcs(Ec2Listing, frozen=True, kw_only=True):
    vpc_id: tuple[str, ...] = ()


def describe_vpcs(req: Ec2Request, args: DescribeVpcs) -> Tree:
    """Return an empty list of VPCs. Raises InvalidVpcID.NotFound if the request names one."""
    if args.vpc_id:
        raise absent(NETWORK, args.vpc_id[0])
    return {"vpcSet": ()}


class DescribeSubnets(Ec2Listing, frozen=True, kw_only=True):
    subnet_id: tuple[str, ...] = ()


def describe_subnets(req: Ec2Request, args: DescribeSubnets) -> Tree:
    """List the networks that the project may use. Raises InvalidSubnetID.NotFound."""
    networks: Sequence[Network] = req.conductor.list_networks(Scope(project_id=req.project_id))
    ids = req.ids("subnet", [one.uuid for one in networks])
    found: list[Tree] = [{"subnetId": ids[one.uuid], "state": "available", "vpcId": None, "cidrBlock": one.cidr,
                          "tagSet": [{"key": "Name", "value": one.label}]} for one in networks]
    for id in args.subnet_id:
        if id not in ids.values():
            raise absent(SUBNET, id)
    wanted = [one for one in found if not args.subnet_id or one["subnetId"] in args.subnet_id]
    page = lists.chosen(wanted, args, SUBNET_FILTERS, "subnetId", has_tags=True)
    return {"subnetSet": page.items, "nextToken": page.next_token}


class DescribeNetworkInterfaces(Ec2Listing, frozen=True, kw_only=True):
    network_interface_id: tuple[str, ...] = ()


def describe_network_interfaces(req: Ec2Request, args: DescribeNetworkInterfaces) -> Tree:
    """Return an empty list of network interfaces: addresses belong to the servers.

    Raises InvalidNetworkInterfaceID.NotFound if the request names one.
    """
    if args.network_interface_id:
        raise absent(INTERFACE, args.network_interface_id[0])
    return {"networkInterfaceSet": ()}
