"""Connections to guests' consoles: which addresses the proxy may connect to, and how.

The address comes from the guest's host, which may be compromised or misconfigured. It is checked against the
operator's limits after names are resolved, and the connection uses the checked address. A loopback address or a unix
socket exists on every machine, so it is accepted only from hosts that are this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nova import concurrency, errors, failures
from nova.conf._options import Options
from nova.console.stream import Closed, Stream, TooSlow, tune
from nova.model.guest.consoles import ConsoleAddress

MAX_HEAD = 4096  # bytes of a response to CONNECT
MAX_PATH = 2048
MAX_SOCKET_PATH = 107  # bytes, the kernel's limit
_STATUS = re.compile(rb"HTTP/1\.[01] 200(?: [^\r\n]*)?\r\n")
_PATH = re.compile(r"[!-~]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

NOT_ANSWERING = "The server's host does not answer; it may be down or starting. Try again in a while."
NO_CONSOLE = "The server's console refuses connections: it may have been stopped or moved. Get a new address."
REFUSED_ADDRESS = "The server's console is at an address that this proxy may not connect to."
ACCESS_DENIED = "The server's host did not open the console. Get a new address."


class TargetError(errors.Unavailable):
    """A console that cannot be reached. ``words``: for the user, without an address; ``detail``: for the log."""

    code = "console.target"

    def __init__(self, words: str, detail: str = "") -> None:
        super().__init__(words)
        self.words, self.detail = words, detail or words


class Reach(NamedTuple):
    """The addresses that the proxy may connect to. No ``networks``: any address; no ``socket_dir``: no unix socket.

    ``local_hosts``: names of the compute hosts that are this machine; ``host``: the host of the console."""

    networks: tuple[Network, ...] = ()
    socket_dir: str | None = None
    timeout_s: float = 10
    local_hosts: frozenset[str] = frozenset()
    host: str = ""

    @classmethod
    def from_conf(cls, options: Options) -> Reach:
        """Return the settings of ``[console]``, ``[serial_console]`` and ``[DEFAULT]host``. Raises Invalid for a
        malformed network."""
        return cls(networks(options.console.reachable_networks), options.serial_console.socket_dir,
                   options.console.connect_timeout, frozenset([options.host, *options.console.local_hosts]))

    def of(self, host: str) -> Reach:
        """Return the settings for a console of that compute host."""
        return self._replace(host=host)

    def check_local(self, place: str) -> None:
        """Raise TargetError if ``place`` is on this machine, but the console's host is not: it would be another guest's
        console."""
        if not self.host or self.host not in self.local_hosts:
            raise TargetError(REFUSED_ADDRESS, f"host {self.host} reports its console at {place}, which is this "
                              "machine: set server_proxyclient_address (serial: proxyclient_address) there, without "
                              "socket_dir; if the host is this machine, add its name here to [console]local_hosts")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse CIDRs. Raises Invalid, which names the malformed one."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            raise errors.Invalid(f"[console]reachable_networks: '{text}' is not a network (CIDR)") from None
    return tuple(found)


def connect(address: ConsoleAddress, reach: Reach) -> Stream:
    """Return a stream to the console. Raises TargetError."""
    deadline = time.monotonic() + reach.timeout_s
    if address.socket_path:
        sock = _unix(address.socket_path, reach)
    elif address.host and address.port:
        sock = _tcp(address.host, address.port, reach, deadline)
    else:
        raise TargetError(NO_CONSOLE, "the host reported neither an address nor a socket")
    with failures.on_failure(sock.close, on=BaseException):
        tune(sock)
        stream = Stream(sock)
        if address.internal_access_path:
            _enter(stream, address.internal_access_path, deadline)
        return stream


# -- unix sockets


def _unix(text: str, reach: Reach) -> socket.socket:
    """Connect to a socket directly inside the directory; a link to another place is refused."""
    path = Path(text)
    if not reach.socket_dir or path.parent != Path(reach.socket_dir) or path.name in ("", ".", "..") \
            or "\0" in text:
        raise TargetError(REFUSED_ADDRESS, f"{text!r} is not directly inside [serial_console]socket_dir")
    reach.check_local(text)
    if len(os.fsencode(text)) > MAX_SOCKET_PATH:
        raise TargetError(NO_CONSOLE, f"{text!r} is too long for a socket's path")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not stat.S_ISSOCK(os.lstat(text).st_mode):
            raise TargetError(REFUSED_ADDRESS, f"{text!r} is not a socket")
        sock.settimeout(reach.timeout_s)
        sock.connect(text)
    except TimeoutError:
        sock.close()
        raise TargetError(NOT_ANSWERING, f"{text!r} accepted no connection in {reach.timeout_s:g} s") from None
    except OSError as error:
        sock.close()
        raise TargetError(NO_CONSOLE, f"{text!r}: {error.strerror}") from None
    except TargetError:
        sock.close()
        raise
    return sock


# -- TCP


def _tcp(host: str, port: int, reach: Reach, deadline: float) -> socket.socket:
    """Return a connection to the first of the host's addresses that accepts one. Each address is checked before."""
    problem: tuple[str, str] = (NOT_ANSWERING, f"no address of {host} was tried in time")
    for family, where in _resolved(host, port, reach):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(left)
            sock.connect(where)
            return sock
        except ConnectionRefusedError:
            problem = NO_CONSOLE, f"{where[0]}:{port} refuses connections"
        except TimeoutError:
            problem = NOT_ANSWERING, f"{where[0]}:{port} accepted no connection in {reach.timeout_s:g} s"
        except OSError as error:
            problem = NOT_ANSWERING, f"{where[0]}:{port}: {error.strerror or error}"
        sock.close()
    raise TargetError(*problem)


