"""EC2 error responses: the error code that scripts and waiters compare, and the HTTP status.

``CODES`` maps nova's errors that have an EC2 code of their own; ``KINDS`` maps all others by kind. Clients that request
an old API version get the old codes (``OLD``).
"""

from __future__ import annotations

from typing import NamedTuple

from nova import errors
from nova.model.ec2 import (
    ADDRESS,
    GROUP,
    IMAGE,
    INSTANCE,
    INTERFACE,
    KEY_PAIR,
    NETWORK,
    RULE,
    SNAPSHOT,
    SUBNET,
    VOLUME,
)

UNEXPECTED = "Unknown error occurred."


class Ec2Error(errors.NovaError):
    """An error that the EC2 API itself detects."""

    def __init__(self, aws_code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.aws_code, self.status, self.code = aws_code, status, f"ec2.{aws_code}"


class Ec2Fault(NamedTuple):
    status: int
    code: str


def missing(name: str) -> Ec2Error:
    """Return the error for a missing required parameter."""
    return Ec2Error("MissingParameter", f"The request must contain the parameter {name}")


def invalid(name: str, value: object, reason: str) -> Ec2Error:
    """Return the error for an invalid value of a parameter."""
    return Ec2Error("InvalidParameterValue", f"Value ({str(value)[:200]}) for parameter {name} is invalid. {reason}")


def unsupported(message: str) -> Ec2Error:
    """Return the error for a feature of AWS that this cloud does not have."""
    return Ec2Error("UnsupportedOperation", message)


class Absence(NamedTuple):
    """The error codes of a resource type: for an unknown id, and for a malformed id."""

    not_found: str
    malformed: str
    what: str


ABSENT = {
    INSTANCE: Absence("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "instance ID"),
    VOLUME: Absence("InvalidVolume.NotFound", "InvalidVolumeID.Malformed", "volume"),
    SNAPSHOT: Absence("InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed", "snapshot"),
    IMAGE: Absence("InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "image id"),
    GROUP: Absence("InvalidGroup.NotFound", "InvalidGroupId.Malformed", "security group"),
    ADDRESS: Absence("InvalidAllocationID.NotFound", "InvalidAllocationID.Malformed", "allocation ID"),
    KEY_PAIR: Absence("InvalidKeyPair.NotFound", "InvalidKeyPair.Format", "key pair"),
    RULE: Absence("InvalidSecurityGroupRuleId.NotFound", "InvalidSecurityGroupRuleId.Malformed", "security group rule"),
    NETWORK: Absence("InvalidVpcID.NotFound", "InvalidVpcId.Malformed", "vpc ID"),
    SUBNET: Absence("InvalidSubnetID.NotFound", "InvalidSubnetId.Malformed", "subnet ID"),
    INTERFACE: Absence("InvalidNetworkInterfaceID.NotFound", "InvalidNetworkInterfaceId.Malformed",
                       "networkInterface ID"),
}


def absent(kind: str, shown: str) -> Ec2Error:
    """Return the error for an id that names no resource of the caller."""
    row = ABSENT[kind]
    return Ec2Error(row.not_found, f"The {row.what} '{shown}' does not exist", 404)


def malformed(kind: str, shown: str) -> Ec2Error:
    """Return the error for text that is not a valid id of the resource type."""
    return Ec2Error(ABSENT[kind].malformed, f'Invalid id: "{shown[:100]}"')


#: nova's error code -> EC2's status and code
CODES: dict[str, Ec2Fault] = {
    "server.not_found": Ec2Fault(404, "InvalidInstanceID.NotFound"),
    "server.wrong_state": Ec2Fault(400, "IncorrectInstanceState"),
    "server.no_host": Ec2Fault(400, "IncorrectInstanceState"),
    "server.no_guest": Ec2Fault(400, "IncorrectInstanceState"),
    "guest.not_found": Ec2Fault(400, "IncorrectInstanceState"),
    "server.going": Ec2Fault(400, "IncorrectInstanceState"),
    "server.locked": Ec2Fault(400, "OperationNotPermitted"),
    "server.locked_meanwhile": Ec2Fault(400, "OperationNotPermitted"),
    "server.fixed_ip_in_use": Ec2Fault(400, "InvalidIPAddress.InUse"),
    "server.no_such_security_group": Ec2Fault(404, "InvalidGroup.NotFound"),
    "network.no_such_group": Ec2Fault(404, "InvalidGroup.NotFound"),
    "quota.exceeded": Ec2Fault(413, "InstanceLimitExceeded"),
    "server.bad_image": Ec2Fault(404, "InvalidAMIID.NotFound"),
    "server.bad_keypair": Ec2Fault(404, "InvalidKeyPair.NotFound"),
    "keypair.not_found": Ec2Fault(404, "InvalidKeyPair.NotFound"),
    "keypair.taken": Ec2Fault(400, "InvalidKeyPair.Duplicate"),
    "keypair.bad_key": Ec2Fault(400, "InvalidKeyPair.Format"),
    "server.bad_flavor": Ec2Fault(400, "InvalidParameterValue"),
    "server.bad_block_device": Ec2Fault(400, "InvalidBlockDeviceMapping"),
    "server.bad_block_devices": Ec2Fault(400, "InvalidBlockDeviceMapping"),
    "image.not_found": Ec2Fault(404, "InvalidAMIID.NotFound"),
    "image.not_active": Ec2Fault(400, "IncorrectState"),
    "volume.not_found": Ec2Fault(404, "InvalidVolume.NotFound"),
    "volume.snapshot_not_found": Ec2Fault(404, "InvalidSnapshot.NotFound"),
    "volume.not_attached": Ec2Fault(400, "IncorrectState"),
    "volume.is_root": Ec2Fault(400, "OperationNotPermitted"),
    "volume.already_attached": Ec2Fault(400, "VolumeInUse"),
    "volume.not_available": Ec2Fault(400, "VolumeInUse"),
    "security_group.not_found": Ec2Fault(404, "InvalidGroup.NotFound"),
    "security_group.name_taken": Ec2Fault(400, "InvalidGroup.Duplicate"),
    "security_group.in_use": Ec2Fault(400, "InvalidGroup.InUse"),
    "security_group.default": Ec2Fault(400, "CannotDelete"),
    "security_group.rule_there": Ec2Fault(400, "InvalidPermission.Duplicate"),
    "security_group.no_rule": Ec2Fault(400, "InvalidPermission.NotFound"),
    "security_group.over_quota": Ec2Fault(413, "SecurityGroupLimitExceeded"),
    "security_group.rules_over_quota": Ec2Fault(413, "SecurityGroupLimitExceeded"),
    "floating.not_found": Ec2Fault(404, "InvalidAllocationID.NotFound"),
    "floating.no_such_address": Ec2Fault(404, "InvalidAddress.NotFound"),
    "floating.over_quota": Ec2Fault(413, "ResourceLimitExceeded"),
    "floating.not_yours": Ec2Fault(403, "AuthFailure"),
    "floating.not_associated": Ec2Fault(404, "InvalidAssociationID.NotFound"),
    "floating.no_fixed_address": Ec2Fault(400, "UnsupportedOperation"),
    "floating.no_fixed_addresses": Ec2Fault(400, "UnsupportedOperation"),
    "api.project_busy": Ec2Fault(503, "RequestLimitExceeded"),
    "page.marker_not_found": Ec2Fault(400, "InvalidNextToken"),
}
#: nova's error kind -> EC2's status and code
KINDS: dict[str, Ec2Fault] = {
    "not_found": Ec2Fault(404, "InvalidParameterValue"), "invalid": Ec2Fault(400, "InvalidParameterValue"),
    "conflict": Ec2Fault(400, "IncorrectState"), "wrong_state": Ec2Fault(400, "IncorrectState"),
    "overtaken": Ec2Fault(400, "IncorrectState"),
    "forbidden": Ec2Fault(403, "UnauthorizedOperation"), "over_quota": Ec2Fault(413, "ResourceLimitExceeded"),
    "unavailable": Ec2Fault(503, "Unavailable"), "peer_too_old": Ec2Fault(503, "Unavailable"),
    "not_supported": Ec2Fault(400, "UnsupportedOperation"), "gone": Ec2Fault(400, "UnsupportedOperation")}

#: Today's code -> the code of old API versions, if it differs.
OLD = {"InvalidGroup.NotFound": "SecurityGroupNotFound", "InvalidGroup.InUse": "InvalidGroup",
       "InvalidAMIID.NotFound": "ImageNotFound", "InvalidAction": "InvalidRequest",
       "InstanceLimitExceeded": "ResourceLimitExceeded",
       "UnauthorizedOperation": "AuthFailure", "IncorrectInstanceState": "IncorrectState",
       "InvalidAddress.NotFound": "UnsupportedOperation", "InvalidPermission.NotFound": "InvalidParameterValue",
       "Unavailable": "InternalError", "UnknownParameter": "InvalidRequest"}


def described(error: Exception, is_old: bool) -> tuple[int, str, str]:
    """Return the (status, code, message) of an error.

    Unexpected errors and errors with status 500 reveal no internals. Old clients never get a 5xx for an expected error.
    """
    if isinstance(error, Ec2Error):
        fault = Ec2Fault(error.status, error.aws_code)
    elif isinstance(error, errors.NovaError) and error.status != 500:
        fault = CODES.get(error.code) or KINDS.get(error.kind) or Ec2Fault(400, "InternalError")
    else:
        return 500, "InternalError", UNEXPECTED
    if is_old:
        fault = Ec2Fault(min(fault.status, 499) if fault.status < 500 else 400, OLD.get(fault.code, fault.code))
    return fault.status, fault.code, error.message
