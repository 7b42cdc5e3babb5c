"""Errors about volumes, their snapshots and attachments, which Cinder keeps, and about servers' use of them."""

from __future__ import annotations

from nova.errors import kinds, service

AlreadyAttached = kinds.Invalid.row("volume.already_attached",
    "Volume {volume} is attached to this server or another one, or is about to be.")
AttachmentNotFound = kinds.NotFound.row("volume.attachment_not_found",
    "Volume attachment {attachment} could not be found.")
#: Cinder, or what stands before it.
Away = service.Unavailable.row("volume.away", "The volume service (Cinder) does not answer: {reason}.",
    "See cinder-api's log and endpoint (`openstack catalog list`), and [cinder]catalog_info in nova.conf.")
BadDeleteInfo = kinds.Invalid.row("volume.bad_delete_info", "Invalid delete_info: {reason}.")
BadDevice = kinds.Invalid.row("volume.bad_device", "A block device of the request cannot be had: {reason}")
Busy = kinds.Conflict.row("volume.busy",
    "Another operation works on server {server}: its volumes cannot be changed now.",
    "Ask again when it has ended (openstack server event list).")
CannotReplace = kinds.Invalid.row("volume.can_not_replace",
    "Volume {new} cannot take the place of volume {old}: {reason}.")
#: Nothing that whoever asks us could help.
Credentials = kinds.Unavailable.row("volume.credentials",
    "The volume service (Cinder) refuses our own credentials, those of [cinder] or [service_user]: {reason}.",
    "Set username, password and project there; the user needs the roles admin and service.")
Encrypted = kinds.Invalid.row("volume.encrypted",
    "Volume {volume} is encrypted by {provider}: servers can have volumes that are encrypted by luks, and no others.",
    "Use a volume type whose encryption has the provider luks (openstack volume type set --encryption-provider luks), "
    "or one without encryption.")
Fixed = kinds.Invalid.row("volume.fixed", "The attachment's {field} cannot be changed: {reason}.")
HostDown = kinds.Conflict.row("volume.host_down",
    "The host of server {server} is down: the guest cannot give the volume up.",
    "Detach it when the host is back, or evacuate the server first.")
InUseByService = kinds.Conflict.row("volume.in_use_by_service",
    "Cinder does not give attachment {attachment} back: it did not accept our service token ({reason}).",
    "Give the user of [cinder] or [service_user] the role service, and set service_token_roles = service in "
    "section keystone_authtoken of cinder.conf.")
IsRoot = kinds.Invalid.row("volume.is_root", "The server boots from volume {volume}: it cannot be detached.")
NeedsMultiattach = kinds.Invalid.row("volume.needs_multiattach",
    "Volume {volume} is for several servers: attach it with microversion 2.60 or a newer one.")
NoBackup = kinds.Invalid.row("volume.no_backup", "Backup is not supported for volume-backed instances.",
    "Take snapshots (openstack server image create), or back up the volumes (openstack volume backup create).")
NoBootable = kinds.Invalid.row("volume.no_bootable", "Volume {volume} is not bootable.")
NoKey = kinds.Unavailable.row("volume.no_key", "The key {key} of a volume cannot be had: {reason}.",
    "See [key_manager] and [barbican] of nova-conductor's configuration; whoever asks must be let in by Barbican's "
    "policy, or by the key's own list (openstack acl user add).")
NoRescue = kinds.Invalid.row("volume.no_rescue", "Instance {server} cannot be rescued: {reason}.",
    "Use microversion 2.87 or a newer one, and an image with the properties hw_rescue_device and hw_rescue_bus.")
NotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
NotAvailable = kinds.Invalid.row("volume.not_available",
    "Volume {volume} cannot be attached: its status is {status}, and must be available.")
NotFound = kinds.NotFound.row("volume.not_found", "Volume {volume} could not be found.")
NotInUse = kinds.Invalid.row("volume.not_in_use",
    "Volume {volume} of the server has status {status}, and must be in-use.",
    "Look at it (openstack volume show), and ask again when what works on it has ended.")
NotMade = kinds.Bug.row("volume.not_made",
    "Volume {volume}, which was made for the server, has status {status}.",
    "Ask the volume service why: openstack volume message list; then delete the server and make it again.")
NotOnOffloaded = kinds.Invalid.row("volume.not_on_offloaded",
    "A tag, or a volume for several servers, cannot be attached to a server that is shelved and offloaded "
    "(volume {volume}).")
NotReimaged = kinds.Bug.row("volume.not_reimaged",
    "Image {image_id} could not be written over the server's root volume {volume}, which has status {status} now: its "
    "old data are gone.",
    "Ask the volume service why: openstack volume message list; then rebuild the server again.")
