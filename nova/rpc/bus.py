"""The interface of a message bus, for any transport: the only place that creates clients and servers of contracts."""

from __future__ import annotations

import abc
import functools
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from nova import concurrency, errors, failures
from nova.conf._options import Options, oslo_conf
from nova.conf.upgrade_levels import UpgradeLevelsOptions
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.interface import Contract, Method, Timeout
from nova.rpc.proofs import AuthenticatedMethod, Envelope, Proofs
from nova.rpc.rpc_watchdog import RpcWatchdog
from nova.rpc.server import Receiver, Take

C = TypeVar("C", bound=Contract)

LOG = logging.getLogger(__name__)

SHORT_S = 15
NORMAL_S = 60  # if oslo.messaging's rpc_response_timeout is not registered
ABSENT_S = 10.0  # maximum wait for the server's queue: both daemons may be starting, or the broker was
LOOK_AGAIN_S = 0.25
#: The divisor of a server's threads: one host may occupy at most 1/SHARE of them, and so may one project among calls of
#: control daemons.
SHARE = 2


class Asking(NamedTuple):
    """An outgoing message, with the timeout for its reply; ``monitor``: seconds between its heartbeats."""

    contract: type[Contract]
    method: Method
    server: str | None
    seconds: int
    monitor: int | None


def names_of(asking: Asking) -> dict[str, str]:
    """Return the fields of error texts about the message."""
    return {"topic": f"nova-{asking.contract.topic}", "where": f" on {asking.server}" if asking.server else "",
            "method": asking.method.name}


class Serving(Protocol):
    """A server of a contract, as created by :meth:`AnyBus.server`."""

    def start(self) -> None:
        """Start to accept calls."""

    def stop(self) -> None:
        """Stop accepting calls."""

    def wait(self) -> None:
        """Wait until the accepted calls are answered."""


