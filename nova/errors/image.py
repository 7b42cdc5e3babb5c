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
LocationRefused = kinds.Conflict.row("image.location_refused",
    "The image service did not take image {image_id} where it lies: it is {status}.", "Glance's log says why.")
NotActive = kinds.Conflict.row("image.not_active", "Image {image_id} is {status}, not active.",
    "Wait until it is active (`openstack image show`), or take another.")
#: Kept within a host: it fetches the image then.
NotCloneable = kinds.Conflict.row("image.not_cloneable", "Image {image_id} cannot be cloned in Ceph: {reason}.")
NotFound = kinds.NotFound.row("image.not_found", "Image {image_id} could not be found.")
NothingKept = kinds.Bug.row("image.nothing_kept", "The host of instance {server} did not say what it kept.")
OffsetTooLarge = kinds.Invalid.row("image.offset_too_large",
    "Invalid offset {offset}: at most {most}. Use marker instead.")
ReservedName = kinds.Invalid.row("image.reserved_name",
    "Metadata key {name} cannot be used: it is a member of every image, which the image service keeps.")
TooBig = kinds.Invalid.row("image.too_big",
    "Image {image_id} needs a disk of {needs_gb} GB; the flavor has {root_gb} GB.")
TooLong = kinds.HostRefused.row("image.too_long", "Image {image_id} is longer than the {limit} bytes it may have.",
    "Its min_disk or the flavor's root disk is too small for it.")
TooMuchMetadata = kinds.OverQuota.row("image.too_much_metadata",
    "Image metadata limit exceeded: at most {limit} items.")
ProxyBusy = kinds.Unavailable.row("image.proxy_busy",
    "The image proxy carries as many images as it may ([image_proxy]transfers).",
    "The host asks again by itself. Where it lasts: more workers, more proxies, or images cached beforehand.")
ProxyLocation = kinds.Invalid.row("image.proxy_location", "That is no place in Ceph of image {image_id}.")
ProxyMethod = kinds.Invalid.row("image.proxy_method", "The image proxy does not take {method} here.", status=405)
ProxyNoLength = kinds.Invalid.row("image.proxy_no_length", "A body without a Content-Length is not taken.", status=411)
ProxyRange = kinds.Invalid.row("image.proxy_range", "Image {image_id} has {size} bytes: none of the range {range}.",
    status=416)
TicketExpired = kinds.Unavailable.row("image.ticket_expired",
    "The ticket for image {image_id} has expired: the order that it came with waited for too long.",
    "The operation's next try brings a new one; [image_proxy]ticket_lifetime says how long one is good for.",
    status=410)
TicketInvalid = kinds.HostRefused.row("image.ticket_invalid",
    "The image proxy cannot read the ticket: no conductor with its key made it.",
    "[image_proxy]key must be the same for all conductors and image proxies.", status=401)
TicketMissing = kinds.HostRefused.row("image.ticket_missing",
    "Host {host} got no ticket for image {image_id}: the conductor is older than this host, or does not know its "
    "secret.",
    "Upgrade conductors before hosts; see what nova-conductor's log says of this host's secret.")
TicketNotProven = kinds.HostRefused.row("image.ticket_not_proven",
    "The request does not prove that it comes from the host that the ticket is for: {reason}.",
    "Compare the clocks of the host and the image proxy; state_path/host_secret must be what the host registered with.",
    status=401)
TicketRepeated = kinds.HostRefused.row("image.ticket_repeated",
    "A request of host {host} for image {image_id} came a second time, and is not taken again.",
    "Somebody between the host and the image proxy repeats what it reads: let them speak TLS ([wsgi]ssl_cert_file).",
    status=403)
TicketWrongUse = kinds.HostRefused.row("image.ticket_wrong_use", "The ticket is not for this: {reason}.",
    "Look at the image proxy's log for what the host asked for.", status=403)
Unacceptable = kinds.Invalid.row("image.unacceptable", "Image {image_id} is unacceptable: {reason}")
WrongProperty = kinds.Invalid.row("image.wrong_property", "{name}={value} is not possible: {reason}.")
