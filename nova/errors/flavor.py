"""Errors about flavors."""

from __future__ import annotations

from nova.errors import kinds

AccessGiven = kinds.Conflict.row("flavor.access_given",
    "Flavor access already exists for flavor {flavor_id} and project {project_id}.")
AccessMissing = kinds.NotFound.row("flavor.access_missing",
    "Flavor access not found for {flavor_id} / {project_id} combination.")
BadFilter = kinds.Invalid.row("flavor.bad_filter", "Invalid {name} filter [{value}]: it must be {wanted}.")
BadId = kinds.Invalid.row("flavor.bad_id",
    "Invalid id {value}: it must have 1 to 255 letters, digits, periods, dashes, underscores and blanks, with no "
    "blank at either end.")
BadSpec = kinds.Invalid.row("flavor.bad_spec", "Validation failed; {reason}.")
IdTaken = kinds.Conflict.row("flavor.id_taken", "Flavor with ID {flavorid} already exists.")
NameTaken = kinds.Conflict.row("flavor.name_taken", "Flavor with name {name} already exists.")
NoSuchSpec = kinds.NotFound.row("flavor.no_such_spec", "Flavor {flavor_id} has no extra specs with key {key}.")
NotFound = kinds.NotFound.row("flavor.not_found", "Flavor {flavor_id} could not be found.",
    "`openstack flavor list` shows your flavors.")
PublicHasNoAccess = kinds.NotFound.row("flavor.public_has_no_access", "Access list not available for public flavors.")
PublicNeedsNoAccess = kinds.Conflict.row("flavor.public_needs_no_access", "Cannot add access to a public flavor.")
SpecKeyMismatch = kinds.Invalid.row("flavor.spec_key_mismatch",
    "Request body and URI mismatch: the body must hold the key {key}.")
