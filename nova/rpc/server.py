"""RPC servers: arguments are validated by type before a handler runs, and errors are returned by kind, never by
class."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from nova import context, errors, failures, metrics, tracing
from nova.rpc import codec
from nova.rpc.interface import Contract, Method, parse_version
from nova.rpc.proofs import AuthenticatedMethod, Proofs

LOG = logging.getLogger(__name__)

LOGGED = (errors.Bug, errors.daemon.RpcForged, errors.daemon.RpcOrderNotProven, errors.daemon.RpcTooManyCalls,
          errors.daemon.RpcNotEnrolled)
Take = Callable[[str, str], bool]
PART = 0.8  # of the caller's timeout; the rest is for the transport, and for cleanup after the last failure


class Receiver:
    """Conversion of envelopes into calls of an implementation.

    ``proofs``: each message needs a host's proof, and its reply carries a proof for that host. ``take(host,
    message_id)``: returns True if no other server has accepted this message; None if this is the only server of the
    contract. ``waits_s(method)``: the callers' timeout, in seconds. ``at_once``: the maximum of concurrent calls from
    one host, or among control daemons from one project; further calls are refused. 0: no limit.
    """

    def __init__(self, contract: type[Contract], implementation: object, proofs: Proofs | None = None,
                 waits_s: Callable[[Method], float] | None = None, at_once: int = 0,
                 take: Take | None = None) -> None:
        check_signatures(contract, implementation)
        self._waits_s = waits_s or (lambda method: math.inf)
        self.contract, self.implementation, self.proofs = contract, implementation, proofs
        self._take = take
        self._at_once, self._under_way, self._lock = at_once, collections.Counter[str](), threading.Lock()

    def handle(self, name: str, envelope: dict[str, object]) -> str:
        """Return the reply's text. Never raises: an exception becomes an error in the reply."""
        try:
            return self.answer(name, envelope, self.proven(name, envelope))
        except errors.NovaError as error:
            self._log_refused(name, envelope, error)
            return codec.to_text(codec.pack(codec.CallReply(error=codec.error_to_wire(error))))

    def proven(self, name: str, envelope: dict[str, object]) -> str:
        """Return the key for the reply's proof; empty without proofs. Raises daemon.RpcOrderNotProven for an order
        without a valid proof: it is not from the conductors, so to them this host appears unreachable. Raises the
        errors of :meth:`Proofs.check` for such a call, and errors.Bug if the check fails."""
        method, began = self.contract.methods[name], time.monotonic()
        with failures.keep_running(LOG, "cannot check the proof of %s", name, but=errors.NovaError), \
                failures.reported_to(lambda error: self._count(name, error.kind, began), on=errors.NovaError):
            return self._key_of(method, envelope)
        self._count(name, errors.Bug.kind, began)
        raise errors.Bug()

    def answer(self, name: str, envelope: dict[str, object], key: str) -> str:
        """Return the reply's text for a message that ``key`` proves. Raises daemon.RpcReplayed if another server has
        accepted the message, and replies to it; no other error, like :meth:`handle`."""
        method, began = self.contract.methods[name], time.monotonic()
        reply, outcome = None, errors.Bug.kind
        try:
            with failures.keep_running(LOG, "%s failed with an unexpected exception", name, but=errors.NovaError):
                self._take_once(method, envelope)
                result = self._call(method, str(envelope.get("sender", "")), envelope)
                reply, outcome = codec.CallReply(result=msgspec.Raw(codec.pack(result))), metrics.OK
        except errors.NovaError as error:
            if error.code == errors.daemon.RpcReplayed.code:
                raise
            self._log_refused(name, envelope, error)
            reply, outcome = codec.CallReply(error=codec.error_to_wire(error)), error.kind
        reply = reply or codec.CallReply(error=codec.error_to_wire(errors.Bug()))
        self._count(name, outcome, began)
        text = codec.to_text(codec.pack(reply))
        return Proofs.sealed(key, envelope["id"], text) if key else text

    def _take_once(self, method: Method, envelope: dict[str, object]) -> None:
        """Claim the message for this server. Raises daemon.RpcReplayed if another server has accepted it."""
        if self._take is None or method.repeatable:
            return
        sender = str(envelope.get("sender", ""))
        if not self._take(sender, str(envelope["id"])):
            raise errors.daemon.RpcReplayed(host=sender)

    def _count(self, name: str, outcome: str, began: float) -> None:
        metrics.RPC_SERVED.labels(self.contract.__name__, name, outcome).observe(time.monotonic() - began)

    def _log_refused(self, name: str, envelope: dict[str, object], error: errors.NovaError) -> None:
        if isinstance(error, LOGGED) or self.proofs and isinstance(error, errors.Forbidden):
            LOG.error("%s from %s refused: %s", name, envelope.get("sender", ""), error,
                      extra={"error_code": error.code})

    def _call(self, method: Method, sender: str, envelope: dict[str, object]) -> object:
        self._check_version(str(envelope.get("contract", "")))
        message = codec.unpack(codec.from_text(envelope.get("body")), codec.CallMessage)
        arguments = codec.unpack(message.arguments, method.arguments)
        values = {field: getattr(arguments, field) for field in arguments.__struct_fields__}
        self._check_host(values, sender)
        with (self._one_of(self._sharer(method, sender, message.context)),
              context.entered(_with_valid_trace(message.context)), context.waited_for(PART * self._waits_s(method)),
              tracing.span(f"{self.contract.__name__}.{method.name}", tracing.SERVER)):
            started = time.monotonic()
            result = getattr(self.implementation, method.name)(**values)
            LOG.debug("%s from %s took %.1f ms", method.name, sender, 1000 * (time.monotonic() - started))
            return result

    def _key_of(self, method: Method, envelope: dict[str, object]) -> str:
        if self.proofs is None:
            return ""
        if not self.contract.addressed_by:
            sender = str(envelope.get("sender", ""))
            return self.proofs.check(AuthenticatedMethod(self.contract, method, sender), envelope)
        with failures.replaced(errors.NovaError, lambda error: errors.daemon.RpcOrderNotProven(reason=error.message)):
            return self.proofs.check(AuthenticatedMethod(self.contract, method, ""), envelope)

    def _sharer(self, method: Method, sender: str, who: context.RequestContext) -> str:
        """Return the host or project whose limit a call counts against; empty for a cast, which is not retried and
        would be lost."""
        if self.proofs:
            return sender
        return who.project_id or "" if method.wants_answer else ""

    @contextlib.contextmanager
    def _one_of(self, sharer: str) -> Iterator[None]:
        """Count a call against the limit of its host or project. Calls without either belong to the cloud itself, and
        have no limit. Raises daemon.RpcTooManyCalls; daemon.RpcProjectBusy, after which clients retry."""
        if not (self._at_once and sharer):
            yield
            return
        with self._lock:
            self._under_way[sharer] += 1
            count = self._under_way[sharer]
        try:
            if count > self._at_once:
                busy = errors.daemon.RpcTooManyCalls if self.proofs else errors.daemon.RpcProjectBusy
                raise busy(sender=sharer, most=self._at_once)
            yield
        finally:
            with self._lock:
                self._under_way[sharer] -= 1
                if not self._under_way[sharer]:
                    del self._under_way[sharer]

    def _check_version(self, version: str) -> None:
        with failures.replaced(ValueError,
                lambda _: errors.daemon.RpcMalformed(reason=f"contract version {version!r}")):
            major, _minor = parse_version(version)
        if major != parse_version(self.contract.version)[0]:
            raise errors.PeerTooOld(f"{self.contract.topic} supports {self.contract.version}, the caller has {version}")

    def _check_host(self, values: dict[str, object], sender: str) -> None:
        """Check that in a host-facing contract the ``host`` argument is the sender."""
        if self.contract.addressed_by is None and self.contract.topic.endswith("-host") and values["host"] != sender:
            raise errors.daemon.RpcForged(sender=sender)


def _with_valid_trace(who: context.RequestContext) -> context.RequestContext:
    """Return the context without its trace parent if that is invalid: a host may send any text there."""
    if who.traceparent is None or tracing.valid(who.traceparent):
        return who
    return msgspec.structs.replace(who, traceparent=None)


def check_signatures(contract: type[Contract], implementation: object) -> None:
    """Raise TypeError if the implementation lacks a method of the contract, or has another signature."""
    wrong = []
    for name, method in contract.methods.items():
        function = getattr(implementation, name, None)
        if function is None:
            wrong.append(f"{name}: missing")
            continue
        have, want = _parameters(function), method.arguments.__struct_fields__
        if have != want:
            wrong.append(f"{name}: takes ({', '.join(have)}), the contract has ({', '.join(want)})")
    if wrong:
        raise TypeError(f"{type(implementation).__name__} does not implement {contract.__name__}: {'; '.join(wrong)}")


def _parameters(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of its parameters. A method's are read once for all objects of its class."""
    if not inspect.ismethod(function):
        function = inspect.unwrap(function)
    if inspect.ismethod(function):
        return _of_function(function.__func__)[1:]
    return tuple(inspect.signature(function).parameters)


@functools.cache
def _of_function(function: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
