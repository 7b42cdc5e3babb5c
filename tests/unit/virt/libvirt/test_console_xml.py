"""Screens and serial ports in a guest's XML: made, read, and as they are at its destination. Nothing but values."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.settings.consoles import ConsoleSettings
from nova.virt.libvirt.xml.arrival import ArrivalPaths, arrival_xml
from nova.virt.libvirt.xml.consoles import GuestScreens, lines_of, ports_of, screen_of, serials_of
from nova.virt.libvirt.xml.domain import domain_xml
from nova.virt.libvirt.xml.specs import SerialLine, SpiceSpec
from tests.unit.virt.libvirt.orders import DISKS, FOLDER, able, flavor, image, order, settings

GOLDEN = Path(__file__).parent / "golden"
SPICE = SpiceSpec(listen="10.0.0.1")
EVERY = SpiceSpec(listen="10.0.0.1", secure=True, agent=False, image="auto_glz", jpeg="never", zlib="always",
                  playback="off", streaming="filter")
TCP = tuple(SerialLine("10.0.0.1", port) for port in (10000, 10001, 10002, 10003))
UNIX = (SerialLine(path="/run/nova/serial/5f1c.0.sock"), SerialLine(path="/run/nova/serial/5f1c.1.sock"))


def xml_of(lines=(), ports=1, spice=None, properties=None, **changes) -> str:
    asked = order(flavor=flavor(extra_specs={"hw:serial_port_count": str(ports)}), image=image(**properties or {}))
    spec = guest_spec(asked, DISKS[:1], FOLDER, able(), settings(consoles=ConsoleSettings(spice=spice), **changes))
    return domain_xml(replace(spec, devices=replace(spec.devices, lines=tuple(lines))))


def devices_of(*args, **kwargs) -> ET.Element:
    return ET.fromstring(xml_of(*args, **kwargs)).find("devices")


GOLDENS = {
    "console-spice.xml": {"spice": SPICE, "vnc_listen": None, "properties": {"hw_video_model": "qxl"}},
    "console-spice-secure.xml": {"spice": EVERY, "vnc_listen": None},
    "console-vnc-and-spice.xml": {"spice": SPICE, "properties": {"hw_qemu_guest_agent": "yes"}},
    "console-serial-tcp.xml": {"lines": TCP[:1]},
    "console-serial-tcp-four.xml": {"lines": TCP, "ports": 4},
    "console-serial-unix.xml": {"lines": UNIX, "ports": 2},
}


@pytest.mark.parametrize("name", GOLDENS)
def test_guest_with_consoles_becomes_the_golden_xml(name):
    made = xml_of(**GOLDENS[name])
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        (GOLDEN / name).write_text(made)
    assert made == (GOLDEN / name).read_text()


def test_guest_without_any_screen_has_no_video_and_no_tablet():
    devices = devices_of(vnc_listen=None)
    assert devices.find("graphics") is None and devices.find("video") is None and devices.find("input") is None
    assert devices.find("serial").get("type") == "pty"


def test_guest_with_spice_alone_has_a_video_device_and_a_tablet():
    devices = devices_of(spice=SPICE, vnc_listen=None)
    assert devices.find("video/model").get("type") == "virtio" and devices.find("input").get("type") == "tablet"


def test_log_is_the_first_ports_whatever_serves_it():
    for lines in ((), TCP, UNIX):
        logs = [device.find("log") is not None for device in devices_of(lines, ports=2).iterfind("serial")]
        assert logs == [True, False]


RUNNING = """
<domain type="qemu" id="7"><uuid>5f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11</uuid><devices>
  <serial type="tcp"><source mode="bind" host="10.0.0.1" service="10007" tls="no"/><protocol type="raw"/>
    <log file="/srv/a/5f/console.log" append="off"/><target type="isa-serial" port="0"/><alias name="serial0"/></serial>
  <serial type="pty"><source path="/dev/pts/4"/><target type="isa-serial" port="1"/></serial>
  <console type="tcp"><source mode="bind" host="10.0.0.1" service="10007" tls="no"/><protocol type="raw"/>
    <target type="serial" port="0"/></console>
  <channel type="unix"><source mode="bind" path="/run/agent"/><target type="virtio" name="org.qemu.guest_agent.0"/>
  </channel>
  <channel type="spicevmc"><target type="virtio" name="com.redhat.spice.0" state="disconnected"/></channel>
  <graphics type="vnc" port="5904" autoport="yes" listen="10.0.0.1">
    <listen type="address" address="10.0.0.1"/></graphics>
  <graphics type="spice" port="5905" tlsPort="5906" autoport="yes" listen="10.0.0.1">
    <listen type="address" address="10.0.0.1"/><image compression="off"/></graphics>
  <video><model type="virtio"/></video><input type="tablet" bus="usb"/>
