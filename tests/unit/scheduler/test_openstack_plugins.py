"""Operators' filters and weighers in OpenStack's form, through the scheduler itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from nova import conf
from nova.model.host.hosts import AggregateMembers, AggregateStates, HostStates
from nova.model.scheduling.decisions import PlacementGroup
from nova.scheduler import plugins, service
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.plugin_objects import PluginHostState, RequestSpec
from tests.fakes.scheduling import (
    NOW,
    Clock,
    filter_options,
    host_state,
    host_view,
    placement_request,
    snapshot_of,
)
from tests.unit.scheduler.test_scheduler_service import FakeConductor

#: Of the shape that a reservation service's filter has: hosts of a pool are for those who name the pool and own it.
PLUGIN = '''
from oslo_config import cfg

import nova.conf
from nova.scheduler import filters, weights

OPTS = [cfg.StrOpt("free_pool", default="freepool")]
cfg.CONF.register_opts(OPTS, "reservations")
CONF = nova.conf.CONF


class ReservationFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        pool = spec_obj.get_scheduler_hint("reservation")
        names = [one.name for one in host_state.aggregates]
        if pool is None:
            return CONF.reservations.free_pool not in names
        return any(one.name == pool and one.metadata.get("owner") == spec_obj.project_id
                   for one in host_state.aggregates)


class PairsFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = True

    def filter_all(self, filter_obj_list, spec_obj):
        found = list(filter_obj_list)
        return found if len(found) > 1 else []


class FewestServersWeigher(weights.BaseHostWeigher):
    minval = 0

    def weight_multiplier(self, host_state):
        return -1000.0

    def _weigh_object(self, host_state, weight_properties):
        return host_state.num_instances


def all_of_them():
    return [ReservationFilter, PairsFilter]
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The package, where an operator would install it."""
    (tmp_path / "reservation_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "reservation_plugin"
    import reservation_plugin

    conf.CONF.unregister_opts(reservation_plugin.OPTS, "reservations")
    monkeypatch.delitem(sys.modules, "reservation_plugin")


def options(enabled, path="reservation_plugin.all_of_them", **fields):
    return filter_options(available_filters=["nova.scheduler.filters.all_filters", path], enabled_filters=enabled,
                          **fields)


class Conductor(FakeConductor):
    """Three hosts: one in the free pool, one in the pool of the project p1, one in none."""

    def get_host_states(self, known, everything):
        return HostStates(states=tuple(host_state(name, provider_id=at, aggregates_version=0)
                                       for at, name in enumerate(("free", "pool", "other"), 1)),
                          now=NOW, complete=everything, aggregates=AggregateStates(
                              version=2, default_zone="nova", aggregates=(
                                  AggregateMembers(hosts=("free",), uuid="a1", name="freepool"),
                                  AggregateMembers(hosts=("pool",), uuid="a2", name="res-1",
                                                   metadata={"owner": "p1"}))))


def test_reservation_filter_when_a_server_names_its_pool_then_the_scheduler_gives_it_that_host(plugin) -> None:
    settings = service.SchedulerSettings(SimpleNamespace(host_state_sweep_interval=60),
                                         options(["ComputeFilter", "ReservationFilter"]), 90)
    scheduler = service.SchedulerService(Conductor().client(), settings, Clock())
    assert scheduler.sweep()

    def hosts(**fields):
        (found,) = scheduler.select_hosts(placement_request(**fields))
        return found, [one.host for one in found.hosts]
    assert hosts(project_id="p1", hints={"reservation": "res-1"})[1] == ["pool"]
    assert hosts(project_id="p1", hints={"reservation": ["res-1"]})[1] == ["pool"]
    refused, none = hosts(project_id="p2", hints={"reservation": "res-1"})
    assert none == [] and "ReservationFilter refused 3 (it does not pass 3)" in refused.details
    assert set(hosts(project_id="p2")[1]) == {"pool", "other"}


def test_filter_all_when_it_looks_at_all_hosts_together_then_it_decides(plugin) -> None:
    pipeline = Pipeline(options(["PairsFilter"]))
    two, one = snapshot_of(host_state("cn1"), host_state("cn2", provider_id=2)), snapshot_of(host_state("cn1"))
    assert pipeline.decide(two, placement_request())[0].hosts and not pipeline.decide(one, placement_request())[0].hosts


def test_rebuild_when_a_filter_runs_then_it_says_so_by_its_attribute(plugin) -> None:
    pipeline = Pipeline(options(["ReservationFilter", "PairsFilter"]))
    named = {type(one).__name__ for one in pipeline.asked(placement_request(rebuild=True))}
    assert "PairsFilter" in named and "ReservationFilter" not in named


def test_weigher_when_it_is_in_openstacks_form_then_its_multiplier_counts(plugin) -> None:
    pipeline = Pipeline(filter_options(weight_classes=["nova.scheduler.weights.all_weighers",
                                                       "reservation_plugin.FewestServersWeigher"]))
    hosts = snapshot_of(host_state("full", instances=9, memory_mb_capacity=99999), host_state("few", provider_id=2))
    assert [one.host for one in pipeline.decide(hosts, placement_request())[0].hosts] == ["few", "full"]


@pytest.mark.parametrize("name", [
    "nova.scheduler.filters.compute_filter.ComputeFilter", "RetryFilter", "AggregateRamFilter",
    "nova.scheduler.filters.retry_filter.RetryFilter"])
def test_filter_when_it_has_an_old_name_or_a_class_path_then_it_may_be_enabled(name: str) -> None:
    enabled = plugins.load_filters(filter_options(enabled_filters=[name, "nova.scheduler.filters.all_hosts_filter."
                                                                         "AllHostsFilter"]))
    assert [one.name for one in enabled] == ["AllHostsFilter"]


@pytest.mark.parametrize("path", ["nova.scheduler.filters.compute_filter.ComputeFilter",
                                  "nova.scheduler.filters.all_filters"])
def test_available_filters_when_it_has_upstreams_paths_then_they_are_found(path: str) -> None:
    assert plugins.load_filters(filter_options(available_filters=[path], enabled_filters=["ComputeFilter"])) == ()


def test_host_state_then_amounts_are_the_hosts_own_before_ratios() -> None:
    view = host_view("cn1", pending=1, busy=2, instances=3, vcpus_capacity=64, vcpus_used=4, memory_mb_capacity=15872,
                     memory_mb_used=1024, disk_gb_used=10, provider_uuid="u1", capabilities={"a": "b"},
                     metrics={"cpu.percent": 0.5}, enabled=False, disabled_reason="gone")
    made = PluginHostState.of(view)
    assert (made.host, made.nodename, made.hypervisor_hostname, made.uuid) == ("cn1", "cn1", "cn1", "u1")
    assert (made.vcpus_total, made.vcpus_used, made.cpu_allocation_ratio) == (16, 4, 4.0)
    assert (made.total_usable_ram_mb, made.free_ram_mb) == (16384, 15360)
    assert (made.free_disk_mb, made.disk_mb_used, made.total_usable_disk_gb) == (90 * 1024, 10 * 1024, 100)
    assert (made.num_instances, made.num_io_ops, made.failed_builds) == (4, 2, 0)
    assert made.service["disabled"] is True and made.service["disabled_reason"] == "gone"
    assert made.supported_instances[0] == ["x86_64", "qemu", "hvm"] and made.stats == {"a": "b"}
    assert [(one.name, one.value) for one in made.metrics] == [("cpu.percent", 0.5)]
    made.limits["vcpu"] = 3
    assert PluginHostState.of(view).limits == {}


def test_request_spec_then_it_has_what_openstack_documents() -> None:
    spec = RequestSpec.of(placement_request(
        2, vcpus=2, memory_mb=4096, disk_gb=30, project_id="p", user_id="u", flavor_name="m1", extra_specs={"a": "b"},
        image_id="i", image_disk_format="qcow2", image_properties={"os_distro": "debian"}, availability_zone="z",
        host="cn1", force=True, exclude=("cn9",), hints={"one": "x", "many": ["y", "z"], "none": None},
        group=PlacementGroup(uuid="g", policy="affinity", hosts={"cn1": 2})))
    assert (spec.instance_uuid, spec.num_instances, spec.project_id, spec.user_id) == ("server-0", 2, "p", "u")
    assert (spec.flavor.name, spec.vcpus, spec.memory_mb, spec.root_gb) == ("m1", 2, 4096, 30)
    assert (spec.ephemeral_gb, spec.swap, spec.flavor.extra_specs) == (0, 0, {"a": "b"})
    assert (spec.image.id, spec.image.disk_format, spec.image.properties) == ("i", "qcow2", {"os_distro": "debian"})
    assert (spec.availability_zone, spec.ignore_hosts, spec.force_hosts, spec.force_nodes) == ("z", ["cn9"], ["cn1"],
                                                                                              None)
    assert (spec.get_scheduler_hint("one"), spec.get_scheduler_hint("many")) == ("x", ["y", "z"])
    assert (spec.get_scheduler_hint("other"), spec.get_scheduler_hint("other", 3)) == (None, 3)
    assert spec.instance_group is not None and spec.instance_group.hosts == ["cn1"]
