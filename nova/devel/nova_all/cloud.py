"""The whole cloud as one service: each part is the service's own class, over a bus within the process.

Sockets are bound first, so that the catalog and nova.conf have addresses. Then the parts start in the order of their
dependencies, and the summary is printed; parts for which clients can wait start after it.
"""

from __future__ import annotations

import functools
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from nova import concurrency, errors, failures, http_server
from nova.client_bounds import bounds
from nova.clients import session
from nova.cmd import api, console_proxy, imageproxy, objectstore
from nova.cmd.cert import Cert
from nova.cmd.compute import Compute
from nova.cmd.conductor import Conductor
from nova.cmd.conductor_databases import databases
from nova.cmd.consoleauth import ConsoleAuth
from nova.cmd.network import NetworkDaemon
from nova.cmd.scheduler import Scheduler
from nova.conf._options import Options
from nova.console import kinds
from nova.console.sessions import SessionTotal
from nova.devel.fake.driver import FakeDriver
from nova.devel.identity.keystone import FakeKeystone
from nova.devel.image.glance import FakeGlance
from nova.devel.network.neutron import FakeNeutron
from nova.devel.nova_all import hosts
from nova.devel.nova_all.faults import FaultKnobs, Faults, FaultService
from nova.devel.nova_all.frontend import ApiFrontend, StartingApplication
from nova.devel.nova_all.network_events import NetworkEvents
from nova.devel.nova_all.plan import FAKE, NEUTRON, Plan
from nova.devel.nova_all.sample_data import SampleData
from nova.devel.nova_all.settings import CONTROLLER, CloudAddresses
from nova.devel.nova_all.state_directory import StateDirectory
from nova.monitoring.health import HealthChecks
from nova.rpc.buses import control_bus
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.in_process import exchange
from nova.web.replay_cache import ReplayCache

LOG = logging.getLogger(__name__)

EC2_PATH = "services"  # of /services/Cloud
LATE_S = 2.0  # timeout of a part that starts while the cloud ends
GRACE_S = 0.2  # for work in progress at the end: unfinished work is resumed at the next start


class Listeners(NamedTuple):
    """Listening sockets. ``consoles``: by the proxy's program."""

    apis: socket.socket
    metadata: socket.socket
    image_proxy: socket.socket
    consoles: dict[str, socket.socket]
    s3: socket.socket

    def addresses(self, plan: Plan) -> CloudAddresses:
        """Return the addresses for clients. A server that listens on all addresses is advertised at 127.0.0.1."""
        host = "127.0.0.1" if plan.listen in ("0.0.0.0", "::") else plan.listen
        host = f"[{host}]" if ":" in host else host

        def url(program: str, scheme: str) -> str:
            return f"{scheme}://{host}:{self.consoles[program].getsockname()[1]}"
        return CloudAddresses(f"http://{host}:{self.apis.getsockname()[1]}", self.metadata.getsockname()[1],
                              url(kinds.NOVNC.binary, "http"), url(kinds.SERIAL.binary, "ws"),
                              self.image_proxy.getsockname()[1], plan.networking,
                              f"http://{host}:{self.s3.getsockname()[1]}")


def bind_listeners(plan: Plan) -> Listeners:
    """Bind all sockets. Raises service.CannotStart, which names the port and its option."""
    apis = _bound(plan.listen, plan.port, "--port")
    consoles = {kinds.SERIAL.binary: _bound(plan.listen, plan.serial_port, "--serial-port"),
                kinds.NOVNC.binary: _bound(plan.listen, plan.console_port, "--console-port")}
    return Listeners(apis, _bound("127.0.0.1", 0), _bound("127.0.0.1", 0), consoles,
                     _bound(plan.listen, plan.s3_port, "--s3-port"))


def _bound(address: str, port: int, option: str = "--listen") -> socket.socket:
    try:
        return http_server.bind(address, port)
    except OSError as error:
        free = " (0: any free port)" if port else ""
        raise errors.service.CannotStart(reason=f"port {port} of {address} is not available: {error.strerror}. "
                                         f"Set another with {option}{free}") from None


