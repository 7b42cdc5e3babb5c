"""Secrets of requests, and the cloud's own, are in no log, with all daemons at DEBUG (OSSA-2014-036, OSSN-0049).

What other tests of this folder make is looked for in their clouds' logs, too, when these end (``conftest.py``).
"""

from __future__ import annotations

import pytest

from tests.functional import planted
from tests.functional.client import IMAGE, Client, Refused
from tests.functional.cloud import Cloud, Plan

FILES = [{"path": "/etc/secret", "contents": planted.encoded(planted.FILE)}]


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    options = {"DEFAULT": {"debug": True, "rpc_host_proof": "on"}}
    return make_cloud(Plan(consoles=True, options=options)).start()


def test_logs_when_all_that_has_secrets_was_asked_for_then_none_is_in_them(cloud: Cloud) -> None:
    api = cloud.api()
    uuid = api.boot("planted")["id"]
    old = Client(cloud.url, "demo", "demo", "2.56")  # files are given up to here
    with_files = old.create("with-files", personality=FILES)["id"]
    api.settled(with_files, "ACTIVE")
    for action, argument in (("changePassword", {"adminPass": planted.CHANGED}),
                             ("rebuild", {"imageRef": IMAGE, "adminPass": planted.REBUILT}),
                             ("rescue", {"adminPass": planted.RESCUED}), ("unrescue", None)):
        api.act(uuid, action, argument)
        api.settled(uuid)
    console = api.call("POST", f"/servers/{uuid}/remote-consoles", {"remote_console": {"protocol": "vnc",
                                                                                       "type": "novnc"}})
    token = console.json()["remote_console"]["url"].rpartition("token%3D")[2]
    with cloud.knobs("host1", {"call": "start_new", "do": "fail", "message": "no luck"}):
        api.settled(api.create("fails")["id"], "ERROR")
    for body in ({"server": {"adminPass": planted.PASSWORD, "name": 7}}, {planted.PASSWORD: {}}):
        with pytest.raises(Refused):
            api.call("POST", "/servers", body)
    api.remove(uuid, with_files)
    assert len(token) > 30 and "DEBUG" in cloud.compute("host1").text()
    own = planted.of_cloud(cloud.broker_url, cloud.database_urls, cloud.root)
    assert own and planted.seen_in(cloud.root / "log", {*own, token}) == []
