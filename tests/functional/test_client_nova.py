"""Sessions of python-novaclient's unmodified `nova` command: every command for what we serve, its tables read."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.clients import VENV, Failed, User, Worker, public_key
from tests.functional.cloud import Cloud, Plan
from tests.functional.whole import usually

pytestmark = pytest.mark.in_turn(6, 10)

BOOT = f"boot --flavor m1.tiny --image {IMAGE} --nic auto --poll"


#: need volumes, networks' own operations
LATER = {"add-secgroup", "remove-secgroup", "list-secgroup", "interface-attach", "interface-detach", "interface-list",
         "refresh-network", "volume-attach", "volume-attachments", "volume-detach", "volume-update"}
#: many calls of what is used here; of the client alone; gone from every server; `service-delete` needs a host that
#: left; `set-password` asks at a terminal
OTHER = {"host-meta", "ssh", "help", "bash-completion", "agent-create", "agent-delete", "agent-modify",
         "service-delete", "reset-network", "set-password"}
#: where sessions of the command are
SESSIONS = [Path(__file__), *map(Path(__file__).with_name, ("test_client_life.py", "test_client_consoles.py"))]


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    return make_cloud(usually(Plan(computes=2, cells=sampling.cells(2)))).start()


@pytest.fixture(scope="module")
def vm(worker: Worker) -> Iterator[str]:
    """The uuid of demo's server ``vm``."""
    user = User(worker, "demo")
    user.nova(BOOT, "vm")
    yield user.properties("show vm")["id"]
    remove(user, "vm")


def remove(user: User, *names: str) -> None:
    user.nova("delete", *names)
    wait_until("they are gone", lambda: not {row["Name"] for row in user.table("list")} & set(names), 30, 0.3)


def is_status(user: User, name: str, status: str) -> None:
    wait_until(f"{name} is {status}", lambda: user.properties("show", name)["status"] == status, 30, 0.3)


# --- servers


def test_boot_when_everything_is_said_then_show_tells_it(demo, tmp_path) -> None:
    demo.nova(f"keypair-add --pub-key {public_key(tmp_path)} session")
    demo.nova(f"{BOOT} --key-name session --meta colour=blue --availability-zone nova --config-drive True "
              "--tags one,two --description", "two words", "full")
    shown = demo.properties("show full")
    assert (shown["status"], shown["key_name"], shown["config_drive"]) == ("ACTIVE", "session", "True")
    assert shown["metadata"] == '{"colour": "blue"}' and shown["description"] == "two words"
    assert shown["tags"] in ('["one", "two"]', '["two", "one"]') and shown["flavor:original_name"] == "m1.tiny"
    assert shown["private network"].startswith("10.11.")
    remove(demo, "full")
    demo.nova("keypair-delete session")


def test_boot_when_two_are_wanted_then_both_are_made(demo) -> None:
    demo.nova(f"{BOOT} --min-count 2 --max-count 2", "pair")
    assert {row["Name"] for row in demo.table("list --name pair")} == {"pair-1", "pair-2"}
    remove(demo, "pair-1", "pair-2")


def test_list_when_filtered_and_sorted_then_only_those_in_order(demo, admin, vm) -> None:
    demo.nova(BOOT, "wm")
    assert [row["Name"] for row in demo.table("list --sort display_name:desc")] == ["wm", "vm"]
    assert [row["Name"] for row in demo.table("list --sort display_name:asc --limit 1")] == ["vm"]
    assert [row["Name"] for row in demo.table(f"list --sort display_name:asc --marker {vm}")] == ["wm"]
    for words in ("--name ^v", "--name v --status ACTIVE", "--name v --ip 10.11", "--name v --flavor m1.tiny"):
        assert [row["ID"] for row in demo.table(f"list {words}")] == [vm], words
    assert demo.table("list --status SHUTOFF") == []
    assert vm in {row["ID"] for row in admin.table("list --all-tenants --tenant demo")}
    assert admin.table("list") == []
    remove(demo, "wm")


def test_list_when_deleted_ones_are_asked_for_then_an_admin_sees_them(demo, admin) -> None:
    demo.nova(BOOT, "doomed")
    remove(demo, "doomed")
    assert {row["Status"] for row in admin.table("list --all-tenants --deleted --name doomed")} == {"DELETED"}


