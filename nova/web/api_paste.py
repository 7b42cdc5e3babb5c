"""Operators' own WSGI filters and applications around an API, as configured in ``api-paste.ini``.

Deployment tools install that file, and operators add to it: rate limits, audit, a health check. Here the file defines
only the surroundings of nova's application, not its parts: upstream's factories have no effect, because the application
does their work. Loaded with PasteDeploy, whose documentation describes the format.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from wsgiref.types import WSGIApplication

from paste.deploy import loadapp, loadfilter

from nova import errors, failures
from nova.conf._options import Options, oslo_conf
from nova.web.stacking import Middleware, stacked

T = TypeVar("T")

OPTION, DEFAULT = "[wsgi]api_paste_config", "api-paste.ini"
#: Keys by which a section names its factory, in PasteDeploy's order of precedence.
FACTORIES = ("use", "paste.filter_factory", "paste.filter_app_factory", "paste.app_factory", "paste.composite_factory")
AUTHENTICATION = ("keystonemiddleware.auth_token:filter_factory",
                  "nova.api.openstack.auth:NoAuthMiddleware.factory",
                  "nova.api.openstack.auth:NoAuthMiddlewareV2_18.factory")
#: Factories in upstream's file, of this release and older ones: nova's application does their work, or does not need
#: it.
UPSTREAM = frozenset((
    *AUTHENTICATION,
    "nova.api.auth:InjectContext.factory",
    "nova.api.auth:NovaKeystoneContext.factory",
    "nova.api.auth:pipeline_factory",
    "nova.api.auth:pipeline_factory_v21",
    "nova.api.compute_req_id:ComputeReqIdMiddleware.factory",
    "nova.api.metadata.handler:MetadataRequestHandler.factory",
    "nova.api.openstack:FaultWrapper.factory",
    "nova.api.openstack:LegacyV2CompatibleWrapper.factory",
    "nova.api.openstack.compute:APIRouter.factory",
    "nova.api.openstack.compute:APIRouterV21.factory",
    "nova.api.openstack.compute.versions:Versions.factory",
    "nova.api.openstack.compute.versions:VersionsV2.factory",
    "nova.api.openstack.requestlog:RequestLog.factory",
    "nova.api.openstack.urlmap:urlmap_factory",
    "nova.api.sizelimit:RequestBodySizeLimiter.factory",
    "oslo_middleware:CORS.factory",
    "oslo_middleware:HTTPProxyToWSGI.factory",
    "oslo_middleware:RequestBodySizeLimiter.factory",
    "oslo_middleware:RequestId.factory",
    "oslo_middleware.cors:filter_factory",
    "oslo_middleware.http_proxy_to_wsgi:HTTPProxyToWSGI.factory",
    "oslo_middleware.request_id:RequestId.factory",
    "oslo_middleware.sizelimit:RequestBodySizeLimiter.factory",
    "osprofiler.web:WsgiMiddleware.factory",
    "paste.urlmap:urlmap_factory",
    "Paste#urlmap",
))


@dataclass
class OwnFilters:
    """The operator's filters for a version of an API: ``outside`` and ``inside`` of its authentication. The first one
    receives a request first."""

    outside: list[Middleware] = field(default_factory=list)
    inside: list[Middleware] = field(default_factory=list)

    def around(self, application: WSGIApplication, authenticate: Middleware) -> WSGIApplication:
        """Return the application behind all filters."""
        return stacked(application, (*self.outside, authenticate, *self.inside))


@dataclass
class PasteConfig:
    """The filters and additional applications of one API. ``versions``: by the first part of the path, empty for the
    root. ``beside``: applications of the operator, by the same key."""

    versions: dict[str, OwnFilters] = field(default_factory=dict)
    beside: dict[str, WSGIApplication] = field(default_factory=dict)

    def of(self, version: str) -> OwnFilters:
        """Return the filters of a version; empty if the file has no such version."""
        return self.versions.get(version, OwnFilters())


def surroundings(conf: Options, api: str) -> PasteConfig:
    """Return the surroundings of the application ``api`` (``osapi_compute``, ``metadata``). Raises config.Unusable,
    which names section and file."""
    path = _found(conf)
    return _File(path, conf.api.auth_strategy).surroundings(api) if path else PasteConfig()


def _found(conf: Options) -> Path | None:
    """Return the file, which is searched for next to the configuration files. None: it does not exist, and is not
    configured."""
    name = conf.wsgi.api_paste_config
    for folder in dict.fromkeys([*(Path(file).parent for file in oslo_conf(conf).config_file or ()), Path("/")]):
        if (folder / name).is_file():
            return folder / name
    if name == DEFAULT:
        return None
    raise errors.config.Unusable(option=OPTION, reason=f"no such file: {name}")


class _File:
    """A parsed ``api-paste.ini``. ``strategy``: selects among the pipelines that depend on the authentication
    strategy."""

    def __init__(self, path: Path, strategy: str) -> None:
        self._path, self._strategy = path, strategy
        self._sections = configparser.ConfigParser(interpolation=None, strict=False)
        self._sections.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            self._sections.read_string(path.read_text(), str(path))
        except (OSError, ValueError, configparser.Error) as error:
            reason = str(error).splitlines()[0]
            raise errors.config.Unusable(option=OPTION, reason=f"{path} is not an INI file: {reason}") from None

    def surroundings(self, api: str) -> PasteConfig:
        found = PasteConfig()
        for path, name in self._mounted(api):
            part = path.removeprefix("/").partition("/")[0]
            *filters, application = self._line(name)
            if self._is_upstreams(application):
                self._add(found.versions.setdefault(part, OwnFilters()), filters)
            else:
                found.beside[part] = self._load(loadapp, application)
        return found

    def _mounted(self, api: str) -> Iterator[tuple[str, str]]:
        """Yield the (path, name) pairs of the application; a single one if it is not a composite."""
        title = self._title(api, ("composite", "pipeline", "app"))
        if title is None:
            return
        paths = [(key, value) for key, value in self._sections[title].items() if key.startswith("/")]
        yield from (paths if title.startswith("composite:") and paths else [("/", api)])

    def _line(self, name: str) -> Sequence[str]:
        """Return the names of a pipeline's filters, followed by its application."""
        title = self._title(name, ("composite", "pipeline", "app"))
        if title is None:
            raise self._wrong(name, "the section does not exist")
        section = self._sections[title]
        line = section.get("pipeline") if title.startswith("pipeline:") else section.get(self._strategy)
        return line.split() if line else [name]

    def _add(self, pipeline: OwnFilters, filters: Sequence[str]) -> None:
        place = pipeline.outside
        for name in filters:
            if self._factory(name, ("filter",)) in AUTHENTICATION:
                place = pipeline.inside
            elif not self._is_upstreams(name, ("filter",)):
                place.append(self._load(loadfilter, name))

    def _is_upstreams(self, name: str, kinds: Sequence[str] = ("composite", "pipeline", "app")) -> bool:
        return self._factory(name, kinds) in UPSTREAM

    def _factory(self, name: str, kinds: Sequence[str]) -> str:
        """Return the factory of the section with that name, as ``module:object``."""
        title = self._title(name, kinds)
        if title is None:
            raise self._wrong(f"{kinds[0]}:{name}", "the section does not exist")
        values: Mapping[str, str] = self._sections[title]
        made = next((values[key] for key in FACTORIES if key in values), "")
        return made.removeprefix("call:").removeprefix("egg:").strip()

    def _load(self, load: Callable[..., T], name: str) -> T:
        """Load a filter or application. Raises config.Unusable for any error of a third-party factory."""
        # a factory of a third party may raise anything
        with failures.replaced(Exception, lambda error: self._wrong(name, f"{type(error).__name__}: {error}")):
            return load(f"config:{self._path}", name=name)

    def _title(self, name: str, kinds: Sequence[str]) -> str | None:
        return next((title for kind in kinds if (title := f"{kind}:{name}") in self._sections), None)

    def _wrong(self, section: str, reason: str) -> errors.NovaError:
        return errors.config.Unusable(option=OPTION, reason=f"section {section} of {self._path} cannot be loaded: "
                                                            f"{' '.join(reason.split())}")
