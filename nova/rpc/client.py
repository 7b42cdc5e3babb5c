"""Clients that are derived from contracts: ``derive(ComputeRPC, sender).build_guests(host, orders)``."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar, cast

import msgspec

from nova import concurrency, context, errors, metrics, tracing
from nova.model.host.services import ContractVersion
from nova.rpc import codec
from nova.rpc.interface import Contract, Method, parse_version

BUSY_S = 20.0  # for which a call is retried while its project has its full share of calls in progress
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5

C = TypeVar("C", bound=Contract)

Send = Callable[[type[Contract], Method, str | None, dict[str, object]], object]


class Peers:
    """The lowest version of each contract that control daemons use, as reported by the conductor, and the version of
    each host. Pinned versions take precedence."""

    def __init__(self, pins: dict[str, str] | None = None) -> None:
        self._pins = dict(pins or {})
        self._lowest: dict[str, str] = {}
        self._hosts: Mapping[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def learn(self, versions: Iterable[ContractVersion]) -> None:
        """Store the control daemons' versions. ``versions``: values with a contract's ``name`` and ``version``."""
        with self._lock:
            self._lowest = {version.name: version.version for version in versions}

    def learn_hosts(self, versions: Mapping[tuple[str, str], str]) -> None:
        """Store the hosts' versions. ``versions``: by a contract's name and the host that serves it."""
        with self._lock:
            self._hosts = versions

    @property
    def has_learned(self) -> bool:
        """True after a conductor has reported the contracts that control daemons serve."""
        return bool(self._lowest)

    def serves(self, contract: type[Contract]) -> bool:
        """Return whether a known control daemon serves the contract."""
        return contract.__name__ in self._lowest

    def speak(self, contract: type[Contract], server: str | None = None) -> str:
        """Return the version to use with servers of ``contract``. For one host it is that host's own version: hosts do
        not affect each other."""
        with self._lock:
            known = self._hosts.get((contract.__name__, server)) if server else self._lowest.get(contract.__name__)
            return self._pins.get(contract.topic) or known or contract.version

    def check(self, contract: type[Contract], method: Method, server: str | None = None) -> str:
        """Return the version to use. Raises PeerTooOld if ``method`` is newer."""
        version = self.speak(contract, server)
        if parse_version(method.since) > parse_version(version):
            who = f"nova-{contract.topic} on {server} supports" if server else f"{contract.topic} servers support"
            raise errors.PeerTooOld(f"{who} RPC version {version}; {method.name} needs {method.since}: upgrade it")
        return version


class Sender(NamedTuple):
    """The sending host, its peers' versions, and the function that sends."""

    host: str
    peers: Peers
    send: Send


class _Client:
    """Base of all clients; the contract's methods are added to it."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender


def derive(contract: type[C], sender: Sender) -> C:
    """Return an object with one function per method of the contract."""
    made = _class_of(contract)(sender)  # type: ignore[arg-type]  # mypy takes its __hash__ for its objects'
    return cast(C, made)  # its class has the contract's methods


@functools.cache
def _class_of(contract: type[Contract]) -> type[_Client]:
    namespace = {name: _function(contract, method) for name, method in contract.methods.items()}
    return type(f"{contract.__name__}Client", (_Client,), namespace)


def _function(contract: type[Contract], method: Method) -> object:
    def ask(self: _Client, *args: object, **kwargs: object) -> object:
        sender = self._sender
        arguments = method.named(args, kwargs)
        addressed = arguments.get(contract.addressed_by) if contract.addressed_by else None
        server = None if addressed is None else str(addressed)
        version = sender.peers.check(contract, method, server)
        packed = codec.pack(method.arguments(**arguments))
        with (metrics.timed(metrics.RPC_CALLS, contract.__name__, method.name),
              tracing.span(f"{contract.__name__}.{method.name}", tracing.CLIENT, **({"nova.host": server} if server
                                                                                    else {}))):
            who = context.current() if contract.carries_token else context.current().without_token()
            body = codec.to_text(codec.pack(codec.CallMessage(who, msgspec.Raw(packed))))
            envelope: dict[str, object] = {"contract": version, "sender": sender.host, "body": body}
            return _patiently(method, lambda: sender.send(contract, method, server, envelope))

    ask.__name__ = method.name
    ask.__doc__ = getattr(contract, method.name).__doc__
    return ask


def _patiently(method: Method, send: Callable[[], object]) -> object:
    """Send the call and return its result, with retries while the caller's project has its full share of calls in
    progress. A caller that waits here occupies no worker of the server. Raises daemon.RpcProjectBusy after
    ``BUSY_S``."""
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
    """Return the result in a reply's text, or raise the peer's error as its kind."""
    answer = codec.unpack(codec.from_text(text), codec.CallReply)
    if answer.error is not None:
        raise errors.from_wire(*answer.error)
    return codec.unpack(answer.result, method.result)
