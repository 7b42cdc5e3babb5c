"""Placement's API for uWSGI, gunicorn and the like: ``nova.wsgi.placement:application``."""

from __future__ import annotations

from nova.cmd.api import PLACEMENT
from nova.cmd.placement_api import BINARY
from nova.wsgi import application as applications

application = applications.made(PLACEMENT, BINARY)
