"""Registration of control daemons. Any holder of their broker user can register, so each registration is checked
against a table."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.registration import ServiceRegistry
from nova.db.host import enrolments, services
from nova.model.base import HostName, Time
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.contracts.console_check import ConsoleCheckRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.control_rights import CONSOLE_PROXIES
from nova.rpc.interface import Contract, parse_version

Served = Mapping[str, Sequence[type[Contract]]]

#: Binaries that register by ConductorRPC, and the contracts that they serve. Conductors write their own rows; the
#: hosts' daemons have a separate API, with proofs.
SERVED: Served = {
    "nova-scheduler": (SchedulerRPC,), "nova-consoleauth": (ConsoleAuthRPC, ConsoleCheckRPC), "nova-cert": (CertRPC,),
    "nova-objectstore": (ObjectStoreRPC,), "nova-osapi_compute": (), "nova-ec2": (), "nova-placement-api": (),
    **dict.fromkeys(CONSOLE_PROXIES, ())}
#: Binaries that register by the contracts of daemons whose broker users are limited.
PROXIES: Served = {name: SERVED[name] for name in CONSOLE_PROXIES}
SCHEDULERS: Served = {"nova-scheduler": SERVED["nova-scheduler"]}

MOST_ROWS = 1000  # rows of one binary: invented names from a stolen daemon cannot fill the table
LONGEST_NAME, LONGEST_WORD = 255, 64  # widths of the columns, in characters


class ControlDaemons:
    """``register``, ``heartbeat`` and ``ping`` of ConductorRPC. ``served``: the binaries that may register."""

    def __init__(self, daemons: ServiceRegistry, served: Served = SERVED) -> None:
        self.daemons, self._served = daemons, served

    def register(self, registration: Registration) -> Registered:
        """Register a control daemon. Raises daemon.NotAControlDaemon, daemon.TooManyDaemons, daemon.LongRegistration.
        Raises PeerTooOld if it serves another daemon's contract, or another major version of its own."""
        self._check_binary(registration.host, registration.binary)
        check_lengths(registration)
        check_contracts(registration, self._served)
        if self.daemons.is_new(registration) and self.daemons.count(registration.binary) >= MOST_ROWS:
            raise errors.daemon.TooManyDaemons(binary=registration.binary, most=MOST_ROWS)
        return self.daemons.register(registration)

    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record a heartbeat. Raises daemon.NotAControlDaemon, so that no other daemon can keep a host marked up."""
        self._check_binary(beat.host, beat.binary)
        return self.daemons.heartbeat(beat)

    def get_clock(self) -> Time:
        """Return the database's time. Raises Unavailable if the database does not answer."""
        return self.daemons.clock()

    def ping(self, host: HostName) -> str:
        """Check the database on behalf of ``host``. Raises Unavailable if it does not answer."""
        return self.daemons.ping(host)

    def _check_binary(self, host: str, binary: str) -> None:
        if binary not in self._served:
            raise errors.daemon.NotAControlDaemon(host=host, binary=binary)


class MetadataServices(ControlDaemons):
    """Metadata services in upstream mode. Each is also added to its host's enrolment, so that after a move to bounded
    mode it is accepted as one of that host's daemons."""

    def __init__(self, deps: Deps, daemons: ServiceRegistry) -> None:
        super().__init__(daemons, {services.METADATA: ()})
        self._deps = deps

    def register(self, registration: Registration) -> Registered:
        """Register the service and add it to its host's enrolment. Raises daemon.NotAControlDaemon,
        daemon.TooManyDaemons, daemon.LongRegistration, PeerTooOld."""
        registered = super().register(registration)
        self._deps.cell.transact(lambda tx: enrolments.also_runs(tx, registration.host, registration.binary))
        return registered


def check_lengths(registration: Registration) -> None:
    """Check that the registration's texts fit their columns. Raises daemon.LongRegistration."""
    short = (registration.topic, registration.release)
    if len(registration.host) > LONGEST_NAME or any(len(word) > LONGEST_WORD for word in short):
        raise errors.daemon.LongRegistration(binary=registration.binary)


def check_contracts(registration: Registration, table: Served) -> None:
    """Check that a daemon serves only the contracts of ``table``: the lowest version decides what its peers speak.
    Raises PeerTooOld."""
    known = {contract.__name__: contract for contract in table[registration.binary]}
    for served in registration.contracts:
        if served.name not in known or not _of_this_major(served.version, known[served.name]):
            raise errors.PeerTooOld(f"{registration.binary} on {registration.host} speaks {served.name} "
                                    f"{served.version}, which is incompatible with this conductor: install the "
                                    "conductor's release")


def _of_this_major(version: str, contract: type[Contract]) -> bool:
    with contextlib.suppress(ValueError):
        return parse_version(version)[0] == parse_version(contract.version)[0]
    return False
