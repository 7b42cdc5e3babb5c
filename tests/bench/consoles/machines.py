"""The processes of this benchmark: a QEMU with a screen, the proxy, and a console that echoes. All end with it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.functional.backends import free_port, listening, wait_until

QEMU = "qemu-system-x86_64"
TOP = Path(__file__).resolve().parents[3]
QEMU_TOKEN, ECHO_TOKEN = "screen-of-qemu", "console-that-echoes"
VERSION = b"RFB 003.008\n"
CONFIG = """[DEFAULT]
transport_url = rabbit://127.0.0.1:1/
host = bench
web = {web}
debug = False
log_file = {log}
graceful_shutdown_timeout = 1
[vnc]
novncproxy_host = 127.0.0.1
novncproxy_port = {port}
[console]
max_sessions_per_token = 1000
max_sessions_per_server = 1000
max_sessions_per_user = 1000
"""


@contextlib.contextmanager
def process(*command: str, **others: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours, ended by its own number."""
    started = subprocess.Popen(command, stdin=subprocess.DEVNULL, **others)  # type: ignore[call-overload]
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextlib.contextmanager
def qemu() -> Iterator[int]:
    """The port of a machine's screen: it has no disk, and shows its firmware's words. All viewers are let in."""
    port = free_port()
    with process(QEMU, "-accel", "tcg", "-m", "64", "-nodefaults", "-vga", "std", "-display", "none", "-vnc",
                 f"127.0.0.1:{port - 5900},share=force-shared,connections=1000,non-adaptive=on,lossy=off",
                 stderr=subprocess.DEVNULL):
        wait_until("QEMU's screen", lambda: listening(port), 20)
        yield port


@contextlib.contextmanager
def proxy(folder: Path, ports: dict[str, int]) -> Iterator[tuple[int, int]]:
    """(port, process number) of nova-novncproxy, which knows these tokens."""
    port, web, config = free_port(), folder / "web", folder / "nova.conf"
    web.mkdir(exist_ok=True)
    (web / "vnc_auto.html").write_text("<html><head></head><body>bench</body></html>")
    config.write_text(CONFIG.format(web=web, port=port, log=folder / "proxy.log"))
    tokens = ",".join(f"{name}={number}" for name, number in ports.items())
    with process(sys.executable, "-m", "tests.bench.consoles.proxy_process", tokens, "--config-file", str(config),
                 cwd=TOP) as started:
        wait_until("nova-novncproxy", lambda: started.poll() is not None or listening(port), 30)
        assert started.poll() is None, (folder / "proxy.log").read_text()
        try:
            yield port, started.pid
        except BaseException:
            sys.stderr.write((folder / "proxy.log").read_text()[-4000:])
            raise


@contextlib.contextmanager
def echo() -> Iterator[int]:
    """The port of a console that lets anybody in by RFB's rules and then sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=one, args=(sock,), daemon=True).start()

    def one(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(VERSION)
            sock.recv(12)
            sock.sendall(b"\1\1")
            sock.recv(1)
            sock.sendall(bytes(4))
            while data := sock.recv(4096):
                sock.sendall(data)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
