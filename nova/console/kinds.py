"""The kinds of console proxies, as data: console types, listening address, and entry pages of each."""

from __future__ import annotations

from typing import NamedTuple

from nova.model.guest.consoles import ConsoleType

T = ConsoleType


class ConsoleKind(NamedTuple):
    """A kind of console proxy. ``host`` and ``port`` are options of ``[section]``."""

    binary: str
    about: str  # for --help
    section: str
    host: str
    port: str
    types: tuple[ConsoleType, ...]
    flag: str  # of `openstack console url show`
    web: str = ""  # the default directory of its pages; empty: it has only nova's own
    entries: tuple[str, ...] = ()  # the entry pages for users, below the web directory
    channels: int = 1  # connections that one page opens
    exclusive: bool = False  # QEMU serves one client here: a newer session ends the older one
    secures: bool = False  # VNC's security types may have to be negotiated with the host


NOVNC = ConsoleKind(
    binary="nova-novncproxy",
    about="Serve noVNC's pages, and relay browsers to the VNC screens of servers.", flag="--novnc",
    section="vnc", host="novncproxy_host", port="novncproxy_port", types=(T.NOVNC,), web="/usr/share/novnc",
    entries=("vnc_auto.html", "vnc_lite.html", "vnc.html"), secures=True)
SPICE = ConsoleKind(
    binary="nova-spicehtml5proxy",
    about="Serve the pages of spice-html5, and relay browsers to the SPICE screens of servers.",
    flag="--spice",
    section="spice", host="html5proxy_host", port="html5proxy_port", types=(T.SPICE_HTML5,),
    web="/usr/share/spice-html5", entries=("spice_auto.html", "spice.html"), channels=8)
SERIAL = ConsoleKind(
    binary="nova-serialproxy", about="Serve a terminal page, and relay browsers and programs to the serial ports of "
                                     "servers over WebSocket.",
    flag="--serial",
    section="serial_console", host="serialproxy_host", port="serialproxy_port", types=(T.SERIAL,), exclusive=True)
XVPVNC = ConsoleKind(
    binary="nova-xvpvncproxy", about="Relay the OpenStack-specific VNC viewer to the screens of servers.",
    flag="--xvpvnc",
    section="vnc", host="xvpvncproxy_host", port="xvpvncproxy_port", types=(T.XVPVNC,))

KINDS = {kind.binary: kind for kind in (NOVNC, SPICE, SERIAL, XVPVNC)}
