"""nova-all as its users have it: the program, its clouds.yaml, faults on demand, and a cloud that outlives a kill."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
import yaml
from keystoneauth1 import exceptions as refused

from nova.devel.nova_all import state_directory
from nova.devel.running import RunningCloud
from tests.functional.backends import wait_until
from tests.functional.nova_all import TOP, Compute, refusing, until_down


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    more = tmp_path_factory.mktemp("etc") / "more.conf"
    more.write_text("[quota]\ninstances = -1\ncores = -1\nram = -1\n")
    with RunningCloud(hosts=3, more=("--config-file", str(more))) as running:
        yield running


@pytest.fixture
def demo(cloud: RunningCloud) -> Compute:
    return Compute(cloud)


@pytest.fixture
def admin(cloud: RunningCloud) -> Compute:
    return Compute(cloud, "admin")


@pytest.fixture
def healed(cloud: RunningCloud) -> Iterator[None]:
    yield
    cloud.heal()


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nova.cmd.all", *words], capture_output=True, text=True, timeout=60,
                          cwd=TOP, stdin=subprocess.DEVNULL, env={**os.environ, **env})


# --- what it is


def test_server_when_created_as_it_is_printed_then_it_runs_with_an_address(demo: Compute) -> None:
    server = demo.settled(demo.create("vm1"), "ACTIVE")
    assert server["addresses"]["private"][0]["addr"].startswith("10.11.")
    assert server["image"]["id"]


def test_services_when_the_cloud_is_ready_then_all_daemons_are_up(cloud: RunningCloud, admin: Compute) -> None:
    services = admin.get("/os-services")["services"]
    assert {(one["binary"], one["state"]) for one in services} == {
        (f"nova-{name}", "up") for name in ("conductor", "scheduler", "consoleauth", "cert", "network", "compute")}
    assert {one["host"] for one in services if one["binary"] == "nova-compute"} == {"host1", "host2", "host3"}


def test_catalog_when_asked_then_each_service_answers_at_its_address(cloud: RunningCloud) -> None:
    session = cloud.session("admin")
    for service, path in (("compute", "/servers"), ("image", "/v2/images"), ("placement", "/resource_providers"),
                          ("identity", "/v3/users")):
        assert session.get(path, endpoint_filter={"service_type": service}).status_code == 200, service


def test_regions_when_ec2_is_asked_then_they_have_the_address_of_the_catalog(cloud: RunningCloud) -> None:
    session = cloud.session("demo")
    address = session.get_endpoint(service_type="ec2")
    made = session.post(f"/v3/users/{session.get_user_id()}/credentials/OS-EC2", endpoint_filter={
        "service_type": "identity"}, json={"tenant_id": session.get_project_id()}).json()["credential"]
    ec2 = boto3.client("ec2", endpoint_url=address, region_name="RegionOne", aws_access_key_id=made["access"],
                       aws_secret_access_key=made["secret"])
    assert [one["Endpoint"] for one in ec2.describe_regions()["Regions"]] == [address]


def test_certificate_when_made_as_old_clients_do_then_the_clouds_own_verifies_it(
        cloud: RunningCloud, tmp_path: Path) -> None:
    session = cloud.session("demo")
    root = session.get_endpoint(service_type="compute").replace("/v2.1", "/v2")
    made = session.post(f"{root}/os-certificates").json()["certificate"]
    assert made["private_key"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    (tmp_path / "cert.pem").write_text(made["data"])
    (tmp_path / "root.pem").write_text(session.get(f"{root}/os-certificates/root").json()["certificate"]["data"])
    assert subprocess.run(["openssl", "verify", "-CAfile", tmp_path / "root.pem", tmp_path / "cert.pem"],
                          capture_output=True, timeout=30).returncode == 0


def test_console_when_its_address_is_opened_then_there_is_a_page(demo: Compute) -> None:
    uuid = demo.create("watched")
    demo.settled(uuid, "ACTIVE")
    kind = {"protocol": "serial", "type": "serial"}
    url = demo.http.post(f"/servers/{uuid}/remote-consoles", json={"remote_console": kind}).json()
    page = url["remote_console"]["url"].replace("ws://", "http://")
    assert requests.get(page, timeout=10).status_code == 200


def test_metadata_when_a_stranger_asks_then_it_is_served_and_knows_nobody(cloud: RunningCloud) -> None:
    port = re.search(r"metadata +http://127.0.0.1:(\d+)", cloud.said)
    assert port is not None
    assert requests.get(f"http://127.0.0.1:{port[1]}/latest/meta-data/", timeout=10).status_code == 404


def test_image_when_the_server_is_taken_then_it_boots_another(demo: Compute) -> None:
    uuid = demo.create("original")
    demo.settled(uuid, "ACTIVE")
    demo.http.post(f"/servers/{uuid}/action", json={"createImage": {"name": "taken"}})

    def taken() -> Any:
        return [one for one in demo.images.get("/v2/images?name=taken").json()["images"] if one["status"] == "active"]
    [image] = wait_until("the image is active", taken, 30, 0.1)
    made = demo.http.post("/servers", json={"server": {"name": "copy", "imageRef": image["id"], "flavorRef": "1",
                                                       "networks": "auto"}}).json()["server"]["id"]
    demo.settled(made, "ACTIVE")


def test_clouds_file_when_read_then_it_has_both_users_and_is_private(cloud: RunningCloud) -> None:
    clouds = yaml.safe_load(cloud.clouds_file.read_text())["clouds"]
    assert {name: entry["auth"]["username"] for name, entry in clouds.items()} == {
        "nova-all": "demo", "nova-all-admin": "admin"}
    assert cloud.clouds_file.stat().st_mode & 0o777 == 0o600


def test_two_clouds_when_they_run_at_once_then_they_know_nothing_of_each_other(cloud: RunningCloud, demo: Compute
                                                                              ) -> None:
    mine = demo.create("mine")
    with RunningCloud(hosts=1) as other:
        assert other.auth_url != cloud.auth_url
        assert mine not in {server["id"] for server in Compute(other, "admin").get(
            "/servers?all_tenants=1")["servers"]}


# --- faults on demand


def test_boot_when_the_header_says_so_then_this_server_fails_and_the_next_one_runs(demo: Compute) -> None:
    failed = demo.settled(demo.create("broken", "boot"), "ERROR")
    assert failed["fault"]["code"] == 500
    demo.settled(demo.create("fine"), "ACTIVE")


def test_boot_when_the_request_with_the_header_is_refused_then_no_other_server_fails(demo: Compute, admin: Compute
                                                                                     ) -> None:
    with refusing(refused.BadRequest, "flavorRef"):
        demo.http.post("/servers", json={"server": {"name": "shared-name", "flavorRef": {}}},
                       headers={"X-Nova-All-Fail": "boot"})
    assert faults_of(admin) == []
    admin.settled(admin.create("shared-name"), "ACTIVE")


def test_boot_when_armed_for_a_name_then_only_servers_of_that_name_fail(cloud: RunningCloud, demo: Compute, healed
                                                                        ) -> None:
    cloud.fail("boot", name="bad-*", times=2)
    fine, bad, worse, last = (demo.create(name) for name in ("good", "bad-1", "bad-2", "bad-3"))
    demo.settled(fine, "ACTIVE")
    ended = sorted(wait_until(f"{uuid} is built", lambda uuid=uuid: [
        status for status in [demo.get(f"/servers/{uuid}")["server"]["status"]] if status != "BUILD"], 30, 0.1)[0]
        for uuid in (bad, worse, last))
    assert ended == ["ACTIVE", "ERROR", "ERROR"]


def test_quota_when_the_header_says_so_then_the_request_is_refused_and_nothing_is_made(demo: Compute) -> None:
    with refusing(refused.Forbidden, "Quota exceeded for instances"):
        demo.create("too many", "quota")
    assert "too many" not in {server["name"] for server in demo.get("/servers")["servers"]}
    demo.create("enough")


def test_rpc_when_the_header_says_so_then_the_answer_is_503(demo: Compute) -> None:
    with refusing(refused.ServiceUnavailable, "did not answer"):
        demo.create("lost", "rpc")


def test_rpc_when_a_read_has_the_header_then_its_second_asking_is_lost_too(demo: Compute) -> None:
    with refusing(refused.ServiceUnavailable, "did not answer"):
        demo.http.get("/servers", headers={"X-Nova-All-Fail": "rpc"})
    demo.get("/servers")


def test_rpc_when_armed_once_then_one_request_is_lost_with_all_its_calls(cloud: RunningCloud, demo: Compute, healed
                                                                         ) -> None:
    cloud.fail("rpc")
    with refusing(refused.ServiceUnavailable, "did not answer"):
        demo.get("/servers")
    demo.get("/servers")


def test_header_when_it_names_no_fault_then_400_says_which_there_are(demo: Compute) -> None:
    with refusing(refused.BadRequest, "boot, quota, rpc"):
        demo.create("odd", "fire")


def test_host_when_it_dies_then_it_is_down_its_servers_can_be_evacuated_and_it_comes_back(
        cloud: RunningCloud, demo: Compute, admin: Compute, healed) -> None:
    uuid = demo.create("moved")
    demo.settled(uuid, "ACTIVE")
    host = admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"]
    cloud.fail("host", host=host)
    until_down(admin, host)
    admin.http.post(f"/servers/{uuid}/action", json={"evacuate": {}})
    wait_until("it is elsewhere", lambda: admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"] != host, 30)
    demo.settled(uuid, "SHUTOFF")
    cloud.heal()
    until_down(admin, host, "up")


def test_host_when_it_dies_while_it_boots_a_server_then_another_host_has_it(admin: Compute) -> None:
    with RunningCloud(hosts=2, speed=2) as slow:
        demo, boss = Compute(slow), Compute(slow, "admin")
        uuid = demo.create("unlucky")
        host = wait_until("it has a host", lambda: boss.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"], 20)
        slow.fail("host", host=host)
        demo.settled(uuid, "ACTIVE")
        assert boss.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"] != host


@pytest.mark.parametrize(("body", "words"), [
    ({"kind": "flood"}, "'kind' must be one of"), ({"kind": "boot", "times": 0}, "'times'"),
    ({"kind": "boot", "times": "2"}, "'times'"), ({"kind": "rpc", "name": "x"}, "'name' is not valid for"),
    ({"kind": "boot", "name": 7}, "'name'"), ({}, "'kind'")], ids=str)
def test_fault_when_it_makes_no_sense_then_400_names_the_member(cloud: RunningCloud, body: dict[str, Any], words: str
                                                                ) -> None:
    with refusing(refused.BadRequest, words):
        cloud.session("admin").post(faults(cloud), json={"fault": body})


def test_fault_of_a_host_when_there_is_none_of_that_name_then_404(cloud: RunningCloud) -> None:
    with refusing(refused.NotFound, "host1, host2, host3"):
        cloud.fail("host", host="host9")


def test_faults_when_a_tenant_orders_one_then_403_and_none_is_armed(cloud: RunningCloud) -> None:
    with pytest.raises(refused.Forbidden):
        cloud.session("demo").post(faults(cloud), json={"fault": {"kind": "host", "host": "host1"}})
    with pytest.raises(refused.Forbidden):
        cloud.session("demo").delete(faults(cloud))
    assert requests.post(faults(cloud), json={"fault": {"kind": "boot"}}, timeout=10).status_code == 401
    assert cloud.session("demo").get(faults(cloud)).json() == {"faults": []}


def faults_of(admin: Compute) -> Any:
    address = admin.http.get_endpoint().replace("/v2.1", "/nova-all/faults")
    return requests.get(address, headers={"X-Auth-Token": admin.http.get_token()}, timeout=10).json()["faults"]


def faults(cloud: RunningCloud) -> str:
    return cloud.auth_url.replace("/identity/v3", "/nova-all/faults")


# --- its command line


def test_state_when_it_cannot_be_made_then_exit_code_2_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("--port", "0", "--state", str(tmp_path / "file" / "below"))
    assert done.returncode == 2 and "--state" in done.stderr and "Traceback" not in done.stderr


#: In a namespace with an empty memory: what is in it at the end was left there.
ALONE = 'mount -t tmpfs none {memory}; "$@"; status=$?; ls {memory} | grep {prefix}; exit $status'


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, for a mount namespace")
def test_port_when_it_is_in_use_then_exit_code_2_says_what_to_do(cloud: RunningCloud) -> None:
    port = re.search(r":(\d+)/", cloud.auth_url)[1]  # type: ignore[index]
    script = ALONE.format(memory=state_directory.IN_MEMORY, prefix=state_directory.PREFIX)
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-m", "nova.cmd.all",
                           "--port", port], capture_output=True, text=True, timeout=60, cwd=TOP, check=False)
    assert done.returncode == 2 and "--port" in done.stderr and "0: any free port" in done.stderr
    assert done.stdout == "", "the refused start left its folder"


@pytest.mark.parametrize(("words", "said"), [
    (("--hosts", "0"), "--hosts"), (("--speed", "fast"), "--speed"), (("--driver", "xen"), "--driver"),
    (("--config-file", "/nowhere.conf"), "/nowhere.conf"), (("--image", "/nowhere.img"), "/nowhere.img"),
    (("--clouds-file", "/nowhere/c.yaml"), "/nowhere/c.yaml"), (("--port", "99999"), "65535"),
    (("--console-port", "-1"), "--console-port")], ids=str)
def test_command_line_when_a_word_is_wrong_then_exit_code_2_names_it(words: tuple[str, ...], said: str) -> None:
    done = run("--port", "0", *words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
