"""Request bodies of the projects' VPN servers (Compute API reference, os-cloudpipe)."""

from __future__ import annotations

from nova.web.schema import Body, row

CREATE = Body(
    row("cloudpipe", "object", required=True),
    row("cloudpipe.project_id", "string", min_length=1, max_length=255))

CONFIGURE = Body(
    row("configure_project", "object", required=True),
    row("configure_project.vpn_ip", "string", format="ipv4", required=True),
    row("configure_project.vpn_port", ("integer", "string"), min=1, max=65535, required=True))
