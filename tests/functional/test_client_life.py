"""Sessions of the unmodified clients through a server's life: the commands of `openstack` and `nova`, as a user types
them, and the methods of openstacksdk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.clients import Failed, User, Worker
from tests.functional.cloud import Cloud, Plan
from tests.functional.whole import usually

pytestmark = pytest.mark.in_turn(8, 10)

CREATE = "server create --flavor m1.tiny --image tiny --nic auto --wait"
WAIT_S = 40.0


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    """Deleted servers can be restored, and shelved ones keep their place until they are offloaded."""
    return make_cloud(usually(Plan(computes=2, options={
        "DEFAULT": {"reclaim_instance_interval": 3600, "shelved_offload_time": -1},
        "fake": {"live_migration_time": 10}}))).start()


@pytest.fixture(scope="module")
def vm(worker: Worker) -> Iterator[str]:
    """The uuid of demo's server ``vm``; tests leave it running."""
    user = User(worker, "demo")
    User(worker, "admin").do("flavor create --id 2 --ram 1024 --vcpus 2 --disk 1 m1.grown")
    uuid = user.openstack(CREATE, "vm")["id"]
    yield uuid
    user.do("server delete --force --wait", uuid)


def becomes(user: User, server: str, status: str) -> dict[str, Any]:
    """The server, once it has a status and nothing is done with it."""
    found: dict[str, Any] = {}

    def there() -> bool:
        found.update(user.openstack("server show", server))
        return found["status"] == status and not found["OS-EXT-STS:task_state"]
    wait_until(f"{server} is {status}", there, WAIT_S, 0.3)
    return found


def host_of(admin: User, server: str) -> str:
    return str(admin.openstack("server show", server)["OS-EXT-SRV-ATTR:host"])


def other(host: str) -> str:
    return "host2" if host == "host1" else "host1"


def service_set(admin: User, host: str, words: str) -> None:
    admin.do(f"compute service set {words} {host} nova-compute")
    listed = f"compute service list --service nova-compute --host {host}"
    wait_until(f"{host} is {words}", lambda: admin.openstack(listed)[0]["State"] == words.removeprefix("--"), WAIT_S,
               0.3)


# --- openstack: on one host


@pytest.mark.parametrize(("there", "status", "back"), [
    ("server pause vm", "PAUSED", "server unpause vm"), ("server suspend vm", "SUSPENDED", "server resume vm")])
def test_server_when_paused_or_suspended_then_it_is_until_it_goes_on(demo, vm, there: str, status: str, back: str
                                                                     ) -> None:
    demo.do(there)
    becomes(demo, "vm", status)
    with pytest.raises(Failed, match=status.lower()):
        demo.do(there)
    demo.do(back)
    becomes(demo, "vm", "ACTIVE")


def test_server_rescue_when_an_image_is_named_then_it_boots_from_it_until_unrescued(demo, vm) -> None:
    demo.do("server rescue --image tiny --password s3cret vm")
    becomes(demo, "vm", "RESCUE")
    demo.do("server unrescue vm")
    assert becomes(demo, "vm", "ACTIVE")["image"] == f"tiny ({IMAGE})"


def test_server_rebuild_when_everything_is_said_then_show_tells_it(demo, vm) -> None:
    before = demo.openstack("server show vm")
    made = demo.openstack("server rebuild --image tiny --name other --property colour=red --password s3cret "
                          "--hostname made-anew --no-key-name --description", "two words", "vm")
    assert made["id"] == vm
    shown = becomes(demo, "other", "ACTIVE")
    assert (shown["properties"], shown["description"]) == ({"colour": "red"}, "two words")
    assert shown["addresses"] == before["addresses"]
    demo.do("server set --name vm other")


def test_server_image_when_made_then_a_server_boots_from_it(demo, vm) -> None:
    demo.do("server image create --name snap --property colour=blue --wait vm")
    made = demo.openstack("server create --flavor m1.tiny --image snap --nic auto --wait copy")
    assert made["status"] == "ACTIVE" and made["image"].startswith("snap (")
    demo.do("server delete --force --wait copy")
    demo.do("image delete snap")


