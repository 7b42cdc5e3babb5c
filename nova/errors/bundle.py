"""Errors about image bundles, from which nova-objectstore creates images."""

from __future__ import annotations

from nova.errors import kinds

Location = kinds.Invalid.row("bundle.location",
    "{location!r} is not a valid manifest location: it must be BUCKET/PATH.")
NotFound = kinds.NotFound.row("bundle.not_found", "The manifest {location} could not be found.",
    "Upload the manifest and its parts to a bucket of the project that registers it; then repeat the request.")
Manifest = kinds.Invalid.row("bundle.manifest", "The manifest {location} cannot be used: {reason}.",
    "Bundle the image again as described in doc/bundles.rst; upload it, and register it again.")
Architecture = kinds.Invalid.row("bundle.architecture", "Unknown architecture {architecture!r}.",
    "Name an architecture of the cloud's hosts, for example x86_64.")
TooLarge = kinds.Invalid.row("bundle.too_large", "The {what} is longer than {limit} characters.")
TooMany = kinds.OverQuota.row("bundle.too_many",
    "Too many pending images: {count} images of bundles of this project, or of the whole object store, are waiting.",
    "Wait until some of them are available or failed.")

NotKept = kinds.Unavailable.row("bundle.not_kept", "The object store cannot write the job: {reason}.",
    "Check the free space and the permissions of [DEFAULT]image_decryption_jobs_dir.")
NoRoom = kinds.Unavailable.row("bundle.no_room", "the disk of [DEFAULT]image_decryption_dir has no space for {size} "
    "more bytes, in addition to the space that [DEFAULT]s3_reserved_disk_mb keeps free",
    "Remove unneeded files from that disk, or move the directory to a larger one.")

# Errors while an image is created: they appear in the log and in the image's state.
PartMissing = kinds.Invalid.row("bundle.part_missing", "its part {part} is not in the bucket",
    "Upload all parts next to the manifest, and register it again.")
PartDamaged = kinds.Invalid.row("bundle.part_damaged", "its part {part} does not have the SHA-1 that the manifest "
    "states", "Upload the part again, and register the manifest again.")
WrongLength = kinds.Invalid.row("bundle.wrong_length", "the {what} has {found} bytes, and not the {wanted} of the "
    "manifest", "Upload the complete bundle again, and register it again.")
TooLong = kinds.Invalid.row("bundle.too_long", "the {what} is larger than {limit} bytes",
    "[DEFAULT]image_decryption_largest_gb is the limit: raise it, or register a smaller image.")
KeyRefused = kinds.Invalid.row("bundle.key_refused", "its key cannot be decrypted: {reason}",
    "Bundle the image with the cloud's current certificate: openstack x509 root certificate, or euca-bundle-image "
    "--ec2cert.")
Cipher = kinds.Invalid.row("bundle.cipher", "its parts cannot be decrypted: {reason}",
    "The parts are truncated, or encrypted with another key than the manifest's. Bundle the image again.")
Tarball = kinds.Invalid.row("bundle.tarball", "its decrypted content is not a usable tarball: {reason}",
    "Bundle the image again: a single file, by tar and gzip.")
Digest = kinds.Invalid.row("bundle.digest", "the tarball's SHA-1 is not the manifest's image digest",
    "Bundle the image again.")
Disk = kinds.Invalid.row("bundle.disk", "the disk cannot be written: {reason}",
    "Check the free space of [DEFAULT]image_decryption_dir; then register the manifest again.")
Upload = kinds.Invalid.row("bundle.upload", "the image service did not take the data: {reason}",
    "See the image service's log, delete the image, and register the manifest again.")
TooLate = kinds.Invalid.row("bundle.too_late", "it made no progress for a day: {reason}",
    "Start the service that does not answer; then register the manifest again.")
