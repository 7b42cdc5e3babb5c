"""The two buses over RabbitMQ, by oslo.messaging: control daemons meet in the vhost of ``transport_url``, hosts and
conductors in that of ``hosts_transport_url``.
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

from nova import errors, metrics
from nova.model.base import Json
from nova.rpc import control_rights, host_rights
from nova.rpc.bus import AnyBus, Asking, Serving, names_of
from nova.rpc.client import Peers
from nova.rpc.conductor_end import ConductorDispatcher
from nova.rpc.control_driver import ControlDriver, ProbedDriver
from nova.rpc.hearing import DEAF_S, ECHO, ECHO_SENT, Hearing
from nova.rpc.hosts_driver import HostsDriver, MissingExchange
from nova.rpc.hosts_url import OWN, SHARED, hosts_url, hosts_url_option, shared_url
from nova.rpc.interface import Contract, Method
from nova.rpc.passive_publishing import QueueFull
from nova.rpc.proofs import HostKeys, Proofs
from nova.rpc.server import Receiver, Take

LOG = logging.getLogger(__name__)

PROBE_S = 1.0
ECHO_S = 5
AMQP_PORT = 5672
RABBIT = "oslo_messaging_rabbit"
CONDUCTOR = "conductor"  # the topic
#: What the libraries raise when it cannot be reached. kombu's own comes through where a connection is made anew.
BROKER_AWAY = (oslo_messaging.MessageDeliveryFailure, OperationalError, OSError)

#: Seconds that a process waits, besides the interval, before it tries to connect once more: each draws its own. With
#: the same one, daemons that lost the broker at one moment come back at one moment, again and again. (The library's
#: kombu_reconnect_splay changes what it logs, and not how long it waits.)
RECONNECT_DELAY_S = (0.1, 1.5)
#: Our defaults where the library's suit many hosts less. A listener sees that it was told to stop after
#: heartbeat_timeout_threshold / heartbeat_rate / 2 = 1 s; the library's rate of 3 would make every stop slow. An answer
#: whose caller has no queue is known at once (``nova/rpc/answers.py``).
DEFAULTS = {"rabbit_interval_max": 2, "rabbit_retry_interval": 1, "heartbeat_timeout_threshold": 30,
            "heartbeat_rate": 15, "rabbit_transient_queues_ttl": 60, "direct_mandatory_flag": True}


def open_transport(conf: cfg.ConfigOpts, driver: type[ControlDriver] = ControlDriver) -> RPCTransport:
    """The process's connection to the broker named by ``transport_url``; nothing is connected before first use."""
    _set_defaults(conf)
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport != "rabbit":
        return oslo_messaging.get_rpc_transport(conf)
    return ControlTransport(driver(conf, url, default_exchange=conf.control_exchange, allowed_remote_exmods=[]))


class ControlTransport(RPCTransport):
    """One whose driver can be asked what is on the broker."""

    def __init__(self, driver: ControlDriver) -> None:
        super().__init__(driver)
        self.driver = driver


def probe_server(conf: cfg.ConfigOpts, host: str, topic: str) -> Serving:
    """What answers health probes of deployment tools where ``transport_url`` is, for a daemon of ``host`` that serves
    no control daemon. Not yet started."""
    target = oslo_messaging.Target(topic=topic, server=host)
    server: Serving = oslo_messaging.get_rpc_server(open_transport(conf, ProbedDriver), target, [Probed(topic)],
                                                    executor=None,
                                                    access_policy=oslo_dispatcher.DefaultRPCAccessPolicy)
    return server


def has_broker(conf: cfg.ConfigOpts) -> bool:
    """Whether ``transport_url`` is set."""
    return bool(shared_url(conf))


def open_hosts_transport(conf: cfg.ConfigOpts, host: str | None, option: str = "") -> HostsDriver:
    """The driver of the hosts' vhost. ``host``: whose daemon this is; None for a conductor's. ``option``: with its URL;
    empty: the one of the mode that the configuration asks for. config.Missing: it is not set."""
    option = option or hosts_url_option(conf)
    url = hosts_url(conf, option)
    _set_defaults(conf)
    return HostsDriver(conf, oslo_messaging.TransportURL.parse(conf, url), host, declares=option == SHARED)


