"""Addresses of guests' serial ports on this host: TCP ports of a range, or unix sockets.

Port allocations are not stored: the guests' definitions have them, also of guests that are off; for an arriving guest,
its folder has the reserved ones. So a port is free again when its guest is removed, by any program.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable, Iterator

from nova import errors, failures
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.hypervisor import Definitions, LibvirtHypervisor
from nova.virt.libvirt.settings.consoles import SerialSettings
from nova.virt.libvirt.xml.consoles import lines_of, ports_of
from nova.virt.libvirt.xml.specs import SerialLine
from nova.virt.listings import files_of

LOG = logging.getLogger(__name__)

Lines = tuple[SerialLine, ...]


def is_free(address: str, port: int) -> bool:
    """Return whether no process listens there. Raises host.SerialAddress."""
    try:
        family, kind, protocol, _name, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like QEMU
            tried.bind(where)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        raise errors.host.SerialAddress(address=address, reason=error.strerror or str(error)) from error
    return True


class SerialPortAllocator:
    """Allocator of serial ports. ``settings`` None: they are not served. ``free``: see :func:`is_free`."""

    def __init__(self, settings: SerialSettings | None, hypervisor: LibvirtHypervisor, folders: Folders,
                 free: Callable[[str, int], bool] | None = None) -> None:
        self._settings, self._hypervisor, self._folders, self._free = settings, hypervisor, folders, free or is_free
        self._lock = threading.Lock()
        self._last = 0  # the last allocated port

    @contextlib.contextmanager
    def choose(self, server_uuid: str, count: int) -> Iterator[Lines]:
        """Yield the addresses of a guest's ``count`` serial ports: its current ones if possible. They are locked until
        the end of the block; by then they must be in the guest's definition, or reserved. Raises host.NoSerialPort,
        host.SerialAddress."""
        settings = self._settings
        if settings is None or not count:
            yield ()
        elif settings.sockets is not None:
            yield self._sockets(server_uuid, count)
        else:
            with self._lock:
                yield self._ports(settings, server_uuid, count)

    def clear(self, server_uuid: str) -> None:
        """Remove the sockets of a guest that is gone, if libvirt left any."""
        if self._settings is not None and self._settings.sockets is not None:
            for path in files_of(self._settings.sockets, f"{server_uuid}.", ".sock"):
                path.unlink(missing_ok=True)

    # --- internal

    def _sockets(self, server_uuid: str, count: int) -> Lines:
        assert self._settings is not None and self._settings.sockets is not None
        folder = self._settings.sockets
        with failures.translated(OSError,
                lambda error: errors.host.SerialSockets(path=str(folder), reason=error.strerror or str(error))):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o711)  # libvirtd creates the sockets there, each for only QEMU's user and group
        return tuple(SerialLine(path=str(folder / f"{server_uuid}.{number}.sock")) for number in range(count))

    def _ports(self, settings: SerialSettings, server_uuid: str, count: int) -> Lines:
        definitions = self._hypervisor.definitions()
        mine = definitions.get(server_uuid, Definitions(None, None))
        taken = {port for uuid, found in definitions.items() if uuid != server_uuid
                 for text in found if text for port in ports_of(text)}
        for uuid in self._folders.uuids():
            if uuid != server_uuid:
                taken |= set(self._folders.of(uuid).reserved_ports())
        running = _own(mine.running) if mine.running else ()
        reserved = self._folders.of(server_uuid).reserved_ports()
        had = running or reserved or (_own(mine.kept) if mine.kept else ())
        chosen: list[int] = []
        for index in range(count):
            own = had[index] if index < len(had) else 0
            good = settings.first <= own <= settings.last and own not in taken and (
                own in running or self._free(settings.listen, own))
            port = own if good else self._next(settings, taken | set(had), count)
            taken.add(port)
            chosen.append(port)
        return tuple(SerialLine(settings.listen, port) for port in chosen)

    def _next(self, settings: SerialSettings, taken: set[int], count: int) -> int:
        """Return the next free port after the last allocated one, so that a released port is not reused soon."""
        size = settings.last - settings.first + 1
        begin = self._last + 1 - settings.first if settings.first <= self._last < settings.last else 0
        for step in range(size):
            port = settings.first + (begin + step) % size
            if port not in taken and self._free(settings.listen, port):
                self._last = port
                return port
        LOG.error("all ports of [serial_console]port_range are in use (%d of %d by guests)", len(taken), size)
        raise errors.host.NoSerialPort(first=settings.first, last=settings.last, count=count)


def _own(definition: str) -> tuple[int, ...]:
    return tuple(line.port for line in lines_of(definition) if line is not None and line.port)
