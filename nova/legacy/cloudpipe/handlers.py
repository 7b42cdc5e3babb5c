"""Handlers of the projects' VPN servers: list, create, and configure the public address."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request
from nova.api.view import answers
from nova.legacy.cloudpipe import views

CONFIGURE = "configure-project"  # the only id that a PUT accepts


@answers({"cloudpipes": [views.FULL]})
def index(req: Request) -> dict[str, object]:
    """List the VPN servers of all projects, at most one per project, without pagination."""
    return {"cloudpipes": views.FULL.all(req.conductor.list_cloudpipes(), req)}


@answers({"instance_id": "string"})
def create(req: Request) -> dict[str, object]:
    """Create the VPN server of a project (the body's, by default the caller's), or return its existing one.

    The response has the server's UUID. Raises network.CloudpipeUnavailable (400).
    """
    project_id = req.body["cloudpipe"].get("project_id") or req.project_id
    return {"instance_id": req.conductor.create_cloudpipe(project_id)}


def update(req: Request, id: str) -> None:
    """Set the public address of the VPN of the caller's project; the path's id must be ``configure-project``.

    Raises network.CloudpipeNotFound, network.CloudpipeNoNetwork (404); Invalid for a bad address or port (400).
    """
    if id != CONFIGURE:
        raise errors.network.CloudpipeNotFound(id=id)
    asked = req.body["configure_project"]
    req.conductor.configure_vpn(req.project_id, asked["vpn_ip"], int(asked["vpn_port"]))