#: With [cinder]cross_az_attach = false: a new server's, or an attachment.
OtherZone = kinds.Invalid.row("volume.other_zone",
    "The server and volume {volume} are not in the same availability_zone. The server is in {server_zone}. The volume "
    "is in {zone}.",
    "Use a volume of the server's zone, or ask for a server in the volume's zone.")
#: The same of an unshelve.
OutOfZone = kinds.Conflict.row("volume.out_of_zone",
    "Volume {volume} of the server is in zone {zone}: the server cannot be unshelved in {server_zone}.",
    "Unshelve it in the volumes' zone, or without a zone.")
OverQuota = kinds.OverQuota.row("volume.over_quota", "Cinder refused: {reason}.",
    "Delete volumes or snapshots that are not needed, or ask an operator for a higher quota (`openstack quota set`).")
RebuildKeepsNone = kinds.Invalid.row("volume.rebuild_keeps_none",
    "preserve_ephemeral: a server that boots from a volume has no disk that could be kept so. Leave it out.")
RebuildMultiattach = kinds.Invalid.row("volume.rebuild_multiattach",
    "The server boots from volume {volume}, which is for several servers: it cannot be written over.")
RebuildSameImage = kinds.Invalid.row("volume.rebuild_same_image",
    "Image {image_id} is unacceptable: Unable to rebuild with a different image for a volume-backed server.",
    "With microversion 2.93 or a newer one the volume is written over with the image: its data are lost.")
RebuildSnapshotFile = kinds.Invalid.row("volume.rebuild_snapshot_file",
    "The server boots from volume {volume}, which has or had a snapshot: the guest reads the file {file}, and Cinder "
    "would write the image to another file.",
    "Create a volume of the image (openstack volume create --image), and a server that boots from it.")
Refused = kinds.Invalid.row("volume.refused", "Cinder refused: {reason}.",
    "The reason is Cinder's own: look at the volume (`openstack volume show`), and change what it names.")
RefreshNotOff = kinds.Conflict.row("volume.refresh_not_off",
    "Server {server} is {state}: an attachment is made anew only while its server is stopped, and nothing works on it.",
    "Stop the server (openstack server stop), and ask again.")
ReimageSlow = kinds.Bug.row("volume.reimage_slow",
    "The volume service has not written image {image_id} over the server's root volume {volume} within {seconds} s, "
    "and is still at it.",
    "Wait until the volume is reserved or in error, then rebuild the server again. Large images need a larger "
    "[DEFAULT]reimage_timeout_per_gb.")
SnapshotNotFound = kinds.NotFound.row("volume.snapshot_not_found", "Snapshot {snapshot} could not be found.")
SnapshotNotMade = kinds.Bug.row("volume.snapshot_not_made",
    "Snapshot {snapshot} of volume {volume} is not usable: it has status {status}.",
    "Ask the volume service why: openstack volume message list.")
SnapshotNotNow = kinds.Invalid.row("volume.snapshot_not_now",
    "The files of volume {volume} cannot be changed by a host now: {reason}.")
SnapshotsFull = kinds.OverQuota.row("volume.snapshots_full",
    "The project has {used} of {most} snapshots of volumes, and one is needed for each volume of the server.",
    "Delete snapshots that are not needed, or ask an operator for a higher quota.")
SwapNotAsked = kinds.Conflict.row("volume.swap_not_asked",
    "Volume {volume} is not being migrated: only the volume service has volumes swapped (openstack volume migrate, or "
    "openstack volume set --retype-policy).")
TagOffloaded = kinds.Invalid.row("volume.tag_offloaded",
    "A tagged volume cannot be attached to instance {server} while it is shelved_offloaded: unshelve it first.")
TooOld = kinds.NotSupported.row("volume.too_old",
    "This needs version {wanted} of the volume service's API, and Cinder there has {found}.",
    "Upgrade Cinder: servers with volumes need 3.44, and to rebuild a server that boots from one needs 3.68.")
TooSmall = kinds.Invalid.row("volume.too_small",
    "Image {image_id} needs a disk of {needs} GB, and the volume to be made of it would have {size} GB.")
TypeNotFound = kinds.Invalid.row("volume.type_not_found", "Volume type {volume_type} could not be found.")
ZonesDiffer = kinds.Invalid.row("volume.zones_differ",
    "The server's volumes are in different availability zones ({zones}), and must be in one.")
#: The cloud has none, as far as its catalog says.
NoService = kinds.Unavailable.row("volume.no_service",
    "There is no volume service (Cinder): {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
#: There is one, but not where we look for it.
WrongAddress = kinds.Unavailable.row("volume.wrong_address",
    "The volume service (Cinder) has no address that can be used: {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
