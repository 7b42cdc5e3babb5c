"""Network calls, forwarded to the network back end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Protocol

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.rpc.contracts.conductor_networks import FloatingCalls, NetworkCalls, SecurityGroupCalls


class _Forwarding(Protocol):
    """An object of a class that :func:`_passes_on` returns."""

    deps: Deps


def _passes_on(part: str, calls: type) -> type:
    """Return a class with the methods of ``calls``, each forwarded to that part of the back end."""
    def passing(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def ask(self: _Forwarding, *args: object, **named: object) -> object:
            back_end = self.deps.networking
            method = getattr(getattr(back_end, part), name, None)
            if method is None:
                raise errors.network.NotServed(back_end=back_end.name, call=name)
            answer: object = method(*args, **named)
            return answer
        ask.__name__, ask.__doc__ = name, call.__doc__
        ask.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]  # compared with the contract's
        return ask

    def init(self: _Forwarding, deps: Deps) -> None:
        self.deps = deps
    marked = {name: call for name, call in vars(calls).items() if hasattr(call, "rpc_marks")}
    return type(calls.__name__, (), {"__init__": init, **{name: passing(name, call) for name, call in marked.items()}})


Networks = _passes_on("networks", NetworkCalls)
Floating = _passes_on("floating", FloatingCalls)
SecurityGroups = _passes_on("groups", SecurityGroupCalls)

__all__ = ["Floating", "Networks", "SecurityGroups"]
