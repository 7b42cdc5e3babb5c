"""Networks, as old versions show them."""

from __future__ import annotations

from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import networks as views


@answers({"networks": [views.FULL]})
def index(req: Request) -> dict[str, object]:
    """List the networks that the caller's project may use; an administrator sees all. The list is not paged."""
    return views.listed(req.conductor.list_networks(req.scope()), req)


@answers({"network": views.FULL})
def show(req: Request, network_id: str) -> dict[str, object]:
    """Show one network that the caller may use; an administrator sees more fields. Raises network.NotFound,
    network.Absent (404)."""
    network = req.conductor.get_network(network_id, req.scope())
    return {"network": views.FULL(network, req, views.flags(req))}
