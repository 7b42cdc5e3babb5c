"""The host's heartbeat. Most heartbeats are casts, which is one message; some are calls, whose answer reports
changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from nova import errors
from nova.model.base import utcnow
from nova.model.host.services import Alive, Heartbeat
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.rpc_watchdog import RpcWatchdog

ASKS_EVERY = 4  # interval after which a host learns of cleanups, newer peers, and that it is unknown


class Heartbeats:
    """Sends a heartbeat, once an interval. ``conductor``: a ConductorHostRPC client; ``beat``: the message;
    ``on_heartbeat``: handles an answer; ``watchdog``: the RPC watchdog of the bus from which orders arrive."""

    def __init__(self, conductor: ConductorHostRPC, beat: Heartbeat, on_heartbeat: Callable[[Alive], object],
                 watchdog: RpcWatchdog) -> None:
        self._conductor, self._heartbeat, self._on_heartbeat, self._watchdog = conductor, beat, on_heartbeat, watchdog
        self._until_question = 0

    def __call__(self) -> None:
        """Send a heartbeat: the first is a call, and after a call without an answer, so is the next."""
        if self._until_question and self._sent():
            self._until_question -= 1
            return
        self._until_question = 0
        alive = self._conductor.heartbeat(self._heartbeat.host, self._now(wants_echo=True))
        self._until_question = ASKS_EVERY - 1
        if alive.echoed:
            self._watchdog.expect()
        self._on_heartbeat(alive)

    def _now(self, wants_echo: bool = False) -> Heartbeat:
        return msgspec.structs.replace(self._heartbeat, wants_echo=wants_echo, rpc_silent_s=self._watchdog.silent_s,
                                       sent_at=utcnow())

    def _sent(self) -> bool:
        """Send a cast; return False if a conductor is too old for it."""
        with contextlib.suppress(errors.PeerTooOld):
            self._conductor.still_here(self._heartbeat.host, self._now())
            return True
        return False
