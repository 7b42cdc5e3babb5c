"""A cloud of several cells: the first as in :mod:`tests.functional.cloud`, and others with a broker's vhosts, a
database, a conductor and compute hosts of their own, which are added while the cloud runs. Its networks are Neutron's.

    cloud = CellCloud(backends, root, Plan(cells=3, computes=3)).start()
    other = cloud.add_cell("cell4", "host4")
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova.db.models import api
from tests.functional.backends import Backends, hosts_url, hosts_vhost, user_of, wait_until
from tests.functional.cloud import ADMIN, Cloud, Plan
from tests.functional.daemons import Daemon
from tests.functional.links import Link
from tests.functional.network_service import TOKEN, NetworkService
from tests.functional.stores import Stores

ADDED_S = 60.0


class Place(NamedTuple):
    """The URLs of a cell's database and broker, as its hosts and conductors have them."""

    urls: dict[str, str]
    broker: str


class OtherCell(NamedTuple):
    """A cell that was added. ``link``: between its conductors and its database; ``computes``: daemons of its hosts."""

    name: str
    uuid: str
    place: Place
    stores: Stores
    link: Link
    hosts: tuple[str, ...]
    conductor: str
    computes: tuple[str, ...]


class CellCloud(Cloud):
    """Control host ``ctl``, and for each added cell one ``ctl-NAME``. Host N is in cell N modulo ``plan.cells``."""

    def __init__(self, backends: Backends, root: Any, plan: Plan) -> None:
        super().__init__(backends, root, plan)
        self.others: list[OtherCell] = []
        self.networks = self._exit.enter_context(NetworkService(lambda: self.api(ADMIN)))

    def prepare(self) -> CellCloud:
        super().prepare()
        return self

    def first_hosts(self) -> list[str]:
        return [host for number, host in enumerate(super().first_hosts()) if number % self.plan.cells == 0]

    def wait_up(self) -> None:
        """The first cell is up; then the others are added."""
        super().wait_up()
        hosts = super().first_hosts()
        for number in range(len(self.others) + 1, self.plan.cells):
            self.add_cell(f"cell{number + 1}", *hosts[number::self.plan.cells])

    def create_sample_data(self) -> None:
        super().create_sample_data()
        if self.plan.network:
            network = self.networks.create("network", name="private", shared=True)
            self.networks.create("subnet", network_id=network["id"], cidr="10.11.0.0/22", ip_version=4)

    def configure(self, host: str, **default: Any) -> Any:
        path = super().configure(host, use_neutron=True, **default)
        if host.startswith("ctl"):
            with path.open("a") as out:
                out.write(f"[neutron]\nauth_type = admin_token\nendpoint = {self.networks.url}\ntoken = {TOKEN}\n"
                          f"endpoint_override = {self.networks.url}\n")
        return path

    def add_cell(self, name: str, *hosts: str) -> OtherCell:
        """Record a cell, start its conductor and its hosts, and wait until the API shows the hosts as up."""
        server = self.backends.database(self.plan.database)
        link = Link(server.port)
        self._exit.callback(link.close)
        url = link.through(server.create(f"{self.root.name}_{name}".replace("-", "_")[-50:]))
        place, control = Place({"database": url}, self.backends.broker.url()), f"ctl-{name}"
        with self._configured_as(place):
            for host in (control, *hosts):
                self.configure(host)
        self.manage("db", "sync", "--local_cell", host=control)
        stores = Stores({**self.database_urls, "database": url})
        self._exit.callback(stores.close)
        if not self.plan.upstream:
            self.enroll(stores, control, *hosts)
        uuid = self._record(name, place.broker if self.plan.upstream else hosts_url(place.broker), url)
        cell = OtherCell(name, uuid, place, stores, link, hosts, f"conductor-{name}",
                         tuple(map(self.compute_name, hosts)))
        self._start(cell, dict(zip((cell.conductor, *cell.computes), (control, *hosts), strict=True)))
        log = self.daemons["conductor"]
        wait_until("each worker serves the cell", lambda: log.text().count(f"serving cell {name}") >= self.plan.workers,
                   ADDED_S, 0.2)
        wanted = {("nova-compute", host) for host in hosts}
        wait_until(f"{', '.join(hosts)} are up", lambda: wanted <= self.up(), ADDED_S, 0.3)
        of_hosts = sa.select(api.providers.c.host).distinct()
        wait_until("a super conductor has carried their reports",
                   lambda: set(hosts) <= {row.host for row in self.stores.rows("api", of_hosts)}, ADDED_S, 0.3)
        self.hosts += hosts
        self.others.append(cell)
        self.stores.others.append(stores.cell)
        return cell

    def move_host(self, host: str, cell: OtherCell) -> None:
        """Move a host to another cell, as an operator does."""
        service, daemon = ("nova-compute", host), self.compute(host)
        daemon.kill()
        wait_until(f"{host} is down", lambda: service not in self.up(), ADDED_S, 0.3)
        self.manage("cell_v2", "move_hosts", "--cell_uuid", cell.uuid, host)
        with self._configured_as(cell.place):
            self.configure(host)
        daemon.start().ready()
        wait_until(f"{host} is up", lambda: service in self.up(), ADDED_S, 0.3)

    def restore_cell(self, cell: OtherCell, file: Path) -> str:
        """Restore a cell's backup into a new database and let its conductor go on with that, as an operator does; what
        the command printed."""
        conductor, control = self.daemons[cell.conductor], f"ctl-{cell.name}"
        conductor.kill()
        url = self.backends.database(self.plan.database).create(f"again_{os.urandom(3).hex()}")
        said = self.manage("restore", str(file), "--database_connection", url, "--yes")
        self.manage("cell_v2", "update_cell", "--cell_uuid", cell.uuid, "--database_connection", url)
        with self._configured_as(cell.place._replace(urls={**cell.place.urls, "database": url})):
            self.configure(control)
        conductor.start().ready()
        stores = Stores({**self.database_urls, "database": url})
        self._exit.callback(stores.close)
        self.stores.others[self.others.index(cell)] = stores.cell
        self.others[self.others.index(cell)] = cell._replace(stores=stores)
        return said

    def _start(self, cell: OtherCell, hosts: dict[str, str]) -> None:
        for name, host in hosts.items():
            self._add(name, "conductor" if name == cell.conductor else "compute", host)
            self.daemons[name].start()
        for name in hosts:
            self.daemons[name].ready()

    def _record(self, name: str, transport_url: str, database: str) -> str:
        return self.manage("cell_v2", "create_cell", "--name", name, "--transport-url", transport_url,
                           "--database_connection", database, "--verbose").split()[-1]

    @contextlib.contextmanager
    def _configured_as(self, place: Place) -> Iterator[None]:
        """Let files of hosts name these instead of the first cell's."""
        kept = self.database_urls, self.broker_url
        self.database_urls, self.broker_url = place
        try:
            yield
        finally:
            self.database_urls, self.broker_url = kept

    def cell_of(self, host: str) -> OtherCell | None:
        """The host's cell; None: the first one."""
        return next((cell for cell in self.others if host in cell.hosts), None)

    def broker_of(self, host: str) -> str:
        cell = self.cell_of(host)
        return cell.place.broker if cell else self.broker_url

    def conductor_of(self, host: str) -> Daemon:
        cell = self.cell_of(host)
        return self.daemons[cell.conductor if cell else "conductor"]

    def beside(self, host: str) -> list[str]:
        """Servers stay in their cell."""
        return [one for one in super().beside(host) if self.cell_of(one) is self.cell_of(host)]

    def part_brokers(self) -> None:
        """Give each host's broker user rights in its own cell alone, as in a real cloud: in tests, they have the same
        rights in all vhosts from the start."""
        cells = {hosts_vhost(self.broker_of(host)) for host in self.hosts}
        for host in self.hosts:
            for vhost in cells - {hosts_vhost(self.broker_of(host))}:
                self.backends.broker.control("clear_permissions", "-p", vhost, user_of(host))

    def wrong_addresses(self, _truth: Any, live: list[Any]) -> Iterator[str]:
        """Addresses are those of ports: nova has none of its own."""
        return self.networks.wrong(live)

    def leftovers(self) -> dict[str, Any]:
        ports = [f"{port['id']} of {port['device_id']}" for port in self.networks.ports()]
        return super().leftovers() | ({"ports": ports} if ports else {})

    def boot_on(self, host: str, name: str, **fields: Any) -> str:
        """Boot a server on this host and wait until it is ACTIVE; its UUID."""
        return str(self.api(ADMIN).boot(name, host=host, **fields)["id"])
