"""Calls to Cinder: address, identity, API version, and translation of errors.

A user's call carries the user's token and nova's service token; nova's own calls carry nova's token as both: Cinder
deletes an attachment that is in use only for a service. The catalog of nova's token contains the address of *nova's*
project, so the project in an address is always replaced with the calling one.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import msgspec
import requests
from keystoneauth1 import exceptions, plugin
from keystoneauth1.service_token import ServiceTokenAuthWrapper

from nova import context, errors, failures
from nova.clients.answers import decoded
from nova.clients.session import Caller, Credentials, ServiceEndpoint

LOG = logging.getLogger(__name__)

Version = tuple[int, int]

#: keystoneauth's exceptions if a cloud has no such service.
NOT_IN_CATALOG = (exceptions.EndpointNotFound, exceptions.EmptyCatalog)
ATTACHMENT_RETRIES = 4  # at least: back ends are busy at times, and incomplete operations need manual repair
VERSIONS_BELIEVED_S = 600.0  # after that, the service may have been upgraded
LONGEST_REASON = 500

#: Statuses with a more specific meaning for Cinder than for other services.
REFUSALS: Mapping[int, Callable[..., errors.NovaError]] = {400: errors.volume.Refused, 413: errors.volume.OverQuota}


class CinderEndpoint(NamedTuple):
    """An endpoint: its address before ``/v3``, and whether a project id follows."""

    root: str
    names_project: bool

    def base(self, project_id: str | None) -> str:
        """Return the base address of calls."""
        return f"{self.root}/v3/{project_id}" if self.names_project and project_id else f"{self.root}/v3"


class CinderCaller(Caller):
    """A caller like :class:`nova.clients.session.Caller`, with :meth:`headers` that select an API version."""

    def __init__(self, service: ServiceEndpoint, credentials: Credentials,
                 clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(service, dataclasses.replace(credentials, send_service_token=True))
        self._clock = clock
        self._newest: dict[str, tuple[Version, float]] = {}  # root -> its newest version, and when it was read

    def patient(self) -> Self:
        """Return a caller with more retries, for calls that complete operations of others."""
        other = copy.copy(self)
        other.service = dataclasses.replace(self.service, retries=max(self.service.retries, ATTACHMENT_RETRIES))
        return other

    def call(self, method: str, path: str, *, as_user: bool = False, what: str = "such thing",
             **kwargs: object) -> requests.Response:
        """Call the service. Raises volume.Refused, volume.OverQuota, service.ResourceNotFound, service.Conflict;
        service.Forbidden for a user's call, volume.Credentials for nova's own; volume.NoService, volume.WrongAddress,
        volume.Away."""
        try:
            return super().call(method, path, as_user=as_user, what=what, **kwargs)
        except errors.volume.Away:
            raise
        except errors.service.Unavailable as error:  # no request was sent: no time is left
            raise errors.volume.Away(reason=error.data["reason"]) from error
        except errors.service.Credentials as error:
            raise errors.volume.Credentials(reason=error.data["reason"]) from error
        except errors.service.Forbidden as error:
            if as_user:
                raise
            raise errors.volume.Credentials(reason=error.data["reason"]) from error

    # -- versions

    def headers(self, versions: tuple[Version, ...]) -> dict[str, str]:
        """Return the headers of a call that supports these versions, in order of preference; without versions, that of
        3.0. Raises volume.TooOld, and errors as :meth:`call`."""
        if not versions:
            return {}
        newest = self.newest()
        found = next((one for one in versions if one <= newest), None)
        if found is None:
            wanted = min(versions)
            raise errors.volume.TooOld(wanted="{}.{}".format(*wanted), found="{}.{}".format(*newest))
        return {"OpenStack-API-Version": "volume {}.{}".format(*found)}

    def newest(self) -> Version:
        """Return the newest version of the service; its version document is cached for some minutes."""
        root = self._endpoint().root
        known, read_at = self._newest.get(root, ((0, 0), -VERSIONS_BELIEVED_S))
        if self._clock() - read_at < VERSIONS_BELIEVED_S:
            return known
        found = _newest(self.call("GET", f"{root}/", what="version document"))
        self._newest[root] = found, self._clock()
        return found

    # -- address and identity

    def _once(self, method: str, path: str, address: str | None, as_user: bool, what: str,
              kwargs: Mapping[str, object]) -> requests.Response:
        base = self._endpoint().base(self._project(as_user))
        answer = super()._once(method, path, base, as_user, what, kwargs)
        LOG.debug("%s %s: %d (%s)", method, path, answer.status_code,
                  answer.headers.get("x-openstack-request-id", "no request id"))
        return answer

    def _endpoint(self) -> CinderEndpoint:
        address = self.service.addresses[0] if self.service.addresses else self._in_catalog()
        found = re.fullmatch(r"(.*)/v3(/.*)?", address.rstrip("/"))
        if found is None:
            raise errors.volume.WrongAddress(reason=f"{address} is not of version 3 (it has no /v3)")
        return CinderEndpoint(found[1], bool(found[2]))

    def _in_catalog(self) -> str:
        own, service = self._credentials.auth, self.service
        if own is None:
            raise errors.volume.NoService(reason="neither credentials nor endpoint_template are configured")
        try:
            found = self._credentials.session.get_endpoint(
                own, service_type=service.service_type, service_name=service.service_name,
                interface=list(service.interfaces), region_name=service.region_name)
        except NOT_IN_CATALOG:
            found = None
        except (exceptions.ClientException, requests.RequestException) as error:
            raise self.translated(error, "address") from error
        if not found:
            raise errors.volume.NoService(reason=f"the catalog has no service of type {service.service_type}")
        return str(found)

    def _project(self, as_user: bool) -> str | None:
        if as_user:
            return context.current().project_id
        own = self._credentials.auth
        with failures.translated((exceptions.ClientException, requests.RequestException),
                lambda error: self.translated(error, "project")):
            return own.get_project_id(self._credentials.session) if own is not None else None

    def _auth(self, as_user: bool, address: str | None) -> plugin.BaseAuthPlugin:
        found, own = super()._auth(as_user, address), self._credentials.auth
        return ServiceTokenAuthWrapper(own, own) if own is not None and found is own else found

    # -- error translation

    def translated(self, error: Exception, what: str) -> errors.NovaError:
        """Return the nova error for a failed call, with Cinder's own reason if there is one."""
        status, said = getattr(error, "http_status", None), _said(error)
        if status is not None:
            LOG.debug("refused with %s (%s): %s", status, getattr(error, "request_id", None) or "no request id", said)
        found = super().translated(error, what)
        reason = said or str(found.data.get("reason", ""))
        if refusal := REFUSALS.get(status or 0):
            return refusal(reason=reason)
        if isinstance(found, errors.service.Unavailable):
            return errors.volume.Away(reason=f"{status} {said}" if said else reason)
        return type(found)(None, **{**found.data, "reason": reason})


