"""The S3 API as clients see it: through botocore, and by requests that no client sends."""

from __future__ import annotations

import base64
import hashlib
import io
import time
import urllib.parse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment
from wsgiref.validate import validator
from xml.etree import ElementTree

import botocore.awsrequest
import botocore.config
import botocore.exceptions
import botocore.session
import pytest

from nova.legacy.objectstore.app import S3Application
from nova.legacy.objectstore.content import Identity
from nova.legacy.objectstore.store import ObjectStore, StoreLimits
from nova.legacy.signatures import v4
from nova.legacy.signatures.request import (
    Signature,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    is_signed,
    signed,
)
from nova.legacy.signatures.versions import s3_signature
from tests.fakes.aws_signers import ACCESS, SECRET

NAME = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Of an error's document."""
        return ElementTree.fromstring(self.body).findtext("Code", "")


def identify(request: SignedRequest) -> Identity:
    found = s3_signature(request, time.time())
    if found.access != ACCESS:
        raise SignatureRefused(SignatureFault.NO_SUCH_KEY)
    if not is_signed(found, SECRET):
        raise SignatureRefused(SignatureFault.MISMATCH)
    return Identity("project", "demo", found, lambda text, value: signed(found, SECRET, text) == value)


def anybody(request: SignedRequest) -> Identity:
    return Identity(request.headers.get("x-owner", "project"), "demo")


class Service:
    """The application, without a network."""

    def __init__(self, application: S3Application) -> None:
        self._application = application

    def call(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        path, _, query = target.partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": method, "SCRIPT_NAME": "", "QUERY_STRING": query,
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
            "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "3333", "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "127.0.0.1:3333", "RAW_URI": target, "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body), "wsgi.errors": io.StringIO(), "wsgi.multithread": True,
            "wsgi.multiprocess": False, "wsgi.run_once": False}
        if body or method in ("PUT", "POST"):
            environ["CONTENT_LENGTH"] = str(len(body))
        for name, value in headers.items():
            key = name.upper().replace("-", "_")
            environ[key if key in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{key}"] = value
        found: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, given: list[tuple[str, str]], exc_info: object = None) -> object:
            found.append((status, given))
            return lambda data: None

        is_valid = environ.get("CONTENT_LENGTH", "0").isdecimal()
        parts = (validator(self._application) if is_valid else self._application)(environ, start)
        content = b"".join(parts)
        if hasattr(parts, "close"):
            parts.close()
        (status, given), = found
        return Answer(int(status.split()[0]), dict(given), content)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    limits = StoreLimits(least_part=4, objects_per_owner=20)
    made = Service(S3Application(ObjectStore(tmp_path / "open", limits), anybody))
    made.call("PUT", "/bucket")
    return made


class Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._body

    def read(self, *_: object) -> bytes:
        body, self._body = self._body, b""
        return body


