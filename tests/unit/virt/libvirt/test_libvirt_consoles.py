"""Consoles of the libvirt driver on fake hypervisors: where they are, and what becomes of them in moves."""

from __future__ import annotations

import dataclasses
import shutil

import msgspec
import pytest

from nova import errors
from nova.model.guest.consoles import ConsoleType
from nova.model.guest.orders import Fence, RescueOrder
from nova.model.image.images import Image
from nova.virt.libvirt import LibvirtDriver, from_conf
from nova.virt.libvirt.guest import serial_ports
from nova.virt.libvirt.settings.consoles import ConsoleSettings, SerialSettings
from nova.virt.libvirt.xml.consoles import lines_of
from nova.virt.libvirt.xml.specs import SerialLine, SpiceSpec
from tests.contract.driver_conformance import IMAGE_ID, build, make_order, unbuild
from tests.contract.driver_console_cases import ConsoleCases, places
from tests.contract.driver_move_cases import move_order, off_and_left, prepared
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.libvirt.test_libvirt_driver import conf_of
from tests.unit.virt.libvirt.test_libvirt_moves import MoveRig, two

pytestmark = [pytest.mark.one_in(2), pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-img", "qemu-io", "xorrisofs", "qemu-storage-daemon"))),
    reason="needs qemu-img, qemu-io, qemu-storage-daemon and xorrisofs")]

T = ConsoleType
ALL = (T.NOVNC, T.XVPVNC, T.SPICE_HTML5, T.SPICE_DIRECT, T.SERIAL)


def consoles_of(first: int, last: int | None = None, **spice) -> ConsoleSettings:
    return ConsoleSettings(spice=SpiceSpec(listen="127.0.0.1", **spice),
                           serial=SerialSettings(first=first, last=last or first + 4))


class Host(MoveRig):
    """Its ports are taken to be free: nobody else's are of interest here."""

    def __init__(self, path, links, consoles: ConsoleSettings, types=ALL, **changes) -> None:
        super().__init__(path, links, **changes)
        self.consoles = types
        self.set(consoles)

    def set(self, consoles: ConsoleSettings, **changes) -> None:
        """A nova-compute that starts with another configuration."""
        settings = dataclasses.replace(self.driver.tools.settings, consoles=consoles, **changes)
        self.driver = LibvirtDriver(settings, self.hypervisor)
        self.driver.connect()


@pytest.fixture
def rig(tmp_path, links, monkeypatch):
    monkeypatch.setattr(serial_ports, "is_free", lambda address, port: True)
    made = two(Host(tmp_path / "a", links, consoles_of(10000)), Host(tmp_path / "b", links, consoles_of(20000)))
    yield made
    for host in (made, made.other):
        host.close()


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge)
    yield made
    for host in (rig, rig.other):
        unbuild(host, made)


def serial(order, count: int):
    return msgspec.structs.replace(
        order, flavor=msgspec.structs.replace(order.flavor, extra_specs={"hw:serial_port_count": str(count)}))


class TestConsolesOfLibvirt(ConsoleCases):
    pass


def test_places_are_what_libvirt_says_of_the_running_guest(rig, order):
    rig.hypervisor.spice_tls = True
    build(rig, order)
    found = places(rig, order)
    assert (found[T.NOVNC].port, found[T.NOVNC].host) == (5900, None) and found[T.XVPVNC] == found[T.NOVNC]
    assert (found[T.SPICE_HTML5].port, found[T.SPICE_HTML5].tls_port) == (5901, 5902)
    assert (found[T.SERIAL].host, found[T.SERIAL].port) == ("127.0.0.1", 10000)


def test_spice_that_must_be_secure_has_a_tls_port_alone(rig, order):
    rig.set(consoles_of(10000))
    build(rig, order)
    rig.set(consoles_of(10000, secure=True))
    with pytest.raises(errors.guest.NoSuchConsole, match="TLS only"):  # it was made before
        rig.driver.remote_consoles.console_of(order.server_uuid, T.SPICE_DIRECT)
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.lifecycle.start_new(order)
    found = rig.driver.remote_consoles.console_of(order.server_uuid, T.SPICE_DIRECT)
    assert found.port is None and found.tls_port
    rig.set(consoles_of(10000))
    with pytest.raises(errors.guest.NoSuchConsole, match="without TLS"):
        rig.driver.remote_consoles.console_of(order.server_uuid, T.SPICE_HTML5)


