"""Periodic jobs of a conductor: each is bounded, and cheap without work."""

from __future__ import annotations

import functools
import logging

from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.enrolment import encrypt_clear_secrets
from nova.conductor.queries import consoles
from nova.conductor.upkeep import continuous_audit, data_migrations, port_audit, purge, usage_audit
from nova.conductor.upkeep.held_cleanups import HeldCleanups
from nova.conductor.upkeep.quota_repair import Recount
from nova.conductor.upkeep.timeouts import Job
from nova.conductor.zones import ForgottenHosts, ZoneSweep
from nova.db.host import services
from nova.db.network import free_addresses, host_addresses
from nova.db.operation import runners, taken_messages
from nova.db.quota import ledger, lock_rows
from nova.db.server import servers
from nova.model.host.services import ServiceQuery
from nova.rpc.proofs import WINDOW_S

LOG = logging.getLogger(__name__)

PAGE = 1000
UNBORN_S = 600
UNUSED_S = 3600
TAKEN_BATCH, TAKEN_BATCHES = 1000, 50  # messages of hosts deleted in each transaction; transactions in each turn


class LedgerSweep:
    """Sweep of ledger rows that have no server after ten minutes. They are left by a crash between the two
    transactions; no user got a 202 for them.

    Each process checks every row once: a server that existed once needs no further check.
    """

    def __init__(self) -> None:
        self._seen = 0  # the last key checked

    def __call__(self, deps: Deps) -> None:
        while True:
            with deps.api.reading() as tx:
                page = ledger.grown(tx, self._seen, UNBORN_S, PAGE, deps.cell_uuid)
            self._close_unborn(deps, list(page))
            if page:
                self._seen = max(page.values())
            if len(page) < PAGE:
                return

    def _close_unborn(self, deps: Deps, uuids: list[str]) -> None:
        if not uuids:
            return
        with deps.cell.reading() as tx:
            born = servers.epochs(tx, uuids)
        lost = [uuid for uuid in uuids if uuid not in born]
        if not lost:
            return
        deps.api.transact(lambda tx: ledger.close(tx, dict.fromkeys(lost, 2**62)))
        for uuid in lost:
            LOG.warning("closed the ledger row of a server that was never created; its quota is free",
                        extra={"server": uuid})


class LockSweep:
    """Sweep of the rows that lock owners of quotas: a page each turn, so that deleted projects leave none."""

    def __init__(self) -> None:
        self._after = dict.fromkeys(lock_rows.TABLES, "")  # last row of the previous page

    def __call__(self, deps: Deps) -> None:
        for schema, after in self._after.items():
            database = deps.api if schema == "api" else deps.cell
            last = database.transact(functools.partial(lock_rows.forget, table=lock_rows.TABLES[schema], after=after,
                                                       limit=PAGE))
            self._after[schema] = last or ""


def free_left_addresses(deps: Deps) -> None:
    """Free addresses that servers left under a lease, and whose release never came (only without
    force_dhcp_release)."""
    count = deps.cell.transact(lambda tx: free_addresses.free_stale(
        tx, deps.settings.networking.fixed_ip_disassociate_timeout))
    if count:
        LOG.info("freed %d fixed addresses whose leases did not end in time", count)


def free_unused_gateways(deps: Deps) -> None:
    """Release hosts' own addresses whose last guest left while they could not be released. It is done when the host can
    now be told, or is no longer a network host. Recently taken addresses may wait for a guest that is being created."""
    if not deps.settings.networking.teardown_unused_network_gateway:
        return
    with deps.cell.reading() as tx:
        unused = host_addresses.unused(tx, UNUSED_S)
        known = {row.host for row, _clock in services.select(tx, ServiceQuery(binary=services.NETWORK))} if unused \
            else set()
    for uuid, host in unused:
        if host not in known or not deps.network_updates.try_send({uuid}, {host}):
            deps.cell.transact(functools.partial(host_addresses.release_own, network_uuids=[uuid], host=host))


def forget_taken_messages(deps: Deps) -> int:
    """Delete records of hosts' messages that are too old to be accepted again, in small batches, and return their
    number. The rest is deleted in the next turn."""
    count = 0
    for _batch in range(TAKEN_BATCHES):
        gone = deps.cell.transact(lambda tx: taken_messages.purge(tx, int(3 * WINDOW_S), TAKEN_BATCH))
        count += gone
        if gone < TAKEN_BATCH:
            break
    return count


def forget_runners(deps: Deps) -> None:
    """Delete conductors' leases that ended more than an hour ago."""
    deps.cell.transact(runners.drop_dead_runners)


def jobs() -> tuple[Job, ...]:
    """Return the jobs of a cell as (seconds, job, name), run by the first worker of each conductor. Some remember how
    far they came, so that each cell has its own."""
    return (
        (120.0, LedgerSweep(), "ledger sweep"), (60.0, purge.run, "purge"), (600.0, forget_runners, "dead runners"),
        (60.0, forget_taken_messages, "processed messages"),
        (600.0, LockSweep(), "quota locks"), (60.0, usage_audit.run, "usage audit"),
        (60.0, ZoneSweep(), "servers' zones"), (300.0, Recount(), "recount"),
        (60.0, consoles.drop_expired, "expired consoles"), (15.0, volume_cleanups.run, "cleanups of volumes"),
        (60.0, free_left_addresses, "addresses left under leases"),
        (600.0, free_unused_gateways, "unused gateways"), (60.0, encrypt_clear_secrets, "clear-text secrets"),
        (60.0, continuous_audit.run, "audit of allocations"), (300.0, port_audit.run, "audit of ports"),
        (60.0, data_migrations.run, "online data migrations"), (300.0, HeldCleanups(), "held cleanups"))


def cloud_jobs() -> tuple[Job, ...]:
    """Return the jobs about all cells together, likewise."""
    return ((300.0, ForgottenHosts(), "forgotten hosts"),)
