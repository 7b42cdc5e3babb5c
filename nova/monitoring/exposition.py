"""The metrics of all processes of a daemon, in Prometheus' format."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from nova.monitoring.counting import VARIABLE
from nova.monitoring.health import Collector
from nova.monitoring.workers import Workers

__all__ = ["CONTENT_TYPE_LATEST", "ProcessFigures", "exposed", "forget_worker"]


class ProcessFigures:
    """Collector of processor time, memory and open files of each worker."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        """Yield the library's process metrics, with the worker's number."""
        found: dict[str, Metric] = {}
        for worker in self._workers.all():
            if not worker.pid:
                continue
            for metric in ProcessCollector(namespace="nova", pid=lambda pid=worker.pid: pid,  # type: ignore[misc]
                                           registry=None).collect():
                whole = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    whole.add_sample(sample.name, {"worker": str(worker.number)}, sample.value)
        yield from found.values()


def exposed(collectors: tuple[Collector, ...]) -> bytes:
    """Return the counters of all processes, and the current values of the collectors."""
    registry = CollectorRegistry()
    if VARIABLE in os.environ:
        MultiProcessCollector(registry)
    for one in collectors:
        registry.register(one)
    return generate_latest(registry)


def forget_worker(index: int) -> None:
    """Drop the gauges of a worker that has ended; its counters stay."""
    if VARIABLE in os.environ:
        mark_process_dead(index)
