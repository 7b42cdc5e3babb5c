"""What a process counts and times: every metric of ours, one row each; doc/monitoring.rst tells them to operators.

A label has few values (contracts, methods, routes, actions, names of filters), never a server's, a user's, a project's
or a request's. What is true of the whole cloud is not counted here, but read by a conductor when it is asked
(:mod:`nova.conductor.queries.cloud_figures`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, values

from nova import errors

disable_created_metrics()

_worker = "parent"


def _name_of_process() -> str:
    return _worker


if getattr(values.ValueClass, "_multiprocess", False):
    # Files go by a worker's number, not by its pid: a worker that is replaced goes on counting in the same files.
    values.ValueClass = values.MultiProcessValue(_name_of_process)


def in_worker(index: int) -> None:
    """From now on this process counts as worker ``index`` of its daemon. To be called first after a fork."""
    global _worker
    _worker = str(index)


#: Seconds. Calls and requests: from a read of memory to what nobody waits for any more.
_QUICK = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_LONG = (0.5, 2.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)

API_REQUESTS = Histogram("nova_api_request_duration_seconds", "Requests by API, route and status.",
                         ("api", "route", "status"), buckets=_QUICK)
RPC_CALLS = Histogram("nova_rpc_call_duration_seconds",
                      "Calls that this daemon made, until their answer. Outcome: ok, or the kind of the error.",
                      ("contract", "method", "outcome"), buckets=_QUICK)
RPC_SERVED = Histogram("nova_rpc_served_duration_seconds",
                       "Calls that this daemon answered. Outcome: ok, or the kind of the error.",
                       ("contract", "method", "outcome"), buckets=_QUICK)
RPC_UNDER_WAY = Gauge("nova_rpc_under_way", "Calls that are being answered.", ("contract",),
                      multiprocess_mode="livesum")
RPC_SLOTS = Gauge("nova_rpc_slots", "Calls that can be answered at a time; more wait in the broker.", ("contract",),
                  multiprocess_mode="livesum")

OPERATIONS = Histogram("nova_operation_duration_seconds",
                       "Operations on servers, from the request to their end. Outcome: success, error, overtaken.",
                       ("action", "outcome"), buckets=_LONG)
OPERATIONS_RESUMED = Counter("nova_operations_resumed_total", "Operations that were taken over or gone on with.",
                             ("action",))
STEP_FAILURES = Counter("nova_step_failures_total",
                        "Steps of operations that failed, also where another try succeeded. Kind: of the error.",
                        ("action", "step", "kind"))

DATABASE_IN_USE = Gauge("nova_database_connections_in_use", "Connections that something uses.", ("schema",),
                        multiprocess_mode="livesum")
DATABASE_MOST = Gauge("nova_database_connections_max", "Connections that the pools may have.", ("schema",),
                      multiprocess_mode="livesum")
DATABASE_RETRIES = Counter("nova_database_retries_total",
                           "Transactions that were done again because another one was in their way.", ("schema",))
DATABASE_AWAY = Counter("nova_database_away_total",
                        "Uses of a database that did not answer, or had no free connection in the pool.", ("schema",))

SCHEDULER_DECISIONS = Histogram("nova_scheduler_decision_duration_seconds",
                                "Requests for hosts. Outcome: chosen, or none.", ("outcome",), buckets=_QUICK)
SCHEDULER_REFUSALS = Counter("nova_scheduler_refusals_total",
                             "Hosts that a filter refused, of requests that found no host.", ("filter",))

ORDERS = Histogram("nova_host_order_duration_seconds",
                   "Orders that this host carried out, by what is done. Outcome: ok, failed.", ("order", "outcome"),
                   buckets=_LONG)
ORDERS_WAITING = Gauge("nova_host_orders_waiting", "Orders that wait for their turn on this host, by pool.", ("pool",),
                       multiprocess_mode="livesum")

OUTSIDE_REQUESTS = Histogram("nova_outside_request_duration_seconds",
                             "Requests to the services next door. Status: HTTP's, or none where no answer came.",
                             ("service", "method", "status"), buckets=_QUICK)
IMAGE_BYTES = Counter("nova_image_bytes_total", "Bytes of images that went by. Direction: download, upload.",
                      ("direction",))
CONSOLE_SESSIONS = Gauge("nova_console_sessions", "Consoles that are open through this proxy.",
                         multiprocess_mode="livesum")
NOTIFICATIONS = Counter("nova_notifications_total", "Notifications. Outcome: sent, dropped.", ("outcome",))

WORKER_LAG = Histogram("nova_worker_lag_seconds",
                       "How late a worker's main loop, which turns five times a second, came to its turn.",
                       buckets=(0.01, 0.05, 0.2, 1.0, 5.0, 30.0))
WORKER_ENDS = Counter("nova_worker_ends_total", "Workers that ended and were replaced. Reason: exit, stuck.",
                      ("reason",))
BUILD = Gauge("nova_build_info", "1, with the release that this daemon runs.", ("release",), multiprocess_mode="max")

OK = "ok"


def from_zero(metric: Counter | Histogram, *series: tuple[str, ...]) -> None:
    """Create series, named by the values of their labels, with the value 0.

    Prometheus' ``increase`` does not count the value that a series begins with: an alert would miss a burst that
    creates the series. To be called by whoever counts them, when it starts."""
    for labels in series:
        metric.labels(*labels)


def of_daemon(release: str) -> None:
    """What each daemon shows from its start."""
    BUILD.labels(release).set(1)
    from_zero(WORKER_ENDS, ("exit",), ("stuck",))


@contextlib.contextmanager
def timed(histogram: Histogram, *labels: str) -> Iterator[None]:
    """The block's duration, under ``labels`` and an outcome: ``ok``, or the kind of the error that ended it."""
    began, how = time.monotonic(), OK
    try:
        yield
    except BaseException as error:
        how = error.kind if isinstance(error, errors.NovaError) else errors.Bug.kind
        raise
    finally:
        histogram.labels(*labels, how).observe(time.monotonic() - began)
