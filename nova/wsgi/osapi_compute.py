"""The compute API for uWSGI, gunicorn and the like: ``nova.wsgi.osapi_compute:application``."""

from __future__ import annotations

from nova.cmd.api import OSAPI
from nova.wsgi import application as applications

BINARY = "nova-api-os-compute"

application = applications.made(OSAPI, BINARY)
