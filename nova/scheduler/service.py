"""The scheduler service: keeps the hosts in memory and serves the conductor. Only this module has side effects."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nova import concurrency, errors, failures, faults, metrics
from nova.conf.filter_scheduler import FilterSchedulerOptions
from nova.conf.metrics import MetricsOptions
from nova.conf.scheduler import SchedulerOptions
from nova.model.host.hosts import HostStates
from nova.model.scheduling.decisions import PlacementRequest, Selection
from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.snapshot import HostTable

LOG = logging.getLogger(__name__)

FIRST_STATES_S = 5.0  # maximum wait of a request for the first states after a start
RETRY_S = (1.0, 15.0)  # first and longest pause while the conductor does not answer
JITTER = 0.2


class SchedulerSettings(NamedTuple):
    """Option groups and other configuration. Times in seconds."""

    scheduler: SchedulerOptions
    filter_scheduler: FilterSchedulerOptions
    service_down_time: float
    metrics: MetricsOptions | None = None


class SchedulerService:
    """Implements ``SchedulerRPC``. ``conductor`` is a client of ``ConductorSchedulerRPC``; ``clock`` is monotonic."""

    def __init__(self, conductor: ConductorSchedulerRPC, settings: SchedulerSettings,
                 clock: Callable[[], float] = time.monotonic,
                          rng: random.Random | None = None) -> None:
        self._conductor = conductor
        self._clock = clock
        self._rng = rng or random.Random()
        options = PluginOptions.of_sections(settings.filter_scheduler, settings.metrics, settings.scheduler)
        self._pipeline = Pipeline(options, self._rng)
        self._hosts = HostTable(settings.service_down_time, clock)
        self._sweep_s = float(settings.scheduler.host_state_sweep_interval)
        self._lock = threading.Lock()  # guards the hosts: decisions are made one at a time
        self._known = threading.Event()  # set with the first list of all hosts
        self._stopped = threading.Event()
        metrics.from_zero(metrics.SCHEDULER_DECISIONS, ("chosen",), ("none",))

    # SchedulerRPC

    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        """Select hosts, see the contract. Raises Unavailable while the hosts are not known yet."""
        if not self._known.wait(FIRST_STATES_S):
            raise errors.daemon.SchedulerNotReady()
        faults.reached("scheduler", "select_hosts", "before")
        started = self._clock()
        with self._lock:
            selections = self._select(request)
            count = len(self._hosts)
        self._log(selections, count, self._clock() - started)
        faults.reached("scheduler", "select_hosts", "after")
        return selections

    def update_hosts(self, states: HostStates) -> None:
        """Update hosts; states older than the known ones are ignored."""
        with self._lock:
            self._hosts.update(states)

    def check_known(self) -> None:
        """Raise daemon.SchedulerNotReady until the conductor has sent the hosts."""
        if not self._known.is_set():
            raise errors.daemon.SchedulerNotReady()

    # decisions

    def _select(self, request: PlacementRequest) -> tuple[Selection, ...]:
        """Decide, and forget earlier decisions for the same servers. If no host is left, decisions that the hosts'
        states may already include are no longer counted in addition: a refused claim is better than a false refusal
        here."""
        self._hosts.forget(request.server_uuids)
        if not request.rebuild:
            self._hosts.learn_busy(request.busy)
        selections = self._decide(request)
        failed = tuple(selection.server_uuid for selection in selections if not selection.hosts)
        if failed and self._hosts.forget_doubtful():
            again = {selection.server_uuid: selection for selection in self._decide(_only(request, failed))}
            selections = tuple(again.get(selection.server_uuid, selection) for selection in selections)
        return selections

    def _decide(self, request: PlacementRequest) -> tuple[Selection, ...]:
        selections = self._pipeline.decide(self._hosts.snapshot(), request)
        for selection in selections:
            if selection.hosts and not request.rebuild:
                chosen = selection.hosts[0]
                self._hosts.count(selection.server_uuid, (chosen.host, chosen.node), request.resources,
                                  request.requirements)
        return selections

    def _log(self, selections: tuple[Selection, ...], count: int, seconds: float) -> None:
        for selection in selections:
            extra = {"server": selection.server_uuid}
            metrics.SCHEDULER_DECISIONS.labels("chosen" if selection.hosts else "none").observe(seconds)
            for refusal in selection.refusals:
                metrics.SCHEDULER_REFUSALS.labels(refusal.filter).inc(refusal.hosts)
            if selection.hosts:
                names = [f"{choice.host}/{choice.node}" for choice in selection.hosts]
                LOG.info("Chose %s of %d hosts in %.1f ms; alternates: %s", names[0], count, 1000 * seconds,
                         ", ".join(names[1:]) or "none", extra=extra)
            else:
                LOG.warning("%s", selection.details, extra=extra)

    # the feed

    def start(self) -> None:
        """Start to keep the hosts current in the background."""
        concurrency.spawn(self._feed, name="host-states")

    def stop(self) -> None:
        self._stopped.set()

    def _feed(self) -> None:
        """Fetch all hosts first, with retries; then sweep periodically for lost updates."""
        pause = RETRY_S[0]
        while not self._stopped.is_set():
            if self.sweep():
                pause = RETRY_S[0]
                self._pause(self._sweep_s)
            else:
                self._pause(min(pause, self._sweep_s))
                pause = min(2 * pause, RETRY_S[1])

    def sweep(self) -> bool:
        """Fetch missing states from the conductor; all of them if there are none. Return False if that failed."""
        everything = not self._known.is_set()
        with failures.keep_running(LOG, "Getting host states from the conductor failed unexpectedly, will retry"), \
                failures.best_effort(LOG, "Cannot get host states from the conductor, will retry: %s"):
            more = self._ask(everything)
            while more:
                more = self._ask(False)
            if everything:
                LOG.info("Received the states of %d hosts", len(self._hosts))
                self._known.set()
            return True
        return False

    def _ask(self, everything: bool) -> bool:
        """Fetch one batch of states; return whether another batch will bring more."""
        with self._lock:
            known = () if everything else self._hosts.stamps()
        states = self._conductor.get_host_states(known, everything)
        with self._lock:
            self._hosts.update(states, asked=True)
        return bool(states.more and states.states)

    def _pause(self, seconds: float) -> None:
        """Wait, with random jitter so that many schedulers do not ask at the same time, or until stopped."""
        self._stopped.wait(seconds * self._rng.uniform(1 - JITTER, 1 + JITTER))


def _only(request: PlacementRequest, server_uuids: tuple[str, ...]) -> PlacementRequest:
    return msgspec.structs.replace(request, server_uuids=server_uuids)
