"""Metrics of nova's processes, one row each; doc/monitoring.rst describes them for operators.

A label has few values (contracts, methods, routes, actions, names of filters), never a server, a user, a project or a
request. Figures of the whole cloud are not counted here; a conductor computes them on request
(:mod:`nova.conductor.queries.cloud_figures`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, values

from nova import errors, failures

disable_created_metrics()

_worker = "parent"


def _name_of_process() -> str:
    return _worker


if getattr(values.ValueClass, "_multiprocess", False):
    # Files are named by a worker's number, not its pid: a replaced worker continues to count in the same files.
    values.ValueClass = values.MultiProcessValue(_name_of_process)


def in_worker(index: int) -> None:
    """Count as worker ``index`` of the service from now on. Must be the first call after a fork."""
    global _worker
    _worker = str(index)


#: Seconds. Calls and requests: from a memory read to more than any caller waits for.
_QUICK = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_LONG = (0.5, 2.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)

API_REQUESTS = Histogram("nova_api_request_duration_seconds", "Requests by API, route and status.",
                         ("api", "route", "status"), buckets=_QUICK)
RPC_CALLS = Histogram("nova_rpc_call_duration_seconds",
                      "Calls made by this service, until their answer. Outcome: ok, or the kind of the error.",
                      ("contract", "method", "outcome"), buckets=_QUICK)
RPC_SERVED = Histogram("nova_rpc_served_duration_seconds",
                       "Calls answered by this service. Outcome: ok, or the kind of the error.",
                       ("contract", "method", "outcome"), buckets=_QUICK)
RPC_UNDER_WAY = Gauge("nova_rpc_under_way", "Calls in progress.", ("contract",),
                      multiprocess_mode="livesum")
RPC_SLOTS = Gauge("nova_rpc_slots", "Maximum of concurrent calls; further ones wait in the broker.", ("contract",),
                  multiprocess_mode="livesum")

OPERATIONS = Histogram("nova_operation_duration_seconds",
                       "Operations on servers, from the request to their end. Outcome: success, error, overtaken.",
                       ("action", "outcome"), buckets=_LONG)
OPERATIONS_RESUMED = Counter("nova_operations_resumed_total", "Operations that were taken over or resumed.",
                             ("action",))
STEP_FAILURES = Counter("nova_step_failures_total",
                        "Failed steps of operations, even if a retry succeeded. Kind: of the error.",
                        ("action", "step", "kind"))

DATABASE_IN_USE = Gauge("nova_database_connections_in_use", "Connections in use.", ("schema",),
                        multiprocess_mode="livesum")
DATABASE_MOST = Gauge("nova_database_connections_max", "Maximum of the pools' connections.", ("schema",),
                      multiprocess_mode="livesum")
DATABASE_RETRIES = Counter("nova_database_retries_total",
                           "Transactions that were retried after a conflict with another one.", ("schema",))
DATABASE_AWAY = Counter("nova_database_away_total",
                        "Failed uses of a database: no answer, or no free connection in the pool.", ("schema",))

SHARED_WORK = Histogram("nova_shared_work_size",
                        "Requests that shared one execution of short work, such as a transaction, by its kind.",
                        ("work",), buckets=(1, 2, 5, 10, 25, 50, 100))

SCHEDULER_DECISIONS = Histogram("nova_scheduler_decision_duration_seconds",
                                "Requests for hosts. Outcome: chosen, or none.", ("outcome",), buckets=_QUICK)
SCHEDULER_REFUSALS = Counter("nova_scheduler_refusals_total",
                             "Hosts removed by a filter, for requests without a valid host.", ("filter",))

ORDERS = Histogram("nova_host_order_duration_seconds",
                   "Orders executed by this host, by kind. Outcome: ok, failed.", ("order", "outcome"),
                   buckets=_LONG)
ORDERS_WAITING = Gauge("nova_host_orders_waiting", "Orders queued on this host, by pool.", ("pool",),
                       multiprocess_mode="livesum")

OUTSIDE_REQUESTS = Histogram("nova_outside_request_duration_seconds",
                             "Requests to other OpenStack services. Status: of HTTP, or none without an answer.",
                             ("service", "method", "status"), buckets=_QUICK)
IMAGE_BYTES = Counter("nova_image_bytes_total", "Bytes of transferred images. Direction: download, upload.",
                      ("direction",))
CONSOLE_SESSIONS = Gauge("nova_console_sessions", "Open consoles of this proxy.",
                         multiprocess_mode="livesum")
NOTIFICATIONS = Counter("nova_notifications_total", "Notifications. Outcome: sent, dropped.", ("outcome",))

WORKER_LAG = Histogram("nova_worker_lag_seconds",
                       "Delay of a worker's main loop, which runs five times per second.",
                       buckets=(0.01, 0.05, 0.2, 1.0, 5.0, 30.0))
WORKER_ENDS = Counter("nova_worker_ends_total", "Workers that exited and were replaced. Reason: exit, stuck.",
                      ("reason",))
BUILD = Gauge("nova_build_info", "Constant 1, with the service's release.", ("release",), multiprocess_mode="max")

OK = "ok"


def from_zero(metric: Counter | Histogram, *series: tuple[str, ...]) -> None:
    """Create series, given by their label values, with the value 0.

    Prometheus' ``increase`` ignores the first value of a series: an alert would miss a burst that creates the series.
    The owner of a metric calls this at its start.
    """
    for labels in series:
        metric.labels(*labels)


def of_daemon(release: str) -> None:
    """Set the metrics that each service has from its start."""
    BUILD.labels(release).set(1)
    from_zero(WORKER_ENDS, ("exit",), ("stuck",))


@contextlib.contextmanager
def timed(histogram: Histogram, *labels: str) -> Iterator[None]:
    """Record the block's duration, with ``labels`` and an outcome: ``ok``, or the kind of the error that ended it."""
    began, how = time.monotonic(), OK

    def note(error: BaseException) -> None:
        nonlocal how
        how = error.kind if isinstance(error, errors.NovaError) else errors.Bug.kind
    try:
        with failures.reported_to(note, on=BaseException):
            yield
    finally:
        histogram.labels(*labels, how).observe(time.monotonic() - began)
