"""Calls to Neutron, and the interpretation of its answers and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, Unpack

import requests

from nova import errors, failures
from nova.clients.answers import UnreadableError, decoded
from nova.clients.session import Caller, CallOptions

T = TypeVar("T")


def strange(request: str) -> errors.NovaError:
    """Return the error for a server that is not Neutron. ``request``: its method and path."""
    return errors.service.Unavailable(service="network", reason=f"the server that answers {request} is not Neutron")


class NeutronCaller(Caller):
    """A caller that reads Neutron's own reasons (``NeutronError``), and distinguishes quota from other conflicts, and
    nova's own credentials from the user's."""

    def call(self, method: str, path: str, *, as_user: bool = False, what: str = "such thing",
             **kwargs: object) -> requests.Response:
        try:
            return super().call(method, path, as_user=as_user, what=what, **kwargs)
        except errors.service.Forbidden as error:
            if as_user:
                raise
            raise self.credentials_refused(error.data.get("reason", "refused")) from None

    def read(self, kind: type[T], method: str, path: str, **kwargs: Unpack[CallOptions]) -> T:
        """Return the answer, a JSON object. Raises errors as :meth:`call`, and service.Unavailable if it is not of that
        type."""
        answer = self.call(method, path, **kwargs)
        # for example from a proxy in between
        with failures.replaced(UnreadableError, lambda _: strange(f"{method} {path}")):
            return decoded(answer, kind)

    def translated(self, error: Exception, what: str) -> errors.NovaError:
        said = _neutron_error(error)
        found = super().translated(error, what)
        if not said:
            return found
        kind, message = said
        if kind == "OverQuota":
            return errors.network.OverPortQuota(reason=message)
        if isinstance(found, errors.service.ResourceNotFound):
            return found if _is_of(what, kind, message) else errors.service.ReferenceMissing(
                service=self.service.name, reason=message.rstrip("."))
        again = type(found)(None, **{**found.data, "reason": message.rstrip(".")})
        again.neutron_type = kind  # type: ignore[attr-defined]
        return again


def _is_of(what: str, kind: str, message: str) -> bool:
    """Return whether a 404 refers to the resource in the address (``port 3f..``), and not to one in the request's body,
    such as a group of a port that is updated. Without Neutron's own error type, that is unknown and assumed."""
    return kind in ("", "HTTPNotFound") or (not what.startswith("such ") and what.rpartition(" ")[2] in message)


def _neutron_error(error: Exception) -> tuple[str, str] | None:
    """Return (type, message) of an answer that contains them; None for others."""
    response = getattr(error, "response", None)
    try:
        said = response.json()["NeutronError"] if response is not None else None
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(said, str):
        return "", said[:500]
    return (str(said.get("type", "")), str(said.get("message", ""))[:500]) if isinstance(said, Mapping) else None


__all__ = ["NeutronCaller", "strange"]
