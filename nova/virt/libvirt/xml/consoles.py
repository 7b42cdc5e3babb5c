"""A guest's screens and serial ports as libvirt's XML: built, read, and changed for another host. Pure.

https://libvirt.org/formatdomain.html (graphical framebuffers; consoles, serial, parallel & channel devices)
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import NamedTuple

from nova.virt.libvirt.xml.build import Element, add
from nova.virt.libvirt.xml.specs import GuestDevices, SerialLine, SpiceSpec

SPICE_CHANNEL = "com.redhat.spice.0"
SOURCE, LISTENS = re.compile(r"<source\s[^>]*>"), re.compile(r"""\smode=(["'])bind\1""")
SERVICE = re.compile(r"""\sservice=["'](\d{1,5})["']""")
#: SPICE's settings, each an element: its name (a field of SpiceSpec) -> the attribute with the value
SPICE_DETAILS = {"image": "compression", "jpeg": "compression", "zlib": "compression", "playback": "compression",
                 "streaming": "mode"}


@dataclass(frozen=True, kw_only=True)
class GuestScreens:
    """The screens that a host gives its guests. None: no such screen."""

    vnc: str | None = None  # the address that QEMU listens on
    spice: SpiceSpec | None = None


class ScreenPlace(NamedTuple):
    """The addresses at which a running guest's screen is served; an unused one is None."""

    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None


# --- build

def add_serials(devices: Element, spec: GuestDevices) -> None:
    """Add the serial ports. The first writes the console log through virtlogd, which rotates it. (libvirt makes it the
    console.)"""
    for port in range(spec.serial_ports):
        device = add(devices, "serial")
        _put_line(device, spec.lines[port] if port < len(spec.lines) else None)
        if port == 0 and spec.console_log:
            add(device, "log", file=spec.console_log, append="off")
        add(device, "target", port=port)


def add_screen(devices: Element, spec: GuestDevices) -> None:
    """Add VNC, SPICE, or both; with them the video device, and the tablet for a pointer. Does nothing if the spec has
    none."""
    if spec.vnc_listen:
        _add_vnc(devices, spec.vnc_listen)
    if spec.spice is not None:
        _add_spice(devices, spec.spice)
    if spec.video_model:
        vram = spec.video_ram_mb * 1024 if spec.video_ram_mb else None
        add(add(devices, "video"), "model", type_=spec.video_model, vram=vram)
    if spec.pointer_bus:
        add(devices, "input", type_="tablet", bus=spec.pointer_bus)


def add_spice_agent(devices: Element) -> None:
    """Add the channel between SPICE and its agent in the guest."""
    channel = add(devices, "channel", type_="spicevmc")
    add(channel, "target", type_="virtio", name=SPICE_CHANNEL)


def _add_vnc(devices: Element, listen: str) -> None:
    graphics = add(devices, "graphics", type_="vnc", port=-1, autoport="yes")
    add(graphics, "listen", type_="address", address=listen)


def _add_spice(devices: Element, spec: SpiceSpec) -> None:
    """Add a SPICE screen. libvirt chooses a port, a TLS port, or both if qemu.conf has certificates for SPICE."""
    graphics = add(devices, "graphics", type_="spice", autoport="yes", defaultMode="secure" if spec.secure else None)
    add(graphics, "listen", type_="address", address=spec.listen)
    for name, attribute in SPICE_DETAILS.items():
        value = getattr(spec, name)
        if value is not None:
            add(graphics, name, **{attribute: value})


def _put_line(device: Element, line: SerialLine | None) -> None:
    """Set where a serial port (or its console alias) is served; None: on a terminal of the host. QEMU does not wait for
    a client: output without a client is only in the log."""
    for tag in ("source", "protocol"):
        for old in device.findall(tag):
            device.remove(old)
    device.attrib.pop("tty", None)
    if line is None:
        device.set("type", "pty")
    elif line.path:
        device.set("type", "unix")
        add(device, "source", mode="bind", path=line.path)
    else:
        device.set("type", "tcp")
        add(device, "source", mode="bind", host=line.host, service=line.port)
        add(device, "protocol", type_="raw")


# --- read

def screen_of(definition: str, kind: str) -> ScreenPlace | None:
    """Return a running guest's screen of a kind (vnc, spice); None if it has none."""
    graphics = ET.fromstring(definition).find(f"devices/graphics[@type='{kind}']")
    if graphics is None:
        return None
    listen = graphics.find("listen[@type='socket']")
    path = graphics.get("socket") or (listen.get("socket") if listen is not None else None)
    return ScreenPlace(_number(graphics.get("port")), _number(graphics.get("tlsPort")), path)


def lines_of(definition: str) -> tuple[SerialLine | None, ...]:
    """Return where the serial ports are served, in order; None for those on a terminal of the host."""
    return tuple(_line(device) for device in ET.fromstring(definition).iterfind("devices/serial"))


def ports_of(definition: str) -> frozenset[int]:
    """Return every TCP port that a definition's devices listen on; a text scan, because it runs over many
    definitions."""
    return frozenset(int(port[1]) for source in SOURCE.findall(definition) if LISTENS.search(source)
                     for port in [SERVICE.search(source)] if port)


def serials_of(definition: str) -> int:
    """Return the number of serial ports in a guest's definition."""
    return len(ET.fromstring(definition).findall("devices/serial"))


def _line(device: Element) -> SerialLine | None:
    source = device.find("source")
    if source is None or source.get("mode") != "bind":
        return None
    if device.get("type") == "unix":
        return SerialLine(path=source.get("path", ""))
    port = _number(source.get("service"))
    return SerialLine(source.get("host", ""), port) if device.get("type") == "tcp" and port else None


def _number(text: str | None) -> int | None:
    """Return a port number; None for libvirt's -1 or 0 (no port yet)."""
    return int(text) if text and text.isdecimal() and int(text) > 0 else None


# --- change

def put_screens(domain: Element, there: GuestScreens) -> None:
    """Give a running guest its destination's screens. A guest without any gets none: libvirt would have to add
    devices."""
    devices = domain.find("devices")
    if devices is None or devices.find("graphics") is None:
        return
    for graphics in devices.findall("graphics"):
        if graphics.get("type") == "vnc" and there.vnc:
            put_listen(graphics, there.vnc)
        else:
            devices.remove(graphics)
    if there.vnc and devices.find("graphics[@type='vnc']") is None:
        _add_vnc(devices, there.vnc)
    if there.spice is not None:
        _add_spice(devices, there.spice)
    for target in devices.findall(f"channel/target[@name='{SPICE_CHANNEL}']/.."):  # it must stay visible to the guest
        agent = there.spice is not None and there.spice.agent
        target.set("type", "spicevmc" if agent else "null")


def put_lines(domain: Element, there: tuple[SerialLine, ...]) -> None:
    """Serve a running guest's serial ports where its destination says; the rest on terminals of that host."""
    serials = domain.findall("devices/serial")
    lines = (*there, *(None for _ in serials))
    for device, line in zip(serials, lines, strict=False):
        _put_line(device, line)
    for console in domain.findall("devices/console/target[@type='serial']/.."):
        _put_line(console, lines[0])


def put_listen(graphics: Element, address: str) -> None:
    """Change the address on which a ``graphics`` element listens: its attribute and each of its ``listen`` elements."""
    graphics.set("listen", address)
    for listen in graphics.iterfind("listen[@type='address']"):
        listen.set("address", address)
