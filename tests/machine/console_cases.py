"""Run by ``test_host_consoles.py`` inside a room: screens and serial ports of real guests, and what answers there."""

from __future__ import annotations

import dataclasses
import grp
import os
import pwd
import socket
import ssl
import struct
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from nova.model.guest.consoles import ConsoleType
from nova.model.guest.orders import BuildOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.interface import ConsoleEndpoint
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.settings.consoles import ConsoleSettings, SerialSettings
from nova.virt.libvirt.xml.arrival import ArrivalPaths, arrival_xml
from nova.virt.libvirt.xml.consoles import GuestScreens, lines_of
from nova.virt.libvirt.xml.specs import SerialLine, SpiceSpec
from tests.contract.driver_conformance import build, eventually, make_order, unbuild
from tests.contract.driver_console_cases import ConsoleCases, places
from tests.machine.libvirt_cases import GUEST, LibvirtRig, booted, booting, said

T = ConsoleType
SPICE, SERIAL = SpiceSpec(listen="127.0.0.1"), SerialSettings(first=31000, last=31019)
RUNNING = PowerState.RUNNING
TWO_PORTS = {"hw_serial_port_count": "2"}
#: SPICE 2.2's first message: a link to the main channel, without capabilities
LINK = struct.pack("<4sIII IBBIII", b"REDQ", 2, 2, 18, 0, 1, 0, 0, 0, 18)


class ConsoleRig(LibvirtRig):
    consoles = (T.NOVNC, T.SPICE_HTML5, T.SPICE_DIRECT, T.SERIAL)

    def set(self, consoles: ConsoleSettings, **changes) -> None:
        """A nova-compute that starts with another configuration."""
        self.driver.close()
        settings = dataclasses.replace(self.driver.tools.settings, consoles=consoles, **changes)
        self.driver = LibvirtDriver(settings)
        self.driver.connect()


@pytest.fixture(scope="session")
def room():
    state = Path("/run/nova")
    state.mkdir()
    for words in ("link add room0 type bridge", "address add 192.0.2.10/24 dev room0", "link set room0 up"):
        subprocess.run(["ip", *words.split()], check=True)  # SPICE listens on none where a host has no address at all
    made = ConsoleRig(state)
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def rig(room):
    room.set(ConsoleSettings(spice=SPICE, serial=SERIAL), vnc_listen="127.0.0.1")
    return room


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge, image=Image(id=make_order().image.id, disk_format="raw", properties=TWO_PORTS))
    yield made
    unbuild(rig, made)
    assert rig.left_over(made) == []


class TestConsolesOfLibvirt(ConsoleCases):
    pass


def connect(place: ConsoleEndpoint, port: int | None = None) -> socket.socket:
    if place.socket_path:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(10)
        line.connect(place.socket_path)
        return line
    return socket.create_connection((place.host or "127.0.0.1", port or place.port), 10)


def hear(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (more := line.recv(count - len(found))):
        found += more
    return found


def check_screens(rig: ConsoleRig, order: BuildOrder) -> None:
    found = places(rig, order)
    with connect(found[T.NOVNC]) as line:
        assert hear(line, 12) == b"RFB 003.008\n"
    with connect(found[T.SPICE_HTML5]) as line:
        line.sendall(LINK)
        assert hear(line, 4) == b"REDQ"


def xml_of(order: BuildOrder) -> str:
    return subprocess.run(["virsh", "dumpxml", order.server_uuid], capture_output=True, text=True, check=True).stdout


def type_at(line: socket.socket, text: str, expected: bytes, seconds: float = 60) -> bytes:
    """Type until what is expected is heard."""
    line.settimeout(1)
    heard, end = b"", time.monotonic() + seconds
    while expected not in heard and time.monotonic() < end:
        line.sendall(text.encode())
        try:
            while more := line.recv(4096):
                heard += more
        except TimeoutError:
            continue
    return heard


@booting
def test_guest_that_boots_is_at_all_its_addresses_and_its_log_is_kept(rig):
    image = Image(id="guest", disk_format="qcow2", container_format="bare", properties=TWO_PORTS)
    with booted(rig, {"guest": GUEST}, image=image) as order:
        assert eventually(lambda: said(rig, order, "login:"), 120)  # nobody has listened until now
        check_screens(rig, order)
        first, second = lines_of(xml_of(order))
        assert {first.port, second.port} <= set(range(31000, 31020)) and first.port != second.port
        with connect(places(rig, order)[T.SERIAL]) as line:
            assert b"login:" in type_at(line, "\n", b"login:")
        with connect(ConsoleEndpoint(host=second.host, port=second.port)) as line:
            line.sendall(b"\n")
        begin = time.monotonic()
        rig.driver.lifecycle.destroy(order.server_uuid)
        with pytest.raises(ConnectionRefusedError):
            connect(ConsoleEndpoint(host=first.host, port=first.port))
        assert rig.driver.lifecycle.start_new(order) == RUNNING
        assert time.monotonic() - begin < 30  # it waits for nobody to come to its serial ports
        check_screens(rig, order)
        connect(places(rig, order)[T.SERIAL]).close()
        assert eventually(lambda: said(rig, order, "login:"), 120)


def test_ports_that_other_programs_listen_on_are_skipped(rig, order):
    with socket.create_server(("127.0.0.1", 31000)), socket.create_server(("0.0.0.0", 31002)):
        rig.set(ConsoleSettings(serial=SERIAL))
        build(rig, order)
        assert [line.port for line in lines_of(xml_of(order))] == [31001, 31003]


def test_sockets_are_there_for_their_users_alone_and_go_with_the_guest(rig, order):
    folder = Path("/run/nova-serial")
    rig.set(ConsoleSettings(serial=SerialSettings(sockets=folder)))
    build(rig, order)
    place = rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL)
    assert place.socket_path == str(folder / f"{order.server_uuid}.0.sock") and place.port is None
    connect(place).close()
    facts = os.stat(place.socket_path)
    group = grp.getgrgid(facts.st_gid).gr_name
    assert (pwd.getpwuid(facts.st_uid).pw_name, facts.st_mode & 0o020, group) == ("libvirt-qemu", 0o020, "libvirt-qemu")
    assert facts.st_mode & 0o002 == 0 and folder.stat().st_mode & 0o777 == 0o711
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.lifecycle.start(order.server_uuid)
    connect(rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL)).close()
    rig.driver.lifecycle.destroy(order.server_uuid)
    assert list(folder.iterdir()) == []


