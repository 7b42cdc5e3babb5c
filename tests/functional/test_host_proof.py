"""Hosts that prove who they are: let in, restarted, with another secret, shut out. Real daemons on a real broker."""

from __future__ import annotations

import hmac
import json
import os
import re
import stat
import urllib.request
from pathlib import Path

import pytest

from nova.rpc import host_secret
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import Daemon

pytestmark = pytest.mark.in_turn(6, 10)

PORT, SHARED = free_port(), "between proxy and service"
OPTIONS = {"DEFAULT": {"enabled_apis": "osapi_compute,metadata",
                       "metadata_listen": "127.0.0.1", "metadata_listen_port": PORT, "metadata_workers": 1},
           "neutron": {"service_metadata_proxy": True, "metadata_proxy_shared_secret": SHARED}}


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=2, options=OPTIONS, upstream=False)).start()


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
    assert "a conductor answered over the broker" in cloud.manage("doctor", "--check", "broker", host=cloud.hosts[0])


@pytest.mark.parametrize("content", [None, "0" * 64], ids=["missing", "anothers"])
def test_host_without_its_secret_does_not_start_until_it_is_enrolled_again(cloud: Cloud, content: str | None) -> None:
    host = cloud.hosts[1]
    daemon, path = cloud.compute(host), cloud.state(host) / host_secret.FILE
    daemon.terminate()
    path.unlink()
    if content:
        write(path, content)
    daemon.start()
    assert daemon.wait_end(20) == 1
    daemon.wait_log(rf"nova-compute cannot start: .*host_secret.*nova-manage host readmit {host}", 1)
    token = cloud.manage("host", "enroll", host).split()
    write(cloud.state(host) / host_secret.TOKEN, next(word for word in token if len(word) == 64))
    daemon.start().ready()
    assert not (cloud.state(host) / host_secret.TOKEN).exists()
    wait_until("it is up again", lambda: ("nova-compute", host) in cloud.up(), 20)
    cloud.api().boot("vm4")
    cloud.empty()


def write(path: Path, text: str) -> None:
    path.touch(0o600)
    path.chmod(0o600)
    path.write_text(text)


def test_host_that_nobody_enrolled_waits_and_comes_with_its_token(cloud: Cloud) -> None:
    config = cloud.configure("host5")
    daemon = Daemon("compute", config, cloud.root / "log" / "host5.log").start()
    try:
        daemon.wait_log(r"WARNING .*host5.*nova-manage host enroll|WARNING .*nova-host-host5 does not exist", 20)
        assert daemon.running and "host5" not in {host for _binary, host in cloud.up()}
        written = cloud.root / "token"
        said = cloud.manage("host", "enroll", "host5", "--write", str(written))
        token = written.read_text().strip()
        assert token not in said and stat.S_IMODE(written.stat().st_mode) == 0o600
        write(cloud.state("host5") / host_secret.TOKEN, token)
        wait_until("it is up", lambda: ("nova-compute", "host5") in cloud.up(), 25)
        assert "host5" in cloud.manage("host", "list") and "registered its secret" in cloud.manage("host", "list")
        for one in (daemon, *cloud.daemons.values()):
            assert token not in one.log.read_text()
    finally:
        daemon.kill()
        cloud.manage("host", "expel", "host5")


def test_enroll_when_hosts_are_many_then_each_gets_a_token_and_a_bad_name_spoils_nothing(cloud: Cloud) -> None:
    names, pattern = ("many1", "many2"), str(cloud.root / "token-{host}")
    said = cloud.manage("host", "enroll", names[0], "not/a/name", names[1], code=1)
    assert "Not enrolled: not/a/name" in said and all(f"{name} may run" in said for name in names)
    assert all(name in cloud.manage("host", "list") for name in names)
    cloud.manage("host", "enroll", *names, "--write", pattern)  # once more is harmless
    tokens = {name: (cloud.root / f"token-{name}").read_text().strip() for name in names}
    assert len(set(tokens.values())) == 2 and all(map(re.compile("[0-9a-f]{64}").fullmatch, tokens.values()))
    config = cloud.configure(names[1])
    daemon = Daemon("compute", config, cloud.root / "log" / "many2.log").start()
    try:
        write(cloud.state(names[1]) / host_secret.TOKEN, tokens[names[1]])
        wait_until("it is up", lambda: ("nova-compute", names[1]) in cloud.up(), 25)
    finally:
        daemon.kill()
        for name in names:
            cloud.manage("host", "expel", name)


def test_secret_when_changed_while_daemons_run_then_nothing_stands_still(cloud: Cloud) -> None:
    host = cloud.hosts[0]
    before = host_secret.peek(cloud.state(host))
    assert "has a new secret" in cloud.manage("host", "change-secret", host=host)
    assert host_secret.peek(cloud.state(host)) != before
    for number in range(3):
        cloud.api().boot(f"vm5{number}")
    cloud.daemons["conductor"].restart()
    cloud.api().boot("vm6")
    assert ("nova-compute", host) in cloud.up()
    cloud.empty()


def test_host_when_expelled_then_it_is_out_within_seconds_and_the_others_go_on(cloud: Cloud) -> None:
    """Its servers can be evacuated, and it is let in again with another secret."""
    admin, lost = cloud.api("admin"), cloud.hosts[0]
    uuid = admin.boot("vm7", availability_zone=f"nova:{lost}")["id"]
    cloud.manage("host", "expel", lost)
    cloud.compute(lost).wait_log("no conductor accepts calls from this host", 40)
    assert ("nova-compute", lost) not in cloud.up()
    admin.call("POST", f"/servers/{uuid}/action", {"evacuate": {}})
    wait_until("it is elsewhere", lambda: admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"]
               == cloud.hosts[1] and admin.get(f"/servers/{uuid}")["server"]["status"] in ("ACTIVE", "SHUTOFF"), 30)
    daemon = cloud.compute(lost)
    token = cloud.manage("host", "enroll", lost).split()
    daemon.terminate()
    write(cloud.state(lost) / host_secret.TOKEN, next(word for word in token if len(word) == 64))
    daemon.start().ready()
    wait_until("it is up again", lambda: ("nova-compute", lost) in cloud.up(), 20)
    cloud.empty()


def test_metadata_service_proves_itself_and_is_in_no_list(cloud: Cloud) -> None:
    server = cloud.api().boot("vm3")
    asked = urllib.request.Request(f"http://127.0.0.1:{PORT}/latest/meta-data/hostname", headers={
        "X-Instance-ID": server["id"], "X-Tenant-ID": "demo", "X-Forwarded-For": "10.0.0.5",
        "X-Instance-ID-Signature": hmac.new(SHARED.encode(), server["id"].encode(), "sha256").hexdigest()})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.read().decode().startswith("vm3")
    assert not [one for one in cloud.api("admin").get("/os-services")["services"] if "metadata" in one["binary"]]
    listed = json.loads(cloud.manage("service", "list", "--json"))
    shown = {one["binary"] for one in listed if one["up"]}
    assert {"nova-metadata", "nova-osapi_compute", "nova-conductor"} <= shown
    cloud.empty()
