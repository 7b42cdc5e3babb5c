"""Images through nova-imageproxy, beside the same images from the image service itself, in turns of one run.

    bin/test bench-images [--mib 1024] [--turns 5] [--folder FOLDER] [--stand-in]

The image service is a real Glance, with its files in FOLDER and served by gunicorn as ``bin/stack`` does, where
``bin/stack`` has installed it; else, and with ``--stand-in``, a server that does nothing but sendfile(2).

*download* is what a host does: written to a file of FOLDER, synced, checked against the hash; so is *upload*. Their
goal is a ratio of 0.90. *read* throws the bytes away. From page cache over loopback that is as fast as memory: with no
more processors than ends, whatever stands between must take of theirs, and the row shows how much. CPU is the proxy's.
(splice(2) from socket to socket, tried in place of the copy, took as much: 0.27 s a GiB against 0.30, Linux 6.18.)
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

from nova.clients import image_data
from nova.clients.glance import Glance
from nova.clients.image_proxy import ImageProxy
from nova.model.image.image_tickets import READ, WRITE
from nova.model.image.images import Image, NewImage
from tests.bench.meters import children
from tests.fakes.image_proxies import HOST, KEY, SECRET, glance_at, ticket
from tests.functional.backends import Process, free_port, wait_until
from tests.functional.daemons import Daemon

TOP = Path(__file__).resolve().parents[2]
NEXT_DOOR = Path(os.environ.get("NOVA_STACK_VENVS", "/opt/nova-stack")) / "nextdoor"
MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")
GOAL = 0.90

GLANCE = """\
[DEFAULT]
enabled_backends = local:file
worker_self_reference_url = http://127.0.0.1:{port}
[database]
connection = sqlite:///{folder}/glance.sqlite
[glance_store]
default_backend = local
[local]
filesystem_store_datadir = {folder}/images
[os_glance_staging_store]
filesystem_store_datadir = {folder}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {folder}/tasks
[paste_deploy]
config_file = {venv}/etc/glance/glance-api-paste.ini
[oslo_policy]
policy_file = {folder}/policy.yaml
"""
GUNICORN = """\
wsgi_app = "glance.wsgi.api:application"
bind = "127.0.0.1:{port}"
workers = 2
worker_class = "gthread"
threads = 2
timeout = 120
keepalive = 5
loglevel = "warning"
"""


@contextlib.contextmanager
def real_glance(folder: Path) -> Iterator[str]:
    """A Glance of its own; its address."""
    port = free_port()
    for name in ("images", "staging", "tasks"):
        (folder / name).mkdir()
    config = folder / "glance-api.conf"
    config.write_text(GLANCE.format(port=port, folder=folder, venv=NEXT_DOOR))
    (folder / "gunicorn.conf.py").write_text(GUNICORN.format(port=port))
    (folder / "policy.yaml").write_text('context_is_admin: "@"\n')
    subprocess.run([NEXT_DOOR / "bin" / "glance-manage", "--config-file", config, "db_sync"], check=True,
                   capture_output=True)
    kept_env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env = {**kept_env, "OS_GLANCE_CONFIG_DIR": str(folder), "PYTHONWARNINGS": "ignore",
           "GUNICORN_CMD_ARGS": f"--config {folder}/gunicorn.conf.py"}
    process = Process([str(NEXT_DOOR / "bin" / "gunicorn")], folder / "glance.log", env, cwd=folder)
    try:
        wait_until("Glance answers", lambda: _answers(f"http://127.0.0.1:{port}/healthcheck"), 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Report:
    """Rows under headings, printed as they come."""

    def __init__(self, *headings: str) -> None:
        self.row(*headings)

    def row(self, *cells: str) -> None:
        say("".join(cell.ljust(32 if number == 0 else 12) for number, cell in enumerate(cells)))


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False


class SendFile(BaseHTTPRequestHandler):
    """An image service that has one image, a file, and takes any other. Run as a process of its own."""

    protocol_version = "HTTP/1.1"
    path_of_file = ""

    def do_GET(self) -> None:
        size = os.path.getsize(self.path_of_file)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        with open(self.path_of_file, "rb") as file:
            self.connection.sendfile(file)

    def do_PUT(self) -> None:
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, MIB)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def stand_in(folder: Path) -> Iterator[str]:
    port = free_port()
    process = Process([sys.executable, "-m", "tests.bench.images", "--serve", str(port), str(folder / "data")],
                      folder / "stand-in.log", {**os.environ, "PYTHONPATH": str(TOP)}, cwd=TOP)
    try:
        wait_until("the stand-in answers", lambda: _answers(f"http://127.0.0.1:{port}/"), 20)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()


def serve(port: int, path: str) -> None:
    SendFile.path_of_file = path
    ThreadingHTTPServer(("127.0.0.1", port), SendFile).serve_forever()


@contextlib.contextmanager
def proxy_of(glance: str, folder: Path, workers: int) -> Iterator[tuple[str, Daemon]]:
    """nova-imageproxy as a process, as it is configured by default; its address."""
    port = free_port()
    config = folder / "nova.conf"
    config.write_text(f"[image_proxy]\nkey = {KEY}\nlisten = 127.0.0.1\nlisten_port = {port}\nworkers = {workers}\n"
                      f"[glance]\nendpoint_override = {glance}\n")
    daemon = Daemon("imageproxy", config, folder / "imageproxy.log").start().ready(workers)
    try:
        yield f"http://127.0.0.1:{port}", daemon
    finally:
        daemon.kill()


def cpu_s(daemon: Daemon) -> float:
    """Seconds of processors that its processes have used."""
    assert daemon.process is not None
    ticks = 0
    for pid in {daemon.process.pid, *children(daemon.process.pid)}:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def read(source: Glance | ImageProxy, image: Image) -> None:
    size = sum(map(len, source.open(image.id)))
    assert size == image.size_bytes, size


def timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


class Run:
    """One image service and a proxy before it."""

    def __init__(self, glance: Glance, proxy: str, daemon: Daemon, image: Image, folder: Path) -> None:
        self.glance, self.daemon, self.image, self.folder = glance, daemon, image, folder
        self.url = proxy
        self.host = ImageProxy(HOST, lambda host: (SECRET,))
        self.host.hold([ticket(image.id, READ, proxy)])
        self.mib = image.size_bytes / MIB

    def compare(self, report: Report, name: str, direct: Callable[[], object], through: Callable[[], object],
                turns: int, count: int = 1) -> float:
        """One row: both, in turns; the ratio of their medians. ``count``: images that one call carries."""
        times: dict[str, list[float]] = {"direct": [], "through": []}
        used = 0.0
        for turn in range(turns + 1):
            for kind, work in (("direct", direct), ("through", through)):
                before, seconds = cpu_s(self.daemon), timed(work)
                if turn:  # the first one warms up
                    times[kind].append(seconds)
                    used += (cpu_s(self.daemon) - before) if kind == "through" else 0.0
        direct_s, through_s = (statistics.median(times[kind]) for kind in times)
        amount = self.mib * count
        report.row(name, f"{amount / direct_s:.0f}", f"{amount / through_s:.0f}", f"{direct_s / through_s:.3f}",
                   f"{1024 * used / turns / amount:.2f}")
        return direct_s / through_s

    def download(self, source: Glance | ImageProxy) -> None:
        path = self.folder / "target"
        path.unlink(missing_ok=True)
        image_data.download(source, self.image, str(path))

    def several(self, source: Glance | ImageProxy, count: int) -> None:
        threads = [threading.Thread(target=read, args=(source, self.image)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def upload(self, through: bool) -> None:
        made = self.glance.create(NewImage(id=str(uuid.uuid4()), name="snapshot", disk_format="raw",
                                           container_format="bare"))
        try:
            if through:
                self.host.hold([ticket(made.id, WRITE, self.url)])
                self.host.upload(made.id, str(self.folder / "data"))
            else:
                with open(self.folder / "data", "rb") as file:
                    self.glance.send(made.id, image_data.Upload(file))
        finally:
            self.glance.delete(made.id)


def bench(run: Run, turns: int, real: bool) -> float:
    report = Report("MiB/s, medians", "direct", "proxy", "ratio", "CPU s/GiB of the proxy")
    glance, host = run.glance, run.host
    ratios = []
    if real:
        ratios = [
            run.compare(report, "download", lambda: run.download(glance), lambda: run.download(host), turns),
            run.compare(report, "upload", lambda: run.upload(False), lambda: run.upload(True), turns)]
    run.compare(report, "read", lambda: read(glance, run.image), lambda: read(host, run.image), turns)
    run.compare(report, "4 reads side by side", lambda: run.several(glance, 4), lambda: run.several(host, 4), turns, 4)
    return min(ratios, default=0.0)


def fill(path: Path, mib: int) -> None:
    """Random data, 16 MiB of it again and again: nothing on the way compresses."""
    part = os.urandom(16 * MIB)
    with path.open("wb") as file:
        for begin in range(0, mib, 16):
            file.write(part[:min(16, mib - begin) * MIB])


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--serve"]:
        serve(int(arguments[1]), arguments[2])
    parser = argparse.ArgumentParser(prog="tests.bench.images", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--stand-in", action="store_true")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="nova-images-", dir=given.folder))
    real = not given.stand_in and (NEXT_DOOR / "bin" / "gunicorn").exists()
    try:
        fill(folder / "data", given.mib)
        with (real_glance if real else stand_in)(folder) as url, \
                proxy_of(url, folder, given.workers) as (proxy, daemon):
            glance = glance_at(url)
            say(f"{'a real Glance' if real else 'a stand-in that sends files'}; {given.mib} MiB, {given.turns} turns, "
                f"{os.cpu_count()} processors")
            run = Run(glance, proxy, daemon, kept(glance, folder / "data", real), folder)
            worst = bench(run, given.turns, real)
        if real:
            say(f"download and upload: the lower ratio is {worst:.3f}; the goal is {GOAL}")
        return 0 if worst >= GOAL or not real else 1
    finally:
        shutil.rmtree(folder)


def kept(glance: Glance, path: Path, real: bool) -> Image:
    """The image, with its data at the service."""
    if not real:
        return Image(id="stand-in", size_bytes=path.stat().st_size)
    made = glance.create(NewImage(id=str(uuid.uuid4()), name="bench", disk_format="raw", container_format="bare"))
    with path.open("rb") as file:
        glance.send(made.id, image_data.Upload(file))
    found = glance.show(made.id)
    with path.open("rb") as file:
        assert found.os_hash_value == hashlib.file_digest(file, "sha512").hexdigest()
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
