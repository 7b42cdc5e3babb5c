"""nova-imageproxy as a process, between a cloud's hosts and an image service: no host has any other way to it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
import requests

from nova import errors
from nova.clients.image_data import Retries
from nova.clients.image_proxy import ImageProxy, ProxySettings
from nova.model.image.image_tickets import READ, ImageTicket, ProvenRequest, data_path, host_key, proven_headers, stamp
from nova.rpc import host_secret
from nova.rpc.host_secret import HostSecret
from tests.fakes.image_proxies import ticket
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.cloud import TICKET_KEY, Cloud, Plan

pytestmark = pytest.mark.in_turn(8, 10)

MIB = 1 << 20


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=2, upstream=False, options={"image_proxy": {"workers": 2}})).start()


def ticket_for(cloud: Cloud, host: str, image_id: str) -> ImageTicket:
    """As a conductor makes it."""
    return ticket(image_id, READ, cloud.image_proxy_url, host=host, key=TICKET_KEY,
                  secret=host_secret.peek(cloud.state(host)))


def client(cloud: Cloud, host: str, *tickets: ImageTicket) -> ImageProxy:
    made = ImageProxy(host, HostSecret(cloud.state(host)), ProxySettings(True, Retries(5, 0.2), 10.0))
    made.hold(tickets)
    return made


def test_snapshot_then_it_reaches_the_image_service_through_the_proxy_alone(cloud: Cloud) -> None:
    api = cloud.api()
    server = api.boot("vm1", imageRef=IMAGE)
    cloud.glance.requests.clear()
    image_id = api.call("POST", f"/servers/{server['id']}/action", {"createImage": {"name": "kept"}}).json()["image_id"]
    wait_until("the snapshot is whole", lambda: cloud.glance.images[image_id]["status"] == "active", 20)
    [sent] = [path for method, path, _headers in cloud.glance.requests if method == "PUT"]
    assert sent == f"/v2/images/{image_id}/file" and cloud.glance.data[image_id]
    line = cloud.daemons["imageproxy"].wait_log(f"PUT image {image_id} for host")
    assert re.search(rf"req-.*for host host\d: {len(cloud.glance.data[image_id])} bytes", line)
    for host in cloud.hosts:
        assert "[glance]" not in (cloud.root / "etc" / host / "nova.conf").read_text()
    wait_until("the server is idle", lambda: not api.show(server["id"])["OS-EXT-STS:task_state"], 20)
    cloud.empty()


def test_logs_and_databases_then_there_is_no_ticket_and_no_key(cloud: Cloud) -> None:
    secrets = [TICKET_KEY, *(host_secret.peek(cloud.state(host)) for host in cloud.hosts)]
    for daemon in cloud.daemons.values():
        text = daemon.log.read_text()
        assert not [secret for secret in secrets if secret in text] and "gAAAAA" not in text  # how each ticket begins


def test_request_when_somebody_repeats_it_then_no_worker_takes_it_and_the_log_names_the_host(cloud: Cloud) -> None:
    image_id = cloud.glance.add(b"an image's data")
    given = ticket_for(cloud, "host1", image_id)
    asked = ProvenRequest(READ, data_path(image_id), "", "", stamp(time.time()))
    headers = proven_headers(given, host_key(host_secret.peek(cloud.state("host1")), given.id), asked)
    codes = [requests.get(cloud.image_proxy_url + data_path(image_id), headers=headers, timeout=10).status_code
             for _ in range(12)]
    assert codes == [200, *[403] * 11]
    assert "of host host1" in cloud.daemons["imageproxy"].wait_log("was received a second time")


def test_download_when_the_proxy_dies_on_the_way_then_it_goes_on_with_the_next(cloud: Cloud, tmp_path: Path) -> None:
    data = os.urandom(24 * MIB)
    image_id = cloud.glance.add(data)
    proxy, host = cloud.daemons["imageproxy"], client(cloud, "host1", ticket_for(cloud, "host1", image_id))
    image = host.show(image_id)
    cloud.glance.knobs.break_data_after = [5 * MIB]
    proxy.restart()
    assert host.download(image, str(tmp_path / "image")) == len(data)
    assert (tmp_path / "image").read_bytes() == data
    ranges = [headers.get("Range") for _m, path, headers in cloud.glance.requests if path.endswith(f"{image_id}/file")]
    assert ranges == [None, f"bytes={5 * MIB}-"]


def test_download_with_another_hosts_ticket_then_it_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    image_id = cloud.glance.add(b"not yours")
    stolen = client(cloud, "host2", ticket_for(cloud, "host1", image_id))
    with pytest.raises(errors.HostRefused, match="has a different secret"):
        stolen.show(image_id)


def test_download_while_the_proxy_is_away_then_it_is_unavailable_and_works_again_after(cloud: Cloud) -> None:
    image_id = cloud.glance.add(b"data")
    host = ImageProxy("host1", HostSecret(cloud.state("host1")), ProxySettings(True, Retries(1, 0.05), 5.0))
    host.hold([ticket_for(cloud, "host1", image_id)])
    cloud.daemons["imageproxy"].kill()
    with pytest.raises(errors.Unavailable, match="image proxy"):
        host.show(image_id)
    cloud.daemons["imageproxy"].start().ready()
    assert host.show(image_id).size_bytes == 4


@pytest.mark.parametrize(("daemon", "key"), [("conductor", ""), ("imageproxy", ""), ("imageproxy", "no key at all")])
def test_start_when_the_key_is_missing_or_malformed_then_it_says_how_to_make_one(cloud: Cloud, daemon: str, key: str,
                                                                                 ) -> None:
    path = cloud.root / "etc" / "ctl" / "nova.conf"
    before, running = path.read_text(), cloud.daemons[daemon]
    try:
        path.write_text(before.replace(f"key = {TICKET_KEY}", f"key = {key}"))
        running.kill()
        running.start()
        assert running.wait_end(20) == 2
        assert "[image_proxy]key" in running.text() and "openssl rand -base64 32" in running.text()
        assert "no key at all" not in running.text()
    finally:
        path.write_text(before)
        running.kill()
        running.start().ready(2 if daemon == "conductor" else 1)
