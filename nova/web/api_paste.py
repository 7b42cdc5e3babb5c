"""Operators' own WSGI filters and applications, as ``api-paste.ini`` names them, around an API of ours.

Deployment tools install that file, and operators add to it: rate limits, audit, a health check. Here the file says what
stands around our application, and not what our application is made of: upstream's own factories do nothing, since the
application does their work. Loaded by PasteDeploy, whose documentation describes the format.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg
from paste.deploy import loadapp, loadfilter

from nova import errors
from nova.web.layers import Application, Middleware, stacked

OPTION, DEFAULT = "[wsgi]api_paste_config", "api-paste.ini"
#: Keys by which a section names what makes it, in the order in which PasteDeploy looks.
FACTORIES = ("use", "paste.filter_factory", "paste.filter_app_factory", "paste.app_factory", "paste.composite_factory")
AUTHENTICATION = ("keystonemiddleware.auth_token:filter_factory",
                  "nova.api.openstack.auth:NoAuthMiddleware.factory",
                  "nova.api.openstack.auth:NoAuthMiddlewareV2_18.factory")
#: What upstream's file names, in this release and older ones: our application does its work, or needs none.
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
    """What the operator has before a version of an API: ``outside`` and ``inside`` of its authentication. The first one
    sees a request first."""

    outside: list[Middleware] = field(default_factory=list)
    inside: list[Middleware] = field(default_factory=list)

    def around(self, application: Application, authenticate: Middleware) -> Application:
        """The application behind them all."""
        return stacked(application, (*self.outside, authenticate, *self.inside))


@dataclass
class Surroundings:
    """Of one API. ``versions``: by the first part of the path, empty for the root. ``beside``: applications of the
    operator's own, likewise."""

    versions: dict[str, OwnFilters] = field(default_factory=dict)
    beside: dict[str, Application] = field(default_factory=dict)

    def of(self, version: str) -> OwnFilters:
        """Empty where the file has no such version."""
        return self.versions.get(version, OwnFilters())


def surroundings(conf: cfg.ConfigOpts, api: str) -> Surroundings:
    """Those of the application ``api`` (``osapi_compute``, ``metadata``). config.Unusable names section and file."""
    path = _found(conf)
    return _File(path, conf.api.auth_strategy).surroundings(api) if path else Surroundings()


def _found(conf: cfg.ConfigOpts) -> Path | None:
    """Beside the files of the configuration. None: there is none, and none is asked for."""
    name = conf.wsgi.api_paste_config
    for folder in dict.fromkeys([*(Path(file).parent for file in conf.config_file or ()), Path("/")]):
        if (folder / name).is_file():
            return folder / name
    if name == DEFAULT:
        return None
    raise errors.config.Unusable(option=OPTION, reason=f"there is no file {name}")


class _File:
    """One ``api-paste.ini``. ``strategy``: which of the pipelines that depend on it is in use."""

    def __init__(self, path: Path, strategy: str) -> None:
        self._path, self._strategy = path, strategy
        self._sections = configparser.ConfigParser(interpolation=None, strict=False)
        self._sections.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            self._sections.read_string(path.read_text(), str(path))
        except (OSError, ValueError, configparser.Error) as error:
            reason = str(error).splitlines()[0]
            raise errors.config.Unusable(option=OPTION, reason=f"{path} is no INI file: {reason}") from None

    def surroundings(self, api: str) -> Surroundings:
        found = Surroundings()
        for path, name in self._mounted(api):
            part = path.removeprefix("/").partition("/")[0]
            *filters, application = self._line(name)
            if self._is_upstreams(application):
                self._add(found.versions.setdefault(part, OwnFilters()), filters)
            else:
                found.beside[part] = self._load(loadapp, application)
        return found

    def _mounted(self, api: str) -> Iterator[tuple[str, str]]:
        """(path, name) of what the application has; the whole of one that is no composite."""
        title = self._title(api, ("composite", "pipeline", "app"))
        if title is None:
            return
        paths = [(key, value) for key, value in self._sections[title].items() if key.startswith("/")]
        yield from (paths if title.startswith("composite:") and paths else [("/", api)])

    def _line(self, name: str) -> Sequence[str]:
        """The names of a pipeline's filters and, last, of its application."""
        title = self._title(name, ("composite", "pipeline", "app"))
        if title is None:
            raise self._wrong(name, "there is no such section")
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
        """As ``module:object`` of the section with that name."""
        title = self._title(name, kinds)
        if title is None:
            raise self._wrong(f"{kinds[0]}:{name}", "there is no such section")
        values: Mapping[str, str] = self._sections[title]
        made = next((values[key] for key in FACTORIES if key in values), "")
        return made.removeprefix("call:").removeprefix("egg:").strip()

    def _load(self, load: Callable[..., Application], name: str) -> Application:
        """config.Unusable, whatever a factory of somebody else raises."""
        try:
            return load(f"config:{self._path}", name=name)
        except Exception as error:
            raise self._wrong(name, f"{type(error).__name__}: {error}") from None

    def _title(self, name: str, kinds: Sequence[str]) -> str | None:
        return next((title for kind in kinds if (title := f"{kind}:{name}") in self._sections), None)

    def _wrong(self, section: str, reason: str) -> errors.NovaError:
        return errors.config.Unusable(option=OPTION, reason=f"section {section} of {self._path} cannot be loaded: "
                                                            f"{' '.join(reason.split())}")
