"""Clients, derived from contracts: ``derive(ComputeRPC, sender).build_guests(host, orders)``."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from nova import concurrency, context, errors, metrics, tracing
from nova.model.base import Json
from nova.rpc import codec
from nova.rpc.interface import Contract, Method, parse_version

BUSY_S = 20.0  # for which a project that has its share under way is waited with
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5

Send = Callable[[type[Contract], Method, str | None, dict[str, Any]], Any]


class Peers:
    """The lowest version of each contract in use among control daemons, as the conductor's answers tell it, and of each
    host its own; pins stand above them."""

    def __init__(self, pins: dict[str, str] | None = None) -> None:
        self._pins = dict(pins or {})
        self._lowest: dict[str, str] = {}
        self._hosts: Mapping[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def learn(self, versions: Iterable[Json]) -> None:
        """``versions``: values with a contract's ``name`` and ``version``."""
        with self._lock:
            self._lowest = {version.name: version.version for version in versions}

    def learn_hosts(self, versions: Mapping[tuple[str, str], str]) -> None:
        """``versions``: by a contract's name and the host that serves it."""
        with self._lock:
            self._hosts = versions

    @property
    def has_learned(self) -> bool:
        """Whether a conductor has told what control daemons serve."""
        return bool(self._lowest)

    def serves(self, contract: type[Contract]) -> bool:
        """Whether a control daemon is known that serves it."""
        return contract.__name__ in self._lowest

    def speak(self, contract: type[Contract], server: str | None = None) -> str:
        """The version to speak to servers of ``contract``; to one host, its own: no host decides for another."""
        with self._lock:
            known = self._hosts.get((contract.__name__, server)) if server else self._lowest.get(contract.__name__)
            return self._pins.get(contract.topic) or known or contract.version

    def check(self, contract: type[Contract], method: Method, server: str | None = None) -> str:
        """The version to speak; PeerTooOld when ``method`` is newer."""
        version = self.speak(contract, server)
        if parse_version(method.since) > parse_version(version):
            who = f"nova-{contract.topic} on {server} speaks" if server else f"{contract.topic} servers speak"
            raise errors.PeerTooOld(f"{who} {version}; {method.name} needs {method.since}: upgrade first")
        return version


class Sender(NamedTuple):
    """Who sends, and how."""

    host: str
    peers: Peers
    send: Send


class _Client:
    """What clients of all contracts have; the rest is the contract's methods."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender


def derive(contract: type[Contract], sender: Sender) -> object:
    """An object with one function a method of the contract."""
    return _class_of(contract)(sender)  # type: ignore[arg-type]  # mypy takes its __hash__ for its objects'


@functools.cache
def _class_of(contract: type[Contract]) -> type[_Client]:
    namespace = {name: _function(contract, method) for name, method in contract.methods.items()}
    return type(f"{contract.__name__}Client", (_Client,), namespace)


def _function(contract: type[Contract], method: Method) -> object:
    def ask(self: _Client, *args: object, **kwargs: object) -> object:
        sender = self._sender
        bound = method.signature.bind(self, *args, **kwargs)
        arguments = dict(list(bound.arguments.items())[1:])
        server = arguments.get(contract.addressed_by) if contract.addressed_by else None
        version = sender.peers.check(contract, method, server)
        packed = codec.pack(method.arguments(**arguments))
        with (metrics.timed(metrics.RPC_CALLS, contract.__name__, method.name),
              tracing.span(f"{contract.__name__}.{method.name}", tracing.CLIENT, **({"nova.host": server} if server
                                                                                    else {}))):
            who = context.current() if contract.carries_token else context.current().without_token()
            body = codec.to_text(codec.pack(codec.CallMessage(who, msgspec.Raw(packed))))
            envelope = {"contract": version, "sender": sender.host, "body": body}
            return _patiently(method, lambda: sender.send(contract, method, server, envelope))

    ask.__name__ = method.name
    ask.__doc__ = getattr(contract, method.name).__doc__
    return ask


def _patiently(method: Method, send: Callable[[], Json]) -> object:
    """The answer; asked for again while the caller's project has its share of those who answer under way: who waits
    here keeps none of them. daemon.RpcProjectBusy after a while."""
    until, pause = time.monotonic() + BUSY_S, FIRST_PAUSE_S
    while True:
        try:
            text = send()
            return read_answer(method, text) if method.wants_answer else None
        except errors.Unavailable as error:
            if error.code != errors.daemon.RpcProjectBusy.code or time.monotonic() > until:
                raise
        concurrency.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(2 * pause, LONGEST_PAUSE_S)


def read_answer(method: Method, text: object) -> object:
    """The result in an answer's text; a peer's error is raised as its kind."""
    answer = codec.unpack(codec.from_text(text), codec.CallReply)
    if answer.error is not None:
        raise errors.from_wire(*answer.error)
    return codec.unpack(answer.result, method.result)