def client_of(application: S3Application, version: str, secret: str = SECRET) -> object:
    """botocore's own client, whose requests go to the application."""
    service = Service(application)
    session = botocore.session.Session()
    client = session.create_client(
        "s3", "RegionOne", endpoint_url="http://127.0.0.1:3333", aws_access_key_id=ACCESS, aws_secret_access_key=secret,
        config=botocore.config.Config(signature_version=version, s3={"addressing_style": "path"},
                                      retries={"max_attempts": 0}))

    def send(request: botocore.awsrequest.AWSPreparedRequest, **_: object) -> botocore.awsrequest.AWSResponse:
        split = urllib.parse.urlsplit(request.url)
        body = request.body.read() if hasattr(request.body, "read") else request.body or b""
        headers = {name: value.decode() if isinstance(value, bytes) else value
                   for name, value in request.headers.items()}
        answer = service.call(request.method, split.path + (f"?{split.query}" if split.query else ""),
                              body.encode() if isinstance(body, str) else body, **headers)
        given = botocore.awsrequest.HeadersDict(answer.headers)
        return botocore.awsrequest.AWSResponse(request.url, answer.status, given, Raw(answer.body))

    client.meta.events.register("before-send.s3", send)
    return client


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_botocore_when_it_goes_through_all_operations_then_it_understands_the_answers(tmp_path: Path,
                                                                                    version: str) -> None:
    s3 = client_of(S3Application(ObjectStore(tmp_path, StoreLimits(least_part=4)), identify), version)
    s3.create_bucket(Bucket="images", CreateBucketConfiguration={"LocationConstraint": "RegionOne"})
    assert [one["Name"] for one in s3.list_buckets()["Buckets"]] == ["images"]
    s3.head_bucket(Bucket="images")
    body = b"content" * 100
    put = s3.put_object(Bucket="images", Key="dir/a b+ü", Body=body, ContentType="text/x", Metadata={"one": "two"})
    assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    got = s3.get_object(Bucket="images", Key="dir/a b+ü")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (body, "text/x", {"one": "two"})
    head = s3.head_object(Bucket="images", Key="dir/a b+ü")
    assert (head["ContentLength"], head["ETag"]) == (700, put["ETag"])
    part = s3.get_object(Bucket="images", Key="dir/a b+ü", Range="bytes=7-13")
    assert (part["Body"].read(), part["ContentRange"]) == (b"content", "bytes 7-13/700")
    s3.copy_object(Bucket="images", Key="copy", CopySource={"Bucket": "images", "Key": "dir/a b+ü"})
    listed = s3.list_objects_v2(Bucket="images", Delimiter="/")
    assert [one["Key"] for one in listed["Contents"]] == ["copy"]
    assert (listed["CommonPrefixes"], listed["KeyCount"], listed["IsTruncated"]) == ([{"Prefix": "dir/"}], 2, False)
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket="images", PaginationConfig={"PageSize": 1}))
    assert [one["Key"] for page in pages for one in page["Contents"]] == ["copy", "dir/a b+ü"]
    old = list(s3.get_paginator("list_objects").paginate(Bucket="images", PaginationConfig={"PageSize": 1}))
    assert [one["Key"] for page in old for one in page["Contents"]] == ["copy", "dir/a b+ü"]
    upload = s3.create_multipart_upload(Bucket="images", Key="big")["UploadId"]
    assert [one["UploadId"] for one in s3.list_multipart_uploads(Bucket="images")["Uploads"]] == [upload]
    tags = [{"PartNumber": number, "ETag": s3.upload_part(
        Bucket="images", Key="big", UploadId=upload, PartNumber=number, Body=data)["ETag"]}
        for number, data in ((1, b"first"), (2, b"second"))]
    assert [one["Size"] for one in s3.list_parts(Bucket="images", Key="big", UploadId=upload)["Parts"]] == [5, 6]
    s3.complete_multipart_upload(Bucket="images", Key="big", UploadId=upload, MultipartUpload={"Parts": tags})
    assert s3.get_object(Bucket="images", Key="big")["Body"].read() == b"firstsecond"
    other = s3.create_multipart_upload(Bucket="images", Key="big")["UploadId"]
    s3.abort_multipart_upload(Bucket="images", Key="big", UploadId=other)
    assert s3.get_bucket_acl(Bucket="images")["Grants"][0]["Permission"] == "FULL_CONTROL"
    assert s3.get_bucket_location(Bucket="images")["LocationConstraint"] is None
    gone = s3.delete_objects(Bucket="images", Delete={"Objects": [{"Key": "copy"}, {"Key": "big"}, {"Key": ".."}]})
    assert [one["Key"] for one in gone["Deleted"]] == ["copy", "big"]
    assert [one["Code"] for one in gone["Errors"]] == ["InvalidArgument"]
    s3.delete_object(Bucket="images", Key="dir/a b+ü")
    s3.delete_bucket(Bucket="images")
    assert s3.list_buckets()["Buckets"] == []


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_botocore_when_its_secret_is_wrong_then_it_is_told(tmp_path: Path, version: str) -> None:
    s3 = client_of(S3Application(ObjectStore(tmp_path), identify), version, "wrong")
    with pytest.raises(botocore.exceptions.ClientError, match="SignatureDoesNotMatch"):
        s3.create_bucket(Bucket="images")
    assert list((tmp_path / "buckets").iterdir()) == []


