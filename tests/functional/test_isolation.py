"""A running cloud that moves from upstream mode to bounded mode, host by host, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nova.db.host import enrolments, security
from nova.db.host.generated_keys import HOSTS
from nova.model.security.security_modes import SecurityMode
from tests.functional.backends import hosts_url, wait_until
from tests.functional.cloud import HOST_SECRET_KEY, TICKET_KEY, Cloud, Plan

pytestmark = pytest.mark.in_turn(5, 10)

BOUNDED_ALREADY = "The cloud is in bounded security mode"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Iterator[Cloud]:
    running = make_cloud(Plan(computes=2, upstream=True)).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def servers(cloud: Cloud) -> dict[str, Any]:
    """One on each host, booted before anything moves."""
    api = cloud.api("admin")
    return {host: api.boot(host, availability_zone=f"nova:{host}")["id"] for host in cloud.hosts}


def give_bounded_options(cloud: Cloud) -> None:
    """The first step: to conductors and the image proxy, in files of their own; nova.conf stays."""
    proxy = {"key": TICKET_KEY, "listen": "127.0.0.1", "listen_port": cloud.image_proxy_port, "workers": 1,
             "servers": cloud.image_proxy_url}
    cloud.write_own("conductor", {
        "DEFAULT": {"hosts_transport_url": hosts_url(cloud.broker_url)},
        "conductor": {"host_secret_key": HOST_SECRET_KEY}, "image_proxy": proxy})
    cloud.write_own("imageproxy", {"image_proxy": proxy})
    cloud._add("imageproxy", "imageproxy", "ctl")
    cloud.daemons["imageproxy"].start().ready()


def rewrite(cloud: Cloud, host: str, isolated: bool) -> None:
    """What an operator does to nova.conf of the host."""
    path = cloud.root / "etc" / host / "nova.conf"
    shared, own = (f"{name} = {url}" for name, url in (
        ("transport_url", cloud.broker_url), ("hosts_transport_url", hosts_url(cloud.broker_url, host))))
    text = path.read_text()
    path.write_text(text.replace(shared, own) if isolated else text.replace(own, shared))


def works(cloud: Cloud, servers: dict[str, Any], *hosts: str) -> None:
    """Orders to each host's old server arrive, and a new one boots there. Conductors may just have been restarted."""
    expected = {("nova-network", "ctl"), *(("nova-compute", host) for host in hosts)}
    wait_until("all hosts report", lambda: expected <= cloud.up(), 60)
    api = cloud.api("admin")
    for host in hosts:
        for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
            api.call("POST", f"/servers/{servers[host]}/action", {action: None})
            api.settled(servers[host], status)
        new = api.boot("new", availability_zone=f"nova:{host}")
        api.delete(new["id"])


def mode(cloud: Cloud) -> Any:
    with cloud.stores.cell.reading() as tx:
        return security.mode(tx)


def isolated(cloud: Cloud) -> set[str]:
    with cloud.stores.cell.reading() as tx:
        return {host for host, alone in enrolments.names(tx).items() if alone}


def test_conductor_when_it_has_options_of_bounded_mode_then_hosts_of_both_modes_work_beside_each_other(
        cloud: Cloud, servers: dict[str, Any]) -> None:
    give_bounded_options(cloud)
    conductor = cloud.daemons["conductor"].restart()
    conductor.wait_log("requests bounded mode, but the cloud is still in upstream mode")
    works(cloud, servers, *cloud.hosts)
    secret = (cloud.state("host1") / "host_secret").read_text()
    said = cloud.manage("host", "isolate", "host1")
    assert "host1: hosts_transport_url = rabbit://host-host1:" in said and "2 of 3" not in said and "1 of 3" in said
    rewrite(cloud, "host1", isolated=True)
    cloud.compute("host1").restart().wait_log("replaced this host's secret")
    assert (cloud.state("host1") / "host_secret").read_text() != secret
    wait_until("it is isolated", lambda: isolated(cloud) == {"host1"}, 10)
    works(cloud, servers, *cloud.hosts)
    assert mode(cloud) is SecurityMode.UPSTREAM


def test_conductor_when_the_move_is_given_up_then_it_believes_the_hosts_that_have_not_moved(
        cloud: Cloud, servers: dict[str, Any]) -> None:
    """What was wrapped while hosts moved opens without the configured key."""
    own = cloud.root / "etc" / "ctl" / "nova-conductor.conf"
    kept = own.read_text()
    cloud.compute("host2").kill()
    cloud.manage("host", "readmit", "host2")
    cloud.compute("host2").restart()
    own.unlink()
    cloud.daemons["conductor"].restart()
    works(cloud, servers, "host2")
    own.write_text(kept)
    cloud.daemons["conductor"].restart()
    works(cloud, servers, *cloud.hosts)


def test_isolated_host_when_it_comes_by_the_shared_vhost_then_it_is_not_believed(cloud: Cloud) -> None:
    rewrite(cloud, "host1", isolated=False)
    cloud.compute("host1").kill()
    cloud.compute("host1").start().wait_log("is isolated: it may reach conductors only through the hosts' own vhost")
    rewrite(cloud, "host1", isolated=True)
    cloud.compute("host1").restart()


