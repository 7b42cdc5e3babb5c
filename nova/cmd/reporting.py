"""A control daemon's registration and heartbeats, beside its work."""

from __future__ import annotations

import logging

from nova import concurrency, context, errors
from nova.conf.base import Options
from nova.model.base import Library, utcnow
from nova.model.host.services import ContractVersion, Heartbeat, Registration
from nova.model.security.security_modes import SecurityMode, stated
from nova.rpc.host_secret import HostSecret
from nova.service import BEAT_AGAIN_S, Every, patiently
from nova.version import RELEASE

LOG = logging.getLogger(__name__)

ECHO_EVERY = 4  # heartbeats


def say_mode(mode: str) -> None:
    """Log the cloud's security mode, as a conductor told it; an older one does not."""
    if mode:
        LOG.info("%s", stated(SecurityMode(mode)))


class HostVoice:
    """``register`` and ``heartbeat`` of the host-facing contract, called as those of control daemons are."""

    def __init__(self, conductor: Library, host: str, secret: HostSecret) -> None:
        self.conductor, self.host, self.secret = conductor, host, secret

    def register(self, registration: Registration) -> Library:
        """As ``ConductorHostRPC.register``, in this host's name; by its token, where it has one and needs it."""
        return self.secret.introduce(lambda said: self.conductor.register(self.host, said), registration,
                                     lambda fresh: self.conductor.change_secret(self.host, fresh))

    def heartbeat(self, beat: Heartbeat) -> Library:
        """As ``ConductorHostRPC.heartbeat``, in this host's name."""
        return self.conductor.heartbeat(self.host, beat)


class Reporting:
    """``register`` once the conductor answers, then ``heartbeat``; registers again when it is not known any more."""

    def __init__(self, options: Options, binary: str, topic: str, bus: Library, conductor: Library) -> None:
        self.host, self.binary, self.topic = options.host, binary, topic
        self.bus, self.conductor = bus, conductor
        self.period = float(options.report_interval)
        self.contracts: tuple[type, ...] = ()
        self.stopped, self._beats = False, 0
        self._every: Every | None = None

    def start(self, contracts: tuple[type, ...] = ()) -> None:
        """Beside: a daemon works before a conductor knows it, and while it is refused, which is one line in the log."""
        concurrency.spawn(self._begin_beside, contracts, name="register")

    def _begin_beside(self, contracts: tuple[type, ...]) -> None:
        try:
            self.begin(contracts)
        except Exception as error:
            if self.stopped:
                return  # its bus is closed under it
            if not isinstance(error, errors.NovaError):
                raise
            LOG.error("the conductors refuse %s, and list it nowhere: %s", self.binary, error.message)

    def begin(self, contracts: tuple[type, ...]) -> None:
        """The same, and come back once the conductor has answered."""
        self.contracts = contracts
        with context.entered(context.internal()):
            patiently("registering with the conductor", self._register, lambda: self.stopped)
        self._every = Every(self.period, self._beat, "heartbeat", again_s=BEAT_AGAIN_S).start()

    def _register(self) -> None:
        versions = tuple(ContractVersion(name=one.__name__, version=one.version)  # type: ignore[attr-defined]
                         for one in self.contracts)
        answer = self.conductor.register(Registration(
            host=self.host, binary=self.binary, topic=self.topic, contracts=versions, release=RELEASE))
        say_mode(answer.mode)
        self.bus.peers.learn(answer.lowest)
        self.period = float(answer.report_interval_s)

    def _beat(self) -> None:
        """What control daemons hear they send to themselves; a host asks the conductor for it."""
        self._beats += 1
        alive = self.conductor.heartbeat(Heartbeat(
            host=self.host, binary=self.binary, deaf_s=self.bus.hearing.silent_s, sent_at=utcnow(),
            wants_echo=self._beats % ECHO_EVERY == 0))
        if alive.echoed:
            self.bus.hearing.expect()
        self.bus.peers.learn(alive.lowest)
        if not alive.known:
            self._register()

    def stop(self) -> None:
        """No more heartbeats: the daemon counts as down after a while. A registration that still waits is given up."""
        self.stopped = True
        if self._every:
            self._every.stop()
