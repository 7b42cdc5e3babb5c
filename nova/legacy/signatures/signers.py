"""Authentication of EC2 and S3 requests: by Keystone, which has the secrets, or (``noauth2``) by the request itself."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypedDict

from nova import errors
from nova.clients import session
from nova.clients.signed_tokens import SignatureNotTaken, SignedToken, SignedTokens
from nova.conf._options import Options
from nova.legacy.signatures import keystone, v4
from nova.legacy.signatures.failure_limits import SignatureFailures
from nova.legacy.signatures.request import SKEW_S, Signature, SignatureFault, SignatureRefused, SignedRequest
from nova.legacy.signatures.versions import ec2_signature, s3_signature
from nova.web.auth import NOAUTH, NOAUTH_ROLES

LOG = logging.getLogger(__name__)

SECTION = "keystone"
USUAL_VERSIONS = ("2", "4")
TELL_S = 60.0  # minimum interval of the warning about a disabled signature version
#: Signature versions of EC2, each with the only digest that Keystone verifies.
CHECKED = {("0", "sha1"), ("1", "sha1"), ("2", "sha256"), ("4", "sha256")}


class SignerFields(TypedDict, total=False):
    """Fields of a RequestContext."""

    user_id: str
    user_name: str
    user_domain_id: str
    project_id: str
    project_name: str
    project_domain_id: str
    domain_id: None
    system_scope: None
    roles: tuple[str, ...]
    token: str | None


class Signers(Protocol):
    """The authentication of signed requests. ``now`` is in seconds since 1970.

    Both methods return fields of a RequestContext, as :meth:`nova.web.auth.Context.identify` does. They raise
    SignatureRefused for errors of the caller; errors.api.SignaturesAway or errors.api.IdentityRefuses if Keystone
    cannot verify the signature now.
    """

    def ec2(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an EC2 request."""

    def s3(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an S3 request."""


class Ec2Terms(NamedTuple):
    """The requirements for EC2 signatures. ``expiry_s``: maximum age, for versions 0 to 2 only; ``versions``: the
    accepted versions."""

    expiry_s: float = 300
    versions: frozenset[str] = frozenset(USUAL_VERSIONS)


USUAL_TERMS = Ec2Terms()


def from_conf(conf: Options) -> Signers:
    """Build the signers for ``[api]auth_strategy``. Raises errors.config.Ec2Url, errors.config.Credentials."""
    terms = Ec2Terms(conf.ec2_timestamp_expiry, frozenset(conf.ec2_signature_versions))
    if conf.api.auth_strategy == NOAUTH:
        return NoAuthSigners(terms)
    tokens = SignedTokens(session.load(conf, SECTION), conf.keystone_ec2_url or None)
    return KeystoneSigners(tokens, terms)


class Ec2Versions:
    """The check of EC2 signature versions. Warnings about disabled versions are rate-limited, since anyone can cause
    them."""

    def __init__(self, terms: Ec2Terms) -> None:
        self._terms = terms
        self._warned: dict[str, float] = {}

    def signature_of(self, request: SignedRequest, now: float) -> Signature:
        """Return the signature of a request. Raises SignatureRefused, with NOT_TAKEN for a disabled version."""
        is_v4 = v4.is_header_signed(request) or v4.is_presigned(request)
        found = ec2_signature(request, now, SKEW_S if is_v4 else self._terms.expiry_s)
        if found.version not in self._terms.versions:
            self._warn(found.version, request.peer)
            raise SignatureRefused(SignatureFault.NOT_TAKEN, f"SignatureVersion {found.version}")
        return found

    def _warn(self, version: str, peer: str) -> None:
        now = time.monotonic()
        if now - self._warned.get(version, -math.inf) >= TELL_S:
            self._warned[version] = now
            LOG.warning("EC2 requests with signature version %s refused, most recently from %s: "
                        "[DEFAULT]ec2_signature_versions does not include it. Add it if a client supports no other",
                        version, peer or "an unknown address")


class KeystoneSigners:
    """Authentication by Keystone, with one call per request, within the rate limit of wrong signatures."""

    def __init__(self, tokens: SignedTokens, terms: Ec2Terms = USUAL_TERMS,
                 wrong: SignatureFailures | None = None) -> None:
        self._tokens, self._versions, self._wrong = tokens, Ec2Versions(terms), wrong or SignatureFailures()

    def check(self) -> None:
        """Check that Keystone responds. Raises errors.service.Unavailable and others if it does not."""
        self._tokens.check()

    def ec2(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an EC2 request.

        Raises the errors of Signers; SignatureRefused also as UNKNOWN for a digest that Keystone does not support, and
        as TOO_MANY.
        """
        signature = self._versions.signature_of(request, now)
        if (signature.version, signature.digest) not in CHECKED:
            raise SignatureRefused(SignatureFault.UNKNOWN, "SignatureMethod")
        return self._checked(request, signature, self._tokens.of_ec2, keystone.ec2tokens_body(request, signature))

    def s3(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an S3 request. Raises the errors of Signers; SignatureRefused also as TOO_MANY."""
        signature = s3_signature(request, now)
        return self._checked(request, signature, self._tokens.of_s3, keystone.s3tokens_body(signature))

    def _checked(self, request: SignedRequest, signature: Signature,
                 ask: Callable[[Mapping[str, object]], SignedToken], body: Mapping[str, object]) -> SignerFields:
        self._wrong.check(request.peer, signature.access)
        found = _asked(ask, body)
        if found is None:
            self._wrong.wrong(request.peer, signature.access)
            raise SignatureRefused(SignatureFault.MISMATCH)
        self._wrong.right(request.peer, signature.access)
        return context_fields(found)


def _asked(ask: Callable[[Mapping[str, object]], SignedToken], body: Mapping[str, object]) -> SignedToken | None:
    """Call Keystone; return None if it rejects the signature."""
    try:
        return ask(body)
    except SignatureNotTaken:
        return None
    except errors.Unavailable as error:
        LOG.warning("Keystone is unavailable; signatures cannot be verified: %s", error.message)
        raise errors.api.SignaturesAway from error
    except errors.NovaError as error:
        LOG.error("Keystone refused to verify a signature for nova: %s", error.message)
        raise errors.api.IdentityRefuses from error


def context_fields(found: SignedToken) -> SignerFields:
    """Return the fields of a RequestContext. Raises errors.api.IdentityRefuses if Keystone's response is not of API v3.
    """
    try:
        user, project, roles = found.body["user"], found.body["project"], found.body["roles"]
        return {"user_id": user["id"], "user_name": user["name"], "user_domain_id": user["domain"]["id"],
                "project_id": project["id"], "project_name": project["name"],
                "project_domain_id": project["domain"]["id"], "domain_id": None, "system_scope": None,
                "roles": tuple(role["name"] for role in roles), "token": found.token}
    except (LookupError, TypeError) as error:
        LOG.error("Keystone's response to the verification of a signature is not a project-scoped token: it lacks %s",
                  error)
        raise errors.api.IdentityRefuses from None


class NoAuthSigners:
    """Authentication for tests on one machine: trusts the access key ``USER:PROJECT``, or ``USER`` of a project of that
    name. Signatures must be present and recent, but are not verified."""

    def __init__(self, terms: Ec2Terms = USUAL_TERMS) -> None:
        self._versions = Ec2Versions(terms)

    def ec2(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an EC2 request, as Signers specifies."""
        return believed(self._versions.signature_of(request, now).access)

    def s3(self, request: SignedRequest, now: float) -> SignerFields:
        """Authenticate an S3 request, as Signers specifies."""
        return believed(s3_signature(request, now).access)


def believed(access: str) -> SignerFields:
    """Return the context fields for an access key of ``noauth2``. Raises SignatureRefused (NO_SUCH_KEY) without a user.
    """
    user, _, project = access.partition(":")
    if not user:
        raise SignatureRefused(SignatureFault.NO_SUCH_KEY)
    project = project or user
    return {"user_id": user, "user_name": user, "project_id": project, "project_name": project,
            "roles": NOAUTH_ROLES.get(user, ("member", "reader")), "token": f"{user}:{project}"}
