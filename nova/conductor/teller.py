"""Tells network hosts their networks' states: whole, stamped, and many changes in one message.

While one telling is on its way, those who come wait together for the next, which begins after all their changes are
committed: a burst of a hundred boots costs a few tellings, not a hundred.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Iterable
from typing import Any

from nova import concurrency, errors
from nova.db import networks
from nova.db.engine import Database

LOG = logging.getLogger(__name__)


class NoNetworkHost(errors.Unavailable):
    code = "network.no_host"
    message = "Network {network} has no host: start nova-network on one."


class _Round:
    """One telling: the networks it is about, and its end."""

    def __init__(self) -> None:
        self.networks: set[str] = set()
        self.done = threading.Event()
        self.errors: dict[str, errors.NovaError] = {}  # by network


class Teller:
    def __init__(self, cell: Database, network: Any) -> None:
        self.cell, self.network = cell, network
        self._lock = threading.Lock()
        self._next: _Round | None = None
        self._telling = False

    def tell(self, uuids: Iterable[str]) -> None:
        """Come back when the hosts of these networks know what is committed now. Unavailable: one does not answer."""
        wanted = set(uuids)
        if not wanted:
            return
        with self._lock:
            mine = self._next = self._next or _Round()
            mine.networks |= wanted
            lead, self._telling = not self._telling, True
        if lead:
            concurrency.spawn(contextvars.copy_context().run, self._lead, name="teller")
        mine.done.wait()
        for uuid in wanted:
            if uuid in mine.errors:
                raise mine.errors[uuid]

    def _lead(self) -> None:
        """Run rounds until nobody waits for one: in a thread of its own, so that who came first need not stay."""
        while True:
            with self._lock:
                current, self._next = self._next, None
                if current is None:
                    self._telling = False
                    return
            try:
                self._tell(current)
            except errors.NovaError as error:
                current.errors = dict.fromkeys(current.networks, error)
            except Exception as error:  # the next round must come whatever happened in this one
                LOG.exception("network hosts could not be told")
                current.errors = dict.fromkeys(current.networks, errors.Bug(type(error).__name__))
            finally:
                current.done.set()

    def _tell(self, current: _Round) -> None:
        states = self.cell.transact(lambda tx: networks.stamped(tx, sorted(current.networks)))
        by_host: dict[str, list[Any]] = {}
        for state in states:
            if state.network.host is None:
                current.errors[state.network.uuid] = NoNetworkHost(network=state.network.label)
            else:
                by_host.setdefault(state.network.host, []).append(state)
        for host, served in by_host.items():
            try:
                self.network.serve_networks(host, tuple(served))
            except errors.NovaError as error:
                current.errors |= {state.network.uuid: error for state in served}
