"""What a conductor looks after by itself: each bounded, each cheap when there is nothing to do."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.enrolment import wrap_clear
from nova.conductor.queries import consoles
from nova.conductor.upkeep import continuous_audit, data_migrations, port_audit, purge, usage_audit
from nova.conductor.upkeep.quota_repair import Recount
from nova.conductor.zones import ForgottenHosts, ZoneSweep
from nova.conf.base import Options
from nova.db.host import services
from nova.db.network import free_addresses, host_addresses
from nova.db.operation import runners, taken_messages
from nova.db.quota import ledger, lock_rows
from nova.db.server import servers
from nova.db.sql.types import AnyColumn
from nova.model.host.services import ServiceQuery
from nova.rpc.proofs import WINDOW_S

LOG = logging.getLogger(__name__)

PAGE = 1000
UNBORN_S = 600
UNUSED_S = 3600
TAKEN_BATCH, TAKEN_BATCHES = 1000, 50  # messages of hosts that are forgotten in a transaction, and in a turn


class LedgerSweep:
    """Ledger rows without a server after ten minutes: a crash between the two transactions; nobody got a 202.

    Every row is looked at once by each process: a server that was there once is no case for this.
    """

    def __init__(self) -> None:
        self._seen = 0  # the last key that was looked at

    def __call__(self, deps: Deps) -> None:
        while True:
            with deps.api.reading() as tx:
                page = ledger.grown(tx, self._seen, UNBORN_S, PAGE)
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
            LOG.warning("closed the ledger row of a server that was never made; its quota is free",
                        extra={"server": uuid})


class LockSweep:
    """Rows by which owners of quotas are locked: a page a turn, so that projects that are gone leave none."""

    def __init__(self) -> None:
        self._after = dict.fromkeys(lock_rows.TABLES, "")  # which row was the last

    def __call__(self, deps: Deps) -> None:
        for schema, after in self._after.items():
            database = deps.api if schema == "api" else deps.cell
            last = database.transact(functools.partial(lock_rows.forget, table=lock_rows.TABLES[schema], after=after,
                                                       limit=PAGE))
            self._after[schema] = last or ""


def free_left_addresses(deps: Deps) -> None:
    """Addresses that servers left under a lease, and whose release never came (only without force_dhcp_release)."""
    count = deps.cell.transact(lambda tx: free_addresses.free_stale(
        tx, deps.settings.networking.fixed_ip_disassociate_timeout))
    if count:
        LOG.info("%d fixed addresses are free whose leases did not end in time", count)


def free_unused_gateways(deps: Deps) -> None:
    """Hosts' own addresses whose last guest left while nobody could give them back: when the host knows it now, or is
    no network host any more. Those that were taken lately may wait for a guest that is on its way."""
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
    """Those of hosts that are too old to be taken again, in small batches; how many. What is left goes the next
    time."""
    count = 0
    for _batch in range(TAKEN_BATCHES):
        gone = deps.cell.transact(lambda tx: taken_messages.purge(tx, int(3 * WINDOW_S), TAKEN_BATCH))
        count += gone
        if gone < TAKEN_BATCH:
            break
    return count


def forget_runners(deps: Deps) -> None:
    """Conductors' leases that ended more than an hour ago."""
    deps.cell.transact(runners.drop_dead_runners)


def healing(networking: AnyColumn, options: Options) -> tuple[tuple[float, AnyColumn, str], ...]:
    """Where Neutron keeps servers' interfaces: ours are compared with them, some of the servers a turn."""
    every = options.heal_instance_info_cache_interval
    if networking.name != "neutron" or every <= 0:
        return ()
    return ((float(every), lambda _world: networking.healer.turn(), "interfaces of Neutron"),)


def late_ports(networking: AnyColumn) -> tuple[tuple[float, AnyColumn, str], ...]:
    """Of every worker: each knows which answers of Neutron it never got."""
    if networking.name != "neutron":
        return ()
    return ((60.0, lambda _world: networking.healer.clear_doubts(), "late ports"),)


def naming(deps: Deps) -> tuple[tuple[float, Callable[[Deps], AnyColumn], str], ...]:
    """Servers' names in DNS (nova-network's), written again where the DNS server did not take them."""
    every = deps.settings.floating.dns_update_periodic_interval
    if deps.networking.name != "nova-network" or every <= 0:
        return ()
    return ((float(every), lambda _world: deps.networking.floating.write_all(), "names in DNS"),)


#: (seconds, job, name), run by the first worker of each conductor.
JOBS = ((120.0, LedgerSweep(), "ledger sweep"), (60.0, purge.run, "purge"), (600.0, forget_runners, "dead runners"),
        (60.0, forget_taken_messages, "taken messages"),
        (600.0, LockSweep(), "quota locks"), (60.0, usage_audit.run, "usage audit"),
        (60.0, ZoneSweep(), "servers' zones"), (300.0, ForgottenHosts(), "forgotten hosts"),
        (300.0, Recount(), "recount"),
        (60.0, consoles.drop_expired, "expired consoles"), (15.0, volume_cleanups.run, "cleanups of volumes"),
        (60.0, free_left_addresses, "left addresses"),
        (600.0, free_unused_gateways, "unused gateways"), (60.0, wrap_clear, "secrets in clear"),
        (60.0, continuous_audit.run, "audit of allocations"), (300.0, port_audit.run, "audit of ports"),
        (60.0, data_migrations.run, "online data migrations"))