</devices></domain>"""


def test_places_of_a_running_guest_are_read():
    assert screen_of(RUNNING, "vnc") == (5904, None, None) and screen_of(RUNNING, "spice") == (5905, 5906, None)
    assert lines_of(RUNNING) == (SerialLine("10.0.0.1", 10007), None) and serials_of(RUNNING) == 2
    assert ports_of(RUNNING) == {10007} == ports_of(RUNNING.replace('"', "'"))
    assert ports_of(xml_of(TCP, ports=4)) == {10000, 10001, 10002, 10003} and ports_of(xml_of(UNIX, ports=2)) == set()
    assert ports_of('<source service="7" mode="bind" host="h"/><source mode="connect" service="8"/>') == {7}


@pytest.mark.parametrize(("old", "new", "found"), [
    ('port="5904"', 'port="-1"', (None, None, None)), ('port="5904"', "", (None, None, None)),
    ('port="5904"', 'socket="/run/vnc.sock"', (None, None, "/run/vnc.sock")),
    ('<listen type="address" address="10.0.0.1"/></graphics>', '<listen type="socket" socket="/run/x"/></graphics>',
     (5904, None, "/run/x")),
    ('type="vnc"', 'type="sdl"', None)])
def test_screen_without_a_port_is_read_as_what_it_is(old, new, found):
    assert screen_of(RUNNING.replace(old, new, 1), "vnc") == found


@pytest.mark.parametrize(("old", "new"), [
    ('service="10007"', 'service=""'), ('mode="bind" host', 'mode="connect" host'),
    ('<serial type="tcp">', '<serial type="udp">')])
def test_serial_port_that_is_no_listener_is_none_of_ours(old, new):
    assert lines_of(RUNNING.replace(old, new)) == (None, None)


# --- at its destination

def arrived(text: str = RUNNING, **places) -> ET.Element:
    return ET.fromstring(arrival_xml(text, "/srv/a/5f", ArrivalPaths(folder="/srv/b/5f", **places))).find("devices")


def channel_of(devices: ET.Element) -> str:
    return devices.find("channel/target[@name='com.redhat.spice.0']/..").get("type")


def test_arrival_where_all_is_on_then_each_is_the_destinations():
    devices = arrived(screens=GuestScreens(vnc="10.0.0.2", spice=replace(EVERY, listen="10.0.0.2", agent=True)),
                      lines=(SerialLine("10.0.0.2", 10100), SerialLine(path="/run/s.sock")))
    assert "10.0.0.1" not in ET.tostring(devices, encoding="unicode")
    first, second = devices.findall("serial")
    for device in (first, devices.find("console")):
        assert (device.get("type"), device.find("source").attrib) == (
            "tcp", {"mode": "bind", "host": "10.0.0.2", "service": "10100"})
    assert first.find("log").get("file") == "/srv/b/5f/console.log" and first.find("target").get("port") == "0"
    assert (second.get("type"), second.find("source").attrib) == ("unix", {"mode": "bind", "path": "/run/s.sock"})
    vnc, spice = devices.findall("graphics")
    assert vnc.get("listen") == vnc.find("listen").get("address") == spice.find("listen").get("address") == "10.0.0.2"
    assert (spice.get("defaultMode"), spice.get("port"), spice.find("image").get("compression")) == (
        "secure", None, "auto_glz")
    assert channel_of(devices) == "spicevmc"


def test_arrival_where_all_is_off_then_terminals_and_no_screen_and_the_guest_sees_the_same_devices():
    devices = arrived(screens=GuestScreens())
    assert devices.find("graphics") is None and channel_of(devices) == "null"
    assert devices.find("video") is not None and devices.find("input") is not None
    for device in (*devices.findall("serial"), devices.find("console")):
        assert device.get("type") == "pty" and device.find("source") is None and device.find("protocol") is None


@pytest.mark.parametrize("there", [GuestScreens(vnc="10.0.0.2"), GuestScreens(spice=replace(SPICE, listen="10.0.0.2")),
                                   GuestScreens(vnc="10.0.0.2", spice=replace(SPICE, listen="10.0.0.2"))])
@pytest.mark.parametrize("here", ["vnc", "spice", "both"])
def test_arrival_of_a_guest_with_a_screen_then_it_has_those_of_the_destination(here, there):
    domain = ET.fromstring(RUNNING)
    devices = domain.find("devices")
    for graphics in devices.findall("graphics"):
        if here not in ("both", graphics.get("type")):
            devices.remove(graphics)
    found = arrived(ET.tostring(domain, encoding="unicode"), screens=there)
    assert {one.get("type") for one in found.iterfind("graphics")} == {
        kind for kind in ("vnc", "spice") if getattr(there, kind)}
    assert {one.find("listen").get("address") for one in found.iterfind("graphics")} == {"10.0.0.2"}


def test_arrival_of_a_guest_without_a_screen_then_it_gets_none():
    domain = ET.fromstring(RUNNING)
    for graphics in domain.findall("devices/graphics"):
        domain.find("devices").remove(graphics)
    found = arrived(ET.tostring(domain, encoding="unicode"), screens=GuestScreens(vnc="10.0.0.2", spice=SPICE))
    assert found.find("graphics") is None


def test_arrival_at_a_host_of_an_older_release_then_vnc_alone_and_terminals():
    found = arrived(vnc_listen="10.0.0.2")
    (graphics,) = found.findall("graphics")
    assert (graphics.get("type"), graphics.get("listen")) == ("vnc", "10.0.0.2") and channel_of(found) == "null"
    assert {device.get("type") for device in found.iterfind("serial")} == {"pty"}


def test_arrival_of_a_guest_that_had_lost_its_agents_channel_then_it_is_back():
    gone = arrived(screens=GuestScreens(vnc="10.0.0.2"))
    text = f"<domain>{ET.tostring(gone, encoding='unicode')}</domain>"
    assert channel_of(arrived(text, screens=GuestScreens(vnc="10.0.0.3", spice=SPICE))) == "spicevmc"