def test_driver_when_its_qemu_has_no_spice_then_it_says_so_at_start(rig):
    text = rig.hypervisor.domain_capabilities("x86_64", None, "qemu")
    devices = "<graphics><enum name='type'><value>vnc</value></enum></graphics></devices>"
    rig.hypervisor.domain_capabilities = lambda *_arguments: text.replace("</devices>", devices)
    with pytest.raises(errors.config.Libvirt, match=r"\[spice\]enabled.*has no SPICE"):
        rig.set(consoles_of(10000))


def test_serial_port_that_listens_everywhere_is_at_the_hosts_address(rig, order):
    rig.set(ConsoleSettings(serial=SerialSettings(listen="0.0.0.0")))
    build(rig, order)
    assert rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL).host is None


def test_serial_port_on_a_socket_is_found_and_its_folder_is_made(rig, order, tmp_path):
    rig.set(ConsoleSettings(serial=SerialSettings(sockets=tmp_path / "s")))
    build(rig, order)
    found = rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL)
    assert found.socket_path == str(tmp_path / f"s/{order.server_uuid}.0.sock")
    assert (tmp_path / "s").is_dir()


def test_guest_that_runs_and_has_no_port_yet_is_a_conflict(rig, order):
    build(rig, order)
    rig.hypervisor.shy = True
    with pytest.raises(errors.Conflict, match="is not running"):
        rig.driver.remote_consoles.console_of(order.server_uuid, T.NOVNC)


def test_guest_from_before_the_option_was_switched_on_is_a_conflict_until_it_starts_anew(rig, order):
    rig.set(ConsoleSettings(), vnc_listen=None)
    build(rig, order)
    rig.set(consoles_of(10000), vnc_listen="127.0.0.1")
    for kind in ALL:
        with pytest.raises(errors.guest.NoSuchConsole, match="Stop and start it to add the console"):
            rig.driver.remote_consoles.console_of(order.server_uuid, kind)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.lifecycle.start_new(order)
    assert set(places(rig, order)) == set(ALL)


def test_webmks_is_not_supported(rig, order):
    build(rig, order)
    with pytest.raises(errors.host.NoSuchConsole):
        rig.driver.remote_consoles.console_of(order.server_uuid, T.WEBMKS)


def test_build_when_the_range_is_exhausted_then_the_host_is_refused_and_nothing_is_left(rig, order):
    rig.set(consoles_of(10000, 10000))
    build(rig, order)
    second = make_order(rig.bridge)
    with pytest.raises(errors.host.NoSerialPort):
        build(rig, second)
    unbuild(rig, second)
    assert rig.left_over(second) == []
    unbuild(rig, order)
    assert build(rig, second)
    unbuild(rig, second)


def test_four_serial_ports_have_four_ports(rig, order):
    build(rig, serial(order, 4))
    assert [line.port for line in lines_of(rig.hypervisor.xml[order.server_uuid])] == [10000, 10001, 10002, 10003]


def test_guest_that_left_and_is_put_aside_has_no_ports(rig, order):
    build(rig, serial(order, 4))
    off_and_left(rig, order)
    second = make_order(rig.bridge)
    build(rig, serial(second, 4))
    unbuild(rig, second)


# --- moves

def moved(rig, order):
    rig.driver.live_moves.migrate(prepared(rig, order, rig.other), lambda percent, amounts: None, lambda: False)
    return rig.other.driver.live_moves.finish_arrival(move_order(order))


def test_guest_that_comes_has_its_ports_from_the_preparation_on_and_keeps_them(rig, order):
    order = serial(order, 2)
    build(rig, order)
    live_order = prepared(rig, order, rig.other)
    again = prepared(rig, order, rig.other)
    assert live_order.arrival.facts["lines"] == again.arrival.facts["lines"]
    folder = rig.other.driver.tools.folders.of(order.server_uuid)
    assert folder.reserved_ports() == (20000, 20001)
    neighbour = make_order(rig.bridge)
    build(rig.other, neighbour)
    assert rig.other.driver.remote_consoles.console_of(neighbour.server_uuid, T.SERIAL).port == 20002
    rig.driver.live_moves.migrate(again, lambda percent, amounts: None, lambda: False)
    rig.other.driver.live_moves.finish_arrival(move_order(order))
    assert folder.reserved_ports() == ()
    running, kept = rig.other.hypervisor.definitions()[order.server_uuid]
    for text in (running, kept):
        assert [line.port for line in lines_of(text)] == [20000, 20001]
    unbuild(rig.other, neighbour)