@pytest.mark.parametrize(("method", "target", "status", "code"), [
    ("GET", "/absent", 404, "NoSuchBucket"), ("GET", "/bucket/absent", 404, "NoSuchKey"),
    ("PUT", "/absent/k", 404, "NoSuchBucket"), ("PUT", "/bucket/", 409, "BucketAlreadyOwnedByYou"),
    ("PUT", "/b", 400, "InvalidBucketName"), ("PUT", "/..", 400, "InvalidBucketName"),
    ("PUT", "/bucket/..", 400, "InvalidArgument"), ("PUT", "/bucket/a/%2e%2e/b", 400, "InvalidArgument"),
    ("GET", "/bucket/%2e%2e%2fbucket", 400, "InvalidArgument"), ("PUT", "/bucket/a%00b", 400, "InvalidArgument"),
    ("PUT", "/bucket/%FF", 400, "InvalidURI"), ("PUT", "/bucket/" + "a" * 1025, 400, "KeyTooLongError"),
    ("PUT", "//k", 400, "InvalidBucketName"), ("GET", "/bucket?policy", 404, "NoSuchBucketPolicy"),
    ("GET", "/bucket?lifecycle", 501, "NotImplemented"), ("PUT", "/bucket/k?acl", 501, "NotImplemented"),
    ("DELETE", "/", 405, "MethodNotAllowed"), ("PATCH", "/bucket/k", 405, "MethodNotAllowed"),
    ("GET", "/bucket?max-keys=-1", 400, "InvalidArgument"), ("GET", "/bucket?max-keys=x", 400, "InvalidArgument"),
    ("GET", "/bucket?prefix=a&prefix=b", 400, "InvalidRequest"),
    ("GET", "/bucket?encoding-type=x", 400, "InvalidArgument"),
    ("GET", "/bucket?list-type=2&continuation-token=%FF", 400, "InvalidArgument"),
    ("PUT", "/bucket/k?partNumber=1&uploadId=../x", 404, "NoSuchUpload"),
    ("POST", "/bucket/k?uploadId=" + "0" * 32, 404, "NoSuchUpload")])
def test_request_when_it_is_refused_then_the_error_is_s3s(service: Service, method: str, target: str, status: int,
                                                         code: str) -> None:
    answer = service.call(method, target)
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["Content-Type"] == "application/xml"
    assert ElementTree.fromstring(answer.body).findtext("RequestId") == answer.headers["x-amz-request-id"]


@pytest.mark.parametrize(("acl", "status"), [
    ("public-read", 501), ("public-read-write", 501), ("authenticated-read", 501),
    ("private", 200), ("aws-exec-read", 200), ("bucket-owner-full-control", 200)])
def test_object_when_it_is_to_be_open_to_others_then_it_is_refused_and_not_kept(service: Service, acl: str, status: int
                                                                               ) -> None:
    assert service.call("PUT", "/bucket/shown", b"x", **{"x-amz-acl": acl}).status == status
    assert service.call("GET", "/bucket/shown").status == (200 if status == 200 else 404)


def test_head_when_it_is_refused_then_it_has_no_body(service: Service) -> None:
    assert [service.call("HEAD", target)[0::2] for target in ("/absent", "/bucket/absent", "/bucket")] == [
        (404, b""), (404, b""), (200, b"")]


