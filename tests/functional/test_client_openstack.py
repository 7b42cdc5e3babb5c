"""Sessions of the unmodified `openstack` command: every command for what we serve, its JSON read and checked."""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.clients import ACCOUNTS, VENV, Failed, User, Worker, public_key
from tests.functional.cloud import Cloud, Plan
from tests.functional.whole import usually

pytestmark = pytest.mark.in_turn(2, 10)

#: commands of the compute API that need volumes or shares
LATER = re.compile(r"server (add |remove )?(volume|share)\b")
#: where sessions of the command are
SESSIONS = [Path(__file__), *map(Path(__file__).with_name, ("test_client_life.py", "test_client_consoles.py"))]
#: gone from every server; of the client alone; one that needs a host that left; old names of `server migration ...`;
#: what Neutron alone has
OTHER = {"compute agent create", "compute agent delete", "compute agent set", "server ssh", "compute service delete",
         "server migrate confirm", "server migrate revert",
         "server add port", "server add floating ip", "server remove floating ip"}
OLD = {"X-OpenStack-Nova-API-Version": "2.35"}  # the newest that still has nova-network's own operations
CREATE = "server create --flavor m1.tiny --image tiny --nic auto --wait"


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    return make_cloud(usually(Plan(computes=2, cells=sampling.cells(2)))).start()


@pytest.fixture(scope="module")
def vm(cloud: Cloud, worker: Worker) -> Iterator[str]:
    """The name of a server of demo's; tests leave it as they found it."""
    user = User(worker, "demo")
    assert user.openstack(CREATE, "vm")["status"] == "ACTIVE"
    yield "vm"
    user.do("server delete --wait vm")


def named(rows: list[dict[str, Any]], column: str = "Name") -> set[str]:
    return {row[column] for row in rows}


# --- servers: their life


def test_server_create_when_everything_is_said_then_show_tells_it(demo, admin, tmp_path) -> None:
    demo.do("keypair create --public-key", str(public_key(tmp_path)), "session")
    (tmp_path / "data").write_text("#!/bin/sh\n")
    made = demo.openstack(f"{CREATE} --key-name session --property colour=blue --property size=2 --tag one --tag two "
                          f"--hostname told --config-drive True --user-data {tmp_path}/data --availability-zone nova "
                          "--description", "two words", "full")
    shown = demo.openstack("server show full")
    assert made["adminPass"] and made["id"] == shown["id"]
    assert (shown["status"], shown["key_name"], shown["description"]) == ("ACTIVE", "session", "two words")
    assert shown["properties"] == {"colour": "blue", "size": "2"} and set(shown["tags"]) == {"one", "two"}
    assert shown["OS-EXT-AZ:availability_zone"] == "nova" and shown["config_drive"] == "True"
    assert shown["image"] == f"tiny ({IMAGE})" and shown["flavor"]["name"] == "m1.tiny"
    assert list(shown["addresses"]) == ["private"] and len(shown["addresses"]["private"]) == 1
    assert admin.openstack("server show", shown["id"])["OS-EXT-SRV-ATTR:hostname"] == "told"
    demo.do("server delete --wait full")
    demo.do("keypair delete session")
    with pytest.raises(Failed, match="No [Ss]erver found for full"):
        demo.openstack("server show full")


def test_server_create_when_two_are_wanted_then_both_are_made_and_deleted(demo) -> None:
    demo.do(f"{CREATE} --min 2 --max 2 pair")
    assert named(demo.openstack("server list --name pair")) == {"pair-1", "pair-2"}
    demo.do("server delete --wait pair-1 pair-2")
    assert demo.openstack("server list --name pair") == []


def test_server_create_when_admin_names_the_host_then_it_is_there(admin) -> None:
    admin.do(f"{CREATE} --host host2", "placed")
    shown = admin.openstack("server show placed")
    assert shown["OS-EXT-SRV-ATTR:host"] == shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "host2"
    assert shown["OS-EXT-SRV-ATTR:instance_name"].startswith("instance-") and shown["host_status"] == "UP"
    admin.do("server delete --wait placed")