def test_guest_that_never_comes_leaves_its_ports(rig, order):
    build(rig, order)
    prepared(rig, order, rig.other)
    unbuild(rig.other, order)
    assert rig.other.left_over(order) == []
    second = make_order(rig.bridge)
    build(rig.other, serial(second, 4))
    unbuild(rig.other, second)
    assert build(rig.other, serial(second, 3))
    unbuild(rig.other, second)


def test_arrival_when_the_range_is_exhausted_there_then_the_host_is_refused_and_nothing_stays(rig, order):
    build(rig, order)
    rig.other.set(consoles_of(20000, 20000))
    neighbour = make_order(rig.bridge)
    build(rig.other, neighbour)
    with pytest.raises(errors.host.NoSerialPort):
        prepared(rig, order, rig.other)
    assert not (rig.other.root / order.server_uuid).exists()
    unbuild(rig.other, neighbour)


def test_guest_that_moves_to_a_host_without_consoles_runs_and_has_none_until_it_is_back_and_made_anew(rig, order):
    build(rig, order)
    rig.other.set(ConsoleSettings(), vnc_listen=None)
    moved(rig, order)
    for kind in ALL:
        with pytest.raises(errors.guest.NoSuchConsole):
            rig.other.driver.remote_consoles.console_of(order.server_uuid, kind)
    rig.other.other = rig
    unbuild(rig, order)
    moved(rig.other, order)
    assert rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL).port
    with pytest.raises(errors.guest.NoSuchConsole):  # it has no screen any more, and can't be given one while it runs
        rig.driver.remote_consoles.console_of(order.server_uuid, T.NOVNC)
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.lifecycle.start_new(order)
    assert set(places(rig, order)) == set(ALL)


def test_guest_that_moves_from_a_host_with_vnc_alone_has_all_at_once(rig, order):
    rig.set(ConsoleSettings())
    build(rig, order)
    moved(rig, order)
    assert set(places(rig.other, order)) == set(ALL)


def test_arrival_from_a_source_of_an_older_release_then_the_orders_count_of_ports_is_reserved(rig, order):
    order = serial(order, 3)
    build(rig, order)
    source = rig.driver.live_moves.describe(order.server_uuid)
    old = msgspec.structs.replace(source, facts={name: value for name, value in source.facts.items()
                                                 if name != "serials"})
    arrival = rig.other.driver.live_moves.prepare_arrival(move_order(order, old), rig.other.images)
    lines = msgspec.json.decode(arrival.facts["lines"], type=tuple[SerialLine, ...])
    assert [line.port for line in lines] == [20000, 20001, 20002]


def test_driver_of_a_file_has_its_consoles(tmp_path):
    conf = conf_of(tmp_path, "[spice]\nenabled = True\n[serial_console]\nenabled = True\nport_range = 7:9\n")
    found = from_conf(conf, "h").tools.settings
    assert (found.consoles.spice.listen, found.consoles.serial.first, found.vnc_listen) == ("127.0.0.1", 7, "127.0.0.1")
    assert settings().consoles == ConsoleSettings()


def test_guest_that_comes_on_shared_storage_has_its_ports_reserved_by_its_own_host(tmp_path, links):
    shared = tmp_path / "shared"
    rig = two(Host(tmp_path / "a", links, consoles_of(10000), shared=shared),
              Host(tmp_path / "b", links, consoles_of(20000), shared=shared))
    order = make_order(rig.bridge)
    build(rig, order)
    folders = [host.driver.tools.folders.of(order.server_uuid) for host in (rig, rig.other)]
    prepared(rig, order, rig.other)
    assert [folder.reserved_ports() for folder in folders] == [(), (20000,)]
    unbuild(rig.other, order)
    assert [folder.reserved_ports() for folder in folders] == [(), ()]
    assert rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL).port == 10000
    moved(rig, order)
    # not at once what was just left
    assert rig.other.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL).port == 20001
    assert list((shared / order.server_uuid).glob("ports*")) == []
    for host in (rig, rig.other):
        unbuild(host, order)
        host.close()


def test_guest_rescued_and_back_has_consoles_all_the_time(rig, order):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.rescuing.rescue(RescueOrder(
        server_uuid=order.server_uuid, instance_name=order.instance_name, fence=Fence(operation_id=2, epoch=4),
        build=order, image=Image(id=IMAGE_ID, disk_format="raw")), rig.images, None)
    assert set(places(rig, order)) == set(ALL)
    rig.driver.rescuing.unrescue(order)
    assert set(places(rig, order)) == set(ALL)
