"""What a bus is, whatever carries it: clients and servers of our contracts are made here and nowhere else."""

from __future__ import annotations

import abc
import functools
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from nova import concurrency, errors
from nova.conf.base import Options
from nova.model.base import Json
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.hearing import Hearing
from nova.rpc.interface import Contract, Method, Timeout
from nova.rpc.proofs import Envelope, Proofs, Spoken
from nova.rpc.server import Receiver, Take

LOG = logging.getLogger(__name__)

SHORT_S = 15
NORMAL_S = 60  # where nobody declared oslo.messaging's rpc_response_timeout
ABSENT_S = 10.0  # how long a call waits for its server to have a queue: both may be starting, or the broker was
LOOK_AGAIN_S = 0.25
#: Of those who answer, one host has at most one part in so many, and so has one project of those who answer the control
#: daemons.
SHARE = 2


class Asking(NamedTuple):
    """One message, and how long its answer is waited for; ``monitor``: seconds between its heartbeats."""

    contract: type[Contract]
    method: Method
    server: str | None
    seconds: int
    monitor: int | None


def names_of(asking: Asking) -> dict[str, str]:
    """What errors say of it."""
    return {"topic": f"nova-{asking.contract.topic}", "where": f" on {asking.server}" if asking.server else "",
            "method": asking.method.name}


class Serving(Protocol):
    """A server of a contract, as :meth:`AnyBus.server` makes it."""

    def start(self) -> None:
        """Take calls from now on."""

    def stop(self) -> None:
        """Take no more."""

    def wait(self) -> None:
        """Until those that were taken are answered."""


