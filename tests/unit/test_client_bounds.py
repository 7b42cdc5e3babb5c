"""Every HTTP server of ours has bounds, and one client's slowness keeps nobody out of any of them."""

from __future__ import annotations

import ast
import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova import client_bounds, conf, http_server
from nova.client_bounds import BOUNDS
from nova.cmd import api
from nova.http_connection_limit import HOLDER

NOVA = Path(client_bounds.__file__).parent
#: Servers whose applications take large bodies as they come, and bound these clients themselves.
LARGE = {"objectstore", "imageproxy"}
MOST = 20  # connections: as the servers have it, a test would take thousands
SLOW = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx"


@pytest.fixture(scope="module")
def options() -> Any:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    return made


def calls_of(name: str) -> Iterator[tuple[str, ast.Call]]:
    """(file, call) of each call of what has this name in our code, by whatever module."""
    for path in sorted(NOVA.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
                yield str(path.relative_to(NOVA)), node


def test_bounds_when_they_are_made_then_it_is_in_the_table_alone() -> None:
    assert {file for file, _call in calls_of("ClientBounds")} <= {"client_bounds.py", "http_server.py"}


def test_servers_when_they_are_made_then_each_has_a_row() -> None:
    made = [(file, call) for file, call in calls_of("Server")
            if ast.unparse(call.func) in ("http_server.Server", "Server") and file != "http_server.py"]
    assert len(made) >= 7
    rows = set()
    for file, call in made:
        assert len(call.args) > 2, f"{file}: a server without bounds"
        bounds = ast.unparse(call.args[2])
        assert bounds == "MONITORING" or bounds.startswith("bounds("), f"{file}: {bounds}"
        rows |= {"monitoring"} if bounds == "MONITORING" else {bounds.split("(")[1].split(",")[0].strip("'")}
    assert rows >= set(BOUNDS) - set(api.ALL) and rows - set(BOUNDS) == {"name"}, "each API by its name"


def test_apis_then_each_has_a_row() -> None:
    assert set(api.ALL) <= set(BOUNDS)


@pytest.mark.parametrize("name", BOUNDS)
def test_row_then_connections_times_and_bodies_have_an_end(options: Any, name: str) -> None:
    bounds = BOUNDS[name].of(options)
    assert 0 < bounds.max_connections <= 1000 and 0 < bounds.workers <= 1000
    assert 0 < bounds.head_s <= 30 and 0 < bounds.idle_s <= 900 and 0 < bounds.answer_s <= 86400
    assert (bounds.whole_bytes >= http_server.BODY_BYTES) is (name not in LARGE) and BOUNDS[name].rate
    assert name == "objectstore" or bounds.chunked_bytes


BODY = b"x" * (8 << 20)  # more than the kernel keeps for a client that reads nothing


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """One that knows its clients by a header, and reads what they send."""
    environ[HOLDER] = environ.get("HTTP_X_PROJECT", "nobody")
    environ["wsgi.input"].read()
    start_response("200 OK", [])
    return [BODY if environ["PATH_INFO"] == "/large" else b"small"]


@contextlib.contextmanager
def attacked(server: http_server.Server, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    port = server.sock.getsockname()[1]
    slow = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(count)]
    for sock in slow:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            sock.sendall(sent)
    yield slow
    for sock in slow:
        sock.close()


ATTACKS: dict[str, tuple[bytes, Callable[[str], bool]]] = {
    "slow heads": (b"GET /x HTTP/1.1\r\nHost:", lambda name: True),
    "slow bodies": (SLOW, lambda name: name not in LARGE),
    "idle connections": (b"", lambda name: True),
    "slow readers": (b"GET /large HTTP/1.1\r\nHost: a\r\nX-Project: slow\r\n\r\n", lambda name: True)}
CASES = [(name, attack) for name in BOUNDS for attack, (_sent, is_bounded) in ATTACKS.items() if is_bounded(name)]


@pytest.mark.parametrize(("name", "attack"), CASES)
def test_server_when_one_client_is_slow_on_all_connections_then_another_is_answered(
        options: Any, name: str, attack: str) -> None:
    bounds = BOUNDS[name].of(options)._replace(max_connections=MOST)
    server = http_server.Server(http_server.bind("127.0.0.1", 0), application, bounds)
    server.start()
    with attacked(server, ATTACKS[attack][0], 2 * MOST):
        began = time.monotonic()
        with socket.create_connection(server.sock.getsockname(), timeout=10) as other:
            other.sendall(b"GET /x HTTP/1.0\r\nX-Project: other\r\n\r\n")
            answer = b"".join(iter(lambda: other.recv(4096), b""))
        assert answer.endswith(b"small") and time.monotonic() - began < 5
    server.stop(1)
