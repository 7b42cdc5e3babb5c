"""What a server gets of a host: its place, what it holds there, and its addresses; each with its way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nova import errors
from nova.conductor import zones
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, ProposedHost, Result
from nova.conductor.engine.workflow import Step
from nova.db.host import services
from nova.db.placement import claims, placement_facts
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.network.networks import Interface, PortDemand
from nova.model.scheduling import hints
from nova.model.scheduling.decisions import NoHost, PlacementGroup, PlacementRequest, Selection
from nova.model.scheduling.requirements import Needs, needs_of
from nova.model.volumes import local


def known(deps: Deps, request: PlacementRequest) -> dict[str, AnyColumn]:
    """Fields of the request: one statement, and one more for each fact that the request or an option asks for."""
    settings = deps.settings
    named = hints.all_named(request.hints)
    found: dict[str, Any] = {}
    with deps.cell.reading() as tx:
        found["busy"] = placement_facts.busy(tx)
        if named:
            found["server_hosts"] = placement_facts.hosts_of(tx, named)
        if settings.image_props_weight_multiplier and request.image_properties:
            found["image_matches"] = placement_facts.image_matches(tx, request.image_properties,
                                                                   settings.image_props_weight_setting)
    if settings.limit_tenants_to_placement_aggregate:
        with deps.api.reading() as tx:
            found["tenant_aggregates"] = placement_facts.has_aggregates(tx, request.project_id)
    return found


AT_ONCE = 100  # servers that claim in one transaction, whose locks others wait for


def needs(deps: Deps, flavor: Flavor, image: Image | None, ports: Sequence[PortDemand] = ()) -> Needs:
    """What a server of this flavor and image, with ports that ask for this, needs of a host."""
    return needs_of(flavor, image.properties if image else {}, deps.settings.pci_aliases, ports=ports)


def claim_of(deps: Deps, op: Op, flavor: Flavor) -> claims.Claim:
    """What the operation claims of the node that it took."""
    wanted = needs(deps, local(flavor, op.server.volumes), op.server.image, op.server.port_demands or ())
    return claims.Claim(op.uuid, op.entry.epoch, taken(op).provider_id, wanted.resources, grouped(op),
                        wanted.requirements)


class SelectHosts(Step):
    """Ask the scheduler, once for all servers of the request. Changes nothing, so there is nothing to undo."""

    uses = ("api", "cell", "scheduler", "settings")
    pure, event = True, "schedule_instances"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        selections = {one.server_uuid: one for one in deps.scheduler.select_hosts(request_of(deps, ops))}
        results: list[Result] = []
        for op in ops:
            selection = selections.get(op.uuid)
            if selection is None or not selection.hosts:
                results.append(no_valid_host(op, selection))
            else:
                results.append({"hosts": _kept(selection)})
        return results


def no_valid_host(op: Op, selection: Selection | None) -> errors.NoValidHost:
    """The error; what admins learn beside it stays in the journal."""
    found = selection or Selection(server_uuid=op.uuid, reason="The scheduler gave no answer for it.")
    details = found.details or found.reason
    kept = NoHost(asked=found.asked, refusals=found.refusals, details=details)
    op.note(fault_details=details, no_host=kept)
    return errors.daemon.SchedulerNoValidHost(reason=found.reason.removeprefix("No valid host was found. "))


def _kept(selection: Selection) -> tuple[ProposedHost, ...]:
    """Hosts as the journal keeps them."""
    return tuple(ProposedHost(one.host, one.node, one.provider_id) for one in selection.hosts)


def request_of(deps: Deps, ops: Sequence[Op]) -> PlacementRequest:
    """Where may these servers of one request run?"""
    request = plain_request_of(deps, ops)
    return msgspec.structs.replace(request, group=_group(deps, ops), **known(deps, request))


def plain_request_of(deps: Deps, ops: Sequence[Op]) -> PlacementRequest:
    """The same without what other servers have to do with it."""
    server, asked = ops[0].server, ops[0].asked(PlacementArguments)
    flavor = wanted_flavor(ops[0])
    wanted = needs(deps, local(flavor, server.volumes), server.image, server.port_demands or ())
    return PlacementRequest(
        server_uuids=tuple(op.uuid for op in ops), project_id=server.project_id, user_id=server.user_id,
        resources=wanted.resources, wishes=wanted.requirements, flavor_name=flavor.name, extra_specs=flavor.extra_specs,
        image_properties=server.image.properties if server.image else {}, image_id=server.image_id,
        availability_zone=server.pinned_availability_zone, host=asked.host, node=asked.node,
        force=asked.forced, exclude=(*asked.exclude, *ops[0].progress.tried),
        hints=server.scheduler_hints or {}, alternates=deps.settings.max_attempts - 1,
        source_host=asked.source,
        image_disk_format=(server.image.disk_format if server.image and server.image_id else None) or "")


def wanted_flavor(op: Op) -> Flavor:
    """The flavor that the operation's server is to have: the server's, but in a resize."""
    return op.asked(PlacementArguments).flavor or op.server.flavor


def taken(op: Op) -> ProposedHost:
    """The host that the operation has taken to try: TakeNextHost stands before who asks."""
    found = op.progress
    if found.host is None or found.node is None or found.provider_id is None:
        raise errors.Bug(f"'{op.entry.action}' has taken no host")
    return ProposedHost(found.host, found.node, found.provider_id)


def grouped(op: Op) -> bool:
    """Whether the server was asked for in a server group (which may be gone since)."""
    return "group" in (op.server.scheduler_hints or {})


def _group(deps: Deps, ops: Sequence[Op]) -> PlacementGroup | None:
    if not grouped(ops[0]):
        return None
    with deps.api.reading() as tx:
        return server_groups.placement(tx, [op.uuid for op in ops])


class TakeNextHost(Step):
    """The chosen host first, then its alternates."""

    pure = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._next(op) for op in ops]

    def _next(self, op: Op) -> Result:
        found = op.progress
        # Another node of a host that failed is no alternative: that host may still owe the guest's removal.
        left = [one for one in found.hosts if one.host not in found.tried]
        if not left:
            last = found.fault.message if found.fault is not None else "none"
            return errors.daemon.SchedulerHostsExhausted(server=op.uuid, last=last)
        first, *others = left
        return {"hosts": tuple(others), "host": first.host, "node": first.node, "provider_id": first.provider_id,
                "tried": (*found.tried, first.host)}


class ClaimResources(Step):
    """Take the hosts' resources, in a transaction that locks the providers; undo: give them back.

    Servers of one request claim together, whatever their hosts: a transaction for each of a hundred hosts would take a
    hundred times as long.
    """

    uses = ("api", "cell", "feed", "scheduler", "settings")
    per_host = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [result for first in range(0, len(ops), AT_ONCE)
                for result in self._claim(deps, ops[first:first + AT_ONCE])]

    def _claim(self, deps: Deps, ops: Sequence[Op]) -> list[Result]:
        wanted = [claim_of(deps, op, op.server.flavor) for op in ops]
        results, usages = claims.take(deps.api, wanted)
        deps.feed.after_claims(usages, [op.uuid for op in ops])
        for op in ops:
            look_further(deps, op, results[op.uuid])
        return [results[op.uuid] or zones.for_server(deps, op, usages) for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        epochs, kept = {op.uuid: op.entry.epoch for op in ops}, cleanup_hosts(deps, ops)
        deps.feed.after_release(deps.api.transact(lambda tx: ledger.release(tx, epochs, kept)))


def look_further(deps: Deps, op: Op, refused: errors.NovaError | None) -> None:
    """A claim was refused: ask the scheduler anew where the alternates are no help. Others of the server's group may
    have been placed meanwhile, so that they were chosen without knowing where; or others took them all, in which case
    one host more is looked for: what was never tried for a build counts as no attempt, and ends with the hosts."""
    grouped_anew = isinstance(refused, errors.host.ClaimGroup)
    left = [one for one in op.progress.hosts if one.host not in op.progress.tried]
    if not grouped_anew and (left or not isinstance(refused, errors.ClaimConflict)):
        return
    try:
        [selection] = deps.scheduler.select_hosts(request_of(deps, [op]))
    except errors.Unavailable:
        return  # the alternates it has are all there is
    op.note(hosts=_kept(selection)[:None if grouped_anew else 1])


class FenceLedger(Step):
    """Raise the epoch where claims are made, so that what was overtaken can claim nothing any more."""

    uses = ("api",)
    pure = True  # repeated as often as need be, and never undone

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        epochs = {op.uuid: op.entry.epoch for op in ops}

        def fence(tx: Connection) -> list[tuple[str, ...]]:
            ledger.raise_epochs(tx, epochs)
            return [tuple(one.host for one in ledger.held_by(tx, op.uuid)) for op in ops]
        # where something is claimed, something may be: at both ends of a move, and where one was given up
        return [{"claimed": held} for held in deps.api.transact(fence)]


class ReleaseResources(Step):
    """Give the host's resources and the quota back, once. What is still owed keeps its claim until it is paid."""

    uses = ("api", "cell", "feed")
    pure = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        epochs, kept = {op.uuid: op.entry.epoch for op in ops}, cleanup_hosts(deps, ops)

        def give_back(tx: Connection) -> list[int]:
            changed = ledger.release(tx, epochs, kept)
            ledger.close(tx, epochs)
            return changed
        deps.feed.after_release(deps.api.transact(give_back))
        return [{} for _ in ops]


