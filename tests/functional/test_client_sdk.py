"""A session of the unmodified openstacksdk: its compute proxy, as Terraform-like tools and Ansible use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.clients import Failed, User, Worker, public_key
from tests.functional.cloud import Cloud, Plan
from tests.functional.whole import usually

pytestmark = pytest.mark.in_turn(3, 10)

SERVER = {"flavor_id": "1", "image_id": IMAGE, "networks": "auto"}
NOWHERE = "6d41cba0-7a6b-4bd4-8f7a-5f8d4a5a0000"


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    return make_cloud(usually(Plan(computes=2, cells=sampling.cells(2)))).start()


@pytest.fixture(scope="module")
def server(worker: Worker) -> Iterator[dict[str, Any]]:
    """A server of demo's; tests leave it as they found it."""
    user = User(worker, "demo")
    made = boot(user, "vm")
    yield made
    remove(user, made["id"])


def boot(user: User, name: str, **fields: Any) -> dict[str, Any]:
    uuid = user.sdk("create_server", name=name, **{**SERVER, **fields})["id"]
    return dict(user.sdk("wait_for_server", {"server": uuid}, interval=0.3, wait=60))


def remove(user: User, *uuids: str) -> None:
    for uuid in uuids:
        user.sdk("delete_server", uuid)
    wait_until("they are gone", lambda: not {one["id"] for one in user.sdk("servers", details=False)} & {*uuids}, 60)


def names(rows: list[dict[str, Any]]) -> set[str]:
    return {row["name"] for row in rows}


def test_create_server_when_everything_is_said_then_get_tells_it(demo) -> None:
    made = boot(demo, "full", metadata={"colour": "blue"}, description="two words", tags=["one"], has_config_drive=True,
                availability_zone="nova")
    assert (made["status"], made["metadata"], made["description"]) == ("ACTIVE", {"colour": "blue"}, "two words")
    assert made["tags"] == ["one"] and made["availability_zone"] == "nova" and made["has_config_drive"]
    assert made["flavor"]["original_name"] == "m1.tiny" and made["image"]["id"] == IMAGE
    assert demo.sdk("find_server", "full")["id"] == made["id"]
    remove(demo, made["id"])
    with pytest.raises(Failed, match="404|No Server found|could not be found") as refused:
        demo.sdk("get_server", made["id"])
    assert refused.value.status == 404


def test_servers_when_filtered_and_paged_then_all_of_those(demo, admin, server) -> None:
    others = [boot(demo, f"page-{number}")["id"] for number in range(3)]
    assert names(demo.sdk("servers", limit=2, name="page")) == {"page-0", "page-1", "page-2"}
    assert names(demo.sdk("servers", details=False)) == {"vm", "page-0", "page-1", "page-2"}
    assert names(demo.sdk("servers", status="ACTIVE", sort_key="display_name", sort_dir="asc")) >= {"vm"}
    assert admin.sdk("servers") == [] and names(admin.sdk("servers", all_projects=True, project_id="demo")) >= {"vm"}
    remove(demo, *others)


def test_server_power_and_lock_when_ordered_then_the_state_follows(demo, server) -> None:
    uuid = server["id"]
    demo.sdk("stop_server", uuid)
    demo.sdk("wait_for_server", {"server": uuid}, status="SHUTOFF", interval=0.3, wait=60)
    demo.sdk("start_server", uuid)
    demo.sdk("wait_for_server", {"server": uuid}, interval=0.3, wait=60)
    demo.sdk("reboot_server", uuid, "HARD")
    demo.sdk("wait_for_server", {"server": uuid}, interval=0.3, wait=60)
    demo.sdk("lock_server", uuid, locked_reason="mine")
    assert demo.sdk("get_server", uuid)["locked_reason"] == "mine"
    demo.sdk("unlock_server", uuid)
    assert "login:" in demo.sdk("get_server_console_output", uuid)["output"]


