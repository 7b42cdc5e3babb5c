"""Carrying of the reports of a cell's hosts from its database into the api database, and to the schedulers.

The first worker of every super conductor does it for each cell whose hosts it does not serve itself. Each part is
idempotent, so several may do it at the same time, and a part that a crash or an error interrupted is repeated by the
next turn. A turn without changes costs three statements in the cell's database, for any number of hosts.
"""

from __future__ import annotations

import datetime
import functools
import logging
import time
from collections.abc import Callable, Collection, Mapping

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.api_side import DirectApiSide
from nova.db.host import carried, enrolments
from nova.db.host.carried import CellStamp, NodeVersion, Seen, ServiceVersion, Window
from nova.db.placement import audits
from nova.db.server import guest_facts, servers
from nova.model.base import Time

LOG = logging.getLogger(__name__)

CLEANUPS, GUESTS = 100, 100  # done cleanups, and guests whose facts are wanted, of one turn
FEW_HOSTS = 500  # up to so many are read by name, more by reading all
COMPARE_S = 60.0  # interval of complete comparisons, which find what changed in the api database: a restored backup
COMMIT_S = datetime.timedelta(seconds=5)  # longest time from a heartbeat's timestamp to its commit


class Carrying:
    """The carrying for one cell: ``deps.cell`` is the cell's database, and ``deps.api`` the api database. Call
    :meth:`carry` every second, by a :class:`nova.service.PeriodicTask` with ``again_s``: then a cell whose database is
    away is logged once."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self._deps, self._direct, self._clock = deps, DirectApiSide(deps), clock
        self._stamp: CellStamp | None = None
        self._compared_at = float("-inf")
        self._services: dict[str, ServiceVersion] = {}  # as of the last comparison
        self._nodes: dict[str, tuple[str, ...]] = {}  # names of hosts' nodes
        self._refused: set[str] = set()  # hosts whose report the api database refused, which is logged
        self._heard_until: Time | None = None
        self._heard: dict[str, Time] = {}

    def carry(self) -> None:
        """Run one turn. Raises Unavailable if a database does not answer; the next turn does the rest."""
        with self._deps.cell.reading() as tx:
            stamp, now, wanted = carried.overview(tx)
            seen = carried.seen(tx, self._windows(now))
            done = carried.done_cleanups(tx, CLEANUPS)
        self._carry_heartbeats(seen, now)
        if wanted:
            self._carry_facts()
        for cleanup in done:
            self._direct.complete_cleanup(cleanup.host, cleanup.id)
        complete = self._clock() - self._compared_at >= COMPARE_S
        if complete or stamp != self._stamp:
            self._carry_changes(complete)
            self._stamp = stamp
        if complete:
            self._compared_at = self._clock()

    def _carry_facts(self) -> None:
        """Carry wanted facts of guests, the other way: from the api database to the cell's."""
        with self._deps.cell.reading() as tx:
            wanted = guest_facts.wanted(tx, GUESTS)
            rows = servers.rows_of(tx, wanted)
        for row in rows.values():
            facts = self._direct.guest_facts(row)
            self._deps.cell.transact(functools.partial(guest_facts.keep, row=row, facts=facts))
        if gone := [uuid for uuid in wanted if uuid not in rows]:
            self._deps.cell.transact(lambda tx: guest_facts.forget(tx, gone))

    # -- heartbeats

    def _windows(self, now: Time) -> tuple[Window, ...]:
        """Return the spans of time in which heartbeats may be new. The second one has hosts that are excused after a
        service report gap (:mod:`nova.db.host.report_gaps`)."""
        half = datetime.timedelta(seconds=self._deps.settings.service_down_time / 2)
        since = (self._heard_until or now - 2 * half) - COMMIT_S
        return Window(since), Window(since - half, now - half)

    def _carry_heartbeats(self, seen: Collection[Seen], now: Time) -> None:
        new = tuple((one.host, one.at) for one in seen if self._heard.get(one.host) != one.at)
        if not new or self._deps.feed.alive(new, now):
            self._heard.update(new)
            self._heard_until = now

    # -- services and nodes

    def _carry_changes(self, complete: bool) -> None:
        """Carry newer reports, and send the hosts whose services have changed to the schedulers. ``complete``: compare
        the reports of all hosts."""
        with self._deps.cell.reading() as tx:
            services = carried.service_versions(tx)
            changed = {host for host, version in services.items() if self._services.get(host) != version}
            read = None if complete or len(changed) > FEW_HOSTS else changed
            nodes = [node for node in carried.node_versions(tx, read) if node.host in services]
        newer = self._newer(nodes, everything=read is None)
        for host in sorted(newer):
            self._carry_report(host)
        if self._stamp is not None:  # at first, the schedulers have read all hosts' states themselves
            for host in sorted(changed - newer):
                self._deps.feed.host_changed(host)
        for host in sorted(self._services.keys() - services.keys()):
            self._forget(host)
        self._services = services
        self._nodes |= _names(nodes)

    def _newer(self, nodes: Collection[NodeVersion], everything: bool) -> set[str]:
        """Return the hosts with a node whose report is newer than its provider, or that has no provider."""
        if not nodes:
            return set()
        with self._deps.api.reading() as tx:
            known = carried.provider_versions(tx, None if everything else {node.uuid for node in nodes})
        return {node.host for node in nodes if node.uuid not in known or node.version > known[node.uuid]}

    def _carry_report(self, host: str) -> None:
        """Write the providers of a host's last report. A report that the api database refuses is logged once, and tried
        again at the next comparison."""
        with self._deps.cell.reading() as tx:
            inventory, limits = audits.report(tx, host), enrolments.capacity_limits(tx, host)
        if inventory is None:
            return
        with failures.parked(self._refuse, on=errors.host.NodeNotYours):
            self._direct.apply_inventory(inventory, limits)
            self._refused.discard(host)

    def _refuse(self, error: errors.NovaError) -> None:
        host = str(error.data["host"])
        if host not in self._refused:
            self._refused.add(host)
            LOG.error("the capacity of host %s is not used: %s If another cell has a host of this name, rename one of "
                      "them and remove its state directory. %s", host, error.message, error.cure)

    def _forget(self, host: str) -> None:
        self._refused.discard(host)
        self._heard.pop(host, None)
        self._deps.feed.host_gone(host, self._nodes.pop(host, ()))


def _names(nodes: Collection[NodeVersion]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        found[node.host] = (*found.get(node.host, ()), node.name)
    return found
