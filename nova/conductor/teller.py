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
from nova.db import networks, services
from nova.db.engine import Database
from nova.model.networks import NetworkOnHost

LOG = logging.getLogger(__name__)


class NoNetworkHost(errors.Unavailable):
    code = "network.no_host"
    message = "Network {network} has no host: start nova-network on one."


class HostDown(errors.Unavailable):
    code, message = "network.host_down", "nova-network on '{host}' does not report."


class _Round:
    """One telling: the networks it is about, and its end. Of networks that each host serves for its own guests, the
    hosts that are to be told (and those of them where all are)."""

    def __init__(self) -> None:
        self.networks: set[str] = set()
        self.hosts: set[str] = set()
        self.everywhere: set[str] = set()
        self.done = threading.Event()
        self.errors: dict[tuple[str, str | None], errors.NovaError] = {}  # by network, and host of a multi-host one

    def add(self, networks_: set[str], hosts: set[str] | None) -> None:
        self.networks |= networks_
        self.hosts |= hosts or set()
        self.everywhere |= networks_ if hosts is None else set()

    def wants(self, state: NetworkOnHost, host: str | None) -> bool:
        return not state.network.multi_host or host in self.hosts or state.network.uuid in self.everywhere


class Teller:
    """``down_after_s``: silence after which a multi-host network's host is not waited for."""

    def __init__(self, cell: Database, network: Any, down_after_s: int = 90) -> None:
        self.cell, self.network, self._down_after_s = cell, network, down_after_s
        self._lock = threading.Lock()
        self._next: _Round | None = None
        self._telling = False

    def tell(self, uuids: Iterable[str], hosts: Iterable[str] | None = None) -> None:
        """Come back when the hosts of these networks (of multi-host ones: these hosts, or all) know what is committed
        now. Unavailable: one does not answer."""
        wanted, at = set(uuids), None if hosts is None else set(hosts)
        if not wanted:
            return
        with self._lock:
            mine = self._next = self._next or _Round()
            mine.add(wanted, at)
            lead, self._telling = not self._telling, True
        if lead:
            concurrency.spawn(contextvars.copy_context().run, self._lead, name="teller")
        mine.done.wait()
        for (uuid, host), error in mine.errors.items():
            if uuid in wanted and (host is None or at is None or host in at):
                raise error

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
                current.errors = {(uuid, None): error for uuid in current.networks}
            except Exception as error:  # the next round must come whatever happened in this one
                LOG.exception("network hosts could not be told")
                current.errors = {(uuid, None): errors.Bug(type(error).__name__) for uuid in current.networks}
            finally:
                current.done.set()

    def _tell(self, current: _Round) -> None:
        states = self.cell.transact(lambda tx: networks.stamped(tx, sorted(current.networks)))
        by_host: dict[str, list[NetworkOnHost]] = {}
        for host, state in states:
            if host is None:
                current.errors[(state.network.uuid, None)] = NoNetworkHost(network=state.network.label)
            elif current.wants(state, host):
                by_host.setdefault(host, []).append(state)
        down = self._down({host for host, served in by_host.items() if all(one.network.multi_host for one in served)})
        for host, served in by_host.items():
            try:
                if host in down:
                    raise HostDown(host=host)
                self.network.serve_networks(host, tuple(served))
            except errors.NovaError as error:
                current.errors |= {(one.network.uuid, host if one.network.multi_host else None): error
                                   for one in served}

    def _down(self, hosts: set[str]) -> set[str]:
        """Those of the hosts whose nova-network has not been heard of: one that is off keeps nobody waiting."""
        if not hosts:
            return set()
        with self.cell.reading() as tx:
            up = services.up(tx, services.NETWORK, self._down_after_s)
        return hosts - up
