"""Services assembled from parts: one part implements each call of the contract."""

from __future__ import annotations

from nova.rpc.interface import Contract


class Assembled:
    """The methods of a contract, collected from parts."""


def assemble(contract: type[Contract], *parts: object) -> Assembled:
    """Return an implementation of ``contract``. Raises TypeError if a method has no part, or more than one."""
    whole = Assembled()
    for name in contract.methods:
        able = [part for part in parts if callable(getattr(part, name, None))]
        if len(able) != 1:
            raise TypeError(f"{contract.__name__}.{name} is implemented by {len(able)} parts")
        setattr(whole, name, getattr(able[0], name))
    return whole
