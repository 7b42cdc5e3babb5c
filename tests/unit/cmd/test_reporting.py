"""A daemon that makes itself known."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.cmd import api
from nova.cmd import reporting as reporting_module
from nova.cmd.reporting import Reporting
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from tests.fakes.small_cloud import until


class Conductor:
    def __init__(self) -> None:
        self.rows: list[Registration] = []
        self.beats: list[Heartbeat] = []
        self.refuses, self.asked = False, 0

    def register(self, registration: Registration) -> Registered:
        self.asked += 1
        if self.refuses:
            raise errors.daemon.NotAControlDaemon(host=registration.host, binary=registration.binary)
        self.rows.append(registration)
        return Registered(service_id=1)

    def heartbeat(self, beat: Heartbeat) -> Alive:
        self.beats.append(beat)
        return Alive(known=len(self.beats) != 1)


def reporting(conductor: Conductor) -> Reporting:
    options = SimpleNamespace(host="ctl", report_interval=30)
    bus: Any = SimpleNamespace(peers=SimpleNamespace(learn=lambda lowest: None),
                               watchdog=SimpleNamespace(silent_s=0.0))
    return Reporting(options, "nova-novncproxy", "novncproxy", bus, conductor)


def test_start_when_the_conductor_refuses_then_the_log_says_so_once_and_it_registers_later(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting_module, "REFUSED_S", 0.05)
    conductor = Conductor()
    conductor.refuses = True
    made = reporting(conductor)
    with caplog.at_level(logging.ERROR):
        made.start()
        until(lambda: "the conductors refused to register nova-novncproxy" in caplog.text, "it is logged")
        monkeypatch.setattr(reporting_module, "REFUSED_S", 0.01)
        until(lambda: conductor.asked > 3, "it is tried again")
    assert caplog.text.count("refused to register") == 1
    conductor.refuses = False
    until(lambda: conductor.rows, "it is registered")
    made.stop()


def test_start_when_registering_fails_unexpectedly_then_the_log_names_the_service(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    conductor = Conductor()
    made = reporting(conductor)
    monkeypatch.setattr(reporting_module, "REFUSED_S", 0.01)

    def defect(_registration: Registration) -> Registered:
        raise ZeroDivisionError
    monkeypatch.setattr(conductor, "register", defect)
    made.start()
    until(lambda: "nova-novncproxy could not register" in caplog.text, "it is logged")
    assert "ZeroDivisionError" in caplog.text
    made.stop()


def test_beat_then_it_says_the_time_and_registers_again_where_it_is_not_known() -> None:
    conductor = Conductor()
    made = reporting(conductor)
    made.begin(())
    made.stop()
    made._heartbeat()
    made._heartbeat()
    assert [one.binary for one in conductor.rows] == ["nova-novncproxy"] * 2  # the first beat was not known
    assert all(beat.sent_at is not None for beat in conductor.beats)


def test_apis_then_each_registers_as_a_service_of_its_own() -> None:
    assert {name: kind.binary for name, kind in api.ALL.items()} == {
        "osapi_compute": "nova-osapi_compute", "metadata": "nova-metadata", "ec2": "nova-ec2",
        "placement": "nova-placement-api"}
