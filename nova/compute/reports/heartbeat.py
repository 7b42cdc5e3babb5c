"""The host's heartbeat. Most are casts, which is one message; some ask, and the answer has what changed elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from nova import errors
from nova.model.base import HostName
from nova.model.services import Alive, Heartbeat
from nova.rpc.contracts.conductor_host import ConductorHostRPC

ASKS_EVERY = 4  # a host learns within so many intervals of cleanups, of newer peers, and that nobody knows it any more


class Beats:
    """Called once an interval. ``conductor``: a ConductorHostRPC client; ``heard``: what is done with an answer."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, binary: str,
                 heard: Callable[[Alive], object]) -> None:
        self._conductor, self._heard = conductor, heard
        self._beat = Heartbeat(host=host, binary=binary)
        self._until_question = 0

    def __call__(self) -> None:
        """The first one asks; and so does the next one after a question without an answer."""
        if self._until_question and self._sent():
            self._until_question -= 1
            return
        self._until_question = 0
        alive = self._conductor.heartbeat(self._beat.host, self._beat)
        self._until_question = ASKS_EVERY - 1
        self._heard(alive)

    def _sent(self) -> bool:
        """False: a conductor is too old for a cast."""
        try:
            self._conductor.still_here(self._beat.host, self._beat)
        except errors.PeerTooOld:
            return False
        return True
