"""What network hosts are told: one message a host at a time, and in the next one the newest state of each network."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nova import errors
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.model.network.networks import NetworkOnHost
from nova.rpc.contracts.network import NetworkRPC

LOG = logging.getLogger(__name__)


class HostUpdate(Batch):
    """What a host is to be told at once, and how that ended. ``anew``: it shall ask for all of its networks."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, NetworkOnHost] = {}
        self.anew = False
        self.error: errors.NovaError | None = None  # of the states

    def ask_anew(self) -> None:
        """The host shall ask for all of its networks. It may be called again."""
        self.anew = True

    def put(self, states: Iterable[NetworkOnHost]) -> None:
        """The newest state of each network is sent; an older state changes nothing."""
        for state in states:
            present = self.states.get(state.network.uuid)
            if present is None or state.version >= present.version:
                self.states[state.network.uuid] = state


class HostQueues:
    """``network``: a NetworkRPC client."""

    def __init__(self, network: NetworkRPC) -> None:
        self.network = network
        self._queues = Coalescer(HostUpdate, self._send, "network-updates")

    def serve(self, host: str, states: Iterable[NetworkOnHost]) -> tuple[HostUpdate, bool]:
        """The message that will tell this, and whether nothing else is before it."""
        return self._queues.join(host, lambda message: message.put(states))

    def look_anew(self, host: str) -> HostUpdate:
        """The message by which the host will ask for all of its networks."""
        return self._queues.join(host, HostUpdate.ask_anew)[0]

    def waiting(self, host: str) -> bool:
        """Whether a message is to go there when the one before it has come back."""
        return self._queues.waiting(host)

    def _send(self, host: str, message: HostUpdate) -> None:
        if message.anew:
            failed = _error_of(lambda: self.network.refresh_networks(host))
            if failed is not None:
                LOG.info("host %s was not told that networks of its are gone, and finds it out at its next look: %s",
                         host, failed.message)
        if message.states:
            states = tuple(sorted(message.states.values(), key=lambda one: (one.network.id, one.network.uuid)))
            message.error = _error_of(lambda: self.network.serve_networks(host, states))


def _error_of(work: Callable[[], object]) -> errors.NovaError | None:
    try:
        work()
    except errors.NovaError as error:
        return error
    except Exception as error:  # the next message must go whatever happened to this one
        LOG.exception("a network host could not be told")
        return errors.Bug(type(error).__name__)
    return None


__all__ = ["HostQueues", "HostUpdate"]
