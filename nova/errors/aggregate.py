"""Errors about host aggregates and availability zones."""

from __future__ import annotations

from nova.errors import kinds

BadId = kinds.Invalid.row("aggregate.bad_id", "Invalid aggregate id {id}: it must be a whole number.")
BadImage = kinds.Invalid.row("aggregate.bad_image", "Image {image_id} cannot be cached: {reason}.")
BadZone = kinds.Invalid.row("aggregate.bad_zone", "Invalid availability_zone '{zone}': {reason}.")
EmptyZone = kinds.Invalid.row("aggregate.empty_zone",
    "Invalid input for field/attribute set_metadata: {key} cannot be empty; null removes it.")
HasServers = kinds.Invalid.row("aggregate.has_servers",
    "Cannot update aggregate {id}. Reason: its availability zone cannot change while its hosts ({hosts}) have "
    "servers.")
HostExists = kinds.Conflict.row("aggregate.host_exists", "Aggregate {id} already has host {host}.")
HostInZone = kinds.Conflict.row("aggregate.host_in_zone",
    "Cannot add host {host} to aggregate {id}. Reason: another aggregate already puts the host in availability zone "
    "{zone}, and {wanted} would be a second one.",
    "A host can be in only one zone: remove it from the other aggregate first (`openstack aggregate remove host`).")
HostNotFound = kinds.NotFound.row("aggregate.host_not_found", "Host {host} is not in aggregate {id}.")
ImageDoubled = kinds.Invalid.row("aggregate.image_doubled",
    "Invalid input for field/attribute cache: image {id} is listed twice.")
NameTaken = kinds.Conflict.row("aggregate.name_taken", "Aggregate {name} already exists.")
NotEmpty = kinds.Invalid.row("aggregate.not_empty",
    "Cannot delete aggregate {id}. Reason: it still has hosts ({hosts}); remove them first.")
NotFound = kinds.NotFound.row("aggregate.not_found", "Aggregate {id} could not be found.")
PinnedServers = kinds.Conflict.row("aggregate.pinned_servers",
    "Cannot {act} host {host}, aggregate {id}. Reason: a server on it requested availability zone {zone}, which the "
    "host would leave; migrate that server first.",
    "Move or unpin those servers first (unshelve with another zone), or let the host keep its zone.")
SecondZone = kinds.Invalid.row("aggregate.second_zone",
    "Cannot update aggregate {id}. Reason: another aggregate already puts its host {host} in availability zone "
    "{zone}.")

#: Users may read this message in a server's fault, so it names no host.
ZoneHostMoved = kinds.HostRefused.row("zone.host_moved",
    "The selected host is now in availability zone {zone}, not in {wanted}.",
    "No action needed: nova tries the next host.")
ZoneNotAvailable = kinds.Invalid.row("zone.not_available", "The requested availability zone is not available: {zone}",
    "List the zones with `openstack availability zone list --compute`.")
