"""The daemon: what the conductor says of this host's networks, and keeping the host so.

States, not deltas. What is wanted is in memory, whole, by network and stamped; it comes from the conductor at the
start, with every order, and now and then as a whole again, should an order have been lost. Nothing is taken down when
the daemon stops: guests keep their gateway, and dnsmasq serves on until it is found again.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from nova import concurrency, context, errors
from nova.conf.base import Options
from nova.model.base import HostName
from nova.model.network.networks import NetworkOnHost
from nova.network import options as network_options
from nova.network.host import Filters, HostSide, Machine, NetworkHost, NoHostSide
from nova.network.leases import LeaseBook, LeaseCourier, LeaseSocket, init_lines
from nova.network.options import NetworkHostOptions
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 15.0
MEND_EVERY_S = 30.0  # a look at this host alone: a DHCP server that died, a rule that somebody removed
SYNC_EVERY_S = 300.0  # the conductor's whole word, against lost orders


class NetworkService:
    """Serves the contract ``network``. :meth:`start` is for the daemon; orders are right before it, too."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, options: NetworkHostOptions, side: HostSide,
                 book: LeaseBook,
                ) -> None:
        self._conductor, self._host, self._options, self._side, self._book = conductor, host, options, side, book
        self._wanted: dict[str, NetworkOnHost] = {}
        self._served: dict[str, NetworkOnHost] = {}  # by identity: what the host was last brought to
        self._ordered: set[str] = set()  # networks that orders named since the last whole word was asked for
        self._synced = False
        self._lock, self._working, self._syncing = threading.RLock(), threading.RLock(), threading.Lock()
        self._stopped = threading.Event()
        self._courier = LeaseCourier(conductor, host, options.networks_path, book)
        self._socket = LeaseSocket(options.networks_path, self._courier, self._init_lines)

    # --- the contract -------------------------------------------------------------------------------------------------

    def serve_networks(self, host: HostName, networks: tuple[NetworkOnHost, ...]) -> None:
        """See the contract. The rules of other networks stay: before its first order the service asks for all of them.
        network.WrongHost; network.BridgeTaken, where the bridge is another network's still; of several failures the
        first, after the rest was served."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self._fetch(unless_known=True)  # one network's order must not take away the rules of the others
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
        """See the contract. network.WrongHost; of several failures the first, after the rest was served."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self.sync()

    def check_floating_interface(self, host: HostName, interface: str | None) -> None:
        """See the contract. network.WrongHost."""
        if host != self._host:
            raise errors.network.WrongHost(asked=host, host=self._host)
        self._side.check_floating(interface)

    def ping(self, host: HostName) -> str:
        """See the contract. It answers whatever name it is asked by."""
        return self._host

    # --- the daemon's life --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen for leases, ask the conductor what to serve, and keep it so; returns at once."""
        self._options.networks_path.mkdir(parents=True, exist_ok=True)
        self._courier.collect()
        self._socket.start()
        concurrency.spawn(self._courier.run, name="lease-courier")
        concurrency.spawn(self._keep, name="network-keeper")

    def stop(self) -> None:
        """End our threads; what serves the guests stays."""
        self._stopped.set()
        self._courier.stop()
        self._socket.stop()

    def sync(self) -> None:
        """Ask for every network of this host, serve all, and end what is no network of it any more."""
        self._fetch()
        with self._working:
            self._side.keep_only(self._orders())
            self._converge(list(self._wanted), again=True)

    def mend(self) -> None:
        """Bring the host back to what was served, whatever happened to it since. Asks nobody."""
        with self._working:
            with self._lock:
                self._served.clear()
            self._converge(list(self._wanted), again=True)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _fetch(self, unless_known: bool = False) -> None:
        """The conductor's whole word becomes what is wanted; orders that came meanwhile stand."""
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
                    LOG.debug("Version %d of network %s is older than what is served", order.version, uuid)

    def _orders(self) -> list[NetworkOnHost]:
        with self._lock:
            return sorted(self._wanted.values(), key=lambda order: (order.network.id, order.network.uuid))

    def _look_who_stands(self, taken: Set[str]) -> None:
        """These networks' bridges are others': ask whether they are still, and end those that are not."""
        LOG.info("A bridge is taken by another network: asking whether it is ours to serve still")
        self._fetch()
        with self._working:
            self._side.keep_only([order for order in self._orders() if order.network.uuid not in taken])

    def _converge(self, uuids: Sequence[str], again: bool = False) -> None:
        """As :meth:`_bring`; of several failures the first is raised, after the rest."""
        _raise_first(self._bring(uuids, again))

    def _bring(self, uuids: Sequence[str], again: bool = False) -> dict[str, Exception]:
        """Bring the host to the newest word on each network; what failed, by network (or "").

        Who had to wait for another's turn finds its work done: a hundred orders cost a few turns.
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
        """For dnsmasq's start, which may happen while we hold the working lock: that one is not taken here."""
        with self._lock:
            order = self._wanted.get(network)
        if order is None:
            return ""
        return init_lines(order.addresses, self._book.held(network), time.time(), self._options.dhcp_lease_time)

    def _keep(self) -> None:
        """Until stopped: the first word from the conductor, then mending, with the whole word now and then."""
        wait, next_sync = FIRST_RETRY_S, 0.0
        while not self._stopped.is_set():
            asks = time.monotonic() >= next_sync
            try:
                with context.entered(context.internal()):
                    (self.sync if asks else self.mend)()
                wait = FIRST_RETRY_S
            except Exception as error:
                LOG.warning("Networks are not all served, trying again: %s", error,
                            exc_info=not isinstance(error, errors.NovaError))
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
    """Whether it worked; one network's failure does not keep the others away."""
    try:
        work()
    except Exception as error:
        LOG.error("Could not set up %s: %s", what, error, exc_info=not isinstance(error, errors.NovaError))
        failures[key] = error
        return False
    return True


def build(conductor: ConductorHostRPC, host: HostName, conf: Options) -> NetworkService:
    """The service with this machine's real parts (for ``nova.cmd``). network.Option, network.Manager: the sentence
    to stop with."""
    return assemble(conductor, host, network_options.from_conf(conf))


def assemble(conductor: ConductorHostRPC, host: HostName, options: NetworkHostOptions) -> NetworkService:
    """``build`` from options that were read. It makes ``networks_path``; with ``fake_network`` no device, rule or
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
