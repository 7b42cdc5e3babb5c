"""Horizon for a cloud that is not a stack, such as nova-all: `bin/stack dashboard`."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from . import dashboard
from .keystone import REGION
from .layout import Layout
from .stack import SERVICE_USER
from .stages import Progress
from .up import install

#: Parent of the sites' directories, which last until the machine reboots.
FOLDERS = Path("/run")


def site_of(layout: Layout, keystone: str, port: int) -> dashboard.Site:
    """Return the site with a new secret, so a restart ends all sessions: the secret can sign a session of any user."""
    return dashboard.Site(
        venv=layout.venvs / "horizon",
        folder=FOLDERS / f"nova-dashboard-{port}",
        keystone=keystone,
        region=REGION,
        address="127.0.0.1",
        port=port,
        secret=secrets.token_urlsafe(32),
    )


def serve(layout: Layout, keystone: str, port: int) -> None:
    """Install the missing packages and replace this process by the dashboard; Ctrl-C ends it."""
    install(layout, ("horizon",), Progress())
    site = site_of(layout, keystone, port)
    for folder in (site.folder, site.folder / "local"):
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.chown(folder, SERVICE_USER, SERVICE_USER)
    dashboard.write(site, SERVICE_USER)
    words, environment = dashboard.command(site)
    print(f"Horizon is at {site.url}. Log in as a user of {keystone}. Press Ctrl-C to end it.", flush=True)
    as_user = ("setpriv", f"--reuid={SERVICE_USER}", f"--regid={SERVICE_USER}", "--init-groups")
    os.execvpe(as_user[0], (*as_user, *words), {**os.environ, **environment})
