"""Errors about Cinder's volumes, snapshots and attachments, and about servers' use of them."""

from __future__ import annotations

from nova.errors import kinds, service

AlreadyAttached = kinds.Invalid.row("volume.already_attached",
    "Volume {volume} is attached, or being attached, to this server or another one.")
AttachmentNotFound = kinds.NotFound.row("volume.attachment_not_found",
    "Volume attachment {attachment} could not be found.")
#: Cinder, or a proxy in front of it.
Away = service.Unavailable.row("volume.away", "The volume service (Cinder) does not answer: {reason}.",
    "Check cinder-api's log and endpoint (`openstack catalog list`), and [cinder]catalog_info in nova.conf.")
BadDeleteInfo = kinds.Invalid.row("volume.bad_delete_info", "Invalid delete_info: {reason}.")
BadDevice = kinds.Invalid.row("volume.bad_device", "Invalid block device mapping: {reason}")
Busy = kinds.Conflict.row("volume.busy",
    "Another operation on server {server} is in progress: its volumes cannot be changed now.",
    "Repeat the request when it has ended (openstack server event list).")
CannotReplace = kinds.Invalid.row("volume.cannot_replace",
    "Volume {new} cannot replace volume {old}: {reason}.")
#: The caller cannot fix this.
Credentials = kinds.Unavailable.row("volume.credentials",
    "The volume service (Cinder) rejects nova's credentials in [cinder] or [service_user]: {reason}.",
    "Set username, password and project there; the user needs the roles admin and service.")
Encrypted = kinds.Invalid.row("volume.encrypted",
    "Volume {volume} is encrypted by {provider}: servers can use only encrypted volumes of the provider luks.",
    "Use a volume type whose encryption has the provider luks (openstack volume type set --encryption-provider luks), "
    "or one without encryption.")
Fixed = kinds.Invalid.row("volume.fixed", "The attachment's {field} cannot be changed: {reason}.")
HostDown = kinds.Conflict.row("volume.host_down",
    "The host of server {server} is down: the volume cannot be detached from the guest.",
    "Detach it when the host is back, or evacuate the server first.")
InUseByService = kinds.Conflict.row("volume.in_use_by_service",
    "Cinder refused to delete attachment {attachment}: it did not accept nova's service token ({reason}).",
    "Give the user of [cinder] or [service_user] the role service, and set service_token_roles = service in "
    "section keystone_authtoken of cinder.conf.")
IsRoot = kinds.Invalid.row("volume.is_root", "The server boots from volume {volume}: it cannot be detached.")
NeedsMultiattach = kinds.Invalid.row("volume.needs_multiattach",
    "Volume {volume} is multiattach: attach it with microversion 2.60 or newer.")
NoBackup = kinds.Invalid.row("volume.no_backup", "Backup is not supported for volume-backed instances.",
    "Take snapshots (openstack server image create), or back up the volumes (openstack volume backup create).")
NoBootable = kinds.Invalid.row("volume.no_bootable", "Volume {volume} is not bootable.")
NoKey = kinds.Unavailable.row("volume.no_key", "The key {key} of a volume cannot be fetched: {reason}.",
    "Check [key_manager] and [barbican] in nova-conductor's configuration; Barbican's policy or the key's own ACL "
    "(openstack acl user add) must allow the requesting user.")
NoRescue = kinds.Invalid.row("volume.no_rescue", "Instance {server} cannot be rescued: {reason}.",
    "Use microversion 2.87 or newer, and an image with the properties hw_rescue_device and hw_rescue_bus.")
NotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
NotAvailable = kinds.Invalid.row("volume.not_available",
    "Volume {volume} cannot be attached: its status is {status}, and must be available.")
NotFound = kinds.NotFound.row("volume.not_found", "Volume {volume} could not be found.")
NotInUse = kinds.Invalid.row("volume.not_in_use",
    "Volume {volume} of the server has status {status}, and must be in-use.",
    "Check it (openstack volume show), and repeat the request when the operation on it has ended.")
NotMade = kinds.Bug.row("volume.not_made",
    "Volume {volume}, which was created for the server, has status {status}.",
    "See the volume service's reason: openstack volume message list; then delete the server and create it again.")
NotOnOffloaded = kinds.Invalid.row("volume.not_on_offloaded",
    "A tag or a multiattach volume cannot be attached to a shelved and offloaded server (volume {volume}).")
NotReimaged = kinds.Bug.row("volume.not_reimaged",
    "Image {image_id} could not be written to the server's root volume {volume}, which now has status {status}: its "
    "old data are lost.",
    "See the volume service's reason: openstack volume message list; then rebuild the server again.")
