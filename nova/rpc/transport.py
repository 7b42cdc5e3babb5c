"""The two buses over RabbitMQ, with oslo.messaging. Control daemons use the vhost of ``transport_url``, hosts and
conductors that of ``hosts_transport_url``.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import oslo_messaging
from kombu.exceptions import OperationalError
from oslo_config import cfg
from oslo_messaging.opts import list_opts as driver_options
from oslo_messaging.rpc import dispatcher as oslo_dispatcher
from oslo_messaging.transport import RPCTransport

from nova import errors, failures, metrics
from nova.conf._options import Options, oslo_conf
from nova.rpc import control_rights, host_rights
from nova.rpc.bus import AnyBus, Asking, Serving, names_of
from nova.rpc.client import Peers
from nova.rpc.conductor_listener import ConductorDispatcher
from nova.rpc.control_driver import ControlDriver, ProbedDriver
from nova.rpc.dispatching import DirectDispatcher
from nova.rpc.hosts_driver import HostsDriver, MissingExchange
from nova.rpc.hosts_url import CONFIGURED, OWN, SHARED, HostsBroker, hosts_url, hosts_url_option, shared_url
from nova.rpc.interface import Contract, Method
from nova.rpc.passive_publishing import QueueFull
from nova.rpc.proofs import Envelope, HostKeys, Proofs
from nova.rpc.rpc_watchdog import ECHO, ECHO_SENT, NOT_RECEIVING_S, RpcWatchdog
from nova.rpc.server import Receiver, Take

LOG = logging.getLogger(__name__)

PROBE_S = 1.0
ECHO_S = 5
AMQP_PORT = 5672
RABBIT = "oslo_messaging_rabbit"
CONDUCTOR = "conductor"  # the topic
#: Errors of the libraries for an unreachable broker. kombu's own error appears when a connection is created again.
BROKER_AWAY = (oslo_messaging.MessageDeliveryFailure, OperationalError, OSError)

#: Range of the additional delay before each reconnection attempt, in seconds. Each process draws its own value. With
#: the same value, daemons that lost the broker together would reconnect together, again and again. (The library's
#: kombu_reconnect_splay changes its log messages, but not the delay.)
RECONNECT_DELAY_S = (0.1, 1.5)
#: Defaults that differ from the library's, for deployments with many hosts. A listener notices a stop request after
#: heartbeat_timeout_threshold / heartbeat_rate / 2 = 1 s; with the library's rate of 3 every stop would be slow. A
#: reply to a missing queue fails immediately (``nova/rpc/answers.py``).
DEFAULTS = {"rabbit_interval_max": 2, "rabbit_retry_interval": 1, "heartbeat_timeout_threshold": 30,
            "heartbeat_rate": 15, "rabbit_transient_queues_ttl": 60, "direct_mandatory_flag": True}


def open_transport(conf: cfg.ConfigOpts, driver: type[ControlDriver] = ControlDriver) -> RPCTransport:
    """Return the process's transport for the broker in ``transport_url``. It connects at the first use."""
    _set_defaults(conf)
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport != "rabbit":
        return oslo_messaging.get_rpc_transport(conf)
    return ControlTransport(driver(conf, url, default_exchange=conf.control_exchange, allowed_remote_exmods=[]))


class ControlTransport(RPCTransport):
    """A transport that gives access to its driver, for queries to the broker."""

    def __init__(self, driver: ControlDriver) -> None:
        super().__init__(driver)
        self.driver = driver


def probe_server(conf: cfg.ConfigOpts, host: str, topic: str) -> Serving:
    """Return a server for health probes of deployment tools on ``transport_url``, for a daemon of ``host`` that serves
    no control daemon. It is not yet started."""
    target = oslo_messaging.Target(topic=topic, server=host)
    server: Serving = oslo_messaging.get_rpc_server(open_transport(conf, ProbedDriver), target, [Probed(topic)],
                                                    executor=None,
                                                    access_policy=oslo_dispatcher.DefaultRPCAccessPolicy)
    return server


