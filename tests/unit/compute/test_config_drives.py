"""When a guest's config drive is written, and with what in it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import MoveOrder
from nova.model.server.states import PowerState
from tests.fakes.compute import build_order, fence, guest_order

META = "openstack/latest/meta_data.json"


class Vendor:
    """``fails``: the services that are asked are away, and that is fatal."""

    def __init__(self) -> None:
        self.fails = False

    def static(self) -> dict[str, Any]:
        return {"cloud": "ours"}

    def dynamic(self, facts: Any) -> dict[str, Any]:
        if self.fails:
            raise errors.Unavailable("the vendordata service is away")
        return {"target": {"server": facts.uuid}}


@pytest.fixture
def vendor() -> Vendor:
    return Vendor()


@pytest.fixture
def world(make_world, vendor):
    made = make_world()
    made.vendor = vendor
    made.service = made.new_service()
    return made.start()


def order_of(tag: str | None = None, **fields: Any) -> Any:
    order = build_order(config_drive=True, **fields)
    return msgspec.structs.replace(order, interfaces=tuple(
        msgspec.structs.replace(one, tag=tag) for one in order.interfaces))


def file_of(world: Any, order: Any, path: str = META) -> Any:
    return json.loads(world.driver.hypervisor.inspect(order.server_uuid).config_drive[path])


def reboot(world: Any, order: Any, epoch: int = 2, **fields: Any) -> Any:
    return world.one("reboot_guests", guest_order(order, epoch, build=msgspec.structs.replace(order, **fields),
                                                  reboot="hard"))


def test_drive_when_built_then_it_has_the_vendors_data_and_the_password(world) -> None:
    order = order_of(admin_password="s3cret")
    assert world.build(order)[0].ok
    assert file_of(world, order)["admin_pass"] == "s3cret"
    assert file_of(world, order, "openstack/latest/vendor_data.json") == {"cloud": "ours"}
    assert file_of(world, order, "openstack/latest/vendor_data2.json") == {
        "static": {"cloud": "ours"}, "target": {"server": order.server_uuid}}


def test_drive_when_a_fatal_service_is_away_then_the_build_fails_and_nothing_is_left(world, vendor) -> None:
    vendor.fails, order = True, order_of()
    outcome = world.build(order)[0]
    assert not outcome.ok and "vendordata" in outcome.error_message
    assert world.driver.hypervisor.inspect(order.server_uuid) is None


def test_drive_when_rebooted_hard_then_it_tells_what_is_true_now_and_no_password(world) -> None:
    order = order_of(admin_password="s3cret", metadata={"a": "1"})
    assert world.build(order)[0].ok
    more = (*order.interfaces, msgspec.structs.replace(order.interfaces[0], id="v2", mac="fa:16:3e:00:00:02"))
    assert reboot(world, order, admin_password=None, metadata={"a": "2"}, interfaces=more).ok
    assert file_of(world, order)["meta"] == {"a": "2"} and "admin_pass" not in file_of(world, order)
    assert len(file_of(world, order, "openstack/latest/network_data.json")["links"]) == 2


def test_drive_when_it_cannot_be_made_anew_then_the_guest_starts_with_the_old_one(world, vendor) -> None:
    order = order_of(metadata={"a": "1"})
    assert world.build(order)[0].ok
    vendor.fails = True
    outcome = reboot(world, order, metadata={"a": "2"})
    assert outcome.ok and outcome.power_state == PowerState.RUNNING
    assert file_of(world, order)["meta"] == {"a": "1"}


def test_drive_when_there_is_none_then_a_reboot_writes_none(world) -> None:
    order = build_order()
    assert world.build(order)[0].ok and reboot(world, order).ok
    assert world.driver.hypervisor.inspect(order.server_uuid).config_drive == {}


def test_drive_when_the_guest_moved_then_it_is_made_anew_there(world) -> None:
    order = order_of(metadata={"a": "1"})
    assert world.build(order)[0].ok
    assert world.one("leave_guests", guest_order(order, 2, build=order)).ok
    after = msgspec.structs.replace(order, metadata={"a": "2"})
    move = MoveOrder(server_uuid=order.server_uuid, fence=fence(2), build=after)
    assert world.one("fetch_guests", move).ok and world.one("finish_guests", move).ok
    assert file_of(world, order)["meta"] == {"a": "2"}


# -- devices

def test_drive_when_a_card_is_tagged_then_it_says_where_it_is(world) -> None:
    order = order_of("front")
    assert world.build(order)[0].ok
    assert file_of(world,
                   order)["devices"] == [{"type": "nic", "bus": "pci", "address": "0000:00:03.0", "tags": ["front"],
                                          "mac": order.interfaces[0].mac, "vf_trusted": False}]
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
    places = world.service.device_places(world.host.name, order.server_uuid)
    assert places[order.interfaces[0].mac].address == "0000:00:03.0"


def test_drive_when_nothing_is_tagged_then_the_guest_is_defined_once(world) -> None:
    order = order_of()
    assert world.build(order)[0].ok
    assert "define" not in [call for call, *_ in world.driver.calls]
    assert file_of(world, order)["devices"] == []


@pytest.mark.parametrize("call", ["define", "start_new"])
def test_build_when_it_fails_after_the_guest_was_defined_for_its_drive_then_nothing_is_left(world, call) -> None:
    world.driver.knobs.fail_next(call)
    order = order_of("front")
    assert not world.build(order)[0].ok
    assert world.driver.hypervisor.inspect(order.server_uuid) is None


def test_places_when_there_is_no_guest_then_404(world) -> None:
    with pytest.raises(errors.NotFound):
        world.service.device_places(world.host.name, build_order().server_uuid)
