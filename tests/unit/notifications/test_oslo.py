"""Over oslo.messaging's own drivers: what the configuration turns on, and what goes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oslo_messaging.notify import _impl_test as memory

from nova import errors
from nova.notifications import oslo
from nova.notifications.message import Event
from nova.notifications.notifier import DisabledNotifier, Notifier
from tests.fakes import notifications as fakes
from tests.fakes.notifications import configured
from tests.fakes.small_cloud import until


@pytest.fixture
def sent() -> Iterator[Any]:
    """Messages of the library's driver for tests: its list is the module's."""
    memory.reset()
    yield lambda: memory.NOTIFICATIONS
    memory.reset()


@pytest.mark.parametrize("driver", [None, [], ["noop"], [""]])
def test_make_when_no_driver_is_named_then_it_is_silent(driver: Any) -> None:
    assert type(oslo.make(configured(driver=driver), "ctl")) is DisabledNotifier


def test_make_when_there_is_no_such_driver_then_it_refuses_and_names_those_there_are() -> None:
    with pytest.raises(errors.daemon.NotificationsNoSuchDriver, match="Known drivers: log, messaging, messagingv2"):
        oslo.make(configured(driver=["messagingv3"]), "ctl")


@pytest.mark.parametrize("given, forms", [("unversioned", ("unversioned",)), ("versioned", ("versioned",)),
                                          ("both", ("unversioned", "versioned"))])
def test_make_when_a_format_is_named_then_these_forms_go_out(given: str, forms: tuple[str, ...]) -> None:
    notifier = oslo.make(configured(driver=["test"], notification_format=given), "ctl")
    assert isinstance(notifier, Notifier) and notifier.options.forms == forms


def test_make_reads_the_other_options() -> None:
    options = oslo.make(configured(driver=["test"], default_publisher_id="cloud1", default_level="WARN",
                                   notify_on_state_change="vm_state", bdms_in_notifications=True), "ctl").options
    assert (options.host, options.level, options.state_changes, options.shows_disks) == (
        "cloud1", "WARN", "vm_state", True)
    assert oslo.make(configured(driver=["test"]), "ctl").options.host == "ctl"


def test_message_when_it_goes_out_then_envelope_and_context_are_whole(sent: Any) -> None:
    notifier = oslo.make(configured(driver=["test"], notification_format="both"), "ctl")
    notifier.tell(Event("keypair.create", "end", fakes.KEYPAIR, "ctl", who=fakes.WHO))
    until(lambda: not notifier.waiting, "it is sent")
    (context, old, level, _retry), (_context, new, _level, _) = sent()
    assert {"message_id", "publisher_id", "event_type", "priority", "payload", "timestamp"} == set(new)
    assert (old["event_type"], old["publisher_id"]) == ("keypair.create.end", "api.ctl")
    assert (new["publisher_id"], new["priority"], level) == ("nova-api:ctl", "INFO", "INFO")
    assert new["payload"]["nova_object.name"] == "KeypairPayload"
    assert (context["request_id"], context["tenant"]) == (fakes.WHO.request_id, "6f70")
    assert not any("token" in key for key in context)


def test_message_when_another_level_is_the_default_then_errors_stay_errors(sent: Any) -> None:
    notifier = oslo.make(configured(driver=["test"], notification_format="versioned", default_level="DEBUG"), "ctl")
    notifier.tell(Event("instance.create", "start", fakes.server(), "a"))
    notifier.tell(Event("instance.create", "error", fakes.server(), "a"))
    until(lambda: not notifier.waiting, "they are sent")
    assert [one[2] for one in sent()] == ["DEBUG", "ERROR"]


def test_topics_when_several_are_named_then_each_form_has_its_own() -> None:
    conf = configured(driver=["messagingv2"], notification_format="both",
                      versioned_notifications_topics=["billing", "audit"])
    outlet: Any = oslo.make(conf, "ctl").outlet
    assert {form: one._topics for form, one in outlet._notifiers.items()} == {
        "unversioned": ["notifications"], "versioned": ["billing", "audit"]}