def test_power_when_stopped_started_and_rebooted_then_the_state_follows(demo, vm) -> None:
    demo.nova("stop vm")
    is_status(demo, "vm", "SHUTOFF")
    demo.nova("start vm")
    is_status(demo, "vm", "ACTIVE")
    demo.nova("reboot --poll vm")
    demo.nova("reboot --hard --poll vm")
    is_status(demo, "vm", "ACTIVE")
    assert "login:" in demo.nova("console-log vm")


def test_lock_when_an_admin_locks_then_the_owner_is_refused(demo, admin, vm) -> None:
    admin.nova(f"lock {vm} --reason mine")
    assert demo.properties("show vm")["locked_reason"] == "mine"
    with pytest.raises(Failed, match="locked"):
        demo.nova("stop vm")
    admin.nova(f"unlock {vm}")
    assert demo.properties("show vm")["locked"] == "False"


def test_update_and_meta_when_said_then_shown(demo, vm) -> None:
    demo.nova("update --name other --description text vm")
    demo.nova("meta other set a=1 b=2")
    demo.nova("meta other delete b")
    shown = demo.properties("show other")
    assert (shown["name"], shown["description"], shown["metadata"]) == ("other", "text", '{"a": "1"}')
    demo.nova("meta other delete a")
    demo.nova("update --name vm other")


def test_tags_when_set_added_and_taken_then_listed(demo, vm) -> None:
    def tags() -> set[str]:
        return {row["Tag"] for row in demo.table("server-tag-list vm")}

    demo.nova("server-tag-set vm a b")
    assert tags() == {"a", "b"}
    demo.nova("server-tag-add vm c")
    demo.nova("server-tag-delete vm a")
    assert tags() == {"b", "c"}
    demo.nova("server-tag-delete-all vm")
    assert tags() == set()


def test_reset_state_when_an_admin_says_so_then_error_and_back(demo, admin, vm) -> None:
    admin.nova(f"reset-state {vm}")
    assert demo.properties("show vm")["status"] == "ERROR"
    admin.nova(f"reset-state --active {vm}")
    assert demo.properties("show vm")["status"] == "ACTIVE"


def test_server_details_when_asked_then_diagnostics_topology_and_password_are_told(demo, admin, vm) -> None:
    assert admin.properties(f"diagnostics {vm}")["state"] == "running"
    assert "nodes" in admin.nova(f"server-topology {vm}")
    assert demo.nova("get-password vm").strip() == ""
    demo.nova("clear-password vm")


def test_instance_actions_when_listed_then_each_can_be_shown(demo, vm) -> None:
    demo.nova("lock vm")
    demo.nova("unlock vm")
    rows = demo.table("instance-action-list vm")
    create = next(row for row in rows if row["Action"] == "create")
    shown = demo.properties("instance-action vm", create["Request_ID"])
    assert shown["action"] == "create" and "schedule_instances" in shown["events"]
    assert len(demo.table("instance-action-list --limit 1 vm")) == 1 < len(rows)


def test_migrations_when_there_are_none_then_lists_are_empty(admin, vm) -> None:
    assert admin.table("migration-list") == [] and admin.table(f"server-migration-list {vm}") == []
    assert admin.table("migration-list --host host1 --status done") == []
    with pytest.raises(Failed, match="404"):
        admin.nova(f"server-migration-show {vm} 1")


# --- server groups, flavors, keys


def test_server_group_when_made_then_listed_and_shown_until_deleted(demo) -> None:
    made = demo.table("server-group-create --rule max_server_per_host=2 apart anti-affinity")[0]
    assert (made["Name"], made["Policy"], made["Rules"]) == ("apart", "anti-affinity", "{'max_server_per_host': 2}")
    assert [row["Id"] for row in demo.table("server-group-list")] == [made["Id"]]
    demo.nova(f"{BOOT} --hint group={made['Id']}", "member")
    uuid = demo.properties("show member")["id"]
    assert uuid in demo.table("server-group-get", made["Id"])[0]["Members"]
    remove(demo, "member")
    demo.nova("server-group-delete", made["Id"])
    assert demo.table("server-group-list") == []


