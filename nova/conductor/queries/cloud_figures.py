"""Metrics of the whole cloud for Prometheus, read at each scrape by the conductor that is scraped.

All conductors return the same values, so a dashboard takes their maximum. The number of host labels is bounded
(:mod:`nova.db.upkeep.cloud_figures`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.upkeep import cloud_figures
from nova.model.security.security_modes import SecurityMode

LOG = logging.getLogger(__name__)

CACHED_S = 15.0  # the usual scrape interval: each worker queries the databases at most this often


class _Figures(NamedTuple):
    cell: cloud_figures.CellFigures
    capacity: tuple[cloud_figures.Capacity, ...]
    cells: int  # that answer


class CloudFigures:
    """A collector of prometheus_client for the cloud's metrics."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self._deps, self._clock, self._lock = deps, clock, threading.Lock()
        self._known: _Figures | None = None
        self._read_at = float("-inf")

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the metrics; while a database is down, only ``nova_cloud_known``, with the value 0."""
        known = self._read()
        yield GaugeMetricFamily("nova_cloud_known", "1 if the conductor could read the other metrics of the cloud.",
                                value=float(known is not None))
        if known is not None:
            yield from _of_cell(known.cell)
            yield _of_cells(known.cells, len(self._deps.cells.all()))
            yield from _of_capacity(known.capacity, self._deps.settings.default_availability_zone)

    def _read(self) -> _Figures | None:
        with self._lock:
            if self._clock() - self._read_at < CACHED_S:
                return self._known
            self._read_at = self._clock()
            try:
                down_s = self._deps.settings.service_down_time
                cells = self._deps.cells.read(lambda tx: cloud_figures.cell(tx, down_s))
                with self._deps.api.reading() as tx:
                    self._known = _Figures(cloud_figures.merged(cells), cloud_figures.capacity(tx), len(cells))
            except errors.Unavailable:
                self._known = None
            return self._known


def _of_cells(up: int, known: int) -> GaugeMetricFamily:
    found = GaugeMetricFamily("nova_cells", "Cells that this conductor serves. State: up, or away.", labels=("state",))
    found.add_metric(("up",), up)
    found.add_metric(("away",), known - up)
    return found


def _of_cell(cell: cloud_figures.CellFigures) -> Iterable[GaugeMetricFamily]:
    """Yield the metrics of operations, cleanups, services, hosts, leases and servers."""
    opened = GaugeMetricFamily("nova_operations_open", "Unfinished operations on servers, by age.",
                               labels=("action", "older_than_seconds"))
    oldest = GaugeMetricFamily("nova_operations_oldest_seconds", "Age of the oldest unfinished operation.",
                               labels=("action",))
    for one in cell.operations:
        for bound, count in zip((0, *cloud_figures.AGES), (one.number, *one.older), strict=True):
            opened.add_metric((one.action, str(bound)), count)
        oldest.add_metric((one.action,), one.oldest_s)
    pending = GaugeMetricFamily("nova_cleanups_pending", "Pending cleanups of a host.", labels=("host",))
    since = GaugeMetricFamily("nova_cleanups_oldest_seconds", "Age of the oldest pending cleanup of a host.",
                              labels=("host",))
    for cleanup in cell.cleanups:
        pending.add_metric((cleanup.host,), cleanup.number)
        since.add_metric((cleanup.host,), cleanup.oldest_s)
    daemons = GaugeMetricFamily("nova_services", "Registered services. State: up, down, or disabled.",
                                labels=("binary", "state"))
    for (binary, state), count in cell.services.items():
        daemons.add_metric((binary, state), count)
    heartbeats = GaugeMetricFamily("nova_host_heartbeat_age_seconds",
                                   "Seconds since a compute host's last heartbeat; only the "
                                   f"{cloud_figures.MOST_HOSTS} oldest. State: enabled, disabled.",
                                   labels=("host", "state"))
    for beat in cell.heartbeats:
        heartbeats.add_metric((beat.host, "enabled" if beat.enabled else "disabled"), beat.seconds)
    leases = GaugeMetricFamily("nova_runner_leases", "Leases of conductor workers.", labels=("state",))
    for state, count in zip(("good", "over"), cell.leases, strict=True):
        leases.add_metric((state,), count)
    servers = GaugeMetricFamily("nova_servers", "Servers by state.", labels=("vm_state",))
    for vm_state, count in cell.servers.items():
        servers.add_metric((vm_state,), count)
    unknown = GaugeMetricFamily("nova_strangers", "Orphans: resources on hosts and in the ledger without a record.",
                                labels=("kind",))
    for kind, count in cell.strangers.items():
        unknown.add_metric((kind,), count)
    modes = GaugeMetricFamily("nova_security_mode", "1 for the current security mode of the cloud.", labels=("mode",))
    for mode in SecurityMode:
        modes.add_metric((mode.value,), float(mode is cell.mode))
    yield modes
    yield unknown
    yield from (opened, oldest, pending, since, daemons, heartbeats, leases, servers)
    yield GaugeMetricFamily("nova_runner_lease_left_seconds", "Remaining time of the valid lease that ends first.",
                            value=cell.shortest_lease_s)


def _of_capacity(capacity: Iterable[cloud_figures.Capacity], default_zone: str) -> Iterable[GaugeMetricFamily]:
    """Yield the capacity of hosts and its usage."""
    labels = ("zone", "resource_class")
    total = GaugeMetricFamily("nova_capacity_total", "Capacity of hosts, with allocation ratios, without reserves.",
                              labels=labels)
    used = GaugeMetricFamily("nova_capacity_used", "Capacity that servers and moves have claimed.", labels=labels)
    for one in capacity:
        where = (one.zone or default_zone, one.resource_class)
        total.add_metric(where, one.total)
        used.add_metric(where, one.used)
    yield from (total, used)
