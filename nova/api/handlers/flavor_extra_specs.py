"""Extra specs of flavors."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.api import versions
from nova.api.request import Request
from nova.api.view import Free, answers
from nova.model.flavor import extra_specs

LONGEST = 255  # maximum characters of a value; the schema checks the length of texts, not of numbers


@answers({"extra_specs": Free()})
def index(req: Request, flavor_id: str) -> dict[str, object]:
    """List all extra specs of a flavor that the caller may use. Raises flavor.NotFound (404)."""
    return {"extra_specs": req.conductor.get_flavor(flavor_id, req.scope()).extra_specs}


@answers(Free())
def show(req: Request, flavor_id: str, key: str) -> dict[str, object]:
    """Show one extra spec of a flavor. Raises flavor.NotFound, flavor.NoSuchSpec (404)."""
    specs = req.conductor.get_flavor(flavor_id, req.scope()).extra_specs
    if key not in specs:
        raise errors.flavor.NoSuchSpec(flavor_id=flavor_id, key=key)
    return {key: specs[key]}


@answers({"extra_specs": Free()})
def create(req: Request, flavor_id: str) -> dict[str, object]:
    """Add extra specs to a flavor, and return the added ones."""
    specs = _checked(req, req.body["extra_specs"])
    req.conductor.set_flavor_specs(flavor_id, specs)
    return {"extra_specs": specs}


@answers(Free())
def update(req: Request, flavor_id: str, key: str) -> dict[str, str]:
    """Write one extra spec; the body must hold the key of the path. Raises flavor.NotFound (404);
    flavor.SpecKeyMismatch, flavor.BadSpec (400)."""
    if key not in req.body:
        raise errors.flavor.SpecKeyMismatch(key=key)
    specs = _checked(req, req.body)
    req.conductor.set_flavor_specs(flavor_id, specs)
    return specs


def delete(req: Request, flavor_id: str, key: str) -> None:
    """Delete one extra spec. Servers keep their copy of the flavor. Raises flavor.NotFound, flavor.NoSuchSpec (404)."""
    req.conductor.delete_flavor_spec(flavor_id, key)


def _checked(req: Request, asked: Mapping[str, str | float]) -> dict[str, str]:
    """Return the specs as text. Raises flavor.BadSpec for the first invalid one, at versions that check; at all
    versions for a number with which no server could be created."""
    specs = {key: str(value) for key, value in asked.items()}
    for key, value in specs.items():
        if len(value) > LONGEST:
            raise errors.flavor.BadSpec(reason=f"the value of extra spec {key} is longer than {LONGEST} characters")
        if (wrong := extra_specs.beyond(key, value)) is not None:
            raise errors.flavor.BadSpec(reason=wrong)
    if versions.extra_specs_are_checked(req.version):
        for key, value in specs.items():
            wrong = extra_specs.problem(key, value)
            if wrong is not None:
                raise errors.flavor.BadSpec(reason=wrong)
    return specs
