"""Errors about images and volumes."""

from __future__ import annotations

from nova.errors import kinds

BadTime = kinds.Invalid.row("image.bad_time",
    "Invalid changes-since filter [{value}]: it must be an ISO 8601 date and time.")
Corrupt = kinds.HostRefused.row("image.corrupt",
    "Image {image_id} arrived damaged: its {algorithm} does not match the image service's value.",
    "Upload the image again, or compare its os_hash_value; a proxy between Glance and the host may truncate it.")
MetadataKeyMismatch = kinds.Invalid.row("image.metadata_key_mismatch",
    "Request body and URI mismatch: the body must hold the key {key}.")
NoSuchMetadata = kinds.NotFound.row("image.no_such_metadata", "Metadata item was not found")
LocationRefused = kinds.Conflict.row("image.location_refused",
    "The image service did not accept the location of image {image_id}: the image is {status}.",
    "Glance's log has the reason.")
NotActive = kinds.Conflict.row("image.not_active", "Image {image_id} is {status}, not active.",
    "Wait until it is active (`openstack image show`), or use another image.")
#: Never leaves the host, which fetches the image instead.
NotCloneable = kinds.Conflict.row("image.not_cloneable", "Image {image_id} cannot be cloned in Ceph: {reason}.")
NotFound = kinds.NotFound.row("image.not_found", "Image {image_id} could not be found.")
NothingKept = kinds.Bug.row("image.nothing_kept", "The host of instance {server} did not report the stored image.")
OffsetTooLarge = kinds.Invalid.row("image.offset_too_large",
    "Invalid offset {offset}: at most {most}. Use marker instead.")
ReservedName = kinds.Invalid.row("image.reserved_name",
    "Metadata key {name} cannot be used: it is an attribute that the image service sets on every image.")
TooBig = kinds.Invalid.row("image.too_big",
    "Image {image_id} needs a disk of {needs_gb} GB; the flavor has {root_gb} GB.")
TooLong = kinds.HostRefused.row("image.too_long", "Image {image_id} is larger than {limit} bytes.",
    "Its min_disk or the flavor's root disk is too small for it.")
TooMuchMetadata = kinds.OverQuota.row("image.too_much_metadata",
    "Image metadata limit exceeded: at most {limit} items.")
ProxyBusy = kinds.Unavailable.row("image.proxy_busy",
    "The image proxy has reached its maximum number of transfers ([image_proxy]transfers).",
    "The host retries automatically. If it persists, add workers or proxies, or cache the images beforehand.")
ProxyLocation = kinds.Invalid.row("image.proxy_location", "The location is not a Ceph location of image {image_id}.")
ProxyMethod = kinds.Invalid.row("image.proxy_method", "The image proxy does not allow {method} here.", status=405)
ProxyNoLength = kinds.Invalid.row("image.proxy_no_length", "A body needs a Content-Length.", status=411)
ProxyRange = kinds.Invalid.row("image.proxy_range",
    "Image {image_id} has {size} bytes, so the range {range} is not satisfiable.", status=416)
TicketExpired = kinds.Unavailable.row("image.ticket_expired",
    "The ticket for image {image_id} has expired: the order that carried it waited too long.",
    "The next attempt of the operation gets a new ticket; [image_proxy]ticket_lifetime sets a ticket's lifetime.",
    status=410)
TicketInvalid = kinds.HostRefused.row("image.ticket_invalid",
    "The image proxy cannot decrypt the ticket: no conductor with the proxy's key issued it.",
    "[image_proxy]key must be the same for all conductors and image proxies.", status=401)
TicketMissing = kinds.HostRefused.row("image.ticket_missing",
    "Host {host} got no ticket for image {image_id}: the conductor is older than this host, or does not have its "
    "secret.",
    "Upgrade conductors before hosts; check nova-conductor's log for messages about this host's secret.")
TicketNotProven = kinds.HostRefused.row("image.ticket_not_proven",
    "The request is not signed by the host that the ticket was issued to: {reason}.",
    "Compare the clocks of the host and the image proxy; state_path/host_secret must be the secret that the host "
    "registered.",
    status=401)
TicketRepeated = kinds.HostRefused.row("image.ticket_repeated",
    "A request of host {host} for image {image_id} was received a second time and rejected.",
    "A third party between the host and the image proxy replays requests: use TLS between them ([wsgi]ssl_cert_file).",
    status=403)
TicketWrongUse = kinds.HostRefused.row("image.ticket_wrong_use", "The ticket is not valid for this request: {reason}.",
    "See the image proxy's log for the host's request.", status=403)
Unacceptable = kinds.Invalid.row("image.unacceptable", "Image {image_id} is unacceptable: {reason}")
WrongProperty = kinds.Invalid.row("image.wrong_property", "{name}={value} is not possible: {reason}.")
