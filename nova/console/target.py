"""The way to a guest's console: where the proxy may go, and how it gets there.

The address comes from the guest's host, which may have been taken over, or have been left as it was installed: it is
checked against what the operator allows, after names have been resolved, and the connection goes to what was checked.
A loopback address, like a unix socket, is one on every machine: it is believed of the hosts that are this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nova import concurrency, errors
from nova.conf.base import Options
from nova.console.stream import Closed, Stream, TooSlow, tune
from nova.model.base import Json
from nova.model.guest.consoles import ConsoleAddress

MAX_HEAD = 4096  # bytes of an answer to CONNECT
MAX_PATH = 2048
MAX_SOCKET_PATH = 107  # bytes, the kernel's bound
_STATUS = re.compile(rb"HTTP/1\.[01] 200(?: [^\r\n]*)?\r\n")
_PATH = re.compile(r"[!-~]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

NOT_ANSWERING = "The server's host does not answer; it may be down or starting. Try again in a while."
NO_CONSOLE = "The server's console does not take connections: it may have been stopped or moved. Ask for a new address."
REFUSED_ADDRESS = "The server's console is at an address that this proxy may not connect to."
ACCESS_DENIED = "The server's host did not open the console. Ask for a new address."


class TargetError(errors.Unavailable):
    """``words`` are for the user, and name no address; ``detail`` is for the log."""

    code = "console.target"

    def __init__(self, words: str, detail: str = "") -> None:
        super().__init__(words)
        self.words, self.detail = words, detail or words


class Reach(NamedTuple):
    """Where the proxy may connect to. No ``networks``: anywhere; no ``socket_dir``: to no unix socket.

    ``local_hosts``: names of the compute hosts that are this machine; ``host``: whose console it is."""

    networks: tuple[Network, ...] = ()
    socket_dir: str | None = None
    timeout_s: float = 10
    local_hosts: frozenset[str] = frozenset()
    host: str = ""

    @classmethod
    def from_conf(cls, options: Options) -> Reach:
        """Of ``[console]``, ``[serial_console]`` and ``[DEFAULT]host``. Invalid: a network is none."""
        return cls(networks(options.console.reachable_networks), options.serial_console.socket_dir,
                   options.console.connect_timeout, frozenset([options.host, *options.console.local_hosts]))

    def of(self, host: str) -> Reach:
        """For a console of that compute host."""
        return self._replace(host=host)

    def check_local(self, place: str) -> None:
        """TargetError: at ``place`` of this machine there may be anybody's console, but none of that host's."""
        if not self.host or self.host not in self.local_hosts:
            raise TargetError(REFUSED_ADDRESS, f"host {self.host} says that its console is at {place}, which is this "
                              "machine: set server_proxyclient_address (serial: proxyclient_address) there, no "
                              "socket_dir; if the host is this machine, name it here in [console]local_hosts")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """CIDRs; Invalid names the wrong one."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            raise errors.Invalid(f"[console]reachable_networks: '{text}' is no network (CIDR)") from None
    return tuple(found)


def connect(address: ConsoleAddress, reach: Reach) -> Stream:
    """A stream at whose other end is the console. TargetError."""
    deadline = time.monotonic() + reach.timeout_s
    if address.socket_path:
        sock = _unix(address.socket_path, reach)
    elif address.host and address.port:
        sock = _tcp(address.host, address.port, reach, deadline)
    else:
        raise TargetError(NO_CONSOLE, "the host gave neither address nor socket")
    try:
        tune(sock)
        stream = Stream(sock)
        if address.internal_access_path:
            _enter(stream, address.internal_access_path, deadline)
        return stream
    except BaseException:
        sock.close()
        raise


# -- unix sockets


def _unix(text: str, reach: Reach) -> socket.socket:
    """A socket directly inside the directory, and no link to one elsewhere."""
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
            raise TargetError(REFUSED_ADDRESS, f"{text!r} is no socket")
        sock.settimeout(reach.timeout_s)
        sock.connect(text)
    except TimeoutError:
        sock.close()
        raise TargetError(NOT_ANSWERING, f"{text!r} took no connection in {reach.timeout_s:g} s") from None
    except OSError as error:
        sock.close()
        raise TargetError(NO_CONSOLE, f"{text!r}: {error.strerror}") from None
    except TargetError:
        sock.close()
        raise
    return sock


