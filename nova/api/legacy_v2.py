"""The table of operations that are gone from /v2.1 but work below /v2, as they once did. Same rows as those of
``routes.ROUTES``; each stands before the row of ``absent.py`` that says so at /v2.1.
"""

from __future__ import annotations

from nova.api.handlers import certificates
from nova.api.routing import Route

ROUTES: tuple[Route, ...] = (
    Route("POST", "/os-certificates", certificates.create, "os_compute_api:os-certificates:create", legacy=True),
    Route("GET", "/os-certificates/{id}", certificates.show, "os_compute_api:os-certificates:show", legacy=True),
)

__all__ = ["ROUTES"]