SHAPES = {"all": GuestScreens(vnc="127.0.0.1", spice=SPICE), "vnc": GuestScreens(vnc="127.0.0.1"),
          "spice": GuestScreens(spice=SPICE),
          "none": GuestScreens()}


@pytest.mark.parametrize(("here", "there"), [("all", "none"), ("all", "vnc"), ("all", "spice"), ("vnc", "all"),
                                             ("spice", "vnc"), ("none", "all")])
def test_guest_goes_on_with_the_consoles_of_another_host(rig, order, here, there):
    """As it would there: libvirt compares what the guest sees, and QEMU reads its memory back."""
    rig.set(ConsoleSettings(spice=SHAPES[here].spice, serial=SERIAL if here == "all" else None),
            vnc_listen=SHAPES[here].vnc)
    build(rig, order)
    folder = str(rig.instances / order.server_uuid)
    lines = (SerialLine("127.0.0.1", 31010), SerialLine("127.0.0.1", 31011)) if there == "all" else ()
    text = arrival_xml(rig.driver.tools.hypervisor.migratable_xml(order.server_uuid), folder,
                       ArrivalPaths(folder=folder, screens=SHAPES[there], lines=lines, placement=None))
    Path("/run/arrival.xml").write_text(text)
    for words in (("save", order.server_uuid, "/run/memory"),
                  ("restore", "/run/memory", "--xml", "/run/arrival.xml")):
        done = subprocess.run(["virsh", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING
    expected = {kind for kind in ("vnc", "spice") if here != "none" and getattr(SHAPES[there], kind)}
    assert {kind for kind in ("vnc", "spice") if f"<graphics type='{kind}'" in xml_of(order)} == expected
    if there == "all":
        assert rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL).port == 31010
        connect(rig.driver.remote_consoles.console_of(order.server_uuid, T.SERIAL)).close()
    if there == "all" and here != "none":
        rig.consoles = ConsoleRig.consoles
        check_screens(rig, order)


def restart_libvirtd() -> None:
    found = subprocess.run(["pgrep", "-x", "libvirtd"], capture_output=True, text=True, check=True).stdout.split()
    (pid,) = (one for one in found if Path(f"/proc/{one}/exe").exists())  # but for those that nobody has buried yet
    os.kill(int(pid), 15)
    assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 20)
    with open("/run/libvirtd-2.log", "w") as log:
        subprocess.Popen(["libvirtd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    assert eventually(lambda: subprocess.run(["virsh", "list"], capture_output=True, check=False).returncode == 0, 20)


@pytest.fixture
def certificates():
    """QEMU has certificates for SPICE; libvirtd has read that."""
    folder, conf = Path("/run/spice-pki"), Path("/etc/libvirt/qemu.conf")
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=room",
                    "-keyout", str(folder / "server-key.pem"), "-out", str(folder / "server-cert.pem")],
                   check=True, capture_output=True)
    (folder / "ca-cert.pem").write_text((folder / "server-cert.pem").read_text())
    for path in folder.iterdir():
        path.chmod(0o644)
    before = conf.read_text()
    conf.write_text(f'{before}spice_tls = 1\nspice_tls_x509_cert_dir = "{folder}"\n')
    restart_libvirtd()
    yield folder
    conf.write_text(before)
    restart_libvirtd()


def test_spice_that_must_be_secure_speaks_tls_alone(rig, order, certificates):
    rig.set(ConsoleSettings(spice=dataclasses.replace(SPICE, secure=True, image="auto_glz", streaming="off")))
    build(rig, order)
    place = rig.driver.remote_consoles.console_of(order.server_uuid, T.SPICE_DIRECT)
    assert place.port is None and place.tls_port
    context = ssl.create_default_context(cafile=str(certificates / "ca-cert.pem"))
    context.check_hostname = False
    with context.wrap_socket(connect(place, place.tls_port)) as line:
        line.sendall(LINK)
        assert hear(line, 4) == b"REDQ"


def test_guest_with_a_qxl_screen_starts(rig):
    order = make_order(rig.bridge, image=Image(id=make_order().image.id, disk_format="raw",
                                               properties={"hw_video_model": "qxl", "hw_qemu_guest_agent": "yes"}))
    rig.set(ConsoleSettings(spice=SPICE), vnc_listen=None)
    try:
        assert build(rig, msgspec.structs.replace(order, config_drive=False)) == RUNNING
        assert "<model type='qxl'" in xml_of(order) and "com.redhat.spice.0" in xml_of(order)
    finally:
        unbuild(rig, order)