def test_server_details_when_changed_then_told(demo, admin, server) -> None:
    uuid = server["id"]
    assert demo.sdk("update_server", uuid, name="other", description="text")["name"] == "other"
    demo.sdk("set_server_metadata", uuid, a="1", b="2")
    demo.sdk("delete_server_metadata", uuid, ["a"])
    assert demo.sdk("get_server_metadata", uuid)["metadata"] == {"b": "2"}
    demo.sdk("delete_server_metadata", uuid)
    demo.sdk("add_tag_to_server", uuid, "red")
    assert demo.sdk("get_server", uuid)["tags"] == ["red"]
    demo.sdk("remove_tags_from_server", uuid)
    assert [row["address"].startswith("10.11.") for row in demo.sdk("server_ips", uuid)] == [True]
    assert admin.sdk("get_server_diagnostics", uuid)["state"] == "running"
    assert demo.sdk("get_server_password", uuid) in ("", None)
    demo.sdk("clear_server_password", uuid)
    admin.sdk("reset_server_state", uuid, "error")
    assert demo.sdk("get_server", uuid)["status"] == "ERROR"
    admin.sdk("reset_server_state", uuid, "active")
    demo.sdk("update_server", uuid, name="vm")


def test_server_actions_and_migrations_when_listed_then_told(demo, admin, server) -> None:
    rows = demo.sdk("server_actions", server["id"])
    create = next(row for row in rows if row["action"] == "create")
    shown = demo.sdk("get_server_action", create["request_id"], server["id"])
    assert shown["events"][0]["result"] == "Success"
    assert admin.sdk("migrations") == [] and admin.sdk("server_migrations", server["id"]) == []
    with pytest.raises(Failed) as refused:
        demo.sdk("migrations")
    assert refused.value.status == 403


def test_server_group_when_made_then_found_until_deleted(demo) -> None:
    made = demo.sdk("create_server_group", name="apart", policy="anti-affinity", rules={"max_server_per_host": 2})
    assert (made["policy"], made["rules"]) == ("anti-affinity", {"max_server_per_host": 2})
    member = boot(demo, "member", scheduler_hints={"group": made["id"]})
    assert demo.sdk("get_server_group", made["id"])["member_ids"] == [member["id"]]
    assert demo.sdk("get_server", member["id"])["server_groups"] == [made["id"]]
    remove(demo, member["id"])
    demo.sdk("delete_server_group", made["id"])
    assert demo.sdk("server_groups") == []


def test_flavor_when_made_changed_and_deleted_then_told(admin, demo) -> None:
    made = admin.sdk("create_flavor", id="77", name="session", ram=1024, vcpus=2, disk=2, is_public=False,
                     description="text")
    assert (made["id"], made["ram"], made["description"]) == ("77", 1024, "text")
    admin.sdk("create_flavor_extra_specs", "77", {"hw:cpu_policy": "shared"})
    assert admin.sdk("fetch_flavor_extra_specs", "77")["extra_specs"] == {"hw:cpu_policy": "shared"}
    admin.sdk("update_flavor_extra_specs_property", "77", "hw:cpu_policy", "mixed")
    assert admin.sdk("get_flavor_extra_specs_property", "77", "hw:cpu_policy") == "mixed"
    admin.sdk("delete_flavor_extra_specs_property", "77", "hw:cpu_policy")
    assert admin.sdk("update_flavor", "77", description="changed")["description"] == "changed"
    assert names(demo.sdk("flavors")) == {"m1.tiny"}
    admin.sdk("flavor_add_tenant_access", "77", "demo")
    assert [row["tenant_id"] for row in admin.sdk("get_flavor_access", "77")] == ["demo"]
    assert names(demo.sdk("flavors", min_ram=1000)) == {"session"}
    admin.sdk("flavor_remove_tenant_access", "77", "demo")
    admin.sdk("delete_flavor", "77")
    assert names(admin.sdk("flavors", is_public=None)) == {"m1.tiny"}


