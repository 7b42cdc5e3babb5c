"""API views of the projects' VPN servers."""

from __future__ import annotations

from nova.api.view import Out, View, seconds_of
from nova.model.security.certificates import Cloudpipe

FULL = View(
    Out("project_id", "project_id"),
    Out("instance_id", "server_uuid"),
    Out("internal_ip", "internal_address"),
    Out("public_ip", "public_address"),
    Out("public_port", "public_port"),
    Out("state", "state"),
    Out("created_at", seconds_of("created_at")),
    of=Cloudpipe,
)