class AnyBus(abc.ABC):
    """Clients and servers of contracts, for one sender (this host)."""

    option: str  # with the URL of what carries it
    proofs: Proofs | None = None
    take: Take | None = None  # as a Receiver's
    reply_to = ""

    def __init__(self, conf: Options, host: str, peers: Peers | None = None, patience_s: int | None = None) -> None:
        """``patience_s``: ordinary calls wait no longer, whatever ``rpc_response_timeout`` is."""
        self.conf, self.host, self.patience_s = conf, host, patience_s
        self.peers = peers or Peers(pins(conf))
        self.hearing = Hearing()

    @property
    def reconnected(self) -> int:
        """Times that a connection for what comes in took the place of a lost one."""
        return 0

    def client(self, contract: type[Contract]) -> Json:
        """An object with the contract's methods."""
        self._check_carries(contract)
        return derive(contract, Sender(self.host, self.peers, self._send))

    def server(self, contract: type[Contract], implementation: object, pool_size: int = 64) -> Serving:
        """A server, not yet started. Refuses (TypeError) an implementation whose signatures differ."""
        self._check_carries(contract)
        share = 0 if contract.addressed_by else pool_size // SHARE
        return self._serving(contract, Receiver(contract, implementation, self.proofs, self._callers_wait_s,
                                                at_once=share, take=self.take), pool_size)

    def stop(self, servers: Sequence[Serving], seconds: float) -> None:
        """Take no more calls and let those that were taken end, side by side, for at most ``seconds``."""
        ending = [concurrency.spawn(_end, server, name="drain") for server in servers]
        until = time.monotonic() + seconds
        for thread in ending:
            concurrency.join(thread, max(0.0, until - time.monotonic()))

    @abc.abstractmethod
    def close(self) -> None:
        """Send and hear nothing any more."""

    @abc.abstractmethod
    def echo(self, contract: type[Contract]) -> None:
        """Send a message that carries nothing to this host's own queue of ``contract``, and wait until it is back; on
        the hosts' bus, which is a conductor's, to that of all conductors, without waiting.
        daemon.RpcNoAnswer, RpcNotDelivered, RpcBrokerAway."""

    @abc.abstractmethod
    def reach(self, contract: type[Contract]) -> None:
        """Whether any server of ``contract`` answers. daemon.RpcNoAnswer, RpcNotDelivered, RpcBrokerAway."""

    @abc.abstractmethod
    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        """Send it to another host's, or to whoever serves the contract, and go on. daemon.RpcNotDelivered,
        RpcBrokerAway."""

    @abc.abstractmethod
    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """For a conductor, of the hosts' bus: take calls of these hosts, and of no others, from now on. Returns at
        once."""

    @abc.abstractmethod
    def deaf(self) -> str:
        """Why this process should be replaced; empty while it hears, or while nobody can."""

    @abc.abstractmethod
    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        """A server that hands to ``receiver`` what comes in, so many at once."""

    @abc.abstractmethod
    def _deliver(self, asking: Asking, envelope: dict[str, Json]) -> Json:
        """Send one message, once; the answer's text. daemon.RpcNoAnswer, RpcNotDelivered, RpcBrokerAway,
        errors.PeerTooOld."""

    def _check_carries(self, contract: type[Contract]) -> None:
        """TypeError: the contract is spoken on the other bus."""
        if contract.with_hosts != (self.proofs is not None):
            raise TypeError(f"{contract.__name__} is not spoken by {type(self).__name__}")

    def _send(self, contract: type[Contract], method: Method, server: str | None, envelope: dict[str, object]) -> Json:
        """Send; a call that no queue takes is sent again for a while: it was not carried out, and would be lost. So is
        a read that was not answered (:func:`tries`)."""
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
                once: Callable[[Envelope], Json]) -> Json:
        """Each sending has a proof of its own: no message is taken twice."""
        if self.proofs is None:
            return once(envelope)
        reply_to = self.reply_to if method.wants_answer else ""
        return self.proofs.ask(Spoken(contract, method, server or self.host), envelope, reply_to, once)

    def _patience(self, timeout: Timeout) -> tuple[int, int | None]:
        if timeout is Timeout.SHORT:
            return SHORT_S, None
        if timeout is Timeout.NORMAL:
            wait = self._normal_s()
            return min(wait, self.patience_s or wait), None
        return self.conf.long_rpc_timeout, self.conf.long_rpc_silence

    def _normal_s(self) -> int:
        """oslo.messaging declares the option when it is first used."""
        return int(getattr(self.conf, "rpc_response_timeout", NORMAL_S))

    def _callers_wait_s(self, method: Method) -> float:
        """As long as they do by the same nova.conf, for calls whose callers do not hear of us meanwhile."""
        if not method.wants_answer or method.timeout is Timeout.LONG:
            return math.inf
        return float(SHORT_S if method.timeout is Timeout.SHORT else self._normal_s())


def pins(conf: Options) -> dict[str, str]:
    """Topic -> version, as ``[upgrade_levels]`` says. ``auto``, which older files have, is what happens anyway."""
    if "upgrade_levels" not in conf:
        return {}
    named = {name.replace("_", "-"): version for name, version in conf.upgrade_levels.items()}
    return {topic: version for topic, version in named.items() if version and version != "auto"}


def _end(server: Serving) -> None:
    server.stop()
    server.wait()  # what was taken off the queue is acknowledged: leaving without this would lose it


#: Of a read's time, what its first asking gets. A server gives up at 0.8 of a caller's time (``PART`` in server.py), so
#: that its reason still arrives: the second asking keeps more than that.
FIRST_PART = 0.15

Answer = TypeVar("Answer")


def tries(method: Method, seconds: int) -> tuple[int, ...]:
    """Seconds of each asking; ``seconds`` is their sum."""
    first = int(seconds * FIRST_PART)
    if method.reads and method.timeout is Timeout.NORMAL and first > 0:
        return first, seconds - first
    return (seconds,)


def ask(waits: Sequence[int], once: Callable[[int], Answer], name: str) -> Answer:
    """``once(seconds)`` until it answers; the last daemon.RpcNoAnswer."""
    *early, last = waits
    for seconds in early:
        try:
            return once(seconds)
        except errors.daemon.RpcNoAnswer:
            LOG.warning("%s was not answered within %s s; it changes nothing, and is asked once more", name, seconds)
    return once(last)
