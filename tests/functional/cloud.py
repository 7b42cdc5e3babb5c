"""A whole cloud of ours on the fake driver: real daemons, real broker, real database, real HTTP.

    cloud = Cloud(backends, root, Plan(computes=3)).start()
    server = cloud.api().boot("vm1")
    cloud.daemons["compute1"].kill()
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nova.conductor.hosts.enrolment import HOST_DAEMONS
from nova.db.host import enrolments
from nova.model.security.secret_wrap import SecretWrap
from nova.rpc.host_secret import HostSecret
from tests import sampling
from tests.fakes.glance import FakeGlance
from tests.functional import planted
from tests.functional.backends import HOSTS, Backends, free_port, hosts_url, wait_until
from tests.functional.client import IMAGE, NEWEST, Client, Refused
from tests.functional.daemons import TOP, Daemon, environment
from tests.functional.links import Link

READY_S = 90.0  # three clouds may start at once on two slow cores
ADMIN = "admin"
MANAGE_S = 120.0  # three clouds may keep the machine busy
TICKET_KEY = "bm92YSdzIHRlc3RzIHNlYWwgdGlja2V0cyB3aXRoLi4="
HOST_SECRET_KEY = "a2V5IG9mIHRoZSBob3N0cycgc2VjcmV0cywgMzIgYi4="
SEALED = "gAAAAAB"  # how each ticket begins, whatever is in it


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a cloud is like. ``options``: section -> option -> value, beside and above those of :func:`defaults`."""

    database: str = "mariadb"
    computes: int = 1
    conductors: int = 1  # daemons, each with ``workers`` processes
    workers: int = 2
    concurrency: str = ""  # NOVA_CONCURRENCY of every daemon
    network: bool = True  # a nova-network and a network
    glance: bool = False
    placement: bool = False  # a nova-placement-api, at ``cloud.placement_url``
    certs: bool = False  # a nova-cert
    consoles: bool = False  # a nova-consoleauth, and hosts with consoles of every type
    cuttable_cell: bool = False  # the cell's database is reached through ``cloud.cell_link``
    cells: int = 0  # over which the hosts are spread, and others can be added: tests/functional/cell_cloud.py
    whole: bool = False  # in one process: tests/functional/whole.py
    upstream: bool | None = None  # in upstream security mode, with the files that tools write; None: by turns
    monitored: bool = False  # each host's daemons show health and metrics, at ``cloud.monitoring(host)``
    options: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)


#: Every type of console, which the fake driver has.
CONSOLES: dict[str, dict[str, Any]] = {
    "vnc": {"xvpvncproxy_base_url": "http://127.0.0.1:6081/console"}, "spice": {"enabled": True},
    "serial_console": {"enabled": True}, "mks": {"enabled": True}}


def defaults(plan: Plan, broker: str, port: int, glance: str) -> dict[str, dict[str, Any]]:
    """nova.conf of a test cloud: quick heartbeats, leases and notice of dead peers."""
    return {
        "DEFAULT": {
            "transport_url": broker, "hosts_transport_url": hosts_url(broker), "my_ip": "127.0.0.1",
            "compute_driver": "fake.FakeDriver",
            "network_manager": "nova.network.manager.FlatDHCPManager",
            "fake_network": True, "flat_network_bridge": "br100", "osapi_compute_listen": "127.0.0.1",
            "osapi_compute_listen_port": port, "enabled_apis": "osapi_compute", "osapi_compute_workers": 1,
            "report_interval": 2, "service_down_time": 10, "graceful_shutdown_timeout": 20,
            "rpc_response_timeout": 10, "long_rpc_silence": 4, "shutdown_timeout": 5},
        "api": {"auth_strategy": "noauth2"},
        "glance": {"api_servers": glance, "num_retries": 0, "read_timeout": 5},
        "conductor": {"workers": plan.workers, "lease_seconds": 4},
        "scheduler": {"workers": 1},
        "quota": {"instances": -1, "cores": -1, "ram": -1}}


def render(sections: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in options.items())]
    return "\n".join(lines) + "\n"


