"""S3's own version 2, bodies in chunks, and the bodies of Keystone's s3tokens."""

from __future__ import annotations

import base64
import dataclasses
import email.utils
import hashlib
import hmac
import io
import time

import pytest
from boto.auth import HmacAuthV1Handler, S3HmacAuthV4Handler
from boto.connection import HTTPRequest

from nova.legacy.signatures import v4
from nova.legacy.signatures.keystone import s3tokens_body
from nova.legacy.signatures.request import (
    S3_ERRORS,
    Signature,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    is_signed,
    signed,
)
from nova.legacy.signatures.v4_chunks import ChunkedBody, ChunksMalformed
from nova.legacy.signatures.versions import s3_signature
from tests.fakes.aws_signers import ACCESS, ENDPOINT, PROVIDER, SECRET, by_botocore, received, time_of

PHOTO = "/johnsmith/photos/puppy.jpg"


def of_manual(method: str, target: str, date: str, value: str, **headers: str) -> SignedRequest:
    return received(method, f"https://s3.amazonaws.com{target}", {
        "date": date, "authorization": f"AWS {ACCESS}:{value}",
        **{name.replace("_", "-"): text for name, text in headers.items()}})


@pytest.mark.parametrize("request_", [
    of_manual("GET", PHOTO, "Tue, 27 Mar 2007 19:36:42 +0000", "bWq2s1WEIj+Ydj0vQ697zp+IXMU="),
    of_manual("PUT", PHOTO, "Tue, 27 Mar 2007 21:15:45 +0000", "MyyxeRY7whkBe+bq8fHCL/2kKUg=",
              content_type="image/jpeg"),
    of_manual("GET", "/johnsmith/?prefix=photos&max-keys=50&marker=puppy", "Tue, 27 Mar 2007 19:42:41 +0000",
              "htDYFYduRNen8P9ZfE/s9SuKy0U="),
    of_manual("GET", "/johnsmith/?acl", "Tue, 27 Mar 2007 19:44:46 +0000", "c2WLPFtWHVgbEmeEG93a4cG37dM="),
    received("GET", f"https://s3.amazonaws.com{PHOTO}?AWSAccessKeyId={ACCESS}&Expires=1175139620"
             "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D", {})], ids=["get", "put", "list", "acl", "query"])
def test_s3_v2_when_it_is_amazons_example_then_it_is_signed_by_its_secret_alone(request_: SignedRequest) -> None:
    date = request_.headers.get("date")
    now = email.utils.parsedate_to_datetime(date).timestamp() if date else 1175139600
    found = s3_signature(request_, now)
    assert (found.access, is_signed(found, SECRET), is_signed(found, "other")) == (ACCESS, True, False)


TARGETS = ["/", "/b", "/b/", "/b/a%20b/c%2Fd", "/b/a~b+c/%C3%BC?uploads", "/b/k?partNumber=2&uploadId=a%2Fb",
           "/b?prefix=a%2F&delimiter=%2F&location", "/b/k?response-content-type=text%2Fplain&x=1"]


def by_boto(target: str, **headers: str) -> SignedRequest:
    given = {"Content-Type": "text/plain", "x-amz-meta-b": "two", "x-amz-acl": "private", **headers}
    made = type("Request", (), {"headers": given, "method": "PUT", "auth_path": target})
    HmacAuthV1Handler("127.0.0.1", None, PROVIDER).add_auth(made)
    return received("PUT", ENDPOINT + target, made.headers)


def verdict(request: SignedRequest, secret: str = SECRET) -> bool | SignatureFault:
    try:
        found = s3_signature(request, time.time())
    except SignatureRefused as refused:
        return refused.fault
    return found.access == ACCESS and is_signed(found, secret)


@pytest.mark.parametrize("target", TARGETS)
def test_s3_v2_when_boto_signed_it_then_it_is_signed(target: str) -> None:
    request = by_boto(target)
    assert (verdict(request), verdict(request, "other")) == (True, False)


