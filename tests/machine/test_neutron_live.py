"""A real neutron-server, real Keystone, our daemons on the fake driver: what a server's life does to its ports."""

from __future__ import annotations

import concurrent.futures
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.machine.conftest import _unable

if _unable():
    pytest.skip(f"no sandbox here: {_unable()}", allow_module_level=True)

from tests.machine.neutron import Neutron, Requests
from tests.machine.stack import Live, Sandbox

pytestmark = pytest.mark.in_turn(1, 10)

PRIVATE = "private"
BINDING, KIND = "binding:host_id", "binding:vif_type"


class Cloud:
    """The sandbox as one ordinary user and as the administrator have it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.image = _image(sandbox)
        self.admin, self.demo = (self._login(user) for user in ("admin", "demo"))
        self.neutron, self.all = Neutron(sandbox), Neutron(sandbox, "admin")
        self.network = self.neutron.network(PRIVATE)
        self.large = ""

    def _login(self, user: str) -> Live:
        made = Live(self.sandbox.layout.url("compute", "/v2.1"), self.sandbox.token(user), self.sandbox.dial, "2.90")
        made.defaults = {"imageRef": self.image, "flavorRef": "", "networks": [{"uuid": ""}]}
        return made

    def ports(self, server: str) -> list[dict[str, Any]]:
        return self.all.ports(server)

    def only_port(self, server: str) -> dict[str, Any]:
        [port] = self.ports(server)
        return port

    def remove(self, *servers: str) -> None:
        self.demo.remove(*servers)
        for server in servers:
            assert self.ports(server) == []

    def host(self, server: str) -> str:
        return str(self.admin.show(server)["OS-EXT-SRV-ATTR:host"])

    def hosts_of(self, server: str) -> set[str]:
        return {port[BINDING] for port in self.ports(server)}


def _image(sandbox: Sandbox) -> str:
    there = {one["Name"]: one["ID"] for one in sandbox.openstack("image", "list", user="admin")}
    if "tiny" in there:
        return str(there["tiny"])
    file = sandbox.state / "tiny.raw"
    file.write_bytes(b"a disk" * 100)
    return str(sandbox.openstack("image", "create", "--public", "--disk-format", "raw", "--container-format", "bare",
                                 "--file", str(file), "tiny", user="admin")["id"])


@pytest.fixture(scope="module")
def cloud(neutron_sandbox: Sandbox) -> Iterator[Cloud]:
    made = Cloud(neutron_sandbox)
    small, large = (neutron_sandbox.flavor(made.admin, name=name, ram=ram) for name, ram in (("n1", 128), ("n2", 256)))
    for one in (made.admin, made.demo):
        one.defaults = {"imageRef": made.image, "flavorRef": small, "networks": [{"uuid": made.network}]}
    made.large = large
    project = neutron_sandbox.openstack("project", "show", "demo", user="admin")["id"]
    made.admin.call("PUT", f"/os-quota-sets/{project}", {"quota_set": dict.fromkeys(("instances", "cores", "ram"), -1)})
    yield made


@pytest.fixture
def server(cloud: Cloud) -> Iterator[str]:
    uuid = cloud.demo.boot()["id"]
    yield uuid
    if not cloud.demo.is_gone(uuid):
        cloud.remove(uuid)


# --- boots


def test_boot_on_a_network_then_a_port_of_ours_is_bound_to_the_host_and_goes_with_the_server(cloud: Cloud) -> None:
    server = cloud.demo.boot("one")
    port = cloud.only_port(server["id"])
    assert port[BINDING] == cloud.host(server["id"]) and port[KIND] == "bridge" and port["status"] == "ACTIVE"
    assert port["device_owner"].startswith("compute:")
    [row] = server["addresses"][PRIVATE]
    assert (row["addr"], row["OS-EXT-IPS-MAC:mac_addr"]) == (port["fixed_ips"][0]["ip_address"], port["mac_address"])
    cloud.remove(server["id"])


def test_boot_when_a_fixed_address_a_port_and_two_networks_are_asked_for_then_each_in_its_order(cloud: Cloud) -> None:
    second, _ = cloud.neutron.subnetted("second", "10.77.0.0/24")
    given = cloud.neutron.make("port", network_id=second, name="given")
    try:
        server = cloud.demo.boot("two", networks=[{"uuid": cloud.network, "fixed_ip": "10.11.12.77"},
                                                   {"port": given["id"]}])
        assert server["addresses"][PRIVATE][0]["addr"] == "10.11.12.77"
        assert server["addresses"]["second"][0]["addr"] == given["fixed_ips"][0]["ip_address"]
        assert len(cloud.ports(server["id"])) == 2
        cloud.remove(server["id"])
        [kept] = cloud.all.list("ports", id=given["id"])
        assert (kept["device_id"], kept[BINDING], kept["name"]) == ("", "", "given")
    finally:
        cloud.neutron.delete("port", given["id"])
        cloud.neutron.delete("network", second)


def test_boot_when_none_or_auto_is_asked_for_then_no_port_or_the_projects_own_network(cloud: Cloud) -> None:
    bare = cloud.demo.boot("none", networks="none")["id"]
    auto = cloud.demo.boot("auto", networks="auto")["id"]
    assert cloud.ports(bare) == [] and cloud.demo.show(bare)["addresses"] == {}
    assert cloud.only_port(auto)["network_id"] == cloud.network
    cloud.remove(bare, auto)


def test_boot_when_security_groups_are_named_then_by_name_and_by_id_and_the_server_tells_names(cloud: Cloud) -> None:
    groups = [cloud.neutron.make("security-group", name=name) for name in ("g1", "g2")]
    server = cloud.demo.boot("grouped", security_groups=[{"name": "g1"}, {"name": groups[1]["id"]}])
    assert {one["name"] for one in server["security_groups"]} == {"g1", "g2"}
    listed = next(one for one in cloud.demo.servers() if one["id"] == server["id"])
    assert {one["name"] for one in listed["security_groups"]} == {"g1", "g2"}
    assert set(cloud.only_port(server["id"])["security_groups"]) == {one["id"] for one in groups}
    cloud.remove(server["id"])
    for group in groups:
        cloud.neutron.delete("security-group", group["id"])


@pytest.mark.parametrize(("fields", "status"), [
    ({"networks": [{"uuid": "11111111-2222-3333-4444-555555555555"}]}, 400),
    ({"networks": [{"port": "11111111-2222-3333-4444-555555555555"}]}, 400),
    ({"security_groups": [{"name": "no such group"}]}, 400)])
def test_create_when_it_names_what_is_not_there_then_refused_at_once_and_no_port_is_made(
        cloud: Cloud, fields: dict[str, Any], status: int) -> None:
    before = {port["id"] for port in cloud.all.list("ports")}
    with pytest.raises(Refused) as refused:
        cloud.demo.create("wrong", **fields)
    assert refused.value.status == status
    assert {port["id"] for port in cloud.all.list("ports")} == before


def test_boot_when_a_port_can_be_bound_nowhere_then_error_says_so_and_the_port_is_kept_unbound(cloud: Cloud) -> None:
    port = cloud.all.make("port", network_id=cloud.network, project_id=cloud.neutron.list("networks", name=PRIVATE)[0][
        "project_id"], **{"binding:vnic_type": "smart-nic"})
    uuid = cloud.demo.create("unbindable", networks=[{"port": port["id"]}])["id"]
    server = cloud.demo.settled(uuid, "ERROR", seconds=90)
    assert server["fault"]["message"]
    cloud.demo.remove(uuid)
    [kept] = cloud.all.list("ports", id=port["id"])
    assert (kept["device_id"], kept[BINDING]) == ("", "")
    cloud.neutron.delete("port", port["id"])


# --- moves


def _moved(cloud: Cloud, server: str, before: str) -> None:
    now = cloud.host(server)
    assert now != before and cloud.hosts_of(server) == {now}
    assert {port[KIND] for port in cloud.ports(server)} == {"bridge"}


def test_cold_migration_and_resize_when_confirmed_then_the_port_is_where_the_server_is(
        cloud: Cloud, server: str) -> None:
    for action, argument in (("migrate", None), ("resize", {"flavorRef": cloud.large})):
        before = cloud.host(server)
        cloud.admin.act(server, action, argument)
        cloud.admin.settled(server, "VERIFY_RESIZE")
        assert cloud.hosts_of(server) == {cloud.host(server)}
        if action == "migrate":
            _moved(cloud, server, before)
        cloud.admin.act(server, "confirmResize")
        cloud.admin.settled(server, "ACTIVE")


def test_cold_migration_when_reverted_then_the_port_is_back(cloud: Cloud, server: str) -> None:
    before = cloud.host(server)
    cloud.admin.act(server, "migrate")
    cloud.admin.settled(server, "VERIFY_RESIZE")
    cloud.admin.act(server, "revertResize")
    cloud.admin.settled(server, "ACTIVE")
    assert cloud.host(server) == before and cloud.hosts_of(server) == {before}


def test_live_migration_then_the_port_has_one_binding_at_its_new_host(cloud: Cloud, server: str) -> None:
    before = cloud.host(server)
    cloud.admin.act(server, "os-migrateLive", {"host": None, "block_migration": "auto"})
    wait_until("it has moved", lambda: cloud.host(server) != before, 60, 0.3)
    cloud.admin.settled(server, "ACTIVE")
    _moved(cloud, server, before)
    bindings = cloud.all.call("GET", f"/ports/{cloud.only_port(server)['id']}/bindings")["bindings"]
    assert [one["host"] for one in bindings] == [cloud.host(server)]


def test_shelve_then_the_port_is_bound_nowhere_and_unshelve_binds_it_again(cloud: Cloud, server: str) -> None:
    port = cloud.only_port(server)
    cloud.demo.act(server, "shelve")
    cloud.demo.settled(server, "SHELVED_OFFLOADED", seconds=60)
    [kept] = cloud.ports(server)
    assert kept["id"] == port["id"] and kept[BINDING] == ""
    cloud.demo.act(server, "unshelve")
    cloud.demo.settled(server, "ACTIVE", seconds=60)
    assert cloud.hosts_of(server) == {cloud.host(server)} and cloud.only_port(server)["id"] == port["id"]


def test_evacuate_then_the_port_is_bound_to_the_new_host(cloud: Cloud, server: str) -> None:
    before = cloud.host(server)
    daemon = f"nova-compute-{before}"
    cloud.sandbox.tool("stop", daemon)
    try:
        service = next(one for one in cloud.admin.get("/os-services?binary=nova-compute")["services"]
                       if one["host"] == before)
        cloud.admin.call("PUT", f"/os-services/{service['id']}", {"forced_down": True})
        cloud.admin.act(server, "evacuate", {})
        wait_until("it has moved", lambda: cloud.host(server) != before, 60, 0.3)
        cloud.admin.settled(server, "ACTIVE")
        _moved(cloud, server, before)
    finally:
        cloud.admin.call("PUT", f"/os-services/{service['id']}", {"forced_down": False})
        cloud.sandbox.tool("start", daemon)


# --- interfaces that come and go


def test_interface_when_attached_by_network_and_by_port_then_there_and_when_detached_gone_or_free(
        cloud: Cloud, server: str) -> None:
    given = cloud.neutron.make("port", network_id=cloud.network, name="mine")
    first = cloud.only_port(server)["id"]
    made = cloud.demo.call("POST", f"/servers/{server}/os-interface",
                           {"interfaceAttachment": {"net_id": cloud.network}}).json()["interfaceAttachment"]
    cloud.demo.call("POST", f"/servers/{server}/os-interface", {"interfaceAttachment": {"port_id": given["id"]}})
    listed = cloud.demo.get(f"/servers/{server}/os-interface")["interfaceAttachments"]
    assert {one["port_id"] for one in listed} == {first, made["port_id"], given["id"]}
    assert cloud.hosts_of(server) == {cloud.host(server)}
    for port in (made["port_id"], given["id"]):
        cloud.demo.call("DELETE", f"/servers/{server}/os-interface/{port}")
    wait_until("both are out", lambda: len(cloud.ports(server)) == 1, 30, 0.2)
    assert cloud.all.list("ports", id=made["port_id"]) == []
    [kept] = cloud.all.list("ports", id=given["id"])
    assert (kept["device_id"], kept[BINDING]) == ("", "")
    left = [cloud.only_port(server)["fixed_ips"][0]["ip_address"]]
    wait_until("their addresses are not shown", lambda: left == [
        row["addr"] for row in cloud.demo.show(server)["addresses"][PRIVATE]], 15, 0.2)
    cloud.neutron.delete("port", given["id"])


# --- a Neutron that is away


def test_create_when_neutron_is_stopped_then_it_names_the_service_and_leaves_nothing(cloud: Cloud) -> None:
    cloud.sandbox.tool("stop", "neutron")
    try:
        with pytest.raises(Refused) as refused:
            cloud.demo.create("early", security_groups=[{"name": "default"}])
        assert refused.value.status in (500, 503) and "network" in refused.value.message
    finally:
        cloud.sandbox.tool("start", "neutron")
    assert not [one for one in cloud.demo.servers() if one["name"] == "early"]


def test_neutron_when_it_is_killed_while_servers_come_and_go_then_no_port_is_left(cloud: Cloud) -> None:
    leaving = [cloud.demo.boot("leaving")["id"] for _ in range(2)]
    coming = [cloud.demo.create("coming")["id"] for _ in range(4)]
    for uuid in leaving:
        cloud.demo.delete(uuid)
    cloud.sandbox.tool("stop", "neutron")
    time.sleep(3)
    cloud.sandbox.tool("start", "neutron")
    for uuid in coming:
        server = cloud.demo.settled(uuid, seconds=90)
        assert server["status"] == "ACTIVE" or "network" in server["fault"]["message"], server
    for uuid in leaving:
        cloud.demo.gone(uuid, 90)
    cloud.demo.remove(*coming, seconds=90)
    for uuid in (*leaving, *coming):
        wait_until(f"no port is left of {uuid}", lambda uuid=uuid: cloud.ports(uuid) == [], 90, 0.5)


# --- events


def test_events_when_ports_come_up_then_neutron_is_answered_200(cloud: Cloud) -> None:
    requests = cloud.sandbox.layout.log("neutron")
    begin = requests.stat().st_size
    uuid = cloud.demo.boot("eventful")["id"]

    def reported() -> bool:
        text = requests.read_bytes()[begin:].decode(errors="replace")
        return any(uuid in line and "network-vif-plugged" in line and "'code': 200" in line
                   for line in text.splitlines())
    wait_until("Neutron was answered 200", reported, 15, 0.3)
    cloud.remove(uuid)


def test_floating_address_when_neutron_moves_it_then_the_server_shows_it(cloud: Cloud, server: str) -> None:
    public = cloud.all.network("public")
    floating = cloud.neutron.make("floatingip", floating_network_id=public, port_id=cloud.only_port(server)["id"])
    address = floating["floating_ip_address"]
    wait_until("it is shown", lambda: address in json.dumps(cloud.demo.show(server)["addresses"]), 15, 0.3)
    cloud.neutron.call("PUT", f"/floatingips/{floating['id']}", {"floatingip": {"port_id": None}})
    wait_until("it is not", lambda: address not in json.dumps(cloud.demo.show(server)["addresses"]), 15, 0.3)
    cloud.neutron.delete("floatingip", floating["id"])


# --- old versions' proxies


def test_proxies_when_old_versions_ask_then_neutrons_things_are_shown_and_changed(cloud: Cloud, server: str) -> None:
    demo = cloud.demo
    assert PRIVATE in {one["label"] for one in demo.at(35, "/os-networks").json()["networks"]}
    assert PRIVATE in {one["label"] for one in demo.at(35, "/os-tenant-networks").json()["networks"]}
    assert demo.at(35, "/os-floating-ip-pools").json()["floating_ip_pools"] == [{"name": "public"}]
    assert demo.at(36, "/os-networks").status_code == 404
    made = demo.ask("POST", "/os-floating-ips", 35, {"pool": None}).json()["floating_ip"]
    answer = demo.ask("POST", f"/servers/{server}/action", 43, {"addFloatingIp": {"address": made["ip"]}})
    assert answer.status_code == 202, answer.text
    shown = demo.at(35, f"/os-floating-ips/{made['id']}").json()["floating_ip"]
    assert shown["instance_id"] == server and shown["pool"] == "public"
    wait_until("the server has it", lambda: made["ip"] in json.dumps(demo.show(server)["addresses"]), 15, 0.3)
    answer = demo.ask("POST", f"/servers/{server}/action", 43, {"removeFloatingIp": {"address": made["ip"]}})
    assert answer.status_code == 202
    assert demo.ask("DELETE", f"/os-floating-ips/{made['id']}", 35).status_code == 202

    group = demo.ask("POST", "/os-security-groups", 35, {"security_group": {"name": "old", "description": "way"}})
    group = group.json()["security_group"]
    rule = demo.ask("POST", "/os-security-group-rules", 35, {"security_group_rule": {
        "parent_group_id": group["id"], "ip_protocol": "tcp", "from_port": 22, "to_port": 22, "cidr": "10.0.0.0/8"}})
    assert rule.status_code == 200, rule.text
    demo.act(server, "addSecurityGroup", {"name": "old"})
    names = {one["name"] for one in demo.get(f"/servers/{server}/os-security-groups")["security_groups"]}
    assert names == {"default", "old"}
    assert demo.ask("DELETE", f"/os-security-groups/{group['id']}", 35).status_code == 400, "it is in use"
    demo.act(server, "removeSecurityGroup", {"name": group["id"]})
    assert demo.ask("DELETE", f"/os-security-groups/{group['id']}", 35).status_code == 202
    assert demo.ask("GET", "/os-security-group-default-rules", 35).status_code == 410


# --- unmodified clients


#: What the client is told, in sessions of it (it takes seconds to start). ``{floating}``: the address it was given.
MAKES = """\
network create cli-net
subnet create --network cli-net --subnet-range 10.88.0.0/24 cli-sub
router create cli-router
router set --external-gateway public cli-router
router add subnet cli-router cli-sub
port create --network cli-net cli-port
security group create cli-group
security group rule create --proto tcp --dst-port 22 cli-group
floating ip create --description cli public
server create --image tiny --flavor n1 --network cli-net --port cli-port --security-group cli-group --wait cli-vm
port create --network cli-net cli-extra
"""
ADDS = """\
server add floating ip cli-vm {floating}
server add security group cli-vm default
server add port cli-vm cli-extra
"""
TAKES = """\
server show cli-vm
server remove security group cli-vm cli-group
server remove floating ip cli-vm {floating}
server remove port cli-vm cli-extra
"""
CLEARS = """\
floating ip delete {floating}
server delete --wait cli-vm
router remove subnet cli-router cli-sub
port delete cli-port cli-extra
router delete cli-router
network delete cli-net
security group delete cli-group
"""


def _reported(cloud: Cloud, words: str, floating: str = "") -> str:
    return cloud.sandbox.run("openstack", stdin=words.format(floating=floating), code=None)


def test_openstack_client_when_used_for_networks_and_servers_then_all_of_it_works(cloud: Cloud) -> None:
    floating = ""
    try:
        said = _reported(cloud, MAKES)
        [floating] = [one["floating_ip_address"] for one in cloud.neutron.list("floatingips", description="cli")]
        _use_the_client(cloud, floating, said)
    finally:
        _reported(cloud, CLEARS, floating)
    left = {one["name"] for noun in ("networks", "ports", "routers", "security-groups")
            for one in cloud.neutron.list(noun)}
    assert not [name for name in left if name.startswith("cli-")]
    assert cloud.neutron.list("floatingips", description="cli") == []


def _use_the_client(cloud: Cloud, floating: str, said: str) -> None:
    """What each session did is seen through the APIs."""
    neutron = cloud.neutron
    [uuid] = [one["id"] for one in cloud.demo.servers() if one["name"] == "cli-vm"]
    network = neutron.network("cli-net")
    [router], [group] = neutron.list("routers", name="cli-router"), neutron.list("security-groups", name="cli-group")
    assert router["external_gateway_info"], said
    assert [one["device_id"] for one in neutron.list("ports", network_id=network)].count(router["id"]) == 1, said
    assert [one["port_range_min"] for one in group["security_group_rules"] if one["port_range_min"]] == [22], said
    own = {one["name"]: one["id"] for one in neutron.list("ports", network_id=network)}
    assert own["cli-port"] in {port["id"] for port in cloud.ports(uuid)} and len(cloud.ports(uuid)) == 2, said

    said = _reported(cloud, ADDS, floating)
    wait_until("the address is shown", lambda: floating in json.dumps(cloud.demo.show(uuid)["addresses"]), 20, 0.3)
    assert own["cli-extra"] in {port["id"] for port in cloud.ports(uuid)}, said
    assert {one["name"] for one in cloud.demo.show(uuid)["security_groups"]} == {"cli-group", "default"}, said

    said = _reported(cloud, TAKES, floating)
    assert floating in said and "cli-group" in said, said
    wait_until("the port is out", lambda: own["cli-extra"] not in {port["id"] for port in cloud.ports(uuid)}, 20, 0.3)
    [kept] = neutron.list("floatingips", description="cli")
    assert kept["port_id"] is None, said
    assert {one["name"] for one in cloud.demo.show(uuid)["security_groups"]} == {"default"}, said


# --- cost

MOST_CALLS = 4  # of HTTP, that a boot with Neutron adds
MOST_MESSAGES = 12 + 3  # a boot's with nova-network, and what Neutron adds


def test_boot_then_at_most_four_calls_of_neutron(cloud: Cloud) -> None:
    asked = Requests(cloud.sandbox)
    cloud.remove(cloud.demo.boot("warm")["id"])
    time.sleep(2)  # calls that follow a delete
    asked.begin()
    uuid = cloud.demo.boot("counted")["id"]
    calls = asked.seen()
    cloud.remove(uuid)
    print(f"Neutron's calls of a boot: {calls}")
    assert len(calls) <= MOST_CALLS, calls


def _messages(sandbox: Sandbox, work: Callable[[], Any]) -> int:
    """What the broker got meanwhile, Neutron's own to its agents too, less what comes anyway in the same time."""
    home = sandbox.state / "data" / "rabbitmq"
    ask = ("env", f"HOME={home}", "ERL_EPMD_PORT=4370", "RABBITMQ_NODENAME=nova@controller",
           "RABBITMQ_CONF_ENV_FILE=/dev/null", "/usr/lib/rabbitmq/bin/rabbitmqctl", "-q", "eval",
           "rabbit_global_counters:overview().")

    def received() -> int:
        found = re.search(r"messages_received_total => (\d+)", sandbox.run(*ask, user="admin"))
        assert found
        return int(found[1])
    start, first = time.monotonic(), received()
    time.sleep(3)
    idle = (received() - first) / (time.monotonic() - start)
    start, first = time.monotonic(), received()
    work()
    time.sleep(2)
    return round(received() - first - idle * (time.monotonic() - start))


