"""Our HTTP server beside others, under the same application in the same run: what each refuses, what a request costs.

    python -m tests.bench.http_servers [--seconds 3] [--turns 3] [--beside FOLDER] [NAME ...]

The application is nova-api's own over a fake conductor. Each server is one process; clients keep their connections.
The CPU a request takes says most: the machine does other things, and the clients need the other processor.
``--beside``: the server of another checkout, too. Servers that are not installed are left out: cheroot and hypercorn
are no test's (pip install cheroot hypercorn).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import importlib.util
import io
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.meters import children, percentile
from tests.bench.scheduler.report import Report, say

TOP = Path(__file__).resolve().parents[2]
HERE = "tests.bench.http_servers"
CLIENTS, WORKERS = 8, 16
HEAD_S = 2  # what each server is told of how long clients may take, in its own way
TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
PATHS = ("/", "/v2.1/")
HEAD = ("GET {0} HTTP/1.1\r\nHost: 127.0.0.1:8774\r\nUser-Agent: python-novaclient\r\n"
        "Accept-Encoding: gzip, deflate\r\nAccept: application/json\r\nConnection: keep-alive\r\n"
        "X-Auth-Token: demo:demo\r\nX-OpenStack-Nova-API-Version: 2.79\r\nOpenStack-API-Version: compute 2.79\r\n\r\n")


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """nova-api; ``/body`` and ``/name`` show what a server made of a request."""
    if environ["PATH_INFO"] in ("/body", "/name"):
        length, chunked = environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING")
        said = environ["wsgi.input"].read(int(length)) if length else environ["wsgi.input"].read() if chunked else b""
        said = environ.get("HTTP_X_A", "none").encode() if environ["PATH_INFO"] == "/name" else b"<" + said + b">"
        start_response("200 OK", [("Content-Length", str(len(said)))])
        return [said]
    return nova_api()(environ, start_response)


@functools.cache
def nova_api() -> Any:
    from tests.fakes.api import ApiClient

    return ApiClient().application


# -- the servers, each in a process of its own


def ours(port: int) -> None:
    from nova import http_server

    http_server.Server(http_server.bind("127.0.0.1", port), application,
                       http_server.ClientBounds(WORKERS, head_s=HEAD_S)).run()


def of_eventlet(port: int) -> None:
    import eventlet
    from eventlet import wsgi

    wsgi.server(eventlet.listen(("127.0.0.1", port)), application, log_output=False, max_size=WORKERS,
                socket_timeout=HEAD_S)


def of_cheroot(port: int) -> None:
    from cheroot import wsgi

    wsgi.Server(("127.0.0.1", port), application, numthreads=WORKERS, timeout=HEAD_S).start()


def of_hypercorn(port: int) -> None:
    import asyncio

    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from hypercorn.middleware import AsyncioWSGIMiddleware

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.read_timeout = HEAD_S
    config.keep_alive_max_requests = 1_000_000_000
    asyncio.run(serve(AsyncioWSGIMiddleware(application), config))  # type: ignore[arg-type]


def gunicorn(kind: str) -> Callable[[int], None]:
    def run(port: int) -> None:
        os.execvp(sys.executable, [sys.executable, "-m", "gunicorn", "-w", "1", "-k", kind, "--threads", str(WORKERS),
                                   "--worker-connections", "1000", "--keep-alive", "75", "--timeout",
                                   str(HEAD_S), "--log-level", "error", "-b", f"127.0.0.1:{port}",
                                   f"{HERE}:application"])
    return run


SERVERS: dict[str, Callable[[int], None]] = {
    "ours": ours, "eventlet.wsgi": of_eventlet, "cheroot": of_cheroot, "gunicorn": gunicorn("gthread"),
    "hypercorn": of_hypercorn}
MODES = {"ours": ("threads", "eventlet"), "eventlet.wsgi": ("eventlet",), "cheroot": ("threads", "eventlet"),
         "gunicorn": ("threads",), "hypercorn": ("threads",)}


def serve(name: str, mode: str, port: int) -> None:
    from nova import concurrency

    os.environ["NOVA_CONCURRENCY"] = mode
    concurrency.patch()
    nova_api()
    SERVERS[name](port)


class Running(NamedTuple):
    name: str
    port: int
    pids: list[int]

    def ticks(self) -> int:
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(one[11]) + int(one[12]) for one in fields)

    def connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


@contextlib.contextmanager
def running(label: str, name: str, mode: str, folder: Path) -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--serve", name, mode, str(port)]
    process = subprocess.Popen(command, cwd=TOP, stderr=subprocess.DEVNULL,
                               env={**os.environ, "PYTHONPATH": f"{folder}:{TOP}"})
    try:
        until = time.monotonic() + 60
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                    sock.sendall(HEAD.format("/").encode())
                    answer(sock)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{label} did not start") from None
                time.sleep(0.1)
        yield Running(label, port, children(process.pid))
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


# -- what a request costs


def answer(sock: socket.socket) -> bytes:
    """One answer with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = sock.recv(65536)
        if not part:
            raise ConnectionResetError
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].split()[0]) - len(body)
    while left > 0:
        part = sock.recv(65536)
        left, body = left - len(part), body + part
    return data


def load(server: Running, path: str, seconds: float) -> tuple[float, list[float], float]:
    """(requests a second, milliseconds each, CPU microseconds a request)."""
    times: list[float] = []
    request, until = HEAD.format(path).encode(), time.monotonic() + seconds
    ticks = server.ticks()

    def client() -> None:
        with server.connect() as sock:
            while time.monotonic() < until:
                began = time.perf_counter()
                sock.sendall(request)
                assert answer(sock)[9:12] in (b"200", b"300")
                times.append(1000 * (time.perf_counter() - began))
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / seconds, times, (server.ticks() - ticks) * TICK_US / len(times)


