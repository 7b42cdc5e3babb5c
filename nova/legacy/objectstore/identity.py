"""Authentication of S3 requests: the signer's project, which owns its buckets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from nova import errors
from nova.legacy.objectstore.content import Identity
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.signatures.request import SignedRequest
from nova.legacy.signatures.signers import Signers
from nova.legacy.signatures.v4_chunks import Check
from nova.legacy.signatures.versions import s3_signature

LOG = logging.getLogger(__name__)

READING = ("GET", "HEAD")
READER = {"reader"}
EVERYBODY = Identity("everybody", "everybody")  # without authentication


class SignedIdentity:
    """Authentication by ``signers``. ``check``: verifies chunk signatures; None if that is impossible, as with
    Keystone."""

    def __init__(self, signers: Signers, check: Check | None = None, clock: Callable[[], float] = time.time) -> None:
        self._signers, self._check, self._clock = signers, check, clock

    def __call__(self, request: SignedRequest) -> Identity:
        """Return the signer's identity.

        Raises SignatureRefused; S3Error: ServiceUnavailable while the signature cannot be verified, AccessDenied if the
        signer has no project, or writes and has only the role reader.
        """
        now = self._clock()
        try:
            fields = self._signers.s3(request, now)
        except errors.NovaError as error:
            LOG.warning("S3 request refused, its signature cannot be verified: %s", error.message)
            raise S3Error("ServiceUnavailable", error.message) from error
        if not fields["project_id"] or request.method not in READING and set(fields["roles"]) <= READER:
            raise S3Error("AccessDenied")
        return Identity(fields["project_id"], fields["project_name"] or fields["project_id"],
                        s3_signature(request, now), self._check)


def everybody(request: SignedRequest) -> Identity:
    """Return the same identity for every request: one owner has all buckets."""
    return EVERYBODY
