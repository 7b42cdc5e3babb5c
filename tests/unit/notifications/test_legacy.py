"""Unversioned messages: names, publishers and the keys that their consumers read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova.notifications import legacy
from nova.notifications.kinds import TYPES
from nova.notifications.message import Event
from tests.fakes import notifications as fakes

#: What ceilometer's and other public event definitions take out of compute.instance.*.
TRAITS = {"tenant_id", "user_id", "instance_id", "display_name", "host", "memory_mb", "disk_gb", "root_gb",
          "ephemeral_gb", "vcpus", "instance_type_id", "instance_type", "state", "os_type", "architecture",
          "launched_at", "deleted_at", "created_at", "terminated_at", "reservation_id", "image_ref_url",
          "state_description", "availability_zone", "image_meta", "metadata", "progress", "node", "hostname",
          "access_ip_v4", "access_ip_v6", "kernel_id", "ramdisk_id", "instance_flavor_id", "cell_name"}


def made(name: str, phase: str = "", subject: Any = None, **more: Any) -> Any:
    return legacy.message(Event(name, phase, subject or fakes.subject(name), "h", who=fakes.WHO, **more), "INFO")


@pytest.mark.parametrize("name, phase, kind", [
    ("instance.create", "start", "compute.instance.create.start"),
    ("instance.power_on", "end", "compute.instance.power_on.end"),
    ("instance.resize_finish", "end", "compute.instance.finish_resize.end"),
    ("instance.update", "", "compute.instance.update"), ("instance.exists", "", "compute.instance.exists"),
    ("aggregate.add_host", "start", "aggregate.addhost.start"), ("keypair.import", "end", "keypair.import.end"),
    ("server_group.add_member", "", "servergroup.addmember"),
    ("scheduler.select_destinations", "start", "scheduler.select_destinations.start"),
    ("compute_task.build_instances", "error", "compute_task.build_instances")])
def test_event_has_its_older_name(name: str, phase: str, kind: str) -> None:
    assert made(name, phase).type == kind


@pytest.mark.parametrize("name, source, publisher", [
    ("instance.create", "", "compute.h"), ("instance.delete", "nova-api", "api.h"), ("keypair.create", "", "api.h"),
    ("aggregate.create", "", "aggregate.h"), ("scheduler.select_destinations", "", "scheduler.h"),
    ("compute_task.build_instances", "", "conductor.h")])
def test_publisher_is_the_service_and_the_host(name: str, source: str, publisher: str) -> None:
    assert made(name, "start", source=source).publisher == publisher


def test_every_form_belongs_to_an_event_and_makes_json_without_secrets() -> None:
    for kind in TYPES:
        what, action, *phase = kind.split(".")
        message = made(f"{what}.{action}", phase[0] if phase else "")
        if message is not None and phase != ["progress"]:
            assert "SECRET" not in json.dumps(message.payload), kind
    assert set(legacy.FORMS) <= {".".join(kind.split(".")[:2]) for kind in TYPES}


def test_server_tells_all_that_consumers_read() -> None:
    payload = made("instance.create", "end", fakes.server(failure=None)).payload
    assert payload.keys() >= TRAITS | {"fixed_ips", "message"}
    assert payload["created_at"] == "2012-10-29 13:42:11+00:00" and payload["deleted_at"] == ""
    assert payload["launched_at"] == "2012-10-29T13:42:11.123456" and payload["message"] == "Success"
    assert payload["image_meta"]["base_image_ref"] == fakes.IMAGE.id and payload["disk_gb"] == 1
    assert [one["address"] for one in payload["fixed_ips"]] == ["192.168.1.3"]


def test_error_tells_what_went_wrong_at_its_priority() -> None:
    message = made("instance.create", "error")
    assert message.priority == "ERROR" and message.payload["exception"] == "The host refused."


def test_update_tells_the_states_before_and_after() -> None:
    payload = made("instance.update").payload
    assert (payload["old_state"], payload["state"]) == ("building", "building")
    assert (payload["old_task_state"], payload["new_task_state"], payload["tags"]) == (None, "scheduling", ["tag"])


def test_keypair_tells_whose_it_is_and_no_key() -> None:
    assert made("keypair.delete", "end").payload == {"tenant_id": "6f70", "user_id": "fake", "key_name": "my-key"}


def test_event_without_an_older_form_is_not_told() -> None:
    assert made("flavor.create") is None and made("service.create") is None