def cleanup_hosts(deps: Deps, ops: Sequence[Op]) -> dict[str, list[str]]:
    """The hosts that owe something for these servers: what is claimed there stays claimed until it is paid."""
    with deps.cell.reading() as tx:
        return services.cleanup_hosts_of(tx, [op.uuid for op in ops])


def write_access_addresses(ops: Iterable[Op], label: str | None) -> None:
    """A new server is shown with its addresses on the network of that label (``default_access_ip_network_name``), but
    for what the user chose."""
    for op in ops if label else ():
        found = first_of(op.server.interfaces or (), str(label))
        fresh = {name: address for name, address in found.items() if not getattr(op.server, name)}
        if fresh and op.entry.action == "create":
            op.write(**fresh)


def first_of(interfaces: Iterable[Interface], label: str) -> dict[str, str]:
    """By the column's name, the first address of each family there."""
    found: dict[str, str] = {}
    for one in interfaces:
        for address in one.addresses if one.label == label else ():
            found.setdefault(f"access_ip_v{address.version}", address.address)
    return found


class BindNetworks(Step):
    """Give each server its interfaces and addresses; undo: take them back."""

    uses = ("networking", "settings")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
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
    """Give the addresses back."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        deps.networking.give_back(tx, ops)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        deps.networking.unbind(ops)
        return [{} for _ in ops]
