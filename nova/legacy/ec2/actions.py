"""The table of EC2 actions: name, handler, and the compute API's policy rule that must allow the action.

Handlers of actions on one server check the policy rule themselves, against that server.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any

from nova.legacy.ec2.handlers import (
    addresses,
    images,
    instance_power,
    instances,
    keypairs,
    networks,
    regions,
    run_instances,
    security_group_rules,
    security_groups,
    tags,
    volumes,
)
from nova.legacy.ec2.parameters import Ec2Arguments
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree

#: Takes the request, and the arguments as the type in its annotation.
Handler = Callable[[Ec2Request, Any], Tree]

_API = "os_compute_api:"
SERVERS, VOLUMES, SNAPSHOTS = f"{_API}servers:detail", f"{_API}os-volumes", f"{_API}os-volumes:snapshots"


class Ec2Action(typing.NamedTuple):
    """The handler of an action, and its policy rule.

    ``rule`` is None if the handler checks the rule against the resource, or if the other service has its own rules.
    """

    handler: Handler
    rule: str | None = None

    @property
    def arguments(self) -> type[Ec2Arguments]:
        """The type of the action's arguments, from the handler's annotation."""
        found = typing.get_type_hints(self.handler)["args"]
        assert isinstance(found, type) and issubclass(found, Ec2Arguments)
        return found


ACTIONS: Mapping[str, Ec2Action] = {
    # instances
    "DescribeInstances": Ec2Action(instances.describe_instances, SERVERS),
    "DescribeInstancesV6": Ec2Action(instances.describe_instances_v6, SERVERS),
    "DescribeInstanceStatus": Ec2Action(instances.describe_instance_status, SERVERS),
    "DescribeInstanceAttribute": Ec2Action(instances.describe_instance_attribute),
    "ModifyInstanceAttribute": Ec2Action(instances.modify_instance_attribute),
    "RunInstances": Ec2Action(run_instances.run_instances, run_instances.CREATE),
    "TerminateInstances": Ec2Action(instance_power.terminate_instances),
    "RebootInstances": Ec2Action(instance_power.reboot_instances),
    "StopInstances": Ec2Action(instance_power.stop_instances),
    "StartInstances": Ec2Action(instance_power.start_instances),
    "GetConsoleOutput": Ec2Action(instance_power.get_console_output),
    "GetPasswordData": Ec2Action(instance_power.get_password_data),
    # images: the image service's own rules, with the caller's token
    "DescribeImages": Ec2Action(images.describe_images),
    "RegisterImage": Ec2Action(images.register_image),
    "DeregisterImage": Ec2Action(images.deregister_image),
    "DescribeImageAttribute": Ec2Action(images.describe_image_attribute),
    "ModifyImageAttribute": Ec2Action(images.modify_image_attribute),
    "UpdateImage": Ec2Action(images.update_image),
    "CreateImage": Ec2Action(images.create_image),
    # volumes
    "DescribeVolumes": Ec2Action(volumes.describe_volumes, f"{VOLUMES}:detail"),
    "CreateVolume": Ec2Action(volumes.create_volume, f"{VOLUMES}:create"),
    "DeleteVolume": Ec2Action(volumes.delete_volume, f"{VOLUMES}:delete"),
    "AttachVolume": Ec2Action(volumes.attach_volume),
    "DetachVolume": Ec2Action(volumes.detach_volume),
    "DescribeSnapshots": Ec2Action(volumes.describe_snapshots, f"{SNAPSHOTS}:detail"),
    "CreateSnapshot": Ec2Action(volumes.create_snapshot, f"{SNAPSHOTS}:create"),
    "DeleteSnapshot": Ec2Action(volumes.delete_snapshot, f"{SNAPSHOTS}:delete"),
    # key pairs
    "DescribeKeyPairs": Ec2Action(keypairs.describe_key_pairs, f"{keypairs.RULES}:index"),
    "CreateKeyPair": Ec2Action(keypairs.create_key_pair, f"{keypairs.RULES}:create"),
    "ImportKeyPair": Ec2Action(keypairs.import_key_pair, f"{keypairs.RULES}:create"),
    "DeleteKeyPair": Ec2Action(keypairs.delete_key_pair, f"{keypairs.RULES}:delete"),
    # security groups
    "DescribeSecurityGroups": Ec2Action(security_groups.describe_security_groups, f"{security_groups.RULES}:get"),
    "DescribeSecurityGroupRules": Ec2Action(
        security_group_rules.describe_security_group_rules, f"{security_groups.RULES}:get"),
    "CreateSecurityGroup": Ec2Action(security_groups.create_security_group, f"{security_groups.RULES}:create"),
    "DeleteSecurityGroup": Ec2Action(security_groups.delete_security_group, f"{security_groups.RULES}:delete"),
    "AuthorizeSecurityGroupIngress": Ec2Action(
        security_group_rules.authorize_security_group_ingress, f"{security_groups.RULES}:rule:create"),
    "RevokeSecurityGroupIngress": Ec2Action(
        security_group_rules.revoke_security_group_ingress, f"{security_groups.RULES}:rule:delete"),
    # elastic IPs
    "DescribeAddresses": Ec2Action(addresses.describe_addresses, f"{addresses.RULES}:list"),
    "AllocateAddress": Ec2Action(addresses.allocate_address, f"{addresses.RULES}:create"),
    "ReleaseAddress": Ec2Action(addresses.release_address, f"{addresses.RULES}:delete"),
    "AssociateAddress": Ec2Action(addresses.associate_address, f"{addresses.RULES}:add"),
    "DisassociateAddress": Ec2Action(addresses.disassociate_address, f"{addresses.RULES}:remove"),
    # tags
    "CreateTags": Ec2Action(tags.create_tags),
    "DeleteTags": Ec2Action(tags.delete_tags),
    "DescribeTags": Ec2Action(tags.describe_tags, SERVERS),
    # regions, types, limits and networks
    "DescribeRegions": Ec2Action(regions.describe_regions),
    "DescribeAvailabilityZones": Ec2Action(regions.describe_availability_zones, f"{_API}os-availability-zone:list"),
    "DescribeInstanceTypes": Ec2Action(regions.describe_instance_types),
    "DescribeAccountAttributes": Ec2Action(regions.describe_account_attributes, f"{_API}limits"),
    "DescribeVpcs": Ec2Action(networks.describe_vpcs),
    "DescribeSubnets": Ec2Action(networks.describe_subnets, f"{_API}os-networks:list"),
    "DescribeNetworkInterfaces": Ec2Action(networks.describe_network_interfaces),
}

#: Actions that create another resource if repeated; today's clients send a ClientToken with them.
ALWAYS_NEW = frozenset({"RunInstances"})


def is_reading(action: str) -> bool:
    """Return whether the action is read-only, from the prefix of its EC2 name."""
    return action.startswith(("Describe", "Get"))
