"""What stands in the cloud while the contract is tried: one of everything, so that no list is empty."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.cloud import Cloud
from tests.functional.live import planted
from tests.functional.live.caller import ADMIN, MEMBER, OTHER, PROJECT, Live, span

USER_DATA = "IyEvYmluL2Jhc2gKL2Jpbi9zdQplY2hvICJJIGFtIGluIHlvdSEiCg=="
KEY = ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDx8nkQv/zgGgB4rMYmIf+6A4l6Rr+o/6lHBQdW5aYd44bd8JttDCE/F/pNRr0lRE"
       "+PiqSPO8nDPHw0010JeMH9gYgnnFlyY3/OcJ02RhIPyyxYpv9FhY+2YiUkpwFOcLImyrxEsYXpD/0d3ac30bNH6Sw9JD9UZHYcpSxsIbECHw"
       "== joe")
SPARE = "host3"  # without servers
SETTLED_S = 40.0
#: Volumes are not served yet: whatever is asked for is not there.
NO_VOLUME = "00000000-0000-4000-8000-00000000beef"


class World:
    """The standing objects, made on first use. ``values(operation, version)`` fills an operation's path."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.live = Live(cloud.url)
        self._made: dict[str, Any] = {}
        self.doomed: list[str] = []  # servers to be removed by sweep()
        self.doomed_names: set[str] = set()
        self._fillers: dict[str, Callable[[int], str]] = {}
        self.names()

    def once(self, what: str, make: Callable[[], Any]) -> Any:
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    def ask(self, method: str, path: str, body: Any = None, version: int = 104, user: str = ADMIN,
            project: str = PROJECT) -> Any:
        """A call that must succeed, outside of what is judged; the answer's JSON."""
        before = len(self.live.problems)
        answer = self.live.call(method, path, body, version, user, project=project)
        del self.live.problems[before:]
        assert answer.ok, f"{method} {path} at 2.{version}: {answer.status} {answer.body}"
        return answer.body

    # -- the standing objects

    def create_sample_data(self) -> None:
        self.cloud.glance.images[IMAGE] |= {"auto_disk_config": "True", "architecture": "x86_64"}
        self.ask("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"hw:numa_nodes": "1"}})
        self.ask("PUT", "/flavors/1", {"flavor": {"description": "a flavor"}})
        self.ask("POST", "/flavors", {"flavor": {
            "name": "m1.private", "description": "for some", "id": "private", "ram": 64, "vcpus": 1, "disk": 1,
            "os-flavor-access:is_public": False}})
        self.ask("POST", "/flavors/private/action", {"addTenantAccess": {"tenant": PROJECT}})
        for user in (ADMIN, MEMBER):
            self.ask("POST", "/os-keypairs", {"keypair": {"name": "standing", "public_key": KEY, "type": "ssh"}},
                     91, user)
        self.ask("PUT", f"/os-services/{self.service_of('nova-compute', SPARE, 104)}",
                 {"status": "disabled", "disabled_reason": "a spare"})
        assert self.aggregate and self.group and self.server  # in this order: the zone before those who ask for it

    image = IMAGE

    @property
    def server(self) -> str:
        """A running server of the member's with all that one can have."""
        return self.once("server", lambda: self.settle(self.boot("standing", {
            "key_name": "standing", "metadata": {"My Server Name": "Apache1"}, "tags": ["tag1", "tag2"],
            "description": "stands", "user_data": USER_DATA, "accessIPv4": "1.2.3.4", "accessIPv6": "80fe::",
            "availability_zone": "nova"}, hints={"group": self.soft_group})))

    def boot(self, name: str = "vm", more: dict[str, Any] | None = None, *, user: str = MEMBER,
             project: str = PROJECT, hints: dict[str, Any] | None = None) -> str:
        body: dict[str, Any] = {"server": {"name": name, "flavorRef": "1", "imageRef": IMAGE, "networks": "auto",
                                           **(more or {})}}
        if hints:
            body["os:scheduler_hints"] = hints
        return self.ask("POST", "/servers", body, user=user, project=project)["server"]["id"]

    def settle(self, uuid: str, *wanted: str) -> str:
        """Wait until no task of the server runs and its status is wanted (ACTIVE); its uuid."""
        def there() -> bool:
            server = self.ask("GET", f"/servers/{uuid}")["server"]
            return server["OS-EXT-STS:task_state"] is None and server["status"] in (wanted or ("ACTIVE",))
        wait_until(f"{uuid} settles", there, SETTLED_S, 0.1)
        return uuid

    @property
    def hinted(self) -> str:
        """A plain server of the member's, to act on, that was made with a scheduler hint."""
        return self.once("hinted", lambda: self.settle(self.boot(
            "hinted", {"availability_zone": "nova", "metadata": {"My Server Name": "Apache1"}, "user_data": USER_DATA},
            hints={"group": self.soft_group})))

    @property
    def stopped(self) -> str:
        """A server with two instance actions: create and stop."""
        def make() -> str:
            uuid = self.settle(self.boot("stopped"))
            self.ask("POST", f"/servers/{uuid}/action", {"os-stop": None}, user=MEMBER)
            return self.settle(uuid, "SHUTOFF")
        return self.once("stopped", make)

    @property
    def theirs(self) -> str:
        """A server of another project."""
        return self.once("theirs", lambda: self.boot("theirs", project=OTHER))

    @property
    def locked(self) -> str:
        def make() -> str:
            uuid = self.settle(self.boot("locked"))
            self.ask("POST", f"/servers/{uuid}/action", {"lock": None}, user=MEMBER)
            return uuid
        return self.once("locked", make)

    @property
    def placed(self) -> str:
        """A server of two NUMA nodes with processors of its own."""
        def make() -> str:
            self.ask("POST", "/flavors", {"flavor": {"name": "numa", "id": "numa", "ram": 512, "vcpus": 4, "disk": 1}})
            self.ask("POST", "/flavors/numa/os-extra_specs", {"extra_specs": {
                "hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "hw:mem_page_size": "small"}})
            return self.settle(self.boot("placed", {"flavorRef": "numa"}))
        return self.once("placed", make)

    @property
    def soft_group(self) -> str:
        return self.once("soft group", lambda: self.ask("POST", "/os-server-groups", {"server_group": {
            "name": "soft", "policy": "soft-affinity"}}, user=MEMBER)["server_group"]["id"])

    def node(self, host: str) -> str:
        """The name of a host's hypervisor."""
        found = self.ask("GET", "/os-hypervisors/detail")["hypervisors"]
        return next(one["hypervisor_hostname"] for one in found if one["service"]["host"] == host)

    def sweep(self) -> None:
        """Remove the servers that scenarios left."""
        if self.doomed_names:
            listed = self.ask("GET", "/servers")["servers"]
            self.doomed += [one["id"] for one in listed if one["name"].startswith(tuple(self.doomed_names))]
        for uuid in self.doomed:
            self.remove(uuid)
        for uuid in self.doomed:
            self.gone(uuid)
        del self.doomed[:]
        self.doomed_names.clear()

    def gone(self, uuid: str) -> None:
        """Wait until a server is no more."""
        wait_until(f"{uuid} is gone", lambda: self.live.session.get(
            f"{self.live.url}/v2.1/servers/{uuid}", headers={"X-Auth-Token": f"admin:{PROJECT}"}).status_code == 404,
            SETTLED_S, 0.1)

    def remove(self, uuid: str) -> None:
        with contextlib.suppress(AssertionError):
            self.ask("DELETE", f"/servers/{uuid}")

    # -- values of path parameters

    def names(self) -> None:
        self._fillers = {
            "server_id": lambda version: self.server,
            "flavor_id": lambda version: "1",
            "key": lambda version: "My Server Name",
            "image_id": lambda version: IMAGE,
            "keypair_name": lambda version: "standing",
            "tenant_id": lambda version: PROJECT,
            "quota_class": lambda version: "default",
            "host_name": lambda version: "host1",
            "alias": lambda version: "os-agents",
            "api_version": lambda version: "v2.1",
            "network_label": lambda version: "private",
            "hypervisor_hostname_pattern": lambda version: "host1",
            "hypervisor_id": self.hypervisor,
            "service_id": self.service,
            "aggregate_id": lambda version: str(self.aggregate["id"]),
            "server_group_id": lambda version: self.group,
            "request_id": lambda version: self.request_id,
            "tag": lambda version: "tag1",
            "migration_id": lambda version: str(self.migration),
            "before_timestamp": lambda version: "2037-01-01 00:00:00",
            "network_id": lambda version: self.network,
            "port_id": lambda version: self.ask("GET", f"/servers/{self.server}/os-interface"
                                                )["interfaceAttachments"][0]["port_id"],
            "floating_ip_id": lambda version: self.floating,
            "security_group_id": lambda version: self.security_group,
            "rule_id": lambda version: self.security_rule,
            "node_id": lambda version: self.hypervisor(1),
            "volume_id": lambda version: NO_VOLUME,
            "snapshot_id": lambda version: NO_VOLUME,
            "console_token": lambda version: self.console_token,
        }

    def fill(self, operation: str, version: int, **values: str) -> str:
        """The operation's path with the standing objects' ids (or ``values``) in it."""
        path = operation.split(" ")[1].partition("#")[0]
        if path.startswith("/images/") or "os-extra_specs" in path:
            values = {"key": "auto_disk_config" if "images" in path else "hw:numa_nodes", **values}
        if "{migration_id}" in path:
            values = {"server_id": self.migrating, **values}
        if path.endswith("os-flavor-access"):
            values = {"flavor_id": "private", **values}
        for name, filler in self._fillers.items():
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", str(values.get(name) or filler(version)))
        assert version in span(operation) and "{" not in path, path
        return path

    def fill_any(self, operation: str) -> str:
        """The path with a 1 for every id."""
        return re.sub(r"\{\w+\}", "1", operation.split(" ")[1].partition("#")[0])

    def hypervisor(self, version: int) -> str:
        """host1's: a number, from 2.53 a uuid."""
        at = 53 if version >= 53 else 52
        found = self.once(f"hypervisors {at}", lambda: self.ask("GET", "/os-hypervisors/detail", version=at))
        return str(next(one["id"] for one in found["hypervisors"] if one["service"]["host"] == "host1"))

    def service(self, version: int) -> str:
        """nova-compute's on host1: a number, from 2.53 a uuid."""
        return self.service_of("nova-compute", "host1", version)

    def service_of(self, binary: str, host: str, version: int) -> str:
        at = 53 if version >= 53 else 52
        found = self.ask("GET", "/os-services", version=at)["services"]
        return str(next(one["id"] for one in found if one["binary"] == binary and one["host"] == host))

    @property
    def aggregate(self) -> dict[str, Any]:
        """One with a zone of its own and host2 in it."""
        def make() -> dict[str, Any]:
            made = self.ask("POST", "/os-aggregates", {"aggregate": {"name": "standing",
                                                                     "availability_zone": "london"}})["aggregate"]
            self.ask("POST", f"/os-aggregates/{made['id']}/action", {"add_host": {"host": "host2"}})
            return made
        return self.once("aggregate", make)

    @property
    def group(self) -> str:
        return self.once("group", lambda: self.ask("POST", "/os-server-groups", {"server_group": {
            "name": "standing", "policy": "anti-affinity", "rules": {"max_server_per_host": 3}}}, user=MEMBER)
            ["server_group"]["id"])

    @property
    def request_id(self) -> str:
        found = self.ask("GET", f"/servers/{self.server}/os-instance-actions")["instanceActions"]
        return found[-1]["request_id"]

    @property
    def network(self) -> str:
        return self.once("network", lambda: self.ask("GET", "/os-networks", version=35)["networks"][0]["id"])

    @property
    def security_group(self) -> str:
        from tests.functional.live import security_groups

        return self.once("security group", lambda: security_groups.made(self))

    @property
    def security_rule(self) -> str:
        from tests.functional.live import security_groups

        return self.once("security rule", lambda: security_groups.rule(self, self.security_group))

    @property
    def floating(self) -> str:
        """The id of a floating address; a pool is made for it."""
        from tests.functional.live import floating

        return self.once("floating", lambda: floating.taken(self)["id"])

    @property
    def console_token(self) -> str:
        """Of the standing server's SPICE console."""
        def make() -> str:
            opened = self.ask("POST", f"/servers/{self.server}/remote-consoles",
                              {"remote_console": {"protocol": "spice", "type": "spice-direct"}}, user=MEMBER)
            return str(opened["remote_console"]["url"].rpartition("token=")[2])
        return self.once("console token", make)

    @property
    def migrating(self) -> str:
        """A server whose live migration is under way, for as long as this world stands: all is sent, and its host
        does not hand it over. There are moves that are over, too."""
        def make() -> str:
            planted.migrations(self, self.server)
            uuid = self.settle(self.boot("migrating"))
            host = self.ask("GET", f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"]
            rules = [{"call": "hand_over", "do": "block", "name": uuid}]
            (self.cloud.state(host) / "fake-knobs.json").write_text(json.dumps({"rules": rules}))
            self.ask("POST", f"/servers/{uuid}/action", {"os-migrateLive": {"host": None, "block_migration": "auto"}})
            wait_until(f"{uuid} is on its way", lambda: self._sent(uuid), SETTLED_S, 0.1)
            planted.progress(self, uuid)
            return uuid
        return self.once("migrating", make)

    def _sent(self, uuid: str) -> bool:
        under_way = self.ask("GET", f"/servers/{uuid}/migrations")["migrations"]
        return any(move["status"] == "running" and move["memory_total_bytes"] and
                   move["memory_processed_bytes"] == move["memory_total_bytes"] for move in under_way)

    @property
    def migration(self) -> int:
        return int(self.ask("GET", f"/servers/{self.migrating}/migrations")["migrations"][0]["id"])
