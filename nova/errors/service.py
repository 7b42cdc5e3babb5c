"""Errors about services: nova's own, as operators see them, and other OpenStack services (Glance, Neutron ...)."""

from __future__ import annotations

from nova.errors import kinds

BadId = kinds.Invalid.row("service.bad_id", "Invalid service id {id}: it must be {wanted}.")
CannotStart = kinds.NovaError.row("service.cannot_start", "{reason}")
Conflict = kinds.Conflict.row("service.conflict", "The {service} service refused: {reason}.")
#: The caller cannot fix this.
Credentials = kinds.Unavailable.row("service.credentials",
    "The {service} service rejects the credentials of [{section}] in nova.conf: {reason}.",
    "Correct username, password, project_name and the domains of that section.")
Forbidden = kinds.Forbidden.row("service.forbidden", "The {service} service refused: {reason}.",
    "The credentials for that service in nova.conf lack a role, or the service's policy forbids the request.")
HasMigrations = kinds.Conflict.row("service.has_migrations",
    "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the "
    "instances first.")
HasServers = kinds.Conflict.row("service.has_servers",
    "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.")
Invalid = kinds.Invalid.row("service.invalid", "The {service} service refused the request: {reason}.",
    "The reason is that service's own text: correct the part of the request that it names.")
MissingField = kinds.Invalid.row("service.missing_field", "Missing required field {name}: {word} needs it.")
NoSuchWord = kinds.NotFound.row("service.no_such_word", "Unknown action {word}")
NotACompute = kinds.Invalid.row("service.not_a_compute",
    "Updating a {binary} service is not supported. Only nova-compute services can be updated.")
NotAProject = kinds.Invalid.row("service.not_a_project", "Project ID {project_id} is not a valid project.",
    "Use the project's id, not its name: `openstack project list`.")
NotFound = kinds.NotFound.row("service.not_found", "Service {name} could not be found.")
NothingAsked = kinds.Invalid.row("service.nothing_asked",
    "No updates were requested. Fields status, disabled_reason or forced_down should be specified.")
OwesCleanups = kinds.Conflict.row("service.owes_cleanups",
    "Host {host} still has pending cleanups of servers: {servers}. Start nova-compute on it, which does "
    "them. If the host is lost, run 'openstack compute service set --down {host} nova-compute', "
    "delete the service again, and then run 'nova-manage cleanup drop {host} --yes'.")
ReasonWithoutDisable = kinds.Invalid.row("service.reason_without_disable",
    "Specifying disabled_reason requires the status to be disabled.")
ResourceNotFound = kinds.NotFound.row("service.resource_not_found", "The {service} service has no {what}.")
#: A 404 for a resource that the request's body names, not for the one in its URL.
ReferenceMissing = ResourceNotFound.row("service.reference_missing", "The {service} service refused: {reason}.")
SeveralCells = kinds.Invalid.row("service.several_cells", "Several cells have a service {id}.",
    "Use API version 2.53 or newer, in which services have UUIDs.")
Unavailable = kinds.Unavailable.row("service.unavailable", "The {service} service does not answer: {reason}.",
    "Check that service's log and endpoint (`openstack catalog list`).")
