"""The host's heartbeat. Most are casts, which is one message; some ask, and the answer has what changed elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nova import errors
from nova.model.base import utcnow
from nova.model.host.services import Alive, Heartbeat
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.hearing import Hearing

ASKS_EVERY = 4  # a host learns within so many intervals of cleanups, of newer peers, and that nobody knows it any more


class Beats:
    """Called once an interval. ``conductor``: a ConductorHostRPC client; ``beat``: what is said; ``heard``: what is
    done with an answer; ``hearing``: that of the bus, by which orders come."""

    def __init__(self, conductor: ConductorHostRPC, beat: Heartbeat, heard: Callable[[Alive], object],
                 hearing: Hearing) -> None:
        self._conductor, self._beat, self._heard, self._hearing = conductor, beat, heard, hearing
        self._until_question = 0

    def __call__(self) -> None:
        """The first one asks; and so does the next one after a question without an answer."""
        if self._until_question and self._sent():
            self._until_question -= 1
            return
        self._until_question = 0
        alive = self._conductor.heartbeat(self._beat.host, self._now(wants_echo=True))
        self._until_question = ASKS_EVERY - 1
        if alive.echoed:
            self._hearing.expect()
        self._heard(alive)

    def _now(self, wants_echo: bool = False) -> Heartbeat:
        return msgspec.structs.replace(self._beat, wants_echo=wants_echo, deaf_s=self._hearing.silent_s,
                                       sent_at=utcnow())

    def _sent(self) -> bool:
        """False: a conductor is too old for a cast."""
        try:
            self._conductor.still_here(self._beat.host, self._now())
        except errors.PeerTooOld:
            return False
        return True
