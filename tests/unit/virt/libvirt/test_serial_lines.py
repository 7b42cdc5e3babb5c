"""Which ports guests' serial ports get: never one that another has or somebody listens on."""

from __future__ import annotations

import socket
import threading
import time
import uuid

import pytest

from nova import errors
from nova.model.server.states import PowerState
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.guest.serial_ports import SerialPortAllocator, is_free
from nova.virt.libvirt.settings.consoles import SerialSettings, console_settings_of, ports_of
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.test_libvirt_driver import conf_of

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN


class Host:
    """``busy``: ports that other programs listen on."""

    def __init__(self, path, first=10, last=15, busy=(), sockets=None, hypervisor=None) -> None:
        self.hypervisor, self.busy = hypervisor or FakeHypervisor(), set(busy)
        self.folders = Folders(path / "instances")
        settings = SerialSettings(listen="127.0.0.1", first=first, last=last, sockets=sockets)
        self.lines = SerialPortAllocator(settings, self.hypervisor, self.folders,
                                         lambda address, port: port not in self.busy)

    def define(self, server_uuid: str, count: int = 1, power: PowerState = SHUTDOWN) -> tuple[int, ...]:
        """As the driver does."""
        with self.lines.choose(server_uuid, count) as lines:
            ports = "".join(f'<serial type="tcp"><source mode="bind" host="{line.host}" service="{line.port}" />'
                            "</serial>" for line in lines)
            self.hypervisor.define(f"<domain><uuid>{server_uuid}</uuid><devices>{ports}</devices></domain>")
            self.hypervisor.power[server_uuid] = power
        return tuple(line.port for line in lines)


def uuids(count: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(count)]


@pytest.fixture
def host(tmp_path) -> Host:
    return Host(tmp_path)


def test_choose_when_guests_are_off_then_their_ports_are_still_theirs(host):
    assert [host.define(one, 2) for one in uuids(3)] == [(10, 11), (12, 13), (14, 15)]


def test_choose_when_the_range_is_exhausted_then_the_option_is_named_and_a_port_freed_helps(host):
    first, second, third, fourth = uuids(4)
    for one in (first, second, third):
        host.define(one, 2)
    with pytest.raises(errors.host.NoSerialPort, match=r"\[serial_console\]port_range = 10:15"):
        host.define(fourth)
    host.hypervisor.undefine(second)
    assert host.define(fourth, 2) == (12, 13)


def test_choose_when_the_same_guest_is_defined_again_then_it_keeps_its_ports(host):
    first, second = uuids(2)
    host.define(first, 2)
    host.define(second)
    assert [host.define(first, count) for count in (2, 1, 3)] == [(10, 11), (10,), (10, 13, 14)]


def test_choose_when_another_program_has_the_guests_port_then_it_gets_another_unless_it_runs_there_itself(host):
    (first,) = uuids(1)
    host.define(first)
    host.busy = {10}
    host.hypervisor.power[first] = RUNNING
    assert host.define(first, power=SHUTDOWN) == (10,)
    assert host.define(first) == (11,)


def test_choose_when_a_port_is_listened_on_then_it_is_skipped(tmp_path):
    assert Host(tmp_path, busy=(10, 12)).define(uuids(1)[0], 2) == (11, 13)


def test_choose_when_a_port_was_left_then_the_others_are_given_first(host):
    first, second, third = uuids(3)
    host.define(first)
    host.hypervisor.undefine(first)
    assert host.define(second) == (11,)
    assert host.define(third, 5) == (12, 13, 14, 15, 10)


def test_choose_when_the_range_has_changed_then_a_new_definition_is_within_it(tmp_path):
    (first,) = uuids(1)
    host = Host(tmp_path)
    host.define(first, power=RUNNING)
    new = Host(tmp_path, first=30, last=33, hypervisor=host.hypervisor)
    assert new.define(first) == (30,)


def test_choose_when_a_running_guest_was_given_others_for_its_next_start_then_both_are_taken(host):
    first, second = uuids(2)
    host.define(first, power=RUNNING)
    running = host.hypervisor.xml[first]
    changed = running.replace('service="10"', 'service="12"')
    both = {first: type(host.hypervisor.definitions()[first])(running, changed)}
    host.hypervisor.definitions = lambda: both
    with host.lines.choose(second, 3) as lines:
        assert [line.port for line in lines] == [11, 13, 14]


def test_choose_when_ports_are_reserved_for_one_that_comes_then_they_are_its_own(host):
    first, coming = uuids(2)
    folder = host.folders.of(coming)
    folder.make()
    with host.lines.choose(coming, 2) as lines:
        folder.reserve_ports(tuple(line.port for line in lines))
    assert host.define(first) == (12,) and host.define(coming, 2) == (10, 11)
    folder.reserve_ports(())
    host.hypervisor.undefine(coming)
    assert folder.reserved_ports() == () and host.define(uuids(1)[0], 5) == (13, 14, 15, 10, 11)


