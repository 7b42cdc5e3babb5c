"""Delivery of the fake Neutron's events about servers' ports to nova, like os-server-external-events."""

from __future__ import annotations

import logging
import queue
from collections.abc import Sequence

from nova import concurrency, context, failures
from nova.conf._options import Options
from nova.devel.network.store import PortNews
from nova.devel.nova_all.settings import CONTROLLER
from nova.model.server.server_parts import ExternalEvent
from nova.rpc.buses import control_bus
from nova.rpc.contracts.conductor import ConductorRPC

LOG = logging.getLogger(__name__)
COMPLETED = "completed"


class NetworkEvents:
    """Part of the cloud that delivers events in a thread of its own, so that Neutron's requests do not wait for it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._waiting: queue.Queue[Sequence[PortNews] | None] = queue.Queue()

    def put(self, news: Sequence[PortNews]) -> None:
        """Queue events for delivery in order."""
        self._waiting.put(news)

    def start(self) -> None:
        conductor = control_bus(self._options, CONTROLLER).client(ConductorRPC)
        concurrency.spawn(self._pass_on, conductor, name="network events")

    def stop(self, seconds: float) -> None:
        """Stop the delivery. Queued events are dropped: a conductor reads the ports when it starts."""
        self._waiting.put(None)

    def _pass_on(self, conductor: ConductorRPC) -> None:
        while (news := self._waiting.get()) is not None:
            events = tuple(ExternalEvent(name=one.name, server_uuid=one.server_id, status=COMPLETED, tag=one.port_id)
                           for one in news)
            # nova repairs missing events, though later
            with failures.best_effort(LOG, "could not deliver network events to the conductor; dropped them: %s"), \
                    context.entered(context.internal()):
                conductor.external_events(events)
