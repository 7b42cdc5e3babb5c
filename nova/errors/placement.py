"""Errors of the Placement API. Clients know some of the codes (nova.placement.faults); the others are nova's own."""

from __future__ import annotations

from nova.errors import kinds

AllocationInvalid = kinds.Invalid.row("placement.allocation.invalid",
    "An amount of {resource_class} is at least 1, not {amount}.")
AllocationNoRoom = kinds.Conflict.row("placement.allocation.no_room",
    "Unable to allocate inventory: Unable to create allocation for '{resource_class}' on resource provider '{uuid}'. "
    "{why}")
AllocationNotFound = kinds.NotFound.row("placement.allocation.not_found", "No allocations for consumer '{consumer}'")
AllocationServers = kinds.Conflict.row("placement.allocation.servers",
    "{consumer} is a server, or a move of one: its allocations change only with the server, and cannot be wrong. See "
    "'nova-manage placement audit'.")
AllocationUnknownProvider = kinds.Invalid.row("placement.allocation.unknown_provider",
    "Allocation for resource provider '{uuid}' that does not exist.")
ConcurrentUpdate = kinds.Conflict.row("placement.concurrent_update",
    "Resource provider {uuid} was changed by another request: its generation is {generation}, not {given}.")
ConsumerChanged = kinds.Conflict.row("placement.consumer.changed",
    "consumer generation conflict - expected {generation} but got {given} for {consumer}")
ConsumerMalformed = kinds.Invalid.row("placement.consumer.malformed",
    "Malformed consumer: '{uuid}' is not a valid UUID.")
DuplicateName = kinds.Conflict.row("placement.duplicate_name",
    "Conflicting resource provider {what}: {value} already exists.")
Exists = kinds.Conflict.row("placement.exists", "{kind} {name} already exists.")
InventoryBadCapacity = kinds.Invalid.row("placement.inventory.bad_capacity",
    "Invalid inventory for {name}: reserved must be {rule} total.")
InventoryExists = kinds.Conflict.row("placement.inventory.exists",
    "Resource provider {uuid} already has an inventory of class {resource_class}.")
InventoryInuse = kinds.Conflict.row("placement.inventory.inuse",
    "Inventory for {classes} on resource provider {uuid} in use.")
InventoryInvalid = kinds.Invalid.row("placement.inventory.invalid", "Invalid inventory of {resource_class}: {why}.")
#: A write to the inventory of a class of which the provider has none.
InventoryMissing = kinds.Invalid.row("placement.inventory.missing",
    "No inventory of class {resource_class} found for resource provider {uuid}.",
    "Create it first: `POST /resource_providers/UUID/inventories`.")
InventoryNotFound = kinds.NotFound.row("placement.inventory.not_found",
    "No inventory of class {resource_class} found for resource provider {uuid}.")
MalformedBody = kinds.Invalid.row("placement.malformed_body", "Malformed JSON: {reason}")
MethodNotAllowed = kinds.NovaError.row("placement.method_not_allowed",
    "The method {method} is not allowed for this resource.", status=405)
NameInuse = kinds.Conflict.row("placement.name.inuse", "The {what} {name} is in use by a resource provider.")
NameInvalid = kinds.Invalid.row("placement.name.invalid",
    "{name} is not a valid name of a custom {what}: it must be CUSTOM_ followed by A-Z, 0-9 and _, with at most {most} "
    "characters.")
NameNotFound = kinds.NotFound.row("placement.name.not_found", "No such {what}: {name}.")
NameStandard = kinds.Invalid.row("placement.name.standard",
    "{name} is a standard {what}, which cannot be changed or deleted.")
NameTaken = kinds.Conflict.row("placement.name.taken", "Resource class already exists: {name}.")
NameUnknown = kinds.Invalid.row("placement.name.unknown", "No such {what}(s): {names}.")
NoContentType = kinds.Invalid.row("placement.no_content_type",
    "A content-type header is needed with a body: send application/json.")
NoSuchPath = kinds.NotFound.row("placement.no_such_path", "The resource could not be found.")
NotAcceptable = kinds.NovaError.row("placement.not_acceptable", "Only application/json is provided.", status=406)
NotFound = kinds.NotFound.row("placement.not_found", "No such {kind}: {name}.")
#: A query parameter has an impossible value.
QueryBadValue = kinds.Invalid.row("placement.query.bad_value", "Badly formed {name} parameter: {reason}")
QueryDuplicateKey = kinds.Invalid.row("placement.query.duplicate_key",
    "The query parameter {name} may be given once only.")
QueryMissingValue = kinds.Invalid.row("placement.query.missing_value", "{reason}")
ResourceClassUnknown = kinds.Invalid.row("placement.resource_class.unknown", "No such resource class {resource_class}.")
ResourceProviderBadParent = kinds.Invalid.row("placement.resource_provider.bad_parent", "{why}")
ResourceProviderBusy = kinds.Conflict.row("placement.resource_provider.busy",
    "The resource provider's tree keeps changing; repeat the request.")
ResourceProviderCannotDeleteParent = kinds.Conflict.row("placement.resource_provider.cannot_delete_parent",
    "Unable to delete resource provider {uuid}: it has child providers.")
ResourceProviderHostsOwn = kinds.Conflict.row("placement.resource_provider.hosts_own",
    "Resource provider {uuid} belongs to compute host {host}, which reports its name and parent; it is deleted with "
    "the host's compute service.")
ResourceProviderInuse = kinds.Conflict.row("placement.resource_provider.inuse",
    "Unable to delete resource provider {uuid}: it has allocations.")
#: Also for a malformed UUID, which needs no database query.
ResourceProviderNotFound = kinds.NotFound.row("placement.resource_provider.not_found",
    "No resource provider with uuid {uuid} found.")
TraitUnknown = kinds.Invalid.row("placement.trait.unknown", "No such trait {traits}.")
Twice = kinds.Invalid.row("placement.twice", "{uuid} occurs more than once, possibly in different spellings.")
VersionMalformed = kinds.Invalid.row("placement.version_malformed",
    "invalid version string: {text}. It must be of the form 1.N, or latest.")
#: The version is well formed but not supported.
VersionOutOfRange = kinds.NovaError.row("placement.version_out_of_range",
    "Unacceptable version header: {asked}. Minimum is {minimum} and maximum is {maximum}.", status=406)