@pytest.mark.parametrize("target", TARGETS)
def test_s3_v2_when_botocore_signed_it_then_it_is_signed(target: str) -> None:
    for kind in ("HmacV1Auth", "HmacV1QueryAuth"):
        agent = {"user-agent": "aws-cli/1.44 md/Botocore#1.42 Botocore/1.42"} if kind == "HmacV1Auth" else {}
        request = by_botocore(kind, received("GET", ENDPOINT + target, agent))
        assert (verdict(request), verdict(request, "other")) == (True, False), kind


def changed(text: str) -> list[str]:
    """The text with another character at one place."""
    return [text[:at] + ("y" if text[at] == "z" else "z") + text[at + 1:] for at in range(len(text))]


@pytest.mark.parametrize("target", ["/b/a%20b", "/b/k?partNumber=2&uploadId=ab"])
def test_s3_v2_when_one_character_is_changed_then_it_is_refused(target: str) -> None:
    request = by_boto(target, **{"Content-MD5": "abc="})
    assert verdict(request) is True
    wrong = [dataclasses.replace(request, method="GET")]
    wrong += [dataclasses.replace(request, path=path) for path in changed(request.path)[1:]]
    wrong += [dataclasses.replace(request, query=query) for query in changed(request.query)]
    wrong += [dataclasses.replace(request, headers={**request.headers, name: value})
              for name, text in request.headers.items() if name != "host" for value in changed(text)]
    wrong += [dataclasses.replace(request, headers={**request.headers, "x-amz-new": "1"}),
              dataclasses.replace(request, query=request.query + "&acl")]
    assert [one for one in wrong if verdict(one) is True] == []


def test_s3_v2_when_a_date_of_amazons_own_is_given_then_it_is_the_one_that_counts() -> None:
    old, new = email.utils.formatdate(time.time() - 4000, usegmt=True), email.utils.formatdate(usegmt=True)
    assert verdict(by_boto("/b/k", **{"x-amz-date": new, "Date": old})) is True
    assert verdict(by_boto("/b/k", **{"x-amz-date": old, "Date": new})) is SignatureFault.TOO_OLD


@pytest.mark.parametrize(("date", "fault"), [
    (-910, SignatureFault.TOO_OLD), (960, SignatureFault.TOO_NEW), ("yesterday", SignatureFault.MALFORMED),
    ("", SignatureFault.MISSING), ("Tue, 99 Mar 2007 19:36:42 +0000", SignatureFault.MALFORMED)])
def test_s3_v2_when_its_date_is_wrong_then_it_is_refused(date: str | int, fault: SignatureFault) -> None:
    request = by_boto("/b/k")
    date = email.utils.formatdate(time.time() + date) if isinstance(date, int) else date
    assert verdict(dataclasses.replace(request, headers={**request.headers, "date": date})) is fault


@pytest.mark.parametrize(("life", "fault"), [
    (60, True), (-2, SignatureFault.TOO_OLD), (8 * 86400, SignatureFault.TOO_LONG)])
def test_s3_v2_query_then_its_end_is_bounded(life: int, fault: SignatureFault | bool) -> None:
    assert verdict(by_botocore("HmacV1QueryAuth", received("GET", f"{ENDPOINT}/b/k", {}), expires=life)) is fault


@pytest.mark.parametrize(("old", "new", "fault", "what"), [
    ("Expires=", "x=", SignatureFault.MISSING, "Expires"),
    ("Expires=", "Expires=x", SignatureFault.MALFORMED, "Expires"),
    ("AWSAccessKeyId=", "x=", SignatureFault.MISSING, "AWSAccessKeyId"),
    ("&Signature=", "&x=", SignatureFault.MISSING, "Signature"),
    ("Expires=", "Expires=9&Expires=", SignatureFault.DUPLICATE, "Expires")])
def test_s3_v2_query_when_a_part_is_wrong_then_it_is_named(old: str, new: str, fault: SignatureFault,
                                                         what: str) -> None:
    request = by_botocore("HmacV1QueryAuth", received("GET", f"{ENDPOINT}/b/k", {}))
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(dataclasses.replace(request, query=request.query.replace(old, new)), time.time())
    assert (refused.value.fault, refused.value.what) == (fault, what)


