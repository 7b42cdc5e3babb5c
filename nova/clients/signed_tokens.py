"""Verification of signatures by the identity service, which has the secrets: ``POST /v3/ec2tokens`` and
``/v3/s3tokens``.

Source: its public API reference (OS-EC2, s3tokens). Newer releases accept only callers with the role ``service``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import requests
from keystoneauth1 import exceptions

from nova import errors, failures
from nova.clients import keystone
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.model.base import Json

READ_TIMEOUT_S = 10.0
#: Interval in which one 401 may be attributed to nova's own token, e.g. a revoked one. The answer does not show the
#: cause, a new token is expensive for Keystone, and unauthenticated clients can cause a 401.
RENEW_S = 60.0
UNKNOWN_KEY = "access key"  # part of Keystone's 404 message; a wrong address has another message


class SignedToken(NamedTuple):
    """A verified token. ``body``: the ``token`` of its JSON, as for ``POST /v3/auth/tokens``. ``token``: its text;
    s3tokens returns none."""

    token: str | None
    body: Mapping[str, Json]


class SignatureNotTaken(Exception):
    """The key or the signature is wrong, or its user, project or role is gone; Keystone does not say which."""


class SignedTokens:
    """Verifies signatures. ``ec2_url``: the whole URL of ec2tokens; None: use the catalog. Calls raise
    errors.service.Unavailable if Keystone does not answer, errors.service.Forbidden if it refuses nova."""

    def __init__(self, credentials: Credentials, ec2_url: str | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        """Set up the client. Raises errors.config.Ec2Url if the URL is not that of ec2tokens."""
        self._credentials, self._clock = credentials, clock
        self._caller = self._configured = _caller_at(ec2_url, credentials) if ec2_url else None
        self._renewed = -RENEW_S

    def of_ec2(self, body: Mapping[str, object]) -> SignedToken:
        """Verify a request to EC2. Raises SignatureNotTaken."""
        return self._asked("/ec2tokens", body)

    def of_s3(self, body: Mapping[str, object]) -> SignedToken:
        """Verify a request to S3. Raises SignatureNotTaken."""
        return self._asked("/s3tokens", body)

    def check(self) -> None:
        """Check that Keystone answers. Raises errors.service.Unavailable and others."""
        self._reached().call("GET", "/", what="API v3")

    def _reached(self) -> Caller:
        caller = self._caller = self._caller or keystone.reach(self._credentials, READ_TIMEOUT_S)
        return caller

    def _asked(self, path: str, body: Mapping[str, object]) -> SignedToken:
        caller = self._reached()
        may_renew = self._clock() >= self._renewed + RENEW_S
        try:
            answer = caller.call("POST", path, what=path, json=body, allow_reauth=may_renew, log=False)
        except (errors.service.Forbidden, errors.service.ResourceNotFound) as error:
            if _is_of_the_signature(error.__cause__, path):
                if may_renew and isinstance(error.__cause__, exceptions.Unauthorized):
                    self._renewed = self._clock()
                raise SignatureNotTaken from None
            self._caller = self._configured  # it may have moved
            raise
        with failures.replaced((requests.JSONDecodeError, LookupError, TypeError), lambda _: errors.service.Unavailable(
                service="identity", reason=f"its answer to {path} has no token")):
            token = answer.json()["token"]
            return SignedToken(answer.headers.get("X-Subject-Token"), {**token})


def _caller_at(ec2_url: str, credentials: Credentials) -> Caller:
    base, slash, last = ec2_url.rstrip("/").rpartition("/")
    if last != "ec2tokens" or not base.startswith(("http://", "https://")) or base.endswith("/v2.0"):
        raise errors.config.Ec2Url()
    return Caller(ServiceEndpoint("identity", "identity", (base,), retries=keystone.RETRIES,
                                  read_timeout_s=READ_TIMEOUT_S), credentials)


def _is_of_the_signature(cause: BaseException | None, path: str) -> bool:
    """Return whether the error concerns the signature, and not nova's own login or a wrong address."""
    if not isinstance(cause, exceptions.HttpError) or not str(cause.url).endswith(path):
        return False
    return cause.http_status == 401 or cause.http_status == 404 and UNKNOWN_KEY in str(cause.message)