#: A socket address, and a row of getaddrinfo's result: family, type, protocol, canonical name and address.
Where = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
AddressRow = tuple[socket.AddressFamily, socket.SocketKind, int, str, Where]


def _resolved(host: str, port: int, reach: Reach) -> Iterator[tuple[int, Where]]:
    """Yield (family, socket address) of the allowed addresses. Raises TargetError for any other address: a name with
    addresses both inside and outside of the limits is a mistake or an attack."""
    for family, _, _, _, where in _lookup(host, port):
        found = ipaddress.ip_address(str(where[0]))
        if not allowed(found, reach.networks):
            raise TargetError(REFUSED_ADDRESS, f"{host}:{port} is at {found}, outside [console]reachable_networks")
        if is_loopback(found):
            reach.check_local(f"{host}:{port}")
        yield family, where


def _lookup(host: str, port: int) -> Sequence[AddressRow]:
    """Return getaddrinfo's rows. A slow resolver must not block green threads."""
    with failures.replaced((OSError, UnicodeError, OverflowError),
            lambda error: TargetError(NOT_ANSWERING, f"{host!r} cannot be resolved: {error}")):
        return _resolver(host)(host, port, 0, socket.SOCK_STREAM)


def _resolver(host: str) -> Callable[..., Sequence[AddressRow]]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _elsewhere
    return socket.getaddrinfo


def _elsewhere(host: str, port: int, family: int, kind: int) -> Sequence[AddressRow]:
    return concurrency.run_in_thread(socket.getaddrinfo, host, port, family, kind)


def is_loopback(address: IPAddress) -> bool:
    """Return whether the address is local to this machine (127.0.0.0/8, ::1), also for IPv4 addresses in IPv6
    notation."""
    return _plain(address).is_loopback


def _plain(address: IPAddress) -> IPAddress:
    """Return an IPv4-mapped IPv6 address as IPv4."""
    return getattr(address, "ipv4_mapped", None) or address


def allowed(address: IPAddress, reachable: tuple[Network, ...]) -> bool:
    """Return whether the operator permits the address. Unspecified and multicast addresses are never permitted."""
    address = _plain(address)
    if address.is_unspecified or address.is_multicast:
        return False
    return not reachable or any(address.version == network.version and address in network for network in reachable)


# -- access path between the host and the console


def _enter(stream: Stream, path: str, deadline: float) -> None:
    """Request the console at ``path`` from the host; the bytes after the response's head belong to the console."""
    if not _PATH.fullmatch(path) or len(path) > MAX_PATH:
        raise TargetError(ACCESS_DENIED, "the internal access path has invalid characters, or is too long")
    try:
        stream.say(f"CONNECT {path} HTTP/1.1\r\n\r\n".encode(), deadline)
        head, stream.early = _head(stream, deadline)
    except TooSlow:
        raise TargetError(NOT_ANSWERING, "CONNECT was not answered in time") from None
    except (Closed, OSError):
        raise TargetError(ACCESS_DENIED, "CONNECT was not answered: the connection was closed") from None
    if not _STATUS.match(head):
        status = head.split(b"\r\n", 1)[0][:80].decode("latin-1")
        raise TargetError(ACCESS_DENIED, f"CONNECT was answered {status!r}")


def _head(stream: Stream, deadline: float) -> tuple[bytes, bytes]:
    """Return (the response's head, the bytes after it)."""
    found = b""
    while b"\r\n\r\n" not in found:
        if len(found) >= MAX_HEAD:
            raise TargetError(ACCESS_DENIED, f"CONNECT was answered with more than {MAX_HEAD} bytes of head")
        found += stream.some(MAX_HEAD - len(found), deadline)
    head, _, rest = found.partition(b"\r\n\r\n")
    return head + b"\r\n", rest
