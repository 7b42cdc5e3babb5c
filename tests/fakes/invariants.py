"""Invariants of an idle cloud, as a list of violations, which is empty if all of them hold.

Every host is up and has done its pending cleanups; no operation is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from nova.conductor.upkeep import allocation_audit
from nova.db.host.host_cleanups import HELD_STEP
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.placement.claims import amounts_of
from nova.model.scheduling.requirements import needs_of
from nova.model.server import migrations
from nova.model.server.states import STATUS, PowerState, VmState
from nova.model.volumes import local
from tests.fakes.living_cloud import LivingCloud

#: vm_state -> the power state of its guest; other states allow any.
POWER = {VmState.ACTIVE: {PowerState.RUNNING}, VmState.PAUSED: {PowerState.PAUSED},
         VmState.STOPPED: {PowerState.SHUTDOWN, PowerState.CRASHED},
         VmState.SUSPENDED: {PowerState.SHUTDOWN, PowerState.SUSPENDED}, VmState.RESCUED: {PowerState.RUNNING}}
NOWHERE = {VmState.SHELVED_OFFLOADED}


def wrong(cloud: LivingCloud, addresses: Callable[[LivingCloud, list[Any]], Iterator[str]] | None = None) -> list[str]:
    """Return all violations. ``addresses``: check of addresses that replaces the one for one address per interface."""
    live = [row for row in cloud.rows("cell", sa.select(cell_tables.servers)) if not row.deleted]
    moves = _moves(cloud)
    return [*_states(cloud, live), *_places(cloud, live, moves), *_claims(cloud, live, moves), *_ledger(cloud, live),
            *_packings(cloud, live), *(addresses or _addresses)(cloud, live), *_open_moves(live, moves),
            *_leftovers(cloud, live, {(move.source_compute, uuid) for uuid, move in moves.items()})]


def _moves(cloud: LivingCloud) -> dict[str, Any]:
    """Return the open moves by server: finished moves that wait for a confirmation (all others are wrong)."""
    table = cell_tables.migrations
    rows = cloud.rows("cell", sa.select(table).where(table.c.status.not_in(migrations.OVER)).order_by(table.c.id))
    return {row.server_uuid: row for row in rows}


def _states(cloud: LivingCloud, live: list[Any]) -> Iterator[str]:
    for row in live:
        name = f"server {row.name} {row.uuid}"
        if VmState(row.vm_state) not in STATUS or row.vm_state in ("building", "deleted"):
            yield f"{name} is in vm_state {row.vm_state}"
        if row.task_state is not None:
            yield f"{name} is idle and has task_state {row.task_state}"
        if row.vm_state == "error" and row.fault is None:
            yield f"{name} is in ERROR and says no reason"


def _places(cloud: LivingCloud, live: list[Any], moves: dict[str, Any]) -> Iterator[str]:
    guests, source_copies = cloud.guests(), cloud.source_copies()
    for row in live:
        name, state = f"server {row.name} {row.uuid} ({row.vm_state})", VmState(row.vm_state)
        hosts = {host for host, uuid in guests if uuid == row.uuid}
        if state in NOWHERE or (state == VmState.ERROR and row.host is None):
            if row.host or hosts:
                yield f"{name} should be nowhere and is on {row.host}, with guests on {sorted(hosts)}"
            continue
        if hosts - {row.host} and not _half_destroyed(row):
            yield f"{name} is on {row.host}, and has something on {sorted(hosts)}"
        guest = guests.get((row.host, row.uuid))
        if state == VmState.ERROR:
            continue
        if guest is None or not guest.defined:
            if not _lacks_definition_alone(row, guest):
                yield f"{name} is on {row.host}, whose hypervisor has no such guest"
            continue
        if PowerState(guest.power_state) not in POWER.get(state, set(PowerState)):
            yield f"{name}: its guest is {PowerState(guest.power_state).name}"
        if PowerState(row.power_state) != PowerState(guest.power_state):
            yield f"{name}: power_state {row.power_state}, its guest's is {guest.power_state}"
        if (guest.vcpus, guest.memory_mb) != (row.flavor.vcpus, row.flavor.memory_mb):
            yield f"{name}: flavor {row.flavor.name}, its guest has {guest.vcpus} vcpus and {guest.memory_mb} MB"
    uuids = {row.uuid for row in live}
    yield from (f"{host} has a guest of {uuid}, which is gone" for host, uuid in guests if uuid not in uuids)
    dying = {row.uuid for row in live if _half_destroyed(row)}
    expected = {(move.source_compute, uuid) for uuid, move in moves.items() if uuid not in dying}
    stranded = {(row.host, row.uuid) for row in live if row.vm_state == "error"}  # a hard reboot recovers it
    yield from (f"{host} has put {uuid} aside, and no move waits for it" for host,
                uuid in source_copies - expected - stranded
                if uuid not in dying)
    yield from (f"{uuid} should be put aside on {host}" for host, uuid in expected - source_copies)


def _lacks_definition_alone(row: Any, guest: Any) -> bool:
    """Return whether a stopped server lacks only its definition: a hard reboot died while it redefined the guest. The
    guest has all its disks, and a start defines it."""
    off = row.vm_state == "stopped" and row.power_state == PowerState.SHUTDOWN
    return off and guest is not None and bool(guest.disks)


def _half_destroyed(row: Any) -> bool:
    """Return whether a delete of the server failed: its moves stay unchanged until the next delete."""
    return row.vm_state == "error" and row.memo is not None and row.memo.destroying


def _claims(cloud: LivingCloud, live: list[Any], moves: dict[str, Any]) -> Iterator[str]:
    """Check that usage is the sum over servers and waiting moves."""
    expected: Counter[tuple[str, str, str]] = Counter()
    for row in live:
        if row.host is not None:
            expected.update(_amounts(row.host, row.uuid, local(row.flavor, row.volumes)))
        if row.uuid in moves:
            move = moves[row.uuid]
            expected.update(_amounts(move.source_compute, move.uuid, local(move.old_flavor, row.volumes)))
    found = cloud.amounts()
    broken = {row.uuid for row in live if row.vm_state == "error"}  # a failed delete may have released them
    for key in {*expected, *found}:
        if cloud.moving.get(key[1], key[1]) in broken and (key not in expected or key not in found):
            expected.pop(key, None)
            found.pop(key, None)
    for key in sorted({*expected, *found}):
        if expected.get(key) != found.get(key):
            yield f"claimed of {key}: {found.get(key)}, should be {expected.get(key)}"


def _amounts(host: str, consumer: str, flavor: Any) -> dict[tuple[str, str, str], int]:
    needs = needs_of(flavor, {})
    amounts = amounts_of(needs.resources)
    if needs.requirements is not None:
        amounts = {name: amount for group in needs.requirements.request.groups for name,
                   amount in group.resources.items()}
    return {(host, consumer, name): amount for name, amount in amounts.items() if amount}


def _packings(cloud: LivingCloud, live: list[Any]) -> Iterator[str]:
    """Check that no processor belongs to two guests, and that each guest has the processors of its claim."""
    table, given = api_tables.allocations, api_tables.providers
    rows = cloud.rows("api", sa.select(given.c.host, table.c.consumer, table.c.moving, table.c.packing).join_from(
        table, given, given.c.id == table.c.provider_id).where(table.c.packing.is_not(None)))
    pins = Counter((row.host, pin) for row in rows for part in row.packing.cells for pin in part.pins.values())
    yield from (f"processor {pin} of {host} was given {count} times"
                for (host, pin), count in pins.items() if count > 1)
    held, guests = {(row.host, row.consumer): row.packing for row in rows}, cloud.guests()
    for row in live:
        wanted = needs_of(row.flavor, {}).requirements
        if row.vm_state == "error" or row.host is None:
            continue
        packing, guest = held.get((row.host, row.uuid)), guests.get((row.host, row.uuid))
        if (packing is not None) != (wanted is not None and wanted.topology.anything):
            yield f"server {row.uuid} of flavor {row.flavor.name} on {row.host} holds {packing}"
        elif guest is not None and guest.packing != packing:
            yield f"server {row.uuid} holds {packing} of {row.host}, and its guest has {guest.packing}"


def _ledger(cloud: LivingCloud, live: list[Any]) -> Iterator[str]:
    table = api_tables.ledger
    found = {row.server_uuid: row for row in cloud.rows("api", sa.select(table).where(table.c.closed == sa.false()))}
    broken = {row.uuid for row in live if row.vm_state == "error"}  # its failed delete may have removed them
    for uuid in sorted(({*found} ^ {row.uuid for row in live}) - broken):
        yield f"quota counts {uuid}: {uuid in found}"
    for row in live:
        if row.uuid in found and row.vm_state != "resized":
            counted = (found[row.uuid].vcpus, found[row.uuid].memory_mb)
            if counted != (row.flavor.vcpus, row.flavor.memory_mb):
                yield f"quota counts {counted} for {row.uuid}, whose flavor is {row.flavor.name}"


def _addresses(cloud: LivingCloud, live: list[Any]) -> Iterator[str]:
    table = cell_tables.fixed_addresses
    held = Counter(row.server_uuid for row in cloud.rows("cell", sa.select(table).where(
        table.c.server_uuid.is_not(None))))
    should = Counter({row.uuid: len(row.interfaces or ()) for row in live if row.interfaces})
    for row in live:
        if row.launched_at is not None and not row.interfaces:
            yield f"server {row.uuid} has lost its interfaces"
    broken = {row.uuid for row in live if row.vm_state == "error"}  # a failed delete may have released them
    for uuid in sorted({*held, *should} - broken):
        if held[uuid] != should[uuid]:
            yield f"{uuid} holds {held[uuid]} addresses, should hold {should[uuid]}"


def _open_moves(live: list[Any], moves: dict[str, Any]) -> Iterator[str]:
    resized = {row.uuid for row in live if row.vm_state == "resized"}
    dying = {row.uuid for row in live if _half_destroyed(row)}
    for uuid, move in moves.items():
        if uuid not in dying and (uuid not in resized or move.status != migrations.FINISHED):
            yield f"move {move.id} ({move.type}) of {uuid} is {move.status} for ever"
    yield from (f"{uuid} waits to be confirmed, and no move is there" for uuid in resized - set(moves))


def _leftovers(cloud: LivingCloud, live: list[Any], waiting: set[tuple[str, str]]) -> Iterator[str]:
    """Check that hosts have nothing left. ``waiting``: (host, server) of source copies that wait for a confirmation."""
    broken = {(row.host, row.uuid) for row in live if row.vm_state == "error"}  # its next action creates it again
    yield from (f"{debt.host} owes {debt.step} of {debt.server_uuid}" for debt in cloud.debts()
                if not (debt.step == HELD_STEP and (debt.host, debt.server_uuid) in waiting))
    for host, compute in cloud.computes.items():
        yield from (f"{host} has {path.name} half built" for path in (compute.path / "building").iterdir()
                    if (host, path.name) not in broken)
        yield from (f"{host} keeps a snapshot: {path.name}" for path in (compute.path / "fake").glob("snapshots/*"))
        yield from (f"{host} has room for {path.name}, which does not come"
                    for path in (compute.path / "fake").glob("arrivals/*"))


def audited(cloud: LivingCloud) -> list[str]:
    """Return the findings of nova-manage placement audit."""
    every = [allocation_audit.stores_of(part.deps) for part in cloud.parts]
    return [f"audit: {one.words()}" for stores in every for uuid in allocation_audit.review(stores)
            for one in allocation_audit.audit(stores, uuid).differences]
