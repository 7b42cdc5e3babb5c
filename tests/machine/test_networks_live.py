"""nova-network as users have it: two projects' guests on three hosts, floating addresses, groups, attacks, kills."""

from __future__ import annotations

import concurrent.futures
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.machine.conftest import _unable

if _unable():
    pytest.skip(f"no sandbox here: {_unable()}", allow_module_level=True)

from tests.machine.stack import SSH, TOP, Live, Sandbox

pytestmark = pytest.mark.in_turn(9, 10)

GATEWAY, OUTSIDE = "10.11.12.1", "10.200.0.0/24"
GROUP = "inside"
SPOOFED_MAC = "fa:16:3e:de:ad:01"
SOON_S = 10.0


class Guests:
    """Two servers of demo's on two hosts, one of the other project's on the third; ssh comes from the gateway alone."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.demo, self.admin = (sandbox.api(user) for user in ("demo", "admin"))
        for api in (self.demo, self.admin):
            open_group(api)
        self.group = self.demo.ask("POST", "/os-server-groups", 15, {
            "server_group": {"name": "apart", "policies": ["anti-affinity"]}}).json()["server_group"]["id"]
        self.mine, self.mate = (self._boot(name) for name in ("mine", "mate"))
        for uuid in (self.mine, self.mate):  # which have a host by then
            self.demo.settled(uuid, "ACTIVE", seconds=120)
        taken = {sandbox.footprint(uuid).host for uuid in (self.mine, self.mate)}
        [free] = set(sandbox.hosts) - taken
        self.key = self._other_key()
        self.other = self.admin.create("other", host=free, key_name="other", security_groups=[{"name": GROUP}])["id"]
        for api, uuid in ((self.demo, self.mine), (self.demo, self.mate), (self.admin, self.other)):
            api.settled(uuid, "ACTIVE", seconds=120)
            sandbox.ready(api, uuid)
        self.hosts = {uuid: sandbox.footprint(uuid).host for uuid in (self.mine, self.mate, self.other)}

    def _boot(self, name: str) -> str:
        hints = {"os:scheduler_hints": {"group": self.group}}
        body = {"server": {"name": name, "networks": "auto", "key_name": "demo", **self.demo.defaults,
                           "security_groups": [{"name": GROUP}]}, **hints}
        return str(self.demo.call("POST", "/servers", body).json()["server"]["id"])

    def _other_key(self) -> Path:
        public = self.sandbox.key.with_suffix(".pub").read_text().strip()
        self.admin.ask("POST", "/os-keypairs", 1, {"keypair": {"name": "other", "public_key": public}})
        return self.sandbox.key

    def address(self, uuid: str) -> str:
        api = self.admin if uuid == self.other else self.demo
        return next(str(row["addr"]) for row in api.show(uuid)["addresses"]["private"]
                    if row["OS-EXT-IPS:type"] == "fixed")

    def mac(self, uuid: str) -> str:
        return str(self.sandbox.footprint(uuid).macs[0])

    def run(self, uuid: str, script: str, code: int | None = 0) -> str:
        return self.sandbox.ssh(self.address(uuid), script, code=code)

    def pings(self, source: str, target: str, count: int = 3) -> int:
        """How many of so many pings from a guest are answered."""
        said = self.run(source, f"ping -c {count} -W 1 {target}", code=None)
        return int(re.search(r"(\d+) packets received", said)[1])  # type: ignore[index]

    def reaches(self, source: str, target: str) -> bool:
        return "SSH-2.0" in self.run(source, f"nc -w 3 {target} 22 < /dev/null | head -c 7", code=None)


def rule(api: Live, group: str, **fields: Any) -> str:
    body = {"security_group_rule": {"parent_group_id": group, **fields}}
    answer = api.ask("POST", "/os-security-group-rules", 35, body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["security_group_rule"]["id"])


def open_group(api: Live) -> str:
    """The gateway may ping and log in; members of the group may do anything with each other."""
    made = api.ask("POST", "/os-security-groups", 35, {"security_group": {"name": GROUP, "description": GROUP}})
    assert made.status_code == 200, made.text
    group = str(made.json()["security_group"]["id"])
    icmp, login = {"ip_protocol": "icmp", "from_port": -1, "to_port": -1}, \
        {"ip_protocol": "tcp", "from_port": 22, "to_port": 22}
    for ports in (icmp, login):
        rule(api, group, cidr=f"{GATEWAY}/32", **ports)
        rule(api, group, group_id=group, **ports)
    return group


@pytest.fixture(scope="module")
def apart(wide_sandbox: Sandbox) -> Sandbox:
    """Guests of one network are strangers: what comes in is what groups let in."""
    for host in wide_sandbox.hosts:
        file = wide_sandbox.layout.etc / f"nova-{host}" / "nova.conf"
        text = file.read_text()
        if "allow_same_net_traffic" not in text:
            file.write_text(text.replace("[DEFAULT]\n", "[DEFAULT]\nallow_same_net_traffic = false\n", 1))
            wide_sandbox.tool("restart", f"nova-compute-{host}")
    wide_sandbox.run("nova-manage", "floating", "create", "--ip_range", "172.31.0.0/24", "--pool", "nova", user="admin")
    quota = {"quota_set": dict.fromkeys(("floating_ips", "security_groups", "security_group_rules"), -1)}
    admin = wide_sandbox.api("admin")
    project = wide_sandbox.openstack("project", "show", "demo", user="admin")["id"]
    assert admin.ask("PUT", f"/os-quota-sets/{project}", 35, quota).status_code == 200
    for host in wide_sandbox.hosts:  # the outside's way to floating addresses: the controller has them
        wide_sandbox.run("ip", "route", "replace", "172.31.0.0/24", "via", "10.200.0.1", host=host)
    return wide_sandbox


@pytest.fixture(scope="module")
def guests(apart: Sandbox) -> Guests:
    return Guests(apart)


def from_host(sandbox: Sandbox, host: str, address: str) -> bool:
    greeting = f"busybox nc -w 2 {address} 22 < /dev/null | head -c 7"
    return sandbox.run("sh", "-c", greeting, host=host, code=None) == "SSH-2.0"


# --- projects apart


def test_guests_when_of_one_project_then_they_reach_each_other_and_not_the_other_projects(guests: Guests) -> None:
    mate, other = guests.address(guests.mate), guests.address(guests.other)
    assert len(set(guests.hosts.values())) == 3
    assert guests.pings(guests.mine, mate) == 3 and guests.reaches(guests.mine, mate)
    assert guests.pings(guests.mine, other) == 0 and not guests.reaches(guests.mine, other)
    assert guests.pings(guests.other, guests.address(guests.mine)) == 0


# --- floating addresses


@pytest.fixture
def floating(guests: Guests) -> Iterator[dict[str, Any]]:
    """An address of demo's, at its first server."""
    made = guests.demo.ask("POST", "/os-floating-ips", 35, {}).json()["floating_ip"]
    answer = guests.demo.ask("POST", f"/servers/{guests.mine}/action", 43, {"addFloatingIp": {"address": made["ip"]}})
    assert answer.status_code == 202, answer.text
    yield made
    guests.demo.ask("DELETE", f"/os-floating-ips/{made['id']}", 35)


