"""Limits in force, in the conductor: classes below projects below users, and what counts as used."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import api as tables
from nova.db.sql.types import utc_now
from nova.model.quota.quotas import QuotaClass, QuotaUpdate
from nova.model.server.keypairs import NewKeypair
from tests.fakes.small_cloud import DEMO, SmallCloud

JOE = {"user_id": "joe"}


def write_class(cloud: SmallCloud, name: str = "default", **limits: int) -> None:
    cloud.control.update_quota_class(QuotaClass(class_name=name, limits=limits))


def update(cloud: SmallCloud, user_id: str | None = None, force: bool = False, **limits: int) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", user_id=user_id, limits=limits, force=force))


def limits(cloud: SmallCloud, user_id: str | None = None) -> dict[str, int]:
    return dict(cloud.control.get_quotas("demo", user_id, False).limits)


def used(cloud: SmallCloud, user_id: str | None = None) -> dict[str, int]:
    return dict(cloud.control.get_quotas("demo", user_id, True).in_use)


def add_group(cloud: SmallCloud, user_id: str = "joe", project_id: str = "demo") -> None:
    cloud.write("api", sa.insert(tables.server_groups).values(
        uuid=str(uuid.uuid4()), project_id=project_id, user_id=user_id, name="g", policy="affinity", rules={},
        created_at=utc_now()))


def add_key(cloud: SmallCloud, name: str, user_id: str = "joe") -> None:
    with context.entered(DEMO):
        cloud.control.create_keypair(NewKeypair(name=name, user_id=user_id, fingerprint="f", public_key="k"))


def test_class_default_stands_in_for_the_configured_defaults(cloud: SmallCloud) -> None:
    assert limits(cloud)["cores"] == 100
    write_class(cloud, cores=7, ram=512)
    assert cloud.control.get_default_quotas().limits["cores"] == 7 == limits(cloud)["cores"]
    update(cloud, cores=9)
    update(cloud, "joe", cores=8)
    assert (limits(cloud)["cores"], limits(cloud, "joe")["cores"], limits(cloud)["ram"]) == (9, 8, 512)
    cloud.control.delete_quotas("demo", None)
    assert limits(cloud, "joe")["cores"] == 7
    write_class(cloud, cores=6)
    assert (limits(cloud)["cores"], limits(cloud)["ram"]) == (6, 512)


def test_other_classes_are_kept_and_apply_to_nobody(cloud: SmallCloud) -> None:
    write_class(cloud, "gold", cores=1000)
    assert cloud.control.get_quota_class("gold").limits["cores"] == 1000
    assert limits(cloud)["cores"] == 100 == cloud.control.get_quota_class("silver").limits["cores"]


def test_class_default_limits_creates_and_keypairs(cloud: SmallCloud) -> None:
    write_class(cloud, instances=1, key_pairs=1)
    cloud.active()
    with pytest.raises(errors.OverQuota, match="instances"):
        cloud.boot()
    add_key(cloud, "first")
    with pytest.raises(errors.OverQuota, match="key pairs"):
        add_key(cloud, "second")
    write_class(cloud, instances=-1)
    cloud.active(2)


def test_keypair_when_its_name_is_taken_then_conflict_even_at_the_quota(cloud: SmallCloud) -> None:
    write_class(cloud, key_pairs=1)
    add_key(cloud, "first")
    with pytest.raises(errors.Conflict):
        add_key(cloud, "first")
    add_key(cloud, "first", "eve")  # names and limits are each user's own


def test_use_is_counted_from_rows(cloud: SmallCloud) -> None:
    cloud.active(2)
    for user, project in (("joe", "demo"), ("eve", "demo"), ("joe", "other")):
        add_group(cloud, user, project)
    add_key(cloud, "mine")
    whole, joes, eves = used(cloud), used(cloud, "joe"), used(cloud, "eve")
    assert (whole["instances"], whole["server_groups"], whole["key_pairs"], whole["fixed_ips"]) == (2, 2, 0, 2)
    assert (joes["cores"], joes["server_groups"], joes["key_pairs"]) == (2, 1, 1)
    assert (eves["instances"], eves["server_groups"], eves["key_pairs"]) == (0, 1, 0)


@pytest.mark.parametrize(("resource", "limit"), [("instances", 1), ("server_groups", 1), ("cores", 0)])
def test_limit_below_what_is_used_needs_force(cloud: SmallCloud, resource: str, limit: int) -> None:
    cloud.active(2)
    add_group(cloud)
    add_group(cloud)
    with pytest.raises(errors.Invalid, match=resource):
        update(cloud, **{resource: limit})
    assert limits(cloud)[resource] == 100
    update(cloud, force=True, **{resource: limit})
    assert limits(cloud)[resource] == limit
    update(cloud, **{resource: -1})


def test_limit_of_a_user_stays_within_the_projects(cloud: SmallCloud) -> None:
    update(cloud, cores=10)
    for limit in (11, -1):
        with pytest.raises(errors.Invalid, match="cores"):
            update(cloud, "joe", cores=limit)
    update(cloud, "joe", cores=10)
    write_class(cloud, ram=64)
    with pytest.raises(errors.Invalid, match="ram"):
        update(cloud, "joe", ram=65)


def test_update_when_one_limit_is_wrong_then_none_is_written(cloud: SmallCloud) -> None:
    cloud.active()
    with pytest.raises(errors.Invalid):
        update(cloud, cores=50, instances=0)
    assert limits(cloud)["cores"] == 100


def test_reads_cost_a_fixed_number_of_statements(cloud: SmallCloud) -> None:
    cloud.active(3)
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    for read, count in ((lambda: limits(cloud), 1), (lambda: used(cloud, "joe"), 4),
                        (cloud.control.get_default_quotas, 1), (lambda: cloud.control.get_quota_class("x"), 1)):
        seen.clear()
        read()
        assert len(seen) == count, seen
