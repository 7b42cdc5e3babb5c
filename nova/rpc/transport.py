"""The bus: oslo.messaging over RabbitMQ. Clients and servers of our contracts are made here and nowhere else.

There are two: control daemons meet in the vhost of ``transport_url``, where everybody is believed; hosts and conductors
in that of ``hosts_transport_url``, where nothing counts without a proof (``nova/rpc/proofs.py``).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import oslo_messaging
from kombu.exceptions import OperationalError
from oslo_config import cfg
from oslo_messaging.opts import list_opts as driver_options
from oslo_messaging.rpc import dispatcher as oslo_dispatcher
from oslo_messaging.transport import RPCTransport

from nova import concurrency, errors, metrics
from nova.model.base import Json
from nova.rpc import host_rights
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.control_driver import ControlDriver
from nova.rpc.hearing import DEAF_S, ECHO, ECHO_SENT, Hearing
from nova.rpc.hosts_driver import HostsDriver, MissingExchange
from nova.rpc.interface import Contract, Method, Timeout
from nova.rpc.proofs import Envelope, HostKeys, Proofs, Spoken
from nova.rpc.server import Receiver

LOG = logging.getLogger(__name__)

SHORT_S = 15
ABSENT_S = 10.0  # how long a call waits for its server to have a queue: both may be starting, or the broker was
LOOK_AGAIN_S = 0.25
PROBE_S = 1.0
ECHO_S = 5
AMQP_PORT = 5672
RABBIT = "oslo_messaging_rabbit"
#: What the libraries raise when it can not be reached. kombu's own comes through where a connection is made anew.
BROKER_AWAY = (oslo_messaging.MessageDeliveryFailure, OperationalError, OSError)
#: Of those who answer, one host has at most one part in so many, and so has one project of those who answer the control
#: daemons.
SHARE = 2

#: Our defaults where the library's suit many hosts less: reconnects spread out, so that a broker's return is no storm.
#: A listener sees that it was told to stop after heartbeat_timeout_threshold / heartbeat_rate / 2 = 1 s; the library's
#: rate of 3 would make every stop slow. An answer whose caller has no queue is known at once (``nova/rpc/answers.py``).
DEFAULTS = {"rabbit_interval_max": 2, "rabbit_retry_interval": 1, "kombu_reconnect_delay": 0.5,
            "heartbeat_timeout_threshold": 30, "heartbeat_rate": 15, "kombu_reconnect_splay": 0.5,
            "rabbit_transient_queues_ttl": 60, "direct_mandatory_flag": True}


def open_transport(conf: cfg.ConfigOpts) -> RPCTransport:
    """The process's connection to the broker named by ``transport_url``; nothing is connected before first use."""
    _set_defaults(conf)
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport != "rabbit":
        return oslo_messaging.get_rpc_transport(conf)
    return RPCTransport(ControlDriver(conf, url, default_exchange=conf.control_exchange, allowed_remote_exmods=[]))


def open_hosts_transport(conf: cfg.ConfigOpts, host: str | None) -> HostsDriver:
    """The driver of the same, to the vhost of ``hosts_transport_url``. ``host``: whose daemon this is; None for a
    conductor's. service.CanNotStart: there is no such option in nova.conf."""
    if not conf.hosts_transport_url:
        raise errors.service.CanNotStart(
            reason="[DEFAULT]hosts_transport_url is not set: it is the URL of the hosts' vhost (rabbit://USER:PASSWORD@"
            "BROKER:5672/nova-hosts), with this host's own user on a compute host; see 'The broker' in doc/install.rst")
    _set_defaults(conf)
    return HostsDriver(conf, oslo_messaging.TransportURL.parse(conf, conf.hosts_transport_url), host)


def _set_defaults(conf: cfg.ConfigOpts) -> None:
    """Before the driver is made: it reads some of them then."""
    oslo_messaging.set_transport_defaults("nova")
    for group, options in driver_options():
        if group == RABBIT:
            conf.register_opts(options, group=RABBIT)
    for name, value in DEFAULTS.items():
        if name in conf.oslo_messaging_rabbit:
            conf.set_default(name, value, group=RABBIT)


