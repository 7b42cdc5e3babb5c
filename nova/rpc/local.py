"""The same contracts within one process, codec and checks included: for tests, and for daemons that share one."""

from __future__ import annotations

from nova import errors
from nova.model.base import Json
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.interface import Contract, Method
from nova.rpc.server import Receiver, SecretsOf


class LocalBus:
    """Servers by (topic, server name); a call goes through the codec both ways. Counts what a broker would carry."""

    def __init__(self) -> None:
        self._receivers: dict[tuple[str, str | None], Receiver] = {}
        self.messages = 0

    def serve(self, contract: type[Contract], implementation: object, host: str | None = None,
              secrets_of: SecretsOf | None = None) -> None:
        """``host`` for contracts that are addressed to one; None for those that any server answers."""
        self._receivers[(contract.topic, host)] = Receiver(contract, implementation, secrets_of)

    def client(self, contract: type[Contract], host: str = "local", peers: Peers | None = None,
               secret: str = "") -> Json:
        """A client of ``contract``, whose calls name ``host`` and ``secret`` as the sender's."""
        return derive(contract, Sender(host, secret, peers or Peers(), self._send))

    def _send(self, contract: type[Contract], method: Method, server: str | None, envelope: dict[str, object]) -> Json:
        receiver = self._receivers.get((contract.topic, server)) or self._receivers.get((contract.topic, None))
        if receiver is None:
            raise errors.daemon.RpcNotDelivered(topic=contract.topic, where=f" on {server}" if server else "",
                                                method=method.name)
        self.messages += 2 if method.wants_answer else 1
        return receiver.handle(method.name, envelope)


def connect(contract: type[Contract], implementation: object, host: str = "local") -> Json:
    """A client of ``contract`` whose calls reach ``implementation``."""
    bus = LocalBus()
    bus.serve(contract, implementation)
    return bus.client(contract, host)