class Cloud:
    """Folders: ``etc/HOST/nova.conf`` a host, ``state/HOST``, ``log/DAEMON.log``. ``tree``: the files of the release
    that its tools, and daemons at their first start, are of."""

    tree = TOP
    #: Check of the addresses of servers that are there, in place of the one of nova-network's addresses.
    wrong_addresses: Callable[[Any, list[Any]], Iterator[str]] | None = None

    def __init__(self, backends: Backends, root: Path, plan: Plan) -> None:
        if plan.upstream is None:
            plan = dataclasses.replace(plan, upstream=sampling.upstream_turn() and not plan.whole)
        self.backends, self.root, self.plan = backends, root, plan
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v2.1"
        self.placement_port = free_port() if plan.placement else 0
        self.placement_url = f"http://127.0.0.1:{self.placement_port}"
        self.image_proxy_port = free_port()
        self.image_proxy_url = f"http://127.0.0.1:{self.image_proxy_port}"
        self.glance = FakeGlance()
        self.daemons: dict[str, Daemon] = {}
        name = f"{root.name}_{os.urandom(3).hex()}".replace("-", "_")[-40:]
        server = backends.database(plan.database)
        self.broker_url = "" if plan.whole else backends.broker.url()
        self.database_urls = {"api_database": server.create(f"{name}_api"), "database": server.create(f"{name}_cell")}
        self._exit = contextlib.ExitStack()
        if plan.cuttable_cell:
            self.cell_link = Link(server.port)
            self._exit.callback(self.cell_link.close)
            self.database_urls["database"] = self.cell_link.through(self.database_urls["database"])
        self._stores: Any = None

    # -- its life

    def start(self) -> Cloud:
        """Everything up, a flavor "1", an image and a network there, all hosts known to the scheduler."""
        self.prepare()
        for daemon in self.daemons.values():
            daemon.start()
        self.wait_up()
        self.create_sample_data()
        return self

    def prepare(self) -> Cloud:
        """Files, schemas and (not yet started) daemons."""
        self._exit.enter_context(self.glance)
        self.glance.add(b"an image", id=IMAGE, name="tiny")
        self.hosts = self.first_hosts()
        for host in ("ctl", *(f"ctl{number}" for number in range(2, self.plan.conductors + 1)), *self.hosts):
            self.configure(host)
        self._add("conductor", "conductor", "ctl")
        for number in range(2, self.plan.conductors + 1):
            self._add(f"conductor{number}", "conductor", f"ctl{number}")
        self._add("scheduler", "scheduler", "ctl")
        if not self.plan.upstream:
            self._add("imageproxy", "imageproxy", "ctl")
        if self.plan.network and not self.plan.cells:
            self._add("network", "network", "ctl")
        for host in self.hosts:
            self._add(self.compute_name(host), "compute", host)
        self._add("api", "api", "ctl")
        if self.plan.consoles and not self.plan.upstream:
            self._add("consoleauth", "consoleauth", "ctl")
        if self.plan.certs:
            self._add("cert", "cert", "ctl")
        if self.plan.placement:
            self._add("placement", "placement_api", "ctl")
        self.sync()
        if not self.plan.upstream:
            self.enroll(self.stores, "ctl", *self.hosts)
        return self

    def first_hosts(self) -> list[str]:
        """The hosts that it starts with."""
        return [f"host{number}" for number in range(1, self.plan.computes + 1)]

    def enroll(self, stores: Any, *hosts: str) -> None:
        """As hosts of the cell are that were let in, and have brought their secrets."""
        for host in hosts:
            secret = HostSecret(self.state(host))("")[0]
            runs = HOST_DAEMONS if host.startswith("ctl") else HOST_DAEMONS[:1]

            def write(tx: Any, host: str = host, secret: str = secret, runs: Any = runs) -> None:
                enrolments.enroll(tx, host, runs, "")
                enrolments.keep_secret(tx, host, secret, SecretWrap((HOST_SECRET_KEY,)), keep_former=False)
            stores.cell.transact(write)

    def configure(self, host: str, **default: Any) -> Path:
        """Write a host's files, ``default`` above the plan's [DEFAULT]; the path of its nova.conf."""
        folder = self.root / "etc" / host
        folder.mkdir(parents=True, exist_ok=True)
        sections = defaults(self.plan, self.broker_url, self.port, self.glance.url)
        if self.plan.upstream:  # one template for all files
            del sections["DEFAULT"]["hosts_transport_url"]
            sections |= {name: {"connection": url} for name, url in self.database_urls.items()}
        elif host.startswith("ctl"):
            sections["image_proxy"] = {
                "key": TICKET_KEY, "listen": "127.0.0.1", "listen_port": self.image_proxy_port, "workers": 1,
                "servers": self.image_proxy_url}
        else:  # it has no way to the image service but the proxy, and no address of Keystone's
            del sections["glance"]
        if self.plan.placement:
            sections["placement_api"] = {"listen": "127.0.0.1", "listen_port": self.placement_port, "workers": 1}
        for section, options in (*(CONSOLES.items() if self.plan.consoles else ()), *self.plan.options.items()):
            sections.setdefault(section, {}).update(options)
        if host in HOSTS and not self.plan.upstream:  # it knows one way alone
            del sections["DEFAULT"]["transport_url"]
            sections["DEFAULT"]["hosts_transport_url"] = hosts_url(self.broker_url, host)
        sections["monitoring"] = {"enabled": self.plan.monitored, "listen": self.monitoring(host)}
        sections["DEFAULT"] |= {"host": host, "state_path": self.state(host), **default}
        self.state(host).mkdir(parents=True, exist_ok=True)
        (folder / "nova.conf").write_text(render(sections))
        if host.startswith("ctl") and not self.plan.upstream:
            urls = {name: {"connection": url} for name, url in self.database_urls.items()}
            self.write_own("conductor", {**urls, "conductor": {"host_secret_key": HOST_SECRET_KEY}}, host)
        return folder / "nova.conf"

    def write_own(self, daemon: str, sections: Mapping[str, Mapping[str, Any]], host: str = "ctl") -> None:
        """The file that this daemon of the host alone reads, beside nova.conf."""
        path = self.root / "etc" / host / f"nova-{daemon}.conf"
        path.touch(0o600)
        path.write_text(render(sections))

    def _add(self, name: str, module: str, host: str) -> None:
        (self.root / "log").mkdir(exist_ok=True)
        env = dict(self.plan.env) | ({"NOVA_CONCURRENCY": self.plan.concurrency} if self.plan.concurrency else {})
        self.daemons[name] = Daemon(module, self.root / "etc" / host / "nova.conf", self.root / "log" / f"{name}.log",
                                    env)
        self.daemons[name].tree = self.tree

    def sync(self) -> None:
        """Both schemas, side by side."""
        running = [self._manage(schema, "sync") for schema in ("api_db", "db")]
        for process in running:
            output, _ = process.communicate(timeout=MANAGE_S)
            assert process.returncode == 0, output

    def wait_up(self) -> None:
        """Daemons serve, and the API shows every one of them up."""
        for daemon in self.daemons.values():
            daemon.ready()
        wanted = {("nova-conductor", "ctl"), ("nova-scheduler", "ctl")} | {("nova-compute", h) for h in self.hosts}
        wanted |= {("nova-consoleauth", "ctl")} if "consoleauth" in self.daemons else set()
        wait_until("all daemons are up", lambda: wanted <= self.up(), READY_S, 0.2)

    def up(self) -> set[tuple[str, str]]:
        """(binary, host) of the daemons that the API shows as up."""
        return {(one["binary"], one["host"]) for one in self.api(ADMIN).get("/os-services")["services"]
                if one.get("state") == "up"}  # none in a cell that is away

    def create_sample_data(self) -> None:
        """A flavor and, where there is a nova-network, a network."""
        self.api(ADMIN).call("POST", "/flavors", {"flavor": {
            "name": "m1.tiny", "id": "1", "ram": 512, "vcpus": 1, "disk": 1}})
        if "network" in self.daemons:
            self.manage("network", "create", "--label", "private", "--cidr", "10.11.0.0/22", "--num_networks", "1",
                        "--network_size", "1024")

    def stop(self) -> None:
        for daemon in self.daemons.values():
            daemon.kill()
        if self._stores is not None:
            self._stores.close()
        self._exit.close()

    # -- those who use it

    def api(self, user: str = "demo", project: str = "demo", version: str = NEWEST) -> Client:
        return Client(self.url, user, project, version)

    def manage(self, *words: str, code: int = 0, host: str = "ctl", seconds: float = MANAGE_S) -> str:
        """Run nova-manage; its output. AssertionError when it ends otherwise than with ``code``."""
        process = self._manage(*words, host=host)
        output, _ = process.communicate(timeout=seconds)
        assert process.returncode == code, f"nova-manage {' '.join(words)}: {process.returncode}, not {code}\n{output}"
        return output

    def _manage(self, *words: str, host: str = "ctl") -> subprocess.Popen[str]:
        config = self.root / "etc" / host / "nova.conf"
        return subprocess.Popen([sys.executable, "-m", "nova.manage.main", "--config-file", str(config), *words],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.tree,
                                env=environment({"PYTHONPATH": str(self.tree), **self.plan.env}))

    # -- its hosts

    def state(self, host: str) -> Path:
        return self.root / "state" / host

    def monitoring(self, host: str) -> str:
        """The loopback address of this host alone: every daemon has its usual port there."""
        return f"127.{64 + self.port // 256 % 64}.{self.port % 256}.{1 + zlib.crc32(host.encode()) % 250}"

    @staticmethod
    def compute_name(host: str) -> str:
        return f"compute{host.removeprefix('host')}"

    def compute(self, host: str) -> Daemon:
        return self.daemons[self.compute_name(host)]

    def broker_of(self, host: str) -> str:
        """Beside this vhost is the one of the host, and of its cell's conductors."""
        return self.broker_url

    def conductor_of(self, host: str) -> Daemon:
        """Who takes this host's calls."""
        return self.daemons["conductor"]

    def beside(self, host: str) -> list[str]:
        """The hosts that servers of this host can move to."""
        return [one for one in self.hosts if one != host]

    @contextlib.contextmanager
    def knobs(self, host: str, *rules: Mapping[str, Any]) -> Iterator[None]:
        """The fake driver of ``host`` does as the rules say within the block (``nova/devel/fake/knobs.py``)."""
        path = self.state(host) / "fake-knobs.json"
        self._write_knobs(path, rules)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    @staticmethod
    def _write_knobs(path: Path, rules: Any) -> None:
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"rules": list(rules)}))
        os.replace(fresh, path)

    def blocked(self, host: str, call: str, seconds: float = 15.0) -> None:
        """Wait until a driver call of the host stands at a ``block`` rule."""
        folder = self.state(host) / "fake" / "blocked"
        wait_until(f"{call} is blocked on {host}", lambda: list(folder.glob(f"{call}.*")), seconds)

    def guests(self, host: str) -> set[str]:
        """Uuids of what the host's hypervisor has anything of."""
        return {path.stem for path in (self.state(host) / "fake" / "guests").glob("*.json")}

    # -- what is left

    def use_databases(self, urls: Mapping[str, str]) -> None:
        """The control daemons that are started from now on have these."""
        if self._stores is not None:
            self._stores.close()
        self.database_urls, self._stores = dict(urls), None
        self.configure("ctl")

    @property
    def stores(self) -> Any:
        """Both databases, read directly."""
        if self._stores is None:
            from tests.functional.stores import Stores

            self._stores = Stores(self.database_urls)
        return self._stores

    def leftovers(self) -> dict[str, Any]:
        """What servers that are gone left anywhere; empty when nothing is. Live servers count as left over."""
        found = self.stores.leftovers()
        for host in self.hosts:
            marks = {path.name for path in (self.state(host) / "building").glob("*") if path.is_file()}
            found |= {f"guests on {host}": sorted(self.guests(host)), f"marks on {host}": sorted(marks)}
            found |= {f"{what} on {host}": sorted(path.name for path in (self.state(host) / "fake" / what).glob("*"))
                      for what in ("aside", "snapshots", "arrivals")}
        return {what: left for what, left in found.items() if left}

    def wait_clean(self, seconds: float = 15.0) -> None:
        """Nothing is left over, within a bound."""
        try:
            wait_until("nothing is left", lambda: not self.leftovers(), seconds, 0.2)
        except AssertionError:
            raise AssertionError(f"left over: {self.leftovers()}") from None

    def empty(self) -> None:
        """Delete all servers of every project, and see that nothing is left."""
        admin = self.api(ADMIN)
        for server in admin.servers("?all_tenants=1"):
            try:
                admin.delete(server["id"])
            except Refused as refused:
                if refused.status != 404:  # a test had deleted it, and it went in between
                    raise
        wait_until("all servers are gone", lambda: not admin.servers("?all_tenants=1"), 40, 0.2)
        self.wait_clean()

    def secrets_in_logs(self) -> list[str]:
        """Lines of its daemons' logs with a secret of a request or of its own."""
        return planted.seen_in(self.root / "log", {
            TICKET_KEY, HOST_SECRET_KEY, SEALED, *planted.of_cloud(self.broker_url, self.database_urls, self.root)})

    def remove_files(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
