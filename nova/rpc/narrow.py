"""Clients of a contract that is a subset of another one, for daemons whose rights cover only the subset.

Servers of the previous release serve only the full contract. While all known servers are of that release, the full one
is called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from nova import errors
from nova.rpc.client import Peers
from nova.rpc.interface import Contract

if TYPE_CHECKING:
    from nova.rpc.bus import AnyBus


class NarrowClient:
    """The methods of ``contract``, called on any of its servers. ``bus``: the control daemons' bus."""

    def __init__(self, bus: AnyBus, contract: type[Contract]) -> None:
        self._peers, self._contract = bus.peers, contract
        self._part, self._whole = bus.client(contract), bus.client(whole_of(contract))

    def __getattr__(self, name: str) -> Callable[..., object]:
        def ask(*args: object, **kwargs: object) -> object:
            if spoken(self._peers, self._contract) is self._contract:
                with contextlib.suppress(*self._passing()):
                    return getattr(self._part, name)(*args, **kwargs)
            return getattr(self._whole, name)(*args, **kwargs)
        if name not in self._contract.methods:
            raise AttributeError(name)
        return ask

    def _passing(self) -> tuple[type[errors.NovaError], ...]:
        """Errors to suppress: before a conductor has reported the served contracts, the subset may have no server."""
        return () if self._peers.has_learned else (errors.daemon.RpcNotDelivered,)


def whole_of(contract: type[Contract]) -> type[Contract]:
    """Return the contract that this one is a subset of. Raises TypeError if it is not a subset of another contract."""
    if contract.part_of is None:
        raise TypeError(f"{contract.__name__} is not a subset of another contract")
    return contract.part_of


def spoken(peers: Peers, contract: type[Contract]) -> type[Contract]:
    """Return the full contract if a known server has it and none has the contract itself, because all are of an older
    release; else the contract itself. A server that has not reported yet is of this release, more likely."""
    whole = whole_of(contract)
    return whole if peers.serves(whole) and not peers.serves(contract) else contract