def test_server_backup_when_one_is_kept_then_the_second_takes_the_place_of_the_first(demo, vm) -> None:
    for name in ("monday", "tuesday"):
        demo.do(f"server backup create --name {name} --type daily --rotate 1 --wait vm")
        becomes(demo, "vm", "ACTIVE")
    images = {row["Name"] for row in demo.openstack("image list")}
    assert "tuesday" in images and "monday" not in images
    demo.do("image delete tuesday")


def test_server_when_told_of_a_password_and_a_dump_then_it_takes_both(demo, vm) -> None:
    demo.do("server set --password n3w vm")
    becomes(demo, "vm", "ACTIVE")
    demo.do("server dump create vm")
    names = [row["Action"] for row in demo.openstack("server event list vm")]
    assert names[:2] == ["trigger_crash_dump", "changePassword"]


def test_server_shelve_when_offloaded_then_it_comes_back_where_it_is_asked_to(demo, admin, vm) -> None:
    demo.do("server shelve --wait vm")
    becomes(demo, "vm", "SHELVED")
    demo.do("server unshelve --wait vm")
    becomes(demo, "vm", "ACTIVE")
    admin.do("server shelve --offload --wait", vm)
    becomes(demo, "vm", "SHELVED_OFFLOADED")
    admin.do("server unshelve --host host2 --wait", vm)
    becomes(demo, "vm", "ACTIVE")
    assert host_of(admin, vm) == "host2"
    admin.do("server shelve --offload --wait", vm)
    demo.do("server unshelve --availability-zone nova --wait vm")
    becomes(demo, "vm", "ACTIVE")


def test_server_delete_when_it_is_soft_then_it_is_restored_and_forced_it_is_gone(demo, admin) -> None:
    uuid = demo.openstack(CREATE, "doomed")["id"]
    demo.do("server delete doomed")
    becomes(admin, uuid, "SOFT_DELETED")
    demo.do("server restore", uuid)
    becomes(demo, "doomed", "ACTIVE")
    demo.do("server delete --force --wait doomed")
    with pytest.raises(Failed, match="No [Ss]erver found"):
        demo.openstack("server show doomed")


# --- openstack: across hosts


def test_server_resize_when_reverted_and_confirmed_then_the_flavor_follows(demo, vm) -> None:
    demo.do("server resize --flavor m1.grown --wait vm")
    assert becomes(demo, "vm", "VERIFY_RESIZE")["flavor"]["name"] == "m1.grown"
    demo.do("server resize revert vm")
    assert becomes(demo, "vm", "ACTIVE")["flavor"]["name"] == "m1.tiny"
    demo.do("server resize --flavor m1.grown --wait vm")
    demo.do("server resize confirm vm")
    assert becomes(demo, "vm", "ACTIVE")["flavor"]["name"] == "m1.grown"
    with pytest.raises(Failed, match="change flavor|same flavor|must change"):
        demo.do("server resize --flavor m1.grown vm")
    demo.do("server resize --flavor m1.tiny --wait vm")
    demo.do("server resize --confirm vm")
    becomes(demo, "vm", "ACTIVE")


def test_server_migrate_when_cold_then_it_is_elsewhere_until_reverted(demo, admin, vm) -> None:
    at = host_of(admin, vm)
    admin.do("server migrate --wait", vm)
    assert host_of(admin, vm) == other(at)
    admin.do("server migration revert", vm)
    becomes(demo, "vm", "ACTIVE")
    assert host_of(admin, vm) == at
    admin.do(f"server migrate --host {other(at)} --wait", vm)
    admin.do("server migration confirm", vm)
    becomes(demo, "vm", "ACTIVE")
    rows = admin.openstack("server migration list --type cold-migration --server", vm)
    assert [row["Status"] for row in rows] == ["confirmed", "reverted"]
    with pytest.raises(Failed, match="403|[Pp]olicy"):
        demo.do("server migrate vm")


def test_server_migrate_when_live_then_it_is_elsewhere_and_was_never_off(demo, admin, vm) -> None:
    at = host_of(admin, vm)
    admin.do(f"server migrate --live-migration --host {other(at)} --wait", vm)
    becomes(demo, "vm", "ACTIVE")
    assert host_of(admin, vm) == other(at)
    with pytest.raises(Failed, match="nowhere"):
        admin.do("server migrate --live-migration --host nowhere", vm)


