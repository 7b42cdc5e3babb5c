"""Admission check before a point of no return: asks the conductor once whether all orders of a batch may proceed.
Batches that ask at the same time share a call."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence

from nova import concurrency, errors
from nova.compute.host import Host
from nova.gathering import PATIENCE_S, Gathering
from nova.model.guest.orders import Permission
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

#: Validity of an answer, from the time of the question. A runner that loses this host takes longer than that to notice
#: (its lease and this host's heartbeats take 20 s and more) and to continue elsewhere.
GRANTED_S = 5.0

ASK_FOR_S = 20.0  # a broker that restarts is back within this time; after it, the order fails
ASK_AGAIN_S = 1.0


#: Returns the conductor's answer for each server and epoch.
Ask = Callable[[tuple[Permission, ...]], tuple[Permission, ...]]


def shared_question(conductor: ConductorHostRPC, host: Host, patience_s: float = PATIENCE_S) -> Ask:
    """Return the question of this host's batches. If no conductor answers, it has failed for all that share the call.
    ``patience_s``: how long a batch waits for a call in progress."""
    def ask(questions: Sequence[tuple[Permission, ...]]) -> list[tuple[Permission, ...]]:
        answers = {(one.server_uuid, one.epoch): one
                   for one in conductor.may_proceed(host.name, tuple(itertools.chain(*questions)))}
        return [tuple(answers[key] for one in question if (key := (one.server_uuid, one.epoch)) in answers)
                for question in questions]
    return Gathering("may proceed", ask, lambda error: isinstance(error, errors.Unavailable), len,
                     patience_s=patience_s)


class BatchPermission:
    """The admission check of one batch. The first order asks for all that have not passed yet; the others use the
    answer."""

    def __init__(self, ask: Ask, host: Host) -> None:
        self._ask_conductor, self._host = ask, host
        self._waiting: dict[str, int] = {}  # UUID -> epoch
        self._granted: set[str] = set()
        self._failure: str | None = None
        self._asked_at: float | None = None
        self._lock = threading.Lock()

    def expect(self, server_uuid: str, epoch: int) -> None:
        """Register a server of this batch. Called before any of its orders reaches the check."""
        self._waiting[server_uuid] = epoch

    def leave(self, server_uuid: str) -> None:
        """Remove the server: it needs no further answer."""
        with self._lock:
            self._waiting.pop(server_uuid, None)

    def pass_(self, server_uuid: str) -> None:
        """Pass if the order may proceed. Raises Overtaken if the epoch is not the newest; host.OrderCannotAsk if no
        conductor answers."""
        with self._lock:
            if self._asked_at is None or self._host.clock.monotonic() - self._asked_at > GRANTED_S:
                self._ask()
            if self._failure is not None:
                raise errors.host.OrderCannotAsk(host=self._host.name, reason=self._failure)
            if server_uuid not in self._granted:
                raise errors.host.OrderNotGranted(uuid=server_uuid, epoch=self._waiting.get(server_uuid))

    def _ask(self) -> None:
        """Ask the conductor for all waiting servers; retry for a while if it does not answer."""
        asked = tuple(Permission(server_uuid=uuid, epoch=epoch) for uuid, epoch in self._waiting.items())
        self._failure, self._granted = None, set()
        clock = self._host.clock
        until = clock.monotonic() + ASK_FOR_S
        while True:
            self._asked_at = clock.monotonic()
            try:
                answer = self._ask_conductor(asked)
                break
            except Exception as error:  # without an answer the orders are not granted, for any reason
                if not isinstance(error, errors.Unavailable) or clock.monotonic() >= until:
                    LOG.warning("could not ask the conductor whether %d guests may proceed: %s", len(asked),
                                error)
                    self._failure = str(error)
                    return
                LOG.info("asking the conductor again whether orders may proceed: %s", error)
            concurrency.sleep(ASK_AGAIN_S)
        self._granted = {each.server_uuid for each in answer
                         if each.granted and self._waiting.get(each.server_uuid) == each.epoch}