def test_server_create_when_the_flavor_is_unknown_then_it_fails_and_says_so(demo) -> None:
    with pytest.raises(Failed, match="No Flavor found for huge"):
        demo.do("server create --flavor huge --image tiny --nic auto wrong")


def test_server_power_when_stopped_started_and_rebooted_then_the_state_follows(demo, vm) -> None:
    demo.do("server stop", vm)
    wait_until("it is off", lambda: demo.openstack("server show", vm)["status"] == "SHUTOFF", 20, 0.2)
    demo.do("server start", vm)
    wait_until("it is on", lambda: demo.openstack("server show", vm)["status"] == "ACTIVE", 20, 0.2)
    demo.do("server reboot --soft --wait", vm)
    demo.do("server reboot --hard --wait", vm)
    assert demo.openstack("server show", vm)["status"] == "ACTIVE"
    assert "login:" in demo.run("openstack", "console", "log", "show", vm)
    assert len(demo.run("openstack", "console", "log", "show", "--lines", "1", vm).splitlines()) == 1


def test_server_lock_when_locked_by_admin_then_its_owner_is_refused_until_unlocked(demo, admin, vm) -> None:
    uuid = demo.openstack("server show", vm)["id"]
    admin.do("server lock --reason", "hands off", uuid)
    shown = demo.openstack("server show", vm)
    assert (shown["locked"], shown["locked_reason"]) == (True, "hands off")
    assert named(demo.openstack("server list --locked")) == {vm}
    with pytest.raises(Failed, match="locked"):
        demo.do("server stop", vm)
    admin.do("server unlock", uuid)
    assert demo.openstack("server list --locked") == [] and vm in named(demo.openstack("server list --unlocked"))


# --- servers: what is told of them


def test_server_set_and_unset_when_said_then_shown(demo, vm) -> None:
    demo.do(f"server set --name other --property a=1 --property b=2 --tag x --tag y {vm} --description", "some words")
    shown = demo.openstack("server show other")
    assert shown["properties"] == {"a": "1", "b": "2"} and set(shown["tags"]) == {"x", "y"}
    assert shown["description"] == "some words"
    demo.do(f"server set --name {vm} --hostname renamed other")
    demo.do(f"server unset --property a --tag x --description {vm}")
    shown = demo.openstack("server show", vm)
    assert (shown["properties"], shown["tags"], shown["description"]) == ({"b": "2"}, ["y"], "")
    demo.do(f"server unset --property b --tag y {vm}")


def test_server_set_state_when_admin_says_error_then_it_is_so_until_said_otherwise(admin, demo, vm) -> None:
    uuid = demo.openstack("server show", vm)["id"]
    admin.do("server set --auto-approve --state error", uuid)
    assert demo.openstack("server show", vm)["status"] == "ERROR"
    with pytest.raises(Failed, match="403|not allowed|Policy"):
        demo.do("server set --auto-approve --state active", vm)
    admin.do("server set --auto-approve --state active", uuid)
    assert demo.openstack("server show", vm)["status"] == "ACTIVE"


def test_server_list_when_filtered_then_only_those(demo, admin, vm) -> None:
    demo.do(f"server set --tag red --tag big {vm}")
    for words in ("--name ^v", "--status ACTIVE", "--flavor m1.tiny", "--image tiny", "--tags red,big",
                  "--not-tags small", "--ip 10.11", "--power-state running", "--availability-zone nova", "--long",
                  "--no-name-lookup", "--limit 5"):
        assert vm in named(demo.openstack(f"server list {words}")), words
    for words in ("--name w", "--status SHUTOFF", "--tags small", "--not-tags red", "--ip 10.99",
                  "--power-state paused", "--config-drive", "--changes-before 2001-01-01T00:00:00Z"):
        assert demo.openstack(f"server list {words}") == [], words
    assert vm not in named(admin.openstack("server list"))
    rows = admin.openstack("server list --all-projects --long --project demo --host",
                           admin.openstack("server list --all-projects --long --name", vm)[0]["Host"])
    assert vm in named(rows) and rows[0]["Networks"]["private"]
    demo.do(f"server unset --tag red --tag big {vm}")


