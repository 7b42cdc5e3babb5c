"""Horizon of a stack: the site for the stack's cloud, the metadata definitions in Glance, and its daemon."""

from __future__ import annotations

from . import dashboard, glance, venvs
from .dashboard import Site
from .keystone import REGION
from .layout import PORTS, Layout
from .secrets import Secrets
from .spec import SERVICES, Daemon, Probe
from .stack import SERVICE_USER, Stack

LOGIN = "auth/login/"


def site_of(layout: Layout, secrets: Secrets) -> Site:
    return Site(
        venv=layout.venvs / "horizon",
        folder=layout.etc / "horizon",
        keystone=layout.url("keystone", "/v3"),
        region=REGION,
        address=layout.address,
        port=PORTS["horizon"],
        secret=secrets.password("horizon"),
    )


def start(stack: Stack) -> str:
    """Load the metadata definitions for its forms into Glance, and start its daemon."""
    for names in (("etc", "horizon"), ("etc", "horizon", "local")):
        stack.directory(*names, owner=SERVICE_USER)
    words = glance.load_metadefs(stack)
    return f"{words}; {stack.control.start(daemon(stack))}"


def daemon(stack: Stack) -> Daemon:
    layout = stack.layout
    site = site_of(layout, stack.secrets)
    files = dashboard.write(site, SERVICE_USER)
    argv, env = dashboard.command(site)
    served = Daemon(
        name="horizon",
        argv=argv,
        user=SERVICE_USER,
        env=env,
        probe=Probe("http", site.url + LOGIN),
        room=layout.controller_room,
        tier=SERVICES,
        start_seconds=120,
    )
    return served.stamped(*files, extra=venvs.stamp(layout, "horizon") + venvs.static_stamp(layout))
