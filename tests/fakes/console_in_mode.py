"""Run a console session with TLS on both sides in a process with native or green threads, and print ``ok``.

    python -m tests.fakes.console_in_mode eventlet|threads FOLDER
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

PIECES = 10  # of the typed and of the received data


def main(mode: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    os.environ["NOVA_CONCURRENCY"] = mode
    from nova import concurrency

    assert concurrency.patch() == mode
    run(Path(folder))
    print("ok", flush=True)


def run(folder: Path) -> None:
    import ssl
    import time

    from nova import concurrency
    from nova.console import relay, rfb, vencrypt, websocket
    from nova.console import target as way
    from nova.model.guest.consoles import ConsoleAddress
    from tests.fakes.console_papers import Authority
    from tests.fakes.console_peers import Browser, exactly, handshake, serving, tcp_pair
    from tests.fakes.vnc_server import Hypervisor

    authority, pattern = Authority(folder), bytes(range(256)) * 4096
    here = way.Reach(local_hosts=frozenset(["here"])).of("here")
    mine, own = authority.issue("proxy"), authority.issue("front", server=True)
    inside, outside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    inside.load_cert_chain(own.cert, own.key)
    outside.check_hostname = False
    outside.load_verify_locations(authority.ca)

    class Guest(Hypervisor):
        def talk(self, sock: ssl.SSLSocket) -> None:
            sock.sendall(pattern)
            assert exactly(sock, 300_000) == b"y" * 300_000
            sock.sendall(b"done")
            sock.recv(1)

    raw, theirs = tcp_pair()
    endings, control = [], relay.Control()

    def proxy(port: int) -> None:
        theirs.settimeout(None)
        sock = inside.wrap_socket(theirs, server_side=True)
        front = websocket.BrowserSocket.accept(sock, handshake())
        back = way.connect(ConsoleAddress(access_url_base="", host="localhost", port=port), here)
        papers = vencrypt.TlsFiles(authority.ca, mine.cert, mine.key)
        back = rfb.secure(front, back, rfb.Security(("vencrypt",), papers).of("127.0.0.1"))
        endings.append(relay.carry(front, back, relay.Times(), control))

    with serving(Guest(authority)) as port:
        concurrency.spawn(proxy, port)
        user = Browser(outside.wrap_socket(raw))
        open_and_type(user, pattern)
        control.end(1001, "The proxy restarts.")
        assert user.last_words() == (1001, "The proxy restarts.")
        user.sock.close()
        until = time.monotonic() + 3
        while not endings and time.monotonic() < until:
            concurrency.sleep(0.01)
        assert endings[0].received == 300_000 and endings[0].sent == len(pattern) + 8, endings


def open_and_type(user: Any, pattern: bytes) -> None:
    """Act as a viewer: open the console, and type while reading its output."""
    from tests.fakes.console_peers import exactly

    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(user.sock, 1)
    assert user.see(12) == b"RFB 003.008\n"
    user.type(b"RFB 003.008\n")
    assert user.see(2) == b"\1\1"
    user.type(b"\1")
    assert user.see(4) == bytes(4)
    shown = b""
    for rest in range(PIECES, 0, -1):  # alternately: two threads in one OpenSSL connection break it
        user.type(b"y" * 30_000)
        shown += user.see((len(pattern) - len(shown)) // rest)
    assert shown == pattern
    assert user.see(4) == b"done"


if __name__ == "__main__":
    main(*sys.argv[1:])
