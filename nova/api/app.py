"""Assembly of the API: the application from its parts, and the parts from a configuration."""

from __future__ import annotations

import functools
from wsgiref.types import WSGIApplication

from oslo_middleware import healthcheck

from nova.api import absent, faults, legacy_networks, legacy_v2, versions
from nova.api.discovery import ComputeRoot
from nova.api.dispatch import ComputeAPI
from nova.api.extras import CORE, Extras
from nova.api.request import ApiOptions, ComputeSite
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.conf._options import Options, oslo_conf
from nova.conf.network import neutron_in_use
from nova.policies import Policy
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.web import microversions
from nova.web.access_log import AccessLog
from nova.web.api_paste import PasteConfig, surroundings
from nova.web.dispatch import MountedApi
from nova.web.errors import Errors
from nova.web.layers import authentication, library_middleware
from nova.web.request_id import HEADER, RequestId
from nova.web.routing import Router
from nova.web.stacking import Middleware, stacked

API = "osapi_compute"  # name in api-paste.ini
ACCESS_LOG = "nova.api.access"
REQUEST_ID_HEADERS = (HEADER, "x-compute-request-id")


@functools.cache
def table(networks: str, extras: Extras = CORE) -> tuple[Route, ...]:
    """Return the rows of all operations. With nova-network, operations that only it supports replace the rows of
    removed ones. Rows for /v2 only come before the common ones."""
    served = (*legacy_networks.ROUTES, *extras.networks) if networks == legacy_networks.BACK_END else ()
    return (*ROUTES, *legacy_v2.ROUTES, *served, *absent.rows(without={row.id for row in served}))


@functools.cache
def router(networks: str, extras: Extras = CORE) -> Router[Route]:
    """Return the router, which both prefixes share."""
    return Router(table(networks, extras))


def build(site: ComputeSite, authenticate: Middleware, outer: tuple[Middleware, ...] = (),
          beside: dict[str, WSGIApplication] | None = None, own: PasteConfig | None = None,
          extras: Extras = CORE) -> WSGIApplication:
    """Return the whole API. ``authenticate`` sets ``environ["nova.context"]``; ``outer``: the first one gets a request
    first.

    ``beside``: further applications next to the versions, by the first part of the path. ``own``: the operator's
    filters around them.
    """
    routes, own = router(site.networks, extras), own or PasteConfig()
    legacy = own.of("v2").around(extras.formats.api(routes, site), authenticate)
    mounted = {"v2.1": own.of("v2.1").around(ComputeAPI(routes, site), authenticate), "v2": legacy, "v1.1": legacy}
    root = ComputeRoot(mounted, site.options, extras.formats)
    documents = stacked(root, own.of("").outside)
    application = Errors(MountedApi(documents, {**dict.fromkeys(mounted, root), **(beside or {}), **own.beside}),
                         faults.ERROR_FORMAT)
    return stacked(application, (lambda inner: RequestId(inner, REQUEST_ID_HEADERS),
                                 lambda inner: AccessLog(inner, "compute", ACCESS_LOG), *outer))


def from_conf(conductor: ConductorRPC, consoles: ConsoleAuthRPC, certs: CertRPC, conf: Options,
              policy: Policy | None = None, extras: Extras = CORE) -> WSGIApplication:
    """Return the API configured by ``conf``; ``conductor``, ``consoles`` and ``certs`` are clients of their contracts.
    ``policy``: an existing policy for ``conf``, because reading all rules takes longer than all the rest."""
    policy = policy or Policy(oslo_conf(conf))
    options = ApiOptions(max_limit=conf.api.max_limit, compute_link_prefix=conf.api.compute_link_prefix,
                         glance_link_prefix=conf.api.glance_link_prefix,
                         enable_instance_password=conf.api.enable_instance_password,
                         password_length=conf.password_length,
                         skips_silent_cells=conf.api.list_records_by_skipping_down_cells,
                         max_local_block_devices=conf.max_local_block_devices,
                         floating_pool=conf.default_floating_pool, public_interface=conf.public_interface)
    health = healthcheck.Healthcheck(None, oslo_conf(conf))
    networks = "neutron" if neutron_in_use(conf) else legacy_networks.BACK_END
    return build(ComputeSite(conductor, policy, consoles, certs, options, networks), authentication(conf, policy),
                 library_middleware(oslo_conf(conf), (versions.OLD_HEADER, microversions.HEADER)),
                 {"healthcheck": health}, surroundings(conf, API), extras)