def test_server_list_when_sorted_and_paged_then_in_order(demo) -> None:
    for name in ("page-b", "page-a", "page-c"):
        demo.do(CREATE, name)
    rows = demo.openstack("server list --name ^page --sort-column Name --sort-ascending")
    assert [row["Name"] for row in rows] == ["page-a", "page-b", "page-c"]
    first = demo.openstack("server list --name ^page --limit 1")  # the newest first
    assert [row["Name"] for row in first] == ["page-c"]
    rest = demo.openstack("server list --name ^page --marker", first[0]["ID"])
    assert [row["Name"] for row in rest] == ["page-a", "page-b"]
    demo.do("server delete --wait page-a page-b page-c")


def test_server_list_when_deleted_ones_are_asked_for_then_only_an_admin_sees_them(demo, admin) -> None:
    since = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    demo.do(CREATE, "doomed")
    demo.do("server delete --wait doomed")
    found = admin.openstack(f"server list --all-projects --deleted --changes-since {since} --name doomed")
    assert [row["Status"] for row in found] == ["DELETED"]
    assert demo.openstack("server list --name doomed") == []


def test_server_show_when_diagnostics_and_topology_are_asked_then_they_are_told(admin, demo, vm) -> None:
    uuid = demo.openstack("server show", vm)["id"]
    diagnostics = admin.openstack("server show --diagnostics", uuid)
    assert diagnostics["state"] == "running" and diagnostics["hypervisor"]
    topology = admin.at("2.78").openstack("server show --topology", uuid)["topology"]
    assert "nodes" in topology and topology["pagesize_kb"] is None
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.openstack("server show --diagnostics", vm)


def test_server_event_when_listed_then_each_can_be_shown(demo, admin, vm) -> None:
    rows = demo.openstack("server event list --long", vm)
    create = next(row for row in rows if row["Action"] == "create")
    assert create["Request ID"].startswith("req-") and create["Project ID"] == create["User ID"] == "demo"
    shown = demo.openstack(f"server event show {vm}", create["Request ID"])
    assert shown["action"] == "create" and shown["events"][0]["result"] == "Success"
    seen = admin.at("2.62").openstack("server event show", rows[0]["Server ID"], create["Request ID"])
    assert {event["host"] for event in seen["events"]} & {"host1", "host2"}
    with pytest.raises(Failed, match="404|not found|No ServerAction"):
        demo.openstack(f"server event show {vm} req-00000000-0000-0000-0000-000000000000")


def test_server_migration_when_there_is_none_then_lists_are_empty(admin, demo, vm) -> None:
    uuid = demo.openstack("server show", vm)["id"]
    assert admin.openstack("server migration list") == []
    assert admin.openstack("server migration list --type resize --status done --host host1 --server", uuid) == []
    with pytest.raises(Failed, match="404|not found|could not be found|No ServerMigration"):
        admin.openstack(f"server migration show {uuid} 1")
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.openstack("server migration list")


# --- server groups


def test_server_group_when_made_then_its_members_are_kept_apart(demo) -> None:
    made = demo.openstack("server group create --policy anti-affinity --rule max_server_per_host=1 apart")
    assert made["policy"] == "anti-affinity" and made["members"] in ([], "")
    for name in ("apart-1", "apart-2"):
        demo.do(f"{CREATE} --hint group={made['id']}", name)
    shown = demo.openstack("server group show apart")
    members = shown["members"] if isinstance(shown["members"], list) else shown["members"].split(", ")
    assert len(members) == 2
    hosts = {demo.openstack("server show", name)["hostId"] for name in ("apart-1", "apart-2")}
    assert len(hosts) == 2
    with pytest.raises(Failed):
        demo.do(f"{CREATE} --hint group={made['id']}", "apart-3")
    assert named(demo.openstack("server group list --long")) == {"apart"}
    for name in ("apart-1", "apart-2", "apart-3"):
        demo.do("server delete --wait", name)
    demo.do("server group delete apart")
    assert demo.openstack("server group list") == []


# --- flavors, keys


