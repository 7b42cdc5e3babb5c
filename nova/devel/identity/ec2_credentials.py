"""EC2 credentials of FakeKeystone: a user's keys for one project, and the verification of signatures made with them.

Like Keystone, it has two APIs for the same resources: ``/v3/users/ID/credentials/OS-EC2`` and ``/v3/credentials``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import secrets
import time
import urllib.parse
import uuid
from collections.abc import Callable, Mapping

import msgspec

from nova import decoding, failures
from nova.devel.identity import tokens
from nova.devel.identity.credentials import owner_or_admin
from nova.devel.identity.directory import Directory, ScopeKind, TokenScope
from nova.devel.identity.records import Ec2Key
from nova.devel.identity.requests import text_of
from nova.devel.service import FakeAnswer, FakeCall, FakeError, FakeRoute
from nova.legacy.signatures.request import (
    SKEW_S,
    Scope4,
    Signature,
    SignatureRefused,
    SignedRequest,
    decoded,
    is_signed,
)
from nova.legacy.signatures.v4 import ALGORITHM
from nova.legacy.signatures.versions import ec2_signature
from nova.model.base import JsonValue

KIND = "ec2"
NOT_FOUND = "EC2 access key not found."
SCOPE_SERVICES = ("s3", "iam", "sts")  # in the scope of a version 4 signature at s3tokens


# -- the keys

def unrestricted(call: FakeCall) -> bool:
    """Return whether the token is not from a restricted credential: a key has all roles of its user, and no expiry."""
    return not call.caller.restricted


def unrestricted_owner_or_admin(call: FakeCall) -> bool:
    """Return whether the token is unrestricted, and of the user in the path or an administrator."""
    return unrestricted(call) and owner_or_admin(call)


def create(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """POST .../OS-EC2: create a key. Raises 403 if the user has no role in the project, 404 for an unknown project."""
    given = call.body()
    project_id = given.get("tenant_id") if isinstance(given, dict) else None
    if not isinstance(project_id, str):
        raise FakeError(400, "'tenant_id' is a required property: a string.")
    directory.get("projects", project_id)
    return {"credential": _as_ec2(call, _add(directory, call.named["user_id"], project_id,
                                             uuid.uuid4().hex, secrets.token_hex(16)))}


def _add(directory: Directory, user_id: str, project_id: str, access: str, secret: str) -> Ec2Key:
    directory.get("users", user_id)
    if not directory.roles_of(user_id, TokenScope(ScopeKind.PROJECT, project_id)):
        raise FakeError(403, "You are not authorized to perform the requested action: the user has no role there.")
    found: Ec2Key = {"id": key_id(access), "access": access, "secret": secret, "user_id": user_id,
                     "project_id": project_id}
    if found["id"] in directory.ec2_keys:
        raise FakeError(409, "Conflict occurred attempting to store credential - Duplicate entry.")
    directory.ec2_keys[found["id"]] = found
    return found


def key_id(access: str) -> str:
    """Return the credential's id at ``/v3/credentials``."""
    return hashlib.sha256(access.encode()).hexdigest()