def has_broker(conf: Options) -> bool:
    """Return whether ``transport_url`` is set."""
    return bool(shared_url(conf))


def open_hosts_transport(conf: Options, host: str | None, broker: HostsBroker = CONFIGURED) -> HostsDriver:
    """Return the driver of the hosts' vhost. ``host``: the daemon's host; None for a conductor. Raises config.Missing
    if the broker's URL is not set."""
    option = broker.option or hosts_url_option(conf)
    url = broker.url or hosts_url(conf, option)
    source = oslo_conf(conf)
    _set_defaults(source)
    return HostsDriver(source, oslo_messaging.TransportURL.parse(source, url), host, declares=option == SHARED)


def _set_defaults(conf: cfg.ConfigOpts) -> None:
    """Set defaults before the driver is created, because it reads some of them then."""
    oslo_messaging.set_transport_defaults("nova")
    for group, options in driver_options():
        if group == RABBIT:
            conf.register_opts(options, group=RABBIT)
    # with use_queue_manager, host and processname identify reply queues; under uWSGI all applications share a name
    own = {"kombu_reconnect_delay": random.uniform(*RECONNECT_DELAY_S), "processname": conf.prog}
    for name, value in {**DEFAULTS, **own}.items():
        if value and name in conf.oslo_messaging_rabbit:
            conf.set_default(name, value, group=RABBIT)


def exchange_of(contract: type[Contract], server: str | None) -> str:
    """Return the exchange for calls. Each host has its own, and one to call the conductor, so that permissions of
    broker users can be exact."""
    if contract.addressed_by and server:
        return host_rights.HOST + server
    return control_rights.exchange(contract.topic)


