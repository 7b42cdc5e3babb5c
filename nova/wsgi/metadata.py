"""The metadata service for uWSGI, gunicorn and the like: ``nova.wsgi.metadata:application``."""

from __future__ import annotations

from nova.cmd.api import METADATA
from nova.wsgi import application as applications

BINARY = "nova-api-metadata"

application = applications.made(METADATA, BINARY)
