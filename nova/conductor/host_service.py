"""Service of ConductorHostRPC. It is small on purpose, and checks every call against the host that makes it.

The receiver has already checked that ``host`` is the sender. Here, every row that a call names must belong to that
host.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from nova import decoding, errors, failures
from nova.conductor.actions.create import CREATE_SERVER
from nova.conductor.actions.volume.volume_requests import VolumeActions
from nova.conductor.engine.announce import resources
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts import power_sync
from nova.conductor.hosts.control_daemons import check_contracts, check_lengths
from nova.conductor.hosts.guest_answers import GuestAnswers
from nova.conductor.hosts.hypervisors import HypervisorReports
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conductor.upkeep.orphans import Orphans
from nova.db.host import enrolments, host_cleanups, hosts, reports, services
from nova.db.network import floating, networks
from nova.db.server import migrations, reported_states, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.base import HostName, Time
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.guest.orders import ExpectedGuest, Outcome, Permission, PowerReport
from nova.model.guest.orphans import OrphanRemoval, OrphanReport
from nova.model.host.hosts import HypervisorDown, Inventory
from nova.model.host.services import Alive, Heartbeat, KnownHost, Registered, Registration, ServiceQuery
from nova.model.network import forbidden_ranges
from nova.model.network.networks import LeaseChange, NetworkOnHost
from nova.model.network.security_groups import HostFirewall
from nova.model.security.secret_wrap import SecretWrap
from nova.model.server.migrations import ProgressReport
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeCounts
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.interface import Contract

LOG = logging.getLogger(__name__)

SECRET_LENGTH = 64  # characters

#: Binaries that register by this contract, and the contracts that they serve.
SERVED: dict[str, tuple[type[Contract], ...]] = {
    services.COMPUTE: (ComputeRPC,), services.NETWORK: (NetworkRPC,), services.METADATA: ()}

MOST_GUESTS = 10_000  # guests of one host
RANGES_S = 2.0  # seconds for which one read of the guests' ranges serves all hosts


class HostService:
    """The service behind the topic ``conductor-host``."""

    def __init__(self, deps: Deps, daemons: ServiceRegistry, clock: Callable[[], float] = time.monotonic,
                 send_echo: Callable[[type[Contract], str], None] | None = None, shared: bool = False) -> None:
        """Create the service. ``send_echo``: as :meth:`nova.rpc.bus.AnyBus.send_echo`. ``shared``: for upstream mode,
        where hosts use the control daemons' vhost and enroll themselves."""
        self.deps, self.daemons, self.guests, self._clock = deps, daemons, GuestAnswers(deps), clock
        self._send_echo, self._shared = send_echo, shared
        self.strangers, self.volumes, self.hypervisors = Orphans(deps), VolumeActions(deps), HypervisorReports(deps)
        self._ranges: tuple[str, ...] = ()
        self._ranges_at = float("-inf")

    # -- the daemon itself

    def register(self, host: HostName, registration: Registration) -> Registered:
        """Register one of the host's daemons. Raises host.NotYours if it names another host; host.NoHostDaemon,
        host.NotEnrolledFor, PeerTooOld; host.WrongIdentity, host.Renamed."""
        _same(host, registration.host)
        _check_daemon(registration)

        keep = enrolments.keep_first_secret if self._shared else _keep_secret

        def write(tx: Connection) -> None:
            if self._shared:
                enrolments.meet(tx, host, registration.binary)
            enrolments.isolate(tx, host, not self._shared)
            runs = enrolments.runs(tx, host)
            if registration.binary not in runs:
                raise errors.host.NotEnrolledFor(host=host, binary=registration.binary,
                                                 runs=", ".join(runs) or "nothing")
            if registration.secret:
                keep(tx, host, registration.secret, self.deps.secret_wrap)
            enrolments.keep_addresses(tx, host, registration.addresses)
        self.deps.cell.transact(write)
        if registration.secret:
            LOG.info("host %s registered its signing key", host)
        return self.daemons.register(registration)

    def change_secret(self, host: HostName, secret: str) -> None:
        """Replace the host's secret. Raises host.WeakSecret."""
        if len(secret) != SECRET_LENGTH:
            raise errors.host.WeakSecret(host=host, length=SECRET_LENGTH)
        self.deps.cell.transact(lambda tx: enrolments.keep_secret(tx, host, secret, self.deps.secret_wrap,
                                                                  keep_former=True))
        LOG.info("host %s changed its secret; the previous one stays valid for an hour", host)

    def heartbeat(self, host: HostName, beat: Heartbeat) -> Alive:
        """Record a heartbeat, and send an echo if the daemon asks for one. Raises host.NotYours if it names another
        host."""
        _same(host, beat.host)
        alive = self.daemons.heartbeat(beat)
        return msgspec.structs.replace(alive, echoed=True) if self._echoed(host, beat) else alive

    def _echoed(self, host: HostName, beat: Heartbeat) -> bool:
        """True if an echo was sent to the host, or the host has no queue for it: then it does not receive RPC
        either."""
        contracts = SERVED.get(beat.binary)
        if not beat.wants_echo or not contracts or self._send_echo is None:
            return False
        try:
            self._send_echo(contracts[0], host)
        except errors.daemon.RpcNotDelivered:
            LOG.warning("%s on host %s sends heartbeats but has no queue for orders", beat.binary, host)
        except errors.NovaError:
            return False
        return True

    def still_here(self, host: HostName, beat: Heartbeat) -> None:
        """Record a heartbeat, and tell a host with pending cleanups to look for them: resources that it releases late
        are unavailable to others."""
        _same(host, beat.host)
        if self.daemons.heartbeat(beat).cleanups_pending and beat.binary == "nova-compute":
            with contextlib.suppress(errors.NovaError):  # the next heartbeat repeats it
                self.deps.compute.look_for_debts(host)

    def known_host(self, host: HostName) -> KnownHost:
        """Return the host's enrolment and services. Three statements, about this host alone."""
        with self.deps.cell.reading() as tx:
            rows = services.select(tx, ServiceQuery(host=host, hidden=True))
            down = self.deps.settings.service_down_time
            return KnownHost(now=services.now(tx), runs=enrolments.runs(tx, host), services=tuple(
                services.value(row, clock, down, "") for row, clock in rows if row.binary in SERVED))

    def report_inventory(self, host: HostName, inventory: Inventory) -> None:
        """Store a host's inventory, and send changes to the schedulers. Excessive amounts are not used until an
        operator accepts them (:mod:`nova.model.placement.accepted_capacity`). Raises host.NotYours, host.BadInventory,
        host.NotRegistered, host.NodeNotYours."""
        _same(host, inventory.host)
        _check_numbers(inventory)

        def write(tx: Connection) -> enrolments.AcceptedCapacity | None:
            if services.compute_id(tx, host) != inventory.host_id:
                raise errors.host.NotRegistered(host=host, host_id=inventory.host_id)
            new = hosts.write_nodes(tx, inventory)
            return enrolments.note_capacity(tx, host, reports.claimed_room(inventory)) if new else None
        believed = self.deps.cell.transact(write)
        if believed is None:
            return
        if believed.newly_beyond:
            LOG.warning("host %s claims much more %s than before; capped at twice the previous amount until you run "
                        "'nova-manage host accept %s'", host, ", ".join(believed.newly_beyond), host)
        self.deps.api_side.apply_inventory(inventory, believed.limits)

    # -- guests of the host

    def report_power(self, host: HostName, report: PowerReport) -> None:
        """Record reported power states, and stop the guests that should be off. Raises host.NotYours."""
        _same(host, report.host)
        power_sync.report(self.deps, report)

    def report_outcomes(self, host: HostName, operation_ids: tuple[int, ...], outcomes: tuple[Outcome, ...]) -> None:
        """Set servers of a running batch that are up to ACTIVE now; failures wait for the batch's answer."""
        done = {outcome.server_uuid: outcome for outcome in outcomes if outcome.ok}
        self.deps.cell.transact(lambda tx: self._finish_early(tx, host, operation_ids, done))

    def _finish_early(self, tx: Connection, host: str, ids: Sequence[int], done: dict[str, Outcome]) -> None:
        build = CREATE_SERVER.steps[-1].name
        for entry in states.at_step(tx, host, ids, list(done), build):
            states.show_active(tx, entry, int(done[entry.server_uuid].power_state))

    def report_progress(self, host: HostName, reports: tuple[ProgressReport, ...]) -> None:
        """Store progress reports. Reports of an operation that is no longer its server's newest are dropped."""
        def write(tx: Connection) -> None:
            for report in reports:
                # only for a live migration that this host sends, while its operation is the server's newest
                if reported_states.note_progress(tx, host, report.server_uuid, report.epoch, report.percent):
                    migrations.report(tx, report.server_uuid, host, report.progress)
        self.deps.cell.transact(write)

    def may_proceed(self, host: HostName, asked: tuple[Permission, ...]) -> tuple[Permission, ...]:
        """Return one permission for each that was asked, in the same order. Orders for deleted servers are refused.
        Raises Invalid for more guests than any host has."""
        _check_count(asked)
        with self.deps.cell.reading() as tx:
            newest = servers.epochs(tx, [one.server_uuid for one in asked])
        return tuple(Permission(server_uuid=one.server_uuid, epoch=one.epoch,
                                granted=newest.get(one.server_uuid) == one.epoch) for one in asked)

    def expected_guests(self, host: HostName, have: tuple[str, ...]) -> tuple[ExpectedGuest, ...]:
        """Return the guests that the host should have, and its guests that are gone. ``have``: UUIDs of the host's
        guests. A guest without a record of its deletion is in neither part, so that it is not removed. The answer never
        includes servers that were never on the host. Raises Invalid for more guests than any host has."""
        _check_count(have)
        with self.deps.cell.reading() as tx:
            here = servers.on_host(tx, host)
            others = set(have) - {row.uuid for row in here}
            found = servers.rows_of(tx, sorted(others), with_deleted=True).values() if others else ()
            gone = [row for row in found if row.deleted]
            was_here = _were_on(tx, host, [row.uuid for row in gone if row.host != host])
            now = services.now(tx) if gone else None
        expected = [self._expected(row, None) for row in here]
        return (*expected, *[self._expected(row, now) for row in gone if row.host == host or row.uuid in was_here])

    def _expected(self, row: ServerRow, now: Time | None) -> ExpectedGuest:
        """Return a guest as its host expects it. ``now``: the database's time, for a deleted server."""
        gone_s = int((now - row.deleted_at).total_seconds()) if now is not None and row.deleted_at else 0
        name = servers.instance_name(self.deps.settings.instance_name_template, row)
        return ExpectedGuest(server_uuid=row.uuid, instance_name=name, epoch=row.epoch, vm_state=row.vm_state,
                             task_state=row.task_state, power_state=PowerState(row.power_state),
                             gone=now is not None, gone_s=max(0, gone_s))

    def report_strangers(self, host: HostName, report: OrphanReport) -> tuple[OrphanRemoval, ...]:
        """Store reported orphans and return those to remove, if an operator ordered it. Raises host.NotYours,
        orphan.BadReport."""
        _same(host, report.host)
        return self.strangers.report(host, report)

    def volumes_given_up(self, host: HostName, server_uuid: str, volume_ids: tuple[str, ...]) -> None:
        """Detach volumes that a guest has released; see the contract. Raises errors of the volume service's client."""
        self.volumes.detach_given_up(host, server_uuid, volume_ids)

    def report_hypervisor_down(self, host: HostName, report: HypervisorDown) -> None:
        """Log and announce that the hypervisor is down; see the contract. Stores no data."""
        self.hypervisors.down(host, report)

    def report_volume_usage(self, host: HostName, counts: tuple[VolumeCounts, ...]) -> None:
        """Send volume usage notifications; see the contract. Stores no data, and reads none if notifications are
        off."""
        resources.volume_usage(self.deps, host, counts)

    def debt_paid(self, host: HostName, debt_id: int) -> None:
        """Complete a pending cleanup."""
        self.deps.api_side.complete_cleanup(host, debt_id)

    # -- requests of guests

    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return a guest's metadata facts. Raises guest.UnknownName if there is no such guest, or this host may not ask
        for it. Raises Invalid and Unavailable from Neutron's answers about its network."""
        return self.guests.guest_facts(host, query)

    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store a guest's password. Raises guest.UnknownName if there is no such guest, or this host may not ask for
        it; guest.PasswordKept."""
        self.guests.set_guest_password(host, password)

    # -- networks

    def host_firewall(self, host: HostName) -> HostFirewall:
        """Return the host's firewall; only a mark if Neutron's agents filter."""
        return self.deps.networking.firewall_on(host)

    def guest_ranges(self, host: HostName) -> tuple[str, ...]:
        """Return the ranges of guests' addresses. Two statements, whose result serves all hosts for some seconds."""
        now = self._clock()
        if now - self._ranges_at > RANGES_S:
            with self.deps.cell.reading() as tx:
                self._ranges = forbidden_ranges.collapsed((*networks.ranges(tx), *floating.addresses(tx)))
            self._ranges_at = now
        return self._ranges

    def networks_on_host(self, host: HostName) -> tuple[NetworkOnHost, ...]:
        """Return the host's own networks, and the multi-host networks in which it has guests or an address. One
        statement."""
        with self.deps.cell.reading() as tx:
            return networks.on_host(tx, host=host)

    def network_for_guest(self, host: HostName, network_uuid: str) -> NetworkOnHost:
        """Return a network that the host serves. Raises network.NotFound, also if another host serves it."""
        with self.deps.cell.reading() as tx:
            found = networks.on_host(tx, host=host, uuids_=[network_uuid])
        if not found:
            raise errors.network.NotFound(network_id=network_uuid)
        return found[0]

    def report_lease(self, host: HostName, lease: LeaseChange) -> None:
        """Record a DHCP lease change. Only ``add`` and ``del`` have an effect; addresses of other hosts' networks are
        ignored. Raises host.NotYours."""
        _same(host, lease.host)
        if lease.action in ("add", "del"):
            self.deps.cell.transact(lambda tx: networks.note_lease(tx, host, lease.address, lease.mac,
                                                                    lease.action == "add"))