class Bus(AnyBus):
    """The bus of control daemons, over one transport."""

    option = "transport_url"

    def __init__(self, conf: Options, host: str, peers: Peers | None = None,
                 timeout_s: int | None = None) -> None:
        """Open the transport. ``timeout_s``: as in :func:`nova.rpc.buses.control_bus`."""
        super().__init__(conf, host, peers, timeout_s)
        self.transport = self._open()
        self._met = False
        self._say_when_away()
        self._clients: dict[tuple[str, str | None], Any] = {}

    def _open(self) -> RPCTransport:
        return open_transport(oslo_conf(self.conf))

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        target = oslo_messaging.Target(exchange=exchange_of(contract, self.host), topic=contract.topic,
                                       server=self.host)
        dispatcher = DirectDispatcher([_Endpoint(contract, receiver, self.watchdog), Probed(contract.topic)],
                                      contract.methods)
        metrics.RPC_SLOTS.labels(contract.__name__).inc(pool_size)
        server: Serving = oslo_messaging.get_rpc_server(self.transport, target, dispatcher.endpoints, executor=None,
                                                        access_policy=oslo_dispatcher.DefaultRPCAccessPolicy)
        server.dispatcher = dispatcher  # type: ignore[attr-defined]
        server.conf.set_override("executor_thread_pool_size", pool_size)  # type: ignore[attr-defined]
        return server

    def close(self) -> None:
        self.transport.cleanup()

    def echo(self, contract: type[Contract]) -> None:
        self._expect_echo()
        self._deliver(Asking(contract, ECHO, self.host, ECHO_S, None), {})

    def _expect_echo(self) -> None:
        if away := self._away():
            self.watchdog.excuse()
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        self.watchdog.expect()

    def reach(self, contract: type[Contract]) -> None:
        if away := self._away():
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        with contextlib.suppress(errors.PeerTooOld):  # this is an answer, too
            addressed: Envelope = {"sender": self.host, "reply_to": self.reply_to} if self.proofs else {}
            self._deliver(Asking(contract, ECHO, None, ECHO_S, None), addressed)

    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        self._deliver(Asking(contract, ECHO_SENT, server, ECHO_S, None), {})

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """Do nothing: this bus has no hosts."""

    def why_not_receiving(self) -> str:
        silent_s = self.watchdog.silent_s
        if silent_s < NOT_RECEIVING_S or self._away():
            return ""
        return f"no message arrived on [DEFAULT]{self.option} for {silent_s:.0f} s, but the broker accepts connections"

    def _say_when_away(self) -> None:
        if away := self._away():
            LOG.warning("the broker at %s ([DEFAULT]%s) cannot be reached yet; retrying until it can be reached", away,
                        self.option)

    def _url(self) -> str:
        return str(getattr(oslo_conf(self.conf), self.option))

    def _away(self) -> str:
        """Return the broker addresses that refuse connections, with reasons; empty if one of them accepts a
        connection."""
        missed = []
        for place in oslo_messaging.TransportURL.parse(oslo_conf(self.conf), self._url()).hosts:
            port = place.port or AMQP_PORT
            try:
                socket.create_connection((place.hostname, port), PROBE_S).close()
                return ""
            except OSError as error:
                missed.append(f"{place.hostname}:{port} ({error.strerror or error})")
        return ", ".join(missed)

    def _send(self, contract: type[Contract], method: Method, server: str | None, envelope: Envelope) -> object:
        """Check the broker before the first call: the library waits for its first connection without any timeout."""
        if not self._met:
            if away := self._away():
                raise errors.daemon.RpcBrokerAway(method=method.name, reason=away)
            self._met = True
        self._prepared(contract, server, method.fanout)  # registers the options with the timeouts
        return super()._send(contract, method, server, envelope)

    def _deliver(self, asking: Asking, envelope: Envelope) -> object:
        client = self._prepared(asking.contract, asking.server, asking.method.fanout)

        def undo() -> None:
            if asking.contract.topic == CONDUCTOR:
                self._refuse_before_first_conductor(asking.method)
        with failures.on_failure(undo, on=errors.daemon.RpcNotDelivered):
            return self._send_once(client, asking, envelope)

    @staticmethod
    def _send_once(client: oslo_messaging.RPCClient, asking: Asking, envelope: Envelope) -> object:
        contract, method, server, seconds, monitor = asking
        names = names_of(asking)
        try:
            if not method.wants_answer:
                client.cast({}, method.name, **envelope)
                return None
            return client.prepare(timeout=seconds, call_monitor_timeout=monitor).call({}, method.name, **envelope)
        except oslo_messaging.MessagingTimeout:
            raise errors.daemon.RpcNoAnswer(seconds=monitor or seconds, **names) from None
        except QueueFull:
            raise errors.daemon.RpcQueueFull(method=method.name) from None
        except oslo_messaging.MessageUndeliverable:
            if contract.with_hosts and not contract.addressed_by:
                raise errors.daemon.RpcCallsNotTaken(method=method.name) from None
            raise errors.daemon.RpcNotDelivered(**names) from None
        except oslo_messaging.RemoteError as error:
            if error.exc_type in ("NoSuchMethod", "UnsupportedVersion"):
                raise errors.PeerTooOld(f"{names['topic']}{names['where']} does not know {method.name} yet") from None
            raise errors.Bug(f"{names['topic']} failed in {method.name}: {error.exc_type}") from None
        except MissingExchange as error:
            raise errors.daemon.RpcNoExchange(exchange=error) from None
        except BROKER_AWAY as error:
            raise errors.daemon.RpcBrokerAway(method=method.name, reason=type(error).__name__) from None

    def _refuse_before_first_conductor(self, method: Method) -> None:
        """Raise errors.daemon.RpcNoConductorYet if no conductor has ever started in this cloud. In upstream mode the
        first one declares a durable exchange in this vhost; in bounded mode, this vhost does not show it."""
        if hosts_url_option(self.conf) != SHARED or not isinstance(self.transport, ControlTransport):
            return
        with failures.replaced(BROKER_AWAY,
                lambda error: errors.daemon.RpcBrokerAway(method=method.name, reason=type(error).__name__)):
            has_started = self.transport.driver.has_exchange(host_rights.CALLS)
        if not has_started:
            raise errors.daemon.RpcNoConductorYet(method=method.name) from None

    def _prepared(self, contract: type[Contract], server: str | None, fanout: bool) -> oslo_messaging.RPCClient:
        key = (f"{contract.topic}/{fanout}", server)
        if key not in self._clients:
            target = oslo_messaging.Target(exchange=exchange_of(contract, server), topic=contract.topic,
                                           server=server, fanout=fanout)
            # 5 retries: during a broker's restart, a request waits no longer than its client would
            self._clients[key] = oslo_messaging.get_rpc_client(
                self.transport, target, retry=5,
                transport_options=oslo_messaging.TransportOptions(at_least_once=True))
        return self._clients[key]


