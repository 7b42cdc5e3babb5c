"""Whose a request to S3 is, what a reader may, and requests for what this S3 has not."""

from __future__ import annotations

import errno
import io
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nova import errors
from nova.legacy.objectstore.app import S3Application
from nova.legacy.objectstore.content import Identity
from nova.legacy.objectstore.files import NewFile
from nova.legacy.objectstore.identity import EVERYBODY, SignedIdentity, everybody
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore
from nova.legacy.signatures.request import SignatureRefused, SignedRequest
from nova.legacy.signatures.signers import NoAuthSigners
from tests.fakes.aws_signers import ENDPOINT, by_botocore, received


class Signers:
    """Says the same of every request."""

    def __init__(self, said: dict[str, Any] | Exception) -> None:
        self.said = said

    def s3(self, request: SignedRequest, now: float) -> dict[str, Any]:
        if isinstance(self.said, Exception):
            raise self.said
        return {"project_id": "p1", "project_name": "web", "roles": ("member", "reader"), **self.said}

    ec2 = s3


def request(method: str = "GET") -> SignedRequest:
    return by_botocore("S3SigV4Auth", received(method, f"{ENDPOINT}/bucket/key", {}))


def test_identity_when_it_is_signed_then_the_project_owns_and_its_signature_is_known() -> None:
    found = SignedIdentity(Signers({}))(request())
    assert (found.owner, found.name, found.check) == ("p1", "web", None)
    assert found.signature is not None and found.signature.version == "4"


@pytest.mark.parametrize(("said", "method", "is_taken"), [
    ({"roles": ("reader",)}, "GET", True), ({"roles": ("reader",)}, "HEAD", True),
    ({"roles": ("reader",)}, "PUT", False),
    ({"roles": ("reader",)}, "POST", False), ({"roles": ("reader",)}, "DELETE", False), ({"roles": ()}, "PUT", False),
    ({"roles": ("own-role",)}, "PUT", True), ({}, "DELETE", True), ({"project_id": None}, "GET", False)])
def test_identity_when_roles_allow_it_or_not_then_it_is_taken_or_refused(said: dict[str, Any], method: str,
                                                                         is_taken: bool) -> None:
    identify = SignedIdentity(Signers(said))
    if is_taken:
        assert identify(request(method)).owner == "p1"
        return
    with pytest.raises(S3Error) as caught:
        identify(request(method))
    assert caught.value.code == "AccessDenied"


@pytest.mark.parametrize("error", [errors.api.SignaturesAway(), errors.api.IdentityRefuses()])
def test_identity_when_nobody_can_say_who_signed_then_clients_are_told_to_come_again(error: Exception) -> None:
    with pytest.raises(S3Error) as caught:
        SignedIdentity(Signers(error))(request())
    assert (caught.value.code, caught.value.status) == ("ServiceUnavailable", 503)


def test_identity_when_it_is_old_then_it_is_refused() -> None:
    with pytest.raises(SignatureRefused):
        SignedIdentity(NoAuthSigners(), clock=lambda: time.time() + 901)(request())
    assert everybody(received("GET", f"{ENDPOINT}/", {})) is EVERYBODY


