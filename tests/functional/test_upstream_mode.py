"""A cloud in upstream security mode: one nova.conf for all daemons, as deployment tools render it, databases in it."""

from __future__ import annotations

import hashlib
import hmac
import shutil
import urllib.parse
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
import requests

from nova.db.host import enrolments, security
from nova.db.host.generated_keys import HOSTS
from nova.model.security.secret_wrap import MARK
from nova.model.security.security_modes import SecurityMode
from tests.functional.backends import free_port, listening, wait_until
from tests.functional.client import Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import Daemon
from tests.functional.test_control_driver import settings

pytestmark = pytest.mark.in_turn(6, 10)

UP = "nova-compute", "host2"
SECRET = "between-proxies"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Iterator[Cloud]:
    running = make_cloud(Plan(computes=2, conductors=2, upstream=True, consoles=True, options={
        "neutron": {"service_metadata_proxy": "true", "metadata_proxy_shared_secret": SECRET},
        "vnc": {"novncproxy_base_url": "http://consoles.example:6080/vnc_lite.html"}})).start()
    yield running
    running.stop()


def machine(cloud: Cloud, name: str, host: str) -> Daemon:
    """nova-compute of another machine that is called ``host``."""
    config = cloud.configure(name)
    config.write_text(config.read_text().replace(f"host = {name}\n", f"host = {host}\n"))
    daemon = cloud.daemons.setdefault(name, Daemon("compute", config, cloud.root / "log" / f"{name}.log"))
    return daemon.start()


def refused(daemon: Daemon) -> str:
    """The last line of one that cannot start."""
    assert daemon.wait_end() == 1
    return [line for line in daemon.text().splitlines() if "cannot start" in line][-1]


def test_server_when_nobody_enrolled_a_host_then_it_boots_all_the_same(cloud: Cloud) -> None:
    api = cloud.api()
    servers = [api.boot(f"vm{number}") for number in range(3)]
    for one in servers:
        api.delete(one["id"])
    wait_until("they are gone", lambda: all(api.is_gone(one["id"]) for one in servers), 20)


def test_first_conductor_when_it_starts_then_mode_and_wrapped_secrets_are_on_record(cloud: Cloud) -> None:
    with cloud.stores.cell.reading() as tx:
        assert security.mode(tx) is SecurityMode.UPSTREAM
        assert set(HOSTS.kept(tx)) == {"broker", "database"}
        assert all(enrolments.keys(tx, host).secret.startswith(MARK) for host in ("host1", "host2"))
        assert enrolments.runs(tx, "host1") == ("nova-compute",) and enrolments.runs(tx, "ctl") == ("nova-network",)


@pytest.mark.parametrize("name", ["conductor", "conductor2", "compute1", "network", "api", "scheduler"])
def test_daemon_when_it_has_registered_then_its_log_states_the_mode_and_what_is_ignored(
        cloud: Cloud, name: str) -> None:
    cloud.daemons[name].wait_log("The cloud is in upstream security mode: an attacker who takes over a compute host")
    said = "[database]connection in" in cloud.daemons[name].text()
    assert said is not name.startswith("conductor")


def test_console_when_no_consoleauth_runs_then_conductors_give_its_address_and_check_the_token(cloud: Cloud) -> None:
    api = cloud.api()
    server = api.boot("console")["id"]
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    url = api.call("POST", f"/servers/{server}/remote-consoles", body).json()["remote_console"]["url"]
    assert url.startswith("http://consoles.example:6080/vnc_lite.html?")
    path = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["path"][0]
    token = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["token"][0]
    found = cloud.api("admin").get(f"/os-console-auth-tokens/{token}")["console"]
    assert found["instance_uuid"] == server and found["port"] > 0
    with pytest.raises(Refused, match="404"):
        cloud.api("admin").get("/os-console-auth-tokens/0b0e7c61-6f4a-4a75-a6d5-0d3a6b1f7f11")
    api.delete(server)


def test_probe_of_a_compute_when_it_pings_in_the_exchange_nova_then_that_host_answers(cloud: Cloud) -> None:
    transport = oslo_messaging.get_rpc_transport(settings(), url=cloud.broker_url)
    target = oslo_messaging.Target(exchange="nova", topic="compute", server="host1", namespace="baseapi",
                                   version="1.1")
    client = oslo_messaging.get_rpc_client(transport, target, timeout=20)
    try:
        assert client.call({}, "ping", arg="x") == {"service": "compute", "arg": "x"}
        with pytest.raises(oslo_messaging.MessagingTimeout):
            client.prepare(server="nowhere", timeout=2).call({}, "ping", arg="x")
    finally:
        transport.cleanup()


def test_second_machine_when_it_claims_a_name_then_it_is_refused_with_the_command_that_readmits(cloud: Cloud) -> None:
    twin = machine(cloud, "twin", "host2")
    line = refused(twin)
    assert "not signed with the secret of host 'host2'" in line and "nova-manage host readmit host2" in line
    assert UP in cloud.up()


