"""Payloads of other subjects than servers: errors, flavors, keypairs, aggregates, server groups, services."""

from __future__ import annotations

from nova.model.server.server_groups import ServerGroup
from nova.notifications.payloads.fields import Payload, PayloadField, fields

#: Service rows count their changes in ``version``; reports are not counted, because heartbeats are written in batches.
SERVICE_STATUS = Payload(
    "ServiceStatusPayload", "1.1",
    *fields("host", "binary", "topic", "disabled", "disabled_reason", "forced_down", "version", "uuid"),
    PayloadField("report_count", lambda _service: 0),
    PayloadField("availability_zone", lambda service: getattr(service, "zone", None)),
    PayloadField("last_seen_up", "last_seen_at"))

EXCEPTION = Payload(
    "ExceptionPayload", "1.1",
    PayloadField("module_name", "module"), PayloadField("function_name", "function"),
                    PayloadField("exception", "exception"),
    PayloadField("exception_message", "message"), PayloadField("traceback", "traceback"))

LIBVIRT_ERROR = Payload(
    "LibvirtErrorPayload", "1.0",
    PayloadField("ip", "ip"), PayloadField("reason", lambda down: EXCEPTION(down.failure)))

_FLAVOR = (*fields("flavorid", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "name", "rxtx_factor", "disabled",
                   "is_public", "extra_specs", "description"),
           PayloadField("swap", "swap_mb"), PayloadField("vcpu_weight", lambda _flavor: 0))

FLAVOR = Payload("FlavorPayload", "1.4", *_FLAVOR, PayloadField("projects", "projects"))
#: A server's own copy of its flavor does not contain the flavor's projects.
SERVERS_FLAVOR = Payload("FlavorPayload", "1.4", *_FLAVOR, PayloadField("projects", lambda _flavor: None))

KEYPAIR = Payload("KeypairPayload", "1.0", *fields("user_id", "name", "fingerprint", "public_key", "type"))


def _or_none(name: str) -> PayloadField:
    """Return a field that may be absent: an aggregate that is being created has no id and no hosts yet."""
    return PayloadField(name, lambda aggregate: getattr(aggregate, name, None))


AGGREGATE = Payload("AggregatePayload", "1.1", _or_none("id"), _or_none("uuid"), PayloadField("name", "name"),
                    _or_none("hosts"), PayloadField("metadata", "metadata"))

AGGREGATE_CACHE = Payload(
    "AggregateCachePayload", "1.0",
    *fields("id", "uuid", "name", "host", "images_cached", "images_failed", "index", "total"))


def _policies(group: ServerGroup) -> list[str]:
    return [group.policy] if group.policy else []


def _rules(group: ServerGroup) -> dict[str, str]:
    """Return the rules with text values: the payload's schema has no other ones."""
    return {name: str(value) for name, value in (group.rules or {}).items()}


SERVER_GROUP = Payload(
    "ServerGroupPayload", "1.1",
    *fields("uuid", "name", "user_id", "project_id", "members", "policy"),
    PayloadField("rules", _rules), PayloadField("policies", _policies),
                       PayloadField("hosts", lambda group: getattr(group, "hosts", None)))

VOLUME_USAGE = Payload(
    "VolumeUsagePayload", "1.0",
    *fields("volume_id", "reads", "read_bytes", "writes", "write_bytes", of="counts"),
    *fields("project_id", "user_id", "availability_zone", of="row"),
    PayloadField("instance_uuid", "counts.server_uuid"), PayloadField("last_refreshed", "at"))