def test_floating_address_when_given_and_taken_then_the_guest_is_reached_and_is_not(
        guests: Guests, floating: dict[str, Any]) -> None:
    outside = guests.hosts[guests.other]
    mine = next(one["id"] for one in guests.demo.at(35, "/os-security-groups").json()["security_groups"]
                if one["name"] == GROUP)
    opened = rule(guests.demo, mine, ip_protocol="tcp", from_port=22, to_port=22, cidr=OUTSIDE)
    wait_until("the outside gets in", lambda: from_host(guests.sandbox, outside, floating["ip"]), SOON_S, 0.2)
    answer = guests.demo.ask("POST", f"/servers/{guests.mine}/action", 43,
                             {"removeFloatingIp": {"address": floating["ip"]}})
    assert answer.status_code == 202
    wait_until("it does not", lambda: not from_host(guests.sandbox, outside, floating["ip"]), SOON_S, 0.2)
    assert not from_host(guests.sandbox, outside, floating["ip"])
    guests.demo.ask("DELETE", f"/os-security-group-rules/{opened}", 35)


def test_rule_when_opened_and_closed_then_a_running_test_of_connections_sees_both(
        guests: Guests, floating: dict[str, Any]) -> None:
    outside, address = guests.hosts[guests.other], floating["ip"]
    group = next(one["id"] for one in guests.demo.at(35, "/os-security-groups").json()["security_groups"]
                 if one["name"] == GROUP)
    assert not from_host(guests.sandbox, outside, address)
    opened = rule(guests.demo, group, ip_protocol="tcp", from_port=22, to_port=22, cidr=OUTSIDE)
    begin = time.monotonic()
    wait_until("opened", lambda: from_host(guests.sandbox, outside, address), SOON_S, 0.1)
    assert guests.demo.ask("DELETE", f"/os-security-group-rules/{opened}", 35).status_code == 202
    wait_until("closed", lambda: not from_host(guests.sandbox, outside, address), SOON_S, 0.1)
    print(f"opened and closed within {time.monotonic() - begin:.1f} s")
    assert guests.pings(guests.mine, guests.address(guests.mate)) == 3, "the other rules hold"


