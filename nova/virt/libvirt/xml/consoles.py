"""A guest's screens and serial ports as libvirt's XML: made, read, and moved to another host. Pure.

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
#: SPICE's settings, each an element: its name (a field of SpiceSpec) -> the attribute that has the value
SPICE_DETAILS = {"image": "compression", "jpeg": "compression", "zlib": "compression", "playback": "compression",
                 "streaming": "mode"}


@dataclass(frozen=True, kw_only=True)
class GuestScreens:
    """What a host gives its guests. None: no such screen."""

    vnc: str | None = None  # the address that QEMU listens on
    spice: SpiceSpec | None = None


class ScreenPlace(NamedTuple):
    """Where a running guest's screen is served: None for what is not."""

    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None


# --- made

def add_serials(devices: Element, spec: GuestDevices) -> None:
    """The first port writes the console log, through virtlogd, which rotates it. (libvirt makes it the console.)"""
    for port in range(spec.serial_ports):
        device = add(devices, "serial")
        _put_line(device, spec.lines[port] if port < len(spec.lines) else None)
        if port == 0 and spec.console_log:
            add(device, "log", file=spec.console_log, append="off")
        add(device, "target", port=port)


def add_screen(devices: Element, spec: GuestDevices) -> None:
    """VNC, SPICE, or both; with them the video device, and the tablet that a pointer needs. Nothing where the spec has
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
    """The channel over which SPICE speaks with its agent in the guest."""
    channel = add(devices, "channel", type_="spicevmc")
    add(channel, "target", type_="virtio", name=SPICE_CHANNEL)


def _add_vnc(devices: Element, listen: str) -> None:
    graphics = add(devices, "graphics", type_="vnc", port=-1, autoport="yes")
    add(graphics, "listen", type_="address", address=listen)


def _add_spice(devices: Element, spec: SpiceSpec) -> None:
    """libvirt gives it a port, a TLS port, or both where qemu.conf has certificates for SPICE."""
    graphics = add(devices, "graphics", type_="spice", autoport="yes", defaultMode="secure" if spec.secure else None)
    add(graphics, "listen", type_="address", address=spec.listen)
    for name, attribute in SPICE_DETAILS.items():
        value = getattr(spec, name)
        if value is not None:
            add(graphics, name, **{attribute: value})


def _put_line(device: Element, line: SerialLine | None) -> None:
    """Say where a serial port (or the console that stands for it) is served; None: on a terminal of the host's. QEMU
    waits for nobody: what a guest says while nobody listens is in the log alone."""
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
    """Of a running guest, its screen of a kind (vnc, spice). None: it has none."""
    graphics = ET.fromstring(definition).find(f"devices/graphics[@type='{kind}']")
    if graphics is None:
        return None
    listen = graphics.find("listen[@type='socket']")
    path = graphics.get("socket") or (listen.get("socket") if listen is not None else None)
    return ScreenPlace(_number(graphics.get("port")), _number(graphics.get("tlsPort")), path)


def lines_of(definition: str) -> tuple[SerialLine | None, ...]:
    """Where the serial ports are served, in their order; None for those that are the host's own to open."""
    return tuple(_line(device) for device in ET.fromstring(definition).iterfind("devices/serial"))


def ports_of(definition: str) -> frozenset[int]:
    """Every TCP port that a definition's devices listen on; without reading all of it, as many are asked at once."""
    return frozenset(int(port[1]) for source in SOURCE.findall(definition) if LISTENS.search(source)
                     for port in [SERVICE.search(source)] if port)


def serials_of(definition: str) -> int:
    """How many serial ports a guest with that definition has."""
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
    """libvirt writes -1 or 0 for a port that is not there (yet)."""
    return int(text) if text and text.isdecimal() and int(text) > 0 else None


# --- moved

def put_screens(domain: Element, there: GuestScreens) -> None:
    """Give a running guest the screens of its destination. One without any gets none: libvirt would add devices."""
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
    for target in devices.findall(f"channel/target[@name='{SPICE_CHANNEL}']/.."):  # the guest goes on to see it
        agent = there.spice is not None and there.spice.agent
        target.set("type", "spicevmc" if agent else "null")


def put_lines(domain: Element, there: tuple[SerialLine, ...]) -> None:
    """Serve a running guest's serial ports where its destination says; those beyond, on terminals of that host's."""
    serials = domain.findall("devices/serial")
    lines = (*there, *(None for _ in serials))
    for device, line in zip(serials, lines, strict=False):
        _put_line(device, line)
    for console in domain.findall("devices/console/target[@type='serial']/.."):
        _put_line(console, lines[0])


def put_listen(graphics: Element, address: str) -> None:
    """Change where a ``graphics`` element listens: in its attribute and in each of its ``listen`` elements."""
    graphics.set("listen", address)
    for listen in graphics.iterfind("listen[@type='address']"):
        listen.set("address", address)
