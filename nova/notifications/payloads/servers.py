"""Payloads of servers. Subject: ``nova.notifications.facts.NotifiedServer``."""

from __future__ import annotations

import base64
import binascii
import hashlib

from nova.notifications.facts import NotifiedServer, ShownServer
from nova.notifications.payloads.fields import Payload, PayloadField, fields, wire
from nova.notifications.payloads.resources import EXCEPTION, FLAVOR, KEYPAIR, SERVERS_FLAVOR

#: Power states by the number in the Compute API.
POWER_STATES = {0: "pending", 1: "running", 3: "paused", 4: "shutdown", 6: "crashed", 7: "suspended"}

IP = Payload("IpPayload", "1.0", *fields("label", "mac", "meta", "port_uuid", "version", "address", "device_name"))
BLOCK_DEVICE = Payload("BlockDevicePayload", "1.0",
                       *fields("device_name", "boot_index", "delete_on_termination", "volume_id", "tag"))
AUDIT_PERIOD = Payload("AuditPeriodPayload", "1.0",
                       PayloadField("audit_period_beginning", "beginning"),
                       PayloadField("audit_period_ending", "ending"))
STATE_UPDATE = Payload("InstanceStateUpdatePayload", "1.0",
                       *fields("old_state", "state", "old_task_state", "new_task_state"))


def image_property(row: ShownServer, *names: str) -> str | None:
    """Return the first of these properties that the server's image has."""
    properties = row.image.properties if row.image is not None else {}
    return next((properties[name] for name in names if properties.get(name)), None)


def _addresses(facts: NotifiedServer) -> list[dict[str, object]]:
    """Return one row per address. A deleted server has released its addresses."""
    if facts.row.deleted:
        return []
    return [wire(IP.name, IP.version, {
        "label": one.label, "mac": one.mac, "meta": {}, "port_uuid": one.id, "version": address.version,
        "address": address.address, "device_name": one.device or f"tap{one.id[:11]}"})
        for one in facts.row.interfaces or () for address in one.addresses]


def _disks(facts: NotifiedServer) -> list[dict[str, object] | None] | None:
    return [BLOCK_DEVICE(one) for one in facts.volumes] if facts.shows_disks else None


def _state(facts: NotifiedServer) -> str:
    return "deleted" if facts.row.deleted else str(facts.row.vm_state)


class _Key:
    """The server's own copy of its key."""

    def __init__(self, row: ShownServer) -> None:
        self.user_id, self.name, self.public_key, self.type = row.user_id, row.key_name, row.public_key, row.key_type
        self.fingerprint = _fingerprint(row.public_key, row.key_type)


def _fingerprint(public_key: str | None, kind: str) -> str | None:
    """Return the MD5 of an SSH key, as in the API; None for other types, whose rows contain only a certificate."""
    parts = (public_key or "").split()
    if kind != "ssh" or len(parts) < 2:
        return None
    try:
        digest = hashlib.md5(base64.b64decode(parts[1]), usedforsecurity=False).hexdigest()
    except (binascii.Error, ValueError):
        return None
    return ":".join(digest[index:index + 2] for index in range(0, len(digest), 2))


def _keypairs(facts: NotifiedServer) -> list[object]:
    return [KEYPAIR(_Key(facts.row))] if facts.row.key_name else []


def _extra(name: str) -> PayloadField:
    return PayloadField(name, lambda facts: facts.extra.get(name))


INSTANCE = (
    *fields("uuid", "user_id", "reservation_id", "host", "node", "availability_zone", "key_name", "kernel_id",
            "ramdisk_id", "created_at", "launched_at", "terminated_at", "deleted_at", "updated_at", "task_state",
            "progress", "locked_reason", of="row"),
    PayloadField("tenant_id", "row.project_id"),
    PayloadField("display_name", "row.name"),
    PayloadField("display_description", "row.description"),
    PayloadField("host_name", "row.hostname"),
    PayloadField("image_uuid", "row.image_id"),
    PayloadField("auto_disk_config", "row.disk_config"),
    PayloadField("os_type", lambda facts: image_property(facts.row, "os_type")),
    PayloadField("architecture", lambda facts: image_property(facts.row, "hw_architecture", "architecture")),
    PayloadField("flavor", lambda facts: SERVERS_FLAVOR(facts.row.flavor)),
    PayloadField("state", _state),
    PayloadField("power_state", lambda facts: POWER_STATES.get(int(facts.row.power_state), "pending")),
    PayloadField("locked", lambda facts: facts.row.locked_by is not None),
    PayloadField("ip_addresses", _addresses),
    PayloadField("block_devices", _disks),
    PayloadField("shares", lambda _facts: []),
    PayloadField("metadata", "metadata"),
    PayloadField("request_id", "who.request_id"),
    PayloadField("action_initiator_user", "who.user_id"),
    PayloadField("action_initiator_project", "who.project_id"),
)
ACTION = (*INSTANCE, PayloadField("fault", lambda facts: EXCEPTION(facts.failure)))

INSTANCE_ACTION = Payload("InstanceActionPayload", "1.9", *ACTION)
INSTANCE_CREATE = Payload(
    "InstanceCreatePayload", "1.13", *ACTION, PayloadField("keypairs", _keypairs), PayloadField("tags", "tags"),
    PayloadField("trusted_image_certificates", "row.trusted_certs"), PayloadField("instance_name", "instance_name"))
INSTANCE_UPDATE = Payload(
    "InstanceUpdatePayload", "2.1", *INSTANCE, PayloadField("tags", "tags"), _extra("old_display_name"),
    PayloadField("state_update", lambda facts: STATE_UPDATE(facts.extra["states"])),
    PayloadField("audit_period", lambda facts: AUDIT_PERIOD(facts.extra["period"])))
INSTANCE_EXISTS = Payload("InstanceExistsPayload", "2.1", *INSTANCE,
                          PayloadField("audit_period", lambda facts: AUDIT_PERIOD(facts.extra["period"])))
INSTANCE_REBUILD = Payload("InstanceActionRebuildPayload", "1.10", *ACTION,
                           PayloadField("trusted_image_certificates", "row.trusted_certs"))
INSTANCE_RESCUE = Payload("InstanceActionRescuePayload", "1.4", *ACTION, _extra("rescue_image_ref"))
INSTANCE_RESIZE_PREP = Payload("InstanceActionResizePrepPayload", "1.4", *ACTION,
                               PayloadField("new_flavor", lambda facts: FLAVOR(facts.extra.get("new_flavor"))))
INSTANCE_SNAPSHOT = Payload("InstanceActionSnapshotPayload", "1.10", *ACTION, _extra("snapshot_image_id"))
INSTANCE_VOLUME = Payload("InstanceActionVolumePayload", "1.7", *ACTION, _extra("volume_id"))
INSTANCE_VOLUME_SWAP = Payload("InstanceActionVolumeSwapPayload", "1.9", *ACTION, _extra("old_volume_id"),
                               _extra("new_volume_id"))
INSTANCE_SHARE = Payload("InstanceActionSharePayload", "1.0", *ACTION, _extra("share_id"))
