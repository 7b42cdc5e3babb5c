"""Quota by limits that Keystone keeps, and by none at all, in the conductor."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.clients.keystone import ProjectLimits
from nova.conductor.quota.limits import CACHED_S, Missing, Unified, Unlimited
from nova.db import flavors
from nova.db.models import api as tables
from nova.model.flavor.flavors import NewFlavor
from nova.model.network.floating import FloatingRange
from nova.model.quota.quotas import QuotaClass, QuotaUpdate
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_orders import ResizeServer
from nova.model.server.servers import NewServer
from tests.fakes.small_cloud import DEMO, SmallCloud


class Keystone:
    """``registered``: resource -> limit; ``own``: project -> the same."""

    def __init__(self, registered: dict[str, int], own: dict[str, dict[str, int]] | None = None) -> None:
        self.registered, self.own = registered, own or {}
        self.failure: errors.NovaError | None = None
        self.asked: list[str] = []

    def limits(self, project_id: str) -> ProjectLimits:
        self.asked.append(project_id)
        if self.failure:
            raise self.failure
        return ProjectLimits(dict(self.registered), self.own.get(project_id, {}))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def unified(cloud: SmallCloud, missing: Missing | None = None, **registered: int) -> tuple[Keystone, Clock]:
    """``VCPU=1`` is class:VCPU."""
    named = {f"class:{name}" if name.isupper() else name: limit for name, limit in registered.items()}
    keystone, clock = Keystone({"servers": 100, **named}), Clock()
    cloud.deps.quotas = Unified(keystone, missing or Missing(), clock)
    return keystone, clock


def add_flavor(cloud: SmallCloud, name: str, **fields: Any) -> str:
    cloud.api.transact(lambda tx: flavors.insert(tx, NewFlavor(**{
        "name": name, "flavorid": name, "memory_mb": 64, "vcpus": 1, "root_gb": 1, **fields})))
    return name


@pytest.mark.parametrize(("limits", "count"), [({"servers": 1}, 2), ({"VCPU": 1}, 2), ({"MEMORY_MB": 100}, 2),
                                               ({"DISK_GB": 1}, 2)])
def test_create_when_a_unified_limit_is_exceeded_then_refused_by_its_name(cloud: SmallCloud, limits: dict[str, int],
                                                                         count: int) -> None:
    unified(cloud, **limits)
    [name] = limits
    with pytest.raises(errors.OverQuota, match=name):
        cloud.boot(count)
    assert not cloud.open_ledger()
    cloud.active()
    with pytest.raises(errors.OverQuota, match="already used"):
        cloud.boot()


def test_create_when_the_project_has_a_limit_of_its_own_then_it_stands_above(cloud: SmallCloud) -> None:
    keystone, _ = unified(cloud, servers=0)
    keystone.own["demo"] = {"servers": 1}
    cloud.active()
    with pytest.raises(errors.OverQuota, match="servers"):
        cloud.boot()


@pytest.mark.parametrize(("missing", "admitted"), [
    (Missing("require", frozenset({"servers"})), True), (Missing("require", frozenset({"class:VCPU"})), False),
    (Missing("ignore", frozenset({"class:VCPU", "class:MEMORY_MB", "class:DISK_GB"})), True),
    (Missing("ignore", frozenset({"class:VCPU"})), False)])
def test_create_when_a_resource_has_no_registered_limit_then_the_strategy_decides(
        cloud: SmallCloud, missing: Missing, admitted: bool) -> None:
    unified(cloud, missing)
    if admitted:
        cloud.active()
    else:
        with pytest.raises(errors.OverQuota):
            cloud.boot()


@pytest.mark.parametrize("missing", [Missing(), Missing("ignore", frozenset({"servers", "class:VCPU",
                                                                              "class:MEMORY_MB", "class:DISK_GB"}))])
def test_addresses_of_nova_network_when_nothing_is_registered_for_them_are_not_limited(cloud: SmallCloud,
                                                                                       missing: Missing) -> None:
    unified(cloud, missing)
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/28"))
    assert cloud.control.allocate_floating_address("demo", None).project_id == "demo"
    [uuid] = cloud.active()
    assert cloud.addresses()[uuid]


def test_floating_addresses_when_a_limit_is_registered_for_them_are_limited(cloud: SmallCloud) -> None:
    unified(cloud, floating_ips=1)
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/28"))
    cloud.control.allocate_floating_address("demo", None)
    with pytest.raises(errors.OverQuota):
        cloud.control.allocate_floating_address("demo", None)


@pytest.mark.parametrize("failure", [errors.service.Unavailable(service="identity", reason="timeout"),
                                     errors.service.Forbidden(service="identity", reason="403")])
def test_create_when_keystone_cannot_be_asked_then_503_names_the_option_and_nothing_is_kept(
        cloud: SmallCloud, failure: errors.NovaError) -> None:
    keystone, _ = unified(cloud)
    keystone.failure = failure
    with pytest.raises(errors.Unavailable, match=r"\[quota\]driver.*identity"):
        cloud.boot()
    assert not cloud.open_ledger()


def test_limits_are_remembered_shortly_and_no_longer_when_keystone_is_gone(cloud: SmallCloud) -> None:
    keystone, clock = unified(cloud)
    cloud.active(2)
    cloud.active()
    assert keystone.asked == ["demo"]
    keystone.failure = errors.service.Unavailable(service="identity", reason="timeout")
    clock.now = CACHED_S
    with pytest.raises(errors.Unavailable):
        cloud.boot()


def test_delete_when_it_is_done_then_every_class_is_given_back(cloud: SmallCloud) -> None:
    unified(cloud, servers=1, DISK_GB=1)
    for _ in range(2):
        [uuid] = cloud.active()
        cloud.delete(uuid)
    assert cloud.control.get_quotas("demo", None, True).in_use["instances"] == 0


def test_resize_when_only_its_disk_grows_then_the_disk_limit_counts(cloud: SmallCloud) -> None:
    _keystone, _clock = unified(cloud, DISK_GB=5)
    [uuid] = cloud.active()
    with context.entered(DEMO):
        with pytest.raises(errors.OverQuota, match="class:DISK_GB"):
            cloud.control.resize_server(ResizeServer(uuid=uuid, flavor_id=add_flavor(cloud, "six", root_gb=6)))
        assert cloud.ended(uuid).vm_state == "active"
        cloud.control.resize_server(ResizeServer(uuid=uuid, flavor_id=add_flavor(cloud, "five", root_gb=5)))
    assert cloud.ended(uuid).vm_state == "resized"
    with pytest.raises(errors.OverQuota, match="class:DISK_GB"):
        cloud.boot()


def test_rows_older_than_the_classes_when_counted_then_their_flavor_counts(cloud: SmallCloud) -> None:
    unified(cloud, DISK_GB=1, VCPU=5)
    cloud.active()
    cloud.write("api", sa.update(tables.ledger).values(classes=None))
    with pytest.raises(errors.OverQuota, match="class:DISK_GB"):
        cloud.boot()
    assert cloud.control.get_quotas("demo", None, True).in_use["cores"] == 1


def test_reads_when_keystone_keeps_the_limits_then_the_old_names_show_them(cloud: SmallCloud) -> None:
    keystone, _ = unified(cloud, VCPU=9, server_groups=4)
    keystone.own["demo"] = {"class:VCPU": 7}
    cloud.active()
    found = cloud.control.get_quotas("demo", None, True)
    assert {name: found.limits[name] for name in ("instances", "cores", "ram", "server_groups")} == {
        "instances": 100, "cores": 7, "ram": -1, "server_groups": 4}
    assert (found.in_use["instances"], found.in_use["cores"], found.in_use["ram"]) == (1, 1, 64)
    assert cloud.control.get_default_quotas().limits["cores"] == 9


def test_key_pairs_and_metadata_when_keystone_limits_them_then_they_are_limited(cloud: SmallCloud) -> None:
    unified(cloud, server_key_pairs=0, server_metadata_items=1)
    with context.entered(DEMO), pytest.raises(errors.OverQuota, match="key pairs"):
        cloud.control.create_keypair(NewKeypair(name="k", user_id="joe", fingerprint="f", public_key="k"))
    with pytest.raises(errors.OverQuota, match="metadata"):
        cloud.boot(metadata={"a": "1", "b": "2"})


@pytest.mark.parametrize("driver", [Unlimited(), Unified(Keystone({}))])
def test_writes_when_limits_are_not_kept_here_then_refused(cloud: SmallCloud, driver: Any) -> None:
    cloud.deps.quotas = driver
    update = QuotaUpdate(project_id="demo", limits={"cores": 1})
    for write in (lambda: cloud.control.update_quotas(update), lambda: cloud.control.delete_quotas("demo", None),
                  lambda: cloud.control.update_quota_class(QuotaClass(class_name="default", limits={"cores": 1}))):
        with pytest.raises(errors.Forbidden, match="Keystone|NoopQuotaDriver"):
            write()


def test_create_when_nothing_is_limited_then_no_quota_refuses(cloud: SmallCloud) -> None:
    cloud.control.update_quota_class(QuotaClass(class_name="default", limits={"instances": 0}))
    with pytest.raises(errors.OverQuota):
        cloud.boot()
    cloud.deps.quotas = Unlimited()
    cloud.active()
    found = cloud.control.get_quotas("demo", None, True)
    assert (found.limits.get("instances", -1), found.in_use["instances"]) == (-1, 1)


def test_create_when_the_flavor_asks_for_a_custom_class_then_its_limit_counts(cloud: SmallCloud) -> None:
    unified(cloud, CUSTOM_GPU=3)
    flavor = add_flavor(cloud, "gpu")
    cloud.control.set_flavor_specs(flavor, {"resources:CUSTOM_GPU": "2"})
    with context.entered(DEMO):
        order = NewServer(name="vm", flavor_id=flavor, min_count=2, max_count=2)
        with pytest.raises(errors.OverQuota, match="class:CUSTOM_GPU"):
            cloud.control.create_servers(order)
    assert not cloud.open_ledger()
