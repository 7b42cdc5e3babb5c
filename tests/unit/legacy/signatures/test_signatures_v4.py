"""Signatures of version 4: AWS's published examples, botocore's signers, and what must be refused."""

from __future__ import annotations

import dataclasses
import hashlib
import time
import urllib.parse
from collections.abc import Iterator

import pytest

from nova.legacy.signatures import v4
from nova.legacy.signatures.request import (
    EC2_ERRORS,
    S3_ERRORS,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    is_signed,
)
from nova.legacy.signatures.versions import ec2_signature, s3_signature
from tests.fakes.aws_signers import ACCESS, ENDPOINT, SECRET, by_botocore, received, time_of

SUITE_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
S3_DAY = time_of("2013-05-24T00:00:00")
S3_SCOPE = f"Credential={ACCESS}/20130524/us-east-1/s3/aws4_request"
BUCKET = "https://examplebucket.s3.amazonaws.com"
EMPTY = hashlib.sha256(b"").hexdigest()
S3_NAMES = "host;x-amz-content-sha256;x-amz-date"
FORM_TYPE = "application/x-www-form-urlencoded; charset=utf-8"


def example(url: str, signed: str, value: str, **headers: str) -> SignedRequest:
    """One of the examples of S3's manual."""
    given = {"x-amz-date": "20130524T000000Z", "x-amz-content-sha256": EMPTY,
             **{name.replace("_", "-"): text for name, text in headers.items()}}
    given["authorization"] = f"AWS4-HMAC-SHA256 {S3_SCOPE},SignedHeaders={signed},Signature={value}"
    return received("PUT" if "date" in headers else "GET", url, given)


