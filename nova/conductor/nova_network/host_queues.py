"""Queues of messages to network hosts: one message to a host at a time, and the newest state of each network in the
next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nova import errors, failures
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.model.network.networks import NetworkOnHost
from nova.rpc.contracts.network import NetworkRPC

LOG = logging.getLogger(__name__)


class HostUpdate(Batch):
    """Message to a network host, and its result. ``refresh``: the host reads all of its networks again."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, NetworkOnHost] = {}
        self.refresh = False
        self.error: errors.NovaError | None = None  # of sending the states

    def request_refresh(self) -> None:
        """Make the host read all of its networks again. May be called repeatedly."""
        self.refresh = True

    def put(self, states: Iterable[NetworkOnHost]) -> None:
        """Add states. Only the newest state of each network is sent; older states are dropped."""
        for state in states:
            present = self.states.get(state.network.uuid)
            if present is None or state.version >= present.version:
                self.states[state.network.uuid] = state


class HostQueues:
    """Queues of updates, one for each network host. ``network``: a NetworkRPC client."""

    def __init__(self, network: NetworkRPC) -> None:
        self.network = network
        self._queues = Coalescer(HostUpdate, self._send, "network-updates")

    def serve(self, host: str, states: Iterable[NetworkOnHost]) -> tuple[HostUpdate, bool]:
        """Queue states for the host. Returns their message, and True if it is sent immediately."""
        return self._queues.join(host, lambda message: message.put(states))

    def refresh_host(self, host: str) -> HostUpdate:
        """Queue a request to read all networks again, and return its message."""
        return self._queues.join(host, HostUpdate.request_refresh)[0]

    def waiting(self, host: str) -> bool:
        """True if another message follows the running one."""
        return self._queues.waiting(host)

    def _send(self, host: str, message: HostUpdate) -> None:
        if message.refresh:
            failed = _error_of(lambda: self.network.refresh_networks(host))
            if failed is not None:
                LOG.info("could not notify host %s of removed networks; it detects them at its next refresh: %s",
                         host, failed.message)
        if message.states:
            states = tuple(sorted(message.states.values(), key=lambda one: (one.network.id, one.network.uuid)))
            message.error = _error_of(lambda: self.network.serve_networks(host, states))


def _error_of(work: Callable[[], object]) -> errors.NovaError | None:
    error = failures.failure_of(work)  # the next message must be sent regardless of this error
    if error is None or isinstance(error, errors.NovaError):
        return error
    LOG.error("could not notify a network host", exc_info=error)
    return errors.Bug(type(error).__name__)


__all__ = ["HostQueues", "HostUpdate"]
