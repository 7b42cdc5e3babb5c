"""A host whose hypervisor does not answer tells so, once each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova import errors
from nova.compute.host import Host
from nova.compute.reports.hypervisor import HypervisorWatch
from tests.fakes.conductor_host import FakeConductorHost


class Lifecycle:
    """``error``: what each question ends with."""

    error: Exception | None = None

    def power_state(self, _uuid: str) -> None:
        if self.error is not None:
            raise self.error


class Driver:
    def __init__(self) -> None:
        self.lifecycle = Lifecycle()


def down() -> errors.NovaError:
    return errors.host.LibvirtDown(host="h", uri="qemu:///system", reason="no socket")


class Scene:
    def __init__(self, folder: Path) -> None:
        self.driver, self.conductor = Driver(), FakeConductorHost()
        self.watch = HypervisorWatch(self.driver, self.conductor, Host("h", folder, my_ip="192.0.2.7"))

    def refresh(self, error: Exception | None = None) -> int:
        """After it: how often the conductor was told."""
        self.driver.lifecycle.error = error
        self.watch.refresh()
        return len(self.conductor.asked("report_hypervisor_down"))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_look_when_libvirt_is_away_then_it_is_told_once_each_time(scene: Scene) -> None:
    assert [scene.refresh(error) for error in (None, down(), down(), None, None, down())] == [0, 1, 1, 1, 1, 2]
    host, report = scene.conductor.asked("report_hypervisor_down")[0]
    assert host == "h" and report.ip == "192.0.2.7" and "no socket" in report.message
    assert report.exception == "LibvirtDown" and report.function == "power_state"


def test_look_when_another_thing_fails_then_nothing_is_told(scene: Scene) -> None:
    assert scene.refresh(errors.Unavailable("the disk is slow")) == 0


@pytest.mark.parametrize("error", [errors.Unavailable("no conductor"), errors.PeerTooOld("older")])
def test_look_when_it_cannot_be_told_then_it_is_tried_again(scene: Scene, error: errors.NovaError) -> None:
    scene.conductor.given(report_hypervisor_down=error)
    assert [scene.refresh(down()), scene.refresh(down())] == [1, 2]
    scene.conductor.given(report_hypervisor_down=None)
    assert [scene.refresh(down()), scene.refresh(down())] == [3, 3]


def test_start_when_the_hypervisor_is_away_then_it_is_told_and_waited_for(scene: Scene) -> None:
    def connect() -> None:
        raise down()
    with pytest.raises(errors.Unavailable):
        scene.watch.watched(connect)
    assert len(scene.conductor.asked("report_hypervisor_down")) == 1
