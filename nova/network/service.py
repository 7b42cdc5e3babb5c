"""The nova-network daemon: receives the states of this host's networks from the conductor, and keeps the host in them.

Orders are states, not deltas. The wanted state is in memory, complete, by network and versioned. The conductor sends it
at the start, with every order, and periodically as a whole, in case an order was lost. When the daemon stops, its work
stays in place: guests keep their gateway, and dnsmasq continues to serve until it is found again.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from nova import concurrency, context, errors
from nova.conf._options import Options
from nova.failures import failure_of
from nova.model.base import HostName
from nova.model.network.networks import NetworkOnHost
from nova.network import options as network_options
from nova.network.host import Filters, HostSide, Machine, NetworkHost, NoHostSide
from nova.network.leases import LeaseBook, LeaseCourier, LeaseSocket, init_lines
from nova.network.options import NetworkHostOptions
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 15.0
MEND_EVERY_S = 30.0  # repair of this host alone: a DHCP server that died, or a rule that was removed
SYNC_EVERY_S = 300.0  # refresh of the whole state from the conductor, against lost orders


class NetworkService:
    """Server of the contract ``network``. :meth:`start` is for the daemon; orders also work before it."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, options: NetworkHostOptions, side: HostSide,
                 book: LeaseBook,
                ) -> None:
        self._conductor, self._host, self._options, self._side, self._book = conductor, host, options, side, book
        self._wanted: dict[str, NetworkOnHost] = {}
        self._served: dict[str, NetworkOnHost] = {}  # by identity: the last applied orders
        self._ordered: set[str] = set()  # networks in orders since the last request for the whole state
        self._synced = False
        self._lock, self._working, self._syncing = threading.RLock(), threading.RLock(), threading.Lock()
        self._stopped = threading.Event()
        self._courier = LeaseCourier(conductor, host, options.networks_path, book)
        self._socket = LeaseSocket(options.networks_path, self._courier, self._init_lines)

    # --- the contract -------------------------------------------------------------------------------------------------

    def serve_networks(self, host: HostName, networks: tuple[NetworkOnHost, ...]) -> None:
        """Serve these networks; see the contract. The rules of other networks stay: before its first order the service
        requests all of them. Of several failures the first is raised, after all others were served. Raises
        network.WrongHost; network.BridgeTaken if another network still has the bridge."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self._fetch(unless_known=True)  # one network's order must not remove the rules of the others
        self._take(networks)
        uuids = [order.network.uuid for order in networks]
        failures = self._bring(uuids)
        taken = {uuid: error for uuid, error in failures.items() if isinstance(error, errors.network.BridgeTaken)}
        if taken:
            self._look_who_stands(taken.keys())
            taken_anew = {uuid for uuid in taken if uuid in self._wanted}
            failures = {uuid: error for uuid, error in failures.items() if uuid not in taken_anew}
            failures |= self._bring(sorted(taken_anew))
        _raise_first(failures)

    def refresh_networks(self, host: HostName) -> None:
        """Refresh all networks; see the contract. Of several failures the first is raised, after all others were
        served. Raises network.WrongHost."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self.sync()

    def check_floating_interface(self, host: HostName, interface: str | None) -> None:
        """Check the device for floating addresses; see the contract. Raises network.WrongHost."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self._side.check_floating(interface)

    def ping(self, host: HostName) -> str:
        """Return this host's name; see the contract. It answers for any requested name."""
        return self._host

    # --- the daemon's life --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to listen for leases, to request the networks and to maintain them. Returns immediately."""
        self._options.networks_path.mkdir(parents=True, exist_ok=True)
        self._courier.collect()
        self._socket.start()
        concurrency.spawn(self._courier.run, name="lease-courier")
        concurrency.spawn(self._keep, name="network-keeper")

    def stop(self) -> None:
        """Stop this daemon's threads; the guests' services continue."""
        self._stopped.set()
        self._courier.stop()
        self._socket.stop()

    def sync(self) -> None:
        """Request all networks of this host, serve them, and remove the others."""
        self._fetch()
        with self._working:
            self._side.keep_only(self._orders())
            self._converge(list(self._wanted), again=True)

    def repair(self) -> None:
        """Repair the host's state after external changes, without a request to the conductor."""
        with self._working:
            with self._lock:
                self._served.clear()
            self._converge(list(self._wanted), again=True)

    # --- internals ----------------------------------------------------------------------------------------------------

    def _fetch(self, unless_known: bool = False) -> None:
        """Fetch the whole wanted state from the conductor; orders that arrive meanwhile stay valid."""
        if unless_known and self._synced:
            return
        with self._syncing:
            if unless_known and self._synced:
                return
            with self._lock:
                self._ordered.clear()
            whole = self._conductor.networks_on_host(self._host)
            with self._lock:
                self._take(whole)
                for gone in set(self._wanted) - self._ordered:
                    del self._wanted[gone]
                    self._served.pop(gone, None)
                self._synced = True

    def _take(self, orders: Iterable[NetworkOnHost]) -> None:
        with self._lock:
            for order in orders:
                uuid = order.network.uuid
                present = self._wanted.get(uuid)
                self._ordered.add(uuid)
                if present is None or order.version >= present.version:
                    self._wanted[uuid] = order
                else:
                    LOG.debug("Version %d of network %s is older than the served one", order.version, uuid)

    def _orders(self) -> list[NetworkOnHost]:
        with self._lock:
            return sorted(self._wanted.values(), key=lambda order: (order.network.id, order.network.uuid))

    def _look_who_stands(self, taken: Set[str]) -> None:
        """Check with the conductor whether the networks that hold these bridges are still served, and end the
        others."""
        LOG.info("Another network has the bridge; asking the conductor whether this host still serves it")
        self._fetch()
        with self._working:
            self._side.keep_only([order for order in self._orders() if order.network.uuid not in taken])

    def _converge(self, uuids: Sequence[str], again: bool = False) -> None:
        """Apply like :meth:`_bring`; of several failures the first is raised, after the rest."""
        _raise_first(self._bring(uuids, again))

    def _bring(self, uuids: Sequence[str], again: bool = False) -> dict[str, Exception]:
        """Apply the newest order of each network, and return the failures, by network (or "").

        A caller that waited for another's turn finds its work done: a hundred orders cost a few turns.
        """
        failures: dict[str, Exception] = {}
        with self._working:
            todo = [order for order in map(self._unserved, uuids) if order is not None]
            if not todo and not again:
                return failures
            orders = self._orders()
            _tried(failures, "", "the packet filter", lambda: self._side.prepare(orders, again))
            for order in todo:
                if _tried(failures, order.network.uuid, f"network {order.network.label}",
                          functools.partial(self._side.serve, order, orders)):
                    self._served[order.network.uuid] = order
        return failures

    def _unserved(self, uuid: str) -> NetworkOnHost | None:
        with self._lock:
            order = self._wanted.get(uuid)
            return None if order is None or self._served.get(uuid) is order else order

    def _init_lines(self, network: str) -> str:
        """Return the leases for dnsmasq's start. It may run while the working lock is held, so it does not take that
        lock."""
        with self._lock:
            order = self._wanted.get(network)
        if order is None:
            return ""
        return init_lines(order.addresses, self._book.held(network), time.time(), self._options.dhcp_lease_time)

    def _keep(self) -> None:
        """Maintain the networks until stopped: the first state from the conductor, then repairs, with a periodic full
        refresh."""
        wait, next_sync = FIRST_RETRY_S, 0.0
        while not self._stopped.is_set():
            asks = time.monotonic() >= next_sync
            with context.entered(context.internal()):
                error = failure_of(self.sync if asks else self.repair)
            if error is None:
                wait = FIRST_RETRY_S
            else:
                LOG.warning("could not set up some networks; retrying: %s", error,
                            exc_info=None if isinstance(error, errors.NovaError) else error)
            if self._synced:
                next_sync = time.monotonic() + SYNC_EVERY_S if asks else next_sync
                self._stopped.wait(MEND_EVERY_S)
            else:
                self._stopped.wait(wait)
                wait = min(2 * wait, LAST_RETRY_S)


