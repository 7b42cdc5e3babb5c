"""Servers: what arrives is checked by type before our code sees it; what fails goes back by kind, never by class."""

from __future__ import annotations

import functools
import hmac
import inspect
import logging
import math
import time
from collections.abc import Callable, Iterable

import msgspec

from nova import context, errors
from nova.model.base import Json
from nova.rpc import codec
from nova.rpc.interface import Contract, Method, parse_version

LOG = logging.getLogger(__name__)

PART = 0.8  # of what a caller waits: the rest is for the messages, and for what is done after the last failure

SecretsOf = Callable[[str], Iterable[str]]


class Receiver:
    """Turns envelopes into calls of an implementation.

    ``secrets_of(sender)`` switches the proof's check on: one of these secrets must have made it. Who has none yet may
    only make the calls that introduce it. ``waits_s(method)``: how long callers wait for an answer.
    """

    def __init__(self, contract: type[Contract], implementation: object, secrets_of: SecretsOf | None = None,
                 waits_s: Callable[[Method], float] | None = None) -> None:
        check_signatures(contract, implementation)
        self._waits_s = waits_s or (lambda method: math.inf)
        self.contract, self.implementation, self.secrets_of = contract, implementation, secrets_of

    def handle(self, name: str, envelope: dict[str, object]) -> str:
        """The answer's text. Never raises: an exception becomes an error in the answer."""
        method = self.contract.methods[name]
        try:
            answer = codec.CallReply(result=msgspec.Raw(codec.pack(self._call(method, envelope))))
        except errors.NovaError as error:
            if isinstance(error, (errors.Bug, errors.daemon.RpcMalformed, errors.daemon.RpcForged)):
                LOG.error("%s from %s refused: %s", name, envelope.get("sender"), error)
            answer = codec.CallReply(error=codec.error_to_wire(error))
        except Exception:
            LOG.exception("%s failed unexpectedly", name)
            answer = codec.CallReply(error=codec.error_to_wire(errors.Bug()))
        return codec.to_text(codec.pack(answer))

    def _call(self, method: Method, envelope: dict[str, object]) -> object:
        sender, body = str(envelope.get("sender", "")), envelope.get("body")
        self._check_version(str(envelope.get("contract", "")))
        self._check_proof(method, sender, body, envelope.get("proof"))
        message = codec.unpack(codec.from_text(body), codec.CallMessage)
        arguments = codec.unpack(message.arguments, method.arguments)
        values = {field: getattr(arguments, field) for field in arguments.__struct_fields__}
        self._check_host(values, sender)
        with context.entered(message.context), context.waited_for(PART * self._waits_s(method)):
            started = time.monotonic()
            result = getattr(self.implementation, method.name)(**values)
            LOG.debug("%s from %s took %.1f ms", method.name, sender, 1000 * (time.monotonic() - started))
            return result

    def _check_version(self, version: str) -> None:
        try:
            major, _minor = parse_version(version)
        except ValueError:
            raise errors.daemon.RpcMalformed(reason=f"contract version {version!r}") from None
        if major != parse_version(self.contract.version)[0]:
            raise errors.PeerTooOld(f"{self.contract.topic} speaks {self.contract.version}, the caller {version}")

    def _check_proof(self, method: Method, sender: str, body: object, given: object) -> None:
        if self.secrets_of is None:
            return
        known = False
        for secret in filter(None, self.secrets_of(sender)):
            known = True
            expected = codec.proof(secret, sender, self.contract.topic, method.name, str(body))
            if hmac.compare_digest(expected.encode(), str(given).encode()):
                return
        if known:
            raise errors.daemon.RpcNotProven(sender=sender)
        if not method.introduces:
            raise errors.daemon.RpcForged(sender=sender)

    def _check_host(self, values: dict[str, object], sender: str) -> None:
        """In a host-facing contract, who is named as ``host`` is who sends."""
        if self.contract.addressed_by is None and self.contract.topic.endswith("-host") and values["host"] != sender:
            raise errors.daemon.RpcForged(sender=sender)


def check_signatures(contract: type[Contract], implementation: object) -> None:
    """TypeError when the implementation lacks a method of the contract or has another signature."""
    wrong = []
    for name, method in contract.methods.items():
        function = getattr(implementation, name, None)
        if function is None:
            wrong.append(f"{name}: missing")
            continue
        have, want = _parameters(function), method.arguments.__struct_fields__
        if have != want:
            wrong.append(f"{name}: takes ({', '.join(have)}), the contract says ({', '.join(want)})")
    if wrong:
        raise TypeError(f"{type(implementation).__name__} does not keep {contract.__name__}: {'; '.join(wrong)}")


def _parameters(function: Json) -> tuple[str, ...]:
    """Names of what it takes. A method's are read once for all objects of its class."""
    if not inspect.ismethod(function):
        function = inspect.unwrap(function)
    if inspect.ismethod(function):
        return _of_function(function.__func__)[1:]
    return tuple(inspect.signature(function).parameters)


@functools.cache
def _of_function(function: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