class S3:
    def __init__(self, folder: Path, owner: str = "p1") -> None:
        self.application = S3Application(ObjectStore(folder), lambda _: Identity(owner, owner))

    def call(self, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        path, _, query = target.partition("?")
        environ = {"REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query,
                   "RAW_URI": target, "HTTP_HOST": "127.0.0.1", "CONTENT_LENGTH": str(len(body)),
                   "wsgi.input": io.BytesIO(body)}
        for name, value in headers.items():
            environ[f"HTTP_{name}"] = value
            if name == "TRANSFER_ENCODING":
                del environ["CONTENT_LENGTH"]
                environ["wsgi.input_terminated"] = True
        found: list[Any] = []
        content = b"".join(self.application(environ, lambda *answer: found.append(answer)))
        return int(found[0][0][:3]), dict(found[0][1]), content


def code(answer: tuple[int, dict[str, str], bytes]) -> str:
    return ElementTree.fromstring(answer[2]).findtext("Code", "")


@pytest.fixture
def s3(tmp_path: Path) -> S3:
    made = S3(tmp_path)
    made.call("PUT", "/bucket")
    made.call("PUT", "/bucket/key", b"precious")
    return made


@pytest.mark.parametrize(("method", "target"), [
    ("PUT", "/bucket/key?retention"), ("PUT", "/bucket/key?legal-hold"), ("GET", "/bucket/key?attributes"),
    ("PUT", "/bucket?encryption"), ("DELETE", "/bucket?publicAccessBlock"), ("DELETE", "/bucket/key?tagging"),
    ("PUT", "/bucket/new?renameObject")])
def test_request_when_it_is_of_a_part_of_s3_that_is_not_there_then_the_object_itself_is_not_touched(
        s3: S3, method: str, target: str) -> None:
    answer = s3.call(method, target, b"<x/>" if method == "PUT" else b"")
    assert answer[0] == 501 and code(answer) == "NotImplemented"
    assert s3.call("GET", "/bucket/key")[2] == b"precious" and s3.call("GET", "/bucket/new")[0] == 404


@pytest.mark.parametrize("header", ["X_AMZ_SERVER_SIDE_ENCRYPTION", "X_AMZ_SERVER_SIDE_ENCRYPTION_CUSTOMER_KEY"])
def test_object_when_it_is_to_be_encrypted_then_it_is_refused_and_not_kept_in_the_open(s3: S3, header: str) -> None:
    answer = s3.call("PUT", "/bucket/secret", b"x", **{header: "AES256"})
    assert answer[0] == 501 and code(answer) == "NotImplemented" and s3.call("GET", "/bucket/secret")[0] == 404


@pytest.mark.parametrize(("sent", "shown"), [("gzip", "gzip"), ("gzip, aws-chunked", "gzip"), ("aws-chunked", None)])
def test_object_when_it_has_a_content_encoding_then_that_stays_but_for_the_requests_own(s3: S3, sent: str,
                                                                                       shown: str | None) -> None:
    s3.call("PUT", "/bucket/packed", b"x", CONTENT_ENCODING=sent)
    assert s3.call("GET", "/bucket/packed")[1].get("Content-Encoding") == shown


def test_object_when_its_length_is_not_told_then_only_chunks_that_tell_their_end_are_taken(s3: S3) -> None:
    mode = {"TRANSFER_ENCODING": "chunked", "X_AMZ_CONTENT_SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    assert s3.call("PUT", "/bucket/open", b"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n",
                   X_AMZ_TRAILER="x-amz-checksum-crc32", **mode)[0] == 200
    assert s3.call("GET", "/bucket/open")[2] == b"abc"
    bad = s3.call("PUT", "/bucket/bad", b"3\r\nabd\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n",
                  X_AMZ_TRAILER="x-amz-checksum-crc32", **mode)
    cut = s3.call("PUT", "/bucket/bad", b"9\r\nabc", **mode)
    plain = s3.call("PUT", "/bucket/bad", b"abc", TRANSFER_ENCODING="chunked")
    assert (code(bad), code(cut), plain[0]) == ("BadDigest", "IncompleteBody", 411)
    assert s3.call("GET", "/bucket/bad")[0] == 404


@pytest.mark.parametrize(("error", "status", "name"), [
    (OSError(errno.ENOSPC, "No space left"), 507, "InsufficientStorage"),
    (errors.host.LockBusy(path="/b/.lock", seconds=60), 503, "ServiceUnavailable"),
    (OSError(errno.EIO, "Input/output error"), 500, "InternalError")])
def test_object_when_it_cannot_be_written_then_the_client_learns_what_it_may_know_and_nothing_is_left(
        s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, name: str) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(NewFile, "seal", fail)
        answer = s3.call("PUT", "/bucket/key", b"new")
    assert (answer[0], code(answer)) == (status, name) and b"/b/.lock" not in answer[2]
    assert s3.call("GET", "/bucket/key")[2] == b"precious" and not any((tmp_path / "new").iterdir())
