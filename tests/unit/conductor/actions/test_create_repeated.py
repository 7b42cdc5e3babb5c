"""A request whose message comes twice: from a broker that lost its own answer, to two conductors at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.actions.create import CreateAdmission
from nova.model.quota.quotas import QuotaUpdate
from nova.model.server.servers import CreatedServers, NewServer
from nova.model.volumes import BlockDevice
from tests.fakes.small_cloud import DEMO, SmallCloud, until

KEY = "11111111-2222-4333-8444-555555555555"


def create(cloud: SmallCloud, deps: Any = None, **fields: Any) -> CreatedServers:
    order = NewServer(**{"name": "vm", "flavor_id": "1", "min_count": 2, "max_count": 3, "key": KEY, **fields})
    with context.entered(DEMO):
        return CreateAdmission(deps or cloud.deps).create_servers(order)


def test_create_when_its_message_comes_twice_then_the_servers_are_made_once(cloud: SmallCloud) -> None:
    first = create(cloud)
    assert create(cloud, cloud.conductor("ctl2")) == first
    assert cloud.open_ledger() == set(first.uuids) and len(first.uuids) == 3
    assert {cloud.ended(uuid).reservation_id for uuid in first.uuids} == {first.reservation_id}


def test_create_when_both_messages_come_at_once_then_the_servers_are_made_once(cloud: SmallCloud) -> None:
    worlds, answers = [cloud.deps, cloud.conductor("ctl2")], []
    threads = [threading.Thread(target=lambda deps=deps: answers.append(create(cloud, deps))) for deps in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 2 and answers[0] == answers[1]
    assert cloud.open_ledger() == set(answers[0].uuids)
    until(lambda: all(not cloud.open(uuid) for uuid in answers[0].uuids), "they are made")


def test_create_when_the_first_message_took_the_last_of_the_quota_then_the_second_is_answered_alike(cloud) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"instances": 2}))
    first = create(cloud)
    assert len(first.uuids) == 2 and create(cloud) == first
    with pytest.raises(errors.OverQuota):
        create(cloud, key="99999999-2222-4333-8444-555555555555")


def test_create_when_what_it_names_is_in_use_by_its_first_delivery_then_the_answer_is_that_of_its_servers(
        cloud: SmallCloud) -> None:
    """The volume is no longer available to anybody else, so the request cannot be looked up again."""
    volume = cloud.volume_service.add(bootable=True)
    wanted = {"volumes": (BlockDevice(source_id=volume, boot_index=0),), "min_count": 1, "max_count": 1,
              "disk_config": "MANUAL"}
    first = create(cloud, **wanted)
    cloud.ended(first.uuids[0])
    assert create(cloud, **wanted) == first and first.disk_config == "MANUAL"
    with pytest.raises(errors.volume.NotAvailable):
        create(cloud, key="99999999-2222-4333-8444-555555555555", **wanted)


def test_create_when_requests_are_alike_but_two_then_each_has_its_servers(cloud: SmallCloud) -> None:
    first, second = create(cloud), create(cloud, key="99999999-2222-4333-8444-555555555555")
    assert not set(first.uuids) & set(second.uuids) and first.reservation_id != second.reservation_id
    without = [create(cloud, key="") for _ in range(2)]
    assert len({uuid for one in without for uuid in one.uuids}) == 6
