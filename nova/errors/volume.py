"""Errors about volumes, their snapshots and their attachments, which Cinder keeps."""

from __future__ import annotations

from nova.errors import kinds, service

AttachmentNotFound = kinds.NotFound.row("volume.attachment_not_found",
    "Volume attachment {attachment} could not be found.")
#: Cinder, or what stands before it.
Away = service.Unavailable.row("volume.away", "The volume service (Cinder) does not answer: {reason}.",
    "See cinder-api's log and endpoint (`openstack catalog list`), and [cinder]catalog_info in nova.conf.")
#: Nothing that whoever asks us could help.
Credentials = kinds.Unavailable.row("volume.credentials",
    "The volume service (Cinder) refuses our own credentials, those of [cinder] or [service_user]: {reason}.",
    "Set username, password and project there; the user needs the roles admin and service.")
InUseByService = kinds.Conflict.row("volume.in_use_by_service",
    "Cinder does not give attachment {attachment} back: it did not accept our service token ({reason}).",
    "Give the user of [cinder] or [service_user] the role service, and set service_token_roles = service in "
    "section keystone_authtoken of cinder.conf.")
NotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
NotFound = kinds.NotFound.row("volume.not_found", "Volume {volume} could not be found.")
OverQuota = kinds.OverQuota.row("volume.over_quota", "Cinder refused: {reason}.",
    "Delete volumes or snapshots that are not needed, or ask an operator for a higher quota (`openstack quota set`).")
Refused = kinds.Invalid.row("volume.refused", "Cinder refused: {reason}.",
    "The reason is Cinder's own: look at the volume (`openstack volume show`), and change what it names.")
SnapshotNotFound = kinds.NotFound.row("volume.snapshot_not_found", "Snapshot {snapshot} could not be found.")
TooOld = kinds.NotSupported.row("volume.too_old",
    "This needs version {wanted} of the volume service's API, and Cinder there has {found}.",
    "Upgrade Cinder: servers with volumes need 3.44, and to rebuild a server that boots from one needs 3.68.")
TypeNotFound = kinds.Invalid.row("volume.type_not_found", "Volume type {volume_type} could not be found.")
WrongAddress = kinds.Unavailable.row("volume.wrong_address",
    "The volume service (Cinder) has no address that can be used: {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
