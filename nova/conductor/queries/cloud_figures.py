"""How the cloud as a whole stands, for Prometheus: read when somebody asks, by whichever conductor is asked.

Each conductor says the same, so a dashboard takes the largest of them. Names of hosts are bounded
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

CACHED_S = 15.0  # the usual scrape interval: however many ask, the databases are asked no more often a worker


class _Figures(NamedTuple):
    cell: cloud_figures.CellFigures
    capacity: tuple[cloud_figures.Capacity, ...]


class CloudFigures:
    """A collector of prometheus_client."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self._deps, self._clock, self._lock = deps, clock, threading.Lock()
        self._known: _Figures | None = None
        self._read_at = float("-inf")

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Without the databases only ``nova_cloud_known`` is there, and is 0."""
        known = self._read()
        yield GaugeMetricFamily("nova_cloud_known", "1 where a conductor could read what follows.",
                                value=float(known is not None))
        if known is not None:
            yield from _of_cell(known.cell)
            yield from _of_capacity(known.capacity, self._deps.settings.default_availability_zone)

    def _read(self) -> _Figures | None:
        with self._lock:
            if self._clock() - self._read_at < CACHED_S:
                return self._known
            self._read_at = self._clock()
            try:
                with self._deps.cell.reading() as tx:
                    cell = cloud_figures.cell(tx, self._deps.settings.service_down_time)
                with self._deps.api.reading() as tx:
                    self._known = _Figures(cell, cloud_figures.capacity(tx))
            except errors.Unavailable:
                self._known = None
            return self._known


def _of_cell(cell: cloud_figures.CellFigures) -> Iterable[GaugeMetricFamily]:
    """Operations, cleanups, services, hosts, leases, servers."""
    opened = GaugeMetricFamily("nova_operations_open", "Operations on servers that have not ended, by age.",
                               labels=("action", "older_than_seconds"))
    oldest = GaugeMetricFamily("nova_operations_oldest_seconds", "Age of the oldest of them.", labels=("action",))
    for one in cell.operations:
        for bound, count in zip((0, *cloud_figures.AGES), (one.number, *one.older), strict=True):
            opened.add_metric((one.action, str(bound)), count)
        oldest.add_metric((one.action,), one.oldest_s)
    pending = GaugeMetricFamily("nova_cleanups_pending", "Cleanups that a host has still to do.", labels=("host",))
    since = GaugeMetricFamily("nova_cleanups_oldest_seconds", "Age of the oldest of a host's.", labels=("host",))
    for cleanup in cell.cleanups:
        pending.add_metric((cleanup.host,), cleanup.number)
        since.add_metric((cleanup.host,), cleanup.oldest_s)
    daemons = GaugeMetricFamily("nova_services", "Daemons that report. State: up, down, or disabled.",
                                labels=("binary", "state"))
    for (binary, state), count in cell.services.items():
        daemons.add_metric((binary, state), count)
    beats = GaugeMetricFamily("nova_host_heartbeat_age_seconds",
                              f"Since a compute host was heard of; the {cloud_figures.MOST_HOSTS} that are longest "
                              "silent. State: enabled, disabled.", labels=("host", "state"))
    for beat in cell.beats:
        beats.add_metric((beat.host, "enabled" if beat.enabled else "disabled"), beat.seconds)
    leases = GaugeMetricFamily("nova_runner_leases", "Leases of conductors' workers.", labels=("state",))
    for state, count in zip(("good", "over"), cell.leases, strict=True):
        leases.add_metric((state,), count)
    servers = GaugeMetricFamily("nova_servers", "Servers by state.", labels=("vm_state",))
    for vm_state, count in cell.servers.items():
        servers.add_metric((vm_state,), count)
    unknown = GaugeMetricFamily("nova_strangers", "What hosts and the ledger have that no record explains.",
                                labels=("kind",))
    for kind, count in cell.strangers.items():
        unknown.add_metric((kind,), count)
    modes = GaugeMetricFamily("nova_security_mode", "1 for the security mode that the cloud is in.", labels=("mode",))
    for mode in SecurityMode:
        modes.add_metric((mode.value,), float(mode is cell.mode))
    yield modes
    yield unknown
    yield from (opened, oldest, pending, since, daemons, beats, leases, servers)
    yield GaugeMetricFamily("nova_runner_lease_left_seconds", "What is left of the good lease that ends first.",
                            value=cell.shortest_lease_s)


def _of_capacity(capacity: Iterable[cloud_figures.Capacity], default_zone: str) -> Iterable[GaugeMetricFamily]:
    """What hosts have and what is held of it."""
    labels = ("zone", "resource_class")
    total = GaugeMetricFamily("nova_capacity_total", "What hosts offer, with allocation ratios, less reserves.",
                              labels=labels)
    used = GaugeMetricFamily("nova_capacity_used", "What servers and moves hold of it.", labels=labels)
    for one in capacity:
        where = (one.zone or default_zone, one.resource_class)
        total.add_metric(where, one.total)
        used.add_metric(where, one.used)
    yield from (total, used)