# -- TCP


def _tcp(host: str, port: int, reach: Reach, deadline: float) -> socket.socket:
    """A connection to the first of the host's addresses that takes one; each of them has been checked."""
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
            problem = NOT_ANSWERING, f"{where[0]}:{port} took no connection in {reach.timeout_s:g} s"
        except OSError as error:
            problem = NOT_ANSWERING, f"{where[0]}:{port}: {error.strerror or error}"
        sock.close()
    raise TargetError(*problem)


def _resolved(host: str, port: int, reach: Reach) -> Iterator[tuple[int, tuple[Json, ...]]]:
    """(family, socket address) of what is allowed. TargetError when there is nothing, or something that is not: a name
    with addresses both in and out of bounds is a mistake at best."""
    for family, _, _, _, where in _lookup(host, port):
        found = ipaddress.ip_address(str(where[0]))
        if not allowed(found, reach.networks):
            raise TargetError(REFUSED_ADDRESS, f"{host}:{port} is at {found}, outside [console]reachable_networks")
        if is_loopback(found):
            reach.check_local(f"{host}:{port}")
        yield family, where


def _lookup(host: str, port: int) -> list[Json]:
    """getaddrinfo's rows. A resolver may take its time: it must not stop green threads."""
    try:
        return _resolver(host)(host, port, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError, OverflowError) as error:
        raise TargetError(NOT_ANSWERING, f"{host!r} cannot be resolved: {error}") from None


def _resolver(host: str) -> Callable[..., list[Json]]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _elsewhere
    return socket.getaddrinfo


def _elsewhere(*arguments: object) -> Json:
    return concurrency.run_in_thread(socket.getaddrinfo, *arguments)


def is_loopback(address: IPAddress) -> bool:
    """Whether it is an address of this machine alone (127.0.0.0/8, ::1), also as IPv6 writes those of IPv4."""
    return _plain(address).is_loopback


def _plain(address: IPAddress) -> IPAddress:
    """An IPv4 address that is written as one of IPv6, as the former."""
    return getattr(address, "ipv4_mapped", None) or address


def allowed(address: IPAddress, reachable: tuple[Network, ...]) -> bool:
    """Whether the operator lets the proxy connect there; nobody's and everybody's address never are."""
    address = _plain(address)
    if address.is_unspecified or address.is_multicast:
        return False
    return not reachable or any(address.version == network.version and address in network for network in reachable)


# -- what stands between the host and the console


def _enter(stream: Stream, path: str, deadline: float) -> None:
    """Ask the host for the console at ``path``; what follows the answer's head is the console's own."""
    if not _PATH.fullmatch(path) or len(path) > MAX_PATH:
        raise TargetError(ACCESS_DENIED, "the internal access path has characters that no path has, or is too long")
    try:
        stream.say(f"CONNECT {path} HTTP/1.1\r\n\r\n".encode(), deadline)
        head, stream.early = _head(stream, deadline)
    except TooSlow:
        raise TargetError(NOT_ANSWERING, "CONNECT was not answered in time") from None
    except (Closed, OSError):
        raise TargetError(ACCESS_DENIED, "CONNECT was not answered, the connection was closed") from None
    if not _STATUS.match(head):
        status = head.split(b"\r\n", 1)[0][:80].decode("latin-1")
        raise TargetError(ACCESS_DENIED, f"CONNECT was answered {status!r}")


def _head(stream: Stream, deadline: float) -> tuple[bytes, bytes]:
    """(an answer's head, what came behind it)."""
    found = b""
    while b"\r\n\r\n" not in found:
        if len(found) >= MAX_HEAD:
            raise TargetError(ACCESS_DENIED, f"CONNECT was answered with more than {MAX_HEAD} bytes of head")
        found += stream.some(MAX_HEAD - len(found), deadline)
    head, _, rest = found.partition(b"\r\n\r\n")
    return head + b"\r\n", rest
