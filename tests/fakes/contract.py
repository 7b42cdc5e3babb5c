"""Fakes of RPC servers, derived from their contracts.

``ContractFake(NetworkRPC, ping="net1", serve_networks=errors.Unavailable("away")).client()`` is a client whose calls go
through the codec and are answered with what a test gave: a value, an error to raise, or a function of the call's
arguments. A class whose answers have state is one of its subclasses, with a method for each call that needs one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from nova import context, errors
from nova.rpc.client import Peers
from nova.rpc.interface import Contract, Method
from nova.rpc.local import LocalBus


class Call(NamedTuple):
    """A received call, with its context."""

    name: str
    arguments: Mapping[str, Any]
    context: context.RequestContext

    @property
    def said(self) -> Any:
        """The call's argument, or a tuple of them if there are several."""
        values = tuple(self.arguments.values())
        return values[0] if len(values) == 1 else values


class ContractFake:
    """A server of ``contract`` with exactly its calls: an answer for any other call raises TypeError.

    ``calls`` has all received calls, ``done`` the ones answered without an error. Without an answer, a call succeeds if
    the contract needs no result, and is unsupported otherwise. While the server is ``away``, all calls fail.
    """

    contract: ClassVar[type[Contract]]

    def __new__(cls, *given: Any, **answers: Any) -> ContractFake:
        """Create a fake; ``ContractFake(contract)`` has a class with the contract's calls."""
        return super().__new__(_class_of(*given) if cls is ContractFake else cls)

    def __init_subclass__(cls, contract: type[Contract] | None = None) -> None:
        """Add the calls of a subclass. Plain base classes are parts of the fake: each public method answers a call."""
        cls.contract = contract = contract or cls.contract
        parts = [part for part in cls.__mro__ if part is not object and not issubclass(part, ContractFake)]
        _known(contract, [name for part in parts for name in vars(part) if not name.startswith("_")])
        for name, method in contract.methods.items():
            own = getattr(cls, name, None)
            if not hasattr(own, "own"):
                setattr(cls, name, _door(method, own))

    def __init__(self, contract: type[Contract] | None = None, **answers: Any) -> None:
        self.calls: list[Call] = []
        self.done: list[Call] = []
        self.away = False
        self._given: dict[str, Any] = {}
        self.given(**answers)

    def given(self, **answers: Any) -> None:
        """Set the answers of calls: a value, an error to raise, or a function of the call's arguments."""
        _known(self.contract, answers)
        self._given.update(answers)

    def own(self, name: str) -> Callable[..., Any]:
        """Return the class's answer to a call, for a test's answer that delegates to it."""
        return functools.partial(getattr(type(self), name).own, self)

    def asked(self, *names: str) -> list[Any]:
        """Return the arguments of the calls with these names."""
        _known(self.contract, names)
        return [call.said for call in self.calls if call.name in names]

    def forget(self) -> None:
        """Forget the calls received so far."""
        self.calls.clear()
        self.done.clear()

    def client(self, host: str = "local", peers: Peers | None = None) -> Any:
        """Return a client whose calls go through the codec both ways. ``peers``: the servers' versions for it."""
        bus = LocalBus()
        bus.serve(self.contract, self)
        return bus.client(self.contract, host, peers)

    def _answer(self, method: Method, own: Callable[..., Any] | None, arguments: Mapping[str, Any]) -> Any:
        call = Call(method.name, arguments, context.current())
        self.calls.append(call)
        if self.away:
            raise errors.Unavailable(f"nova-{self.contract.topic} did not answer")
        answer = self._own_or_given(method, own, arguments)
        self.done.append(call)
        return answer

    def _own_or_given(self, method: Method, own: Callable[..., Any] | None, arguments: Mapping[str, Any]) -> Any:
        if method.name not in self._given:
            if own is not None:
                return own(self, **arguments)
            if method.result is type(None):
                return None
            raise errors.NotSupported(f"the fake has no answer to {method.name}")
        answer = self._given[method.name]
        if isinstance(answer, BaseException):
            raise answer
        return answer(**arguments) if callable(answer) else answer


@functools.cache
def _class_of(contract: type[Contract]) -> type[ContractFake]:
    return type(f"Fake{contract.__name__}", (ContractFake,), {}, contract=contract)


def _door(method: Method, own: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the method that receives a call. ``own``: the class's answer to it."""
    names = method.arguments.__struct_fields__
    if own is not None and tuple(inspect.signature(own).parameters)[1:] != names:
        raise TypeError(f"{own.__qualname__} is not called with ({', '.join(names)})")

    def call(self: ContractFake, *args: Any, **arguments: Any) -> Any:
        if args:  # a direct call: on the wire, all arguments have names
            arguments = dict(list(method.signature.bind(self, *args, **arguments).arguments.items())[1:])
        return self._answer(method, own, arguments)

    call.__name__, call.__doc__ = method.name, getattr(own, "__doc__", None)
    call.__signature__, call.own = method.signature, own  # type: ignore[attr-defined]  # servers' are looked at
    return call


def _known(contract: type[Contract], names: Any) -> None:
    unknown = sorted({*names} - contract.methods.keys())
    if unknown:
        raise TypeError(f"{contract.__name__} has no {', '.join(unknown)}")
