"""Puts the API together: the application from its parts, and the parts from a configuration."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg
from oslo_middleware import healthcheck

from nova.api import faults, versions
from nova.api.absent import ABSENT
from nova.api.discovery import Root
from nova.api.dispatch import Dispatcher
from nova.api.request import Options, Site
from nova.api.routes import ROUTES
from nova.policies import Policy
from nova.web.access_log import AccessLog
from nova.web.errors import Errors
from nova.web.layers import Application, Middleware, authentication, library_middleware, stacked
from nova.web.request_id import HEADER, RequestId

REQUEST_ID_HEADERS = (HEADER, "x-compute-request-id")


def build(site: Site, authenticate: Middleware, outer: tuple[Middleware, ...] = (),
          beside: dict[str, Application] | None = None) -> Application:
    """The whole API. ``authenticate`` sets ``environ["nova.context"]``; ``outer``: the first sees a request first.

    ``beside`` is served beside the versions: first part of the path -> application.
    """
    rows = (*ROUTES, *ABSENT)
    mounted = {"v2.1": authenticate(Dispatcher(rows, site)), "v2": authenticate(Dispatcher(rows, site, legacy=True))}
    application = Errors(Root(mounted, beside or {}, site.options), faults.SPEECH)
    return stacked(application, (lambda inner: RequestId(inner, REQUEST_ID_HEADERS), AccessLog, *outer))


def from_conf(conductor: Any, consoles: Any, conf: cfg.ConfigOpts) -> Application:
    """The API as ``conf`` says; ``conductor`` is a client of ConductorRPC, ``consoles`` one of ConsoleAuthRPC."""
    policy = Policy(conf)
    options = Options(max_limit=conf.api.max_limit, compute_link_prefix=conf.api.compute_link_prefix,
                      glance_link_prefix=conf.api.glance_link_prefix,
                      enable_instance_password=conf.api.enable_instance_password,
                      password_length=conf.password_length,
                      skips_silent_cells=conf.api.list_records_by_skipping_down_cells)
    health = healthcheck.Healthcheck(None, conf)
    return build(Site(conductor, consoles, policy, options), authentication(conf, policy),
                 library_middleware(conf, (versions.OLD_HEADER, versions.HEADER)),
                 {"healthcheck": health})