def test_unexpected_error_then_its_text_is_not_told(service: Service, tmp_path: Path) -> None:
    service.call("PUT", "/bucket/k", b"x")
    path, = (tmp_path / "open/buckets/bucket/objects").iterdir()
    path.write_bytes(b"damaged")
    answer = service.call("GET", "/bucket/k")
    assert (answer.status, answer.code) == (500, "InternalError") and str(tmp_path).encode() not in answer.body


def test_bucket_when_it_is_anothers_then_access_is_denied(service: Service) -> None:
    service.call("PUT", "/bucket/k", b"x")
    for method, target in (("GET", "/bucket"), ("GET", "/bucket/k"), ("DELETE", "/bucket/k"), ("PUT", "/bucket/k")):
        assert service.call(method, target, **{"x-owner": "other"}).status == 403
    assert service.call("GET", "/bucket/k").body == b"x"


MD5 = base64.b64encode(hashlib.md5(b"data").digest()).decode()
CRC = base64.b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode()


@pytest.mark.parametrize(("headers", "code"), [
    ({"content-md5": MD5}, None), ({"content-md5": MD5.replace("j", "k")}, "BadDigest"),
    ({"content-md5": "x"}, "InvalidDigest"), ({"content-md5": ""}, "InvalidDigest"),
    ({"x-amz-content-sha256": hashlib.sha256(b"data").hexdigest()}, None),
    ({"x-amz-content-sha256": hashlib.sha256(b"other").hexdigest()}, "XAmzContentSHA256Mismatch"),
    ({"x-amz-checksum-crc32": CRC}, None), ({"x-amz-checksum-crc32": "AAAAAA=="}, "BadDigest"),
    ({"content-length": "5"}, "IncompleteBody"), ({"content-length": "x"}, "MissingContentLength"),
    ({"content-length": "-1"}, "MissingContentLength")])
def test_put_when_the_body_is_not_what_was_announced_then_nothing_is_kept(service: Service, headers: dict[str, str],
                                                                        code: str | None) -> None:
    service.call("PUT", "/bucket/k", b"old")
    answer = service.call("PUT", "/bucket/k", b"data", **headers)
    assert (answer.status == 200) if code is None else (answer.code == code)
    assert service.call("GET", "/bucket/k").body == (b"data" if code is None else b"old")


TRAILER = f"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:{CRC}\r\n\r\n".encode()


@pytest.mark.parametrize(("body", "length", "code"), [
    (TRAILER, "4", None), (TRAILER.replace(b"data", b"date"), "4", "BadDigest"), (TRAILER, "5", "IncompleteBody"),
    (TRAILER[:9], "4", "IncompleteBody"), (TRAILER.replace(b"4\r\n", b"5\r\n"), "4", "IncompleteBody"),
    (b"4;chunk-signature=" + b"0" * 64 + b"\r\ndata\r\n0;chunk-signature=" + b"0" * 64 + b"\r\n\r\n", "4", None)])
def test_put_when_the_body_is_in_chunks_then_they_are_decoded(service: Service, body: bytes, length: str,
                                                            code: str | None) -> None:
    answer = service.call("PUT", "/bucket/k", body, **{
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-decoded-content-length": length,
        "content-encoding": "aws-chunked", "x-amz-trailer": "x-amz-checksum-crc32"})
    assert (answer.status == 200) if code is None else (answer.code == code)
    found = service.call("GET", "/bucket/k")
    assert found.body == b"data" if code is None else found.code == "NoSuchKey"


@pytest.mark.parametrize(("header", "status", "body", "span"), [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"), ("bytes=8-", 206, b"89", "bytes 8-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=5-100", 206, b"56789", "bytes 5-9/10"),
    ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"), ("bytes=10-", 416, None, "bytes */10"),
    ("bytes=-0", 416, None, "bytes */10"), ("bytes=5-4", 200, b"0123456789", None),
    ("bytes=0-1,3-4", 200, b"0123456789", None), ("lines=0-1", 200, b"0123456789", None),
    ("bytes=-", 200, b"0123456789", None)])