def running(admin: User, server: str) -> str:
    """The id of a live migration of a server, once it runs."""
    found: list[dict[str, Any]] = []

    def runs() -> bool:
        found[:] = admin.openstack("server migration list --type live-migration --status running --server", server)
        return bool(found)
    wait_until("it is under way", runs, WAIT_S, 0.05)
    return str(found[0]["Id"])


@pytest.mark.parametrize(("command", "goes"), [("server migration abort", False),
                                               ("server migration force complete", True)])
def test_live_migration_when_told_to_end_then_it_does(demo, admin, vm, command: str, goes: bool) -> None:
    at = host_of(admin, vm)
    admin.do("server migrate --live-migration", vm)
    admin.do(command, vm, running(admin, vm))
    becomes(demo, "vm", "ACTIVE")
    assert (host_of(admin, vm) != at) is goes


def test_server_evacuate_when_its_host_is_down_then_it_lives_elsewhere(demo, admin, vm) -> None:
    at = host_of(admin, vm)
    with pytest.raises(Failed, match="400|in use|still|up"):
        admin.do("server evacuate", vm)
    service_set(admin, at, "--down")
    try:
        admin.do("server evacuate", vm)
        becomes(demo, "vm", "SHUTOFF")
        assert host_of(admin, vm) == other(at)
    finally:
        service_set(admin, at, "--up")
    demo.do("server start vm")
    becomes(demo, "vm", "ACTIVE")


# --- nova


@pytest.mark.parametrize(("there", "status", "back"), [
    ("pause vm", "PAUSED", "unpause vm"), ("suspend vm", "SUSPENDED", "resume vm"),
    ("rescue vm", "RESCUE", "unrescue vm"), ("shelve vm", "SHELVED", "unshelve vm")])
def test_nova_when_an_action_is_undone_then_the_server_runs_again(demo, vm, there: str, status: str, back: str) -> None:
    assert there.startswith("rescue") == ("adminPass" in demo.nova(there))
    becomes(demo, "vm", status)
    demo.nova(back)
    becomes(demo, "vm", "ACTIVE")


def test_nova_when_a_server_is_offloaded_then_it_comes_back_in_a_zone(demo, admin, vm) -> None:
    demo.nova("shelve vm")
    becomes(demo, "vm", "SHELVED")
    admin.nova("shelve-offload", vm)
    becomes(demo, "vm", "SHELVED_OFFLOADED")
    demo.nova("unshelve vm --availability-zone nova")
    becomes(demo, "vm", "ACTIVE")


def test_nova_when_a_server_is_rebuilt_then_its_answer_tells_it(demo, vm) -> None:
    shown = demo.properties(f"rebuild --poll --meta a=b --rebuild-password s3cret vm {IMAGE}")
    assert (shown["id"], shown["metadata"]) == (vm, '{"a": "b"}')
    assert becomes(demo, "vm", "ACTIVE")["properties"] == {"a": "b"}


def test_nova_when_images_are_made_then_they_are_there(demo, vm) -> None:
    assert "snap" in demo.nova("image-create --poll --show vm snap")
    demo.nova("backup vm weekend weekly 1")
    becomes(demo, "vm", "ACTIVE")
    assert {"snap", "weekend"} <= {row["Name"] for row in demo.openstack("image list")}
    demo.do("image delete snap weekend")


def test_nova_when_a_dump_is_asked_for_then_it_is_taken(demo, vm) -> None:
    demo.nova("trigger-crash-dump vm")
    assert demo.openstack("server event list vm")[0]["Action"] == "trigger_crash_dump"


def test_nova_when_deleted_servers_are_restored_or_forced_then_they_live_or_are_gone(demo, admin) -> None:
    uuid = demo.openstack(CREATE, "doomed")["id"]
    demo.nova("delete", uuid)
    becomes(admin, uuid, "SOFT_DELETED")
    demo.nova("restore", uuid)
    becomes(demo, uuid, "ACTIVE")
    demo.nova("force-delete", uuid)
    wait_until("it is gone", lambda: uuid not in {row["ID"] for row in admin.openstack(
        "server list --all-projects")}, WAIT_S, 0.3)


