"""The identity service: limits of projects. Source: its public API reference (v3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import requests
from keystoneauth1 import exceptions

from nova import errors, failures
from nova.clients.answers import NULL, UnreadableError, decoded, decoded_list
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.conf.oslo_limit import OsloLimitOptions

RETRIES = 1
RETRY_WAIT_S = 0.2

T = TypeVar("T")


class ProjectLimits(NamedTuple):
    """Limits that are registered for every project, and those of one project: resource -> limit."""

    registered: Mapping[str, int]
    own: Mapping[str, int]


class Endpoint(NamedTuple):
    """The service and region to which limits apply."""

    service_id: str
    region_id: str | None


class ServiceJson(msgspec.Struct, frozen=True):
    """A service of the catalog."""

    id: str


class EndpointJson(msgspec.Struct, frozen=True):
    """An endpoint of a service."""

    service_id: str
    region_id: str | None = None


class EndpointAnswer(msgspec.Struct, frozen=True):
    """The answer with one endpoint."""

    endpoint: EndpointJson


class RegisteredLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of every project."""

    resource_name: str
    amount: int = msgspec.field(name="default_limit")
    region_id: str | None = None


class OwnLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of one project."""

    resource_name: str
    amount: int = msgspec.field(name="resource_limit")
    project_id: str | None = None
    region_id: str | None = None


class WantedEndpoint(NamedTuple):
    """Selection of the endpoint: by its id, or by all other fields."""

    id: str | None
    service_type: str
    service_name: str | None
    interface: str
    region: str | None


def of_groups(oslo_limit: OsloLimitOptions, credentials: Credentials) -> Keystone:
    """Return a client for the ``[oslo_limit]`` group."""
    wanted = WantedEndpoint(oslo_limit.endpoint_id, oslo_limit.endpoint_service_type, oslo_limit.endpoint_service_name,
                            oslo_limit.endpoint_interface.removesuffix("URL"), oslo_limit.endpoint_region_name)
    return Keystone(credentials, wanted, oslo_limit.read_timeout)


class Keystone:
    """Client of the identity service. Calls raise Unavailable if it does not answer, or an error if it refuses nova's
    credentials."""

    def __init__(self, credentials: Credentials, wanted: WantedEndpoint, read_timeout_s: float = 10.0) -> None:
        self._credentials, self._wanted, self._timeout_s = credentials, wanted, read_timeout_s
        self._caller: Caller | None = None
        self._endpoint: Endpoint | None = None

    def limits(self, project_id: str) -> ProjectLimits:
        """Return the limits with two requests, once the endpoint is known. An endpoint that has been removed is looked
        up again. An empty project has no limits of its own."""
        endpoint = self._endpoint or self._find_endpoint()
        registered = self._list("registered_limits", RegisteredLimit, service_id=endpoint.service_id)
        if not registered and self._endpoint is not None:
            endpoint = self._find_endpoint()
            registered = self._list("registered_limits", RegisteredLimit, service_id=endpoint.service_id)
        own = self._list("limits", OwnLimit, service_id=endpoint.service_id,
                         project_id=project_id) if project_id else []
        own = [one for one in own if one.project_id == project_id]  # a policy may change the query
        self._endpoint = endpoint
        return ProjectLimits(_by_name(registered, endpoint), _by_name(own, endpoint))

    def register(self, limits: Mapping[str, int]) -> None:
        """Register limits for all projects, in the endpoint's region. Raises service.Conflict if one exists;
        service.Forbidden if the caller is not a system administrator."""
        self._write("registered_limits", [{"resource_name": name, "default_limit": limit}
                                          for name, limit in limits.items()])

    def limit(self, project_id: str, limits: Mapping[str, int]) -> None:
        """Set limits of one project; each must be registered. Raises errors as ``register``; service.Invalid if
        Keystone does not know the project."""
        self._write("limits", [{"project_id": project_id, "resource_name": name, "resource_limit": limit}
                               for name, limit in limits.items()])

    def _write(self, what: str, rows: Sequence[Mapping[str, object]]) -> None:
        endpoint = self._endpoint = self._endpoint or self._find_endpoint()
        where = {"service_id": endpoint.service_id, "region_id": endpoint.region_id}
        caller = self._caller = self._caller or reach(self._credentials, self._timeout_s)
        caller.call("POST", f"/{what}", what=what.replace("_", " "), json={what: [{**where, **row} for row in rows]})

    def _find_endpoint(self) -> Endpoint:
        wanted = self._wanted
        if wanted.id:
            one = self._get(f"/endpoints/{wanted.id}", EndpointAnswer).endpoint
            return Endpoint(one.service_id, one.region_id)
        named = {"name": wanted.service_name} if wanted.service_name else {}
        services = {one.id for one in self._list("services", ServiceJson, type=wanted.service_type, **named)}
        found = [one for one in self._list("endpoints", EndpointJson, interface=wanted.interface)
                 if one.service_id in services and wanted.region in (None, one.region_id)]
        if len({(one.service_id, one.region_id) for one in found}) != 1:
            raise errors.quota.LimitsNoEndpoint(
                count=len(found), wanted=f"endpoint_service_type={wanted.service_type}, "
                f"endpoint_interface={wanted.interface}, endpoint_region_name={wanted.region}")
        return Endpoint(found[0].service_id, found[0].region_id)

    def _list(self, what: str, kind: type[T], **query: str) -> list[T]:
        with failures.replaced(UnreadableError, lambda _: _strange(f"/{what}")):
            return decoded_list(self._get(f"/{what}", dict[str, msgspec.Raw], query).get(what, NULL), kind)

    def _get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        caller = self._caller = self._caller or reach(self._credentials, self._timeout_s)

        def undo() -> None:
            self._caller = self._endpoint = None  # it may have moved
        with failures.on_failure(undo, on=errors.service.ResourceNotFound), \
                failures.replaced(UnreadableError, lambda _: _strange(path)):
            return decoded(caller.call("GET", path, what=path.strip("/").replace("/", " "), params=query), kind)


def reach(credentials: Credentials, read_timeout_s: float, region_name: str | None = None) -> Caller:
    """Return a caller of Keystone's API v3; the catalog may contain its address with or without a version. Raises
    service.Unavailable, and errors if Keystone refuses nova's credentials; service.ResourceNotFound if the catalog has
    no address."""
    service = ServiceEndpoint("identity", "identity", retries=RETRIES, read_timeout_s=read_timeout_s,
                              retry_wait_s=RETRY_WAIT_S)
    auth = credentials.auth
    with failures.translated((exceptions.ClientException, requests.RequestException),
            lambda error: Caller(service, credentials).translated(error, "API v3")):
        address = auth.get_endpoint(credentials.session, service_type="identity", version="3",
                                    interface=list(service.interfaces), region_name=region_name,
                                    ) if auth is not None else None
    if not address:
        raise errors.service.ResourceNotFound(service="identity", what="address in the catalog")
    return Caller(service.__class__(**{**vars(service), "addresses": (str(address).rstrip("/"),)}), credentials)


def _strange(path: str) -> errors.NovaError:
    return errors.service.Unavailable(service="identity", reason=f"the server that answers {path} is not Keystone")


def _by_name(rows: Iterable[RegisteredLimit | OwnLimit], endpoint: Endpoint) -> dict[str, int]:
    """Return resource -> limit. A limit of the endpoint's own region takes precedence over one for all regions; limits
    of other regions are ignored."""
    found: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row.region_id is not None):
        if row.region_id in (None, endpoint.region_id):
            found[row.resource_name] = row.amount
    return found


__all__ = ["Endpoint", "Keystone", "ProjectLimits", "WantedEndpoint", "of_groups", "reach"]
