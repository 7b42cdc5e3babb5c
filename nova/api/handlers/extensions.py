"""Handlers of the fixed list of extensions."""

from __future__ import annotations

from nova import errors
from nova.api.extensions import BY_ALIAS, EXTENSIONS, NAMESPACE, UPDATED, Extension
from nova.api.request import Request
from nova.api.view import answers

SHAPE = {**dict.fromkeys(("alias", "description", "name", "namespace", "updated"), "string"), "links": ["object"]}


@answers({"extensions": [SHAPE]})
def index(req: Request) -> dict[str, object]:
    """List the extensions. The list is the same in every cloud and for every caller, and is not paged."""
    return {"extensions": [_shown(extension) for extension in EXTENSIONS]}


@answers({"extension": SHAPE})
def show(req: Request, alias: str) -> dict[str, object]:
    """Show one extension by its alias. Raises api.ExtensionNotFound (404)."""
    if alias not in BY_ALIAS:
        raise errors.api.ExtensionNotFound(alias=alias)
    return {"extension": _shown(BY_ALIAS[alias])}


def _shown(extension: Extension) -> dict[str, object]:
    return {**extension._asdict(), "links": [], "namespace": NAMESPACE, "updated": UPDATED}
