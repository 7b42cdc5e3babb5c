"""Creates: what the body says and what the conductor is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from oslo_policy import opts as policy_options

from nova.api.handlers.server_create import PASSWORD_LETTERS, new_password
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import CreatedServers, NewServer
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"
NET = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
BOOT = {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": IMAGE}


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


def body(**fields: Any) -> dict[str, Any]:
    return {"server": {"name": "vm", "flavorRef": "1", "imageRef": IMAGE, **fields}}


def ordered(client: ApiClient, version: str | None = None, token: str = DEMO, **fields: Any) -> NewServer:
    answer = client.post("/servers", body(**fields), version=version, token=token)
    assert answer.status_int == 202, answer.text
    return client.conductor.asked("create_servers")[-1]


def refused(client: ApiClient, version: str | None = None, token: str = DEMO, **fields: Any) -> tuple[int, str]:
    answer = client.post("/servers", body(**fields), version=version, token=token)
    assert client.conductor.asked("create_servers") == []
    return answer.status_int, next(iter(answer.json.values()))["message"]


def test_create_answers_little_and_where_the_server_is(client: ApiClient) -> None:
    answer = client.post("/servers", body())
    uuid = next(iter(client.conductor.servers))
    assert answer.status_int == 202
    assert set(answer.json["server"]) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert answer.json["server"]["security_groups"] == [{"name": "default"}]
    assert answer.headers["Location"] == f"http://localhost/v2.1/servers/{uuid}"
    assert client.conductor.asked("create_servers")[0].admin_password == answer.json["server"]["adminPass"]


@pytest.mark.parametrize("groups", [(), ("web", "db")])
def test_create_when_the_conductor_knows_the_groups_then_these_are_answered(client: ApiClient, groups: tuple[str, ...]
                                                                            ) -> None:
    client.conductor.given(create_servers=CreatedServers(reservation_id="r", uuids=("u",), security_groups=groups))
    answer = client.post("/servers", body(security_groups=[{"name": "asked"}]))
    assert answer.json["server"]["security_groups"] == [{"name": name} for name in groups]


def test_password_is_not_shown_when_switched_off() -> None:
    client = ApiClient(conf=configuration(enable_instance_password=False), token=DEMO)
    assert "adminPass" not in client.post("/servers", body()).json["server"]


def test_password_has_its_length_and_every_kind_of_letter() -> None:
    for length in (0, 1, 12, 40):
        password = new_password(length)
        assert len(password) == length
        assert length < 3 or all(set(password) & set(letters) for letters in PASSWORD_LETTERS)
    assert new_password(12) != new_password(12)


def test_reservation_id_when_asked_is_the_whole_answer(client: ApiClient) -> None:
    answer = client.post("/servers", body(return_reservation_id="True", min_count="2", max_count="3"))
    assert answer.json == {"reservation_id": "r-fake"}
    [asked] = client.conductor.asked("create_servers")
    assert (asked.min_count, asked.max_count) == (2, 3)


def test_counts_must_be_the_right_way_round(client: ApiClient) -> None:
    assert refused(client, min_count=3, max_count=2)[0] == 400
    assert ordered(client, min_count=2).max_count == 2


def test_create_when_an_access_address_is_written_long_then_its_short_form_is_kept(client: ApiClient) -> None:
    order = ordered(client, accessIPv4="1.2.3.4", accessIPv6="0000:0000:0000:0000:0000:babe:220.12.22.2")
    assert (order.access_ip_v4, order.access_ip_v6) == ("1.2.3.4", "::babe:dc0c:1602")


def test_name_was_the_description_below_2_19(client: ApiClient) -> None:
    assert ordered(client).description == "vm"
    assert ordered(client, "2.19").description is None
    assert ordered(client, "2.19", description="text").description == "text"


def test_networks_in_all_their_forms(client: ApiClient) -> None:
    assert ordered(client).networks is None
    auto = ordered(client, "2.37", networks="auto")
    assert auto.networks is None and auto.make_network and not ordered(client).make_network
    assert ordered(client, "2.37", networks="none").networks == ()
    assert ordered(client, networks=[{"uuid": NET, "fixed_ip": "10.0.0.9"}]).networks == (
        RequestedNetwork(network_id=NET, fixed_ip="10.0.0.9"),)
    assert ordered(client, "2.42", networks=[{"uuid": NET, "tag": "nic"}]).networks == (
        RequestedNetwork(network_id=NET, tag="nic"),)


def test_external_networks_when_policy_lets_the_caller_then_the_order_says_so(client: ApiClient) -> None:
    assert not ordered(client, networks=[{"uuid": NET}]).may_use_external
    assert ordered(client, networks=[{"uuid": NET}], token=ADMIN).may_use_external
    assert not ordered(client, token=ADMIN).may_use_external


@pytest.mark.parametrize("networks", [[{}], [{"uuid": "br-1"}], [{"port": NET, "fixed_ip": "10.0.0.9"}]])
def test_bad_network_is_400(client: ApiClient, networks: Any) -> None:
    assert refused(client, networks=networks)[0] == 400


def test_networks_are_required_from_2_37(client: ApiClient) -> None:
    status, message = refused(client, "2.37")
    assert status == 400 and "networks" in message


def test_fixed_address_for_several_servers_is_400(client: ApiClient) -> None:
    assert refused(client, networks=[{"uuid": NET, "fixed_ip": "10.0.0.9"}], max_count=2)[0] == 400


def test_zone_with_host_is_for_admins_and_forces(client: ApiClient) -> None:
    assert ordered(client, availability_zone="az1").availability_zone == "az1"
    assert ordered(client, availability_zone="az1").forced is False
    made = ordered(client, token=ADMIN, availability_zone="az1:h1:n1")
    assert (made.availability_zone, made.host, made.node, made.forced) == ("az1", "h1", "n1", True)
    made = ordered(client, token=ADMIN, availability_zone="az1::n1")
    assert (made.host, made.node, made.forced) == (None, "n1", True)
    client.conductor.calls.clear()
    assert refused(client, availability_zone="az1:h1")[0] == 403
    assert refused(client, token=ADMIN, availability_zone="a:b:c:d")[0] == 400


def test_destination_is_for_admins_from_2_74(client: ApiClient) -> None:
    assert refused(client, "2.73", token=ADMIN, host="h1", networks="auto")[0] == 400
    assert refused(client, "2.74", host="h1", networks="auto")[0] == 403
    assert refused(client, "2.74", token=ADMIN, host="h1", networks="auto", availability_zone="a:h")[0] == 400
    made = ordered(client, "2.74", token=ADMIN, host="h1", hypervisor_hostname="n1", networks="auto")
    assert (made.host, made.node, made.forced) == ("h1", "n1", False)


def test_hints_under_either_name_are_passed_on(client: ApiClient) -> None:
    for name in ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"):
        client.post("/servers", {**body(), name: {"group": NET, "own": "x"}})
        assert client.conductor.asked("create_servers")[-1].scheduler_hints == {"group": NET, "own": "x"}


def test_files_are_taken_up_to_2_56(client: ApiClient) -> None:
    files = [{"path": "/etc/a", "contents": "YQ=="}]
    assert ordered(client, "2.36", personality=files).files == {"/etc/a": "YQ=="}
    client.conductor.calls.clear()
    assert refused(client, "2.57", personality=files, networks="auto")[0] == 400
    assert "contents" in refused(client, personality=[{"path": "/etc/a"}])[1]


def test_groups_tags_and_the_rest_are_passed_on(client: ApiClient) -> None:
    made = ordered(client, "2.96", networks="auto", security_groups=[{"name": "web"}, {"name": "web"}],
                   tags=["a", "b", "a"], key_name="k", config_drive="true", user_data="YQ==", metadata={"a": "b"},
                   trusted_image_certificates=None, hostname="h.example", flavorRef=7)
    assert made.security_groups == ("web",) and made.tags == ("a", "b") and made.config_drive is True
    assert (made.key_name, made.user_data, made.flavor_id, made.hostname) == ("k", "YQ==", "7", "h.example")
    assert made.trusted_certs is None and made.metadata == {"a": "b"} and made.may_zero_disk is False
    assert ordered(client, token=ADMIN).may_zero_disk is True


def test_no_image_needs_a_boot_volume(client: ApiClient) -> None:
    status, message = refused(client, imageRef="")
    assert status == 400 and "imageRef" in message


def test_bad_field_is_named_with_what_would_be_accepted(client: ApiClient) -> None:
    status, message = refused(client, networks=[{"uuid": NET, "fixed_ip": "x"}])
    assert status == 400
    assert message.startswith("Invalid input for field/attribute server.networks[0].fixed_ip. Value: x. ")
    assert "IPv4" in message and "IPv6" in message


def ruled(tmp_path: Path, text: str) -> ApiClient:
    """A client of a cloud whose policy file says ``text``."""
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    conf = configuration()
    policy_options.set_defaults(conf)
    conf.set_override("policy_file", str(path), group="oslo_policy")
    return ApiClient(conf=conf, token=DEMO)


def test_networks_but_none_need_the_right_to_attach(tmp_path: Path) -> None:
    client = ruled(tmp_path, '"os_compute_api:servers:create:attach_network": "rule:context_is_admin"\n')
    for networks in ("auto", [], [{"uuid": NET}]):
        assert refused(client, "2.37", networks=networks)[0] == 403
    assert ordered(client, "2.37", networks="none").networks == ()
    assert ordered(client).networks is None, "below 2.37 they may be left out"


@pytest.mark.parametrize(("rule", "fields"), [
    ("attach_volume", {"block_device_mapping_v2": [BOOT]}), ("trusted_certs", {"trusted_image_certificates": ["a"]})])
def test_rule_of_a_field_is_asked_only_with_it(tmp_path: Path, rule: str, fields: dict[str, Any]) -> None:
    client = ruled(tmp_path, f'"os_compute_api:servers:create:{rule}": "rule:context_is_admin"\n')
    status, message = refused(client, "2.63", networks="auto", **fields)
    assert (status, rule in message) == (403, True)
    assert ordered(client, "2.63", networks="auto")


def test_certificates_that_nobody_verifies_are_refused(client: ApiClient) -> None:
    status, message = refused(client, "2.63", networks="auto", trusted_image_certificates=["a"])
    assert status == 400 and message.startswith("trusted_image_certificates: this cloud does not verify")


def test_hints_are_of_the_first_object_even_when_it_is_empty(client: ApiClient) -> None:
    old, new = {"OS-SCH-HNT:scheduler_hints": {"same_host": NET}}, {"os:scheduler_hints": {}}
    for objects, hints in ((old, {"same_host": NET}), ({**old, **new}, {}), (new, {})):
        assert client.post("/servers", {**body(), **objects}).status_int == 202
        assert client.conductor.asked("create_servers")[-1].scheduler_hints == hints


@pytest.mark.parametrize("hints", [
    {"group": "x"}, {"group": [NET, "x"]}, {"different_host": 1}, {"same_host": ["x"]}, {"query": 7},
    {"target_cell": ""}, {"different_cell": [1]}, {"build_near_host_ip": "10.0.0"}, {"cidr": "24"}])
def test_hint_of_a_wrong_form_is_400_and_named(client: ApiClient, hints: dict[str, Any]) -> None:
    for key in ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"):
        answer = client.post("/servers", {**body(), key: hints})
        assert answer.status_int == 400
        assert f"{key}.{next(iter(hints))}" in answer.json["badRequest"]["message"]
    assert client.conductor.asked("create_servers") == []


def test_hint_nobody_knows_is_kept_for_filters_of_an_operators_own(client: ApiClient) -> None:
    assert client.post("/servers", {**body(), "os:scheduler_hints": {"rack": {"n": [1, 2]}}}).status_int == 202
    assert client.conductor.asked("create_servers")[-1].scheduler_hints == {"rack": {"n": [1, 2]}}


def test_disk_config_that_was_not_asked_for_is_the_images_to_say(client: ApiClient) -> None:
    assert ordered(client).disk_config_asked is False
    made = ordered(client, **{"OS-DCF:diskConfig": "AUTO"})
    assert (made.disk_config, made.disk_config_asked) == ("AUTO", True)


def test_fixed_address_is_told_in_its_short_form(client: ApiClient) -> None:
    made = ordered(client, networks=[{"uuid": NET, "fixed_ip": "2001:DB8:0::1"}])
    assert made.networks[0].fixed_ip == "2001:db8::1"