def test_range_then_it_is_what_is_sent(service: Service, header: str, status: int, body: bytes | None,
                                      span: str | None) -> None:
    service.call("PUT", "/bucket/k", b"0123456789")
    answer = service.call("GET", "/bucket/k", range=header)
    assert (answer.status, answer.headers.get("Content-Range")) == (status, span)
    assert answer.code == "InvalidRange" if body is None else answer.body == body
    assert answer.headers["Content-Length"] == str(len(answer.body))


ETAG = hashlib.md5(b"x").hexdigest()
LONG_AGO, TO_COME = "Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"


@pytest.mark.parametrize(("name", "value", "status"), [
    ("if-none-match", f'"{ETAG}"', 304), ("if-none-match", "*", 304), ("if-none-match", '"a"', 200),
    ("if-match", f'"a", "{ETAG}"', 200), ("if-match", '"a"', 412), ("if-modified-since", TO_COME, 304),
    ("if-modified-since", LONG_AGO, 200), ("if-modified-since", "never", 200), ("if-unmodified-since", LONG_AGO, 412),
    ("if-unmodified-since", TO_COME, 200)])
def test_get_when_it_is_conditional_then_the_condition_holds(service: Service, name: str, value: str,
                                                           status: int) -> None:
    service.call("PUT", "/bucket/k", b"x")
    for method in ("GET", "HEAD"):
        answer = service.call(method, "/bucket/k", **{name: value})
        assert answer.status == status
        assert answer.body == (b"x" if (method, status) == ("GET", 200) else b"") or status == 412


def test_put_when_it_must_be_new_then_a_second_is_refused(service: Service) -> None:
    codes = [service.call("PUT", "/bucket/k", body, **{"if-none-match": "*"}).status for body in (b"1", b"2")]
    assert codes == [200, 412] and service.call("GET", "/bucket/k").body == b"1"


def test_get_when_headers_are_asked_for_then_they_are_given(service: Service) -> None:
    service.call("PUT", "/bucket/k", b"x")
    found = service.call("GET", "/bucket/k?response-content-type=text%2Fplain&response-content-encoding=gzip")
    assert (found.headers["Content-Type"], found.headers["Content-Encoding"]) == ("text/plain", "gzip")
    assert service.call("GET", "/bucket/k?response-expires=a%0D%0AX:b").code == "InvalidArgument"


def test_quota_when_it_is_used_up_then_that_is_said(service: Service) -> None:
    answers = [service.call("PUT", f"/bucket/{number}", b"x") for number in range(21)]
    assert [one.status for one in answers] == [200] * 20 + [403] and answers[-1].code == "QuotaExceeded"


HOSTILE = [b"", b"<", b"<Delete/>", b"<Other><Object><Key>k</Key></Object></Other>",
           b'<!DOCTYPE a [<!ENTITY x "y">]><Delete><Object><Key>&x;</Key></Object></Delete>',
           b'<?xml version="1.0" encoding="none"?><Delete/>',
           b"<Delete>" + b"<a>" * 90000 + b"</a>" * 90000 + b"</Delete>",
           b"<Delete>" + b"<Object><Key>k</Key></Object>" * 1001 + b"</Delete>",
           b"<Delete>" + b" " * 2 ** 20 + b"</Delete>", b"\xff\xfe\x00",
           b"<!DOCTYPE Delete><Delete><Object><Key>k</Key></Object></Delete>"]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_document_when_it_is_hostile_then_it_is_malformed(service: Service, body: bytes) -> None:
    answer = service.call("POST", "/bucket?delete", body)
    assert (answer.status, answer.code) == (400, "MalformedXML")


