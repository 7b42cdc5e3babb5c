"""Errors about bundles of images, which nova-objectstore makes images of."""

from __future__ import annotations

from nova.errors import kinds

Location = kinds.Invalid.row("bundle.location",
    "{location!r} is no location of a manifest: it must be BUCKET/PATH.")
NotFound = kinds.NotFound.row("bundle.not_found", "The manifest {location} could not be found.",
    "Upload it, and its parts, to a bucket of the project that registers it; then ask again.")
Manifest = kinds.Invalid.row("bundle.manifest", "The manifest {location} cannot be used: {reason}.",
    "Bundle the image again, as doc/bundles.rst tells; upload it, and register it again.")
Architecture = kinds.Invalid.row("bundle.architecture", "The architecture {architecture!r} is not known.",
    "Name an architecture of the cloud's hosts, for example x86_64.")
TooLarge = kinds.Invalid.row("bundle.too_large", "The {what} has more than the {limit} characters it may have.")
TooMany = kinds.OverQuota.row("bundle.too_many",
    "{count} images of bundles wait already, of the project or of the whole object store: no more may.",
    "Wait until some of them are available or failed.")

NotKept = kinds.Unavailable.row("bundle.not_kept", "The object store cannot write what is to be done: {reason}.",
    "Look at the free space and the rights of [DEFAULT]image_decryption_jobs_dir.")
NoRoom = kinds.Unavailable.row("bundle.no_room", "the disk of [DEFAULT]image_decryption_dir has no room for {size} "
    "bytes more, beside what [DEFAULT]s3_reserved_disk_mb keeps free",
    "Remove what is not needed from that disk, or move the folder to a larger one.")

# Of images that are being made: they stay in the log, and in the state of the image.
PartMissing = kinds.Invalid.row("bundle.part_missing", "its part {part} is not in the bucket",
    "Upload all parts beside the manifest, and register it again.")
PartDamaged = kinds.Invalid.row("bundle.part_damaged", "its part {part} is not what the manifest says: its SHA-1 is "
    "another", "Upload the part again, and register the manifest again.")
WrongLength = kinds.Invalid.row("bundle.wrong_length", "the {what} has {found} bytes, and not the {wanted} of the "
    "manifest", "Upload the bundle again, whole, and register it again.")
TooLong = kinds.Invalid.row("bundle.too_long", "the {what} has more than the {limit} bytes it may have",
    "[DEFAULT]image_decryption_largest_gb is the bound: raise it, or register a smaller image.")
KeyRefused = kinds.Invalid.row("bundle.key_refused", "its key cannot be decrypted: {reason}",
    "Bundle the image with the cloud's present certificate: openstack x509 root certificate, or euca-bundle-image "
    "--ec2cert.")
Cipher = kinds.Invalid.row("bundle.cipher", "its parts cannot be decrypted: {reason}",
    "The parts are cut short, or encrypted with another key than the manifest's. Bundle the image again.")
Tarball = kinds.Invalid.row("bundle.tarball", "what is encrypted in it is no usable tarball: {reason}",
    "Bundle the image again: one file alone, by tar and gzip.")
Digest = kinds.Invalid.row("bundle.digest", "the tarball's SHA-1 is not the manifest's image digest",
    "Bundle the image again.")
Disk = kinds.Invalid.row("bundle.disk", "the disk cannot be written: {reason}",
    "Look at the free space of [DEFAULT]image_decryption_dir; then register the manifest again.")
Upload = kinds.Invalid.row("bundle.upload", "the image service did not take the data: {reason}",
    "Look at the image service's log, delete the image, and register the manifest again.")
TooLate = kinds.Invalid.row("bundle.too_late", "for a day it could not be gone on with: {reason}",
    "Start what does not answer; then register the manifest again.")
