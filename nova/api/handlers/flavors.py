"""Flavors."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.api.formats import BOOLEANS
from nova.api.request import Request
from nova.api.views import flavors as views
from nova.model.flavors import Flavor, FlavorQuery

EXTRA_SPECS_RULE = "os_compute_api:os-flavor-extra-specs:index"


class BadFilter(errors.Invalid):
    code, message = "flavor.bad_filter", "Invalid {name} filter [{value}]: it must be {wanted}."


def index(req: Request) -> dict[str, Any]:
    return views.page(views.BRIEF, _listed(req), req)


def detail(req: Request) -> dict[str, Any]:
    return views.page(views.FULL, _listed(req), req, _flags(req))


def show(req: Request, flavor_id: str) -> dict[str, Any]:
    flavor = req.conductor.get_flavor(flavor_id, req.scope())
    return {"flavor": views.FULL(flavor, req, _flags(req))}


def _flags(req: Request) -> frozenset[str]:
    return frozenset({views.EXTRA_SPECS} if req.allows(EXTRA_SPECS_RULE) else ())


def _listed(req: Request) -> tuple[Flavor, ...]:
    """The page asked for. Only admins choose between public and private flavors (``none``: both)."""
    query = req.query
    return req.conductor.list_flavors(FlavorQuery(
        scope=req.scope(), is_public=_is_public(query.one("is_public")) if req.context.is_admin else True,
        min_ram_mb=_number("minRam", query.one("minRam")), min_disk_gb=_number("minDisk", query.one("minDisk")),
        sort_key=query.one("sort_key", "flavorid"), sort_dir=query.one("sort_dir", "asc"), page=req.page()))


def _is_public(text: str | None) -> bool | None:
    if text is None:
        return True
    if text.lower() == "none":
        return None
    if text not in BOOLEANS:
        raise BadFilter(name="is_public", value=text, wanted="a boolean, or none for both")
    return BOOLEANS[text]


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadFilter(name=name, value=text, wanted="a whole number")
    return int(text)