def test_flavor_when_made_changed_and_deleted_then_each_is_shown(admin, demo) -> None:
    made = admin.table("flavor-create --ephemeral 1 --swap 64 --is-public False --description text session 77 "
                       "1024 2 2")[0]
    assert (made["ID"], made["Memory_MiB"], made["Swap"], made["Description"]) == ("77", "1024", "64", "text")
    admin.nova("flavor-key 77 set hw:cpu_policy=shared hw:mem_page_size=small")
    admin.nova("flavor-key 77 unset hw:mem_page_size")
    admin.nova("flavor-update 77 changed")
    shown = admin.properties("flavor-show 77")
    assert (shown["extra_specs"], shown["description"]) == ('{"hw:cpu_policy": "shared"}', "changed")
    admin.nova("flavor-access-add 77 demo")
    assert [row["Tenant_ID"] for row in admin.table("flavor-access-list --flavor 77")] == ["demo"]
    assert "session" in {row["Name"] for row in demo.table("flavor-list --min-ram 1000")}
    admin.nova("flavor-access-remove 77 demo")
    assert {row["Name"] for row in demo.table("flavor-list")} == {"m1.tiny"}
    admin.nova("flavor-delete 77")
    assert {row["Name"] for row in admin.table("flavor-list --all")} == {"m1.tiny"}


def test_keypair_when_made_then_listed_and_shown_until_deleted(demo, admin, tmp_path) -> None:
    demo.nova(f"keypair-add --pub-key {public_key(tmp_path)} laptop")
    assert [row["Name"] for row in demo.table("keypair-list")] == ["laptop"]
    assert "ssh-ed25519" in demo.nova("keypair-show laptop")
    assert [row["Name"] for row in admin.table("keypair-list --user demo")] == ["laptop"]
    demo.nova("keypair-delete laptop")
    assert demo.table("keypair-list") == []
    assert "PRIVATE KEY" in demo.at("2.91").nova("keypair-add made")
    demo.nova("keypair-delete made")


# --- what operators do


def test_aggregate_when_it_has_a_host_then_its_zone_is_listed(admin, demo, vm) -> None:
    home = admin.properties(f"show {vm}")["OS-EXT-SRV-ATTR:host"]  # zones of hosts with servers do not change
    host = {"host1": "host2", "host2": "host1"}[home]
    made = admin.table("aggregate-create rack east")[0]
    assert (made["Name"], made["Availability Zone"]) == ("rack", "east")
    assert host in admin.table(f"aggregate-add-host rack {host}")[0]["Hosts"]
    assert "east" in {row["Name"] for row in demo.table("availability-zone-list")}
    assert "ssd=true" in admin.table("aggregate-set-metadata rack ssd=true")[0]["Metadata"]
    admin.nova("aggregate-update --name shelf --availability-zone west rack")
    shown = admin.table("aggregate-show shelf")[0]
    assert shown["Availability Zone"] == "west" and len(shown["UUID"]) == 36
    assert [row["Name"] for row in admin.table("aggregate-list")] == ["shelf"]
    admin.nova(f"aggregate-cache-images shelf {IMAGE}")
    admin.nova(f"aggregate-remove-host shelf {host}")
    admin.nova("aggregate-delete shelf")
    assert admin.table("aggregate-list") == []


def test_service_when_disabled_and_forced_down_then_listed_so_until_undone(admin) -> None:
    def row() -> dict[str, str]:
        return admin.table("service-list --host host1 --binary nova-compute")[0]

    uuid = row()["Id"]
    admin.nova(f"service-disable --reason fan {uuid}")
    assert (row()["Status"], row()["Disabled Reason"]) == ("disabled", "fan")
    admin.nova(f"service-enable {uuid}")
    admin.nova(f"service-force-down {uuid}")
    assert (row()["Status"], row()["State"], row()["Forced down"]) == ("enabled", "down", "True")
    admin.nova(f"service-force-down --unset {uuid}")
    wait_until("the host is up", lambda: row()["State"] == "up", 20, 0.3)
    with pytest.raises(Failed, match="403"):
        User(admin.worker, "demo").nova("service-list")


