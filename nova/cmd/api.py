"""nova-api: the compute API and the metadata service, as configured in ``enabled_apis``.

Programs that serve a single API, including Placement's, use this module, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from nova import concurrency, configuration, errors, failures
from nova.cmd import common
from nova.cmd.reporting import HostVoice, Reporting, Voice
from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.conf.wsgi import WsgiOptions
from nova.model.base import Library
from nova.model.security.security_modes import SecurityMode
from nova.monitoring.health import HealthChecks
from nova.rpc.hosts_url import require_hosts_url
from nova.rpc.interface import Contract

if TYPE_CHECKING:
    import socket
    import ssl
    from wsgiref.types import WSGIApplication

    from nova.legacy.signatures.taken import TakenSignatures
    from nova.metadata.app import FactsSource
    from nova.rpc.bus import AnyBus
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

BINARY = "nova-api"
OSAPI, METADATA, PLACEMENT, EC2 = "osapi_compute", "metadata", "placement", "ec2"


def _osapi(options: Options, bus: AnyBus, taken: TakenSignatures | None) -> WSGIApplication:
    from nova.api import app
    from nova.legacy.api_extras import EXTRAS
    from nova.rpc.contracts.cert import CertRPC
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.console_auth import ConsoleAuthRPC

    return app.from_conf(bus.client(ConductorRPC), bus.client(ConsoleAuthRPC), bus.client(CertRPC), options,
                        extras=EXTRAS)


def _metadata(options: Options, bus: AnyBus, taken: TakenSignatures | None) -> WSGIApplication:
    from nova.clients import vendordata
    from nova.metadata import app

    source = cast("FactsSource", bus.client(asked_contract(METADATA, options)))  # both contracts have its methods
    return app.from_conf(source, options, vendordata.from_conf(options))


def _ec2(options: Options, bus: AnyBus, taken: TakenSignatures | None) -> WSGIApplication:
    from nova.legacy.ec2 import app
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.objectstore import ObjectStoreRPC

    return app.from_conf(bus.client(ConductorRPC), bus.client(ObjectStoreRPC), options, taken=taken)


def _placement(options: Options, bus: AnyBus, taken: TakenSignatures | None) -> WSGIApplication:
    from nova.placement import app
    from nova.rpc.contracts.placement import PlacementRPC

    return app.from_conf(bus.client(PlacementRPC), options)


#: All that a worker of any API imports at its start: its parent does it once.
MODULES = ("nova.cmd.health_checks", "nova.rpc.contracts.conductor_host", "nova.rpc.contracts.conductor_metadata")


class ApiKind(NamedTuple):
    """An API that a process can serve, and the name by which it registers. Option names are those in ``section``.
    ``make``: factory of the application, from options, the bus (for the metadata service, that of hosts), and the
    TakenSignatures of all workers, or None if no API needs them. Its name in the tables below is also the name of its
    bounds (:mod:`nova.client_bounds`)."""

    make: Callable[[Options, AnyBus, TakenSignatures | None], WSGIApplication]
    modules: tuple[str, ...]  # imported before workers fork
    section: str
    listen: str
    port: str
    workers: str
    binary: str

    def group(self, options: Options) -> Library:
        """Return the group that has its options."""
        return options if self.section == "DEFAULT" else getattr(options, self.section)

    def address(self, options: Options) -> tuple[str, int]:
        """Return the (address, port) to listen on."""
        group = self.group(options)
        return getattr(group, self.listen), getattr(group, self.port)


#: APIs by name in enabled_apis
APIS = {OSAPI: ApiKind(_osapi, ("nova.api.app", "nova.legacy.api_extras"), "DEFAULT", "osapi_compute_listen",
                       "osapi_compute_listen_port", "osapi_compute_workers", "nova-osapi_compute"),
        METADATA: ApiKind(_metadata, ("nova.metadata.app", "nova.clients.vendordata"), "DEFAULT", "metadata_listen",
                          "metadata_listen_port", "metadata_workers", "nova-metadata"),
        EC2: ApiKind(_ec2, ("nova.legacy.ec2.app",), "DEFAULT", "ec2_listen", "ec2_listen_port", "ec2_workers",
                     "nova-ec2")}
#: all APIs, including those served only by their own program
ALL = {**APIS,
       PLACEMENT: ApiKind(_placement, ("nova.placement.app",), "placement_api", "listen", "listen_port", "workers",
                           "nova-placement-api")}


def bind(options: Options, names: list[str], known: dict[str, ApiKind] | None = None) -> dict[str, socket.socket]:
    """Return listening sockets, created once before workers fork. Raises service.CannotStart with address and option;
    config.Choice, config.Missing.

    ``known``: the possible names (default: those of ``enabled_apis``).
    """
    from nova import http_server

    sockets = {}
    for name in names:
        kind = (known or APIS).get(name)
        if kind is None:
            raise errors.config.Choice(option="[DEFAULT]enabled_apis", known=", ".join(APIS))
        address, port = kind.address(options)
        check_believing(options, name)
        if name == METADATA:
            require_hosts_url(options)
        try:
            sockets[name] = http_server.bind(address, port)
        except OSError as error:
            raise errors.service.CannotStart(reason=f"{address}:{port} ([{kind.section}]{kind.listen}, {kind.port}) "
                                             f"cannot be bound: {error.strerror}") from None
    return sockets


def check_believing(options: Options, name: str) -> None:
    """Check that an API without authentication listens only on this machine; the metadata service, which guests use
    without credentials, is exempt. Raises service.CannotStart."""
    kind = ALL[name]
    if name != METADATA and options.api.auth_strategy == "noauth2":
        check_local(options, "[api]auth_strategy = noauth2", f"[{kind.section}]{kind.listen}", kind.address(options)[0])


def check_rules(options: Options, names: Collection[str]) -> None:
    """Check the operator's policy files once instead of in each worker. Raises api.PolicyBadFile,
    api.PolicyMissingFile."""
    from nova.policies import Policy

    if set(names) - {METADATA}:
        Policy(oslo_conf(options))


def check_own_filters(options: Options, names: Collection[str]) -> None:
    """Check the operator's api-paste.ini once instead of in each worker. Raises errors.config.Unusable."""
    from nova.web.api_paste import surroundings

    for name in {OSAPI, METADATA} & set(names):
        surroundings(options, name)