def _check_count(named: Sequence[object]) -> None:
    if len(named) > MOST_GUESTS:
        raise errors.Invalid(f"{len(named)} guests are named; a host has at most {MOST_GUESTS}.")


def _check_numbers(inventory: Inventory) -> None:
    """Check that all numbers of an inventory are finite. RPC messages can carry infinity and NaN, but JSON cannot.
    Stored ones could not be read again, and would end the updates about all hosts."""
    with failures.replaced(msgspec.ValidationError,
            lambda error: errors.host.BadInventory(host=inventory.host, reason=str(error))):
        decoding.from_json(msgspec.json.encode(inventory), Inventory)


def _were_on(tx: Connection, host: str, uuids: Sequence[str]) -> set[str]:
    """Return the deleted servers that were on the host earlier: moved from or to it, or with a pending cleanup on
    it."""
    if not uuids:
        return set()
    pending = {one.server_uuid for one in host_cleanups.pending(tx, host, with_held=True)}
    return pending & set(uuids) | migrations.moved_by(tx, host, uuids)


def _keep_secret(tx: Connection, host: HostName, secret: str, wrap: SecretWrap) -> None:
    enrolments.keep_secret(tx, host, secret, wrap, keep_former=False)


def _same(host: str, other: str) -> None:
    if host != other:
        raise errors.host.NotYours(host=host, other=other)


def _check_daemon(registration: Registration) -> None:
    """Check that the daemon runs on hosts, and serves only its contracts."""
    if registration.binary not in SERVED:
        raise errors.host.NoHostDaemon(host=registration.host, binary=registration.binary)
    check_lengths(registration)
    check_contracts(registration, SERVED)