def test_listing_when_a_key_has_marks_of_xml_then_it_is_read_back(service: Service) -> None:
    service.call("PUT", "/bucket/" + urllib.parse.quote("<a>&\"'\u20ac"), b"x")
    tree = ElementTree.fromstring(service.call("GET", "/bucket/").body)
    assert [one.text for one in tree.iter(f"{NAME}Key")] == ["<a>&\"'\u20ac"]
    assert tree.findtext(f"{NAME}IsTruncated") == "false"
    tree = ElementTree.fromstring(service.call("GET", "/bucket?encoding-type=url").body)
    assert [one.text for one in tree.iter(f"{NAME}Key")] == ["%3Ca%3E%26%22%27%E2%82%AC"]


class _Gone:
    """A client that goes away within its body."""

    def read(self, size: int) -> bytes:
        raise ConnectionResetError


def test_put_when_the_client_goes_away_then_nothing_is_kept(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket("project", "bucket")
    application = S3Application(store, anybody)
    with pytest.raises(ConnectionResetError):
        application({"REQUEST_METHOD": "PUT", "PATH_INFO": "/bucket/k", "CONTENT_LENGTH": "9", "wsgi.input": _Gone()},
                    lambda *_: lambda data: None)
    assert list(store.new.iterdir()) == list((store.buckets / "bucket/objects").iterdir()) == []


def streamed(data: bytes) -> tuple[dict[str, str], bytes]:
    """Headers and body of an upload with a signature for each chunk."""
    day = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {"host": "127.0.0.1:3333", "x-amz-content-sha256": v4.STREAM_SIGNED, "x-amz-date": day,
               "x-amz-decoded-content-length": str(len(data))}
    text = (f"AWS4-HMAC-SHA256 Credential={ACCESS}/{day[:8]}/RegionOne/s3/aws4_request, SignedHeaders="
            f"{';'.join(headers)}, Signature=")
    request = SignedRequest("PUT", "/bucket/k", "", {**headers, "authorization": f"{text}0"})
    found = s3_signature(request, time.time())
    before = signed(found, SECRET, found.strings_to_sign[0])
    headers["authorization"], body = text + before, b""
    for chunk in (data, b""):
        before = signed(found, SECRET, v4.chunk_string_to_sign(found, before, hashlib.sha256(chunk).hexdigest()))
        body += f"{len(chunk):x};chunk-signature={before}\r\n".encode() + chunk + b"\r\n"
    return headers, body


@pytest.mark.parametrize(("old", "new", "code"), [(b"", b"", None), (b"data", b"date", "SignatureDoesNotMatch"),
                                                 (b"\r\ndata", b"\r\ndat", "IncompleteBody")])
def test_put_when_each_chunk_is_signed_then_each_is_checked(tmp_path: Path, old: bytes, new: bytes,
                                                          code: str | None) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket("project", "bucket")
    headers, body = streamed(b"data")
    answer = Service(S3Application(store, identify)).call("PUT", "/bucket/k", body.replace(old, new), **headers)
    assert (answer.status == 200) if code is None else (answer.code == code)
    assert len(list((store.buckets / "bucket/objects").iterdir())) == (code is None)
    assert list(store.new.iterdir()) == []


def test_put_when_nobody_can_check_its_chunks_then_they_are_not_taken(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket("project", "bucket")
    headers, body = streamed(b"data")
    application = S3Application(store, lambda request: identify(request)._replace(check=None))
    assert Service(application).call("PUT", "/bucket/k", body, **headers).code == "NotImplemented"


@pytest.mark.parametrize("mode", [v4.STREAM_SIGNED, v4.STREAM_UNSIGNED_TRAILER])
def test_put_when_version_2_signs_a_body_in_chunks_then_it_is_not_taken(tmp_path: Path, mode: str) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket("project", "bucket")
    found = Signature("s3v2", ACCESS, "", ("",), "sha1")
    application = S3Application(store, lambda request: Identity("project", "demo", found, lambda text, value: True))
    answer = Service(application).call("PUT", "/bucket/k", TRAILER, **{"x-amz-content-sha256": mode})
    assert answer.code == "NotImplemented"
