"""Errors about images and volumes."""

from __future__ import annotations

from nova.errors import kinds

BadTime = kinds.Invalid.row("image.bad_time",
    "Invalid changes-since filter [{value}]: it must be an ISO 8601 date and time.")
Corrupt = kinds.HostRefused.row("image.corrupt",
    "Image {image_id} arrived damaged: its {algorithm} is not the one the image service told.",
    "Upload the image again, or compare its os_hash_value; a proxy between Glance and the host may cut it.")
MetadataKeyMismatch = kinds.Invalid.row("image.metadata_key_mismatch",
    "Request body and URI mismatch: the body must hold the key {key}.")
NoSuchMetadata = kinds.NotFound.row("image.no_such_metadata", "Metadata item was not found")
NotActive = kinds.Conflict.row("image.not_active", "Image {image_id} is {status}, not active.",
    "Wait until it is active (`openstack image show`), or take another.")
NotFound = kinds.NotFound.row("image.not_found", "Image {image_id} could not be found.")
NothingKept = kinds.Bug.row("image.nothing_kept", "The host of instance {server} did not say what it kept.")
OffsetTooLarge = kinds.Invalid.row("image.offset_too_large",
    "Invalid offset {offset}: at most {most}. Use marker instead.")
ReservedName = kinds.Invalid.row("image.reserved_name",
    "Metadata key {name} can not be used: it is a member of every image, which the image service keeps.")
TooBig = kinds.Invalid.row("image.too_big",
    "Image {image_id} needs a disk of {needs_gb} GB; the flavor has {root_gb} GB.")
TooLong = kinds.HostRefused.row("image.too_long", "Image {image_id} is longer than the {limit} bytes it may have.",
    "Its min_disk or the flavor's root disk is too small for it.")
TooMuchMetadata = kinds.OverQuota.row("image.too_much_metadata",
    "Image metadata limit exceeded: at most {limit} items.")
Unacceptable = kinds.Invalid.row("image.unacceptable", "Image {image_id} is unacceptable: {reason}")
WrongProperty = kinds.Invalid.row("image.wrong_property", "{name}={value} is not possible: {reason}.")

VolumeNoSnapshot = kinds.NotFound.row("volume.no_snapshot", "Snapshot {snapshot} could not be found.")
VolumeNotAttached = kinds.NotFound.row("volume.not_attached", "Instance {server} is not attached to volume {volume}")
VolumeNotFound = kinds.NotFound.row("volume.not_found", "Volume {volume} could not be found.")