def test_service_when_named_by_host_and_binary_at_an_old_version_then_it_works(admin) -> None:
    old = admin.at("2.52")
    old.nova("service-disable host2")
    assert old.table("service-list --host host2")[0]["Status"] == "disabled"
    old.nova("service-enable host2")
    assert old.table("service-list --host host2")[0]["Status"] == "enabled"


def test_hypervisor_when_listed_and_shown_then_the_hosts_are_told(admin, demo, vm) -> None:
    rows = {row["Hypervisor hostname"]: row for row in admin.table("hypervisor-list")}
    assert set(rows) == {"host1", "host2"} and {row["State"] for row in rows.values()} == {"up"}
    shown = admin.properties("hypervisor-show", rows["host1"]["ID"])
    assert (shown["hypervisor_hostname"], shown["service_host"]) == ("host1", "host1")
    home = admin.properties(f"show {vm}")["OS-EXT-SRV-ATTR:host"]
    assert vm in {row["ID"] for row in admin.table(f"hypervisor-servers {home}")}
    assert admin.at("2.87").properties("hypervisor-stats")["count"] == "2"
    assert "up" in admin.at("2.87").nova("hypervisor-uptime", rows["host1"]["ID"])
    assert set(admin.table("hypervisor-list --matching host1")[0].values()) & {"host1"}


def test_quota_when_set_shown_and_deleted_then_it_holds_meanwhile(admin, demo, vm) -> None:
    def quota(line: str) -> dict[str, str]:
        return {row["Quota"]: row["Limit"] for row in admin.table(line)}

    admin.nova("quota-update --instances 1 --cores 7 --key-pairs 3 --server-groups 2 demo")
    found = quota("quota-show --tenant demo")
    assert (found["instances"], found["cores"], found["key_pairs"], found["server_groups"]) == ("1", "7", "3", "2")
    assert "'in_use': 1" in admin.nova("quota-show --tenant demo --detail")
    with pytest.raises(Failed, match="Quota exceeded"):
        demo.nova(BOOT, "too-many")
    admin.nova("quota-delete --tenant demo")
    assert quota("quota-show --tenant demo") == quota("quota-defaults --tenant demo")
    admin.nova("quota-class-update default --key-pairs 55")
    assert quota("quota-class-show default")["key_pairs"] == quota("quota-defaults --tenant demo")["key_pairs"] == "55"
    admin.nova("quota-class-update default --key-pairs 100")


def test_limits_and_usage_when_shown_then_the_server_counts(admin, demo, vm) -> None:
    assert re.search(r"\| Instances +\| 1 ", demo.nova("limits")) and re.search(r"\| RAM +\| 512 ", demo.nova("limits"))
    assert "CPU Hours" in demo.nova("usage")
    rows = admin.table("usage-list")
    assert int(next(row["Servers"] for row in rows if row["Tenant ID"] == "demo")) >= 1
    assert "total_instances" in admin.properties("instance-usage-audit-log")


def test_versions_when_listed_then_ours_are_told(demo) -> None:
    assert "2.104" in demo.nova("version-list")


@pytest.mark.parametrize("command", ["agent-list", "host-servers-migrate nowhere"])
def test_gone_or_unknown_when_asked_then_a_clear_error(admin, command: str) -> None:
    with pytest.raises(Failed):
        admin.nova(command)


def test_every_command_when_the_client_lists_them_then_it_is_used_here_or_waits(demo) -> None:
    listed = set(re.findall(r"^    ([a-z][a-z-]+)", demo.nova("help"), re.MULTILINE))
    text = "".join(file.read_text() for file in SESSIONS)
    unused = {command for command in listed if not re.search(rf'"{command}[ "]', text)}
    assert unused - LATER - OTHER == set()


def test_nova_when_run_as_a_program_then_it_does_the_same(cloud, worker, vm) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cloud.root), **worker.keystone.environment("demo")}
    done = subprocess.run([VENV / "bin" / "nova", "show", vm], env=env, cwd=cloud.root, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and vm in done.stdout and "ACTIVE" in done.stdout, done.stderr
