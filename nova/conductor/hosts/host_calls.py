"""Repeated calls to hosts that came back.

An order that a dead nova-compute had taken off its queue is lost. Its caller would wait for the full
``long_rpc_silence``, although the host is back within seconds. A broker that was away may also have lost the order, or
its answer.

So a waiting call to a host is sent again, with a new start deadline, as soon as its host registers again or this
conductor reconnects to the broker. Repeating is harmless: a known order is joined or answered with its result, an
unknown one is carried out, and an overtaken one is refused.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import threading
from collections.abc import Callable, Mapping

import msgspec

from nova import concurrency, errors
from nova.conductor.steps.guests import start_by
from nova.db.host import services
from nova.db.sql.engine import Database
from nova.model.guest.orders import Fence
from nova.rpc.interface import Contract, Method, Timeout

LOG = logging.getLogger(__name__)


SILENT = (errors.daemon.RpcNoAnswer, errors.daemon.RpcNotDelivered)


class HostCalls:
    """Client with the methods of ``contract`` that repeats calls of class LONG. Call :meth:`look` every second: it
    reads the database only while calls wait. ``reconnections``: the count of this process's reconnections to the hosts'
    broker."""

    def __init__(self, contract: type[Contract], client: object, cell: Database,
                 reconnections: Callable[[], int]) -> None:
        self._cell, self._reconnections = cell, reconnections
        self._waiting: set[_Call] = set()
        self._lock = threading.Lock()
        for name, method in contract.methods.items():
            ask = getattr(client, name)
            lasts = method.timeout is Timeout.LONG
            sent = functools.partial(self._call, contract, method, ask) if lasts else ask
            setattr(self, name, functools.partial(self._explained, contract, method, sent))

    def _explained(self, contract: type[Contract], method: Method, ask: Callable[..., object], *args: object,
              **kwargs: object) -> object:
        """Return the answer; if there is none, the error says when the host was last seen."""
        try:
            return ask(*args, **kwargs)
        except SILENT as error:
            host = str(method.signature.bind(None, *args, **kwargs).arguments[contract.addressed_by or ""])
            raise type(error)(f"{error.message} {self._last_heartbeat(host)}", **error.data) from None

    def _last_heartbeat(self, host: str) -> str:
        try:
            with self._cell.reading() as tx:
                age_s = services.silent_s(tx, services.COMPUTE, host)
        except errors.NovaError:
            return "When it was last seen is unknown: the database does not answer."
        return "It was never seen." if age_s is None else f"It was last seen {age_s:.0f} s ago."

    def _call(self, contract: type[Contract], method: Method, ask: Callable[..., object], *args: object,
              **kwargs: object,
             ) -> object:
        arguments = dict(list(method.signature.bind(None, *args, **kwargs).arguments.items())[1:])
        call = _Call(arguments[contract.addressed_by or ""], method.name, ask, arguments, self._reconnections())
        with self._lock:
            self._waiting.add(call)
        try:
            return call.answer()
        finally:
            with self._lock:
                self._waiting.discard(call)

    def resend_lost_calls(self) -> None:
        """Send again the calls to hosts that registered since the last check, and those sent over a connection that was
        lost. One statement, for any number of calls."""
        with self._lock:
            waiting = list(self._waiting)
        if not waiting:
            return
        reconnections = self._reconnections()
        with self._cell.reading() as tx:
            stamps = services.stamps(tx, services.COMPUTE, {call.host for call in waiting})
        for call in waiting:
            call.see(stamps.get(call.host), reconnections)


class _Call:
    """A call to a host, sent once or more; the first answer counts. An unanswered earlier attempt is not an error."""

    def __init__(self, host: str, name: str, ask: Callable[..., object], arguments: Mapping[str, object],
                 reconnections: int) -> None:
        self.host, self.name, self._ask, self._arguments = host, name, ask, arguments
        self._reconnections = reconnections
        self._context = contextvars.copy_context()
        self._stamp: services.ServicesStamp | None = None  # the host's registration, as of the first check
        self._sent = 0
        self._answer: object = None
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()

    def answer(self) -> object:
        self._send()
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._answer

    def see(self, stamp: services.ServicesStamp | None, reconnections: int) -> None:
        """Send the call again if its host has registered since (an administrator's change of the service does not
        count), or after a reconnection to the broker."""
        before, self._stamp = self._stamp, stamp
        if before and stamp and stamp.version != before.version and stamp.changed_at == before.changed_at:
            self._send_again(f"host {self.host} registered again")
        elif reconnections != self._reconnections:
            self._send_again("the broker connection was re-established")
        self._reconnections = reconnections

    def _send_again(self, reason: str) -> None:
        LOG.info("%s while a call to host %s was waiting (%s); sending it again", reason, self.host, self.name)
        self._arguments = {name: _renewed(value) for name, value in self._arguments.items()}
        self._send()

    def _send(self) -> None:
        with self._lock:
            self._sent += 1
            number = self._sent
        concurrency.spawn(self._context.copy().run, self._try, number, name=self.name)

    def _try(self, number: int) -> None:
        answer, error = None, None
        try:
            answer = self._ask(**self._arguments)
        except BaseException as caught:  # re-raised in the caller's thread, with its own class
            error = caught
        with self._lock:
            lost = number < self._sent and isinstance(error, errors.Unavailable)
            if not lost and not self._over.is_set():
                self._answer, self._error = answer, error
                self._over.set()


def _renewed(value: object) -> object:
    """Return orders with a start deadline half a minute from now; other values unchanged."""
    if isinstance(value, tuple):
        return tuple(map(_renewed, value))
    fence = getattr(value, "fence", None)
    if not isinstance(value, msgspec.Struct) or not isinstance(fence, Fence):
        return value
    return msgspec.structs.replace(value, fence=msgspec.structs.replace(fence, start_by=start_by()))


__all__ = ["HostCalls"]
