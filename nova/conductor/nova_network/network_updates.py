"""Tells network hosts their networks' states: whole, stamped, and many changes in one message.

A round reads the states of all networks that somebody changed since the last one; each host is told by a queue of its
own (:mod:`nova.conductor.nova_network.host_queues`). A round waits a moment for its hosts, so that the next one gathers
more, and no longer: who told a host that hangs waits for it alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from nova import errors
from nova.conductor.engine.deps import Failures
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.conductor.nova_network.host_queues import HostQueues, HostUpdate
from nova.db.host import services
from nova.db.network import networks
from nova.db.sql.engine import Database
from nova.model.network.networks import NetworkOnHost
from nova.rpc.contracts.network import NetworkRPC

LOG = logging.getLogger(__name__)

PATIENCE_S = 130.0  # of who waits for hosts: two calls to one, of which the first was on its way
LOOK_S = 15.0  # of who has taken something from a host, and could go on without its knowing
GRACE_S = 1.0  # of a round
ALL = ""  # states are read for all hosts at once: one reading at a time


class _Round(Batch):
    """One reading of states: of which networks, and what became of it. Of networks that each host serves for its own
    guests, the hosts that are to be told (``everywhere``: those where all are, besides)."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[str, set[str]] = {}
        self.everywhere: set[str] = set()
        self.failures: Failures = {}
        self.messages: dict[tuple[str, str | None], tuple[str, HostUpdate]] = {}  # with the host

    def add(self, uuids: set[str], hosts: set[str], everywhere: bool) -> None:
        for uuid in uuids:
            self.hosts.setdefault(uuid, set()).update(hosts)
        self.everywhere |= uuids if everywhere else set()

    def wants(self, state: NetworkOnHost, host: str | None) -> bool:
        uuid = state.network.uuid
        return not state.network.multi_host or host in self.hosts[uuid] or uuid in self.everywhere

    def fail(self, error: errors.NovaError) -> None:
        self.failures = {(uuid, None): error for uuid in self.hosts}


class NetworkUpdates:
    """``down_after_s``: silence after which a host is not waited for; it is told all when it is back."""

    def __init__(self, cell: Database, network: NetworkRPC, down_after_s: int = 90,
                 patience_s: float = PATIENCE_S) -> None:
        self.cell, self._down_after_s, self._patience_s = cell, down_after_s, patience_s
        self.queues = HostQueues(network)
        self._rounds = Coalescer(_Round, self._read, "network-updates")

    def send(self, uuids: Iterable[str], hosts: Iterable[str] | None = None) -> None:
        """Come back when the hosts of these networks (of multi-host ones: these hosts, or all) know what is committed
        now. Unavailable: one does not answer."""
        failures = self.try_send(uuids, () if hosts is None else hosts, hosts is None)
        for error in failures.values():
            raise error

    def try_send(self, uuids: Iterable[str], hosts: Iterable[str], everywhere: bool = False) -> Failures:
        """The same, and who does not know it. ``everywhere``: of multi-host networks, these hosts and all others."""
        wanted, at = set(uuids), set(hosts)
        if not wanted:
            return {}
        end = time.monotonic() + self._patience_s
        mine = self._join(wanted, at, everywhere)
        if not mine.done.wait(self._patience_s):
            return {(uuid, None): errors.network.TellingLate(seconds=self._patience_s) for uuid in wanted}
        def concerns(key: tuple[str, str | None]) -> bool:
            return key[0] in wanted and (key[1] is None or everywhere or key[1] in at)
        failures = {key: error for key, error in mine.failures.items() if concerns(key)}
        for key, (host, message) in mine.messages.items():
            if not concerns(key):
                continue
            if not message.done.wait(max(0.0, end - time.monotonic())):
                failures[key] = errors.network.HostLate(host=host, seconds=self._patience_s)
            elif message.error is not None:
                failures[key] = message.error
        return failures

    def look_anew(self, hosts: Iterable[str]) -> None:
        """Networks are these hosts' no more: they ask what they have still. Those that are down or slow find it out by
        themselves."""
        wanted, end = set(hosts), time.monotonic() + LOOK_S
        messages = {host: self.queues.look_anew(host) for host in sorted(wanted - self._down(wanted))}
        for host, message in messages.items():
            if not message.done.wait(max(0.0, end - time.monotonic())):
                LOG.warning("host %s has not looked yet which networks are its still", host)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _join(self, uuids: set[str], hosts: set[str], everywhere: bool) -> _Round:
        return self._rounds.join(ALL, lambda one: one.add(uuids, hosts, everywhere))[0]

    def _read(self, _all: str, current: _Round) -> None:
        begun: list[HostUpdate] = []
        try:
            begun = self._send(current)
        except errors.NovaError as error:
            current.fail(error)
        except Exception as error:
            LOG.exception("network hosts could not be told")
            current.fail(errors.Bug(type(error).__name__))
        finally:
            current.done.set()
        end = time.monotonic() + GRACE_S
        for message in begun:
            message.done.wait(max(0.0, end - time.monotonic()))

    def _send(self, current: _Round) -> list[HostUpdate]:
        """Begin to tell the hosts; the messages of those that had nothing to do before."""
        states = self.cell.transact(lambda tx: networks.stamped(tx, current.hosts))
        by_host: dict[str, list[NetworkOnHost]] = {}
        for host, state in states:
            if host is None:
                current.failures[(state.network.uuid, None)] = errors.network.NoHost(network=state.network.label)
            elif current.wants(state, host):
                by_host.setdefault(host, []).append(state)
        down, begun = self._down(set(by_host)), []
        for host, served in by_host.items():
            keys = [(one.network.uuid, host if one.network.multi_host else None) for one in served]
            if host in down:
                current.failures.update(dict.fromkeys(keys, errors.network.HostDown(host=host)))
                continue
            message, begins = self.queues.serve(host, served)
            current.messages.update(dict.fromkeys(keys, (host, message)))
            if begins:
                begun.append(message)
        return begun

    def _down(self, hosts: set[str]) -> set[str]:
        """Those of the hosts whose nova-network has not been heard of: one that is off keeps nobody waiting."""
        if not hosts:
            return set()
        with self.cell.reading() as tx:
            return hosts - services.up(tx, services.NETWORK, self._down_after_s, hosts)


__all__ = ["NetworkUpdates"]
