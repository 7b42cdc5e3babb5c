"""Flavors, and projects' access to private ones."""

from __future__ import annotations

import re

from nova import errors
from nova.api import versions
from nova.api.request import Request
from nova.api.view import LINKS, answers
from nova.api.views import flavors as views
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.web.formats import BOOLEANS

EXTRA_SPECS_RULE = "os_compute_api:os-flavor-extra-specs:index"


ID = re.compile(r"(?! )[a-zA-Z0-9. _-]{1,255}(?<! )")

#: Name in a create's body -> field of the flavor.
CREATED = {"name": "name", "ram": "memory_mb", "vcpus": "vcpus", "disk": "root_gb",
           "OS-FLV-EXT-DATA:ephemeral": "ephemeral_gb", "swap": "swap_mb", "rxtx_factor": "rxtx_factor",
           "os-flavor-access:is_public": "is_public", "description": "description"}


@answers({"flavors": [views.BRIEF], "flavors_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List the names and links of flavors, page by page. Raises flavor.BadFilter, api.PageMarkerNotFound (400)."""
    return views.page(views.BRIEF, _listed(req), req)


@answers({"flavors": [views.FULL], "flavors_links?": LINKS})
def detail(req: Request) -> dict[str, object]:
    """List flavors with details, page by page. Raises flavor.BadFilter, api.PageMarkerNotFound (400)."""
    return views.page(views.FULL, _listed(req), req, _flags(req))


@answers({"flavor": views.FULL})
def show(req: Request, flavor_id: str) -> dict[str, object]:
    """Show one flavor; a private flavor only to administrators and projects with access. Raises flavor.NotFound
    (404)."""
    flavor = req.conductor.get_flavor(flavor_id, req.scope())
    return {"flavor": views.FULL(flavor, req, _flags(req))}


@answers({"flavor": views.FULL})
def create(req: Request) -> dict[str, object]:
    """Create a flavor; without an id, or with ``auto``, it gets a UUID. Raises flavor.BadId (400); flavor.IdTaken,
    flavor.NameTaken (409)."""
    asked = req.body["flavor"]
    fields = {CREATED[name]: value for name, value in asked.items() if name != "id"}
    if req.legacy:
        fields["name"] = fields["name"].strip()
    flavor = req.conductor.create_flavor(NewFlavor(
        flavorid=_chosen_id(asked.get("id")), **fields))
    return {"flavor": views.FULL(flavor, req, _flags(req))}


def _chosen_id(asked: str | float | None) -> str | None:
    """Return the requested id; None, also for ``auto``, generates a UUID. A number is converted to text."""
    if asked in (None, "auto"):
        return None
    if not ID.fullmatch(str(asked)):
        raise errors.flavor.BadId(value=asked)
    return str(asked)


@answers({"flavor": views.FULL})
def update(req: Request, flavor_id: str) -> dict[str, object]:
    """Change the description of a flavor, the only changeable field. Raises flavor.NotFound (404)."""
    flavor = req.conductor.update_flavor(flavor_id, req.body["flavor"]["description"])
    return {"flavor": views.FULL(flavor, req, _flags(req))}


def delete(req: Request, flavor_id: str) -> None:
    """Delete a flavor. Servers keep their copy of it. Raises flavor.NotFound (404)."""
    req.conductor.delete_flavor(flavor_id)


@answers(views.ACCESS)
def access(req: Request, flavor_id: str) -> dict[str, object]:
    """List the projects that may use a private flavor. Raises flavor.NotFound, flavor.PublicHasNoAccess (404)."""
    flavor = req.conductor.get_flavor(flavor_id, Scope())
    if flavor.is_public:
        raise errors.flavor.PublicHasNoAccess
    return views.access(flavor_id, flavor.projects)


@answers(views.ACCESS)
def add_access(req: Request, flavor_id: str) -> dict[str, object]:
    """Give a project access to a private flavor, and list all projects with access. Raises flavor.NotFound (404);
    service.NotAProject (400); flavor.AccessGiven, and from 2.7 flavor.PublicNeedsNoAccess (409)."""
    if (versions.access_to_public_flavor_is_refused(req.version)
            and req.conductor.get_flavor(flavor_id, Scope()).is_public):
        raise errors.flavor.PublicNeedsNoAccess(flavor_id=flavor_id)
    project = req.body["addTenantAccess"]["tenant"]
    return views.access(flavor_id, req.conductor.change_flavor_access(flavor_id, project, True))


@answers(views.ACCESS)
def remove_access(req: Request, flavor_id: str) -> dict[str, object]:
    """Remove a project's access to a flavor, and list the remaining projects. Raises flavor.NotFound,
    flavor.AccessMissing (404)."""
    project = req.body["removeTenantAccess"]["tenant"]
    return views.access(flavor_id, req.conductor.change_flavor_access(flavor_id, project, False))


def _flags(req: Request) -> frozenset[str]:
    return frozenset({views.EXTRA_SPECS} if req.allows(EXTRA_SPECS_RULE) else ())


def _listed(req: Request) -> tuple[Flavor, ...]:
    """Return the requested page. Only admins select public or private flavors (``none``: both)."""
    query = req.query
    return req.conductor.list_flavors(FlavorQuery(
        scope=req.scope(), is_public=_is_public(query.one("is_public")) if req.context.is_admin else True,
        min_ram_mb=_number("minRam", query.one("minRam")), min_disk_gb=_number("minDisk", query.one("minDisk")),
        name=query.one("name"), sort_key=query.one("sort_key", "flavorid"), sort_dir=query.one("sort_dir", "asc"),
        page=req.page()))


def _is_public(text: str | None) -> bool | None:
    if text is None:
        return True
    if text.lower() == "none":
        return None
    if text not in BOOLEANS:
        raise errors.flavor.BadFilter(name="is_public", value=text, wanted="a boolean, or none for both")
    return BOOLEANS[text]


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise errors.flavor.BadFilter(name=name, value=text, wanted="a whole number")
    return int(text)
