"""Migrations as the API shows them: in the list of all, and as parts of a server while they run."""

from __future__ import annotations

from collections.abc import Callable

from nova.api.request import Request
from nova.api.view import LEFT_OUT, LINKS, Out, View, micros, micros_of
from nova.model.server.migrations import Migration, MigrationProgress

HOSTS = "hosts"  # flag: the policy that shows host fields; without it they are null

_HOST_FIELDS = ("source_compute", "source_node", "dest_compute", "dest_node", "dest_host")
_NOT_BEGUN = MigrationProgress()


def _hosts() -> tuple[Out, ...]:
    return (*(Out(name, name, flag=HOSTS) for name in _HOST_FIELDS),
            *(Out(name, lambda move, req: None, flag=f"no {HOSTS}", type="null") for name in _HOST_FIELDS))


def _links(move: Migration, req: Request) -> object:
    """Return the links of live migrations in progress, which can be shown, force-completed and aborted."""
    if not move.live:
        return LEFT_OUT
    return req.links.of(f"servers/{move.server_uuid}/migrations", str(move.id))


def _flavor_key(attribute: str) -> Callable[[Migration, Request], int | None]:
    def key(move: Migration, req: Request) -> int | None:
        flavor = getattr(move, attribute)
        return flavor.id if flavor else None
    return key


def _amount(attribute: str) -> Callable[[Migration, Request], int | None]:
    """Return a getter of an amount; null if it is unknown yet."""
    return lambda move, req: getattr(move.progress or _NOT_BEGUN, attribute) or None


MIGRATION = View(
    Out("id", "id"),
    Out("uuid", "uuid", since="2.59"),
    Out("instance_uuid", "server_uuid"),
    *_hosts(),
    Out("status", "status"),
    Out("old_instance_type_id", _flavor_key("old_flavor")),
    Out("new_instance_type_id", _flavor_key("new_flavor")),
    Out("migration_type", "type", since="2.23"),
    Out("created_at", micros_of("created_at")),
    Out("updated_at", micros_of("updated_at")),
    Out("user_id", "user_id", since="2.80"),
    Out("project_id", "project_id", since="2.80"),
    Out("links", _links, since="2.23", optional=True, type=LINKS),
    of=Migration,
)

OF_SERVER = View(
    Out("id", "id"),
    Out("uuid", "uuid", since="2.59"),
    Out("server_uuid", "server_uuid"),
    *_hosts(),
    Out("status", "status"),
    *(Out(name, _amount(name), type=("integer", "null")) for name in MigrationProgress.__struct_fields__),
    Out("created_at", micros_of("created_at")),
    Out("updated_at", lambda move, req: micros(move.updated_at or move.created_at), type=("string", "null")),
    Out("user_id", "user_id", since="2.80"),
    Out("project_id", "project_id", since="2.80"),
    of=Migration,
)
