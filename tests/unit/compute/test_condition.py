"""How a host is doing: its failed builds, what it measures, and when that is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.compute.host import Host
from nova.compute.reports.build_stats import BuildHealth, moved
from nova.compute.reports.inventory import InventoryReports
from nova.compute.reports.monitors import HostProcessors, frequency, monitors, ticks
from nova.conf import compute as compute_options
from nova.model.host.hosts import Node
from nova.virt.interface import Driver
from tests.fakes.compute import HOST, FakeClock, build_order, options
from tests.fakes.conductor_host import FakeConductorHost

NODE = Node(name=HOST, uuid="6f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11", hypervisor_type="fake")
STAT = "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 100 10 50 800 40 0 0 0 0 0\nintr 5\n"


class Works:
    """An order's work: overtaken or not."""

    def __init__(self, overtaken: bool = False) -> None:
        self._overtaken = overtaken

    def stopped_error(self) -> errors.NovaError | None:
        return errors.Overtaken() if self._overtaken else None


def ended(condition: BuildHealth, error: Exception | None, overtaken: bool = False) -> int:
    """Builds that failed in a row after one that ended so."""
    if error is None:
        with condition.counting(Works(overtaken)):
            pass
    else:
        with pytest.raises(type(error)), condition.counting(Works(overtaken)):
            raise error
    return condition.of(NODE, {}).failed_builds


def test_failed_builds_are_counted_in_a_row_until_one_succeeds():
    condition = BuildHealth()
    assert [ended(condition, errors.Conflict("no")), ended(condition, OSError("disk"))] == [1, 2]
    assert condition.take_news() and not condition.take_news()
    assert ended(condition, None) == 0 and condition.take_news()
    assert ended(condition, None) == 0 and not condition.take_news()


@pytest.mark.parametrize(("error", "overtaken"), [
    (errors.Overtaken(), False), (errors.host.OrderCannotAsk(host=HOST,
                                                             reason="away"), False), (errors.Conflict("late"), True)])
def test_builds_that_others_ended_say_nothing_of_the_host(error, overtaken):
    condition = BuildHealth()
    assert ended(condition, error, overtaken) == 0 and not condition.take_news()
    ended(condition, errors.Conflict("no"))
    assert ended(condition, error, overtaken) == 1


def test_a_failing_build_on_a_whole_host_is_told_soon(world):
    world.driver.knobs.fail_next("start_new")
    sent = len(world.conductor.inventories)
    outcome, = world.service.build_guests(HOST, (build_order(),))
    assert not outcome.ok
    world.service._tell_of_builds()
    assert [node.failed_builds for node in world.conductor.inventories[-1].nodes] == [1]
    assert len(world.conductor.inventories) == sent + 1
    world.service._tell_of_builds()  # no news any more
    assert len(world.conductor.inventories) == sent + 1
    outcome, = world.service.build_guests(HOST, (build_order(),))
    assert outcome.ok
    world.service._tell_of_builds()
    assert world.conductor.inventories[-1].nodes[0].failed_builds == 0


def proc(folder: Path, stat: str, cpuinfo: str = "cpu MHz\t\t: 2000.0\ncpu MHz : 3000.0\n") -> Path:
    (folder / "stat").write_text(stat)
    (folder / "cpuinfo").write_text(cpuinfo)
    return folder


def test_processors_when_looked_at_twice_then_shares_are_of_the_time_between(tmp_path):
    monitor = HostProcessors(proc(tmp_path, STAT))
    first = monitor.metrics()
    assert first["cpu.frequency"] == 2500.0 and first["cpu.user.time"] == 110 * 10_000_000
    assert first["cpu.idle.percent"] == 0.8 and first["cpu.percent"] == 0.16
    proc(tmp_path, "cpu  160 10 70 815 45 0 0 0 0 0\n")
    second = monitor.metrics()
    assert second["cpu.user.percent"] == 0.6 and second["cpu.kernel.percent"] == 0.2
    assert second["cpu.idle.percent"] == 0.15 and second["cpu.iowait.percent"] == 0.05
    assert second["cpu.percent"] == 0.8
    assert monitor.metrics()["cpu.percent"] == 0.0  # no time at all since
    proc(tmp_path, STAT)
    assert all(value >= 0 for value in monitor.metrics().values())  # counters that went back


@pytest.mark.parametrize("stat", ["", "cpu\n", "cpu a b c d e\n", "cpu 1 2\n", "cpu -1 2 3 4 5\n"])
def test_processors_when_the_kernel_tells_something_else_then_there_are_no_metrics(tmp_path, stat):
    assert HostProcessors(proc(tmp_path, stat)).metrics() == {} and ticks(stat) is None
    assert HostProcessors(tmp_path / "nowhere").metrics() == {}


def test_frequency_when_it_is_not_told_then_none():
    assert frequency("processor : 0\ncpu MHz : fast\n") is None


def test_this_host_measures_itself():
    found = HostProcessors().metrics()
    assert 0 <= found["cpu.percent"] <= 1 and found["cpu.idle.time"] > 0


def test_monitors_when_a_name_is_unknown_then_it_says_which_there_are():
    assert len(monitors(["cpu.virt_driver", "cpu.virt_driver", "nova.compute.monitors.cpu.virt_driver"])) == 1
    with pytest.raises(errors.host.NoMonitor, match="unknown monitor 'gpu'; known monitors: cpu.virt_driver"):
        monitors(["gpu"])


@pytest.mark.parametrize(("old", "new", "expected"), [
    ({}, {}, False), ({}, {"cpu.percent": 0.1}, True), ({"cpu.percent": 0.1}, {"cpu.percent": 0.13}, False),
    ({"cpu.percent": 0.1}, {"cpu.percent": 0.2}, True), ({"cpu.user.time": 1.0}, {"cpu.user.time": 9e9}, False),
    ({"cpu.frequency": 800.0}, {"cpu.frequency": 4000.0}, False)])
def test_metrics_are_news_only_when_a_share_moved(old, new, expected):
    assert moved(old, new) is expected


class Measured:
    def __init__(self) -> None:
        self.now: Any = {"cpu.percent": 0.1, "cpu.user.time": 1.0}

    def metrics(self) -> dict[str, float]:
        if isinstance(self.now, Exception):
            raise self.now
        return dict(self.now)


class Nodes(Driver):
    def nodes(self) -> tuple[Node, ...]:
        return (NODE,)


def test_metrics_go_with_the_inventory_and_a_failing_monitor_stops_nothing(tmp_path):
    monitor, conductor = Measured(), FakeConductorHost()
    reports = InventoryReports(Nodes(), conductor.client(HOST), options(compute_options),
                               Host(HOST, tmp_path, "", FakeClock()), (), BuildHealth([monitor]))
    assert reports.send("id") and conductor.inventories[-1].nodes[0].metrics == monitor.now
    monitor.now = {"cpu.percent": 0.12, "cpu.user.time": 2.0}
    assert not reports.send("id")
    monitor.now = {"cpu.percent": 0.3, "cpu.user.time": 3.0}
    assert reports.send("id")
    monitor.now = RuntimeError("broken")
    assert reports.send("id") and conductor.inventories[-1].nodes[0].metrics == {}