def list_all(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET .../OS-EC2: list the user's keys."""
    return {"credentials": [_as_ec2(call, one) for one in directory.ec2_keys.values()
                            if one["user_id"] == call.named["user_id"]],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def show(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET .../OS-EC2/ACCESS: show a key. Raises 404, also for another user's."""
    return {"credential": _as_ec2(call, _own(directory, call))}


def delete(directory: Directory, call: FakeCall) -> None:
    """DELETE .../OS-EC2/ACCESS: delete a key."""
    del directory.ec2_keys[_own(directory, call)["id"]]


def _own(directory: Directory, call: FakeCall) -> Ec2Key:
    found = directory.ec2_keys.get(key_id(call.named["access"]))
    if found is None or found["user_id"] != call.named["user_id"]:
        raise FakeError(404, f"Could not find credential: {call.named['access']}.")
    return found


def _as_ec2(call: FakeCall, found: Ec2Key) -> dict[str, object]:
    path = f"/v3/users/{found['user_id']}/credentials/OS-EC2/{found['access']}"
    return {"access": found["access"], "secret": found["secret"], "user_id": found["user_id"],
            "tenant_id": found["project_id"], "trust_id": None,
            "links": {"self": call.http.application_url + path}}


# -- the same keys as credentials of type ec2

def create_typed(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """POST /v3/credentials: create a key; the caller may choose access and secret. Raises 400 for other types."""
    given = call.member("credential")
    if given.get("type") != KIND:
        raise FakeError(400, f"Invalid input for field 'type': this fake only supports {KIND}.")
    with failures.replaced((ValueError, LookupError, TypeError, AttributeError, FakeError), lambda _: FakeError(400,
            "A credential of type ec2 has a project_id; its blob is JSON: access, secret.")):
        blob = json.loads(text_of(given, "blob"))
        access, secret, project_id = text_of(blob, "access"), text_of(blob, "secret"), text_of(given, "project_id")
        if not (access and secret and project_id):
            raise ValueError(blob)
    user_id = str(given.get("user_id") or call.caller.user_id)
    _check_owner(call, user_id)
    directory.get("projects", project_id)
    return {"credential": _as_typed(call, _add(directory, user_id, project_id, access, secret))}


def list_typed(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/credentials: list keys, by ``user_id`` and ``type``; administrators see those of all users."""
    wanted = call.http.GET
    shown = [] if wanted.get("type", KIND) != KIND else [
        _as_typed(call, one) for one in directory.ec2_keys.values()
        if wanted.get("user_id") in (None, one["user_id"])
        and (call.caller.is_admin or one["user_id"] == call.caller.user_id)]
    return {"credentials": shown, "links": {"self": call.http.path_url, "next": None, "previous": None}}


def show_typed(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/credentials/ID: show a key."""
    return {"credential": _as_typed(call, _typed(directory, call))}


def delete_typed(directory: Directory, call: FakeCall) -> None:
    """DELETE /v3/credentials/ID: delete a key."""
    del directory.ec2_keys[_typed(directory, call)["id"]]


def _typed(directory: Directory, call: FakeCall) -> Ec2Key:
    found = directory.ec2_keys.get(call.named["credential_id"])
    if found is None:
        raise FakeError(404, f"Could not find credential: {call.named['credential_id']}.")
    _check_owner(call, found["user_id"])
    return found


def _check_owner(call: FakeCall, user_id: str) -> None:
    if call.caller.user_id != user_id and not call.caller.is_admin:
        raise FakeError(403, "You are not authorized to perform the requested action.")


def _as_typed(call: FakeCall, found: Ec2Key) -> dict[str, object]:
    blob = json.dumps({"access": found["access"], "secret": found["secret"], "trust_id": None})
    return {"id": found["id"], "type": KIND, "user_id": found["user_id"], "project_id": found["project_id"],
            "blob": blob, "links": {"self": f"{call.http.application_url}/v3/credentials/{found['id']}"}}


# -- verification of signatures

def service(call: FakeCall) -> bool:
    """Return whether the caller may verify signatures of other users: services and administrators. Raises 401."""
    return bool(call.caller.roles & tokens.VALIDATORS)


def ec2_token(directory: Directory, call: FakeCall) -> FakeAnswer:
    """POST /v3/ec2tokens: issue a token for a signed EC2 request."""
    text, body = _token(directory, call, _of_ec2)
    return FakeAnswer(200, body, {"X-Subject-Token": text})


def s3_token(directory: Directory, call: FakeCall) -> FakeAnswer:
    """POST /v3/s3tokens: verify a signed S3 request; like Keystone, without the token's text."""
    _, body = _token(directory, call, _of_s3)
    return FakeAnswer(200, body)


def _token(directory: Directory, call: FakeCall, read: Callable[[Mapping[str, JsonValue]], Signature]
           ) -> tuple[str, dict[str, object]]:
    given = call.member("credentials")
    found = directory.ec2_keys.get(key_id(str(given.get("access", ""))))
    if found is None:
        raise FakeError(404, NOT_FOUND)
    holds = False
    with contextlib.suppress(SignatureRefused, FakeError, msgspec.ValidationError, LookupError, TypeError,
                             ValueError):
        holds = is_signed(read(given), found["secret"])
    if not holds:
        raise FakeError(401, tokens.NO)
    return tokens.issue_for(directory, found["user_id"], TokenScope(ScopeKind.PROJECT, found["project_id"]),
                                     (tokens.EC2,))


class _DescribedRequest(msgspec.Struct, frozen=True):
    """A signed request, as the service that got it describes it."""

    access: str
    signature: str
    verb: str
    path: str
    host: str
    params: dict[str, str]
    headers: dict[str, str]
    body_hash: str


def _of_ec2(given: Mapping[str, JsonValue]) -> Signature:
    """Return the signature of the described request."""
    described = decoding.convert(given, _DescribedRequest)
    headers = {name.lower(): value for name, value in described.headers.items()}
    is_v4 = "authorization" in headers or "X-Amz-Algorithm" in described.params
    name = "X-Amz-Signature" if is_v4 else "Signature"
    pairs = described.params if "authorization" in headers else {**described.params, name: described.signature}
    request = SignedRequest(described.verb, decoded(described.path) if is_v4 else described.path,
                            urllib.parse.urlencode(pairs), {"host": described.host, **headers},
                            body_hash=described.body_hash)
    signature = ec2_signature(request, time.time(), SKEW_S)
    if (signature.access, signature.value) != (described.access, described.signature):
        raise ValueError("the request describes another signature")
    return signature


def _of_s3(given: Mapping[str, JsonValue]) -> Signature:
    """Return a signature of version 4, as far as Keystone supports it, or of S3's own version 2."""
    access, value = text_of(given, "access"), text_of(given, "signature")
    with failures.replaced(binascii.Error, lambda _: ValueError("invalid base64")):
        text = base64.urlsafe_b64decode(text_of(given, "token")).decode("utf-8", "surrogateescape")
    if not text.startswith("AWS4"):
        return Signature("s3v2", access, value, (text,), "sha1")
    algorithm, at, scope, _digest = text.split("\n")
    date, region, service_name, end = scope.split("/")
    if (algorithm, end) != (ALGORITHM, "aws4_request") or service_name not in SCOPE_SERVICES:
        raise ValueError("an unknown scope")
    return Signature("4", access, value, (text,), "sha256", Scope4(date, region, service_name),
                     at)


def new_key(directory: Directory, user_id: str, project_id: str) -> tuple[str, str]:
    """Create a key without HTTP, and return (access, secret). Raises FakeError like :func:`create`."""
    found = _add(directory, user_id, project_id, uuid.uuid4().hex, secrets.token_hex(16))
    return found["access"], found["secret"]


_OS_EC2 = "/v3/users/{user_id}/credentials/OS-EC2"
_TYPED = "/v3/credentials"
ROUTES: tuple[FakeRoute[Directory], ...] = (
    FakeRoute("POST", _OS_EC2, create, unrestricted_owner_or_admin, 201),
    FakeRoute("GET", _OS_EC2, list_all, unrestricted_owner_or_admin),
    FakeRoute("GET", f"{_OS_EC2}/{{access}}", show, unrestricted_owner_or_admin),
    FakeRoute("DELETE", f"{_OS_EC2}/{{access}}", delete, unrestricted_owner_or_admin, 204),
    FakeRoute("POST", _TYPED, create_typed, unrestricted, 201),
    FakeRoute("GET", _TYPED, list_typed, unrestricted),
    FakeRoute("GET", f"{_TYPED}/{{credential_id}}", show_typed, unrestricted),
    FakeRoute("DELETE", f"{_TYPED}/{{credential_id}}", delete_typed, unrestricted, 204),
    FakeRoute("POST", "/v3/ec2tokens", ec2_token, service, passing=True),
    FakeRoute("POST", "/v3/s3tokens", s3_token, service, passing=True),
)
