"""A service made of parts: each call of its contract is answered by one of them."""

from __future__ import annotations

from nova.rpc.interface import Contract


class Assembled:
    """The methods of a contract, gathered from parts."""


def assemble(contract: type[Contract], *parts: object) -> Assembled:
    """An implementation of ``contract``; TypeError when a method has no part or more than one."""
    whole = Assembled()
    for name in contract.methods:
        able = [part for part in parts if callable(getattr(part, name, None))]
        if len(able) != 1:
            raise TypeError(f"{contract.__name__}.{name} is answered by {len(able)} parts")
        setattr(whole, name, getattr(able[0], name))
    return whole