def exchange_of(contract: type[Contract], server: str | None) -> str:
    """Hosts have an exchange each, and one to speak to the conductor by: what a broker user may write is then exact."""
    if contract.addressed_by and server:
        return host_rights.HOST + server
    return f"nova-{contract.topic}"


def pins(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Topic -> version, as ``[upgrade_levels]`` says. ``auto``, which older files have, is what happens anyway."""
    if "upgrade_levels" not in conf:
        return {}
    named = {name.replace("_", "-"): version for name, version in conf.upgrade_levels.items()}
    return {topic: version for topic, version in named.items() if version and version != "auto"}


class Asking(NamedTuple):
    """One message, and how long its answer is waited for; ``monitor``: seconds between its heartbeats."""

    contract: type[Contract]
    method: Method
    server: str | None
    seconds: int
    monitor: int | None


class Bus:
    """Clients and servers of contracts between control daemons over one transport, for one sender (this host)."""

    option = "transport_url"
    proofs: Proofs | None = None
    reply_to = ""

    def __init__(self, conf: cfg.ConfigOpts, host: str, peers: Peers | None = None,
                 patience_s: int | None = None) -> None:
        """``patience_s``: ordinary calls wait no longer, whatever ``rpc_response_timeout`` is."""
        self.conf, self.host, self.patience_s = conf, host, patience_s
        self.peers = peers or Peers(pins(conf))
        self.transport = self._open()
        self._met = False
        self.hearing = Hearing()
        self._say_when_away()
        self._clients: dict[tuple[str, str | None], Any] = {}

    def _open(self) -> RPCTransport:
        return open_transport(self.conf)

    def client(self, contract: type[Contract]) -> Json:
        """An object with the contract's methods."""
        self._check_carries(contract)
        return derive(contract, Sender(self.host, self.peers, self._send))

    def _check_carries(self, contract: type[Contract]) -> None:
        """TypeError: the contract is spoken on the other bus."""
        if contract.with_hosts != (self.proofs is not None):
            raise TypeError(f"{contract.__name__} is not spoken by {type(self).__name__}")

    def server(self, contract: type[Contract], implementation: object,
               pool_size: int = 64) -> oslo_messaging.MessageHandlingServer:
        """A server, not yet started. Refuses (TypeError) an implementation whose signatures differ."""
        self._check_carries(contract)
        share = 0 if contract.addressed_by else pool_size // SHARE
        receiver = Receiver(contract, implementation, self.proofs, self._callers_wait_s, at_once=share)
        target = oslo_messaging.Target(exchange=exchange_of(contract, self.host), topic=contract.topic,
                                       server=self.host)
        endpoint = _Endpoint(contract, receiver, self.hearing)
        metrics.RPC_SLOTS.labels(contract.__name__).inc(pool_size)
        server = oslo_messaging.get_rpc_server(self.transport, target, [endpoint], executor=None,
                                               access_policy=oslo_dispatcher.DefaultRPCAccessPolicy)
        server.conf.set_override("executor_thread_pool_size", pool_size)
        return server

    def stop(self, servers: Sequence[oslo_messaging.MessageHandlingServer], seconds: float) -> None:
        """Take no more calls and let those that were taken end, side by side, for at most ``seconds``."""
        ending = [concurrency.spawn(_end, server, name="drain") for server in servers]
        until = time.monotonic() + seconds
        for thread in ending:
            thread.join(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        self.transport.cleanup()

    def echo(self, contract: type[Contract]) -> None:
        """Send a message that carries nothing to this host's own queue of ``contract``, and wait until it is back.
        daemon.RpcNoAnswer, RpcNotDelivered, RpcBrokerAway."""
        self._expect_echo()
        self._send_once(self._prepared(contract, self.host, fanout=False),
                        Asking(contract, ECHO, self.host, ECHO_S, None), {})

    def _expect_echo(self) -> None:
        if away := self._away():
            self.hearing.excuse()
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        self.hearing.expect()

    def reach(self, contract: type[Contract]) -> None:
        """Whether any server of ``contract`` answers. daemon.RpcNoAnswer, RpcNotDelivered, RpcBrokerAway."""
        if away := self._away():
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        with contextlib.suppress(errors.PeerTooOld):  # an answer all the same
            addressed = {"sender": self.host, "reply_to": self.reply_to} if self.proofs else {}
            self._send_once(self._prepared(contract, None, fanout=False),
                            Asking(contract, ECHO, None, ECHO_S, None), addressed)

    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        """Send it to another host's, or to whoever serves the contract, and go on. daemon.RpcNotDelivered,
        RpcBrokerAway."""
        self._send_once(self._prepared(contract, server, fanout=False),
                        Asking(contract, ECHO_SENT, server, ECHO_S, None), {})

    def deaf(self) -> str:
        """Why this process should be replaced; empty while it hears, or while nobody can."""
        silent_s = self.hearing.silent_s
        if silent_s < DEAF_S or self._away():
            return ""
        return f"nothing came in on [DEFAULT]{self.option} for {silent_s:.0f} s, while the broker takes connections"

    def _say_when_away(self) -> None:
        if away := self._away():
            LOG.warning("the broker at %s ([DEFAULT]%s) can not be reached yet, and is tried again until it can", away,
                        self.option)

    def _away(self) -> str:
        """Where the broker should be and does not take a connection; empty when (one of) it does."""
        missed = []
        for place in oslo_messaging.TransportURL.parse(self.conf, getattr(self.conf, self.option)).hosts:
            port = place.port or AMQP_PORT
            try:
                socket.create_connection((place.hostname, port), PROBE_S).close()
                return ""
            except OSError as error:
                missed.append(f"{place.hostname}:{port} ({error.strerror or error})")
        return ", ".join(missed)

    def _send(self, contract: type[Contract], method: Method, server: str | None, envelope: dict[str, object]) -> Json:
        """Send; a call that no queue takes is sent again for a while: it was not carried out, and would be lost. So is
        a read that was not answered (:func:`tries`)."""
        if not self._met:  # the library waits for its first connection as long as it takes, whatever the timeout
            if away := self._away():
                raise errors.daemon.RpcBrokerAway(method=method.name, reason=away)
            self._met = True
        until = time.monotonic() + (ABSENT_S if method.wants_answer else 0)
        client = self._prepared(contract, server, method.fanout)
        whole, monitor = self._patience(method.timeout)  # options that the client's making declares

        def deliver(seconds: int) -> object:
            once = functools.partial(self._send_once, client, Asking(contract, method, server, seconds, monitor))
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

    @staticmethod
    def _send_once(client: Json, asking: Asking, envelope: dict[str, Json]) -> Json:
        contract, method, server, seconds, monitor = asking
        names = {"topic": f"nova-{contract.topic}", "where": f" on {server}" if server else "", "method": method.name}
        try:
            if not method.wants_answer:
                client.cast({}, method.name, **envelope)
                return None
            return client.prepare(timeout=seconds, call_monitor_timeout=monitor).call({}, method.name, **envelope)
        except oslo_messaging.MessagingTimeout:
            raise errors.daemon.RpcNoAnswer(seconds=monitor or seconds, **names) from None
        except oslo_messaging.MessageUndeliverable:
            raise errors.daemon.RpcNotDelivered(**names) from None
        except oslo_messaging.RemoteError as error:
            if error.exc_type in ("NoSuchMethod", "UnsupportedVersion"):
                raise errors.PeerTooOld(f"{names['topic']}{names['where']} does not know {method.name} yet") from None
            raise errors.Bug(f"{names['topic']} failed in {method.name}: {error.exc_type}") from None
        except MissingExchange as error:
            raise errors.daemon.RpcNoExchange(exchange=error) from None
        except BROKER_AWAY as error:
            raise errors.daemon.RpcBrokerAway(method=method.name, reason=type(error).__name__) from None

    def _patience(self, timeout: Timeout) -> tuple[int, int | None]:
        if timeout is Timeout.SHORT:
            return SHORT_S, None
        if timeout is Timeout.NORMAL:
            return min(self.conf.rpc_response_timeout, self.patience_s or self.conf.rpc_response_timeout), None
        return self.conf.long_rpc_timeout, self.conf.long_rpc_silence

    def _callers_wait_s(self, method: Method) -> float:
        """As long as they do by the same nova.conf, for calls whose callers do not hear of us meanwhile."""
        if not method.wants_answer or method.timeout is Timeout.LONG:
            return math.inf
        if method.timeout is Timeout.SHORT:
            return SHORT_S
        return float(getattr(self.conf, "rpc_response_timeout", 60))  # declared when the first client is made

    def _prepared(self, contract: type[Contract], server: str | None, fanout: bool) -> object:
        key = (f"{contract.topic}/{fanout}", server)
        if key not in self._clients:
            target = oslo_messaging.Target(exchange=exchange_of(contract, server), topic=contract.topic,
                                           server=server, fanout=fanout)
            # 5 retries: a request waits through a broker's restart no longer than its client would
            self._clients[key] = oslo_messaging.get_rpc_client(
                self.transport, target, retry=5,
                transport_options=oslo_messaging.TransportOptions(at_least_once=True))
        return self._clients[key]


class HostsBus(Bus):
    """Between hosts and conductors, in the hosts' vhost: ``keys`` prove who speaks."""

    option = "hosts_transport_url"

    def __init__(self, conf: cfg.ConfigOpts, host: str, keys: HostKeys, conductor: bool = False,
                 peers: Peers | None = None) -> None:
        self.proofs, self._conductor = Proofs(keys), conductor
        super().__init__(conf, host, peers)

    def _open(self) -> RPCTransport:
        self.driver = open_hosts_transport(self.conf, None if self._conductor else self.host)
        self.reply_to = self.driver.reply_queue
        return RPCTransport(self.driver)

    def echo(self, contract: type[Contract]) -> None:
        """For a conductor: send it to all conductors' queue, from which each takes its turn; no answer goes to one
        there. daemon.RpcNotDelivered, RpcBrokerAway."""
        self._expect_echo()
        self.send_echo(contract, None)

    def declare_hosts(self, hosts: Sequence[str]) -> None:
        """For a conductor: what the queues of these hosts are bound to. daemon.RpcBrokerAway."""
        try:
            self.driver.declare_hosts(hosts)
        except BROKER_AWAY as error:
            raise errors.daemon.RpcBrokerAway(method="declare_hosts", reason=type(error).__name__) from None


def _end(server: oslo_messaging.MessageHandlingServer) -> None:
    server.stop()
    server.wait()  # what was taken off the queue is acknowledged: leaving without this would lose it


class _Endpoint:
    """What oslo.messaging dispatches to: one attribute a method, each handing the envelope to the receiver."""

    def __init__(self, contract: type[Contract], receiver: Receiver, hearing: Hearing) -> None:
        self._receiver, self._hearing = receiver, hearing
        self._under_way = metrics.RPC_UNDER_WAY.labels(contract.__name__)
        for name in contract.methods:
            setattr(self, name, self._handler(name))

    def echo(self, _ctxt: dict[str, object], **_envelope: object) -> str:
        """Heard. It needs no proof, since it says nothing and does nothing."""
        with self._hearing.message():
            return ""

    def _handler(self, name: str) -> object:
        def handle(_ctxt: dict[str, object], **envelope: object) -> object:
            with self._hearing.message(), self._under_way.track_inprogress():
                return self._receiver.handle(name, envelope)
        return handle


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
