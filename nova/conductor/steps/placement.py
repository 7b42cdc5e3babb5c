"""Steps that give a server its host, its claim there and its addresses; each step can be undone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import errors
from nova.conductor import zones
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, ProposedHost, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps.cleanups import claimed_elsewhere
from nova.db.host import host_cleanups
from nova.db.placement import claims, placement_facts
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.network.networks import Interface, PortDemand
from nova.model.scheduling import hints
from nova.model.scheduling.decisions import NoHost, PlacementGroup, PlacementRequest, Selection
from nova.model.scheduling.requirements import Needs, needs_of
from nova.model.volumes import local


def known(deps: Deps, request: PlacementRequest) -> dict[str, object]:
    """Return facts for the request: busy hosts, and a statement of each cell for each other fact that the request or an
    option needs."""
    settings = deps.settings
    found: dict[str, Any] = {"busy": deps.cells.busy()}
    wanted: dict[str, Callable[[Connection], Mapping[str, object]]] = {}
    if named := hints.all_named(request.hints):
        wanted["server_hosts"] = lambda tx: placement_facts.hosts_of(tx, named)
    if settings.image_props_weight_multiplier and request.image_properties:
        wanted["image_matches"] = lambda tx: placement_facts.image_matches(
            tx, request.image_properties, settings.image_props_weight_setting)
    for name, read in wanted.items():
        found[name] = {key: fact for of_cell in deps.cells.read(read) for key, fact in of_cell.items()}
    if settings.limit_tenants_to_placement_aggregate:
        with deps.api.reading() as tx:
            found["tenant_aggregates"] = placement_facts.has_aggregates(tx, request.project_id)
    return found


AT_ONCE = 100  # servers for each claim transaction: other transactions wait for its locks


def needs(deps: Deps, flavor: Flavor, image: Image | None, ports: Sequence[PortDemand] = ()) -> Needs:
    """Return the requirements of a server of this flavor and image, with these port requests, on a host."""
    return needs_of(flavor, image.properties if image else {}, deps.settings.pci_aliases, ports=ports)


def claim_of(deps: Deps, op: Op, flavor: Flavor) -> claims.Claim:
    """Return the operation's claim on the node that it took."""
    wanted = needs(deps, local(flavor, op.server.volumes), op.server.image, op.server.port_demands or ())
    return claims.Claim(op.uuid, op.entry.epoch, taken(op).provider_id, wanted.resources, grouped(op),
                        wanted.requirements)


class SelectHosts(Step):
    """Ask the scheduler, once for all servers of the request, and of concurrent requests that differ only by their
    servers. Makes no changes, so undo does nothing."""

    uses = ("api", "cell", "cell_uuid", "cells", "scheduler", "settings", "sharing")
    pure, event = True, "schedule_instances"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        alike = msgspec.structs.replace(plain_request_of(deps, ops), server_uuids=(), **_cells(deps, ops[0]))
        selections = deps.sharing.of("select hosts", functools.partial(_select_all, deps), len)(
            ops, msgspec.json.encode((ops[0].entry.action, alike)))
        results: list[Result] = []
        for op in ops:
            selection = selections.get(op.uuid)
            if selection is None or not selection.hosts:
                results.append(no_valid_host(op, selection))
            else:
                results.append({"hosts": _kept(selection)})
        return results


def _select_all(deps: Deps, requests: Sequence[Sequence[Op]]) -> list[Mapping[str, Selection]]:
    """Ask the scheduler for the servers of several requests that are alike; return the selections by server."""
    ops = [op for one in requests for op in one]
    return [{one.server_uuid: one for one in deps.scheduler.select_hosts(request_of(deps, ops))}] * len(requests)


def no_valid_host(op: Op, selection: Selection | None) -> errors.NoValidHost:
    """Return the error for the user; the details for admins stay in the journal."""
    found = selection or Selection(server_uuid=op.uuid, reason="The scheduler returned no result for it.")
    details = found.details or found.reason
    kept = NoHost(asked=found.asked, refusals=found.refusals, details=details)
    op.note(fault_details=details, no_host=kept)
    return errors.daemon.SchedulerNoValidHost(reason=found.reason.removeprefix("No valid host was found. "))