def test_nova_when_resized_and_migrated_then_it_is_confirmed_or_reverted(demo, admin, vm) -> None:
    demo.nova("resize --poll vm 2")
    becomes(demo, "vm", "VERIFY_RESIZE")
    demo.nova("resize-revert vm")
    assert becomes(demo, "vm", "ACTIVE")["flavor"]["name"] == "m1.tiny"
    at = host_of(admin, vm)
    admin.nova(f"migrate --poll --host {other(at)}", vm)
    becomes(demo, "vm", "VERIFY_RESIZE")
    admin.nova("resize-confirm", vm)
    becomes(demo, "vm", "ACTIVE")
    assert host_of(admin, vm) == other(at)


def test_nova_when_migrated_alive_then_it_goes_or_is_told_not_to(demo, admin, vm) -> None:
    for command, goes in (("live-migration-abort", False), ("live-migration-force-complete", True)):
        at = host_of(admin, vm)
        admin.nova("live-migration", vm)
        admin.nova(command, vm, running(admin, vm))
        becomes(demo, "vm", "ACTIVE")
        assert (host_of(admin, vm) != at) is goes, command


def test_nova_when_hosts_are_emptied_then_their_servers_are_elsewhere(demo, admin, vm) -> None:
    at = host_of(admin, vm)
    admin.nova("host-evacuate-live", at)
    becomes(demo, "vm", "ACTIVE")
    assert host_of(admin, vm) == other(at)
    service_set(admin, other(at), "--down")
    try:
        admin.nova("evacuate", vm, at)
        becomes(demo, "vm", "SHUTOFF")
        assert host_of(admin, vm) == at
    finally:
        service_set(admin, other(at), "--up")
    service_set(admin, at, "--down")
    try:
        command = admin.table("host-evacuate", at)
        assert [(row["Server UUID"], row["Evacuate Accepted"]) for row in command] == [(vm, "True")], command
        wait_until("it left", lambda: host_of(admin, vm) == other(at), WAIT_S, 0.3)
        becomes(demo, "vm", "SHUTOFF")
    finally:
        service_set(admin, at, "--up")
    demo.nova("start vm")
    becomes(demo, "vm", "ACTIVE")


# --- openstacksdk


@pytest.mark.parametrize(("there", "status", "back"), [
    ("pause_server", "PAUSED", "unpause_server"), ("suspend_server", "SUSPENDED", "resume_server"),
    ("rescue_server", "RESCUE", "unrescue_server"), ("shelve_server", "SHELVED", "unshelve_server")])
def test_sdk_when_an_action_is_undone_then_the_server_runs_again(demo, vm, there: str, status: str, back: str) -> None:
    demo.sdk(there, vm)
    becomes(demo, vm, status)
    demo.sdk(back, vm)
    becomes(demo, vm, "ACTIVE")


def test_sdk_when_rebuilt_and_imaged_then_both_are_told(demo, vm) -> None:
    made = demo.sdk("rebuild_server", vm, IMAGE, name="vm", metadata={"by": "sdk"}, admin_password="s3cret")
    assert (made["id"], made["metadata"], made["admin_password"]) == (vm, {"by": "sdk"}, "s3cret")
    becomes(demo, vm, "ACTIVE")
    for call, words in (("create_server_image", ["sdk-image"]), ("backup_server", ["sdk-backup", "daily", 1])):
        assert demo.sdk(call, vm, *words, wait=True)["status"] == "active"
        demo.do("image delete", words[0])
    demo.sdk("change_server_password", vm, "n3w")
    becomes(demo, vm, "ACTIVE")
    demo.sdk("trigger_server_crash_dump", vm)


def test_sdk_when_it_moves_then_it_is_elsewhere(demo, admin, vm) -> None:
    demo.sdk("resize_server", vm, "2")
    becomes(demo, vm, "VERIFY_RESIZE")
    demo.sdk("revert_server_resize", vm)
    becomes(demo, vm, "ACTIVE")
    at = host_of(admin, vm)
    admin.sdk("migrate_server", vm, host=other(at))
    becomes(demo, vm, "VERIFY_RESIZE")
    admin.sdk("confirm_server_resize", vm)
    becomes(demo, vm, "ACTIVE")
    admin.sdk("live_migrate_server", vm, block_migration="auto")
    becomes(demo, vm, "ACTIVE")
    assert host_of(admin, vm) == at
    with pytest.raises(Failed) as refused:
        demo.sdk("migrate_server", vm)
    assert refused.value.status == 403
    with pytest.raises(Failed) as refused:
        demo.sdk("confirm_server_resize", vm)
    assert refused.value.status == 409
