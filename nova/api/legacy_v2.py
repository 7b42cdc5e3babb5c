"""The table of operations that were removed from /v2.1 but still work under /v2. The rows have the form of
``routes.ROUTES``; each comes before the row of ``absent.py`` that refuses the operation at /v2.1.
"""

from __future__ import annotations

from nova.api.handlers import certificates
from nova.api.routing import Route

ROUTES: tuple[Route, ...] = (
    Route("POST", "/os-certificates", certificates.create, "os_compute_api:os-certificates:create", legacy=True),
    Route("GET", "/os-certificates/{id}", certificates.show, "os_compute_api:os-certificates:show", legacy=True),
)

__all__ = ["ROUTES"]