@pytest.mark.parametrize("text", ["AWS ", "AWS a", "AWS a:", "AWS a:b c", "AWS :"])
def test_s3_v2_header_when_it_is_malformed_then_it_is_refused(text: str) -> None:
    request = by_boto("/b/k")
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(dataclasses.replace(request, headers={**request.headers, "authorization": text}), time.time())
    assert refused.value.fault in (SignatureFault.MALFORMED, SignatureFault.UNKNOWN)


def test_s3_when_nothing_is_signed_then_access_is_denied() -> None:
    assert verdict(received("GET", f"{ENDPOINT}/b/k", {})) is SignatureFault.UNSIGNED
    assert S3_ERRORS[SignatureFault.UNSIGNED] == (403, "AccessDenied")


def test_s3_v2_when_header_and_query_are_signed_then_it_is_refused() -> None:
    request = dataclasses.replace(by_boto("/b/k"), query="Signature=a")
    assert verdict(request) is SignatureFault.DUPLICATE


def test_s3tokens_then_the_token_is_what_was_signed() -> None:
    for request in (by_boto("/b/k?uploadId=a%2Fb"), by_botocore("S3SigV4QueryAuth",
                                                                received("GET", f"{ENDPOINT}/b/k", {}))):
        found = s3_signature(request, time.time())
        body = s3tokens_body(found)["credentials"]
        text = base64.urlsafe_b64decode(body["token"]).decode()
        assert (body["access"], signed(found, SECRET, text)) == (ACCESS, body["signature"])


# -- bodies in chunks

DAY = time_of("2013-05-24T00:00:00")
SEED = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
CHUNKS = ["ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
          "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
          "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"]
SIZES = [65536, 1024, 0]


def upload() -> Signature:
    """Of the example in S3's manual."""
    headers = {"content-encoding": "aws-chunked", "content-length": "66824", "x-amz-date": "20130524T000000Z",
               "x-amz-content-sha256": v4.STREAM_SIGNED, "x-amz-decoded-content-length": "66560",
               "x-amz-storage-class": "REDUCED_REDUNDANCY"}
    names = ";".join(sorted([*headers, "host"]))
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={ACCESS}/20130524/us-east-1/s3/aws4_request,"
                                f"SignedHeaders={names},Signature={SEED}")
    return s3_signature(received("PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt", headers), DAY)


def chunked(signatures: list[str], sizes: list[int] = SIZES) -> bytes:
    return b"".join(f"{size:x};chunk-signature={one}\r\n".encode() + b"a" * size + b"\r\n"
                    for size, one in zip(sizes, signatures, strict=True))


def content(body: bytes, found: Signature, secret: str = SECRET) -> tuple[bytes, dict[str, str]]:
    read = ChunkedBody(io.BytesIO(body), found,
                       lambda text, value: hmac.compare_digest(signed(found, secret, text), value))
    return b"".join(read), dict(read.trailers)


def test_chunks_when_they_are_amazons_example_then_they_are_signed() -> None:
    found = upload()
    assert is_signed(found, SECRET) and found.payload == v4.STREAM_SIGNED
    assert content(chunked(CHUNKS), found) == (b"a" * 66560, {})


def swapped(at: int) -> list[str]:
    return [*CHUNKS[:at], "0" * 64, *CHUNKS[at + 1:]]


@pytest.mark.parametrize("body", [
    *(chunked(swapped(at)) for at in range(3)), chunked(CHUNKS).replace(b"aaa\r\n", b"aab\r\n", 1),
    chunked([CHUNKS[1], CHUNKS[0], CHUNKS[2]]), chunked([CHUNKS[0], CHUNKS[2]], [65536, 0])],
    ids=["first", "second", "last", "data", "order", "left-out"])
def test_chunks_when_one_is_not_what_was_signed_then_they_are_refused(body: bytes) -> None:
    with pytest.raises(SignatureRefused) as refused:
        content(body, upload())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.MISMATCH, "chunk-signature")


@pytest.mark.parametrize("cut", [1, 3, 100, 200, 30000])
def test_chunks_when_the_body_is_cut_then_they_are_malformed(cut: int) -> None:
    with pytest.raises(ChunksMalformed):
        content(chunked(CHUNKS)[:-cut], upload())


@pytest.mark.parametrize("body", [b"", b"x\r\n", b"-1\r\n", b"5", b"fffffffffffff\r\n", b"5;a=b\r\n", b"1\r\nab\r\n",
                                  b"0;" + b"x" * 9000])
