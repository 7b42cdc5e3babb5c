"""What users do with servers, what they do wrong, and what goes wrong around them: each test leaves nothing behind."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import Client, Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.kills import BUILD_CALLS

HOST = "OS-EXT-SRV-ATTR:host"
NOWHERE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=3, cells=sampling.cells(3))).start()


@pytest.fixture
def api(cloud: Cloud) -> Iterator[Client]:
    yield cloud.api()
    cloud.empty()


@pytest.fixture
def admin(cloud: Cloud) -> Client:
    return cloud.api("admin")


def side_by_side(count: int, act: Callable[[int], Any]) -> list[Any]:
    """What ``act`` gave (or the Refused it raised) for 0, 1, ..., all at the same time."""
    def tried(number: int) -> Any:
        try:
            return act(number)
        except Refused as refused:
            return refused
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(tried, range(count)))


# --- many at once


def test_boot_when_asked_side_by_side_then_hosts_get_about_as_many_each(cloud, api, admin) -> None:
    made = side_by_side(12, lambda number: cloud.api().create(f"spread{number}"))
    for server in made:
        api.settled(server["id"], "ACTIVE")
    hosts = collections.Counter(server[HOST] for server in admin.servers("?all_tenants=1"))
    assert set(hosts) == set(cloud.hosts) and max(hosts.values()) - min(hosts.values()) <= 2, hosts


def test_quota_when_requests_race_then_it_is_never_exceeded(cloud, api, admin) -> None:
    admin.call("PUT", "/os-quota-sets/race", {"quota_set": {"instances": 5, "cores": 4}})
    answers = side_by_side(12, lambda number: cloud.api("racer", "race").create(f"race{number}"))
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(refused) == 8 and {one.status for one in refused} == {403}
    assert all("Quota exceeded for cores" in one.message for one in refused)
    assert cloud.stores.used("race") == {"instances": 4, "cores": 4}
    racer = cloud.api("racer", "race")
    racer.remove(*(server["id"] for server in racer.servers()))
    assert cloud.stores.used("race") == {"instances": 0, "cores": 0}
    racer.boot("again")


def test_create_when_fewer_than_max_count_fit_the_quota_then_as_many_as_fit_are_made(cloud, api, admin) -> None:
    admin.call("PUT", "/os-quota-sets/some", {"quota_set": {"instances": 3}})
    few = cloud.api("few", "some")
    few.create("few", min_count=2, max_count=6)
    assert len(few.servers()) == 3


# --- what is done with a server


def test_power_when_stopped_started_and_rebooted_then_guest_and_states_follow(cloud, api) -> None:
    uuid = api.boot("power")["id"]
    for action, argument, status, power in (("os-stop", None, "SHUTOFF", 4), ("os-start", None, "ACTIVE", 1),
                                            ("reboot", {"type": "SOFT"}, "ACTIVE", 1),
                                            ("reboot", {"type": "HARD"}, "ACTIVE", 1)):
        api.act(uuid, action, argument)
        assert api.settled(uuid, status)["OS-EXT-STS:power_state"] == power, action
    done = [one["action"] for one in api.get(f"/servers/{uuid}/os-instance-actions")["instanceActions"]]
    assert done == ["reboot", "reboot", "start", "stop", "create"]
    assert "login:" in api.call("POST", f"/servers/{uuid}/action", {"os-getConsoleOutput": {}}).json()["output"]


def test_action_when_the_state_forbids_it_then_it_is_a_conflict_that_says_why(api) -> None:
    uuid = api.boot("conflict")["id"]
    with pytest.raises(Refused) as refused:
        api.act(uuid, "os-start")
    assert refused.value.status == 409 and "vm_state active" in refused.value.message


def test_actions_when_two_are_asked_at_once_then_one_wins_and_the_other_is_a_conflict(cloud, api) -> None:
    uuid = api.boot("both")["id"]
    answers = side_by_side(6, lambda _number: cloud.api().act(uuid, "os-stop"))
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(refused) == 5 and {one.status for one in refused} == {409}
    api.settled(uuid, "SHUTOFF")


def test_lock_when_locked_then_only_an_admin_may_act(api, admin) -> None:
    uuid = api.boot("locked")["id"]
    api.act(uuid, "lock", {"locked_reason": "mine"})
    with pytest.raises(Refused) as refused:
        api.act(uuid, "os-stop")
    assert refused.value.status == 409
    admin.act(uuid, "os-stop")
    api.settled(uuid, "SHUTOFF")
    api.act(uuid, "unlock")
    api.act(uuid, "os-start")
    api.settled(uuid, "ACTIVE")


def test_metadata_when_changed_then_it_is_shown(api) -> None:
    uuid = api.boot("meta", metadata={"a": "1", "b": "2"})["id"]
    api.call("POST", f"/servers/{uuid}/metadata", {"metadata": {"b": "3", "c": "4"}})
    api.call("DELETE", f"/servers/{uuid}/metadata/a")
    assert api.show(uuid)["metadata"] == {"b": "3", "c": "4"}
    api.call("PUT", f"/servers/{uuid}/metadata", {"metadata": {"only": "this"}})
    assert api.show(uuid)["metadata"] == {"only": "this"}


def test_guest_when_it_goes_down_by_itself_then_the_server_is_shown_as_stopped(cloud, api, admin) -> None:
    uuid = api.boot("faints")["id"]
    with cloud.knobs(admin.show(uuid)[HOST], {"call": "*", "do": "power", "name": "faints", "power_state": 4}):
        assert api.settled(uuid, "SHUTOFF")["OS-EXT-STS:power_state"] == 4


# --- delete overtakes


@pytest.mark.parametrize("call", BUILD_CALLS)
def test_delete_when_the_guest_is_being_built_then_it_overtakes_and_nothing_is_left(cloud, api, call) -> None:
    import contextlib

    with contextlib.ExitStack() as stack:
        for host in cloud.hosts:
            stack.enter_context(cloud.knobs(host, {"call": call, "do": "block"}))
        uuid = api.create("overtaken")["id"]
        wait_until("the build stands", lambda: any(
            list((cloud.state(host) / "fake" / "blocked").glob(f"{call}.{uuid}")) for host in cloud.hosts), 15)
        api.delete(uuid)
    api.gone(uuid)
    cloud.wait_clean()


def test_delete_when_the_scheduler_has_not_answered_then_it_overtakes_and_nothing_is_left(cloud, api) -> None:
    cloud.daemons["scheduler"].hang()
    try:
        uuid = api.create("unplaced")["id"]
        api.delete(uuid)
        api.gone(uuid)
    finally:
        cloud.daemons["scheduler"].wake()
    cloud.wait_clean()


def test_delete_when_asked_again_and_again_then_it_is_one_delete(cloud, api) -> None:
    uuid = api.boot("twice")["id"]
    side_by_side(5, lambda _number: cloud.api().delete(uuid))
    api.gone(uuid)
    cloud.wait_clean()


# --- hosts that refuse


def test_boot_when_a_host_refuses_then_another_one_is_tried(cloud, api, admin) -> None:
    with cloud.knobs("host1", rule := {"call": "create_disks", "do": "fail", "kind": "host_refused"}), \
            cloud.knobs("host2", rule):
        made = [api.create(f"choosy{number}")["id"] for number in range(3)]
        assert {api.settled(uuid, "ACTIVE") and admin.show(uuid)[HOST] for uuid in made} == {"host3"}
    assert not cloud.guests("host1") | cloud.guests("host2")


def test_boot_when_every_host_refuses_then_it_is_an_error_that_says_so(cloud, api, admin) -> None:
    import contextlib

    with contextlib.ExitStack() as stack:
        for host in cloud.hosts:
            stack.enter_context(cloud.knobs(host, {"call": "start_new", "do": "fail", "kind": "host_refused",
                                                   "message": "no luck today"}))
        uuid = api.create("unlucky")["id"]
        fault = api.settled(uuid, "ERROR")["fault"]
    assert fault["code"] == 500 and "no luck today" in fault["message"] + admin.show(uuid)["fault"]["details"]
    assert not set.union(*(cloud.guests(host) for host in cloud.hosts))


def test_boot_when_no_host_is_big_enough_then_the_fault_names_what_failed(api, admin) -> None:
    admin.call("POST", "/flavors", {"flavor": {"name": "huge", "id": "huge", "ram": 512, "vcpus": 2000, "disk": 1}})
    uuid = api.create("huge", flavorRef="huge")["id"]
    fault = api.settled(uuid, "ERROR")["fault"]
    assert fault["message"].startswith("No valid host was found.")
    assert "3" in admin.show(uuid)["fault"]["details"]


def test_boot_when_all_computes_are_disabled_then_no_valid_host_is_found(cloud, api, admin) -> None:
    services = [one["id"] for one in admin.get("/os-services?binary=nova-compute")["services"]]
    for service in services:
        admin.call("PUT", f"/os-services/{service}", {"status": "disabled"})
    try:
        def refused() -> bool:
            fault = api.settled(api.create("homeless")["id"]).get("fault", {})
            return "No valid host" in fault.get("message", "")
        wait_until("schedulers know that hosts are disabled", refused, 10)
    finally:
        for service in services:
            admin.call("PUT", f"/os-services/{service}", {"status": "enabled"})
    wait_until("they know the contrary", lambda: api.settled(api.create("home")["id"])["status"] == "ACTIVE", 10)


# --- bad input


@pytest.mark.parametrize("asked, word", [
    ({"imageRef": NOWHERE}, NOWHERE), ({"flavorRef": "none such"}, "none such"),
    ({"networks": [{"uuid": NOWHERE}]}, NOWHERE), ({"key_name": "none such"}, "key_name"),
    ({"name": ""}, "name"), ({"metadata": {"k": 1}}, "metadata"), ({"surprise": 1}, "surprise"),
    ({"min_count": 3, "max_count": 2}, "min_count")],
    ids=("image", "flavor", "network", "key", "name", "metadata", "unknown-field", "counts"))
def test_create_when_something_is_wrong_then_it_is_a_400_that_names_it(cloud, api, asked, word) -> None:
    with pytest.raises(Refused) as refused:
        api.create("wrong", **asked)
    assert refused.value.status == 400 and word in refused.value.message
    assert cloud.stores.used("demo")["instances"] == 0


def test_create_when_over_quota_then_it_is_a_403_that_names_the_resource(cloud, api, admin) -> None:
    admin.call("PUT", "/os-quota-sets/poor", {"quota_set": {"ram": 1000}})
    with pytest.raises(Refused) as refused:
        cloud.api("poor", "poor").create("poor", min_count=2)
    assert refused.value.status == 403
    assert refused.value.message == "Quota exceeded for ram: Requested 1024, but already used 0 of 1000 ram"


def test_server_when_it_is_another_projects_then_it_is_a_404(cloud, api) -> None:
    uuid = api.boot("private")["id"]
    stranger = cloud.api("stranger", "elsewhere")
    for act in (stranger.show, stranger.delete, lambda one: stranger.act(one, "os-stop")):
        with pytest.raises(Refused) as refused:
            act(uuid)
        assert refused.value.status == 404
    assert uuid not in {server["id"] for server in stranger.servers()}
    assert requests.get(f"{cloud.url}/servers", timeout=10).status_code == 401


# --- services next door


@pytest.mark.parametrize("how", ["refuses connections", "answers 503", "says nothing"])
def test_create_when_glance_is_down_then_it_is_a_503_that_names_it(cloud, api, how) -> None:
    glance = cloud.glance
    if how == "refuses connections":
        glance.go_away()
    elif how == "answers 503":
        glance.knobs.fail_next = 10
    else:
        glance.knobs.stall_s = 8.0  # read_timeout is 5
    try:
        with pytest.raises(Refused) as refused:
            api.create("blind")
    finally:
        glance.knobs.fail_next, glance.knobs.stall_s = 0, 0.0
        if how == "refuses connections":
            glance.come_back()
    assert refused.value.status == 503 and "image service" in refused.value.message.lower().replace("glance", "image")
    assert cloud.stores.used("demo")["instances"] == 0
    api.boot("sees")
