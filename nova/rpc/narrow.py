"""Clients of a contract that is a part of another one, for daemons that may ask no more than the part.

Servers of the release before serve the whole contract alone: while nobody serves the part, the whole is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from nova import errors
from nova.model.base import Library
from nova.rpc.client import Peers
from nova.rpc.interface import Contract


class NarrowClient:
    """The methods of ``contract``, asked of whoever serves it. ``bus``: of control daemons."""

    def __init__(self, bus: Library, contract: type[Contract]) -> None:
        self._peers, self._contract = bus.peers, contract
        self._part, self._whole = bus.client(contract), bus.client(whole_of(contract))

    def __getattr__(self, name: str) -> Callable[..., Library]:
        def ask(*args: object, **kwargs: object) -> object:
            if spoken(self._peers, self._contract) is self._contract:
                with contextlib.suppress(*self._passing()):
                    return getattr(self._part, name)(*args, **kwargs)
            return getattr(self._whole, name)(*args, **kwargs)
        if name not in self._contract.methods:
            raise AttributeError(name)
        return ask

    def _passing(self) -> tuple[type[errors.NovaError], ...]:
        """Before a conductor has told what is served, nobody may be there to serve it."""
        return () if self._peers.has_learned else (errors.daemon.RpcNotDelivered,)


def whole_of(contract: type[Contract]) -> type[Contract]:
    """The contract that it is a part of. TypeError: it is none."""
    if contract.part_of is None:
        raise TypeError(f"{contract.__name__} is no part of another contract")
    return contract.part_of


def spoken(peers: Peers, contract: type[Contract]) -> type[Contract]:
    """The contract itself where somebody serves it, or nothing is known yet; else the whole."""
    return contract if peers.serves(contract) or not peers.has_learned else whole_of(contract)
