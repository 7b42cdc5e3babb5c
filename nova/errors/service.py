"""Errors about services: ours, as operators see them, and those beside (Glance, Neutron ...)."""

from __future__ import annotations

from nova.errors import kinds

BadId = kinds.Invalid.row("service.bad_id", "Invalid service id {id}: it must be {wanted}.")
CannotStart = kinds.NovaError.row("service.can_not_start", "{reason}")
Conflict = kinds.Conflict.row("service.conflict", "The {service} service refused: {reason}.")
#: Nothing that whoever asks us could help.
Credentials = kinds.Unavailable.row("service.credentials",
    "The {service} service cannot be asked: the credentials of [{section}] in nova.conf are refused: {reason}.",
    "Correct username, password, project_name and the domains of that section.")
Forbidden = kinds.Forbidden.row("service.forbidden", "The {service} service refused: {reason}.",
    "The credentials nova.conf has for that service lack a role, or its policy forbids it.")
HasMigrations = kinds.Conflict.row("service.has_migrations",
    "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the "
    "instances first.")
HasServers = kinds.Conflict.row("service.has_servers",
    "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.")
Invalid = kinds.Invalid.row("service.invalid", "The {service} service refused the request: {reason}.",
    "The reason is that service's own: change what it names.")
MissingField = kinds.Invalid.row("service.missing_field", "Missing required field {name}: {word} needs it.")
NoSuchWord = kinds.NotFound.row("service.no_such_word", "Unknown action {word}")
NotACompute = kinds.Invalid.row("service.not_a_compute",
    "Updating a {binary} service is not supported. Only nova-compute services can be updated.")
NotAProject = kinds.Invalid.row("service.not_a_project", "Project ID {project_id} is not a valid project.",
    "Ask for it by its id, not its name: `openstack project list`.")
NotFound = kinds.NotFound.row("service.not_found", "Service {name} could not be found.")
NothingAsked = kinds.Invalid.row("service.nothing_asked",
    "No updates were requested. Fields status, disabled_reason and forced_down can be given.")
OwesCleanups = kinds.Conflict.row("service.owes_cleanups",
    "Host {host} still has pending cleanups of servers: {servers}. Start nova-compute on it, which does "
    "them. If the host is lost, say so with 'openstack compute service set --down {host} nova-compute', "
    "delete the service again, and then 'nova-manage cleanup drop {host} --yes'.")
ReasonWithoutDisable = kinds.Invalid.row("service.reason_without_disable",
    "Specifying disabled_reason requires the status to be disabled.")
ResourceNotFound = kinds.NotFound.row("service.resource_not_found", "The {service} service has no {what}.")
#: A 404 for something that the request's body names, not for what its address does.
ReferenceMissing = ResourceNotFound.row("service.reference_missing", "The {service} service refused: {reason}.")
Unavailable = kinds.Unavailable.row("service.unavailable", "The {service} service does not answer: {reason}.",
    "See that service's own log and endpoint (`openstack catalog list`).")
