"""A conductor for the API's tests, with state in memory where tests need it: ConductorRPC over dictionaries.

``asked(call)`` has the received arguments. A test sets another answer by ``given(get_diagnostics=TOLD)``.
"""

from __future__ import annotations

import datetime
import functools
import uuid
from typing import Any

from nova.model.base import utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.host.aggregates import Aggregate
from nova.model.host.services import Hypervisor, PendingCleanup, Service
from nova.model.image.images import Image
from nova.model.network.floating import DnsDomain, DnsEntry, FloatingAddress
from nova.model.network.networks import FixedAddressRow, Network
from nova.model.network.security_groups import SecurityGroup, SecurityRule
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from nova.model.quota.usage import ServerUsage
from nova.model.server.actions import InstanceAction
from nova.model.server.keypairs import Keypair
from nova.model.server.migrations import Migration
from nova.model.server.server_groups import ServerGroup
from nova.model.server.servers import ServerDetail
from nova.model.server.states import VmState
from nova.model.volumes import BlockDevice, Volume, VolumeSnapshot
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.conductor_hosts import Aggregates, Hosts, Usage
from tests.fakes.conductor_networks import Floating, Interfaces, Networks, SecurityGroups
from tests.fakes.conductor_projects import Flavors, Images, Keypairs, Quotas, ServerGroups
from tests.fakes.conductor_servers import BEGINS, Life, Migrations, Parts, Servers
from tests.fakes.conductor_volumes import ServerVolumes, VolumeProxies
from tests.fakes.contract import ContractFake

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
LAUNCHED = datetime.datetime(2026, 1, 1, 0, 0, 0, 541277)


def numbered(kind: int, number: int) -> str:
    return str(uuid.UUID(int=(kind << 64) + number))


