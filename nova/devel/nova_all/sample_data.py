"""Initial resources of a new cloud, with which a server can be created immediately; ``--demo`` adds sample data.

In an existing cloud (``--state``), only missing resources are created.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from keystoneauth1 import adapter, session
from keystoneauth1.identity import v3

from nova import concurrency, context, errors
from nova.devel.identity.keystone import FakeKeystone, NewUser
from nova.devel.image.glance import FakeGlance
from nova.devel.nova_all.plan import NEUTRON, Plan
from nova.devel.nova_all.settings import PUBLIC, CloudAddresses
from nova.devel.service import TokenOwner
from nova.model.base import Scope
from nova.model.flavor.flavors import FlavorQuery, NewFlavor
from nova.model.network.floating import FloatingRange
from nova.model.network.networks import NewNetwork
from nova.rpc.contracts.conductor import ConductorRPC

IMAGE, PART = "tiny", 1024 ** 2
FLOATING = FloatingRange(ip_range="172.24.4.0/25", pool="public", interface="lo")
SETTLED_S = 60.0
ADMIN = "admin"


class DemoServer(NamedTuple):
    """A sample server; ``then``: an action after it is active."""

    project: str
    name: str
    flavor: str
    metadata: Mapping[str, str] = {}
    then: Mapping[str, object] | None = None


class NeutronNet(NamedTuple):
    """A Neutron network with its subnet."""

    project: str
    name: str
    members: Mapping[str, object]
    subnet: Mapping[str, object]


class NeutronRouter(NamedTuple):
    """A router between an external network and another; ``project`` is also its user's name."""

    project: str
    name: str
    outside: str
    inside: str


FLAVORS = tuple(NewFlavor(flavorid=id_, name=name, memory_mb=memory, vcpus=vcpus, root_gb=disk)
                for id_, name, memory, vcpus, disk in (
                    ("1", "m1.tiny", 512, 1, 1), ("2", "m1.small", 2048, 1, 20), ("3", "m1.medium", 4096, 2, 40),
                    ("4", "m1.large", 8192, 4, 80), ("5", "m1.xlarge", 16384, 8, 160)))
PRIVATE, PRIVATE_CIDR = "private", "10.11.0.0/22"
NETWORKS = (NewNetwork(label=PRIVATE, cidr=PRIVATE_CIDR, network_size=1024),)
NEUTRON_NETWORKS = (
    NeutronNet(ADMIN, PRIVATE, {"shared": True}, {"cidr": PRIVATE_CIDR, "dns_nameservers": ["9.9.9.9"]}),
    NeutronNet(ADMIN, PUBLIC, {"router:external": True, "is_default": True, "provider:network_type": "flat",
                               "provider:physical_network": PUBLIC}, {"cidr": "172.24.4.0/24", "enable_dhcp": False}))
ROUTERS = (NeutronRouter("demo", "router", PUBLIC, PRIVATE),)

# --- sample data of --demo

DEMO_FLAVORS = (NewFlavor(flavorid="c1", name="c1.small", memory_mb=1024, vcpus=2, root_gb=10),
                NewFlavor(flavorid="g1", name="g1.large", memory_mb=32768, vcpus=8, root_gb=80))
DEMO_NETWORKS = (NewNetwork(label="backend", cidr="10.12.0.0/24", network_size=256, bridge="br101"),)
DEMO_NEUTRON_NETWORKS = (NeutronNet("shop", "backend", {}, {"cidr": "10.12.0.0/24"}),)
DEMO_IMAGES = ("debian-12", "ubuntu-24.04", "windows-2022")
DEMO_USERS = (NewUser("alice", {"shop": ("member",)}), NewUser("bob", {"research": ("member", "reader")}))
OWNERS = {"demo": "demo", **{project: user.name for user in DEMO_USERS for project in user.roles}}
DEMO_SERVERS = (
    DemoServer("demo", "web-1", "m1.small", {"role": "web"}), DemoServer("demo", "web-2", "m1.small", {"role": "web"}),
    DemoServer("demo", "db-1", "m1.medium", {"role": "db"}),
    DemoServer("demo", "batch", "c1.small", {}, {"os-stop": None}),
    DemoServer("shop", "frontend", "m1.small", {}), DemoServer("shop", "paused", "m1.tiny", {}, {"pause": None}),
    DemoServer("research", "notebook", "g1.large", {}), DemoServer("research", "old", "m1.tiny", {}, {"shelve": None}))