class CloudPart(Protocol):
    """A service of the cloud."""

    def start(self) -> None:
        """Start serving."""

    def stop(self, seconds: float) -> None:
        """Stop within this time."""


class WholeCloud:
    """All services in one process. ``tell`` prints the summary once the cloud is ready."""

    def __init__(self, plan: Plan, home: StateDirectory, doors: Listeners, options: Options,
                 tell: Callable[[WholeCloud], None]) -> None:
        self.plan, self.home, self.doors, self.options, self.tell = plan, home, doors, options, tell
        self.addresses = doors.addresses(plan)
        self.front, self.ec2 = ApiFrontend(), StartingApplication()
        self.password = home.secret("password")
        self.keystone = FakeKeystone(self.addresses.catalog, self.password)
        self.glance = FakeGlance(self.keystone.identify, home.path / "images")
        self.events = NetworkEvents(options)
        self.neutron = FakeNeutron(self.keystone.identify, self.events.put)
        self.hosts = {name: hosts.PretendedHost(hosts.options_of(options, name, home.path), self._prepare_host)
                      for name in plan.host_names}
        self.faults = Faults(self.hosts)
        self.parts: list[CloudPart] = []  # services to stop, in reverse order
        self.lacks: dict[str, str] = {}  # missing optional parts -> how to install them
        self._late: threading.Thread | None = None
        self._stopping = False

    def start(self) -> None:
        self._open()
        self._prepare()
        daemons: list[Callable[[Options, int], CloudPart]] = [Conductor, Scheduler, ConsoleAuth]
        for make in (*daemons, *([] if self.has_neutron else [NetworkDaemon])):
            self._begin(make(self.options, 0))
        self._begin(self.events)
        self._begin(imageproxy.ImageProxyDaemon(self.options, self.doors.image_proxy, ReplayCache()))
        for host in self.hosts.values():
            host.start()
        self._begin(_Apis(self))
        consoles = {program: console_proxy.ProxyParts(self.options, kinds.KINDS[program])
                    for program in self.doors.consoles}
        self.lacks |= {parts.kind.flag.lstrip("-"): parts.pages.lacks for parts in consoles.values()
                       if parts.pages.lacks}
        conductor = control_bus(self.options, CONTROLLER).client(ConductorRPC)
        SampleData(self.plan, self.addresses, self.keystone, self.glance, conductor).create(self.is_own_identity)
        late = self._late_parts(consoles)
        if self.plan.config_files:  # a wrong option in them refuses the start
            while late:
                self._begin(late.pop(0)())
        self.tell(self)
        self._late = concurrency.spawn(self._start_late, late, name="late parts")

    def _late_parts(self, consoles: Mapping[str, console_proxy.ProxyParts]) -> list[Callable[[], CloudPart]]:
        """Return the factories of the parts whose clients can wait for the fraction of a second that these parts take
        to start: their sockets listen already."""
        total = SessionTotal()
        return [lambda: _Ec2(self), lambda: Cert(self.options, 0, prepares=False),
                lambda: objectstore.ObjectStoreDaemon(self.options, self.doors.s3),
                *(functools.partial(console_proxy.Proxy, self.options, parts, self.doors.consoles[program], total)
                  for program, parts in consoles.items())]

    def _start_late(self, makes: Sequence[Callable[[], CloudPart]]) -> None:
        """Start these parts. If one of them cannot start, the cloud continues without it."""
        for make in makes:
            if self._stopping:
                return
            with failures.keep_running(LOG, "an optional part of the cloud could not start; it is missing"):
                self._begin(make())
        self.ec2.end_start()

    def _begin(self, part: CloudPart) -> None:
        part.start()
        self.parts.append(part)

    @property
    def has_neutron(self) -> bool:
        """True if networks are the fake Neutron's."""
        return self.plan.networking == NEUTRON

    @property
    def is_own_identity(self) -> bool:
        """True if tokens are those of the included fake, not of another Keystone in nova.conf."""
        if self.options.api.auth_strategy != "keystone":
            return False
        auth = session.load_auth(self.options, "keystone_authtoken")
        return getattr(auth, "auth_url", None) == self.addresses.catalog["identity"]

    def _open(self) -> None:
        """Start identity and images, which the other services use when they start."""
        (self.home.path / "images").mkdir(mode=0o700, exist_ok=True)
        kept: list[tuple[FakeKeystone | FakeGlance | FakeNeutron, str]] = [
            (self.keystone, "identity"), (self.glance, "images.index")]
        if self.has_neutron:
            kept.append((self.neutron, "networks"))
            self.front.below["network"] = self.neutron
        for fake, file in kept:
            with failures.replaced(ValueError, lambda error: errors.service.CannotStart(reason=str(error))):
                if not fake.keep_in(self.home.path / file):
                    fake.save()
        self.front.below |= {"identity": self.keystone, "image": self.glance,
                             "nova-all": FaultService(self.faults, self.keystone.identify)}
        exchange(self.options.hosts_transport_url or "").intercept = self.faults.intercept
        self.server = http_server.Server(self.doors.apis, self.front, bounds("nova-all", self.options))
        self.server.start()

    def _prepare(self) -> None:
        """Create the schemas, and enroll the hosts."""
        from nova.db.schema.creation import create_or_migrate

        for schema, database in zip(("api", "cell"), databases(self.options), strict=True):
            create_or_migrate(schema, database)
            database.dispose()
        hosts.enroll(self.options, (CONTROLLER, *self.hosts), self.home.path)

    def _prepare_host(self, compute: Compute) -> None:
        """Let the cloud's faults affect the operations of the host's driver."""
        if self.plan.driver == FAKE:
            driver = cast(FakeDriver, compute.driver)
            driver.hypervisor.knobs = driver.knobs = FaultKnobs(Path(compute.options.state_path), self.faults,
                                                                lambda: compute.abandoned)

    def health_checks(self) -> HealthChecks:
        """Return the conductor's health checks."""
        return cast(Conductor, self.parts[0]).health_checks()

    def stop(self, seconds: float) -> None:
        """Accept no more requests, and release leases, so that the next start resumes immediately."""
        self._stopping = True
        if self._late is not None:
            concurrency.join(self._late, LATE_S)
        until = time.monotonic() + min(seconds, GRACE_S)
        stops = (self.server.stop, *(host.stop for host in self.hosts.values()),
                 *(part.stop for part in reversed(self.parts[1:])))
        ends = [concurrency.spawn(stop, GRACE_S) for stop in stops]
        for end in ends:
            concurrency.join(end, max(0.0, until - time.monotonic()))
        if self.parts:
            self.parts[0].stop(GRACE_S)