class FakeConductor(Servers, Life, Parts, Migrations, ServerGroups, Flavors, Keypairs, Quotas, Images, Networks,
                    Interfaces, Floating, SecurityGroups, Hosts, Aggregates, Usage, ServerVolumes, VolumeProxies,
                    ContractFake, contract=ConductorRPC):
    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, ServerDetail] = {}
        self.actions: list[InstanceAction] = []
        self.console = "login: \n"  # the console of every server
        self.passwords: dict[str, str] = {}
        self.migrations: list[Migration] = []
        self.groups: dict[str, ServerGroup] = {}
        self.flavors: dict[str, Flavor] = {}
        self.keypairs: dict[tuple[str, str], Keypair] = {}
        self.limits: dict[tuple[str, str | None], dict[str, int]] = {}  # by (project, user)
        self.used: dict[str, int] = {}  # by resource, the same for all projects
        self.classes: dict[str, dict[str, int]] = {}
        self.defaults = {**dict.fromkeys(NETWORK_RESOURCES, -1),
                         **{name: 10 + index for index, name in enumerate(RESOURCES)}}
        self.images: dict[str, Image] = {}
        self.networks: dict[str, Network] = {}
        self.fixed_rows: dict[str, FixedAddressRow] = {}
        self.floating: dict[str, FloatingAddress] = {}
        self.domains: dict[str, DnsDomain] = {}
        self.dns_entries: dict[tuple[str, str], DnsEntry] = {}  # by (domain, name)
        self.security_groups: dict[str, SecurityGroup] = {}
        self.default_rules: dict[str, SecurityRule] = {}
        self.services: list[Service] = []
        self.silent_cell = False  # its services are in lists that may have unknown ones
        self.hypervisors: list[Hypervisor] = []
        self.uptime: str | None = " 08:32:11 up 93 days"  # the uptime of every hypervisor
        self.aggregates: dict[int, Aggregate] = {}
        self.usages: list[ServerUsage] = []  # for every requested time
        self.debts: list[PendingCleanup] = []
        self.devices: dict[str, tuple[BlockDevice, ...]] = {}  # volumes by server uuid
        self.volumes: dict[str, Volume] = {}
        self.volume_snapshots: dict[str, VolumeSnapshot] = {}
        self.given(**{call: functools.partial(self._begin, action) for call, action in BEGINS.items()})

    # -- resources

    def add_server(self, **fields: Any) -> ServerDetail:
        server = ServerDetail(**{
            "uuid": str(uuid.uuid4()), "id": len(self.servers) + 1, "name": "vm", "project_id": "demo",
            "user_id": "demo", "created_at": utcnow(), "launched_at": utcnow(), "vm_state": VmState.ACTIVE,
            "host": "host1", "node": "host1",
            "flavor": Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1), **fields})
        self.servers[server.uuid] = server
        return server

    def add_migration(self, **fields: Any) -> Migration:
        number = len(self.migrations) + 1
        at = datetime.datetime(2026, 1, 1, 12, 0, number)
        self.migrations.insert(0, Migration(**{
            "id": number, "uuid": f"{number:08}-0000-4000-8000-000000000000", "type": "live-migration",
            "status": "running", "user_id": "demo", "project_id": "demo", "source_compute": "host1",
            "source_node": "host1", "dest_compute": "host2", "dest_node": "host2", "dest_host": "10.0.0.2",
            "created_at": at, "updated_at": at, **fields}))
        return self.migrations[0]

    def add_flavor(self, flavorid: str, **fields: Any) -> Flavor:
        self.flavors[flavorid] = Flavor(**{"flavorid": flavorid, "name": f"m1.{flavorid}", "memory_mb": 512,
                                           "vcpus": 1, "root_gb": 1, "id": len(self.flavors) + 1, **fields})
        return self.flavors[flavorid]

    def add_image(self, **fields: Any) -> Image:
        image = Image(**{"id": numbered(0, len(self.images) + 1), "name": "tiny", "created_at": WHEN,
                         "updated_at": WHEN, **fields})
        self.images[image.id] = image
        return image

    def add_network(self, **fields: Any) -> Network:
        number = len(self.networks) + 1
        network = Network(**{"id": number, "uuid": numbered(0, number), "label": "private", "cidr": "10.0.0.0/24",
                             "created_at": WHEN, **fields})
        self.networks[network.uuid] = network
        return network

    def add_floating(self, address: str, pool: str = "nova", **fields: str | None) -> FloatingAddress:
        self.floating[address] = FloatingAddress(id=str(len(self.floating) + 1), address=address, pool=pool, **fields)
        return self.floating[address]

    def add_device(self, server_uuid: str, **fields: Any) -> BlockDevice:
        """Add a volume to a server."""
        number = len(self.devices.get(server_uuid, ())) + 1
        device = BlockDevice(**{"id": numbered(3, number), "volume_id": numbered(4, number),
                                "attachment_id": numbered(5, number), "device_name": f"/dev/vd{'abcdefg'[number]}",
                                **fields})
        self.devices[server_uuid] = (*self.devices.get(server_uuid, ()), device)
        return device

    def add_volume(self, **fields: Any) -> Volume:
        volume = Volume(**{"id": numbered(4, len(self.volumes) + 1), "name": "data", "size_gb": 1, "created_at": WHEN,
                           "availability_zone": "nova", "volume_type": "lvm", **fields})
        self.volumes[volume.id] = volume
        return volume

    def add_volume_snapshot(self, **fields: Any) -> VolumeSnapshot:
        snapshot = VolumeSnapshot(**{"id": numbered(6, len(self.volume_snapshots) + 1), "volume_id": numbered(4, 1),
                                     "size_gb": 1, "created_at": WHEN, **fields})
        self.volume_snapshots[snapshot.id] = snapshot
        return snapshot

    def add_service(self, host: str, binary: str = "nova-compute", **fields: Any) -> Service:
        number = len(self.services) + 1
        self.services.append(Service(**{
            "id": number, "uuid": numbered(1, number), "host": host, "binary": binary, "up": True,
            "zone": "nova" if binary == "nova-compute" else "internal", "last_seen_at": WHEN, **fields}))
        return self.services[-1]

    def add_hypervisor(self, hostname: str, **fields: Any) -> Hypervisor:
        """Add a node with its own host and service of the same name."""
        number = len(self.hypervisors) + 1
        values = {"host": hostname, "type": "QEMU", "version": 7002000, "host_ip": "192.0.2.1", "vcpus": 4,
                  "memory_mb": 8192, "memory_mb_used": 512, "local_gb": 100, "cpu_info": '{"arch": "x86_64"}', **fields}
        values["service"] = fields.get("service") or self.add_service(values["host"])
        self.hypervisors.append(Hypervisor(id=number, uuid=numbered(2, number), hostname=hostname, **values))
        return self.hypervisors[-1]

    def add_aggregate(self, name: str, hosts: tuple[str, ...] = (), **metadata: str) -> Aggregate:
        number = len(self.aggregates) + 1
        self.aggregates[number] = Aggregate(id=number, uuid=numbered(0, number), name=name, created_at=WHEN,
                                            hosts=hosts, metadata=metadata)
        return self.aggregates[number]


def server_usage(uuid: str, project_id: str = "demo", **fields: object) -> ServerUsage:
    """Return the usage of a small server in one hour."""
    return ServerUsage(**{"uuid": uuid, "name": "vm", "project_id": project_id, "flavor": "m1", "memory_mb": 512,
                          "local_gb": 1, "vcpus": 1, "started_at": LAUNCHED, "state": "active", "hours": 1.0,
                          "uptime_s": 3600, **fields})
