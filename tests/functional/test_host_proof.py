"""Hosts that must prove who they are: real daemons, over a broker that believes whatever name a call bears."""

from __future__ import annotations

import hmac
import os
import stat
import urllib.request

import pytest

from nova.rpc import host_secret
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(1, 3)

PORT, SHARED = free_port(), "between proxy and service"
OPTIONS = {"DEFAULT": {"rpc_host_proof": "on", "enabled_apis": "osapi_compute,metadata",
                       "metadata_listen": "127.0.0.1", "metadata_listen_port": PORT, "metadata_workers": 1},
           "neutron": {"service_metadata_proxy": True, "metadata_proxy_shared_secret": SHARED}}


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=2, options=OPTIONS)).start()


def test_cloud_works_and_each_host_has_a_secret_of_its_own(cloud: Cloud) -> None:
    cloud.api().boot("vm1")
    secrets = {host: host_secret.peek(cloud.state(host)) for host in ("ctl", *cloud.hosts)}
    assert len(set(secrets.values())) == 3 and "" not in secrets.values()
    for host in secrets:
        assert stat.S_IMODE(os.stat(cloud.state(host) / host_secret.FILE).st_mode) == 0o600
    for daemon in cloud.daemons.values():
        assert not [secret for secret in secrets.values() if secret in daemon.log.read_text()]
    cloud.empty()


def test_hosts_come_back_with_their_secret(cloud: Cloud) -> None:
    for name in ("compute1", "network", "conductor"):
        cloud.daemons[name].restart()
    cloud.api().boot("vm2")
    cloud.empty()


def test_nova_manage_on_a_host_speaks_with_its_secret(cloud: Cloud) -> None:
    assert "a conductor answered over the broker" in cloud.manage("doctor", host=cloud.hosts[0])


@pytest.mark.parametrize("content", [None, "0" * 64], ids=["missing", "anothers"])
def test_host_without_its_secret_does_not_start_and_says_what_to_do(cloud: Cloud, content: str | None) -> None:
    daemon, path = cloud.compute(cloud.hosts[1]), cloud.state(cloud.hosts[1]) / host_secret.FILE
    secret = path.read_text()
    daemon.terminate()
    path.unlink()
    if content:
        path.write_text(content)
        path.chmod(0o600)
    daemon.start()
    assert daemon.wait_end(20) == 1
    daemon.wait_log(r"nova-compute can not start: .*host_secret.*compute service delete", 1)
    path.write_text(secret)
    path.chmod(0o600)
    daemon.start().ready()
    wait_until("it is up again", lambda: ("nova-compute", cloud.hosts[1]) in cloud.up(), 20)


def test_metadata_service_proves_itself_and_is_in_no_list(cloud: Cloud) -> None:
    server = cloud.api().boot("vm3")
    asked = urllib.request.Request(f"http://127.0.0.1:{PORT}/latest/meta-data/hostname", headers={
        "X-Instance-ID": server["id"], "X-Tenant-ID": "demo", "X-Forwarded-For": "10.0.0.5",
        "X-Instance-ID-Signature": hmac.new(SHARED.encode(), server["id"].encode(), "sha256").hexdigest()})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.read().decode().startswith("vm3")
    assert not [one for one in cloud.api("admin").get("/os-services")["services"] if "metadata" in one["binary"]]
    cloud.empty()