class HostsBus(Bus):
    """The bus between hosts and conductors, in the hosts' vhost, or in upstream mode in the vhost of all daemons;
    ``keys`` prove the sender."""

    option = OWN

    def __init__(self, conf: Options, host: str, keys: HostKeys, conductor: bool = False,
                 peers: Peers | None = None, take: Take | None = None, broker: HostsBroker = CONFIGURED) -> None:
        """Open the transport. ``take``: for a conductor, as in :class:`nova.rpc.server.Receiver`."""
        self._conductor, self.take, self.option = conductor, take, broker.option or hosts_url_option(conf)
        self._other_url = broker.url
        self.proofs = Proofs(keys, folder=None if conductor else Path(conf.state_path))
        super().__init__(conf, host, peers)

    def _open(self) -> RPCTransport:
        self.driver = open_hosts_transport(self.conf, None if self._conductor else self.host,
                                           HostsBroker(self.option, self._other_url))
        self.reply_to = self.driver.reply_queue
        return RPCTransport(self.driver)

    def _url(self) -> str:
        return self._other_url or super()._url()

    @property
    def reconnected(self) -> int:
        return self.driver.reconnected

    def echo(self, contract: type[Contract]) -> None:
        """Send an echo without waiting: any conductor may receive it from the shared queue, and no reply reaches this
        one."""
        self._expect_echo()
        self.send_echo(contract, None)

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        wanted = frozenset(hosts)
        if wanted != self.driver.hosts:
            self.driver.hosts = wanted

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        server = super()._serving(contract, receiver, pool_size)
        if self._conductor:
            endpoint = _ProvenEndpoint(contract, receiver, self.watchdog)
            server.dispatcher = ConductorDispatcher(endpoint, receiver)  # type: ignore[attr-defined]
        return server


class _Endpoint:
    """The endpoint for oslo.messaging: one attribute per method, each of which passes the envelope to the receiver."""

    def __init__(self, contract: type[Contract], receiver: Receiver, watchdog: RpcWatchdog) -> None:
        self._receiver, self._watchdog = receiver, watchdog
        self._under_way = metrics.RPC_UNDER_WAY.labels(contract.__name__)
        for name in contract.methods:
            setattr(self, name, self._handler(name))

    def echo(self, _ctxt: dict[str, object], **_envelope: object) -> str:
        """Record an incoming echo. It needs no proof, because it carries no data and has no effect."""
        with self._watchdog.message():
            return ""

    def _handler(self, name: str) -> object:
        def handle(ctxt: dict[str, object], **envelope: object) -> object:
            with self._watchdog.message(), self._under_way.track_inprogress():
                return self._answer(ctxt, name, envelope)
        return handle

    def _answer(self, _ctxt: dict[str, object], name: str, envelope: dict[str, object]) -> str:
        return self._receiver.handle(name, envelope)


class Probed:
    """The method for health probes of deployment tools, as in upstream's daemons: namespace baseapi 1.1."""

    target = oslo_messaging.Target(namespace="baseapi", version="1.1")

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def ping(self, _ctxt: dict[str, object], arg: object = None) -> dict[str, object]:
        """Return the topic of this server and the sent argument. It needs no proof, because it has no effect."""
        return {"service": self._topic, "arg": arg}


class _ProvenEndpoint(_Endpoint):
    """The endpoint of a conductor, for messages that :class:`ConductorDispatcher` has checked."""

    def _answer(self, ctxt: dict[str, object], name: str, envelope: dict[str, object]) -> str:
        return self._receiver.answer(name, envelope, str(ctxt["key"]))