def test_machine_when_the_name_is_readmitted_then_the_first_that_comes_has_it_and_the_one_before_is_refused(
        cloud: Cloud) -> None:
    first = cloud.compute("host2")
    first.kill()
    assert "host2 may register a new secret." in cloud.manage("host", "readmit", "host2")
    twin = machine(cloud, "twin", "host2").ready()
    assert "nova-manage host readmit host2" in refused(first.start())
    wait_until("the twin is up", lambda: UP in cloud.up(), 30)
    twin.kill()
    cloud.manage("host", "readmit", "host2")
    first.restart()
    assert "nova-manage host readmit host2" in refused(twin.start())


def test_host_when_it_was_installed_anew_then_it_serves_once_it_is_readmitted(cloud: Cloud) -> None:
    daemon = cloud.compute("host2")
    daemon.kill()
    shutil.rmtree(cloud.state("host2"))
    cloud.state("host2").mkdir()
    assert "nova-manage host readmit host2" in refused(daemon.start())
    cloud.manage("host", "readmit", "host2")
    daemon.restart()
    wait_until("it is up", lambda: UP in cloud.up(), 30)
    server = cloud.api("admin").boot("there", availability_zone="nova:host2")
    assert server["OS-EXT-SRV-ATTR:host"] == "host2"
    cloud.api("admin").delete(server["id"])


def test_readmit_when_no_host_or_an_unknown_one_is_named_then_it_says_so(cloud: Cloud) -> None:
    assert "--all" in cloud.manage("host", "readmit", code=2)
    assert "nowhere" in cloud.manage("host", "readmit", "nowhere", code=1)


def test_expelled_host_when_it_starts_again_then_it_is_not_let_in_by_itself(cloud: Cloud) -> None:
    cloud.manage("host", "expel", "host2")
    daemon = cloud.compute("host2")
    daemon.kill()
    daemon.start().wait_log("host2.* is not enrolled")
    cloud.manage("host", "readmit", "host2")
    daemon.ready()
    wait_until("it is up", lambda: UP in cloud.up(), 30)


def test_metadata_service_when_its_container_keeps_no_state_then_guests_are_answered_beside_the_host_of_that_name(
        cloud: Cloud) -> None:
    """As kolla-ansible has it on a machine that is controller and hypervisor."""
    server = cloud.api().boot("guest")
    wait_until("host2 is up", lambda: UP in cloud.up(), 30)
    for name in ("container", "next-container"):  # the second is what an upgrade makes of the first
        port = free_port()
        config = cloud.configure(name, metadata_listen_port=port, metadata_workers=1)
        config.write_text(config.read_text().replace(f"host = {name}\n", "host = host2\n"))
        daemon = Daemon("api_metadata", config, cloud.root / "log" / f"{name}.log").start()
        try:
            wait_until("it takes connections", lambda port=port: listening(port), 20)
            assert told(port, server["id"])["uuid"] == server["id"]
            daemon.wait_log("upstream security mode")  # a conductor has taken its registration
            assert " ERROR " not in daemon.text()
        finally:
            daemon.kill()
        assert not (cloud.state(name) / "host_secret").exists()
    assert UP in cloud.up()
    cloud.api().delete(server["id"])


def told(port: int, uuid: str) -> dict[str, Any]:
    """What a guest is told behind Neutron's proxy."""
    signature = hmac.new(SECRET.encode(), uuid.encode(), hashlib.sha256).hexdigest()
    headers = {"X-Instance-ID": uuid, "X-Tenant-ID": "demo", "X-Instance-ID-Signature": signature,
               "X-Forwarded-For": "10.0.0.5"}
    answer = requests.get(f"http://127.0.0.1:{port}/openstack/latest/meta_data.json", headers=headers, timeout=10)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_options_of_bounded_mode_when_they_are_isolated_in_nova_manage_alone_then_it_says_what_comes_first(
        cloud: Cloud) -> None:
    said = cloud.manage("host", "isolate", "host1", code=2)
    assert "[DEFAULT]hosts_transport_url is not set: first set the options" in said


def test_host_when_it_starts_before_any_conductor_then_it_waits_without_an_error(make_cloud) -> None:
    alone = make_cloud(Plan(computes=1, upstream=True, network=False)).prepare()
    compute = alone.compute("host1").start()
    compute.wait_log("WARNING .*exchange nova-conductor-host does not exist on the broker", 40)
    for name in ("conductor", "scheduler", "api"):
        alone.daemons[name].start()
    compute.ready()
    wait_until("it is up", lambda: ("nova-compute", "host1") in alone.up(), 30)
    assert " ERROR " not in compute.text()


def test_hypervisors_when_no_conductor_has_ever_started_then_there_are_none_and_after_one_has_it_is_503(
        make_cloud) -> None:
    alone = make_cloud(Plan(computes=1, upstream=True, network=False)).prepare()
    conductor, api = alone.daemons["conductor"], alone.api("admin")
    alone.daemons["api"].start()
    wait_until("the API takes connections", lambda: listening(alone.port), 20)
    assert api.get("/os-hypervisors") == {"hypervisors": []}
    with pytest.raises(Refused, match="no nova-conductor has ever started") as refusal:
        api.get("/servers")
    assert refusal.value.status == 503
    conductor.start().ready()
    conductor.kill()
    with pytest.raises(Refused) as refusal:
        api.get("/os-hypervisors")
    assert refusal.value.status == 503