def check_ec2(options: Options) -> None:
    """Check the EC2 options once instead of in each worker. Raises errors.config.RegionList, errors.config.Ec2Url,
    errors.config.Credentials."""
    from nova.legacy.ec2 import app
    from nova.legacy.signatures import signers

    app.options_from_conf(options)
    signers.from_conf(options)


def check_local(options: Options, believing: str, listen: str, address: str) -> None:
    """Check that an API that accepts every caller, because of the option ``believing``, listens only on this machine,
    unless the operator allows more. Raises service.CannotStart."""
    is_local = address in ("localhost", "::1") or address.startswith("127.")
    if not is_local and not options.api.noauth2_anywhere:
        raise errors.service.CannotStart(
            reason=f"{believing} accepts every caller without authentication, but {listen} = {address} "
                   "is reachable by others: listen on 127.0.0.1, or use keystone; [api]noauth2_anywhere is for trials")


def tls(group: WsgiOptions) -> ssl.SSLContext | None:
    """Return the TLS context of ``[wsgi]``; None for plain HTTP. Raises service.CannotStart with the wrong option."""
    if not (group.ssl_cert_file or group.ssl_key_file):
        return None
    import ssl

    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with failures.replaced((OSError, TypeError), lambda error: errors.service.CannotStart(
            reason=f"[wsgi]ssl_cert_file, ssl_key_file, ssl_ca_file cannot be used: {error}")):
        made.load_cert_chain(group.ssl_cert_file, group.ssl_key_file)  # type: ignore[arg-type]  # None: a TypeError
        if group.ssl_ca_file:
            made.load_verify_locations(group.ssl_ca_file)
            made.verify_mode = ssl.CERT_REQUIRED
    return made


def speaks_as_host(name: str, options: Options) -> bool:
    """True if this API counts as a service of its host: the metadata service does, except in upstream mode, in which
    all services except the hypervisor's are control plane services."""
    return name == METADATA and asked_mode(options) is SecurityMode.BOUNDED


