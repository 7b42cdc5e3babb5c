"""Interfaces plugged into libvirt's guests while they run: waits, repeats, failures in between."""

from __future__ import annotations

import msgspec
import pytest

from nova import errors
from nova.virt.libvirt import vifs
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.xml.domain import domain_xml
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.contract.driver_hotplug_cases import another, attach, detach, plug_order
from tests.fakes.clocks import QuickClock
from tests.unit.virt.libvirt.test_libvirt_driver import Rig


@pytest.fixture
def quick(tmp_path, links):
    """A rig whose guests have little time to give up a device."""
    made = Rig(tmp_path, links, clock=QuickClock(), detach_attempts=3, detach_timeout_s=20)
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def guest(quick):
    order = make_order(quick.bridge)
    build(quick, order)
    yield order
    unbuild(quick, order)


def has(rig, order, one) -> tuple[bool, bool]:
    """Whether the guest has it as it runs, and as it starts next."""
    found = rig.hypervisor.definitions_of(order.server_uuid)
    return one.mac in (found.running or ""), one.mac in found.kept


def test_detach_when_the_guest_does_not_hear_at_first_then_it_is_asked_again(quick, guest):
    extra = another(quick.bridge)
    attach(quick.driver, guest, extra)
    quick.hypervisor.why_not_receiving = 2
    detach(quick.driver, guest, extra)
    assert quick.hypervisor.asked_for == 3 and has(quick, guest, extra) == (False, False)


def test_detach_when_the_guest_never_gives_it_up_then_it_keeps_all_of_it(quick, guest):
    extra = another(quick.bridge)
    attach(quick.driver, guest, extra)
    quick.links.devices.add(vifs.tap_name(extra))
    quick.hypervisor.why_not_receiving = 99
    with pytest.raises(errors.guest.KeepsInterface, match=extra.id):
        detach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (True, True) and vifs.tap_name(extra) in quick.links.devices
    quick.hypervisor.why_not_receiving = 0
    detach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (False, False) and vifs.tap_name(extra) not in quick.links.devices


def test_detach_when_a_newer_order_comes_then_it_is_given_up(quick, guest):
    extra = another(quick.bridge)
    attach(quick.driver, guest, extra)
    quick.hypervisor.why_not_receiving = 99
    with pytest.raises(errors.guest.DetachStopped):
        quick.driver.hot_plug.detach_interface(plug_order(guest, extra, False), lambda: True)
    assert has(quick, guest, extra) == (True, True)


def test_attach_when_the_hypervisor_refuses_then_nothing_of_it_is_left(quick, guest):
    extra = another(quick.bridge)
    quick.links.devices.add(vifs.tap_name(extra))
    quick.hypervisor.plug_fails = "no more PCI slots"
    with pytest.raises(errors.HostRefused, match="no more PCI slots"):
        attach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (False, False) and vifs.tap_name(extra) not in quick.links.devices
    attach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (True, True)


def test_attach_when_its_bridge_is_missing_then_nothing_of_it_is_left(quick, guest):
    extra = msgspec.structs.replace(another("br-missing"), should_create_bridge=False)
    with pytest.raises(errors.HostRefused, match="br-missing"):
        attach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (False, False)
    with pytest.raises(errors.HostRefused):
        attach(quick.driver, guest, msgspec.structs.replace(extra, type="hw_veb"))


def test_attach_when_half_of_it_was_done_then_its_repetition_does_the_rest(quick, guest):
    extra = another(quick.bridge)
    attach(quick.driver, guest, extra)
    text = vifs_xml(quick, guest, extra)
    quick.hypervisor.detach_device(guest.server_uuid, text, True)
    assert has(quick, guest, extra) == (False, True)
    attach(quick.driver, guest, extra)
    assert has(quick, guest, extra) == (True, True)


def vifs_xml(rig, order, one) -> str:
    return f'<interface type="bridge"><mac address="{one.mac}"/></interface>'


def test_detach_when_the_ports_owner_changed_it_meanwhile_then_what_was_plugged_goes_all_the_same(quick, guest):
    extra = another(quick.bridge)
    attach(quick.driver, guest, extra)
    quick.links.devices.add(vifs.tap_name(extra))
    changed = msgspec.structs.replace(extra, type="ovs", vnic_type="direct", bridge=None)
    detach(quick.driver, guest, changed)
    assert has(quick, guest, extra) == (False, False) and vifs.tap_name(extra) not in quick.links.devices


def test_host_when_a_guests_port_makes_no_sense_any_more_then_it_starts_and_its_other_guests_live_on(
        quick, guest, tmp_path, links):
    """A user may change what kind of port it is while the guest has it; the host's start must not care."""
    broken = make_order(quick.bridge)
    build(quick, broken)
    folder = quick.driver.tools.folders.of(broken.server_uuid)  # as a later order of the conductor's would leave it
    changed = [msgspec.structs.replace(one, type="ovs", vnic_type="direct", bridge=None) for one in broken.interfaces]
    folder.keep_order(msgspec.structs.replace(broken, interfaces=tuple(changed)))
    again = Rig(tmp_path, links)
    again.hypervisor = quick.hypervisor
    again.driver = type(quick.driver)(quick.driver.tools.settings, quick.hypervisor)
    again.driver.connect()
    try:
        assert {one.server_uuid for one in again.driver.guests()} == {guest.server_uuid, broken.server_uuid}
        again.driver.diagnosis.diagnostics(broken.server_uuid)
        again.driver.image_users.images_in_use(), again.driver.packed.packings(), again.driver.nodes()
        again.driver.lifecycle.shut_down(guest.server_uuid, 0)
        assert again.driver.lifecycle.start_new(guest)
        with pytest.raises(errors.HostRefused):
            again.driver.interfaces.plug(folder.order())
        unbuild(again, folder.order())
        assert again.left_over(broken) == []
    finally:
        again.driver.close()


def test_guest_whose_switch_reads_its_memory_when_it_is_made_then_that_is_shared(quick, guest):
    socket = msgspec.structs.replace(another(quick.bridge), type="vhostuser", details={"vhostuser_socket": "/run/v"})
    order = msgspec.structs.replace(guest, interfaces=(socket,))
    tools = quick.driver.tools
    spec = guest_spec(order, (), quick.root, tools.host.facts(), tools.settings)
    assert spec.placement.shared_memory and not guest_spec(guest, (), quick.root, tools.host.facts(),
                                                           tools.settings).placement.shared_memory
    text = domain_xml(spec)
    assert '<memoryBacking>' in text and 'type="memfd"' in text and 'mode="shared"' in text
