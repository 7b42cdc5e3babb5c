"""Operators' commands against the real conductor: what they read of it and write."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from nova.db.host import host_cleanups
from nova.db.models.cell import cleanups, servers
from nova.manage import doctor, host_commands
from nova.manage.drain_plan import DrainRequest
from nova.manage.host_drain import pages
from nova.model.base import utcnow
from nova.model.host.services import ServiceUpdate
from nova.model.server.servers import Condition
from nova.rpc import transport
from tests.fakes.small_cloud import SmallCloud, node_id
from tests.unit.manage.test_doctor import options


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rows: list[tuple] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def table(self, _headings: object, rows: object) -> None:
        self.rows.extend(rows)


@pytest.fixture
def said() -> Said:
    return Said()


def test_pages_give_every_server_once_whatever_their_length(cloud: SmallCloud) -> None:
    uuids = cloud.active(5)
    cloud.deps.settings = type(cloud.deps.settings)(**{**vars(cloud.deps.settings), "max_limit": 2})
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuids[0]).values(vm_state="soft-delete"))
    found = [server.uuid for server in pages(cloud.control, Condition(column="host", value="a"))]
    assert sorted(found) == sorted(uuids)
    named = Condition(column="uuid", op="in", values=tuple(uuids[1:3]))
    assert {server.uuid for server in pages(cloud.control, named)} == set(uuids[1:3])
    assert list(pages(cloud.control, Condition(column="host", value="b"))) == []


def test_drain_and_undrain_when_all_are_skipped_then_only_the_service_changes(cloud: SmallCloud, said: Said) -> None:
    uuids = cloud.active(2)
    request = DrainRequest(host="a", skip=frozenset(uuids))
    assert host_commands.drain(cloud.control, request, said.say, said.table) == 0
    service = host_commands.service_of(cloud.control, "a")
    assert service.disabled and service.disabled_reason.startswith("drained by ")
    assert {row[0] for row in said.rows} == set(uuids)
    assert host_commands.undrain(cloud.control, "a", said.say) == 0
    assert not host_commands.service_of(cloud.control, "a").disabled
    assert host_commands.service_of(cloud.control, "a").disabled_reason is None


def test_host_when_it_is_no_longer_forced_down_while_it_has_cleanups_then_what_they_are_for_stays_claimed_and_known(
        cloud: SmallCloud) -> None:
    """It may be back at once: nothing is placed on room that its old guests still have, and it is told to remove them.
    """
    uuid, = cloud.active()
    update = ServiceUpdate(host="a", binary="nova-compute", forced_down=True)
    assert not cloud.control.update_service(update).up
    cleanup = {"host": "a", "server_uuid": uuid, "epoch": 1, "step": "destroy_guests", "arguments": {}}
    cloud.cell.transact(lambda tx: host_cleanups.add(tx, [cleanup]))
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(host="b"))
    up = cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=False))
    assert up.up and ("a", uuid) in cloud.claims()
    with cloud.cell.reading() as tx:
        assert host_cleanups.hosts_with_pending(tx) == {"a"}
    key = cloud.rows("cell", sa.select(cleanups.c.id))[0].id
    cloud.hosts.debt_paid("a", key)
    assert ("a", uuid) not in cloud.claims() and not cloud.debts()


def test_gone_guest_is_told_with_how_long_it_is_gone(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.delete(uuid)
    cloud.write("cell", sa.update(servers).values(deleted_at=utcnow() - datetime.timedelta(seconds=500)))
    guest, = cloud.hosts.expected_guests("a", (uuid, node_id("stranger")))
    assert guest.gone and 495 <= guest.gone_s <= 530


def test_doctor_reads_the_cloud_as_it_is(cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bus:
        def __init__(self, *args: object) -> None: ...

        def client(self, contract: type) -> object:
            return cloud.control
    monkeypatch.setattr(transport, "Bus", Bus)
    busy, failed, fresh = cloud.active(3)
    assert [check(options()).state for check in (doctor.hosts, doctor.tasks, doctor.failures)] == [doctor.OK] * 3
    hour = utcnow() - datetime.timedelta(hours=1)
    for uuid, values in ((busy, {"task_state": "migrating", "updated_at": hour}),
                         (failed, {"vm_state": "error", "updated_at": hour}),
                         (fresh, {"task_state": "rebooting", "updated_at": utcnow()})):
        cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(**values))
    assert busy in doctor.tasks(options()).what and fresh not in doctor.tasks(options()).what
    assert failed in doctor.failures(options()).what
    cloud.write("cell", sa.update(servers).values(task_state=None))
