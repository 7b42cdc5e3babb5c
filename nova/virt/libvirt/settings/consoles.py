"""Operators' settings for guests' screens and serial ports."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from nova import errors
from nova.conf.serial_console import SerialConsoleOptions
from nova.conf.spice import SpiceOptions
from nova.virt.libvirt.xml.specs import SpiceSpec

LOG = logging.getLogger(__name__)

FIRST, LAST = 10000, 20000  # the default of [serial_console]port_range
LONGEST_FOLDER = 60  # characters: a socket's path may have 107, and its name takes 42


@dataclass(frozen=True, kw_only=True)
class SerialSettings:
    """Settings of serial ports: served on ``listen``, on the ports ``first`` to ``last``; or (``sockets``) on unix
    sockets in a directory."""

    listen: str = "127.0.0.1"
    first: int = FIRST
    last: int = LAST
    sockets: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    """Settings of consoles; None: guests have no such console. (VNC settings are in LibvirtSettings itself.)"""

    spice: SpiceSpec | None = None
    serial: SerialSettings | None = None


def console_settings_of(spice: SpiceOptions, serial: SerialConsoleOptions) -> ConsoleSettings:
    """Return the settings from ``[spice]`` and ``[serial_console]``. Raises config.LibvirtConsole."""
    return ConsoleSettings(spice=_spice(spice) if spice.enabled else None,
                           serial=_serial(serial) if serial.enabled else None)


def _spice(group: SpiceOptions) -> SpiceSpec:
    return SpiceSpec(
        listen=str(group.server_listen), secure=group.require_secure, agent=group.agent_enabled,
        image=group.image_compression, jpeg=group.jpeg_compression, zlib=group.zlib_compression,
        playback={True: "on", False: "off", None: None}[group.playback_compression], streaming=group.streaming_mode)


def _serial(group: SerialConsoleOptions) -> SerialSettings:
    first, last = ports_of(group.port_range)
    sockets = Path(group.socket_dir).absolute() if group.socket_dir else None
    if sockets is not None and len(str(sockets).encode()) > LONGEST_FOLDER:
        raise errors.config.LibvirtConsole(option="[serial_console]socket_dir", reason="it must have at most "
                                           f"{LONGEST_FOLDER} characters, or the socket paths become too long")
    return SerialSettings(listen=str(group.proxyclient_address), first=first, last=last, sockets=sockets)


def ports_of(text: str) -> tuple[int, int]:
    """Return first and last port, from "10000:20000"; the default ones if the text is not a valid port range."""
    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text)
    first, last = (int(number) for number in match.groups()) if match else (0, 0)
    if 0 < first <= last < 65536:
        return first, last
    LOG.warning("[serial_console]port_range = %s is not a port range (first:last); using %d:%d", text, FIRST, LAST)
    return FIRST, LAST
