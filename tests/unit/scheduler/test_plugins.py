from __future__ import annotations

import pytest

from nova import errors
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler import plugins
from nova.scheduler.filters import Filter
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher
from tests.fakes.scheduling import filter_options, host_state, placement_request, snapshot_of


class EvenNamesFilter(Filter):
    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return None if int(host.host[2:]) % 2 == 0 else "odd"


class ShortNameWeigher(Weigher):
    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return -len(host.host)


def my_filters() -> list[type[Filter]]:
    return [EvenNamesFilter]


NOT_A_LIST = 3


def here(name: str) -> str:
    return f"{__name__}.{name}"


def test_load_filters_when_default_then_those_of_the_configuration_but_for_what_is_always_checked():
    assert [filter_.name for filter_ in plugins.load_filters(filter_options())] == [
        "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter"]


def test_load_filters_when_old_names_are_enabled_then_they_change_nothing():
    names = ["AvailabilityZoneFilter", "RamFilter", "CoreFilter", "DiskFilter", "ComputeFilter", "AllHostsFilter"]
    assert [filter_.name for filter_ in plugins.load_filters(filter_options(enabled_filters=names))] == [
        "AllHostsFilter"]


@pytest.mark.parametrize("name", ["EvenNamesFilter", "my_filters"])
def test_load_filters_when_an_operators_own_is_available_then_it_can_be_enabled(name):
    options = filter_options(available_filters=["nova.scheduler.filters.all_filters", here(name)],
                             enabled_filters=["EvenNamesFilter", "AllHostsFilter", "EvenNamesFilter"])
    first, second = plugins.load_filters(options)
    assert (first.name, second.name) == ("EvenNamesFilter", "AllHostsFilter")
    assert first.options is options


@pytest.mark.parametrize(("path", "expected"), [
    ("nova.scheduler.weights.all_weighers", [
        "BuildFailureWeigher", "CPUWeigher", "CrossCellWeigher", "DiskWeigher", "HypervisorVersionWeigher",
        "ImagePropertiesWeigher", "IoOpsWeigher", "MetricsWeigher", "NumInstancesWeigher", "PCIWeigher", "RAMWeigher",
        "ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"]),
    ("nova.scheduler.weights.ram.RAMWeigher", ["RAMWeigher"]),
    (here("ShortNameWeigher"), ["ShortNameWeigher"]),
])
def test_load_weighers_by_path(path, expected):
    found = plugins.load_weighers(filter_options(weight_classes=[path, path]))
    assert [type(weigher).__name__ for weigher in found] == expected


@pytest.mark.parametrize(("options", "words"), [
    ({"enabled_filters": ["RamFilter", "NumaFilter"]}, "enabled_filters, entry 2, is not a filter; available"),
    ({"available_filters": ["no.such.Module"]}, "available_filters, entry 1, cannot be imported."),
    ({"available_filters": ["Filter"]}, "available_filters, entry 1, cannot be imported."),
    ({"available_filters": [here("Missing")]}, "cannot be imported"),
    ({"available_filters": [here("ShortNameWeigher")]}, "does not extend nova.scheduler.filters.Filter"),
    ({"available_filters": [here("NOT_A_LIST")]}, "neither a class nor a function"),
    ({"available_filters": ["nova.scheduler.filters.pci_passthrough_filter.PciFilter"]},
     "is not a plug-in of nova"),
])
def test_load_filters_when_the_configuration_is_wrong_then_it_says_what(options, words):
    with pytest.raises(errors.daemon.SchedulerUnknownPlugin, match="filter_scheduler") as error:
        plugins.load_filters(filter_options(**options))
    assert words in str(error.value)


def test_load_weighers_when_the_class_is_no_weigher_then_it_says_so():
    with pytest.raises(errors.daemon.SchedulerUnknownPlugin, match="weight_classes.*does not extend"):
        plugins.load_weighers(filter_options(weight_classes=[here("EvenNamesFilter")]))


THEIRS = '''
from nova.scheduler.filters import Filter
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.weighers import Weigher


class RackFilter(Filter):
    """Hosts of the rack that a hint of theirs names."""

    def refuses(self, host, request):
        rack = request.hints.get("rack")
        return None if not rack or host.state.capabilities.get("rack") == rack else "in another rack"


class QuietWeigher(Weigher):
    multiplier_option = "quiet_weight_multiplier"

    def weigh(self, host, request):
        return -host.state.metrics.get("noise", 0.0)


def filters():
    return [RackFilter]
'''


@pytest.mark.parametrize("path", ["their_scheduling.more.RackFilter", "their_scheduling.more.filters"])
def test_package_of_somebody_else_filters_and_weighs_with_our_own(tmp_path, monkeypatch, path):
    package = tmp_path / "their_scheduling"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "more.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(str(tmp_path))
    pipeline = Pipeline(filter_options(
        available_filters=["nova.scheduler.filters.all_filters", path],
        enabled_filters=["ComputeFilter", "RackFilter"],
        weight_classes=["nova.scheduler.weights.all_weighers", "their_scheduling.more.QuietWeigher"]))
    hosts = snapshot_of(*(host_state(f"cn{at}", provider_id=at, capabilities={"rack": rack}, metrics={"noise": noise})
                          for at, (rack, noise) in enumerate([("r1", 9.0), ("r1", 1.0), ("r2", 0.0)])))
    found = pipeline.decide(hosts, placement_request(hints={"rack": "r1"}))[0]
    assert [one.host for one in found.hosts] == ["cn1", "cn0"]
    found = pipeline.decide(hosts, placement_request(hints={"rack": "r3"}))[0]
    assert not found.hosts and "RackFilter refused 3 (in another rack 3)" in found.details