# --- attacks


def neighbours(guests: Guests, uuid: str) -> str:
    return guests.run(uuid, "ip neigh")


def test_guest_when_it_sends_from_another_address_then_nobody_hears_it(guests: Guests) -> None:
    mate, lie = guests.address(guests.mate), "10.11.12.251"
    guests.pings(guests.mine, mate, 1)
    assert guests.address(guests.mine) in neighbours(guests, guests.mate), "an honest frame is seen"
    guests.run(guests.mine, f"ip addr add {lie}/32 dev eth0; ping -c 2 -W 1 -I {lie} {mate}; "
                            f"ip addr del {lie}/32 dev eth0", code=None)
    assert lie not in neighbours(guests, guests.mate)


def test_guest_when_it_says_that_it_is_the_gateway_then_nobody_believes_it(guests: Guests) -> None:
    guests.pings(guests.mate, GATEWAY, 1)
    before = re.search(rf"{GATEWAY} .*lladdr (\S+)", neighbours(guests, guests.mate))
    assert before
    # nobody can be answered meanwhile, not even the gateway that logged in
    guests.run(guests.mine, f"(sleep 1; ip addr add {GATEWAY}/32 dev lo; arping -U -c 3 -I eth0 {GATEWAY}; "
                            f"ip addr del {GATEWAY}/32 dev lo; echo done > /tmp/lied) > /dev/null 2>&1 &", code=None)
    time.sleep(6)
    wait_until("the lie is over", lambda: "done" in guests.run(guests.mine, "cat /tmp/lied", code=None), 20, 0.5)
    after = re.search(rf"{GATEWAY} .*lladdr (\S+)", neighbours(guests, guests.mate))
    assert after and after[1] == before[1] != guests.mac(guests.mine)


def test_guest_when_it_takes_another_mac_then_its_frames_go_nowhere_until_it_has_its_own(guests: Guests) -> None:
    mate, own = guests.address(guests.mate), guests.mac(guests.mine)
    script = (f"(ip link set eth0 address {SPOOFED_MAC}; sleep 1; ping -c 2 -W 1 {mate} > /tmp/spoofed; "
              f"ip link set eth0 address {own}) > /dev/null 2>&1 &")
    guests.run(guests.mine, script, code=None)
    time.sleep(6)
    wait_until("its own MAC is back", lambda: guests.pings(guests.mine, mate, 1) == 1, 20, 0.5)
    assert " 0 packets received" in guests.run(guests.mine, "cat /tmp/spoofed")
    assert SPOOFED_MAC not in neighbours(guests, guests.mate)


def test_guest_when_it_plays_a_dhcp_server_then_others_ask_the_right_one(guests: Guests) -> None:
    conf = "start 10.99.0.10\\nend 10.99.0.20\\ninterface eth0\\nlease_file /tmp/l\\noption subnet 255.255.255.0\\n"
    guests.run(guests.mine, f"printf '{conf}' > /tmp/udhcpd.conf; touch /tmp/l; "
                            "(udhcpd -f /tmp/udhcpd.conf > /dev/null 2>&1 & echo $! > /tmp/udhcpd.pid)")
    try:
        for _ in range(3):
            said = guests.run(guests.mate, "udhcpc -f -n -q -t 3 -T 1 -i eth0 -s /bin/true 2>&1")
            assert guests.address(guests.mate) in said and "10.99." not in said
    finally:
        guests.run(guests.mine, "kill $(cat /tmp/udhcpd.pid)", code=None)


