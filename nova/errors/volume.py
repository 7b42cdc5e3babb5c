"""Errors about volumes, and about servers' use of them."""

from __future__ import annotations

from nova.errors import kinds

AlreadyAttached = kinds.Invalid.row("volume.already_attached",
    "Volume {volume} is attached to this server or another one, or is about to be.")
BadDevice = kinds.Invalid.row("volume.bad_device", "A block device of the request can not be had: {reason}")
Busy = kinds.Conflict.row("volume.busy",
    "Another operation works on server {server}: its volumes can not be changed now.",
    "Ask again when it has ended (openstack server event list).")
HostDown = kinds.Conflict.row("volume.host_down",
    "The host of server {server} is down: the guest can not give the volume up.",
    "Detach it when the host is back, or evacuate the server first.")
IsRoot = kinds.Invalid.row("volume.is_root", "The server boots from volume {volume}: it can not be detached.")
NeedsMultiattach = kinds.Invalid.row("volume.needs_multiattach",
    "Volume {volume} is for several servers: attach it with microversion 2.60 or a newer one.")
NoBootable = kinds.Invalid.row("volume.no_bootable", "Volume {volume} is not bootable.")
NotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
NotAvailable = kinds.Invalid.row("volume.not_available",
    "Volume {volume} can not be attached: its status is {status}, and must be available.")
NotMade = kinds.Bug.row("volume.not_made",
    "Volume {volume}, which was made for the server, has status {status}.",
    "Ask the volume service why: openstack volume message list; then delete the server and make it again.")
NotOnOffloaded = kinds.Invalid.row("volume.not_on_offloaded",
    "A tag, or a volume for several servers, can not be attached to a server that is shelved and offloaded "
    "(volume {volume}).")
SwapNotAsked = kinds.Conflict.row("volume.swap_not_asked",
    "Volume {volume} is not being migrated: only the volume service has volumes swapped (openstack volume migrate, or "
    "openstack volume set --retype-policy).")
SwapNotSupported = kinds.NotSupported.row("volume.swap_not_supported",
    "Volume {volume} is in use by a guest: this release does not copy it while the guest runs.",
    "Detach it first, or stop the server's use of it.")
TooSmall = kinds.Invalid.row("volume.too_small",
    "Image {image_id} needs a disk of {needs} GB, and the volume to be made of it would have {size} GB.")
ZoneMismatch = kinds.Invalid.row("volume.zone_mismatch",
    "Volume {volume} is in availability zone {zone}, and the server is to be in {wanted}.",
    "[cinder]cross_az_attach is false: choose a volume of the server's zone.")
