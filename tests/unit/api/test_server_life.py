"""What the actions of a server's life order: each field of a body, at the versions that have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nova.model.server.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    EvacuateServer,
    LiveMigrateServer,
    MigrateServer,
    RebuildServer,
    RescueServer,
    ResizeServer,
    UnshelveServer,
)
from nova.model.server.states import VmState
from nova.policies import Policy
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration
from tests.fakes.conductor_servers import LIFE

UUID = "11111111-2222-4333-8444-555555555555"
IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"
CERT = "0b5d2c72-12cc-4ba6-a8d7-3ff5cc1d8cb8"


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(version="2.104")
    made.conductor.add_server(uuid=UUID)
    return made


def act(client: ApiClient, body: Any, code: int = 202, **options: Any) -> Any:
    answer = client.post(f"/servers/{UUID}/action", body, **options)
    assert answer.status_int == code, answer.text
    return answer


def asked(client: ApiClient) -> Any:
    order, = client.conductor.asked(*LIFE)
    return order


def now(client: ApiClient, state: VmState) -> None:
    client.conductor.add_server(uuid=UUID, vm_state=state)


# -- orders without arguments


@pytest.mark.parametrize(("name", "state", "order"), [
    ("pause", VmState.ACTIVE, "pause"), ("unpause", VmState.PAUSED, "unpause"), ("suspend", VmState.ACTIVE, "suspend"),
    ("resume", VmState.SUSPENDED, "resume"), ("unrescue", VmState.RESCUED, "unrescue"),
    ("shelve", VmState.ACTIVE, "shelve"), ("restore", VmState.SOFT_DELETED, "restore"),
    ("trigger_crash_dump", VmState.ACTIVE, "trigger_crash_dump"), ("revertResize", VmState.RESIZED, "revertResize")])
def test_plain_action_is_ordered(client: ApiClient, name: str, state: VmState, order: str) -> None:
    now(client, state)
    assert act(client, {name: None}).body == b""
    made, = client.conductor.asked("order_server")
    assert (made.uuid, made.action, made.arguments) == (UUID, order, {})


def test_confirm_is_204_and_ordered(client: ApiClient) -> None:
    now(client, VmState.RESIZED)
    act(client, {"confirmResize": None}, 204)
    assert client.conductor.asked("order_server")[0].action == "confirmResize"


def test_offload_is_for_admins(client: ApiClient) -> None:
    now(client, VmState.SHELVED)
    act(client, {"shelveOffload": None}, 403)
    assert client.conductor.asked("order_server") == []
    act(client, {"shelveOffload": None}, token=ADMIN)
    assert client.conductor.asked("order_server")[0].action == "shelveOffload"


@pytest.mark.parametrize("state", [VmState.SOFT_DELETED, VmState.ACTIVE, VmState.ERROR])
def test_force_delete_is_a_delete_at_once_in_any_state(client: ApiClient, state: VmState) -> None:
    now(client, state)
    act(client, {"forceDelete": None})
    made, = client.conductor.asked("order_server")
    assert (made.action, made.arguments) == ("delete", {"force": "true"})


def test_delete_leaves_it_to_the_conductor_how_soft_it_is(client: ApiClient) -> None:
    assert client.delete(f"/servers/{UUID}").status_int == 204
    made, = client.conductor.asked("order_server")
    assert (made.action, made.arguments) == ("delete", {})


def test_crash_dump_is_not_known_below_2_17(client: ApiClient) -> None:
    act(client, {"trigger_crash_dump": None}, 404, version="2.16")
    act(client, {"trigger_crash_dump": {}}, 400, version="2.17")


def test_inject_network_info_is_answered_and_orders_nothing(client: ApiClient) -> None:
    act(client, {"injectNetworkInfo": None}, 403)
    act(client, {"injectNetworkInfo": None}, token=ADMIN)
    assert client.conductor.asked("order_server", *LIFE) == []


# -- passwords


def test_change_password_passes_it_on(client: ApiClient) -> None:
    act(client, {"changePassword": {"adminPass": "s3cret"}})
    assert asked(client) == ChangePassword(uuid=UUID, password="s3cret")


@pytest.mark.parametrize(("body", "image"), [(None, None), ({}, None), ({"rescue_image_ref": IMAGE}, IMAGE)])
def test_rescue_makes_a_password_and_shows_it(client: ApiClient, body: Any, image: str | None) -> None:
    answer = act(client, {"rescue": body}, 200)
    assert asked(client) == RescueServer(uuid=UUID, image_id=image, admin_password=answer.json["adminPass"],
                                         from_volume=True)
    assert len(answer.json["adminPass"]) == 12


def test_rescue_takes_the_password_it_is_given(client: ApiClient) -> None:
    assert act(client, {"rescue": {"adminPass": "mine"}}, 200).json == {"adminPass": "mine"}
    assert asked(client).admin_password == "mine"


def test_rescue_where_passwords_are_not_shown_is_an_empty_object() -> None:
    client = ApiClient(conf=configuration(enable_instance_password=False))
    client.conductor.add_server(uuid=UUID)
    assert act(client, {"rescue": None}, 200).json == {}
    assert asked(client).admin_password


@pytest.mark.parametrize(("version", "knows"), [("2.86", False), ("2.87", True)])
def test_rescue_of_a_server_on_a_volume_is_known_from_a_version_on(version: str, knows: bool) -> None:
    client = ApiClient(version=version)
    client.conductor.add_server(uuid=UUID)
    act(client, {"rescue": None}, 200)
    assert asked(client).from_volume is knows


# -- rebuild


@pytest.mark.parametrize(("version", "knows"), [("2.92", False), ("2.93", True)])
def test_rebuild_writes_over_a_root_volume_from_a_version_on(version: str, knows: bool) -> None:
    client = ApiClient(version=version)
    client.conductor.add_server(uuid=UUID)
    act(client, {"rebuild": {"imageRef": IMAGE}})
    assert asked(client).reimage is knows


def test_rebuild_orders_all_that_is_asked_for(client: ApiClient) -> None:
    answer = act(client, {"rebuild": {
        "imageRef": IMAGE, "name": "again", "adminPass": "s3cret", "metadata": {"a": "b"}, "preserve_ephemeral": "true",
        "OS-DCF:diskConfig": "AUTO", "accessIPv4": "192.0.2.1", "accessIPv6": "80fe::0", "description": None,
        "key_name": None, "user_data": None, "hostname": "again.example"}})
    assert asked(client) == RebuildServer(
        uuid=UUID, image_id=IMAGE, name="again", metadata={"a": "b"}, description=None, hostname="again.example",
        key_name=None, user_data=None, access_ip_v4="192.0.2.1", access_ip_v6="80fe::", disk_config="AUTO",
        preserve_ephemeral=True, admin_password="s3cret", reimage=True, fields=(
            "name", "metadata", "description", "hostname", "key_name", "user_data", "access_ip_v4", "access_ip_v6",
            "disk_config"))
    assert answer.json["server"]["adminPass"] == "s3cret"
    assert answer.headers["Location"] == f"http://localhost/v2.1/servers/{UUID}"


def test_rebuild_leaves_what_is_not_named(client: ApiClient) -> None:
    answer = act(client, {"rebuild": {"imageRef": IMAGE}})
    assert asked(client).fields == ()
    assert answer.json["server"]["adminPass"] == asked(client).admin_password


def test_rebuild_can_take_certificates_away(client: ApiClient) -> None:
    act(client, {"rebuild": {"imageRef": IMAGE, "trusted_image_certificates": None}})
    assert asked(client).fields == ("trusted_certs",) and asked(client).trusted_certs is None


def test_rebuild_with_certificates_that_nobody_verifies_is_400(client: ApiClient) -> None:
    answer = act(client, {"rebuild": {"imageRef": IMAGE, "trusted_image_certificates": [CERT]}}, 400)
    assert "does not verify image signatures" in answer.text and client.conductor.asked("rebuild_server") == []


@pytest.mark.parametrize(("field", "value", "since"), [
    ("description", "d", 19), ("key_name", "k", 54), ("user_data", "YQ==", 57),
    ("trusted_image_certificates", None, 63), ("hostname", "host", 90)])
def test_rebuild_field_below_its_version_is_400(client: ApiClient, field: str, value: Any, since: int) -> None:
    act(client, {"rebuild": {"imageRef": IMAGE, field: value}}, 400, version=f"2.{since - 1}")
    act(client, {"rebuild": {"imageRef": IMAGE, field: value}}, version=f"2.{since}")


def test_rebuild_files_are_for_versions_up_to_2_56(client: ApiClient) -> None:
    body = {"rebuild": {"imageRef": IMAGE, "personality": [{"path": "/etc/motd", "contents": "aGk="}]}}
    act(client, body, 400, version="2.57")
    act(client, body, version="2.56")
    assert asked(client).fields == ("files",) and asked(client).files == {"/etc/motd": "aGk="}
    body["rebuild"]["personality"] = [{"path": "/etc/motd"}]
    act(client, body, 400, version="2.56")


def test_rebuild_name_under_v2_loses_its_blanks(client: ApiClient) -> None:
    client.prefix = "/v2"
    act(client, {"rebuild": {"imageRef": IMAGE, "name": " again "}})
    assert asked(client).name == "again"


@pytest.mark.parametrize(("version", "there", "absent"), [
    (1, {"addresses", "progress"}, {"key_name", "user_data", "OS-EXT-STS:vm_state", "config_drive"}),
    (54, {"key_name"}, {"user_data", "OS-EXT-STS:vm_state"}), (57, {"user_data"}, {"OS-EXT-STS:vm_state"}),
    (75, {"user_data", "OS-EXT-STS:vm_state", "config_drive"}, {"OS-EXT-SRV-ATTR:user_data"})])
def test_rebuild_answers_more_in_newer_versions(client: ApiClient, version: int, there: set[str], absent: set[str]
                                                ) -> None:
    shown = act(client, {"rebuild": {"imageRef": IMAGE}}, version=f"2.{version}", token=ADMIN).json["server"]
    assert there <= set(shown) and not absent & set(shown)


# -- images


@pytest.mark.parametrize(("version", "limited"), [("2.1", True), ("2.38", True), ("2.39", False), ("2.44", False)])
def test_image_below_2_45_is_named_by_the_location(client: ApiClient, version: str, limited: bool) -> None:
    body = {"createImage": {"name": "snap", "metadata": {"a": "b"}}}
    answer = act(client, body, version=version)
    assert asked(client) == CreateImage(uuid=UUID, name="snap", metadata={"a": "b"}, metadata_limited=limited)
    assert answer.body == b"" and len(answer.headers["Location"].rsplit("/images/", 1)[1]) == 36


def test_image_from_2_45_is_named_by_the_body(client: ApiClient) -> None:
    answer = act(client, {"createImage": {"name": "snap"}}, version="2.45")
    assert list(answer.json) == ["image_id"] and "Location" not in answer.headers


def test_backup_orders_all_that_is_asked_for(client: ApiClient) -> None:
    answer = act(client, {"createBackup": {"name": "b", "backup_type": "daily", "rotation": "2",
                                           "metadata": {"a": "b"}}})
    assert asked(client) == CreateBackup(uuid=UUID, name="b", backup_type="daily", rotation=2, metadata={"a": "b"})
    assert list(answer.json) == ["image_id"]
    old = act(client, {"createBackup": {"name": "b", "backup_type": "daily", "rotation": 1}}, version="2.44")
    assert old.body == b"" and "/images/" in old.headers["Location"]


@pytest.mark.parametrize("version", ["2.1", "2.104"])
def test_backup_of_which_none_is_kept_names_no_image(client: ApiClient, version: str) -> None:
    answer = act(client, {"createBackup": {"name": "b", "backup_type": "daily", "rotation": 0}}, version=version)
    assert answer.body == b"" and "Location" not in answer.headers


# -- shelving


@pytest.mark.parametrize(("version", "body", "fields"), [
    ("2.76", {"availability_zone": 5}, {}), ("2.77", None, {}), ("2.104", None, {}),
    ("2.77", {"availability_zone": "z"}, {"availability_zone": "z"}),
    ("2.91", {"availability_zone": None}, {"availability_zone": None})])
def test_unshelve_names_a_place_from_2_77(client: ApiClient, version: str, body: Any, fields: dict[str, Any]) -> None:
    now(client, VmState.SHELVED_OFFLOADED)
    act(client, {"unshelve": body}, version=version)
    assert asked(client) == UnshelveServer(uuid=UUID, fields=tuple(fields), **fields)


@pytest.mark.parametrize(("version", "body"), [("2.77", {}), ("2.77", {"availability_zone": None}), ("2.91", {}),
                                               ("2.90", {"host": "h"}), ("2.91", {"stranger": 1})])
def test_unshelve_to_no_place_is_400(client: ApiClient, version: str, body: Any) -> None:
    now(client, VmState.SHELVED_OFFLOADED)
    act(client, {"unshelve": body}, 400, version=version, token=ADMIN)


def test_unshelve_to_a_host_is_for_admins(client: ApiClient) -> None:
    now(client, VmState.SHELVED_OFFLOADED)
    act(client, {"unshelve": {"host": "h", "availability_zone": "z"}}, 403)
    act(client, {"unshelve": {"host": "h", "availability_zone": "z"}}, token=ADMIN)
    assert asked(client) == UnshelveServer(uuid=UUID, fields=("availability_zone", "host"), availability_zone="z",
                                           host="h")


def test_unshelve_to_a_place_of_one_that_has_its_host_is_409(client: ApiClient) -> None:
    now(client, VmState.SHELVED)
    refused = act(client, {"unshelve": {"availability_zone": "z"}}, 409)
    assert refused.json["conflictingRequest"]["message"] == (
        f"Cannot 'unshelve' instance {UUID} while it is in vm_state shelved")
    act(client, {"unshelve": None})


# -- moves


@pytest.mark.parametrize("flavor", ["2", 2, "http://localhost/v2.1/flavors/2"])
def test_resize_names_a_flavor_by_id_or_link(client: ApiClient, flavor: Any) -> None:
    act(client, {"resize": {"flavorRef": flavor, "OS-DCF:diskConfig": "AUTO"}})
    assert asked(client) == ResizeServer(uuid=UUID, flavor_id="2", disk_config="AUTO", may_zero_disk=False)


def test_resize_to_the_same_flavor_is_400(client: ApiClient) -> None:
    act(client, {"resize": {"flavorRef": "1"}}, 400)


def test_resize_says_who_may_have_no_disk(client: ApiClient) -> None:
    act(client, {"resize": {"flavorRef": "2"}}, token=ADMIN)
    assert asked(client).may_zero_disk


@pytest.mark.parametrize("body", [{"resize": {"flavorRef": "2"}}, {"migrate": None}])
@pytest.mark.parametrize(("rule", "token", "permitted"), [("!", ADMIN, False), ("role:admin", ADMIN, True),
                                                          ("role:admin", "", False)])
def test_move_when_the_policy_names_a_role_then_only_it_may_go_to_another_cell(
        client: ApiClient, tmp_path: Path, rule: str, token: str, permitted: bool, body: Any) -> None:
    (tmp_path / "policy.yaml").write_text(f'"compute:servers:resize:cross_cell": "{rule}"\n'
                                          '"os_compute_api:os-migrate-server:migrate": "@"\n')
    conf = configuration()
    Policy(conf)  # registers its options
    conf.set_override("policy_file", str(tmp_path / "policy.yaml"), group="oslo_policy")
    act(ApiClient(client.conductor, conf, version="2.104"), body, token=token)
    assert asked(client).cross_cell is permitted


@pytest.mark.parametrize(("version", "body", "host"), [("2.55", {"host": "h"}, None), ("2.56", None, None),
                                                       ("2.56", {}, None), ("2.56", {"host": "h"}, "h"),
                                                       ("2.56", {"host": None}, None)])
def test_migrate_names_a_host_from_2_56(client: ApiClient, version: str, body: Any, host: str | None) -> None:
    act(client, {"migrate": body}, version=version, token=ADMIN)
    assert asked(client) == MigrateServer(uuid=UUID, host=host)


@pytest.mark.parametrize(("version", "body", "order"), [
    ("2.1", {"host": "h", "block_migration": "true", "disk_over_commit": False},
     {"host": "h", "block_migration": True, "force": True, "wait_for_checks": True}),
    ("2.24", {"host": None, "block_migration": False, "disk_over_commit": True},
     {"block_migration": False, "disk_over_commit": True, "wait_for_checks": True}),
    ("2.25", {"host": "h", "block_migration": "auto"}, {"host": "h", "force": True, "wait_for_checks": True}),
    ("2.30", {"host": "h", "block_migration": "auto"}, {"host": "h", "wait_for_checks": True}),
    ("2.30", {"host": "h", "block_migration": "auto", "force": "True"},
     {"host": "h", "force": True, "wait_for_checks": True}),
    ("2.34", {"host": "h", "block_migration": "auto", "force": True}, {"host": "h", "force": True}),
    ("2.104", {"host": "h", "block_migration": "auto"}, {"host": "h"}),
    ("2.104", {"host": None, "block_migration": True}, {"block_migration": True})])
def test_live_migration_by_version(client: ApiClient, version: str, body: Any, order: dict[str, Any]) -> None:
    act(client, {"os-migrateLive": body}, version=version, token=ADMIN)
    assert asked(client) == LiveMigrateServer(uuid=UUID, **order)


@pytest.mark.parametrize("body", [{"host": "h", "block_migration": "auto", "disk_over_commit": False},
                                  {"host": "h", "block_migration": "auto", "force": True},
                                  {"host": "", "block_migration": "auto"}, {"block_migration": "auto"},
                                  {"host": None}, {"host": None, "block_migration": "always"}])
def test_live_migration_body_that_does_not_fit_is_400(client: ApiClient, body: Any) -> None:
    act(client, {"os-migrateLive": body}, 400, token=ADMIN, version="2.68")


@pytest.mark.parametrize(("name", "body"), [
    ("os-migrateLive", {"host": None, "block_migration": "auto", "force": True}), ("evacuate", {"force": True})])
def test_force_without_a_host_is_400(client: ApiClient, name: str, body: Any) -> None:
    refused = act(client, {name: body}, 400, token=ADMIN, version="2.67")
    assert "non-provided destination" in refused.json["badRequest"]["message"]
    assert client.conductor.asked(*LIFE) == []


@pytest.mark.parametrize(("version", "body", "order"), [
    ("2.1", {"onSharedStorage": "False", "host": "h", "adminPass": "p"},
     {"host": "h", "on_shared_storage": False, "admin_password": "p", "force": True}),
    ("2.13", {"onSharedStorage": True}, {"on_shared_storage": True}),
    ("2.14", {"host": "h", "adminPass": "p"}, {"host": "h", "admin_password": "p", "force": True}),
    ("2.29", {"host": "h", "adminPass": "p"}, {"host": "h", "admin_password": "p"}),
    ("2.67", {"host": "h", "adminPass": "p", "force": True}, {"host": "h", "admin_password": "p", "force": True}),
    ("2.68", {"host": "h", "adminPass": "p"}, {"host": "h", "admin_password": "p"}),
    ("2.94", {"adminPass": "p"}, {"admin_password": "p"}),
    ("2.95", {"adminPass": "p"}, {"admin_password": "p", "stay_off": True})])
def test_evacuate_by_version(client: ApiClient, version: str, body: Any, order: dict[str, Any]) -> None:
    answer = act(client, {"evacuate": body}, 200, token=ADMIN, version=version)
    assert asked(client) == EvacuateServer(uuid=UUID, **order)
    old = int(version.split(".")[1]) < 14
    assert (answer.json if answer.body else None) == ({"adminPass": order.get("admin_password")} if old else None)


@pytest.mark.parametrize(("version", "body"), [
    ("2.1", {}), ("2.13", {"onSharedStorage": True, "adminPass": "p"}), ("2.14", {"onSharedStorage": True}),
    ("2.28", {"host": "h", "force": True}), ("2.68", {"host": "h", "force": True}), ("2.104", {"host": "a b"})])
def test_evacuate_body_that_does_not_fit_is_400(client: ApiClient, version: str, body: Any) -> None:
    act(client, {"evacuate": body}, 400, token=ADMIN, version=version)
    assert client.conductor.asked(*LIFE) == []


@pytest.mark.parametrize("body", [{"evacuate": {}}, {"migrate": None},
                                  {"os-migrateLive": {"host": None, "block_migration": "auto"}}])
def test_moves_are_not_for_members(client: ApiClient, body: Any) -> None:
    act(client, body, 403, token=DEMO)
    assert client.conductor.asked(*LIFE) == []


# -- managers


@pytest.fixture
def manager(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> ApiClient:
    from nova.web.auth import NoAuth
    original = NoAuth.identify
    monkeypatch.setattr(NoAuth, "identify", lambda self, headers: {
        **original(self, headers), "roles": ("manager", "member", "reader")})
    return client


@pytest.mark.parametrize(("name", "rest"), [("migrate", {}), ("os-migrateLive", {"block_migration": "auto"})])
def test_manager_migrates_but_names_no_host(manager: ApiClient, name: str, rest: dict[str, Any]) -> None:
    refused = act(manager, {name: {"host": "h", **rest}}, 403)
    assert ":host" in refused.json["forbidden"]["message"]
    act(manager, {name: {"host": None, **rest}})
    assert asked(manager).host is None