S3_EXAMPLES = {
    "get": example(f"{BUCKET}/test.txt", "host;range;x-amz-content-sha256;x-amz-date",
                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", range="bytes=0-9"),
    "put": example(f"{BUCKET}/test$file.text", "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                   "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
                   date="Fri, 24 May 2013 00:00:00 GMT", x_amz_storage_class="REDUCED_REDUNDANCY",
                   x_amz_content_sha256=hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()),
    "lifecycle": example(f"{BUCKET}/?lifecycle", S3_NAMES,
                         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    "list": example(f"{BUCKET}/?max-keys=2&prefix=J", S3_NAMES,
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    "presigned": received(
        "GET", f"{BUCKET}/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ACCESS}%2F20130524%2Fus-east-1"
        "%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404", {})}


@pytest.mark.parametrize("name", S3_EXAMPLES)
def test_s3_v4_when_it_is_amazons_example_then_it_is_signed_by_its_secret_alone(name: str) -> None:
    found = s3_signature(S3_EXAMPLES[name], S3_DAY + 100)
    assert (found.access, is_signed(found, SECRET), is_signed(found, SECRET[:-1])) == (ACCESS, True, False)


@pytest.mark.parametrize(("url", "headers", "value", "secret"), [
    ("https://example.amazonaws.com/", {"authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/"
     "service/aws4_request, SignedHeaders=host;x-amz-date, Signature="},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", SUITE_SECRET),
    ("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", {
        "content-type": FORM_TYPE, "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/"
        "aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="},
     "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7", SUITE_SECRET)])
def test_ec2_v4_when_it_is_amazons_example_then_it_is_signed(url: str, headers: dict[str, str], value: str,
                                                            secret: str) -> None:
    headers = {**headers, "authorization": headers["authorization"] + value, "x-amz-date": "20150830T123600Z"}
    found = ec2_signature(received("GET", url, headers), time_of("2015-08-30T12:36:10"))
    assert is_signed(found, secret) and not is_signed(found, SECRET)


BODY = urllib.parse.urlencode({"Action": "RunInstances", "Version": "2016-11-15", "Name.1": "a b+c/~ü%2F"}).encode()
PATHS = ["/services/Cloud", "/services/Cloud/", "/", "/b/a%2Fb%20c", "/b/a+b~c/%C3%BC", "/b//a/./c"]
QUERY = "prefix=a%2Fb%20c&delimiter=%2F&uploads=&marker=%C3%BC~&a=2&a=1"


def ec2_post(path: str = "/services/Cloud") -> SignedRequest:
    return by_botocore("SigV4Auth", received("POST", ENDPOINT + path, {"content-type": FORM_TYPE}, BODY), BODY)


def s3_put(path: str = "/b/a%2Fb", query: str = QUERY) -> SignedRequest:
    return by_botocore("S3SigV4Auth", received("PUT", f"{ENDPOINT}{path}?{query}", {"x-amz-meta-a": "one   two"},
                                               b"data"), b"data")


def s3_presigned() -> SignedRequest:
    return by_botocore("S3SigV4QueryAuth", received("GET", f"{ENDPOINT}/b/a%20b?versionId=1", {}), expires=60)


@pytest.mark.parametrize("path", PATHS)
def test_ec2_v4_when_botocore_signed_it_then_it_is_signed(path: str) -> None:
    found = ec2_signature(ec2_post(path), time.time())
    assert (is_signed(found, SECRET), is_signed(found, SECRET + "x")) == (True, False)


@pytest.mark.parametrize("path", [path.replace("+", "%2B") for path in PATHS])
def test_s3_v4_when_botocore_signed_it_then_it_is_signed(path: str) -> None:
    found = s3_signature(s3_put(path), time.time())
    assert (is_signed(found, SECRET), is_signed(found, SECRET + "x")) == (True, False)
    assert found.payload == hashlib.sha256(b"data").hexdigest()


def test_s3_v4_when_the_path_was_decoded_on_its_way_then_it_is_signed_all_the_same() -> None:
    request = s3_put("/b/a%24b%20c~%2Bd%2Fe")
    for path in ("/b/a$b%20c~+d%2Fe", "/b/a%24b%20c%7E%2bd%2fe"):
        found = s3_signature(dataclasses.replace(request, path=path), time.time())
        assert is_signed(found, SECRET) and len(found.strings_to_sign) == 1


def test_s3_presigned_when_botocore_made_it_then_its_payload_is_unsigned() -> None:
    found = s3_signature(s3_presigned(), time.time())
    assert is_signed(found, SECRET) and found.payload == v4.UNSIGNED_PAYLOAD


def test_ec2_presigned_when_botocore_made_it_then_it_is_signed() -> None:
    made = by_botocore("SigV4QueryAuth", received("GET", f"{ENDPOINT}/?Action=DescribeInstances", {}), expires=60)
    assert is_signed(ec2_signature(made, time.time()), SECRET)


def flipped(text: str, at: int) -> str:
    return text[:at] + ("b" if text[at] == "a" else "a") + text[at + 1:]


def changed(request: SignedRequest) -> Iterator[SignedRequest]:
    """The request with one character changed, at each place that a signature covers."""
    yield dataclasses.replace(request, method="DELETE")
    yield dataclasses.replace(request, body_hash=flipped(request.body_hash, 3))
    for at in range(1, len(request.path)):
        yield dataclasses.replace(request, path=flipped(request.path, at))
    for at in range(len(request.query)):
        yield dataclasses.replace(request, query=flipped(request.query, at))
    for name, value in request.headers.items():
        for at in range(len(value)):
            yield dataclasses.replace(request, headers={**request.headers, name: flipped(value, at)})


def accepted(request: SignedRequest, is_s3: bool) -> bool:
    try:
        found = (s3_signature if is_s3 else ec2_signature)(request, time.time())
    except SignatureRefused:
        return False
    return found.access == ACCESS and is_signed(found, SECRET)


@pytest.mark.parametrize("kind", ["ec2", "s3", "presigned"])
def test_v4_when_one_character_is_changed_anywhere_then_it_is_refused(kind: str) -> None:
    request = {"ec2": ec2_post, "s3": s3_put, "presigned": s3_presigned}[kind]()
    uncovered = {"user-agent", "content-length", "expect"}
    request = dataclasses.replace(request, headers={name: value for name, value in request.headers.items()
                                                    if name not in uncovered})
    assert accepted(request, kind != "ec2")
    wrong = [one for one in changed(request) if accepted(one, kind != "ec2")]
    if kind != "ec2":  # the hash that was signed is the header's: the caller compares it with the body
        wrong = [one for one in wrong if one.body_hash == request.body_hash]
    assert wrong == []


@pytest.mark.parametrize(("offset", "fault"), [
    (901, SignatureFault.TOO_OLD), (-901, SignatureFault.TOO_NEW), (890, None), (-890, None)])
def test_v4_when_its_time_is_far_from_ours_then_it_is_refused(offset: int, fault: SignatureFault | None) -> None:
    request, now = ec2_post(), time.time() + offset
    if fault is None:
        assert is_signed(ec2_signature(request, now), SECRET)
        return
    with pytest.raises(SignatureRefused) as refused:
        ec2_signature(request, now)
    assert (refused.value.fault, refused.value.what) == (fault, "X-Amz-Date")
    assert EC2_ERRORS[fault].code == "RequestExpired" and S3_ERRORS[fault].code == "RequestTimeTooSkewed"


@pytest.mark.parametrize(("old", "new", "fault", "what"), [
    ("X-Amz-Expires=60", "X-Amz-Expires=604801", SignatureFault.TOO_LONG, "X-Amz-Expires"),
    ("X-Amz-Expires=60", "X-Amz-Expires=0", SignatureFault.MALFORMED, "X-Amz-Expires"),
    ("X-Amz-Expires=60", "X-Amz-Expires=-1", SignatureFault.MALFORMED, "X-Amz-Expires"),
    ("&X-Amz-Expires=60", "", SignatureFault.MISSING, "X-Amz-Expires"),
    ("X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Algorithm=AWS4-HMAC-SHA1", SignatureFault.UNKNOWN, "X-Amz-Algorithm"),
    ("X-Amz-Algorithm=", "x=", SignatureFault.MISSING, "X-Amz-Algorithm"),
    ("X-Amz-Credential=", "x=", SignatureFault.MISSING, "X-Amz-Credential"),
    ("X-Amz-Date=", "x=", SignatureFault.MISSING, "X-Amz-Date"),
    ("X-Amz-Date=2", "X-Amz-Date=x", SignatureFault.MALFORMED, "X-Amz-Date"),
    ("X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders=range", SignatureFault.MISSING, "range"),
    ("X-Amz-Expires=60", "X-Amz-Expires=60&X-Amz-Expires=60", SignatureFault.DUPLICATE, "X-Amz-Expires"),
    ("aws4_request", "aws5_request", SignatureFault.MALFORMED, "Credential")])
def test_presigned_when_a_part_is_wrong_then_it_is_named(old: str, new: str, fault: SignatureFault, what: str) -> None:
    request = s3_presigned()
    assert old in request.query
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(dataclasses.replace(request, query=request.query.replace(old, new)), time.time())
    assert (refused.value.fault, refused.value.what) == (fault, what)
    assert what in str(refused.value)


def test_presigned_when_its_life_is_over_then_it_is_too_old() -> None:
    request = s3_presigned()
    assert is_signed(s3_signature(request, time.time() + 50), SECRET)
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(request, time.time() + 62)
    assert refused.value.fault is SignatureFault.TOO_OLD


@pytest.mark.parametrize(("name", "value", "fault", "what"), [
    ("x-amz-date", None, SignatureFault.MISSING, "X-Amz-Date"),
    ("x-amz-content-sha256", None, SignatureFault.MISSING, "x-amz-content-sha256"),
    ("x-amz-content-sha256", "abc", SignatureFault.MALFORMED, "x-amz-content-sha256"),
    ("x-amz-acl", "public-read", SignatureFault.NOT_COVERED, "x-amz-acl"),
    ("host", None, SignatureFault.MISSING, "host"),
    ("authorization", "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=a", SignatureFault.MISSING, "Credential"),
    ("authorization", "AWS4-HMAC-SHA256 Credential=a, Signature=a", SignatureFault.MISSING, "SignedHeaders"),
    ("authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host", SignatureFault.MISSING, "Signature"),
    ("authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=a", SignatureFault.MALFORMED,
     "Credential"),
    ("authorization", "AWS4-HMAC-SHA256-X Credential=a", SignatureFault.UNKNOWN, "Authorization"),
    ("authorization", "Bearer a", SignatureFault.UNKNOWN, "Authorization"),
    ("authorization", None, SignatureFault.UNSIGNED, "")])
def test_v4_header_when_a_part_is_wrong_then_it_is_named(name: str, value: str | None, fault: SignatureFault,
                                                       what: str) -> None:
    request = s3_put()
    headers = {key: text for key, text in request.headers.items() if key != name}
    headers |= {} if value is None else {name: value}
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(dataclasses.replace(request, headers=headers), time.time())
    assert (refused.value.fault, refused.value.what) == (fault, what)


def test_v4_when_the_host_is_not_signed_then_it_is_refused() -> None:
    request = ec2_post()
    text = request.headers["authorization"].replace("content-type;host;", "content-type;")
    with pytest.raises(SignatureRefused) as refused:
        ec2_signature(dataclasses.replace(request, headers={**request.headers, "authorization": text}), time.time())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.NOT_COVERED, "host")


def test_v4_when_it_is_signed_in_two_places_then_it_is_refused() -> None:
    request, presigned = s3_put(), s3_presigned()
    for query in (presigned.query, f"{QUERY}&AWSAccessKeyId=a"):
        with pytest.raises(SignatureRefused) as refused:
            s3_signature(dataclasses.replace(request, query=query), time.time())
        assert refused.value.fault is SignatureFault.DUPLICATE


def test_v4_when_a_presigned_url_has_a_date_header_then_it_is_refused() -> None:
    request = s3_presigned()
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(dataclasses.replace(request, headers={**request.headers, "x-amz-date": "20130524T000000Z"}),
                     time.time())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.DUPLICATE, "X-Amz-Date")


def test_refusals_then_each_has_an_error_of_both_services() -> None:
    assert set(EC2_ERRORS) == set(S3_ERRORS) == set(SignatureFault)


def test_presigned_when_it_is_of_a_time_to_come_then_it_is_too_new() -> None:
    with pytest.raises(SignatureRefused) as refused:
        s3_signature(s3_presigned(), time.time() - 910)
    assert (refused.value.fault, refused.value.what) == (SignatureFault.TOO_NEW, "X-Amz-Date")


def test_v4_when_its_key_is_of_another_day_than_its_date_then_it_is_refused() -> None:
    request = ec2_post()
    day = request.headers["x-amz-date"][:8]
    text = request.headers["authorization"].replace(f"/{day}/", "/20130524/")
    with pytest.raises(SignatureRefused) as refused:
        ec2_signature(dataclasses.replace(request, headers={**request.headers, "authorization": text}), time.time())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.MALFORMED, "Credential")
