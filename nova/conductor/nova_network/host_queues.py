"""A lane a host for what network hosts are told: one that is slow or hangs keeps nobody from telling the others.

While one message to a host is on its way, what comes meanwhile is put together to the next: of a network, the newest
state. States, not deltas: a state that a newer one overtook need not be told.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Iterable

from nova import concurrency, errors
from nova.db.types import AnyColumn
from nova.model.networks import NetworkOnHost

LOG = logging.getLogger(__name__)


class Message:
    """What a host is to be told at once, and how that ended. ``anew``: it shall ask for all of its networks."""

    def __init__(self) -> None:
        self.states: dict[str, NetworkOnHost] = {}
        self.anew = False
        self.done = threading.Event()
        self.error: errors.NovaError | None = None  # of the states

    def put(self, states: Iterable[NetworkOnHost]) -> None:
        for state in states:
            present = self.states.get(state.network.uuid)
            if present is None or state.version >= present.version:
                self.states[state.network.uuid] = state


class HostLanes:
    """``network``: a NetworkRPC client."""

    def __init__(self, network: AnyColumn) -> None:
        self.network = network
        self._lock = threading.Lock()
        self._next: dict[str, Message] = {}
        self._under_way: set[str] = set()

    def serve(self, host: str, states: Iterable[NetworkOnHost]) -> tuple[Message, bool]:
        """The message that will tell this, and whether nothing else is before it."""
        return self._add(host, states, False)

    def look_anew(self, host: str) -> Message:
        return self._add(host, (), True)[0]

    def waiting(self, host: str) -> bool:
        """Whether a message is to go there when the one before it has come back."""
        with self._lock:
            return host in self._next

    def _add(self, host: str, states: Iterable[NetworkOnHost], anew: bool) -> tuple[Message, bool]:
        with self._lock:
            message = self._next.setdefault(host, Message())
            message.put(states)
            message.anew = message.anew or anew
            begins = host not in self._under_way
            if begins:
                self._under_way.add(host)
                concurrency.spawn(contextvars.copy_context().run, self._lead, host, name="network-teller")
        return message, begins

    def _lead(self, host: str) -> None:
        """Until nothing is to be told: in a thread of its own."""
        while True:
            with self._lock:
                message = self._next.pop(host, None)
                if message is None:
                    self._under_way.discard(host)
                    return
            try:
                self._send(host, message)
            finally:
                message.done.set()

    def _send(self, host: str, message: Message) -> None:
        if message.anew:
            failed = _error_of(lambda: self.network.refresh_networks(host))
            if failed is not None:
                LOG.info("host %s was not told that networks of its are gone, and finds it out at its next look: %s",
                         host, failed.message)
        if message.states:
            states = tuple(sorted(message.states.values(), key=lambda one: (one.network.id, one.network.uuid)))
            message.error = _error_of(lambda: self.network.serve_networks(host, states))


def _error_of(work: AnyColumn) -> errors.NovaError | None:
    try:
        work()
    except errors.NovaError as error:
        return error
    except Exception as error:  # the next message must go whatever happened to this one
        LOG.exception("a network host could not be told")
        return errors.Bug(type(error).__name__)
    return None


__all__ = ["HostLanes", "Message"]
