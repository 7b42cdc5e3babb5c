"""The dispatcher of RPC servers: oslo.messaging's, with a shorter path for calls that get no heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from oslo_messaging.rpc import dispatcher as oslo_dispatcher

#: The version in messages of nova's own clients; the contracts' versions are in the envelopes.
ANY_VERSION = "1.0"


class LibraryMessage(Protocol):
    """A message, as the library hands it to a dispatcher. ``client_timeout``: the caller asks for heartbeats."""

    message: Mapping[str, object]
    ctxt: object
    client_timeout: object


class DirectDispatcher(oslo_dispatcher.RPCDispatcher):
    """A dispatcher that calls the methods ``names`` of the first endpoint directly.

    For each call, the library creates an event and a thread for heartbeats, although it starts the thread only if the
    caller asks for heartbeats. It also compares versions, and copies the arguments.
    """

    def __init__(self, endpoints: Sequence[object], names: Iterable[str]) -> None:
        super().__init__(endpoints, None, oslo_dispatcher.DefaultRPCAccessPolicy)
        self._methods = {name: getattr(endpoints[0], name) for name in names}

    def dispatch(self, incoming: LibraryMessage) -> object:
        """Return the reply. Raises NoSuchMethod and UnsupportedVersion of the library."""
        message = incoming.message
        name, arguments = message.get("method"), message.get("args")
        direct = (not incoming.client_timeout and message.get("namespace") is None
                  and message.get("version", ANY_VERSION) == ANY_VERSION)
        if direct and isinstance(name, str) and name in self._methods and isinstance(arguments, dict):
            return self._methods[name](incoming.ctxt, **arguments)
        return super().dispatch(incoming)
