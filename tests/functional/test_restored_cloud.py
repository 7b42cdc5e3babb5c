"""A cloud that goes on from an older database than its hosts have seen, or without its api database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models import cell as tables
from tests.functional.backends import wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.test_backups import configure_restored, new_databases

pytestmark = pytest.mark.in_turn(3, 10)


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def cloud(request: pytest.FixtureRequest, make_cloud) -> Cloud:
    return make_cloud(Plan(database=request.param, computes=2)).start()


CONTROL = ("conductor", "scheduler", "api")


def restore(cloud: Cloud, file: Path) -> None:
    """The control daemons go on with new databases that are filled from the file; hosts run on."""
    for name in CONTROL:
        cloud.daemons[name].kill()
    urls = new_databases(cloud, cloud.plan.database)
    cloud.manage("restore", str(file), "--yes", host=configure_restored(cloud, urls))
    go_on_with(cloud, urls)


def go_on_with(cloud: Cloud, urls: dict[str, str]) -> None:
    cloud.use_databases(urls)
    for name in CONTROL:
        cloud.daemons[name].start()
    cloud.wait_up()


def strangers(cloud: Cloud, *uuids: str) -> dict[str, int]:
    """Ids of strangers by their server, once hosts have reported these."""
    def look() -> dict[str, int] | None:
        listed = json.loads(cloud.manage("stranger", "list", "--now", "--json"))
        found = {one["server_uuid"]: one["id"] for one in listed}
        return found if set(uuids) <= set(found) else None
    return wait_until("strangers are reported", look, 60)


def test_cloud_when_it_goes_on_from_an_older_database_then_its_servers_obey_and_new_numbers_meet_no_old_ones(
        cloud: Cloud, tmp_path: Path) -> None:
    api = cloud.api()
    kept, gone = api.boot("kept"), api.boot("gone")
    file = tmp_path / "backup"
    cloud.manage("backup", str(file))
    for _ in range(3):  # the host goes on: newer epochs than the backup knows
        api.call("POST", f"/servers/{kept['id']}/action", {"reboot": {"type": "HARD"}})
        api.settled(kept["id"], "ACTIVE")
    api.delete(gone["id"])
    wait_until("it is gone", lambda: gone["id"] not in {one["id"] for one in api.servers()}, 30)
    stranger = api.boot("stranger")
    numbers = {row.id for row in cloud.stores.rows("cell", sa.select(tables.servers.c.id))}

    restore(cloud, file)
    assert {one["name"] for one in api.servers()} == {"kept", "gone"}
    api.call("POST", f"/servers/{kept['id']}/action", {"reboot": {"type": "HARD"}})
    assert api.settled(kept["id"])["status"] == "ACTIVE", "the host took the order for an old one"
    api.call("POST", f"/servers/{kept['id']}/action", {"os-stop": None})
    api.settled(kept["id"], "SHUTOFF")
    new = api.boot("new")
    ids = sa.select(tables.servers.c.id).where(tables.servers.c.uuid == new["id"])
    assert cloud.stores.rows("cell", ids)[0].id > max(numbers), "its guest would have the name of one that is there"
    api.delete(gone["id"])
    wait_until("what had gone is deleted", lambda: gone["id"] not in {one["id"] for one in api.servers()}, 30)
    hosts = {host: cloud.guests(host) for host in cloud.hosts}
    assert any(stranger["id"] in guests for guests in hosts.values()), "nothing is destroyed by inference"
    found = strangers(cloud, stranger["id"])
    cloud.manage("stranger", "remove", str(found[stranger["id"]]), "--yes")
    wait_until("an operator's word is enough", lambda: not any(
        stranger["id"] in cloud.guests(host) for host in cloud.hosts), 30)


def test_guests_when_databases_are_older_then_adopted_ones_are_whole_servers_again(cloud: Cloud, tmp_path: Path
                                                                                   ) -> None:
    api, admin = cloud.api(), cloud.api("admin", "admin")
    for one in api.servers():
        api.remove(one["id"])
    moved = api.boot("moved")
    file = tmp_path / "backup"
    cloud.manage("backup", str(file))
    came = api.boot("came", metadata={"role": "web"})
    before = {uuid: api.show(uuid) for uuid in (moved["id"], came["id"])}
    admin.act(moved["id"], "os-migrateLive", {"host": None, "block_migration": "auto"})
    api.settled(moved["id"], "ACTIVE")
    host = admin.show(moved["id"])["OS-EXT-SRV-ATTR:host"]

    restore(cloud, file)
    assert admin.show(moved["id"])["OS-EXT-SRV-ATTR:host"] != host
    found = strangers(cloud, moved["id"], came["id"])
    assert "The server has no record" in cloud.manage("orphan", "adopt", str(found[came["id"]]), code=1)
    assert {one["id"] for one in api.servers()} == {moved["id"]}
    for uuid in (moved["id"], came["id"]):
        assert "It is done." in cloud.manage("orphan", "adopt", str(found[uuid]), "--yes")
        assert "does not exist or was removed" in cloud.manage("orphan", "adopt", str(found[uuid]), "--yes", code=1)
    assert admin.show(moved["id"])["OS-EXT-SRV-ATTR:host"] == host
    for uuid, was in before.items():
        now = api.show(uuid)
        assert [now[field] for field in ("name", "addresses", "metadata", "flavor", "status", "security_groups")] == [
            was[field] for field in ("name", "addresses", "metadata", "flavor", "status", "security_groups")]
        api.act(uuid, "reboot", {"type": "HARD"})
        assert api.settled(uuid)["status"] == "ACTIVE"
    cloud.manage("placement", "audit")
    new = api.boot("new")
    assert not {address(new)} & {address(one) for one in before.values()}, "an address was given out twice"
    api.remove(moved["id"], came["id"], new["id"])
    assert not any(cloud.guests(one) for one in cloud.hosts)
    cloud.manage("placement", "audit")


def address(server: dict[str, Any]) -> str:
    return next(one["addr"] for each in server["addresses"].values() for one in each if one["version"] == 4)


def test_cloud_when_its_api_database_is_lost_then_its_servers_live_on_count_and_can_be_deleted(cloud: Cloud) -> None:
    api = cloud.api()
    cloud.manage("flavor", "create", "--name", "m1.kept", "--flavor", "kept", "--memory", "512", "--cpu", "2",
                 "--root_gb", "1")
    old = api.boot("old", flavorRef="kept")
    for name in CONTROL:
        cloud.daemons[name].kill()
    urls = {**cloud.database_urls, "api_database": new_databases(cloud, cloud.plan.database)["api_database"]}
    host = configure_restored(cloud, urls)
    cloud.manage("api_db", "sync", host=host)
    assert "created flavor m1.kept (kept)" in cloud.manage("api_db", "rebuild", host=host)
    cloud.manage("placement", "rebuild", host=host)
    go_on_with(cloud, urls)
    assert "Every allocation belongs" in cloud.manage("placement", "audit")
    assert api.get("/limits")["limits"]["absolute"]["totalCoresUsed"] >= 2
    api.call("POST", f"/servers/{old['id']}/action", {"reboot": {"type": "HARD"}})
    assert api.settled(old["id"])["status"] == "ACTIVE"
    new = api.boot("new", flavorRef="kept")
    for one in (old, new):
        api.remove(one["id"])
    assert "Every allocation belongs" in cloud.manage("placement", "audit")