def test_host_when_it_is_reverted_before_all_are_isolated_then_it_comes_back_by_the_shared_vhost(
        cloud: Cloud, servers: dict[str, Any]) -> None:
    assert "restart nova's services on it" in cloud.manage("host", "isolate", "--revert", "host1")
    works(cloud, servers, "host1")  # it has not gone yet
    rewrite(cloud, "host1", isolated=False)
    cloud.compute("host1").restart()
    assert isolated(cloud) == set()
    works(cloud, servers, *cloud.hosts)
    rewrite(cloud, "host1", isolated=True)
    cloud.compute("host1").restart()
    works(cloud, servers, *cloud.hosts)


def test_cloud_when_the_last_host_is_isolated_then_it_is_in_bounded_mode_and_nobody_enrols_itself(
        cloud: Cloud, servers: dict[str, Any]) -> None:
    assert "host2: hosts_transport_url" in cloud.manage("host", "isolate", "--all")
    assert mode(cloud) is SecurityMode.UPSTREAM  # they are not back yet
    for host in ("host2", "ctl"):
        rewrite(cloud, host, isolated=True)
    text = (cloud.root / "etc" / "ctl" / "nova.conf").read_text()  # its control daemons still need the other
    (cloud.root / "etc" / "ctl" / "nova.conf").write_text(f"[DEFAULT]\ntransport_url = {cloud.broker_url}\n{text}")
    cloud.compute("host2").restart()
    cloud.daemons["network"].restart()
    wait_until("all are isolated", lambda: isolated(cloud) == {"host1", "host2", "ctl"}, 10)
    assert BOUNDED_ALREADY in cloud.manage("host", "isolate", "--all")
    assert mode(cloud) is SecurityMode.BOUNDED
    works(cloud, servers, *cloud.hosts)
    cloud.daemons["conductor"].restart()
    works(cloud, servers, "host1")
    assert "The other keys can be removed." in cloud.manage("host", "wrap-secrets")
    with cloud.stores.cell.reading() as tx:
        assert not HOSTS.kept(tx)
    cloud.daemons["conductor"].restart()
    works(cloud, servers, *cloud.hosts)
    assert BOUNDED_ALREADY in cloud.manage("host", "isolate", "--all")
    config = cloud.configure("newcomer")
    newcomer = cloud.daemons.setdefault("newcomer", type(cloud.compute("host1"))(
        "compute", config, cloud.root / "log" / "newcomer.log"))
    newcomer.start().wait_log("cannot register with the conductor yet", 40)
    newcomer.kill()


def test_daemons_when_a_bounded_cloud_lacks_its_options_then_they_end_with_2(cloud: Cloud) -> None:
    own = cloud.root / "etc" / "ctl" / "nova-conductor.conf"
    kept, conductor = own.read_text(), cloud.daemons["conductor"]
    plain = cloud.root / "etc" / "ctl" / "nova.conf"
    whole = plain.read_text()
    own.unlink()
    rewrite(cloud, "ctl", isolated=False)
    conductor.kill()
    assert conductor.start().wait_end() == 2
    assert "The cloud is in bounded security mode, but this configuration has none" in conductor.text()
    own.write_text(kept)
    plain.write_text(whole)
    for daemon in (conductor, cloud.compute("host1")):
        daemon.restart()
    rewrite(cloud, "host1", isolated=False)
    compute = cloud.compute("host1")
    wait_until("it knows the mode", (cloud.state("host1") / "bounded_mode").exists, 5)
    compute.kill()
    assert compute.start().wait_end() == 2 and "[DEFAULT]hosts_transport_url as before" in compute.text()
    rewrite(cloud, "host1", isolated=True)
    compute.restart()


def test_cloud_when_it_is_reverted_then_hosts_go_back_one_by_one(cloud: Cloud, servers: dict[str, Any]) -> None:
    assert "--all --revert" in cloud.manage("host", "isolate", "--revert", "host1", code=2)
    assert "Restart the conductors" in cloud.manage("host", "isolate", "--all", "--revert")
    assert mode(cloud) is SecurityMode.UPSTREAM
    cloud.daemons["conductor"].restart()
    works(cloud, servers, *cloud.hosts)
    (cloud.state("host1") / "bounded_mode").unlink()
    rewrite(cloud, "host1", isolated=False)
    cloud.compute("host1").restart()
    works(cloud, servers, *cloud.hosts)
    (cloud.state("host2") / "bounded_mode").unlink(missing_ok=True)
    (cloud.state("ctl") / "bounded_mode").unlink(missing_ok=True)
    for host, daemon in (("host2", cloud.compute("host2")), ("ctl", cloud.daemons["network"])):
        rewrite(cloud, host, isolated=False)
        daemon.restart()
    (cloud.root / "etc" / "ctl" / "nova-conductor.conf").unlink()  # secrets are opened by the key in the database
    cloud.daemons["conductor"].restart()
    works(cloud, servers, *cloud.hosts)
