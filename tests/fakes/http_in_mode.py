"""Run nova's HTTP server in a process with native or green threads, and print ``ok``.

    python -m tests.fakes.http_in_mode eventlet|threads
"""

from __future__ import annotations

import os
import sys
from typing import Any

CLIENTS = 20


def main(mode: str) -> None:
    os.environ["NOVA_CONCURRENCY"] = mode
    from nova import concurrency

    assert concurrency.patch() == mode
    run()
    print("ok", flush=True)


def run() -> None:
    import socket
    import threading

    from nova import http_server

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ.get("HTTP_UPGRADE"):
            return http_server.TakeOver(lambda sock: sock.sendall(b"taken " + sock.recv(9)))
        start_response("200 OK", [])
        return [environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))]

    server = http_server.Server(http_server.bind("127.0.0.1", 0), application, http_server.ClientBounds(head_s=10))
    server.start()

    def client(number: int) -> None:
        """Send a request slowly, so that all requests overlap."""
        with socket.create_connection(server.sock.getsockname(), timeout=20) as sock:
            for part in (b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-", b"Encoding: chunked\r\n\r\n"):
                sock.sendall(part)
                gate.wait(20)
            assert sock.recv(99) == b"HTTP/1.1 100 Continue\r\n\r\n"
            for part in (b"2\r\n%02d" % number, b"\r\n0\r", b"\n\r\n"):
                sock.sendall(part)
                gate.wait(20)
            assert sock.recv(999).endswith(b"\r\n\r\n%02d" % number)
            sock.sendall(b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            gate.wait(20)
            sock.sendall(b"%02d" % number)
            assert sock.recv(99) == b"taken %02d" % number
            good.append(number)

    good: list[int] = []
    gate = threading.Barrier(CLIENTS)
    clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join(30)
    assert sorted(good) == list(range(CLIENTS)), good
    server.stop(5)
    assert not any(connection.busy for connection in list(server._connections))


if __name__ == "__main__":
    main(sys.argv[1])