def test_flavor_when_made_changed_and_deleted_then_each_is_shown(admin, demo) -> None:
    made = admin.openstack("flavor create --id 77 --ram 1024 --disk 2 --ephemeral 1 --swap 64 --vcpus 2 --private "
                           "--property hw:cpu_policy=shared --project demo --description", "made here", "session")
    assert (made["ram"], made["vcpus"], made["swap"], made["id"]) == (1024, 2, 64, "77")
    assert made["os-flavor-access:is_public"] is False and made["description"] == "made here"
    admin.do("flavor set --property hw:mem_page_size=small --description", "changed", "session")
    shown = admin.openstack("flavor show session")
    assert shown["properties"] == {"hw:cpu_policy": "shared", "hw:mem_page_size": "small"}
    assert shown["access_project_ids"] == ["demo"] and shown["description"] == "changed"
    assert "session" in named(demo.openstack("flavor list --all --min-ram 1000"))
    assert admin.openstack("flavor list --private --long")[0]["Properties"] == shown["properties"]
    admin.do("flavor unset --property hw:mem_page_size --project demo session")
    assert admin.openstack("flavor show session")["properties"] == {"hw:cpu_policy": "shared"}
    assert "session" not in named(demo.openstack("flavor list"))
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.do("flavor delete m1.tiny")
    admin.do("flavor delete session")
    assert named(admin.openstack("flavor list --all")) == {"m1.tiny"}


def test_flavor_set_when_the_value_is_wrong_then_the_property_is_named(admin) -> None:
    with pytest.raises(Failed, match="hw:cpu_policy"):
        admin.at("2.86").do("flavor set --property hw:cpu_policy=wrong m1.tiny")


def test_keypair_when_made_of_a_public_key_then_listed_shown_and_deleted(demo, admin, tmp_path) -> None:
    path = public_key(tmp_path)
    made = demo.openstack("keypair create --public-key", str(path), "laptop")
    assert made["fingerprint"] and made["type"] == "ssh" and made["user_id"] == "demo"
    assert named(demo.openstack("keypair list")) == {"laptop"}
    assert demo.run("openstack", "keypair", "show", "--public-key", "laptop").split() == path.read_text().split()
    assert named(admin.openstack("keypair list --user demo")) == {"laptop"} and not admin.openstack("keypair list")
    demo.do("keypair delete laptop")
    assert demo.openstack("keypair list") == []


def test_keypair_create_when_no_key_is_given_then_a_private_one_is_made(demo) -> None:
    assert "PRIVATE KEY" in demo.run("openstack", "keypair", "create", "made")
    demo.do("keypair delete made")


# --- what operators do


def test_aggregate_when_it_has_hosts_and_a_zone_then_servers_land_there(admin, demo) -> None:
    made = admin.openstack("aggregate create --zone east --property ssd=true rack")
    assert (made["name"], made["availability_zone"]) == ("rack", "east")
    assert admin.openstack("aggregate add host rack host1")["hosts"] == ["host1"]
    assert "east" in named(demo.openstack("availability zone list"), "Zone Name")
    demo.do("server create --flavor m1.tiny --image tiny --nic auto --wait --availability-zone east in-east")
    assert demo.openstack("server show in-east")["OS-EXT-AZ:availability_zone"] == "east"
    with pytest.raises(Failed):
        admin.do("aggregate delete rack")
    demo.do("server delete --wait in-east")
    admin.do("aggregate set --name shelf --property ssd=false --property gpu=no rack")
    shown = admin.openstack("aggregate show shelf")
    assert shown["properties"] == {"ssd": "false", "gpu": "no"} and shown["availability_zone"] == "east"
    admin.do("aggregate unset --property gpu shelf")
    assert admin.openstack("aggregate list --long")[0]["Properties"] == {"ssd": "false"}
    admin.do("aggregate cache image shelf tiny")
    assert admin.openstack("aggregate remove host shelf host1")["hosts"] == []
    admin.do("aggregate delete shelf")
    assert admin.openstack("aggregate list") == []
    assert "east" not in named(demo.openstack("availability zone list"), "Zone Name")


def test_availability_zone_when_listed_in_full_then_hosts_and_their_services_are_told(admin) -> None:
    rows = admin.openstack("availability zone list --compute --long")
    assert {("nova", "host1", "nova-compute"), ("nova", "host2", "nova-compute")} <= {
        (row["Zone Name"], row["Host Name"], row["Service Name"]) for row in rows}


