"""The same contracts within one process, codec and checks included: for tests, and for daemons that share a process."""

from __future__ import annotations

import functools
from typing import TypeVar

from nova import errors
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.interface import Contract, Method
from nova.rpc.proofs import AuthenticatedMethod, Proofs
from nova.rpc.server import Receiver

C = TypeVar("C", bound=Contract)


class LocalBus:
    """Servers by (topic, server name). Every call goes through the codec in both directions. Counts the messages that a
    broker would carry."""

    def __init__(self) -> None:
        self._receivers: dict[tuple[str, str | None], Receiver] = {}
        self.messages = 0

    def serve(self, contract: type[Contract], implementation: object, host: str | None = None,
              proofs: Proofs | None = None, at_once: int = 0) -> None:
        """Register a server. ``host`` for contracts that are addressed to one host; None if any server
        answers."""
        self._receivers[(contract.topic, host)] = Receiver(contract, implementation, proofs, at_once=at_once)

    def client(self, contract: type[C], host: str = "local", peers: Peers | None = None,
               proofs: Proofs | None = None) -> C:
        """Return a client of ``contract``. Its calls name ``host`` as the sender and carry these proofs."""
        return derive(contract, Sender(host, peers or Peers(), functools.partial(self._send, proofs)))

    def _send(self, proofs: Proofs | None, contract: type[Contract], method: Method, server: str | None,
              envelope: dict[str, object]) -> object:
        receiver = self._receivers.get((contract.topic, server)) or self._receivers.get((contract.topic, None))
        if receiver is None:
            raise errors.daemon.RpcNotDelivered(topic=contract.topic, where=f" on {server}" if server else "",
                                                method=method.name)
        self.messages += 2 if method.wants_answer else 1
        deliver = functools.partial(receiver.handle, method.name)
        if proofs is None:
            return deliver(envelope)
        spoken = AuthenticatedMethod(contract, method, server or str(envelope["sender"]))
        return proofs.ask(spoken, envelope, "local" if method.wants_answer else "", deliver)


def connect(contract: type[C], implementation: object, host: str = "local") -> C:
    """Return a client of ``contract`` whose calls reach ``implementation``."""
    bus = LocalBus()
    bus.serve(contract, implementation)
    return bus.client(contract, host)