def _kept(selection: Selection) -> tuple[ProposedHost, ...]:
    """Return the hosts as the journal stores them."""
    return tuple(ProposedHost(one.host, one.node, one.provider_id) for one in selection.hosts)


def request_of(deps: Deps, ops: Sequence[Op]) -> PlacementRequest:
    """Return the request to the scheduler for these servers of one create or move."""
    request = plain_request_of(deps, ops)
    return msgspec.structs.replace(request, group=_group(deps, ops), **_cells(deps, ops[0]), **known(deps, request))


def _cells(deps: Deps, op: Op) -> dict[str, object]:
    """Return which cells the request may use. Only new servers, and moves that policy permits, may enter another
    cell."""
    if not deps.cells.several:
        return {}
    if op.entry.action == "create":
        return {"closed_cells": deps.cells.closed()}
    if op.asked(PlacementArguments).cross_cell:
        return {"closed_cells": tuple(one for one in deps.cells.closed() if one != deps.cell_uuid),
                "source_cell": deps.cell_uuid}
    return {"cell": deps.cell_uuid}


def plain_request_of(deps: Deps, ops: Sequence[Op]) -> PlacementRequest:
    """Return the request without the facts about other servers."""
    server, asked = ops[0].server, ops[0].asked(PlacementArguments)
    flavor = wanted_flavor(ops[0])
    wanted = needs(deps, local(flavor, server.volumes), server.image, server.port_demands or ())
    return PlacementRequest(
        server_uuids=tuple(op.uuid for op in ops), project_id=server.project_id, user_id=server.user_id,
        resources=wanted.resources, requirements=wanted.requirements, flavor_name=flavor.name,
        extra_specs=flavor.extra_specs,
        image_properties=server.image.properties if server.image else {}, image_id=server.image_id,
        availability_zone=server.pinned_availability_zone, host=asked.host, node=asked.node,
        force=asked.forced, exclude=(*asked.exclude, *ops[0].progress.tried),
        hints=server.scheduler_hints or {}, alternates=deps.settings.max_attempts - 1,
        source_host=asked.source,
        image_disk_format=(server.image.disk_format if server.image and server.image_id else None) or "")


def wanted_flavor(op: Op) -> Flavor:
    """Return the operation's target flavor: the server's own, except in a resize."""
    return op.asked(PlacementArguments).flavor or op.server.flavor


def taken(op: Op) -> ProposedHost:
    """Return the host that SelectNextHost selected. Raises Bug if that step has not run."""
    found = op.progress
    if found.host is None or found.node is None or found.provider_id is None:
        raise errors.Bug(f"'{op.entry.action}' has taken no host")
    return ProposedHost(found.host, found.node, found.provider_id)


def cell_of_taken(deps: Deps, op: Op) -> Deps:
    """Return the cell of the host that the operation took. Raises cell.NotServed."""
    return deps.cells.named(op.progress.to_cell) if op.progress.to_cell else deps


def grouped(op: Op) -> bool:
    """True if the server was requested in a server group (which may have been deleted since)."""
    return "group" in (op.server.scheduler_hints or {})


def _group(deps: Deps, ops: Sequence[Op]) -> PlacementGroup | None:
    if not grouped(ops[0]):
        return None
    with deps.api.reading() as tx:
        return server_groups.placement(tx, [op.uuid for op in ops])


class SelectNextHost(Step):
    """Select the next proposed host: the scheduler's choice first; at each reschedule, the next alternate."""

    pure, formerly = True, "TakeNextHost"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._next(op) for op in ops]

    def _next(self, op: Op) -> Result:
        found = op.progress
        # Another node of a failed host is not an alternative: that host may still have a pending cleanup of the guest.
        left = [one for one in found.hosts if one.host not in found.tried]
        if not left:
            last = found.fault.message if found.fault is not None else "none"
            return errors.daemon.SchedulerHostsExhausted(server=op.uuid, last=last)
        first, *others = left
        return {"hosts": tuple(others), "host": first.host, "node": first.node, "provider_id": first.provider_id,
                "tried": (*found.tried, first.host)}