def test_compute_service_when_disabled_then_no_server_lands_there(admin, demo) -> None:
    rows = admin.openstack("compute service list --service nova-compute --long")
    assert {(row["Host"], row["Status"], row["State"]) for row in rows} == {
        ("host1", "enabled", "up"), ("host2", "enabled", "up")}
    admin.do("compute service set --disable host1 nova-compute --disable-reason", "a new fan")
    row = admin.openstack("compute service list --long --host host1 --service nova-compute")[0]
    assert (row["Status"], row["Disabled Reason"]) == ("disabled", "a new fan")
    demo.do(f"{CREATE} --min 2 --max 2 away")
    assert {row["Host"] for row in admin.openstack("server list --all-projects --long --name away")} == {"host2"}
    demo.do("server delete --wait away-1 away-2")
    admin.do("compute service set --enable --down host1 nova-compute")
    row = admin.openstack("compute service list --long --host host1 --service nova-compute")[0]
    assert (row["Status"], row["State"], row["Forced Down"]) == ("enabled", "down", True)
    admin.do("compute service set --up host1 nova-compute")
    wait_until("the host is up", lambda: admin.openstack(
        "compute service list --host host1 --service nova-compute")[0]["State"] == "up", 20, 0.3)
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.openstack("compute service list")


def test_hypervisor_when_listed_and_shown_then_the_hosts_are_told(admin, demo, vm) -> None:
    rows = admin.openstack("hypervisor list --long")
    assert {(row["Hypervisor Hostname"], row["State"]) for row in rows} == {("host1", "up"), ("host2", "up")}
    assert named(admin.openstack("hypervisor list --matching host1"), "Hypervisor Hostname") == {"host1"}
    shown = admin.openstack("hypervisor show host1")
    assert (shown["service_host"], shown["status"], shown["hypervisor_type"]) == ("host1", "enabled", "fake")
    stats = admin.openstack("hypervisor stats show")
    assert stats["count"] == 2 and stats["running_vms"] >= 1 and stats["memory_mb_used"] >= 512


def test_host_when_listed_shown_and_set_at_old_versions_then_it_works(admin) -> None:
    rows = admin.openstack("host list")
    assert {("host1", "compute", "nova"), ("host2", "compute", "nova")} <= {
        (row["Host Name"], row["Service"], row["Zone"]) for row in rows}
    shown = admin.openstack("host show host1")
    assert {"(total)", "(used_now)"} <= named(shown, "Project")
    admin.do("host set --disable host1")
    assert admin.openstack("compute service list --host host1")[0]["Status"] == "disabled"
    admin.do("host set --enable host1")


def test_limits_when_shown_then_the_servers_are_counted(demo, admin, vm) -> None:
    found = {row["Name"]: row["Value"] for row in demo.openstack("limits show --absolute")}
    assert found["total_instances_used"] == found["total_cores_used"] == 1 and found["total_ram_used"] == 512
    found = {row["Name"]: row["Value"] for row in admin.openstack("limits show --absolute --project demo")}
    assert found["total_instances_used"] == 1
    assert demo.openstack("limits show --rate") == []


def test_quota_when_set_shown_listed_and_deleted_then_it_holds_meanwhile(admin, demo, vm) -> None:
    def limits(*words: str) -> dict[str, Any]:
        return {row["Resource"]: row["Limit"] for row in admin.openstack("quota show", *words)}
    admin.do("quota set --instances 1 --cores 7 --ram 9000 --key-pairs 3 --properties 5 --server-groups 2 "
             "--server-group-members 4 demo")
    found = limits("demo")
    assert (found["instances"], found["cores"], found["ram"], found["key-pairs"]) == (1, 7, 9000, 3)
    assert (found["properties"], found["server-groups"], found["server-group-members"]) == (5, 2, 4)
    usage = {row["Resource"]: row["In Use"] for row in admin.openstack("quota show --usage demo")}
    assert usage["instances"] == usage["cores"] == 1 and usage["ram"] == 512
    assert [row["Instances"] for row in admin.openstack("quota list --compute") if row["Project ID"] == "demo"] == [1]
    with pytest.raises(Failed, match="Quota exceeded"):
        demo.do(CREATE, "too-many")
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.do("quota set --instances 10 demo")
    admin.do("quota delete --compute demo")
    assert limits("demo")["instances"] == limits("--default", "demo")["instances"] == -1