class SampleData:
    """Creates missing resources in a running cloud."""

    def __init__(self, plan: Plan, addresses: CloudAddresses, keystone: FakeKeystone, glance: FakeGlance,
                 conductor: ConductorRPC) -> None:
        self.plan, self.addresses, self.keystone, self.glance = plan, addresses, keystone, glance
        self._conductor = conductor

    def create(self, is_own_identity: bool) -> None:
        """Create the resources of every cloud; then the sample data, if requested and if the users are those of the
        fake Keystone."""
        with context.entered(context.internal()):
            self._flavors(FLAVORS)
            if self.plan.networking != NEUTRON:
                self._networks(NETWORKS)
        if not is_own_identity:
            return
        if self.plan.networking == NEUTRON:
            self._neutron(NEUTRON_NETWORKS, ROUTERS)
        self._image(IMAGE)
        if self.plan.demo:
            self._demonstrate()

    def _demonstrate(self) -> None:
        with context.entered(context.internal()):
            self._flavors(DEMO_FLAVORS)
            if self.plan.networking != NEUTRON:
                self._networks(DEMO_NETWORKS)
        for user in DEMO_USERS:
            self.keystone.add_user(user, self.keystone.password)
        if self.plan.networking == NEUTRON:
            self._neutron(DEMO_NEUTRON_NETWORKS, ())
        for name in DEMO_IMAGES:
            self._image(name)
        for project in OWNERS:
            self._servers(project, tuple(one for one in DEMO_SERVERS if one.project == project))

    def _flavors(self, wanted: tuple[NewFlavor, ...]) -> None:
        present = {flavor.name for flavor in self._conductor.list_flavors(FlavorQuery(is_public=None))}
        for flavor in wanted:
            if flavor.name not in present:
                self._conductor.create_flavor(flavor)

    def _networks(self, wanted: tuple[NewNetwork, ...]) -> None:
        present = {network.label for network in self._conductor.list_networks(Scope())}
        for network in wanted:
            if network.label not in present:
                self._conductor.create_network(network)
        if not present:
            self._conductor.create_floating_addresses(FLOATING)

    def _neutron(self, networks: tuple[NeutronNet, ...], routers: tuple[NeutronRouter, ...]) -> None:
        """Create networks and routers by Neutron's API."""
        for network in networks:
            client = self._client(OWNERS.get(network.project, ADMIN), network.project, "network")
            found = _ensure(client, "network", {"name": network.name, **network.members})
            if not client.get(f"/v2.0/subnets?network_id={found}").json()["subnets"]:
                client.post("/v2.0/subnets", json={"subnet": {"name": network.name, "network_id": found,
                                                              "ip_version": 4, **network.subnet}})
        for router in routers:
            self._router(router)

    def _router(self, router: NeutronRouter) -> None:
        """Create a router between the external network and another; an administrator attaches another project's
        network."""
        client, admin = (self._client(user, user, "network") for user in (router.project, ADMIN))
        if client.get(f"/v2.0/routers?name={router.name}").json()["routers"]:
            return
        outside, inside = (admin.get(f"/v2.0/networks?name={name}").json()["networks"][0]
                           for name in (router.outside, router.inside))
        made = client.post("/v2.0/routers", json={"router": {
            "name": router.name, "external_gateway_info": {"network_id": outside["id"]}}}).json()["router"]["id"]
        client.put(f"/v2.0/routers/{made}/add_router_interface", json={"subnet_id": inside["subnets"][0]})

    def _image(self, name: str) -> None:
        glance, file = self.glance, self.plan.image
        if any(image["name"] == name for image in glance.state.images.values()):
            return
        project = self.keystone.directory.by_name("projects", "admin", "default")
        assert project is not None
        owner = TokenOwner("admin", project["id"], frozenset({"admin"}))
        parts = _parts(file) if file else iter([f"{name}: not a real disk\n".encode()])
        glance.add(parts, owner, name=name, visibility="public", container_format="bare",
                   disk_format="qcow2" if file else "raw")

    def _client(self, user: str, project: str, service: str = "compute") -> adapter.Adapter:
        """Return a client of an API of the cloud."""
        auth = v3.Password(self.addresses.catalog["identity"], username=user, password=self.keystone.password,
                           project_name=project, user_domain_id="default", project_domain_id="default")
        return adapter.Adapter(session.Session(auth), endpoint_override=self.addresses.catalog[service])

    def _servers(self, project: str, wanted: tuple[DemoServer, ...]) -> None:
        """Create the servers in parallel; then run each one's action."""
        client = self._client(OWNERS[project], project)
        present = {server["name"]: server["id"] for server in client.get("/servers").json()["servers"]}
        image = next(image_id for image_id, one in self.glance.state.images.items() if one["name"] == "debian-12")
        flavors = {flavor["name"]: flavor["id"] for flavor in client.get("/flavors").json()["flavors"]}
        network = next(one["id"] for one in client.get("/os-networks").json()["networks"]
                       if one["label"] == PRIVATE)
        missing = [server for server in wanted if server.name not in present]
        for server in missing:
            made = client.post("/servers", json={"server": {
                "name": server.name, "imageRef": image, "flavorRef": flavors[server.flavor],
                "metadata": server.metadata, "networks": [{"uuid": network}]}}).json()["server"]
            present[server.name] = made["id"]
        for server in missing:
            _wait_settled(client, present[server.name])
            if server.then:
                client.post(f"/servers/{present[server.name]}/action", json=server.then)


def _ensure(client: adapter.Adapter, kind: str, members: Mapping[str, object]) -> str:
    """Return the id of Neutron's resource of that name, which is created if missing."""
    found = client.get(f"/v2.0/{kind}s?name={members['name']}").json()[f"{kind}s"]
    return str((found or [client.post(f"/v2.0/{kind}s", json={kind: members}).json()[kind]])[0]["id"])


def _wait_settled(client: adapter.Adapter, server_id: str) -> None:
    """Wait until the server is built. Raises errors.Unavailable after a timeout."""
    until = time.monotonic() + SETTLED_S
    while client.get(f"/servers/{server_id}").json()["server"]["status"] == "BUILD":
        if time.monotonic() > until:
            raise errors.Unavailable("A sample server is still being built: see the log.")
        concurrency.sleep(0.05)


def _parts(path: object) -> Iterator[bytes]:
    with open(str(path), "rb") as file:
        while part := file.read(PART):
            yield part