class AnyBus(abc.ABC):
    """Clients and servers of contracts, for one sender (this host)."""

    option: str  # the option with the transport's URL
    proofs: Proofs | None = None
    take: Take | None = None  # as in Receiver
    reply_to = ""

    def __init__(self, conf: Options, host: str, peers: Peers | None = None, timeout_s: int | None = None) -> None:
        """Create the bus. ``timeout_s``: maximum wait of ordinary calls, if less than ``rpc_response_timeout``."""
        self.conf, self.host, self.timeout_s = conf, host, timeout_s
        self.peers = peers or Peers(pins(conf))
        self.watchdog = RpcWatchdog()

    @property
    def reconnected(self) -> int:
        """Number of times that a connection for incoming messages replaced a lost one."""
        return 0

    def client(self, contract: type[C]) -> C:
        """Return an object with the contract's methods."""
        self._check_carries(contract)
        return derive(contract, Sender(self.host, self.peers, self._send))

    def server(self, contract: type[Contract], implementation: object, pool_size: int = 64) -> Serving:
        """Return a server that is not yet started. Raises TypeError if the implementation's signatures differ."""
        self._check_carries(contract)
        share = 0 if contract.addressed_by else pool_size // SHARE
        return self._serving(contract, Receiver(contract, implementation, self.proofs, self._callers_wait_s,
                                                at_once=share, take=self.take), pool_size)

    def stop(self, servers: Sequence[Serving], seconds: float) -> None:
        """Stop accepting calls, and let accepted calls of all servers finish in parallel, for at most ``seconds``."""
        ending = [concurrency.spawn(_end, server, name="drain") for server in servers]
        until = time.monotonic() + seconds
        for thread in ending:
            concurrency.join(thread, max(0.0, until - time.monotonic()))

    @abc.abstractmethod
    def close(self) -> None:
        """Close the transport: no more messages are sent or received."""

    @abc.abstractmethod
    def echo(self, contract: type[Contract]) -> None:
        """Send an empty message to this host's own queue of ``contract``, and wait until it arrives. On a conductor's
        hosts' bus, send it to the queue of all conductors, and do not wait. Raises daemon.RpcNoAnswer, RpcNotDelivered
        or RpcBrokerAway."""

    @abc.abstractmethod
    def reach(self, contract: type[Contract]) -> None:
        """Check that a server of ``contract`` answers. Raises daemon.RpcNoAnswer, RpcNotDelivered or RpcBrokerAway."""

    @abc.abstractmethod
    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        """Send an echo to another host's queue, or to any server of the contract, without waiting for it. Raises
        daemon.RpcNotDelivered or RpcBrokerAway."""

    @abc.abstractmethod
    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """Accept calls from these hosts only, from now on. For a conductor, on the hosts' bus. Returns immediately."""

    @abc.abstractmethod
    def why_not_receiving(self) -> str:
        """Return why this process must be replaced; empty while it receives messages, or while the broker is
        unreachable."""

    @abc.abstractmethod
    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        """Return a server that passes incoming messages to ``receiver``, at most ``pool_size`` at a time."""

    @abc.abstractmethod
    def _deliver(self, asking: Asking, envelope: Envelope) -> object:
        """Send one message, once, and return the reply's text. Raises daemon.RpcNoAnswer, RpcNotDelivered,
        RpcBrokerAway or errors.PeerTooOld."""

    def _check_carries(self, contract: type[Contract]) -> None:
        """Raise TypeError if the contract belongs to the other bus."""
        if contract.with_hosts != (self.proofs is not None):
            raise TypeError(f"{contract.__name__} is not available on {type(self).__name__}")

    def _send(self, contract: type[Contract], method: Method, server: str | None, envelope: Envelope) -> object:
        """Send a message. A call that no queue accepts is sent again for a while, because it was not executed and would
        be lost. A read without a reply is repeated, too (:func:`tries`)."""
        until = time.monotonic() + (ABSENT_S if method.wants_answer else 0)
        whole, monitor = self._patience(method.timeout)

        def deliver(seconds: int) -> object:
            once = functools.partial(self._deliver, Asking(contract, method, server, seconds, monitor))
            while True:
                try:
                    return self._proven(contract, method, server, envelope, once)
                except errors.daemon.RpcNotDelivered:
                    if time.monotonic() >= until:
                        raise
                concurrency.sleep(LOOK_AGAIN_S)
        return ask(tries(method, whole), deliver, method.name)

    def _proven(self, contract: type[Contract], method: Method, server: str | None, envelope: Envelope,
                once: Callable[[Envelope], object]) -> object:
        """Send with a proof. Each attempt has its own proof, so that no message is accepted twice."""
        if self.proofs is None:
            return once(envelope)
        reply_to = self.reply_to if method.wants_answer else ""
        return self.proofs.ask(AuthenticatedMethod(contract, method, server or self.host), envelope, reply_to, once)

    def _patience(self, timeout: Timeout) -> tuple[int, int | None]:
        if timeout is Timeout.SHORT:
            return SHORT_S, None
        if timeout is Timeout.NORMAL:
            wait = self._normal_s()
            return min(wait, self.timeout_s or wait), None
        return self.conf.long_rpc_timeout, self.conf.long_rpc_silence

    def _normal_s(self) -> int:
        """Return the timeout of ordinary calls, in seconds. oslo.messaging registers the option when it is first
        used."""
        return int(getattr(oslo_conf(self.conf), "rpc_response_timeout", NORMAL_S))

    def _callers_wait_s(self, method: Method) -> float:
        """Return the callers' timeout in seconds, if they use the same nova.conf; infinite for calls that receive
        heartbeats."""
        if not method.wants_answer or method.timeout is Timeout.LONG:
            return math.inf
        return float(SHORT_S if method.timeout is Timeout.SHORT else self._normal_s())


def pins(conf: Options) -> dict[str, str]:
    """Return topic -> version from ``[upgrade_levels]``. ``auto``, which older files have, is the default behaviour."""
    levels: UpgradeLevelsOptions | None = getattr(conf, "upgrade_levels", None)
    if levels is None:
        return {}
    named = {name.replace("_", "-"): getattr(levels, name) for name in UpgradeLevelsOptions.__struct_fields__}
    return {topic: version for topic, version in named.items() if version and version != "auto"}


def _end(server: Serving) -> None:
    server.stop()
    server.wait()  # accepted calls must be acknowledged, or they would be lost


#: The part of a read's timeout for the first attempt. A server stops at 0.8 of a caller's timeout (``PART`` in
#: server.py), so that its error still arrives: the second attempt has more than that.
FIRST_PART = 0.15

Answer = TypeVar("Answer")


def tries(method: Method, seconds: int) -> tuple[int, ...]:
    """Return the seconds of each attempt; ``seconds`` is their sum."""
    first = int(seconds * FIRST_PART)
    if method.reads and method.timeout is Timeout.NORMAL and first > 0:
        return first, seconds - first
    return (seconds,)


def ask(waits: Sequence[int], once: Callable[[int], Answer], name: str) -> Answer:
    """Call ``once(seconds)`` until it returns a reply. Raises the last daemon.RpcNoAnswer."""
    *early, last = waits
    for seconds in early:
        with failures.expected(LOG, "%s got no reply within %s s; it changes nothing, so it is sent again", name,
                seconds, on=errors.daemon.RpcNoAnswer, level=logging.WARNING):
            return once(seconds)
    return once(last)