def costs(servers: list[Running], report: Report, seconds: float, turns: int) -> None:
    for path in PATHS:
        found: dict[str, list[tuple[float, list[float], float]]] = {server.name: [] for server in servers}
        for _ in range(turns):  # in turns: what the machine does beside this meets all
            for server in servers:
                found[server.name].append(load(server, path, seconds))
        report.table(f"GET {path} of nova-api, {CLIENTS} clients that keep their connections; ratios to the first",
                     "server" + " " * 18, "requests/s", "ratio", "p50 ms", "p99 ms", "CPU us", "ratio")
        first: tuple[float, float] | None = None
        for name, rows in found.items():
            rate, cpu = max(row[0] for row in rows), min(row[2] for row in rows)
            best = min((row[1] for row in rows), key=lambda times: percentile(times, 0.5))
            first = first or (rate, cpu)
            report.row(name, rate, rate / first[0], percentile(best, 0.5), percentile(best, 0.99), cpu, cpu / first[1])


def heads(report: Report, times: int = 20_000) -> None:
    """Of the parsers alone: what the head of such a request costs until its headers are a WSGI environment's."""
    import h11

    from nova import http_request

    data = HEAD.format("/v2.1/").encode()

    def of_h11() -> None:
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(data)
        request = connection.next_event()
        assert isinstance(request, h11.Request)
        found = {"HTTP_" + name.decode().upper().replace("-", "_"): value.decode("latin-1")
                 for name, value in request.headers}
        assert len(found) == 8

    report.table("a head taken apart", "parser" + " " * 18, "CPU us")
    for name, work in (("ours, on llhttp", lambda: http_request.head(io.BufferedReader(io.BytesIO(data)))),
                       ("h11", of_h11)):
        began = time.process_time()
        for _ in range(times):
            work()
        report.row(name, (time.process_time() - began) * 1e6 / times)


# -- what is refused, and what is served

CHUNKS = b"Transfer-Encoding: chunked\r\n"
#: what a good answer begins with, or None: any refusal; what is sent; what a good answer holds
PROBES: dict[str, tuple[bytes, bytes, bytes]] = {
    "chunks served": (b"200", b"POST /body HTTP/1.1\r\nHost: a\r\n" + CHUNKS + b"\r\n2\r\nok\r\n0\r\n\r\n", b"<ok>"),
    "h2c + body served": (b"200", b"POST /body HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
                          b"Content-Length: 2\r\n\r\nok", b"<ok>"),
    "length + chunks refused": (b"4", b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n" + CHUNKS +
                                b"\r\n0\r\n\r\n", b""),
    "two lengths refused": (b"4", b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                            b""),
    "bare LF refused": (b"4", b"GET /body HTTP/1.1\nHost: a\n\n", b""),
    "LF in chunks refused": (b"4", b"POST /body HTTP/1.1\r\nHost: a\r\n" + CHUNKS + b"\r\n2\nok\n0\n\n", b""),
    "folds refused": (b"4", b"GET /body HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", b""),
    "space before colon refused": (b"4", b"GET /body HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", b""),
    "_ is not -": (b"", b"GET /name HTTP/1.1\r\nHost: a\r\nX_A: forged\r\n\r\n", b""),
    "100 KB of heads refused": (b"4", b"GET /body HTTP/1.1\r\nHost: a\r\n" + b"".join(
        b"X-%d: %s\r\n" % (at, b"a" * 5000) for at in range(20)) + b"\r\n", b""),
}


def probe(server: Running, wanted: bytes, request: bytes, holds: bytes) -> str:
    found = b""
    with server.connect() as sock:
        sock.settimeout(1)
        with contextlib.suppress(OSError):
            sock.sendall(request)
            while part := sock.recv(65536):
                found += part
    good = found.startswith(b"HTTP/1.1 " + wanted) and holds in found and b"forged" not in found
    return "yes" if good else "no"


def slow_head(server: Running) -> str:
    """Whether a client that sends a byte now and then is cut off."""
    with server.connect() as sock:
        try:
            sock.sendall(b"GET /body HTTP/1.1\r\nHost: a\r\nX: ")
            for _ in range(6 * HEAD_S):
                sock.sendall(b"a")
                time.sleep(0.5)
        except OSError:
            return "yes"
    return "no"


def main() -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {HERE}", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--beside", type=Path, metavar="FOLDER")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SERVERS)} (default: all)")
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve[0], asked.serve[1], int(asked.serve[2]))
        return 0
    names = [name for name in asked.names or SERVERS if name == "ours" or importlib.util.find_spec(name.split(".")[0])]
    chosen = [(f"{name}, {mode}", name, mode, TOP) for name in names for mode in MODES[name]]
    if asked.beside:
        chosen[:0] = [(f"beside, {mode}", "ours", mode, asked.beside) for mode in MODES["ours"]]
    say(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before this began")
    report = Report()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(running(*one)) for one in chosen]
        report.table("what is refused, and what is served", "what" + " " * 24, *[server.name for server in servers])
        for what, (wanted, request, holds) in PROBES.items():
            report.row(what, *[probe(server, wanted, request, holds) for server in servers])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            report.row("slow heads cut off", *pool.map(slow_head, servers))
        costs(servers, report, asked.seconds, asked.turns)
    heads(report)
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