#: With [cinder]cross_az_attach = false, for a new server or an attachment.
OtherZone = kinds.Invalid.row("volume.other_zone",
    "The server and volume {volume} are not in the same availability_zone. The server is in {server_zone}. The volume "
    "is in {zone}.",
    "Use a volume of the server's zone, or create a server in the volume's zone.")
#: The same error for an unshelve.
OutOfZone = kinds.Conflict.row("volume.out_of_zone",
    "Volume {volume} of the server is in zone {zone}: the server cannot be unshelved in {server_zone}.",
    "Unshelve it in the volumes' zone, or without a zone.")
OverQuota = kinds.OverQuota.row("volume.over_quota", "Cinder refused: {reason}.",
    "Delete volumes or snapshots that are not needed, or ask an operator for a higher quota (`openstack quota set`).")
RebuildKeepsNone = kinds.Invalid.row("volume.rebuild_keeps_none",
    "preserve_ephemeral: a server that boots from a volume has no disk to preserve. Omit the field.")
RebuildMultiattach = kinds.Invalid.row("volume.rebuild_multiattach",
    "The server boots from volume {volume}, which is multiattach: it cannot be overwritten.")
RebuildSameImage = kinds.Invalid.row("volume.rebuild_same_image",
    "Image {image_id} is unacceptable: Unable to rebuild with a different image for a volume-backed server.",
    "With microversion 2.93 or newer the image overwrites the volume: its data are lost.")
RebuildSnapshotFile = kinds.Invalid.row("volume.rebuild_snapshot_file",
    "The server boots from volume {volume}, which has or had a snapshot: the guest reads the file {file}, but Cinder "
    "would write the image to another file.",
    "Create a volume from the image (openstack volume create --image), and a server that boots from it.")
Refused = kinds.Invalid.row("volume.refused", "Cinder refused: {reason}.",
    "The reason is Cinder's own text: check the volume (`openstack volume show`), and fix the cause that it names.")
RefreshNotOff = kinds.Conflict.row("volume.refresh_not_off",
    "Server {server} is {state}: an attachment can be refreshed only while its server is stopped and has no operation "
    "in progress.",
    "Stop the server (openstack server stop), and repeat the command.")
ReimageSlow = kinds.Bug.row("volume.reimage_slow",
    "The volume service has not finished writing image {image_id} to the server's root volume {volume} within "
    "{seconds} s, and is still working on it.",
    "Wait until the volume is reserved or in error, then rebuild the server again. Large images need a larger "
    "[DEFAULT]reimage_timeout_per_gb.")
SnapshotNotFound = kinds.NotFound.row("volume.snapshot_not_found", "Snapshot {snapshot} could not be found.")
SnapshotNotMade = kinds.Bug.row("volume.snapshot_not_made",
    "Snapshot {snapshot} of volume {volume} is not usable: it has status {status}.",
    "See the volume service's reason: openstack volume message list.")
SnapshotNotNow = kinds.Invalid.row("volume.snapshot_not_now",
    "A host cannot change the files of volume {volume} now: {reason}.")
SnapshotsFull = kinds.OverQuota.row("volume.snapshots_full",
    "The project has {used} of {most} volume snapshots, and each volume of the server needs one.",
    "Delete snapshots that are not needed, or ask an operator for a higher quota.")
SwapNotAsked = kinds.Conflict.row("volume.swap_not_asked",
    "Volume {volume} is not being migrated: only the volume service may swap volumes (openstack volume migrate, or "
    "openstack volume set --retype-policy).")
TagOffloaded = kinds.Invalid.row("volume.tag_offloaded",
    "A tagged volume cannot be attached to instance {server} while it is shelved_offloaded: unshelve it first.")
TooOld = kinds.NotSupported.row("volume.too_old",
    "This needs version {wanted} of the volume service's API, but Cinder there has {found}.",
    "Upgrade Cinder: servers with volumes need 3.44; rebuilding a server that boots from a volume needs 3.68.")
TooSmall = kinds.Invalid.row("volume.too_small",
    "Image {image_id} needs a disk of {needs} GB, but the requested volume would have {size} GB.")
TypeNotFound = kinds.Invalid.row("volume.type_not_found", "Volume type {volume_type} could not be found.")
ZonesDiffer = kinds.Invalid.row("volume.zones_differ",
    "The server's volumes are in different availability zones ({zones}), but must be in one.")
#: The service catalog lists no volume service.
NoService = kinds.Unavailable.row("volume.no_service",
    "The cloud has no volume service (Cinder): {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
#: A volume service exists, but not at the configured address.
WrongAddress = kinds.Unavailable.row("volume.wrong_address",
    "The volume service (Cinder) has no usable address: {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