class ClaimResources(Step):
    """Claim the hosts' resources, in a transaction that locks the providers; undo: release them.

    Servers of one request claim together, across their hosts, and with those of concurrent requests: a separate
    transaction for each of a hundred hosts would take a hundred times as long.
    """

    uses = ("api", "cell", "cell_uuid", "cells", "feed", "scheduler", "settings", "sharing")
    per_host = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [result for first in range(0, len(ops), AT_ONCE)
                for result in self._claim(deps, ops[first:first + AT_ONCE])]

    def _claim(self, deps: Deps, ops: Sequence[Op]) -> list[Result]:
        wanted = [claim_of(deps, op, op.server.flavor) for op in ops]
        results, usages = deps.sharing.of("claim", functools.partial(_claim_all, deps), len)(wanted)
        for op in ops:
            reschedule(deps, op, results[op.uuid])
        return [results[op.uuid] or zones.for_server(deps, op, usages) for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        epochs, kept = {op.uuid: op.entry.epoch for op in ops}, cleanup_hosts(deps, ops)
        deps.feed.after_release(deps.api.transact(lambda tx: ledger.release(tx, epochs, kept)))


class Claimed(NamedTuple):
    """The results of claims by server, and the usage of all providers that the transaction locked."""

    results: Mapping[str, errors.NovaError | None]
    usages: Sequence[claims.ProviderUsage]


def _claim_all(deps: Deps, requests: Sequence[Sequence[claims.Claim]]) -> list[Claimed]:
    """Claim for several requests; a repeated claim counts as the first. Of two operations on one server, the older one
    is overtaken."""
    newest = _newest((one.server_uuid, one.epoch) for wanted in requests for one in wanted)
    wanted = [one for of_request in requests for one in of_request if one.epoch == newest[one.server_uuid]]
    results, usages = claims.take(deps.api, wanted)
    deps.feed.after_claims(usages, [one.server_uuid for one in wanted])
    return [Claimed({**results, **{one.server_uuid: errors.Overtaken(f"{one.server_uuid} has a newer operation")
                                   for one in of_request if one.epoch < newest[one.server_uuid]}}, usages)
            for of_request in requests]


def _newest(epochs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return each server's newest epoch: two operations on one server, the older of which is overtaken, may meet."""
    found: dict[str, int] = {}
    for uuid, epoch in epochs:
        found[uuid] = max(epoch, found.get(uuid, epoch))
    return found


def reschedule(deps: Deps, op: Op, refused: errors.NovaError | None) -> None:
    """Ask the scheduler again after a refused claim if the alternates do not help.

    Other servers of the group may have been placed meanwhile, so that the hosts were selected without them. Or other
    servers took all selected hosts: then one more host is requested. A host that was never tried for a build does not
    count as an attempt, and the search ends with the hosts.
    """
    grouped_anew = isinstance(refused, errors.host.ClaimGroup)
    left = [one for one in op.progress.hosts if one.host not in op.progress.tried]
    if not grouped_anew and (left or not isinstance(refused, errors.ClaimConflict)):
        return
    try:
        [selection] = deps.scheduler.select_hosts(request_of(deps, [op]))
    except errors.Unavailable:
        return  # keep the existing alternates
    op.note(hosts=_kept(selection)[:None if grouped_anew else 1])


class FenceLedger(Step):
    """Raise the epoch in the ledger, so that overtaken operations can claim nothing more."""

    uses = ("api", "sharing")
    pure = True  # may be repeated, and is never undone

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        epochs = {op.uuid: op.entry.epoch for op in ops}
        held = deps.sharing.of("fence", functools.partial(_fence_all, deps), len)(epochs)
        # a claim means that a guest may exist: at both ends of a move, and on hosts of abandoned attempts
        return [{"claimed": held.get(op.uuid, ())} for op in ops]


def _fence_all(deps: Deps, requests: Sequence[Mapping[str, int]]) -> list[Mapping[str, tuple[str, ...]]]:
    """Raise the epochs of several requests' servers; return the hosts with their claims."""
    epochs = _newest(pair for one in requests for pair in one.items())

    def fence(tx: Connection) -> Mapping[str, tuple[str, ...]]:
        ledger.raise_epochs(tx, epochs)
        return ledger.hosts_holding(tx, list(epochs))
    return [deps.api.transact(fence)] * len(requests)


class ReleaseResources(Step):
    """Release the host's resources and the quota, one time. A claim with a pending cleanup stays until the cleanup is
    done."""

    uses = ("api", "cell", "cell_uuid", "cells", "feed", "sharing")
    pure = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        deps.sharing.of("release", functools.partial(_release_all, deps), len)(ops)
        return [{} for _ in ops]


def _release_all(deps: Deps, requests: Sequence[Sequence[Op]]) -> list[None]:
    ops = [op for one in requests for op in one]
    epochs, kept = _newest((op.uuid, op.entry.epoch) for op in ops), cleanup_hosts(deps, ops)

    def give_back(tx: Connection) -> list[int]:
        changed = ledger.release(tx, epochs, kept)
        ledger.close(tx, epochs)
        return changed
    deps.feed.after_release(deps.api.transact(give_back))
    return [None] * len(requests)


def cleanup_hosts(deps: Deps, ops: Sequence[Op]) -> dict[str, list[str]]:
    """Return the hosts with pending cleanups of these servers: claims there stay until the cleanups are done. A claim
    on a host of another cell waits for its cleanup as well."""
    with deps.cell.reading() as tx:
        found = host_cleanups.hosts_of(tx, [op.uuid for op in ops])
    for op in ops:
        if elsewhere := claimed_elsewhere(deps, op):
            found[op.uuid] = list(dict.fromkeys([*found.get(op.uuid, ()), *elsewhere]))
    return found


def write_access_addresses(ops: Iterable[Op], label: str | None) -> None:
    """Set a new server's access addresses to its addresses on the network of that label
    (``default_access_ip_network_name``), except addresses that the user chose."""
    for op in ops if label else ():
        found = first_of(op.server.interfaces or (), str(label))
        fresh = {name: address for name, address in found.items() if not getattr(op.server, name)}
        if fresh and op.entry.action == "create":
            op.write(**fresh)


def first_of(interfaces: Iterable[Interface], label: str) -> dict[str, str]:
    """Return the first address of each family there, by the column's name."""
    found: dict[str, str] = {}
    for one in interfaces:
        for address in one.addresses if one.label == label else ():
            found.setdefault(f"access_ip_v{address.version}", address.address)
    return found


class BindNetworks(Step):
    """Assign interfaces and addresses to each server; undo: return them."""

    uses = ("networking", "settings")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        bound = deps.networking.take(tx, ops)
        zone = ops[0].progress.zone or deps.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            taken = {"interfaces": bound[op.uuid]} if op.uuid in bound else {}
            op.see(**taken, host=op.progress.host, node=op.progress.node, availability_zone=zone)
        return {**({"interfaces": PerServer(bound)} if bound else {}),
                "host": ops[0].progress.host, "availability_zone": zone,
                "node": PerServer({op.uuid: op.progress.node for op in ops})}  # one host, which may have several

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        found: Sequence[Result] = deps.networking.bind(ops)
        write_access_addresses([op for op, result in zip(ops, found, strict=True)
                                if not isinstance(result, errors.NovaError)],
                               deps.settings.networking.default_access_ip_network_name)
        return found

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        deps.networking.give_back(tx, ops)
        gone: dict[str, Any] = {"interfaces": (), "host": None, "node": None, "availability_zone": None}
        for op in ops:
            op.see(**gone)
        return gone

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        deps.networking.unbind(ops)


class UnbindNetworks(Step):
    """Return the servers' addresses."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        deps.networking.give_back(tx, ops)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        deps.networking.unbind(ops)
        return [{} for _ in ops]
