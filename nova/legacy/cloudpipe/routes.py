"""The operations of VPN servers (Compute API reference, os-cloudpipe), as rows of ``nova.api.legacy_networks``."""

from __future__ import annotations

from nova.api.legacy_networks import LAST
from nova.api.routing import Route
from nova.legacy.cloudpipe import handlers, schemas

_RULE = "os_compute_api:os-cloudpipe"

ROUTES: tuple[Route, ...] = (
    Route("GET", "/os-cloudpipe", handlers.index, _RULE, until=LAST),
    Route("POST", "/os-cloudpipe", handlers.create, _RULE, schemas.CREATE, until=LAST),
    Route("PUT", "/os-cloudpipe/{id}", handlers.update, _RULE, schemas.CONFIGURE, code=202, until=LAST),
)
