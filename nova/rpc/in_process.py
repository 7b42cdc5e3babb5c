"""The two buses within a process that is a complete cloud (``nova-all``). It needs no broker; all else is the same.

Codec, checks, proofs and limits are the same as with RabbitMQ. Each server has its own worker threads: a caller whose
timeout expires continues, and a server that stops completes the calls that it has accepted.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterable

from nova import errors, metrics
from nova.concurrency import WorkerPool
from nova.conf._options import Options
from nova.rpc.bus import AnyBus, Asking, Serving, names_of
from nova.rpc.client import Peers
from nova.rpc.interface import Contract, Method
from nova.rpc.proofs import Envelope, HostKeys, Proofs
from nova.rpc.rpc_watchdog import ECHO, RpcWatchdog
from nova.rpc.server import Receiver

#: Called before a message is sent; an exception that it raises becomes the sender's reply. Used for fault injection.
Intercept = Callable[[Asking], None]


class InProcessExchange:
    """The registry of servers, in place of a broker. ``intercept``: lets a test block messages."""

    def __init__(self) -> None:
        self._servers: dict[str, list[InProcessServer]] = {}
        self._lock = threading.Lock()
        self.intercept: Intercept = lambda asking: None

    def join(self, server: InProcessServer) -> None:
        """Add a server: it receives calls from now on."""
        with self._lock:
            self._servers.setdefault(server.contract.topic, []).append(server)

    def leave(self, server: InProcessServer) -> None:
        """Remove a server: it receives no more calls. May be called twice."""
        with self._lock:
            serving = self._servers.get(server.contract.topic, [])
            if server in serving:
                serving.remove(server)

    def found(self, contract: type[Contract], host: str | None) -> tuple[InProcessServer, ...]:
        """Return the servers of ``host``, or all servers for None. Each call rotates the order."""
        with self._lock:
            serving = self._servers.get(contract.topic, [])
            found = tuple(server for server in serving if host in (None, server.host))
            serving[:] = [*serving[1:], *serving[:1]]
        return found


_exchanges: dict[str, InProcessExchange] = {}
_joining = threading.Lock()


def exchange(url: str) -> InProcessExchange:
    """Return this process's exchange for that ``hosts_transport_url``. Concurrent callers get the same one."""
    with _joining:
        return _exchanges.setdefault(url, InProcessExchange())


class CutOff(Exception):
    """The server was stopped before it replied."""


class InProcessServer:
    """A server of a contract, with at most ``pool_size`` threads."""

    def __init__(self, joined: InProcessExchange, contract: type[Contract], host: str, receiver: Receiver,
                 watchdog: RpcWatchdog, pool_size: int) -> None:
        self.contract, self.host, self._watchdog = contract, host, watchdog
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
        """Stop as if the process were killed: no message arrives, and callers that wait get no reply."""
        self.stop()
        for answer in tuple(self._awaited):
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                answer.set_exception(CutOff())

    def hear(self) -> None:
        """Record the arrival of an echo, for the RPC watchdog."""
        with self._watchdog.message():
            pass

    def take(self, method: Method, envelope: dict[str, object]) -> concurrent.futures.Future[str]:
        """Accept a call, and return the future of its reply's text. Raises RuntimeError if the server has stopped."""
        answer: concurrent.futures.Future[str] = concurrent.futures.Future()
        self._awaited.add(answer)
        answer.add_done_callback(self._awaited.discard)
        task = self._pool.submit(self._handle, method.name, dict(envelope), answer)
        task.add_done_callback(lambda ended: answer.cancel() if ended.cancelled() else None)
        return answer

    def _handle(self, name: str, envelope: dict[str, object], answer: concurrent.futures.Future[str]) -> None:
        with self._watchdog.message(), self._under_way.track_inprogress():
            text = self._receiver.handle(name, envelope)
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # cut off meanwhile
            answer.set_result(text)


class InProcessBus(AnyBus):
    """The bus of control daemons, within one process."""

    option = "hosts_transport_url"

    def __init__(self, conf: Options, host: str, peers: Peers | None = None, timeout_s: int | None = None) -> None:
        """Join the exchange of this process. ``timeout_s``: as in :func:`nova.rpc.buses.control_bus`."""
        super().__init__(conf, host, peers, timeout_s)
        self._exchange = exchange(conf.hosts_transport_url or "")
        self._servers: list[InProcessServer] = []
        self._closed = False

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        server = InProcessServer(self._exchange, contract, self.host, receiver, self.watchdog, pool_size)
        self._servers.append(server)
        return server

    def close(self) -> None:
        self._closed = True
        for server in self._servers:
            server.cut()

    def echo(self, contract: type[Contract]) -> None:
        """Check that this host serves the contract: a server in this process can always receive messages."""
        self._found(Asking(contract, ECHO, self.host, 0, None))

    def reach(self, contract: type[Contract]) -> None:
        self._found(Asking(contract, ECHO, None, 0, None))

    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        self._found(Asking(contract, ECHO, server, 0, None)).hear()

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """Do nothing: no message is queued, so no host needs a queue."""

    def why_not_receiving(self) -> str:
        """Return an empty string: without a broker, messages always arrive."""
        return ""

    def _deliver(self, asking: Asking, envelope: Envelope) -> object:
        if self._closed:
            raise errors.daemon.RpcBrokerAway(method=asking.method.name, reason="this daemon's bus is closed")
        self._exchange.intercept(asking)
        if asking.method.fanout:
            for one in self._exchange.found(asking.contract, asking.server):
                with contextlib.suppress(RuntimeError):  # the server is stopping: it needs no message
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
        """Return the server whose turn it is. Raises daemon.RpcNotDelivered if no server has the contract."""
        for found in self._exchange.found(asking.contract, asking.server):
            return found
        raise errors.daemon.RpcNotDelivered(**names_of(asking))


class InProcessHostsBus(InProcessBus):
    """The bus between hosts and conductors, within one process; ``keys`` prove the sender."""

    def __init__(self, conf: Options, host: str, keys: HostKeys, conductor: bool = False,
                 peers: Peers | None = None) -> None:
        super().__init__(conf, host, peers)
        self.proofs, self.reply_to = Proofs(keys), f"reply_{'' if conductor else host}"

    def echo(self, contract: type[Contract]) -> None:
        """Check that any conductor serves the contract: they share one queue, so any of them will do."""
        self.reach(contract)

