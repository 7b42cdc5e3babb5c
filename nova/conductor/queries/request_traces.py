"""Result of a request and the placement of its operations: from the journal, for ``nova-manage``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nova import context, decoding, tracing
from nova.conductor.engine.deps import Deps
from nova.db.server import actions, servers
from nova.db.server.actions import JournalRow
from nova.db.server.server_row import ServerRow
from nova.model.flavor.flavors import Flavor
from nova.model.scheduling.decisions import NoHost
from nova.model.server.actions import InstanceAction, PlacementTrace

#: Keys of an operation's arguments and data that exist if it selects a host, or has selected one.
_PLACES = ("hosts", "host", "tried", "no_host")


def of_request(deps: Deps, name: str) -> tuple[InstanceAction, ...]:
    """Return the actions of a request. ``name``: a request's id, or a server's UUID."""
    with deps.cell.reading() as tx:
        found = actions.of_request(tx, name)
        rows = servers.rows_of(tx, sorted({row.server_uuid for _action, row in found}), with_deleted=True)
    return tuple(msgspec.structs.replace(
        action, placement=_placement_trace(row, rows.get(row.server_uuid)), trace=_trace(row)) for action, row in found)


def _trace(row: JournalRow) -> str:
    """Return the trace id: the caller's if it sent one, else the request's own."""
    return tracing.place_of(context.RequestContext(
        request_id=row.request_id, traceparent=(row.data or {}).get("traceparent"))).trace


def _placement_trace(row: JournalRow, server: ServerRow | None) -> PlacementTrace | None:
    data: Mapping[str, Any] = row.data
    if not any(key in data for key in _PLACES):
        return None
    kept = data.get("no_host")
    return PlacementTrace(
        requirements=_requirements(row, server), host=data.get("host"), tried=tuple(data.get("tried") or ()),
        left=tuple(one[0] for one in data.get("hosts") or ()),
        no_host=None if kept is None else decoding.convert(kept, NoHost, strict=False))


def _requirements(row: JournalRow, server: ServerRow | None) -> dict[str, str]:
    """Return the request's requirements as text; empty for a purged server."""
    if server is None:
        return {}
    arguments = row.arguments
    wanted = arguments.get("flavor")
    flavor = server.flavor if wanted is None else decoding.convert(wanted, Flavor)
    properties = server.image.properties if server.image else {}
    found = {
        "flavor": f"{flavor.name}: {flavor.vcpus} vcpus, {flavor.memory_mb} MB memory, {flavor.root_gb} + "
                  f"{flavor.ephemeral_gb} GB disk, {flavor.swap_mb} MB swap",
        "extra specs": _pairs(flavor.extra_specs), "image properties": _pairs(properties),
        "zone": server.pinned_availability_zone or "", "hints": _pairs(server.scheduler_hints or {}),
        "host": " ".join(filter(None, (arguments.get("host"), arguments.get("node"),
                                       "(forced)" if arguments.get("forced") else ""))),
        "not on": ", ".join(arguments.get("exclude") or ())}
    return {name: words for name, words in found.items() if words}


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))


__all__ = ["of_request"]
