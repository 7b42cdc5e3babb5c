"""Assembly of the Placement API: the application from its parts, and the parts from a configuration."""

from __future__ import annotations

from wsgiref.types import WSGIApplication

from oslo_middleware import healthcheck

from nova.conf._options import Options, oslo_conf
from nova.placement import faults
from nova.placement.discovery import PlacementRoot
from nova.placement.dispatch import PlacementAPI
from nova.policies import Policy
from nova.web import microversions
from nova.web.access_log import AccessLog
from nova.web.dispatch import MountedApi, Site
from nova.web.errors import Errors
from nova.web.layers import authentication, library_middleware
from nova.web.request_id import RequestId
from nova.web.stacking import Middleware, stacked

ACCESS_LOG = "nova.placement.access"


def build(site: Site, authenticate: Middleware, outer: tuple[Middleware, ...] = (),
          beside: dict[str, WSGIApplication] | None = None) -> WSGIApplication:
    """Return the whole API. ``authenticate`` sets ``environ["nova.context"]``; the first of ``outer`` receives a
    request first."""
    application = Errors(MountedApi(PlacementRoot(authenticate(PlacementAPI(site))), beside or {}), faults.ERROR_FORMAT)
    return stacked(application, (RequestId, lambda inner: AccessLog(inner, "placement", ACCESS_LOG), *outer))


def from_conf(conductor: object, conf: Options) -> WSGIApplication:
    """Return the API configured by ``conf``; ``conductor`` is a client of PlacementRPC."""
    policy = Policy(oslo_conf(conf))
    return build(Site(conductor, policy), authentication(conf, policy),
                 library_middleware(oslo_conf(conf), (microversions.HEADER,), always_cors=False),
                 {"healthcheck": healthcheck.Healthcheck(None, oslo_conf(conf))})
