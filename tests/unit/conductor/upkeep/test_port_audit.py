"""Ports that deleted servers still have, in Neutron."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.upkeep import port_audit
from nova.db.models import cell as tables
from nova.db.sql.types import later
from nova.model.guest.orphans import Orphan, OrphanKind
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import NEUTRON, SmallCloud


@pytest.fixture
def neutral(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    for trouble in made.neutron.troubles:
        trouble.left = 0
    made.close()


def turn(cloud: SmallCloud) -> int:
    cloud.write("cell", sa.update(tables.audit_walks).values(taken_until=later(-10)))
    return port_audit.run(cloud.deps)


def deleted(cloud: SmallCloud, long_ago_s: int = 3600) -> str:
    uuid, = cloud.active(1)
    cloud.delete(uuid)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(
        deleted_at=later(-long_ago_s)))
    return uuid


def rows(cloud: SmallCloud, ended: bool = False) -> list[Orphan]:
    return [one for one in cloud.control.list_strangers(ended) if one.kind is OrphanKind.PORT]


def add_port(cloud: FailingCloud, uuid: str, **fields: str) -> str:
    return cloud.neutron.add_port(cloud.net, **{"device_id": uuid, **fields})


def test_audit_when_servers_live_or_left_nothing_then_there_is_no_stranger(neutral: FailingCloud) -> None:
    neutral.active(2)
    deleted(neutral)
    assert turn(neutral) == turn(neutral) == 0 and rows(neutral, ended=True) == []


def test_audit_when_a_deleted_server_has_a_port_then_an_operator_gives_it_back(neutral: FailingCloud) -> None:
    uuid = deleted(neutral)
    port = add_port(neutral, uuid)
    assert turn(neutral) == turn(neutral) == 1
    [one] = rows(neutral)
    assert one.server_uuid == uuid and port in one.why
    neutral.control.remove_stranger(one.id)
    assert neutral.neutron.ports[port]["device_id"] == "" and not rows(neutral)  # no row proves that nova made it
    assert rows(neutral, ended=True)[0].ending == "removed" and turn(neutral) == 0


def test_remove_when_the_port_was_made_for_the_server_then_it_is_deleted(neutral: FailingCloud) -> None:
    uuid, = neutral.active(1)
    [interface] = neutral.server(uuid).interfaces
    kept = dict(neutral.neutron.ports[interface.id])
    neutral.delete(uuid)
    neutral.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(
        deleted_at=later(-3600), interfaces=(interface,)))
    neutral.neutron.ports[interface.id] = kept
    assert turn(neutral) == 1
    [one] = rows(neutral)
    neutral.control.remove_stranger(one.id)
    assert interface.id not in neutral.neutron.ports


@pytest.mark.parametrize("fields", [{"tenant_id": "another", "project_id": "another"},
                                    {"device_owner": "network:dhcp"}])
def test_audit_when_a_tenant_names_anothers_server_then_the_port_counts_for_nothing(neutral: FailingCloud,
                                                                                    fields: dict[str, str]) -> None:
    add_port(neutral, deleted(neutral), **fields)
    add_port(neutral, new_uuid())  # of a server that we never had
    assert turn(neutral) == 0


def test_audit_when_the_delete_was_a_moment_ago_then_it_is_not_looked_at_yet(neutral: FailingCloud) -> None:
    add_port(neutral, deleted(neutral, long_ago_s=5))
    assert turn(neutral) == 0


def test_audit_when_neutron_is_away_then_the_page_is_looked_at_again(neutral: FailingCloud) -> None:
    add_port(neutral, deleted(neutral))
    neutral.neutron.trouble("GET", "ports", 503, times=100)
    with pytest.raises(errors.Unavailable):
        turn(neutral)
    for trouble in neutral.neutron.troubles:
        trouble.left = 0
    assert turn(neutral) == 1


def test_remove_when_the_port_is_anothers_by_now_then_it_stays(neutral: FailingCloud) -> None:
    port = add_port(neutral, deleted(neutral))
    turn(neutral)
    [one] = rows(neutral)
    neutral.neutron.ports[port]["device_id"] = other = new_uuid()
    neutral.control.remove_stranger(one.id)
    assert neutral.neutron.ports[port]["device_id"] == other


def test_audit_when_networks_are_nova_networks_then_nothing_is_asked(cloud: SmallCloud) -> None:
    assert turn(cloud) == 0
