"""Projects' VPN servers: looked at, made, and where their clients come in."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request
from nova.api.view import answers
from nova.legacy.cloudpipe import views
from nova.model.base import Json

CONFIGURE = "configure-project"  # the one id that a PUT may name


@answers({"cloudpipes": [views.FULL]})
def index(req: Request) -> dict[str, Json]:
    """List the projects' VPN servers: at most one a project, of all projects. There are no pages."""
    return {"cloudpipes": views.FULL.all(req.conductor.list_cloudpipes(), req)}


@answers({"instance_id": "string"})
def create(req: Request) -> dict[str, Json]:
    """Start the VPN server of a project (the body's, or else the caller's), and answer with its uuid. A project that
    has one keeps it. network.CloudpipeUnavailable (400)."""
    project_id = req.body["cloudpipe"].get("project_id") or req.project_id
    return {"instance_id": req.conductor.create_cloudpipe(project_id)}


def update(req: Request, id: str) -> None:
    """Say where clients find the VPN of the caller's project; the path's id must be ``configure-project``.
    network.CloudpipeNotFound, network.CloudpipeNoNetwork (404); Invalid for a bad address or port (400)."""
    if id != CONFIGURE:
        raise errors.network.CloudpipeNotFound(id=id)
    asked = req.body["configure_project"]
    req.conductor.configure_vpn(req.project_id, asked["vpn_ip"], int(asked["vpn_port"]))
