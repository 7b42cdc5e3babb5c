"""gunicorn, which serves Keystone, Glance, Neutron and Horizon, and streams chunked uploads.

All settings are in a file: Keystone would parse arguments on the command line as its own.
"""

from __future__ import annotations

from pathlib import Path

from .layout import PORTS, Layout, write_private
from .spec import SERVICES, Daemon, Probe
from .stack import SERVICE_USER

PROCESSES, THREADS = 2, 2
# Services with an access log that names the client, so that the requests of nova's conductor can be counted.
TOLD = ("neutron",)
ACCESS = """\
accesslog = "-"
access_log_format = 'request "%(r)s" %(s)s %(D)sus by "%(a)s"'
"""


# Services that open no connection and start no thread before their first request: the master imports them once, and
# its workers share that memory and start at once.
IMPORTED_ONCE = ("keystone",)
PRELOAD = "preload_app = True\n"


def settings(layout: Layout, name: str) -> str:
    more = (ACCESS if name in TOLD else "") + (PRELOAD if name in IMPORTED_ONCE else "")
    return text(f"{name}.wsgi.api:application", layout.address, PORTS[name]) + more


def text(application: str, address: str, port: int) -> str:
    return f"""\
wsgi_app = "{application}"
bind = "{address}:{port}"
workers = {PROCESSES}
worker_class = "gthread"
threads = {THREADS}
timeout = 120
graceful_timeout = 10
keepalive = 5
worker_tmp_dir = "/dev/shm"
control_socket_disable = True
loglevel = "warning"
"""


def daemon(
    layout: Layout, name: str, env: dict[str, str], probe_path: str, venv: str = "nextdoor"
) -> tuple[Daemon, Path]:
    """Return the daemon that serves `NAME.wsgi.api:application` from the environment, and its settings' file."""
    file = layout.etc / name / "gunicorn.conf.py"
    write_private(file, settings(layout, name), owner=SERVICE_USER)
    served = Daemon(
        name=name,
        argv=(layout.program(venv, "gunicorn"),),
        user=SERVICE_USER,
        env={
            "PYTHONWARNINGS": "ignore",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GUNICORN_CMD_ARGS": f"--config {file}",
            **env,
        },
        probe=Probe("http", layout.url(name, probe_path)),
        room=layout.controller_room,
        tier=SERVICES,
        start_seconds=120,
    )
    return served, file
