"""How a call reaches Cinder: at which address, as whom, in which version of its API, and what its refusals mean.

A user's call goes with the user's token and our own beside it, our own calls with our token twice: Cinder gives an
attachment that is in use back to a service alone. The catalog that we see has the address of *our* project in it, so
the project in an address is always the asking one's.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import requests
from keystoneauth1 import exceptions, plugin
from keystoneauth1.service_token import ServiceTokenAuthWrapper

from nova import context, errors
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.model.base import Json

LOG = logging.getLogger(__name__)

Version = tuple[int, int]

#: How keystoneauth says that a cloud has no such service.
NOT_IN_CATALOG = (exceptions.EndpointNotFound, exceptions.EmptyCatalog)
ATTACHMENT_RETRIES = 4  # at least: back ends are busy at times, and what is left half done needs somebody's hand
VERSIONS_BELIEVED_S = 600.0  # then the service may have been upgraded
LONGEST_REASON = 500

#: What a status means that says more here than elsewhere.
REFUSALS: Mapping[int, Callable[..., errors.NovaError]] = {400: errors.volume.Refused, 413: errors.volume.OverQuota}


class CinderEndpoint(NamedTuple):
    """An endpoint: what stands before ``/v3``, and whether a project's id stands behind it."""

    root: str
    names_project: bool

    def base(self, project_id: str | None) -> str:
        """What paths of calls are added to."""
        return f"{self.root}/v3/{project_id}" if self.names_project and project_id else f"{self.root}/v3"


class CinderCaller(Caller):
    """As :class:`nova.clients.session.Caller`, with :meth:`headers` that name a version."""

    def __init__(self, service: ServiceEndpoint, credentials: Credentials,
                 clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(service, dataclasses.replace(credentials, send_service_token=True))
        self._clock = clock
        self._newest: dict[str, tuple[Version, float]] = {}  # root -> the newest version there, and when it was read

    def patient(self) -> Self:
        """The same service, asked more often: for calls that end what others began."""
        other = copy.copy(self)
        other.service = dataclasses.replace(self.service, retries=max(self.service.retries, ATTACHMENT_RETRIES))
        return other

    def call(self, method: str, path: str, *, as_user: bool = False, what: str = "such thing",
             **kwargs: object) -> requests.Response:
        """volume.Refused, volume.OverQuota, service.ResourceNotFound, service.Conflict; service.Forbidden of a user's
        call, volume.Credentials of our own; volume.NoService, volume.WrongAddress, volume.Away."""
        try:
            return super().call(method, path, as_user=as_user, what=what, **kwargs)
        except errors.volume.Away:
            raise
        except errors.service.Unavailable as error:  # nobody was asked: no time is left
            raise errors.volume.Away(reason=error.data["reason"]) from error
        except errors.service.Credentials as error:
            raise errors.volume.Credentials(reason=error.data["reason"]) from error
        except errors.service.Forbidden as error:
            if as_user:
                raise
            raise errors.volume.Credentials(reason=error.data["reason"]) from error

    # -- versions

    def headers(self, versions: tuple[Version, ...]) -> dict[str, str]:
        """Of a call that may be made in these versions, the best one first; none of them: that of 3.0.
        volume.TooOld, and as :meth:`call`."""
        if not versions:
            return {}
        newest = self.newest()
        found = next((one for one in versions if one <= newest), None)
        if found is None:
            wanted = min(versions)
            raise errors.volume.TooOld(wanted="{}.{}".format(*wanted), found="{}.{}".format(*newest))
        return {"OpenStack-API-Version": "volume {}.{}".format(*found)}

    def newest(self) -> Version:
        """The newest version that the service has, as its version document said some minutes ago at most."""
        root = self._endpoint().root
        known, read_at = self._newest.get(root, ((0, 0), -VERSIONS_BELIEVED_S))
        if self._clock() - read_at < VERSIONS_BELIEVED_S:
            return known
        found = _newest(self.call("GET", f"{root}/", what="version document"))
        self._newest[root] = found, self._clock()
        return found

    # -- address and standing

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
        try:
            return own.get_project_id(self._credentials.session) if own is not None else None
        except (exceptions.ClientException, requests.RequestException) as error:
            raise self.translated(error, "project") from error

    def _auth(self, as_user: bool, address: str | None) -> plugin.BaseAuthPlugin:
        found, own = super()._auth(as_user, address), self._credentials.auth
        return ServiceTokenAuthWrapper(own, own) if own is not None and found is own else found

    # -- refusals

    def translated(self, error: Exception, what: str) -> errors.NovaError:
        """The error of ours that says what a failed call means, in Cinder's own words where it gives a reason."""
        status, said = getattr(error, "http_status", None), _said(error)
        if status is not None:
            LOG.debug("Refused with %s (%s): %s", status, getattr(error, "request_id", None) or "no request id", said)
        found = super().translated(error, what)
        reason = said or str(found.data.get("reason", ""))
        if refusal := REFUSALS.get(status or 0):
            return refusal(reason=reason)
        if isinstance(found, errors.service.Unavailable):
            return errors.volume.Away(reason=f"{status} {said}" if said else reason)
        return type(found)(None, **{**found.data, "reason": reason})


def _said(error: Exception) -> str:
    """The reason of an answer such as ``{"badRequest": {"code": 400, "message": "..."}}``; or nothing."""
    response = getattr(error, "response", None)
    try:
        body = response.json() if response is not None else None
    except ValueError:
        return ""
    faults = body.values() if isinstance(body, Mapping) else ()
    found = next((one["message"] for one in faults if isinstance(one, Mapping) and "message" in one), "")
    return " ".join(str(found).split())[:LONGEST_REASON].rstrip(".")


def _newest(answer: requests.Response) -> Version:
    """Of a version document: ``{"versions": [{"id": "v3.0", "version": "3.71", ...}]}``. volume.Away: it is none."""
    try:
        found: list[Json] = [one["version"] for one in answer.json()["versions"] if one["id"].startswith("v3.")]
        major, minor = found[0].split(".")
        return int(major), int(minor)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise errors.volume.Away(reason="what answers at its address is not Cinder") from None


__all__ = ["CinderCaller", "CinderEndpoint", "Version"]