def _raise_first(failures: Mapping[str, Exception]) -> None:
    for error in failures.values():
        raise error


def _tried(failures: dict[str, Exception], key: str, what: str, work: Callable[[], None]) -> bool:
    """Run one part and return whether it succeeded; its failure does not affect the other networks."""
    error = failure_of(work)
    if error is None:
        return True
    LOG.error("Could not set up %s: %s", what, error,
              exc_info=None if isinstance(error, errors.NovaError) else error)
    failures[key] = error
    return False


def build(conductor: ConductorHostRPC, host: HostName, conf: Options) -> NetworkService:
    """Return the service with this machine's real parts (for ``nova.cmd``). Raises network.Option, network.Manager,
    whose text the daemon prints before it exits."""
    return assemble(conductor, host, network_options.from_conf(conf))


def assemble(conductor: ConductorHostRPC, host: HostName, options: NetworkHostOptions) -> NetworkService:
    """Return the service from parsed options. Creates ``networks_path``; with ``fake_network`` no device, rule or
    process of the host is touched."""
    options.networks_path.mkdir(parents=True, exist_ok=True)
    book = LeaseBook(options.networks_path / "leases.json")
    side: HostSide = NoHostSide() if options.fake_network else NetworkHost(
        options, _machine(options, lambda: conductor.guest_ranges(host)), book)
    return NetworkService(conductor, host, options, side, book)


def _machine(options: NetworkHostOptions, guests: Callable[[], tuple[str, ...]]) -> Machine:
    from nova.privileged import links
    from nova.privileged.ebtables import frame_filter
    from nova.privileged.forbidding import Forbidding
    from nova.privileged.iptables import IPV4, IPV6, LOCK, Foreign, PacketFilter
    from nova.privileged.runner import SystemRunner

    runner, lock = SystemRunner(), options.state_path / LOCK
    foreign = Foreign(options.iptables_top_regex, options.iptables_bottom_regex)
    ipv4, ipv6 = (PacketFilter(runner, lock, foreign, dialect) for dialect in (IPV4, IPV6))
    forbidding = Forbidding(network_options.forbidden_setting(options), options.dmz_cidr, guests)
    return Machine(links, runner, Filters(ipv4, ipv6, frame_filter(runner, options.state_path)),
                   forbidden=forbidding.now)
