"""Hosts that cannot reach their hypervisors: told as their own event, and not as often as a host likes."""

from __future__ import annotations

import logging

import pytest

from nova.conductor.engine.announce.resources import MOST_MESSAGE, MOST_NAME
from nova.conductor.hosts import hypervisors
from nova.conductor.hosts.hypervisors import EVERY_S, HypervisorReports
from nova.model.host.hosts import HypervisorDown
from tests.fakes.small_cloud import SmallCloud
from tests.unit.conductor.engine.test_announced_operations import listen, message, settled

DOWN = HypervisorDown(ip="192.0.2.7", exception="HostLibvirtDown", message="libvirt does not answer", module="nova.x",
                      function="_live")


def test_report_when_it_comes_then_libvirts_event_is_told_for_the_host(cloud: SmallCloud) -> None:
    kept = listen(cloud)
    cloud.hosts.report_hypervisor_down("a", DOWN)
    settled(cloud)
    told = message(kept, "libvirt.connect.error")
    assert (told.publisher, told.priority) == ("nova-compute:a", "ERROR")
    payload = told.payload["nova_object.data"]
    reason = payload["reason"]["nova_object.data"]
    assert told.payload["nova_object.name"] == "LibvirtErrorPayload" and payload["ip"] == "192.0.2.7"
    assert (reason["exception"], reason["exception_message"]) == ("HostLibvirtDown", "libvirt does not answer")
    assert (reason["module_name"], reason["function_name"]) == ("nova.x", "_live")


def test_report_in_the_unversioned_form_then_it_has_its_older_name(cloud: SmallCloud) -> None:
    kept = listen(cloud, "unversioned")
    cloud.hosts.report_hypervisor_down("a", DOWN)
    settled(cloud)
    told = message(kept, "compute.libvirt.error")
    assert told.publisher == "compute.a" and told.payload["ip"] == "192.0.2.7" and told.priority == "ERROR"


def test_report_when_a_host_sends_many_then_one_a_minute_counts(cloud: SmallCloud, caplog: pytest.LogCaptureFixture
                                                               ) -> None:
    kept, now = listen(cloud), [0.0]
    reports = HypervisorReports(cloud.deps, lambda: now[0])
    with caplog.at_level(logging.WARNING, hypervisors.__name__):
        for seconds in (0.0, 1.0, EVERY_S - 1, EVERY_S, EVERY_S + 1):
            now[0] = seconds
            reports.down("a", DOWN)
        reports.down("b", DOWN)
    settled(cloud)
    assert [one.publisher[-1] for _form, one in kept.sent] == ["a", "a", "b"] and len(caplog.records) == 3


def test_report_when_a_host_says_too_much_then_it_is_cut_and_stays_on_one_line(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    kept = listen(cloud)
    with caplog.at_level(logging.WARNING, hypervisors.__name__):
        cloud.hosts.report_hypervisor_down("a", HypervisorDown(
            ip="9" * 5000, exception="e" * 5000, message="no\nanswer\r" * 5000, module="m" * 5000))
    settled(cloud)
    payload = message(kept, "libvirt.connect.error").payload["nova_object.data"]
    reason = payload["reason"]["nova_object.data"]
    assert len(payload["ip"]) == len(reason["exception"]) == len(reason["module_name"]) == MOST_NAME
    assert len(reason["exception_message"]) == MOST_MESSAGE
    assert len(caplog.messages[0]) < 400 and "\n" not in caplog.messages[0] and "\r" not in caplog.messages[0]