def test_quota_class_when_set_then_it_is_everybodys_default(admin) -> None:
    admin.do("quota set --class --key-pairs 55 default")
    shown = {row["Resource"]: row["Limit"] for row in admin.openstack("quota show --default demo")}
    assert shown["key-pairs"] == 55
    admin.do("quota set --class --key-pairs 100 default")


def test_usage_when_shown_and_listed_then_the_server_counts(admin, demo, vm) -> None:
    shown = demo.openstack("usage show")
    assert len(shown["Servers"]) >= 1 and shown["CPU Hours"] >= 0 and shown["RAM MB-Hours"] >= 0
    rows = admin.openstack("usage list")
    assert [row["CPU Hours"] > 0 for row in rows if row["Project"] == "demo"] == [True]
    assert admin.openstack("usage list --start 2001-01-01 --end 2001-01-02") == []
    assert admin.openstack("usage show --project demo")


def test_compute_agent_when_asked_then_it_says_that_they_are_gone(admin) -> None:
    with pytest.raises(Failed, match="410|[Gg]one|no longer"):
        admin.openstack("compute agent list")


# --- networks, where they are nova-network's


def test_server_when_interfaces_and_groups_come_and_go_then_show_tells_them(demo, cloud: Cloud, vm) -> None:
    api = cloud.api()
    [network] = [one["id"] for one in api.call("GET", "/os-networks", **OLD).json()["networks"]]
    first = demo.openstack(f"server show {vm}")["addresses"]["private"]
    demo.do(f"server add network {vm} {network}")
    [made] = [demo.openstack(f"server add fixed ip {vm} {network}")]
    assert made["Network ID"] == network and made["Server ID"]
    addresses = demo.openstack(f"server show {vm}")["addresses"]["private"]
    assert addresses[:1] == first and len(addresses) == 3
    demo.do(f"server remove port {vm} {made['Port ID']}")
    old = User(demo.worker, "demo", "2.43")
    old.do(f"server remove fixed ip {vm} {first[0]}")
    demo.do(f"server remove network {vm} {network}")
    wait_until("it has none left", lambda: not demo.openstack(f"server show {vm}")["addresses"], 20)
    demo.do(f"server add network {vm} {network}")
    web = api.call("POST", "/os-security-groups", {"security_group": {"name": "web", "description": "pages"}}, **OLD)
    group = web.json()["security_group"]["id"] if cloud.plan.cells else "web"  # Neutron's is known here by its id
    demo.do(f"server add security group {vm} {group}")
    assert named(demo.openstack(f"server show {vm}")["security_groups"], "name") == {"default", "web"}
    demo.do(f"server remove security group {vm} {group}")
    assert named(demo.openstack(f"server show {vm}")["security_groups"], "name") == {"default"}


# --- the program itself


def test_every_command_when_the_client_lists_them_then_it_is_used_here_or_waits(demo) -> None:
    groups = demo.openstack("command list --group openstack.compute.v2")
    listed = {command for group in groups for command in group["Commands"].split()} if isinstance(
        groups[0]["Commands"], str) else {command for group in groups for command in group["Commands"]}
    text = " ".join(re.findall(r"\w+", "".join(file.read_text() for file in SESSIONS)))
    unused = {command for command in listed if f" {command.replace('_', ' ')} " not in text}
    assert {command for command in unused if not LATER.match(command)} - OTHER == set()


def test_openstack_when_run_as_a_program_then_it_does_the_same(cloud: Cloud, worker: Worker, vm) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cloud.root), **worker.keystone.environment("demo")}
    assert env["OS_PASSWORD"] == ACCOUNTS["demo"]
    done = subprocess.run([VENV / "bin" / "openstack", "server", "list", "-f", "value", "-c", "Name"], env=env,
                          cwd=cloud.root, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [vm]), done.stderr