class _Apis:
    """nova-api and the Placement API on the common port, and metadata on its own."""

    def __init__(self, cloud: WholeCloud) -> None:
        self.cloud = cloud
        self.api = api.Api(cloud.options, {api.METADATA: cloud.doors.metadata})
        self.control = api.Api(cloud.options, dict.fromkeys((api.OSAPI, api.PLACEMENT), cloud.doors.apis))

    def start(self) -> None:
        """Start the APIs. The front has the sockets; the control APIs only register with the conductor."""
        self.api.start()
        self.cloud.front.below["placement"] = self.control.applications[api.PLACEMENT]
        self.cloud.front.below[EC2_PATH] = self.cloud.ec2
        self.cloud.front.usual = self.cloud.faults.around(self.control.applications[api.OSAPI])
        self.control.introduce()

    def stop(self, seconds: float) -> None:
        self.api.stop(seconds)
        self.control.close()


class _Ec2:
    """The EC2 API on the common port."""

    def __init__(self, cloud: WholeCloud) -> None:
        self.cloud = cloud
        self.api = api.Api(cloud.options, {api.EC2: None})

    def start(self) -> None:
        self.cloud.ec2.serve(self.api.applications[api.EC2])
        self.api.introduce()

    def stop(self, _seconds: float) -> None:
        self.api.close()
