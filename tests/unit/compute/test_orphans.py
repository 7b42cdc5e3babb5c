"""What a host tells of what is in no record, and what it removes when it is told to."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.compute import orphans
from nova.model.guest.orders import ExpectedGuest
from nova.model.guest.orphans import FoundOrphan, OrphanKind, OrphanRemoval, OrphanReport
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, build_order

GUEST = OrphanKind.GUEST


def scan(world: Any, times: int = 1, ask: bool = False) -> list[OrphanReport]:
    for _ in range(times):
        world.service._orphans.scan(ask)
    return [call.said[-1] for call in world.conductor.done if call.name == "report_strangers"]


def expected(order: Any) -> ExpectedGuest:
    return ExpectedGuest(server_uuid=order.server_uuid, instance_name=order.instance_name, epoch=1, vm_state="active",
                         power_state=PowerState.RUNNING)


def removal(order: Any, epoch: int = 1, **fields: Any) -> OrphanRemoval:
    return OrphanRemoval(kind=GUEST, server_uuid=order.server_uuid, epoch=epoch, **fields)


@pytest.fixture
def orphan(world: Any) -> Any:
    """A guest that is in no record, beside one that is."""
    known, strange = build_order(number=1), build_order(number=2)
    world.build(known, strange)
    world.conductor.expected = (expected(known),)
    return strange


def there(world: Any, order: Any) -> bool:
    return order.server_uuid in {guest.server_uuid for guest in world.driver.guests()}


def test_look_when_a_guest_is_in_no_record_twice_then_it_is_told_once_and_again_when_it_changed(world, orphan):
    assert [report.found for report in scan(world)] == [()]  # it may be in the middle of something
    reports = scan(world, 3)
    assert reports[1:] == [OrphanReport(host=HOST, found=(FoundOrphan(
        kind=GUEST, server_uuid=orphan.server_uuid, power_state=PowerState.RUNNING, epoch=1),))]
    world.driver.lifecycle.shut_down(orphan.server_uuid, 0)
    assert scan(world)[-1].found[0].power_state == PowerState.SHUTDOWN
    world.conductor.expected += (expected(orphan),)
    assert scan(world)[-1].found == ()
    assert there(world, orphan)


def test_look_when_the_conductor_is_away_then_it_is_told_the_next_time(world, orphan):
    scan(world)
    world.conductor.given(report_strangers=errors.Unavailable("away"))
    with pytest.raises(errors.Unavailable):
        scan(world)
    world.conductor.given(report_strangers=())
    assert [one.server_uuid for one in scan(world)[-1].found] == [orphan.server_uuid]


def test_look_when_the_conductor_is_older_then_nothing_happens(world, orphan):
    world.conductor.given(report_strangers=errors.PeerTooOld("old"))
    assert scan(world, 3) == [] and there(world, orphan)


def test_look_when_an_order_works_on_it_then_it_is_no_stranger(world, orphan):
    with world.service._orders.alone(orphan.server_uuid):
        assert scan(world, 3)[-1].found == ()


def test_removal_when_the_conductor_names_it_then_that_guest_goes_and_no_other(world, orphan):
    scan(world, 2)
    world.conductor.given(report_strangers=(removal(orphan),))
    scan(world, ask=True)
    assert not there(world, orphan) and len(world.driver.guests()) == 1
    world.conductor.given(report_strangers=())
    assert scan(world)[-1].found == ()  # said at once
    assert world.service._fences.known(orphan.server_uuid).destroyed == 1


def test_removal_when_a_newer_order_came_meanwhile_then_it_stays(world, orphan, caplog):
    scan(world, 2)
    world.service._fences.note(orphan.server_uuid, 9)
    world.conductor.given(report_strangers=(removal(orphan, epoch=1),))
    scan(world, ask=True)
    assert there(world, orphan) and "keeping the orphan" in caplog.text


def test_removal_when_it_names_what_was_not_reported_then_it_stays(world, orphan):
    scan(world, 2)
    everybody = {guest.server_uuid for guest in world.driver.guests()}
    known = world.conductor.expected[0]
    world.conductor.given(report_strangers=(removal(known), removal(build_order(number=7))))
    scan(world, ask=True)
    assert {guest.server_uuid for guest in world.driver.guests()} == everybody and len(everybody) == 2


def test_removal_when_its_server_is_elsewhere_then_its_disks_are_kept(world, orphan):
    scan(world, 2)
    world.conductor.given(report_strangers=(removal(orphan, keep_disks=True),))
    scan(world, ask=True)
    assert world.driver.hypervisor.inspect(orphan.server_uuid).disks
    assert world.driver.lifecycle.power_state(orphan.server_uuid) is None


@pytest.mark.parametrize("call", ["destroy", "remove_disks"])
def test_removal_when_it_fails_then_it_is_logged_and_done_when_asked_for_again(world, orphan, call, caplog):
    scan(world, 2)
    world.driver.knobs.fail_next(call, name=orphan.server_uuid)
    world.conductor.given(report_strangers=(removal(orphan),))
    scan(world, ask=True)
    assert "could not remove an orphaned guest" in caplog.text
    scan(world, ask=True)
    scan(world, ask=True)
    assert not there(world, orphan)


def test_look_when_there_are_more_than_a_report_takes_then_the_rest_is_counted(world, orphan, monkeypatch):
    monkeypatch.setattr(orphans, "MOST_ORPHANS", 1)  # guests take a while to build
    world.build(build_order(number=3))
    report = scan(world, 2)[-1]
    assert len(report.found) == 1 and report.more == 1


def test_order_to_look_when_it_is_anothers_then_refused(world):
    with pytest.raises(errors.NovaError):
        world.service.look_for_strangers("another")


def test_kept_guest_then_it_is_the_newest_order_without_what_the_first_boot_alone_needs(world: Any) -> None:
    order = build_order(number=1, admin_password="secret", user_data="c2VjcmV0")
    world.build(order)
    kept = world.service.kept_guest(HOST, order.server_uuid)
    assert (kept.order.name, kept.order.interfaces, kept.power_state) == (order.name, order.interfaces,
                                                                          PowerState.RUNNING)
    assert kept.order.admin_password is None and kept.order.user_data is None
    with pytest.raises(errors.NotFound):
        world.service.kept_guest(HOST, build_order(number=2).server_uuid)
    with pytest.raises(errors.host.Misaddressed):
        world.service.kept_guest("another", order.server_uuid)
    world.driver.kept_orders = None
    with pytest.raises(errors.NotSupported):
        world.service.kept_guest(HOST, order.server_uuid)
