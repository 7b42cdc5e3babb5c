"""The two buses within a process that is a whole cloud (``nova-all``): no broker, and nothing else is otherwise.

The same codec, checks, proofs and bounds as over RabbitMQ. Each server works on what comes in with threads of its own:
a caller that has waited long enough goes on, and a server that stops ends what it took.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterable

from nova import errors, metrics
from nova.concurrency import WorkerPool
from nova.conf.base import Options
from nova.model.base import Json
from nova.rpc.bus import AnyBus, Asking, Serving, names_of
from nova.rpc.client import Peers
from nova.rpc.hearing import ECHO, Hearing
from nova.rpc.interface import Contract, Method
from nova.rpc.proofs import HostKeys, Proofs
from nova.rpc.server import Receiver

#: Called before a message is sent; what it raises is the sender's answer: a fault on demand.
Intercept = Callable[[Asking], None]


class InProcessExchange:
    """Who serves what, in the place of a broker. ``intercept``: a test's word for what shall not arrive."""

    def __init__(self) -> None:
        self._servers: dict[str, list[InProcessServer]] = {}
        self._lock = threading.Lock()
        self.intercept: Intercept = lambda asking: None

    def join(self, server: InProcessServer) -> None:
        """It takes calls from now on."""
        with self._lock:
            self._servers.setdefault(server.contract.topic, []).append(server)

    def leave(self, server: InProcessServer) -> None:
        """It takes none any more. May be called twice."""
        with self._lock:
            serving = self._servers.get(server.contract.topic, [])
            if server in serving:
                serving.remove(server)

    def found(self, contract: type[Contract], host: str | None) -> tuple[InProcessServer, ...]:
        """Those of ``host``; with None all, and each is the first in its turn."""
        with self._lock:
            serving = self._servers.get(contract.topic, [])
            found = tuple(server for server in serving if host in (None, server.host))
            serving[:] = [*serving[1:], *serving[:1]]
        return found


_exchanges: dict[str, InProcessExchange] = {}
_joining = threading.Lock()


def exchange(url: str) -> InProcessExchange:
    """The exchange of this process for that ``hosts_transport_url``; threads that ask at once get the same one."""
    with _joining:
        return _exchanges.setdefault(url, InProcessExchange())


class CutOff(Exception):
    """The server was cut off before it answered."""


class InProcessServer:
    """Serves a contract with at most ``pool_size`` threads."""

    def __init__(self, joined: InProcessExchange, contract: type[Contract], host: str, receiver: Receiver,
                 hearing: Hearing, pool_size: int) -> None:
        self.contract, self.host, self._hearing = contract, host, hearing
        self._exchange, self._receiver = joined, receiver
        self._pool = WorkerPool(pool_size, f"{contract.topic}-{host}")
        self._awaited: set[concurrent.futures.Future[str]] = set()
        self._under_way = metrics.RPC_UNDER_WAY.labels(contract.__name__)
        metrics.RPC_SLOTS.labels(contract.__name__).inc(pool_size)

    def start(self) -> None:
        self._exchange.join(self)

    def stop(self) -> None:
        self._exchange.leave(self)

    def wait(self) -> None:
        self._pool.shutdown()

    def cut(self) -> None:
        """As when its process is killed: nothing comes in, and who waits for an answer gets none."""
        self.stop()
        for answer in tuple(self._awaited):
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                answer.set_exception(CutOff())

    def hear(self) -> None:
        """A message that carries nothing has come in: the echo that its process waits for."""
        with self._hearing.message():
            pass

    def take(self, method: Method, envelope: dict[str, object]) -> concurrent.futures.Future[str]:
        """The answer's text, in time. RuntimeError: it has stopped."""
        answer: concurrent.futures.Future[str] = concurrent.futures.Future()
        self._awaited.add(answer)
        answer.add_done_callback(self._awaited.discard)
        task = self._pool.submit(self._handle, method.name, dict(envelope), answer)
        task.add_done_callback(lambda ended: answer.cancel() if ended.cancelled() else None)
        return answer

    def _handle(self, name: str, envelope: dict[str, object], answer: concurrent.futures.Future[str]) -> None:
        with self._hearing.message(), self._under_way.track_inprogress():
            text = self._receiver.handle(name, envelope)
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # cut off meanwhile
            answer.set_result(text)


class InProcessBus(AnyBus):
    """The bus of control daemons."""

    option = "hosts_transport_url"

    def __init__(self, conf: Options, host: str, peers: Peers | None = None, patience_s: int | None = None) -> None:
        """``patience_s``: as :func:`nova.rpc.buses.control_bus`."""
        super().__init__(conf, host, peers, patience_s)
        self._exchange = exchange(conf.hosts_transport_url)
        self._servers: list[InProcessServer] = []
        self._closed = False

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        server = InProcessServer(self._exchange, contract, self.host, receiver, self.hearing, pool_size)
        self._servers.append(server)
        return server

    def close(self) -> None:
        self._closed = True
        for server in self._servers:
            server.cut()

    def echo(self, contract: type[Contract]) -> None:
        """Who serves is heard."""
        self._found(Asking(contract, ECHO, self.host, 0, None))

    def reach(self, contract: type[Contract]) -> None:
        self._found(Asking(contract, ECHO, None, 0, None))

    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        self._found(Asking(contract, ECHO, server, 0, None)).hear()

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """No message waits, so none needs a queue."""

    def deaf(self) -> str:
        """Nothing comes between."""
        return ""

    def _deliver(self, asking: Asking, envelope: dict[str, Json]) -> Json:
        if self._closed:
            raise errors.daemon.RpcBrokerAway(method=asking.method.name, reason="this daemon's bus is closed")
        self._exchange.intercept(asking)
        if asking.method.fanout:
            for one in self._exchange.found(asking.contract, asking.server):
                with contextlib.suppress(RuntimeError):  # it stops at this moment: who is gone is told nothing
                    one.take(asking.method, envelope)
            return None
        try:
            future = self._found(asking).take(asking.method, envelope)
            return future.result(asking.seconds) if asking.method.wants_answer else None
        except CutOff:
            raise errors.daemon.RpcNoAnswer(seconds=asking.monitor or asking.seconds, **names_of(asking)) from None
        except concurrent.futures.TimeoutError:
            raise errors.daemon.RpcNoAnswer(seconds=asking.seconds, **names_of(asking)) from None
        except (concurrent.futures.CancelledError, RuntimeError):  # it stopped before it took the message
            raise errors.daemon.RpcNotDelivered(**names_of(asking)) from None

    def _found(self, asking: Asking) -> InProcessServer:
        """Whose turn it is. daemon.RpcNotDelivered: nobody serves it."""
        for found in self._exchange.found(asking.contract, asking.server):
            return found
        raise errors.daemon.RpcNotDelivered(**names_of(asking))


class InProcessHostsBus(InProcessBus):
    """Between hosts and conductors: ``keys`` prove who speaks."""

    def __init__(self, conf: Options, host: str, keys: HostKeys, conductor: bool = False,
                 peers: Peers | None = None) -> None:
        super().__init__(conf, host, peers)
        self.proofs, self.reply_to = Proofs(keys), f"reply_{'' if conductor else host}"

    def echo(self, contract: type[Contract]) -> None:
        """Conductors take turns at what comes in, and any of them is as good."""
        self.reach(contract)

