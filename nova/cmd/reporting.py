"""Registration and heartbeats of a control plane service, in the background."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from nova import concurrency, context, errors, failures
from nova.conf._options import Options
from nova.model.base import utcnow
from nova.model.host.services import Alive, ContractVersion, Heartbeat, Registered, Registration
from nova.model.security.security_modes import SecurityMode, stated
from nova.rpc.host_secret import HostSecret
from nova.service import HEARTBEAT_RETRY_S, PeriodicTask, retry_until_available
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.rpc.bus import AnyBus
    from nova.rpc.contracts.conductor_host import ConductorHostRPC
    from nova.rpc.interface import Contract

LOG = logging.getLogger(__name__)

ECHO_EVERY = 4  # heartbeats
REFUSED_S = 60.0  # after a refused registration, until the next: an operator may have enrolled the host meanwhile


def say_mode(mode: str) -> None:
    """Log the cloud's security mode as reported by a conductor; older conductors do not report it."""
    if mode:
        LOG.info("%s", stated(SecurityMode(mode)))


class Voice(Protocol):
    """A client of a contract by which control plane services register."""

    def register(self, registration: Registration) -> Registered:
        """Register a service."""

    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record that a service is alive."""


class HostVoice:
    """Adapter of the host contract's ``register`` and ``heartbeat`` to the signatures of control plane services."""

    def __init__(self, conductor: ConductorHostRPC, host: str, secret: HostSecret) -> None:
        self.conductor, self.host, self.secret = conductor, host, secret

    def register(self, registration: Registration) -> Registered:
        """Call ``ConductorHostRPC.register`` for this host, with its token if it has and needs one."""
        return self.secret.introduce(lambda said: self.conductor.register(self.host, said), registration,
                                     lambda fresh: self.conductor.change_secret(self.host, fresh))

    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Call ``ConductorHostRPC.heartbeat`` for this host."""
        return self.conductor.heartbeat(self.host, beat)


class Reporting:
    """Registration once the conductor answers, then heartbeats; registers again if its row was deleted."""

    def __init__(self, options: Options, binary: str, topic: str, bus: AnyBus, conductor: Voice) -> None:
        self.host, self.binary, self.topic = options.host, binary, topic
        self.bus, self.conductor = bus, conductor
        self.period = float(options.report_interval)
        self.contracts: tuple[type[Contract], ...] = ()
        self.stopped, self._heartbeats = False, 0
        self._every: PeriodicTask | None = None

    def start(self, contracts: tuple[type[Contract], ...] = ()) -> None:
        """Start in the background: a service works before it is registered, and while registration is refused. That is
        logged once for each reason, and tried again every minute."""
        concurrency.spawn(self._begin_beside, contracts, name="register")

    def _begin_beside(self, contracts: tuple[type[Contract], ...]) -> None:
        logged = None
        while error := failures.failure_of(self.begin, contracts):
            if self.stopped:
                return  # the bus was closed meanwhile; its library raises anything then
            if logged != (reason := (type(error), str(error))):
                self._log_refused(error)
            logged = reason
            concurrency.sleep(REFUSED_S)

    def _log_refused(self, error: Exception) -> None:
        if isinstance(error, errors.NovaError):
            LOG.error("the conductors refused to register %s; until they accept it, it is not listed as a service: %s",
                      self.binary, error.message)
        else:
            LOG.error("%s could not register; until it can, it is not listed as a service", self.binary, exc_info=error)

    def begin(self, contracts: tuple[type[Contract], ...]) -> None:
        """Register, and start heartbeats once the conductor has answered."""
        self.contracts = contracts
        with context.entered(context.internal()):
            retry_until_available("registering with the conductor", self._register, lambda: self.stopped)
        self._every = PeriodicTask(self.period, self._heartbeat, "heartbeat", again_s=HEARTBEAT_RETRY_S).start()

    def _register(self) -> None:
        versions = tuple(ContractVersion(name=one.__name__, version=one.version)
                         for one in self.contracts)
        answer = self.conductor.register(Registration(
            host=self.host, binary=self.binary, topic=self.topic, contracts=versions, release=RELEASE))
        say_mode(answer.mode)
        self.bus.peers.learn(answer.lowest)
        self.period = float(answer.report_interval_s)

    def _heartbeat(self) -> None:
        """Send a heartbeat. To check that RPC is received, control plane services send echoes to themselves, and hosts
        request them from the conductor."""
        self._heartbeats += 1
        alive = self.conductor.heartbeat(Heartbeat(
            host=self.host, binary=self.binary, rpc_silent_s=self.bus.watchdog.silent_s, sent_at=utcnow(),
            wants_echo=self._heartbeats % ECHO_EVERY == 0))
        if alive.echoed:
            self.bus.watchdog.expect()
        self.bus.peers.learn(alive.lowest)
        if not alive.known:
            self._register()

    def stop(self) -> None:
        """Stop heartbeats, so that the service is marked down after a while, and abandon a pending registration."""
        self.stopped = True
        if self._every:
            self._every.stop()