# --- daemons that die


def test_daemons_when_killed_while_guests_talk_then_at_most_two_pings_are_lost(guests: Guests) -> None:
    sandbox, mate = guests.sandbox, guests.address(guests.mate)
    count = 25
    words = [str(TOP / "bin" / "stack"), "--state", str(sandbox.state), "exec", "--as", "demo", "--", "ssh", "-q", "-F",
             "none", "-i", str(sandbox.key), *(word for option in SSH for word in ("-o", option)),
             f"root@{guests.address(guests.mine)}", f"ping -c {count} -W 1 {mate}"]
    with subprocess.Popen(words, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as loop:
        for name in ("nova-network", f"nova-compute-{guests.hosts[guests.mine]}",
                     f"nova-compute-{guests.hosts[guests.mate]}"):
            time.sleep(1)
            sandbox.kill(name)
            sandbox.wait_ready(name, 90)
        said, _ = loop.communicate(timeout=120)
    received = int(re.search(r"(\d+) packets received", said)[1])  # type: ignore[index]
    print(f"{count - received} of {count} pings lost")
    assert received >= count - 2, said


# --- many at once


def test_floating_addresses_when_200_are_allocated_at_once_then_none_twice(apart: Sandbox) -> None:
    demo = apart.api("demo")

    def take(_: int) -> dict[str, Any]:
        answer = demo.ask("POST", "/os-floating-ips", 35, {"pool": "nova"})
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["floating_ip"])
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        made = list(pool.map(take, range(200)))
        addresses = {one["ip"] for one in made}
        assert len(addresses) == 200
        assert {answer.status_code for answer in pool.map(
            lambda one: demo.ask("DELETE", f"/os-floating-ips/{one['id']}", 35), made)} == {202}
    assert demo.at(35, "/os-floating-ips").json()["floating_ips"] == []


# --- users' own clients


def test_old_clients_when_used_then_groups_and_addresses_are_told_and_changed(guests: Guests) -> None:
    box = guests.sandbox
    def nova(version: str, *words: str) -> str:
        return box.nova("--os-compute-api-version", version, *words, guests.mine)

    def groups(version: str) -> set[str]:
        return set(re.findall(r"\| ([a-z]+) +\| [^|]*\|$", nova(version, "list-secgroup"), re.MULTILINE))
    assert groups("2.1") == {GROUP}
    box.nova("--os-compute-api-version", "2.1", "add-secgroup", guests.mine, "default")
    assert groups("2.35") == {GROUP, "default"}
    box.nova("--os-compute-api-version", "2.35", "remove-secgroup", guests.mine, "default")
    assert guests.address(guests.mine) in nova("2.35", "show") and groups("2.1") == {GROUP}
    with_v2 = guests.demo.session.get(guests.demo.url.replace("/v2.1", "/v2") + "/os-networks", timeout=60)
    assert [one["label"] for one in with_v2.json()["networks"]] == ["private"]
    manage = box.run("nova-manage", "network", "list", user="admin")
    assert "10.11.12.0/24" in manage


# --- the end


def test_servers_when_all_are_deleted_then_no_port_rule_lease_or_address_is_left(apart: Sandbox) -> None:
    demo, admin = apart.api("demo"), apart.api("admin")
    feet = [apart.footprint(one["id"]) for one in admin.servers("?all_tenants=1")]
    for api in (demo, admin):
        api.remove(*[one["id"] for one in api.servers()], seconds=90)
    for foot in feet:
        apart.wait_traceless(foot)
    for host, reported in zip(apart.hosts, apart.everywhere(
            "ip -o link show master br100 | grep -v eth1; iptables-save | grep -e -inst-; "
            "ebtables -t nat -L 2>/dev/null | grep -e '-i tap'; true"), strict=True):
        assert reported == "", f"{host}: {reported}"
    leases = json.loads((apart.layout.nova_state("controller") / "networks" / "leases.json").read_text())
    assert not leases or not any(leases.values() if isinstance(leases, dict) else leases), leases
    shown = apart.run("sh", "-c", "ip -o -4 addr show; iptables-save -t nat", user="admin")
    assert "172.31.0." not in shown