def test_boot_then_at_most_three_messages_more_than_with_nova_network(cloud: Cloud) -> None:
    """What Neutron itself says for a port that is bound is measured by ports that are no server's, and taken off. Of
    several boots, so that what daemons say by themselves meanwhile counts little."""
    boots = 5
    host = {"binding:host_id": "fake1"}
    ports: list[str] = []
    servers: list[str] = []

    def bind() -> None:
        ports.extend(cloud.all.make("port", network_id=cloud.network, **host)["id"] for _ in range(boots))

    def boot() -> None:
        for _ in range(boots):  # who asks whether one is done may cause messages, too
            servers.append(cloud.demo.create("counted")["id"])
            time.sleep(1)
    own, counted = _messages(cloud.sandbox, bind), _messages(cloud.sandbox, boot)
    for uuid in servers:
        cloud.demo.settled(uuid, "ACTIVE")
    print(f"messages of {boots} boots: {counted}, of which Neutron's own {own}")
    cloud.remove(*servers)
    for port in ports:
        cloud.neutron.delete("port", port)
    assert counted - max(own, 0) <= MOST_MESSAGES * boots


def test_boots_in_parallel_then_no_address_twice(cloud: Cloud) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = [one["id"] for one in pool.map(lambda n: cloud.demo.create(f"many{n}"), range(24))]
    addresses = [row["addr"] for uuid in made
                 for row in cloud.demo.settled(uuid, "ACTIVE", seconds=120)["addresses"][PRIVATE]]
    assert len(addresses) == len(set(addresses)) == 24
    cloud.remove(*made)


