"""Who signed a request to EC2 or S3: by Keystone, which has the secrets, or (``noauth2``) as the request says."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from nova import errors
from nova.clients import session
from nova.clients.signed_tokens import SignatureNotTaken, SignedToken, SignedTokens
from nova.conf.base import Options
from nova.legacy.signatures import keystone, v4
from nova.legacy.signatures.request import SKEW_S, Signature, SignatureFault, SignatureRefused, SignedRequest
from nova.legacy.signatures.versions import ec2_signature, s3_signature
from nova.legacy.signatures.wrong import WrongSignatures
from nova.model.base import Json
from nova.web.auth import NOAUTH, NOAUTH_ROLES

LOG = logging.getLogger(__name__)

SECTION = "keystone"
USUAL_VERSIONS = ("2", "4")
#: Versions of a signature of EC2, each with the only digest by which Keystone checks it.
TELL_S = 60.0  # between two lines of the log about versions that are not taken
CHECKED = {("0", "sha1"), ("1", "sha1"), ("2", "sha256"), ("4", "sha256")}


class Signers(Protocol):
    """Both answer with fields of a RequestContext, as :meth:`nova.web.auth.Context.identify`; ``now`` is in seconds
    since 1970. SignatureRefused: what the caller did wrong. errors.api.SignaturesAway, errors.api.IdentityRefuses:
    nobody can tell now."""

    def ec2(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """Of a request to EC2."""

    def s3(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """Of a request to S3."""


class Ec2Terms(NamedTuple):
    """What a signature of a request to EC2 must be. ``expiry_s``: how old, of versions 0 to 2 alone; ``versions``:
    those that are taken."""

    expiry_s: float = 300
    versions: frozenset[str] = frozenset(USUAL_VERSIONS)


USUAL_TERMS = Ec2Terms()


def from_conf(conf: Options) -> Signers:
    """As ``[api]auth_strategy`` says. errors.config.Ec2Url, errors.config.Credentials."""
    terms = Ec2Terms(conf.ec2_timestamp_expiry, frozenset(conf.ec2_signature_versions))
    if conf.api.auth_strategy == NOAUTH:
        return NoAuthSigners(terms)
    tokens = SignedTokens(session.load(conf, SECTION), conf.keystone_ec2_url or None)
    return KeystoneSigners(tokens, terms)


class Ec2Versions:
    """Finds the signatures of requests to EC2, and tells the operator of those that are not taken: now and then, since
    strangers can make many."""

    def __init__(self, terms: Ec2Terms) -> None:
        self._terms = terms
        self._warned: dict[str, float] = {}

    def signature_of(self, request: SignedRequest, now: float) -> Signature:
        """The signature that a request carries. SignatureRefused (NOT_TAKEN): of a version that is not taken."""
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
            LOG.warning("Requests to the EC2 API with signatures of version %s are refused, the last one of %s: "
                        "[DEFAULT]ec2_signature_versions does not name it. If a client can sign by no other, add it",
                        version, peer or "an address that is not known")


class KeystoneSigners:
    """Asks Keystone once at each request, while not too many are wrong."""

    def __init__(self, tokens: SignedTokens, terms: Ec2Terms = USUAL_TERMS,
                 wrong: WrongSignatures | None = None) -> None:
        self._tokens, self._versions, self._wrong = tokens, Ec2Versions(terms), wrong or WrongSignatures()

    def check(self) -> None:
        """errors.service.Unavailable and others when Keystone does not answer."""
        self._tokens.check()

    def ec2(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """As of Signers. SignatureRefused (UNKNOWN) also for a digest that Keystone does not know; TOO_MANY."""
        signature = self._versions.signature_of(request, now)
        if (signature.version, signature.digest) not in CHECKED:
            raise SignatureRefused(SignatureFault.UNKNOWN, "SignatureMethod")
        return self._judged(request, signature, self._tokens.of_ec2, keystone.ec2tokens_body(request, signature))

    def s3(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """As of Signers. SignatureRefused also with TOO_MANY."""
        signature = s3_signature(request, now)
        return self._judged(request, signature, self._tokens.of_s3, keystone.s3tokens_body(signature))

    def _judged(self, request: SignedRequest, signature: Signature,
                ask: Callable[[Mapping[str, object]], SignedToken], body: Mapping[str, object]) -> dict[str, Json]:
        self._wrong.check(request.peer, signature.access)
        found = _asked(ask, body)
        if found is None:
            self._wrong.wrong(request.peer, signature.access)
            raise SignatureRefused(SignatureFault.MISMATCH)
        self._wrong.right(request.peer, signature.access)
        return context_fields(found)


def _asked(ask: Callable[[Mapping[str, object]], SignedToken], body: Mapping[str, object]) -> SignedToken | None:
    """None: Keystone does not take the signature."""
    try:
        return ask(body)
    except SignatureNotTaken:
        return None
    except errors.Unavailable as error:
        LOG.warning("No signature can be checked: %s", error.message)
        raise errors.api.SignaturesAway from error
    except errors.NovaError as error:
        LOG.error("Keystone checks no signature for us: %s", error.message)
        raise errors.api.IdentityRefuses from error


def context_fields(found: SignedToken) -> dict[str, Json]:
    """Fields of a RequestContext. errors.api.IdentityRefuses: the answer is none of Keystone's API v3."""
    try:
        user, project, roles = found.body["user"], found.body["project"], found.body["roles"]
        return {"user_id": user["id"], "user_name": user["name"], "user_domain_id": user["domain"]["id"],
                "project_id": project["id"], "project_name": project["name"],
                "project_domain_id": project["domain"]["id"], "domain_id": None, "system_scope": None,
                "roles": tuple(role["name"] for role in roles), "token": found.token}
    except (LookupError, TypeError) as error:
        LOG.error("Keystone's answer to a question about a signature is no token of a project: it lacks %s", error)
        raise errors.api.IdentityRefuses from None


class NoAuthSigners:
    """For trials on one machine: believes that the caller has the access key ``USER:PROJECT``, or ``USER`` of a project
    of that name. No signature is checked, but it must be there, and fresh."""

    def __init__(self, terms: Ec2Terms = USUAL_TERMS) -> None:
        self._versions = Ec2Versions(terms)

    def ec2(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """As of Signers."""
        return believed(self._versions.signature_of(request, now).access)

    def s3(self, request: SignedRequest, now: float) -> dict[str, Json]:
        """As of Signers."""
        return believed(s3_signature(request, now).access)


def believed(access: str) -> dict[str, Json]:
    """The fields that an access key of ``noauth2`` stands for. SignatureRefused (NO_SUCH_KEY): it names no user."""
    user, _, project = access.partition(":")
    if not user:
        raise SignatureRefused(SignatureFault.NO_SUCH_KEY)
    project = project or user
    return {"user_id": user, "user_name": user, "project_id": project, "project_name": project,
            "roles": NOAUTH_ROLES.get(user, ("member", "reader")), "token": f"{user}:{project}"}
