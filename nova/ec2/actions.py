"""What can be asked of EC2's API: an action's name, who answers it, and the compute API's rule that must allow it.

Actions about one server ask their rule on that server, by themselves.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any

from nova.ec2.handlers import (
    addresses,
    images,
    instance_power,
    instances,
    keypairs,
    networks,
    regions,
    run_instances,
    security_groups,
    tags,
    volumes,
)
from nova.ec2.parameters import Arguments
from nova.ec2.xml import Tree

Handler = Callable[[Any, Any], Tree]

_API = "os_compute_api:"
SERVERS, VOLUMES, SNAPSHOTS = f"{_API}servers:detail", f"{_API}os-volumes", f"{_API}os-volumes:snapshots"


class Action(typing.NamedTuple):
    """``rule`` None: the handler asks it on what it finds; or the service next door has rules of its own."""

    handler: Handler
    rule: str | None = None

    @property
    def arguments(self) -> type[Arguments]:
        """Of the handler's own annotation."""
        found = typing.get_type_hints(self.handler)["args"]
        assert isinstance(found, type) and issubclass(found, Arguments)
        return found


ACTIONS: Mapping[str, Action] = {
    # instances
    "DescribeInstances": Action(instances.describe_instances, SERVERS),
    "DescribeInstancesV6": Action(instances.describe_instances_v6, SERVERS),
    "DescribeInstanceStatus": Action(instances.describe_instance_status, SERVERS),
    "DescribeInstanceAttribute": Action(instances.describe_instance_attribute),
    "ModifyInstanceAttribute": Action(instances.modify_instance_attribute),
    "RunInstances": Action(run_instances.run_instances, run_instances.CREATE),
    "TerminateInstances": Action(instance_power.terminate_instances),
    "RebootInstances": Action(instance_power.reboot_instances),
    "StopInstances": Action(instance_power.stop_instances),
    "StartInstances": Action(instance_power.start_instances),
    "GetConsoleOutput": Action(instance_power.get_console_output),
    "GetPasswordData": Action(instance_power.get_password_data),
    # images: the image service's own rules, with the caller's token
    "DescribeImages": Action(images.describe_images),
    "RegisterImage": Action(images.register_image),
    "DeregisterImage": Action(images.deregister_image),
    "DescribeImageAttribute": Action(images.describe_image_attribute),
    "ModifyImageAttribute": Action(images.modify_image_attribute),
    "UpdateImage": Action(images.update_image),
    "CreateImage": Action(images.create_image),
    # volumes
    "DescribeVolumes": Action(volumes.describe_volumes, f"{VOLUMES}:detail"),
    "CreateVolume": Action(volumes.create_volume, f"{VOLUMES}:create"),
    "DeleteVolume": Action(volumes.delete_volume, f"{VOLUMES}:delete"),
    "AttachVolume": Action(volumes.attach_volume),
    "DetachVolume": Action(volumes.detach_volume),
    "DescribeSnapshots": Action(volumes.describe_snapshots, f"{SNAPSHOTS}:detail"),
    "CreateSnapshot": Action(volumes.create_snapshot, f"{SNAPSHOTS}:create"),
    "DeleteSnapshot": Action(volumes.delete_snapshot, f"{SNAPSHOTS}:delete"),
    # key pairs
    "DescribeKeyPairs": Action(keypairs.describe_key_pairs, f"{keypairs.RULES}:index"),
    "CreateKeyPair": Action(keypairs.create_key_pair, f"{keypairs.RULES}:create"),
    "ImportKeyPair": Action(keypairs.import_key_pair, f"{keypairs.RULES}:create"),
    "DeleteKeyPair": Action(keypairs.delete_key_pair, f"{keypairs.RULES}:delete"),
    # security groups
    "DescribeSecurityGroups": Action(security_groups.describe_security_groups, f"{security_groups.RULES}:get"),
    "DescribeSecurityGroupRules": Action(security_groups.describe_security_group_rules,
                                         f"{security_groups.RULES}:get"),
    "CreateSecurityGroup": Action(security_groups.create_security_group, f"{security_groups.RULES}:create"),
    "DeleteSecurityGroup": Action(security_groups.delete_security_group, f"{security_groups.RULES}:delete"),
    "AuthorizeSecurityGroupIngress": Action(security_groups.authorize_security_group_ingress,
                                            f"{security_groups.RULES}:rule:create"),
    "RevokeSecurityGroupIngress": Action(security_groups.revoke_security_group_ingress,
                                         f"{security_groups.RULES}:rule:delete"),
    # elastic IPs
    "DescribeAddresses": Action(addresses.describe_addresses, f"{addresses.RULES}:list"),
    "AllocateAddress": Action(addresses.allocate_address, f"{addresses.RULES}:create"),
    "ReleaseAddress": Action(addresses.release_address, f"{addresses.RULES}:delete"),
    "AssociateAddress": Action(addresses.associate_address, f"{addresses.RULES}:add"),
    "DisassociateAddress": Action(addresses.disassociate_address, f"{addresses.RULES}:remove"),
    # tags
    "CreateTags": Action(tags.create_tags),
    "DeleteTags": Action(tags.delete_tags),
    "DescribeTags": Action(tags.describe_tags, SERVERS),
    # what there is
    "DescribeRegions": Action(regions.describe_regions),
    "DescribeAvailabilityZones": Action(regions.describe_availability_zones, f"{_API}os-availability-zone:list"),
    "DescribeInstanceTypes": Action(regions.describe_instance_types),
    "DescribeAccountAttributes": Action(regions.describe_account_attributes, f"{_API}limits"),
    "DescribeVpcs": Action(networks.describe_vpcs),
    "DescribeSubnets": Action(networks.describe_subnets, f"{_API}os-networks:list"),
    "DescribeNetworkInterfaces": Action(networks.describe_network_interfaces),
}