def _said(error: Exception) -> str:
    """Return the reason of an answer such as ``{"badRequest": {"code": 400, "message": "..."}}``; empty if there is
    none."""
    response = getattr(error, "response", None)
    try:
        body = response.json() if response is not None else None
    except ValueError:
        return ""
    faults = body.values() if isinstance(body, Mapping) else ()
    found = next((one["message"] for one in faults if isinstance(one, Mapping) and "message" in one), "")
    return " ".join(str(found).split())[:LONGEST_REASON].rstrip(".")


class VersionJson(msgspec.Struct, frozen=True):
    """A version in the version document."""

    id: str
    version: str = ""


class VersionsAnswer(msgspec.Struct, frozen=True):
    """The version document."""

    versions: tuple[VersionJson, ...]


def _newest(answer: requests.Response) -> Version:
    """Return the newest version in a version document: ``{"versions": [{"id": "v3.0", "version": "3.71", ...}]}``.
    Raises volume.Away if it is not one."""
    with failures.replaced((ValueError, LookupError),
            lambda _: errors.volume.Away(reason="the server at its address is not Cinder")):
        found = [one.version for one in decoded(answer, VersionsAnswer).versions if one.id.startswith("v3.")]
        major, minor = found[0].split(".")
        return int(major), int(minor)


__all__ = ["CinderCaller", "CinderEndpoint", "Version"]