def asked_contract(name: str, options: Options) -> type[Contract]:
    """Return the contract by which this API calls conductors."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC
    from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC

    if speaks_as_host(name, options):
        return ConductorHostRPC
    return ConductorMetadataRPC if name == METADATA else ConductorRPC


def taken_signatures(names: Collection[str]) -> TakenSignatures | None:
    """Return the signatures store that the workers of these APIs share; None if no API has signed requests."""
    if EC2 not in names:
        return None
    from nova.legacy.signatures.taken import TakenSignatures

    return TakenSignatures()


class Api:
    """A worker process of nova-api, serving the sockets that its parent bound. ``applications``: by name in
    enabled_apis. ``registers``: whether this worker registers, as one of them does. ``taken``: signatures taken by all
    workers; None: a single worker."""

    def __init__(self, options: Options, sockets: Mapping[str, socket.socket | None], registers: bool = True,
                 taken: TakenSignatures | None = None) -> None:
        self.options, self.sockets = options, sockets
        self.reporting: list[Reporting] = []
        self.buses = {is_host: self._bus(is_host) for is_host in {speaks_as_host(name, options) for name in sockets}}
        taken = taken or taken_signatures(sockets)
        self.applications = {name: ALL[name].make(options, self.buses[speaks_as_host(name, options)], taken)
                             for name in sockets}
        if registers:
            self.reporting = [self._reporting(name) for name in sockets]

    def _bus(self, is_host: bool) -> AnyBus:
        from nova.rpc import host_secret
        from nova.rpc.buses import control_bus, hosts_bus

        if not is_host:
            return control_bus(self.options, self.options.host)
        self.secret = host_secret.of_host(self.options)
        return hosts_bus(self.options, self.options.host, self.secret)

    def start(self) -> None:
        from nova import http_server
        from nova.client_bounds import bounds

        made = tls(self.options.wsgi)
        self.serving = [http_server.Server(sock, self.applications[name], bounds(name, self.options), made)
                        for name, sock in self.sockets.items() if sock is not None]
        for server in self.serving:
            server.start()
        self.introduce()

    def introduce(self) -> None:
        """Register with the conductor in the background: it gives data of guests only to registered metadata
        services."""
        for one in self.reporting:
            one.start()

    def _reporting(self, name: str) -> Reporting:
        is_host = speaks_as_host(name, self.options)
        bus = self.buses[is_host]
        conductor = bus.client(asked_contract(name, self.options))
        voice = HostVoice(cast("ConductorHostRPC", conductor), self.options.host, self.secret) if is_host \
            else cast(Voice, conductor)
        return Reporting(self.options, ALL[name].binary, name, bus, voice)

    def health_checks(self) -> HealthChecks:
        """Return checks that conductors answer, on each bus."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        asked = {False: ("bus", ConductorRPC), True: ("hosts' bus", ConductorHostRPC)}
        return HealthChecks({asked[is_host][0]: health_checks.of_client(bus, asked[is_host][1]).checks["bus"]
                             for is_host, bus in self.buses.items()})

    def stop(self, seconds: float) -> None:
        """Stop accepting requests; running requests of all APIs have ``seconds`` to end."""
        ends = [concurrency.spawn(server.stop, seconds) for server in self.serving]
        for end in ends:
            end.join()
        concurrency.spawn(self.close)

    def close(self) -> None:
        """Stop heartbeats, and close the connections to the broker."""
        for one in self.reporting:
            one.stop()
        for bus in self.buses.values():
            bus.close()


def serve(binary: str, names: list[str] | None = None) -> int:
    """Run a service with these APIs (None: those of ``enabled_apis``)."""
    import sys

    from nova import service

    options = configuration.read(binary, configuration.beside(sys.argv[1:], binary))
    common.begin(options, binary)
    chosen = names or list(options.enabled_apis)
    with common.preparing(options, binary):
        check_rules(options, chosen)
        check_own_filters(options, chosen)
        if EC2 in chosen:
            check_ec2(options)
        sockets = bind(options, chosen, ALL if names else APIS)
    first = ALL[OSAPI if OSAPI in chosen else chosen[0]]
    wanted = getattr(first.group(options), first.workers)
    common.preload((*common.BUS, *MODULES, *[module for name in chosen for module in ALL[name].modules]))
    taken = taken_signatures(chosen)  # before workers fork
    return service.run(options, binary, lambda index: Api(options, sockets, index == 0, taken),
                       wanted or common.cpus())


def main() -> int:
    """Run nova-api and return its exit code."""
    return serve(BINARY)


if __name__ == "__main__":
    raise SystemExit(main())
