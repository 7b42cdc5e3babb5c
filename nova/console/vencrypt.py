"""VeNCrypt 0.2: a VNC connection continues as TLS, with a certificate on either side (subtype X509None).

Only this subtype is accepted: with any other, any process that reaches the port could act as the hypervisor or its
client.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
import struct
from collections.abc import Sequence
from typing import NamedTuple, TypedDict, cast

from nova import errors, failures
from nova.console.stream import NOT_NOW, READ, WRITE, Stream, wait

VERSION = b"\x00\x02"
X509_NONE = 260
MAX_SUBTYPES = 64

#: Names of the protocol's subtype numbers, for messages about a server's offer.
SUBTYPES = {256: "Plain", 257: "TLSNone", 258: "TLSVnc", 259: "TLSPlain", X509_NONE: "X509None", 261: "X509Vnc",
            262: "X509Plain", 263: "X509SASL", 264: "TLSSASL"}

WORDS = "The server's console does not authenticate as this proxy requires (VeNCrypt)."
UNTRUSTED = "The server's console and this proxy do not trust each other's certificates."


class VencryptRefused(Exception):
    """A failed negotiation: (message for the user, detail for the log)."""

    def __init__(self, detail: str, words: str = WORDS) -> None:
        super().__init__(detail)
        self.words, self.detail = words, detail


class TlsFiles(NamedTuple):
    """PEM files: the authorities for the server's certificate, and the proxy's own certificate and key.
    """

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """Load the files, for each connection again, because certificates are replaced while daemons run. Raises
        Invalid with the file.

        The certificate's names are checked afterwards (:func:`check_peer`): it may contain the host's name or address.
        """
        if not self.ca:
            raise errors.Invalid("[vnc]vencrypt_ca_certs must be set for vencrypt")
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_REQUIRED
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        with failures.replaced((OSError, ValueError),
                lambda error: errors.Invalid(f"[vnc]vencrypt_ca_certs {self.ca}: {error}")):
            made.load_verify_locations(cafile=self.ca)
        if self.cert:
            with failures.replaced((OSError, ValueError), lambda error: errors.Invalid(
                    f"[vnc]vencrypt_client_cert {self.cert}, vencrypt_client_key {self.key}: {error}")):
                check_readable(self.cert, self.key)
                made.load_cert_chain(self.cert, self.key or None, password=_no_password)
        return made


def check_readable(*paths: str | None) -> None:
    """Check that files can be read. The OSError names the file, unlike the library's."""
    for path in filter(None, paths):
        with open(path, "rb"):
            pass


def _no_password() -> str:
    """Fail for an encrypted key; otherwise the library would prompt on the terminal."""
    raise ValueError("the key is encrypted")


def wrap(target: Stream, papers: TlsFiles, peers: Sequence[str], deadline: float) -> Stream:
    """Negotiate VeNCrypt, and return the stream inside TLS, with a server whose certificate has one of ``peers``.
    Raises VencryptRefused; Closed, TooSlow and OSError of the stream."""
    _agree(target, deadline)
    if target.buffered():
        raise VencryptRefused("there were bytes between VeNCrypt and TLS")
    with failures.replaced(errors.Invalid, lambda error: VencryptRefused(error.message)):
        sock = papers.context().wrap_socket(target.sock, server_side=False, do_handshake_on_connect=False)
    inside = Stream(sock)
    with failures.on_failure(inside.close, on=BaseException), failures.replaced(
            ssl.SSLError, lambda error: VencryptRefused(
                f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}", UNTRUSTED)):
        _shake(inside, sock, deadline)
        check_peer(cast(PeerCertificate, sock.getpeercert() or {}), peers)
    return inside


class PeerCertificate(TypedDict, total=False):
    """The names in a certificate, in the form of ``SSLSocket.getpeercert``."""

    subject: tuple[tuple[tuple[str, str], ...], ...]
    subjectAltName: tuple[tuple[str, str], ...]


def check_peer(certificate: PeerCertificate, peers: Sequence[str]) -> None:
    """Check that a certificate, as returned by ``SSLSocket.getpeercert``, has one of these names (RFC 6125). All hosts'
    certificates are from the same authority, so another host's must be rejected. Raises VencryptRefused."""
    names = {value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "IP Address")}
    if not names:  # older certificates have only a common name
        names = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    if not {_plain(name) for name in names} & {_plain(peer) for peer in peers}:
        raise VencryptRefused(f"its certificate is for {', '.join(sorted(names)) or 'no name'}, not for "
                              f"{' or '.join(peers) or 'any known name'}", UNTRUSTED)


def _plain(name: str) -> str:
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name))
    return name.lower().rstrip(".")


def _agree(target: Stream, deadline: float) -> None:
    """Negotiate version 0.2 and the subtype X509None."""
    version = target.exactly(2, deadline)
    if version != VERSION:
        raise VencryptRefused(f"VeNCrypt's version is {version[0]}.{version[1]}, not 0.2")
    target.say(VERSION, deadline)
    if target.exactly(1, deadline) != b"\x00":
        raise VencryptRefused("the server did not take VeNCrypt 0.2")
    count, = target.exactly(1, deadline)
    if not 0 < count <= MAX_SUBTYPES:
        raise VencryptRefused(f"the server offers {count} subtypes of VeNCrypt")
    offered = struct.unpack(f">{count}I", target.exactly(4 * count, deadline))
    if X509_NONE not in offered:
        names = ", ".join(SUBTYPES.get(code, str(code)) for code in offered)
        raise VencryptRefused(f"the server offers the VeNCrypt subtypes {names}, not X509None")
    target.say(struct.pack(">I", X509_NONE), deadline)
    if target.exactly(1, deadline) != b"\x01":
        raise VencryptRefused("the server did not take X509None")


def _shake(inside: Stream, sock: ssl.SSLSocket, deadline: float) -> None:
    while True:
        try:
            sock.do_handshake()
            return
        except NOT_NOW as not_now:
            wait(inside.fileno(), WRITE if isinstance(not_now, ssl.SSLWantWriteError) else READ, deadline)
