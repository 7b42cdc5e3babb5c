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
BadDevice = kinds.Invalid.row("volume.bad_device", "A block device of the request can not be had: {reason}")
Busy = kinds.Conflict.row("volume.busy",
    "Another operation works on server {server}: its volumes can not be changed now.",
    "Ask again when it has ended (openstack server event list).")
#: Nothing that whoever asks us could help.
Credentials = kinds.Unavailable.row("volume.credentials",
    "The volume service (Cinder) refuses our own credentials, those of [cinder] or [service_user]: {reason}.",
    "Set username, password and project there; the user needs the roles admin and service.")
Encrypted = kinds.Invalid.row("volume.encrypted",
    "Volume {volume} is encrypted by {provider}: servers can have volumes that are encrypted by luks, and no others.",
    "Use a volume type whose encryption has the provider luks (openstack volume type set --encryption-provider luks), "
    "or one without encryption.")
Fixed = kinds.Invalid.row("volume.fixed", "The attachment's {field} can not be changed: {reason}.")
HostDown = kinds.Conflict.row("volume.host_down",
    "The host of server {server} is down: the guest can not give the volume up.",
    "Detach it when the host is back, or evacuate the server first.")
InUseByService = kinds.Conflict.row("volume.in_use_by_service",
    "Cinder does not give attachment {attachment} back: it did not accept our service token ({reason}).",
    "Give the user of [cinder] or [service_user] the role service, and set service_token_roles = service in "
    "section keystone_authtoken of cinder.conf.")
IsRoot = kinds.Invalid.row("volume.is_root", "The server boots from volume {volume}: it can not be detached.")
IsRootOf = kinds.Invalid.row("volume.is_root_of",
    "Server {server} boots from a volume: {action} is not possible for it in this release.",
    "Work on the volume instead: openstack volume snapshot create, backup create, revert.")
NeedsMultiattach = kinds.Invalid.row("volume.needs_multiattach",
    "Volume {volume} is for several servers: attach it with microversion 2.60 or a newer one.")
NoBootable = kinds.Invalid.row("volume.no_bootable", "Volume {volume} is not bootable.")
NoKey = kinds.Unavailable.row("volume.no_key", "The key {key} of a volume can not be had: {reason}.",
    "See [key_manager] and [barbican] of nova-conductor's configuration; whoever asks must be let in by Barbican's "
    "policy, or by the key's own list (openstack acl user add).")
NotAssisted = kinds.Invalid.row("volume.not_assisted",
    "Volume {volume} is a file that a guest writes to: this release takes no snapshots of such volumes.",
    "Detach the volume, or stop its server and detach it, and take the snapshot then.")
NotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
NotAvailable = kinds.Invalid.row("volume.not_available",
    "Volume {volume} can not be attached: its status is {status}, and must be available.")
NotFound = kinds.NotFound.row("volume.not_found", "Volume {volume} could not be found.")
NotMade = kinds.Bug.row("volume.not_made",
    "Volume {volume}, which was made for the server, has status {status}.",
    "Ask the volume service why: openstack volume message list; then delete the server and make it again.")
NotOnOffloaded = kinds.Invalid.row("volume.not_on_offloaded",
    "A tag, or a volume for several servers, can not be attached to a server that is shelved and offloaded "
    "(volume {volume}).")
OverQuota = kinds.OverQuota.row("volume.over_quota", "Cinder refused: {reason}.",
    "Delete volumes or snapshots that are not needed, or ask an operator for a higher quota (`openstack quota set`).")
Refused = kinds.Invalid.row("volume.refused", "Cinder refused: {reason}.",
    "The reason is Cinder's own: look at the volume (`openstack volume show`), and change what it names.")
SnapshotNotFound = kinds.NotFound.row("volume.snapshot_not_found", "Snapshot {snapshot} could not be found.")
SnapshotsFull = kinds.OverQuota.row("volume.snapshots_full",
    "The project has {used} of {most} snapshots of volumes, and one is needed for each volume of the server.",
    "Delete snapshots that are not needed, or ask an operator for a higher quota.")
SwapNotAsked = kinds.Conflict.row("volume.swap_not_asked",
    "Volume {volume} is not being migrated: only the volume service has volumes swapped (openstack volume migrate, or "
    "openstack volume set --retype-policy).")
SwapNotSupported = kinds.NotSupported.row("volume.swap_not_supported",
    "Volume {volume} is in use by a guest: this release does not copy it while the guest runs.",
    "Detach it first, or stop the server's use of it.")
TagOffloaded = kinds.Invalid.row("volume.tag_offloaded",
    "A tagged volume can not be attached to instance {server} while it is shelved_offloaded: unshelve it first.")
TooOld = kinds.NotSupported.row("volume.too_old",
    "This needs version {wanted} of the volume service's API, and Cinder there has {found}.",
    "Upgrade Cinder: servers with volumes need 3.44, and to rebuild a server that boots from one needs 3.68.")
TooSmall = kinds.Invalid.row("volume.too_small",
    "Image {image_id} needs a disk of {needs} GB, and the volume to be made of it would have {size} GB.")
TypeNotFound = kinds.Invalid.row("volume.type_not_found", "Volume type {volume_type} could not be found.")
WrongAddress = kinds.Unavailable.row("volume.wrong_address",
    "The volume service (Cinder) has no address that can be used: {reason}.",
    "Correct [cinder]catalog_info, os_region_name or endpoint_template in nova.conf; see `openstack catalog list`.")