class AskedSlowly(set):
    """Lets other threads go on between the look at a port and the choice of it."""

    def __contains__(self, port: object) -> bool:
        time.sleep(0.001)
        return super().__contains__(port)


def test_choose_when_many_are_defined_at_once_then_no_two_have_the_same(tmp_path):
    host, found = Host(tmp_path, first=100, last=139), []
    host.busy = AskedSlowly()
    threads = [threading.Thread(target=lambda one=one: found.extend(host.define(one, 2))) for one in uuids(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(100, 140))


def test_choose_when_defining_fails_then_the_lock_is_open_and_nothing_is_kept(host):
    first, second = uuids(2)
    with pytest.raises(ZeroDivisionError), host.lines.choose(first, 6):
        raise ZeroDivisionError
    assert len(host.define(second, 6)) == 6


def test_choose_when_serial_ports_are_not_served_then_there_are_none(host):
    with SerialPortAllocator(None, host.hypervisor, host.folders).choose(uuids(1)[0], 4) as lines:
        assert lines == ()


def test_choose_when_there_is_a_folder_for_sockets_then_each_port_has_one_and_they_go_with_the_guest(tmp_path):
    host, (first,) = Host(tmp_path, sockets=tmp_path / "run" / "serial"), uuids(1)
    with host.lines.choose(first, 2) as lines:
        assert [line.path for line in lines] == [str(tmp_path / f"run/serial/{first}.{n}.sock") for n in (0, 1)]
    assert (tmp_path / "run" / "serial").stat().st_mode & 0o777 == 0o711
    (tmp_path / "run" / "serial" / f"{first}.0.sock").touch()
    other = tmp_path / "run" / "serial" / f"{uuids(1)[0]}.0.sock"
    other.touch()
    host.lines.clear(first)
    assert list((tmp_path / "run" / "serial").iterdir()) == [other]


def test_choose_when_the_folder_for_sockets_cannot_be_made_then_the_option_is_named(tmp_path):
    (tmp_path / "file").touch()
    host = Host(tmp_path, sockets=tmp_path / "file" / "serial")
    with (pytest.raises(errors.host.SerialSockets, match=r"\[serial_console\]socket_dir"),
          host.lines.choose(uuids(1)[0], 1)):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_is_free_when_somebody_listens_then_not_and_else_it_is(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind((address, 0))
        listening.listen()
        port = listening.getsockname()[1]
        assert is_free(address, port) is False
    assert is_free(address, port) is True


def test_is_free_when_the_address_is_not_this_hosts_then_the_option_is_named():
    with pytest.raises(errors.host.SerialAddress, match=r"\[serial_console\]proxyclient_address = 192.0.2.1"):
        is_free("192.0.2.1", 10000)


# --- what operators set

@pytest.mark.parametrize(("text", "expected"), [
    ("10:20", (10, 20)), (" 10 : 10 ", (10, 10)), ("1:65535", (1, 65535)),
    *((text, (10000, 20000)) for text in ("20:10", "0:5", "10:65536", "10", "a:b", "", "10:20:30"))])
def test_ports_of_a_text_that_is_no_range_are_the_default_and_that_is_said(text, expected, caplog):
    assert ports_of(text) == expected
    assert ("port_range" in caplog.text) == (expected == (10000, 20000))


def read(tmp_path, text: str):
    conf = conf_of(tmp_path, text)
    return console_settings_of(conf.spice, conf.serial_console)


def test_settings_of_an_empty_file_are_none(tmp_path):
    assert read(tmp_path, "") == console_settings_of(*2 * [type("Off", (), {"enabled": False})])
    assert read(tmp_path, "").spice is None and read(tmp_path, "").serial is None


def test_settings_follow_the_file(tmp_path):
    found = read(tmp_path, "[spice]\nenabled = True\nserver_listen = 10.0.0.1\nrequire_secure = True\nagent_enabled = "
                           "False\nimage_compression = glz\nplayback_compression = False\nstreaming_mode = all\n"
                           "[serial_console]\nenabled = True\nport_range = 30:40\nproxyclient_address = 10.0.0.2\n"
                           "socket_dir = /run/nova-serial\n")
    spice, serial = found.spice, found.serial
    assert (spice.listen, spice.secure, spice.agent, spice.image, spice.jpeg, spice.playback, spice.streaming) == (
        "10.0.0.1", True, False, "glz", None, "off", "all")
    assert (serial.listen, serial.first, serial.last, str(serial.sockets)) == ("10.0.0.2", 30, 40, "/run/nova-serial")


def test_settings_whose_range_is_none_are_those_of_the_default(tmp_path, caplog):
    found = read(tmp_path, "[serial_console]\nenabled = True\nport_range = all of them\n").serial
    assert (found.first, found.last) == (10000, 20000) and "all of them" in caplog.text


def test_settings_with_a_folder_whose_sockets_names_would_be_too_long_are_refused(tmp_path):
    with pytest.raises(errors.config.LibvirtConsole, match="socket_dir"):
        read(tmp_path, f"[serial_console]\nenabled = True\nsocket_dir = /{'x' * 80}\n")
