"""What payloads make of a server: the values, where the contract tests look at shapes."""

from __future__ import annotations

from typing import Any

import pytest

from nova.notifications import versioned
from nova.notifications.facts import Failure
from nova.notifications.message import Event
from nova.notifications.payloads.fields import Payload, PayloadField
from tests.fakes import notifications as fakes


def data(name: str, subject: Any, phase: str = "end") -> dict[str, Any]:
    payload = versioned.message(Event(name, phase, subject, "h"), "INFO").payload
    return dict(payload["nova_object.data"])


def test_server_shows_what_its_row_says() -> None:
    shown = data("instance.create", fakes.server())
    assert (shown["tenant_id"], shown["host_name"], shown["state"]) == ("6f70", "some-server", "active")
    assert (shown["power_state"], shown["architecture"], shown["locked"]) == ("running", "x86_64", False)
    assert shown["flavor"]["nova_object.data"]["projects"] is None
    address = shown["ip_addresses"][0]["nova_object.data"]
    assert (address["address"], address["device_name"]) == ("192.168.1.3", "tapce531f90-19")
    key = shown["keypairs"][0]["nova_object.data"]
    assert len(key["fingerprint"].split(":")) == 16 and key["name"] == "my-key"


def test_server_when_it_is_gone_then_it_is_deleted_without_addresses() -> None:
    shown = data("instance.delete", fakes.server(fakes.server_row(deleted=1, power_state=0, deleted_at=fakes.AT)))
    assert (shown["state"], shown["power_state"], shown["ip_addresses"]) == ("deleted", "pending", [])
    assert shown["deleted_at"] == "2012-10-29T13:42:11Z"


def test_server_when_it_has_no_image_and_no_key_then_these_are_empty() -> None:
    row = fakes.server_row(image=None, image_id="", key_name=None, public_key=None)
    shown = data("instance.create", fakes.server(row))
    assert (shown["architecture"], shown["os_type"], shown["keypairs"], shown["image_uuid"]) == (None, None, [], "")


@pytest.mark.parametrize("key, kind", [("ssh-rsa not*base64", "ssh"), ("MIIB", "x509"), (None, "ssh")])
def test_keypair_when_its_key_has_no_md5_then_the_fingerprint_is_null(key: str | None, kind: str) -> None:
    shown = data("instance.create", fakes.server(fakes.server_row(public_key=key, key_type=kind)))
    assert shown["keypairs"][0]["nova_object.data"]["fingerprint"] is None


def test_block_devices_when_not_asked_for_then_null() -> None:
    assert data("instance.create", fakes.server(shows_disks=False))["block_devices"] is None
    assert len(data("instance.create", fakes.server())["block_devices"]) == 1


def test_payloads_when_a_row_holds_secrets_then_they_are_in_none() -> None:
    for name in ("instance.create", "instance.update", "instance.exists", "scheduler.select_destinations",
                 "compute_task.build_instances"):
        phase = {"instance.create": "end", "scheduler.select_destinations": "start",
                 "compute_task.build_instances": "error"}.get(name, "")
        assert "SECRET" not in str(data(name, fakes.subject(name), phase)), name


def test_failure_when_it_was_raised_then_its_place_is_told_and_no_value() -> None:
    def fails(password: str) -> None:
        raise ValueError("it failed")
    with pytest.raises(ValueError) as caught:
        fails("hunter" + str(2))
    failure = Failure.of(caught.value)
    assert (failure.exception, failure.message, failure.function) == ("ValueError", "it failed", "fails")
    assert "ValueError: it failed" in failure.traceback and "hunter2" not in failure.traceback


def test_failure_when_it_came_as_an_answer_then_the_step_is_its_place() -> None:
    failure = Failure.of(ValueError("x"), where="BuildGuests", trace="as the host said")
    assert (failure.function, failure.traceback) == ("BuildGuests", "as the host said")


def test_forced_host_is_told_as_such_and_an_asked_one_as_a_destination() -> None:
    asked = data("scheduler.select_destinations", fakes.SPEC)
    assert asked["requested_destination"]["nova_object.data"]["host"] == "b" and asked["force_hosts"] is None
    assert asked["retry"]["nova_object.data"] == {"num_attempts": 1, "hosts": ["a"]}
    assert asked["scheduler_hints"] == {"group": ["g1"]}
    forced = type(fakes.SPEC)(fakes.server_row(), 2, {"host": "b", "forced": True})
    shown = data("scheduler.select_destinations", forced)
    assert (shown["force_hosts"], shown["requested_destination"], shown["num_instances"]) == ("b", None, 2)


def test_payload_with_a_field_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="has a twice"):
        Payload("X", "1.0", PayloadField("a", "a"), PayloadField("a", "b"))
