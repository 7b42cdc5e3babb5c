"""Flavors as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nova.api.request import Request
from nova.api.view import Out, View
from nova.model.flavor.flavors import Flavor

EXTRA_SPECS = "extra_specs"  # flag: policy os-flavor-extra-specs:index passed


def _links(flavor: Flavor, req: Request) -> list[dict[str, str]]:
    return req.links.of("flavors", flavor.flavorid)


BRIEF = View(
    Out("id", "flavorid"),
    Out("name", "name"),
    Out("links", _links),
    Out("description", "description", since="2.55"),
    of=Flavor,
)

FULL = View(
    *BRIEF.fields,
    Out("ram", "memory_mb"),
    Out("vcpus", "vcpus"),
    Out("disk", "root_gb"),
    Out("swap", lambda flavor, req: flavor.swap_mb or "", until="2.74", type=("integer", "string")),
    Out("swap", "swap_mb", since="2.75"),
    Out("OS-FLV-EXT-DATA:ephemeral", "ephemeral_gb"),
    Out("OS-FLV-DISABLED:disabled", "disabled", until="2.101"),
    Out("os-flavor-access:is_public", "is_public"),
    Out("rxtx_factor", "rxtx_factor", until="2.101"),
    Out("extra_specs", "extra_specs", since="2.61", flag=EXTRA_SPECS),
    of=Flavor,
)


ACCESS = {"flavor_access": [{"flavor_id": "string", "tenant_id": "string"}]}


def page(view: View, flavors: Sequence[Flavor], req: Request, flags: frozenset[str] = frozenset()) -> dict[str, object]:
    """Return a list with its next link."""
    last = flavors[-1].flavorid if flavors else None
    return {"flavors": view.all(flavors, req, flags), **req.next_links("flavors_links", flavors, last)}


def access(flavor_id: str, projects: Iterable[str]) -> dict[str, object]:
    """Return the projects that may use a private flavor."""
    return {"flavor_access": [{"flavor_id": flavor_id, "tenant_id": project} for project in projects]}