def test_chunks_when_a_head_is_malformed_then_that_is_said(body: bytes) -> None:
    with pytest.raises(ChunksMalformed):
        content(body, dataclasses.replace(upload(), payload=v4.STREAM_UNSIGNED_TRAILER))


def test_chunks_when_a_signature_is_missing_then_it_is_named() -> None:
    with pytest.raises(SignatureRefused) as refused:
        content(b"1\r\na\r\n0\r\n\r\n", upload())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.MISSING, "chunk-signature")


def test_chunks_when_they_are_unsigned_with_a_trailer_then_both_are_read() -> None:
    found = dataclasses.replace(upload(), payload=v4.STREAM_UNSIGNED_TRAILER)
    assert content(b"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n", found) == (
        b"abc", {"x-amz-checksum-crc32": "NSRBwg=="})


@pytest.mark.parametrize("trailer", [b"nothing\r\n", b"a:1\r\na:2\r\n", b"".join(b"n%d:1\r\n" % n for n in range(20))])
def test_trailer_when_it_is_malformed_then_that_is_said(trailer: bytes) -> None:
    with pytest.raises(ChunksMalformed):
        content(b"0\r\n" + trailer + b"\r\n", dataclasses.replace(upload(), payload=v4.STREAM_UNSIGNED_TRAILER))


@pytest.mark.parametrize("is_right", [True, False])
def test_trailer_when_it_is_signed_then_its_signature_is_checked(is_right: bool) -> None:
    found = dataclasses.replace(upload(), payload=v4.STREAM_SIGNED_TRAILER)
    empty = hashlib.sha256(b"").hexdigest()
    scope = "20130524T000000Z\n20130524/us-east-1/s3/aws4_request"
    last = signed(found, SECRET, f"AWS4-HMAC-SHA256-PAYLOAD\n{scope}\n{SEED}\n{empty}\n{empty}")
    digest = hashlib.sha256(b"x-amz-checksum-crc32:AAAAAA==\n").hexdigest()
    value = signed(found, SECRET, f"AWS4-HMAC-SHA256-TRAILER\n{scope}\n{last}\n{digest}")
    body = (f"0;chunk-signature={last}\r\nx-amz-checksum-crc32:{'AAAAAA==' if is_right else 'BAAAAA=='}\r\n"
            f"x-amz-trailer-signature:{value}\r\n\r\n").encode()
    if is_right:
        assert content(body, found) == (b"", {"x-amz-checksum-crc32": "AAAAAA=="})
        return
    with pytest.raises(SignatureRefused, match="trailer-signature"):
        content(body, found)


@pytest.mark.parametrize("region", ["RegionOne", "us-east-1"])
def test_s3_v4_when_boto_2_signed_the_port_twice_then_it_is_signed(region: str) -> None:
    made = HTTPRequest("GET", "http", "127.0.0.1:3333", 3333, "/bucket/a key", "/bucket/a key", {},
                       {"User-Agent": "Boto/2.49.0"}, "")
    S3HmacAuthV4Handler("127.0.0.1", None, PROVIDER, region_name=region, service_name="s3").add_auth(made)
    request = received("GET", f"http://127.0.0.1:3333{made.path.replace(' ', '%20')}", made.headers)
    for host in ("127.0.0.1:3333", "127.0.0.1:3333:3333"):  # it is sent by Python's library, or by boto
        assert verdict(dataclasses.replace(request, headers={**request.headers, "host": host})) is True
    elsewhere = dataclasses.replace(request, headers={**request.headers, "host": "127.0.0.1:3334"})
    assert verdict(elsewhere) is False


@pytest.mark.parametrize("name", ["%61cl", "ac%6C", "%72esponse-content-type", "uploadI%64"])
def test_s3_v2_when_a_subresource_is_encoded_so_that_no_signature_covers_it_then_it_is_refused(name: str) -> None:
    signed_for = by_boto("/b/k")
    assert verdict(signed_for) is True
    assert verdict(dataclasses.replace(signed_for, query=f"{name}=text%2Fhtml")) is SignatureFault.NOT_COVERED