def test_keypair_when_made_then_found_until_deleted(demo, admin, tmp_path) -> None:
    key = public_key(tmp_path).read_text().strip()
    demo.sdk("create_keypair", name="laptop", public_key=key)
    assert demo.sdk("get_keypair", "laptop")["public_key"] == key
    assert names(demo.sdk("keypairs")) == names(admin.sdk("keypairs", user_id="demo")) == {"laptop"}
    demo.sdk("delete_keypair", "laptop")
    assert demo.sdk("find_keypair", "laptop") is None


def test_aggregate_when_it_has_a_host_then_its_zone_is_there(admin, demo) -> None:
    made = admin.sdk("create_aggregate", name="rack", availability_zone="east")
    assert admin.sdk("add_host_to_aggregate", made["id"], "host1")["hosts"] == ["host1"]
    assert admin.sdk("set_aggregate_metadata", made["id"], {"ssd": "true"})["metadata"]["ssd"] == "true"
    assert admin.sdk("update_aggregate", made["id"], name="shelf")["name"] == "shelf"
    zones = {row["name"]: row for row in admin.sdk("availability_zones", details=True)}
    assert set(zones) == {"nova", "east", "internal"} and list(zones["east"]["hosts"]) == ["host1"]
    assert names(demo.sdk("availability_zones")) == {"nova", "east"}
    admin.sdk("aggregate_precache_images", made["id"], [IMAGE])
    assert admin.sdk("remove_host_from_aggregate", made["id"], "host1")["hosts"] == []
    admin.sdk("delete_aggregate", made["id"])
    assert admin.sdk("aggregates") == []


def test_service_and_hypervisor_when_listed_then_told_and_changed(admin, demo, server) -> None:
    rows = admin.sdk("services", binary="nova-compute")
    assert {(row["host"], row["status"], row["state"]) for row in rows} == {("host1", "enabled", "up"),
                                                                             ("host2", "enabled", "up")}
    uuid = next(row["id"] for row in rows if row["host"] == "host1")
    admin.sdk("disable_service", uuid, disabled_reason="fan")
    assert admin.sdk("find_service", uuid, binary="nova-compute")["disabled_reason"] == "fan"
    admin.sdk("enable_service", uuid)
    found = admin.sdk("hypervisors", details=True, with_servers=True)
    assert {row["name"] for row in found} == {"host1", "host2"}
    assert server["id"] in {one["uuid"] for row in found for one in row["servers"] or []}
    one = admin.sdk("find_hypervisor", "host1")
    shown = admin.sdk("get_hypervisor", one["id"])
    assert shown["service_details"]["host"] == "host1" and shown["uptime"]
    with pytest.raises(Failed) as refused:
        demo.sdk("services")
    assert refused.value.status == 403


def test_quota_limits_and_usage_when_asked_then_the_server_counts(admin, demo, server) -> None:
    assert demo.sdk("get_limits")["absolute"]["instances_used"] == 1
    admin.sdk("update_quota_set", "demo", instances=1)
    assert admin.sdk("get_quota_set", "demo", usage=True)["usage"]["instances"] == 1
    with pytest.raises(Failed, match="Quota exceeded") as refused:
        demo.sdk("create_server", name="too-many", **SERVER)
    assert refused.value.status == 403
    admin.sdk("revert_quota_set", "demo")
    assert admin.sdk("get_quota_set_defaults", "demo")["instances"] == -1
    assert len(demo.sdk("get_usage", "demo")["server_usages"]) >= 1
    assert "demo" in {row["project_id"] for row in admin.sdk("usages")}


def test_things_when_unknown_then_the_client_understands_the_refusal(demo) -> None:
    for call in ("get_server", "get_server_group", "get_flavor", "get_keypair"):
        with pytest.raises(Failed) as refused:
            demo.sdk(call, NOWHERE)
        assert refused.value.status == 404, call
    with pytest.raises(Failed, match="No Server found") as refused:
        demo.sdk("find_server", "nobody", ignore_missing=False)
    assert demo.sdk("find_server", "nobody") is None