def _set_defaults(conf: cfg.ConfigOpts) -> None:
    """Before the driver is made: it reads some of them then."""
    oslo_messaging.set_transport_defaults("nova")
    for group, options in driver_options():
        if group == RABBIT:
            conf.register_opts(options, group=RABBIT)
    # with use_queue_manager, reply queues are named by host and processname: all applications under uWSGI have one name
    own = {"kombu_reconnect_delay": random.uniform(*RECONNECT_DELAY_S), "processname": conf.prog}
    for name, value in {**DEFAULTS, **own}.items():
        if value and name in conf.oslo_messaging_rabbit:
            conf.set_default(name, value, group=RABBIT)


def exchange_of(contract: type[Contract], server: str | None) -> str:
    """Hosts have an exchange each, and one to speak to the conductor by: what a broker user may write is then exact."""
    if contract.addressed_by and server:
        return host_rights.HOST + server
    return control_rights.exchange(contract.topic)


class Bus(AnyBus):
    """The bus of control daemons, over one transport."""

    option = "transport_url"

    def __init__(self, conf: cfg.ConfigOpts, host: str, peers: Peers | None = None,
                 patience_s: int | None = None) -> None:
        """``patience_s``: as :func:`nova.rpc.buses.control_bus`."""
        super().__init__(conf, host, peers, patience_s)
        self.transport = self._open()
        self._met = False
        self._say_when_away()
        self._clients: dict[tuple[str, str | None], Any] = {}

    def _open(self) -> RPCTransport:
        return open_transport(self.conf)

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        target = oslo_messaging.Target(exchange=exchange_of(contract, self.host), topic=contract.topic,
                                       server=self.host)
        endpoints = [_Endpoint(contract, receiver, self.hearing), Probed(contract.topic)]
        metrics.RPC_SLOTS.labels(contract.__name__).inc(pool_size)
        server: Serving = oslo_messaging.get_rpc_server(self.transport, target, endpoints, executor=None,
                                                        access_policy=oslo_dispatcher.DefaultRPCAccessPolicy)
        server.conf.set_override("executor_thread_pool_size", pool_size)  # type: ignore[attr-defined]
        return server

    def close(self) -> None:
        self.transport.cleanup()

    def echo(self, contract: type[Contract]) -> None:
        self._expect_echo()
        self._deliver(Asking(contract, ECHO, self.host, ECHO_S, None), {})

    def _expect_echo(self) -> None:
        if away := self._away():
            self.hearing.excuse()
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        self.hearing.expect()

    def reach(self, contract: type[Contract]) -> None:
        if away := self._away():
            raise errors.daemon.RpcBrokerAway(method=ECHO.name, reason=away)
        with contextlib.suppress(errors.PeerTooOld):  # an answer all the same
            addressed = {"sender": self.host, "reply_to": self.reply_to} if self.proofs else {}
            self._deliver(Asking(contract, ECHO, None, ECHO_S, None), addressed)

    def send_echo(self, contract: type[Contract], server: str | None) -> None:
        self._deliver(Asking(contract, ECHO_SENT, server, ECHO_S, None), {})

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        """Nothing: no host is on this bus."""

    def deaf(self) -> str:
        silent_s = self.hearing.silent_s
        if silent_s < DEAF_S or self._away():
            return ""
        return f"nothing came in on [DEFAULT]{self.option} for {silent_s:.0f} s, while the broker takes connections"

    def _say_when_away(self) -> None:
        if away := self._away():
            LOG.warning("the broker at %s ([DEFAULT]%s) cannot be reached yet, and is tried again until it can", away,
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
        """The library waits for its first connection as long as it takes, whatever the timeout: look first."""
        if not self._met:
            if away := self._away():
                raise errors.daemon.RpcBrokerAway(method=method.name, reason=away)
            self._met = True
        self._prepared(contract, server, method.fanout)  # declares the options that say how long is waited
        return super()._send(contract, method, server, envelope)

    def _deliver(self, asking: Asking, envelope: dict[str, Json]) -> Json:
        client = self._prepared(asking.contract, asking.server, asking.method.fanout)
        try:
            return self._send_once(client, asking, envelope)
        except errors.daemon.RpcNotDelivered:
            if asking.contract.topic == CONDUCTOR:
                self._refuse_before_first_conductor(asking.method)
            raise

    @staticmethod
    def _send_once(client: Json, asking: Asking, envelope: dict[str, Json]) -> Json:
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
        """errors.daemon.RpcNoConductorYet: no conductor has ever started in this cloud. In upstream mode the first one
        declares a durable exchange in this vhost; in bounded mode, the vhost does not tell."""
        if hosts_url_option(self.conf) != SHARED or not isinstance(self.transport, ControlTransport):
            return
        try:
            has_started = self.transport.driver.has_exchange(host_rights.CALLS)
        except BROKER_AWAY as error:
            raise errors.daemon.RpcBrokerAway(method=method.name, reason=type(error).__name__) from None
        if not has_started:
            raise errors.daemon.RpcNoConductorYet(method=method.name) from None

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
    """Between hosts and conductors, in the hosts' vhost, or in upstream mode in that of all daemons: ``keys`` prove who
    speaks."""

    option = OWN

    def __init__(self, conf: cfg.ConfigOpts, host: str, keys: HostKeys, conductor: bool = False,
                 peers: Peers | None = None, take: Take | None = None, option: str = "") -> None:
        """``take``: for a conductor, as of :class:`nova.rpc.server.Receiver`. ``option``: with the URL; empty: the one
        of the mode that ``conf`` asks for."""
        self._conductor, self.take, self.option = conductor, take, option or hosts_url_option(conf)
        self.proofs = Proofs(keys, folder=None if conductor else Path(conf.state_path))
        super().__init__(conf, host, peers)

    def _open(self) -> RPCTransport:
        self.driver = open_hosts_transport(self.conf, None if self._conductor else self.host, self.option)
        self.reply_to = self.driver.reply_queue
        return RPCTransport(self.driver)

    @property
    def reconnected(self) -> int:
        return self.driver.reconnected

    def echo(self, contract: type[Contract]) -> None:
        """Conductors take turns at what comes in their queue, and no answer goes to one of them there."""
        self._expect_echo()
        self.send_echo(contract, None)

    def serve_hosts(self, hosts: Iterable[str]) -> None:
        wanted = frozenset(hosts)
        if wanted != self.driver.hosts:
            self.driver.hosts = wanted

    def _serving(self, contract: type[Contract], receiver: Receiver, pool_size: int) -> Serving:
        server = super()._serving(contract, receiver, pool_size)
        if self._conductor:
            endpoint = _ProvenEndpoint(contract, receiver, self.hearing)
            server.dispatcher = ConductorDispatcher(endpoint, receiver)  # type: ignore[attr-defined]
        return server


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
        def handle(ctxt: dict[str, object], **envelope: object) -> object:
            with self._hearing.message(), self._under_way.track_inprogress():
                return self._answer(ctxt, name, envelope)
        return handle

    def _answer(self, _ctxt: dict[str, object], name: str, envelope: dict[str, object]) -> str:
        return self._receiver.handle(name, envelope)


class Probed:
    """The method that health probes of deployment tools call, as upstream's daemons have it: namespace baseapi 1.1."""

    target = oslo_messaging.Target(namespace="baseapi", version="1.1")

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def ping(self, _ctxt: dict[str, object], arg: object = None) -> dict[str, object]:
        """The topic that answers, and what was sent. It needs no proof, since it says nothing and does nothing."""
        return {"service": self._topic, "arg": arg}


class _ProvenEndpoint(_Endpoint):
    """That of a conductor, which takes what :class:`ConductorDispatcher` hands on."""

    def _answer(self, ctxt: dict[str, object], name: str, envelope: dict[str, object]) -> str:
        return self._receiver.answer(name, envelope, str(ctxt["key"]))
