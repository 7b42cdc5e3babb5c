"""Signatures of EC2's versions 0, 1 and 2: AWS's example, botocore, boto 2, keystoneclient, and what is refused."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import time
import types
import urllib.parse
from collections.abc import Mapping

import boto.auth
import pytest
from botocore.auth import SigV2Auth
from botocore.credentials import Credentials
from keystoneclient.contrib.ec2.utils import Ec2Signer

from nova.legacy.signatures.ec2_query import without_port
from nova.legacy.signatures.keystone import ec2tokens_body
from nova.legacy.signatures.request import EC2_ERRORS, SignatureFault, SignatureRefused, SignedRequest, is_signed
from nova.legacy.signatures.request import signed_request as of_environ
from nova.legacy.signatures.versions import ec2_signature
from tests.fakes.aws_signers import ACCESS, ENDPOINT, PROVIDER, SECRET, by_botocore, received, time_of

FORM_TYPE = {"content-type": "application/x-www-form-urlencoded"}
ODD = {"Action": "DescribeInstances", "Name": "a/b%2F+c d~e", "Käse": "ü€", "a": "", "B": "1",
       "Filter.1.Value.1": "*'()!"}
BOTO = {"1": boto.auth.QuerySignatureV1AuthHandler, "2": boto.auth.QuerySignatureV2AuthHandler}


def timestamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def sent(parameters: Mapping[str, str], signature: str, method: str = "GET",
         host: str = "127.0.0.1:8773") -> SignedRequest:
    """In the query of a GET, or the form of a POST."""
    text = urllib.parse.urlencode({**parameters, "Signature": signature})
    if method == "GET":
        return received("GET", f"http://{host}/services/Cloud?{text}", {})
    return received("POST", f"http://{host}/services/Cloud", FORM_TYPE, text.encode())


def by_boto(version: str, method: str = "GET", signed_host: str = "127.0.0.1:8773",
            **changes: str) -> SignedRequest:
    """Signed by boto 2's own handler of the version."""
    parameters = {**ODD, "AWSAccessKeyId": ACCESS, "SignatureVersion": version, "Timestamp": timestamp(time.time()),
                  **changes}
    handler = BOTO[version](signed_host, None, PROVIDER)
    _, value = handler._calc_signature(parameters, method, "/services/Cloud", signed_host)
    return sent(parameters, value.decode(), method)


def by_hand(string_to_sign: str, parameters: Mapping[str, str], digest: str = "sha1") -> SignedRequest:
    value = base64.b64encode(hmac.digest(SECRET.encode(), string_to_sign.encode(), digest)).decode()
    return sent(parameters, value)


def version_0(**changes: str) -> SignedRequest:
    parameters = {"Action": "DescribeImages", "AWSAccessKeyId": ACCESS, "SignatureVersion": "0",
                  "Timestamp": timestamp(time.time()), **changes}
    return by_hand(parameters["Action"] + parameters["Timestamp"], parameters)


def verdict(request: SignedRequest, secret: str = SECRET) -> bool | SignatureFault:
    try:
        found = ec2_signature(request, time.time())
    except SignatureRefused as refused:
        return refused.fault
    return found.access == ACCESS and is_signed(found, secret)


def test_version_2_when_it_is_amazons_example_then_it_is_signed() -> None:
    request = received("GET", "https://elasticmapreduce.amazonaws.com/?Action=DescribeJobFlows&Version=2009-03-31"
                       f"&AWSAccessKeyId={ACCESS}&SignatureVersion=2&SignatureMethod=HmacSHA256"
                       "&Timestamp=2011-10-03T15%3A19%3A30"
                       "&Signature=i91nKc4PWAt0JJIdXwz9HxZCJDdiy6cf%2FMj6vPxyYIs%3D", {})
    found = ec2_signature(request, time_of("2011-10-03T15:20:00"))
    assert is_signed(found, SECRET) and not is_signed(found, SECRET + " ")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("version", ["1", "2"])
def test_version_when_boto_signed_it_then_it_is_signed_by_its_secret_alone(version: str, method: str) -> None:
    request = by_boto(version, method)
    assert (verdict(request), verdict(request, "other")) == (True, False)


@pytest.mark.parametrize("signed_host", ["127.0.0.1", "127.0.0.1:8773"])
def test_version_2_when_the_host_is_signed_with_or_without_port_then_it_is_signed(signed_host: str) -> None:
    assert verdict(by_boto("2", signed_host=signed_host)) is True
    assert verdict(by_boto("2", signed_host=signed_host + "0")) is False


def test_version_2_when_the_host_has_capitals_then_small_ones_are_signed() -> None:
    request = by_boto("2", signed_host="localhost:8773")
    request = dataclasses.replace(request, headers={"host": "LocalHost:8773"})
    assert verdict(request) is True
    credentials = ec2tokens_body(request, ec2_signature(request, time.time()))["credentials"]
    assert Ec2Signer(SECRET).generate(dict(credentials)) == credentials["signature"]


def test_version_2_when_botocore_signed_it_then_it_is_signed() -> None:
    made = types.SimpleNamespace(method="POST", url=f"{ENDPOINT}/services/Cloud", data=dict(ODD), params={})
    SigV2Auth(Credentials(ACCESS, SECRET)).add_auth(made)
    request = received("POST", made.url, FORM_TYPE, urllib.parse.urlencode(made.data).encode())
    assert (verdict(request), verdict(request, "other")) == (True, False)


def test_version_2_when_it_is_sha1_then_it_is_signed() -> None:
    parameters = {"AWSAccessKeyId": ACCESS, "Action": "A", "SignatureMethod": "HmacSHA1", "SignatureVersion": "2",
                  "Timestamp": timestamp(time.time())}
    query = urllib.parse.urlencode(parameters)
    assert verdict(by_hand(f"GET\n127.0.0.1:8773\n/services/Cloud\n{query}", parameters)) is True
    assert verdict(by_hand(f"GET\n127.0.0.1:8773\n/services/Cloud\n{query}", parameters, "sha256")) is False


def test_version_0_then_action_and_time_are_signed() -> None:
    request = version_0()
    assert (verdict(request), verdict(request, "other")) == (True, False)
    other = dataclasses.replace(request, query=request.query.replace("DescribeImages", "DescribeImage"))
    assert verdict(other) is False
    silent = dataclasses.replace(request, query=request.query.replace("&SignatureVersion=0", ""))
    assert verdict(silent) is True


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_version_when_one_character_of_a_parameter_is_changed_then_it_is_refused(version: str, method: str) -> None:
    request = by_boto(version, method)
    pairs = list(request.query_pairs or request.form)
    for at, (name, value) in enumerate(pairs):
        for other in ((name + "x", value), (name, value + "x"), (name, value[1:] or "y")):
            text = urllib.parse.urlencode([*pairs[:at], other, *pairs[at + 1:]])
            again = received(method, f"{ENDPOINT}/services/Cloud" + (f"?{text}" if method == "GET" else ""),
                             FORM_TYPE, b"" if method == "GET" else text.encode())
            assert verdict(again) is not True, other


def test_version_2_when_method_path_or_host_is_another_then_it_is_refused() -> None:
    request = by_boto("2")
    assert verdict(request) is True
    for change in ({"method": "PUT"}, {"path": "/services/Cloud/"}, {"headers": {"host": "127.0.0.2:8773"}}):
        assert verdict(dataclasses.replace(request, **change)) is False


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_version_when_a_parameter_is_given_twice_then_it_is_refused(version: str) -> None:
    request = version_0() if version == "0" else by_boto(version)
    assert verdict(dataclasses.replace(request, query=request.query + "&Action=TerminateInstances")) \
        is SignatureFault.DUPLICATE
    assert verdict(dataclasses.replace(request, form=[("Action", "TerminateInstances")])) is SignatureFault.DUPLICATE


@pytest.mark.parametrize("version", ["0", "1", "2"])
@pytest.mark.parametrize(("offset", "fault"), [
    (-910, SignatureFault.TOO_OLD), (910, SignatureFault.TOO_NEW), (-880, True), (880, True)])
def test_timestamp_when_it_is_far_from_ours_then_it_is_refused(version: str, offset: int,
                                                               fault: SignatureFault | bool) -> None:
    at = timestamp(time.time() + offset)
    assert verdict(version_0(Timestamp=at) if version == "0" else by_boto(version, Timestamp=at)) is fault


def test_timestamp_when_a_narrower_bound_is_given_then_it_holds() -> None:
    request = by_boto("2", Timestamp=timestamp(time.time() - 310))
    with pytest.raises(SignatureRefused, match=r"expired.*Timestamp"):
        ec2_signature(request, time.time(), 300)


@pytest.mark.parametrize(("end", "fault"), [
    (890, True), (-2, SignatureFault.TOO_OLD), (960, SignatureFault.TOO_LONG), (8 * 86400, SignatureFault.TOO_LONG),
    ("tomorrow", SignatureFault.MALFORMED),
    ("2026-13-01T00:00:00Z", SignatureFault.MALFORMED), ("9999999-01-01T00:00:00", SignatureFault.MALFORMED)])
def test_expires_then_it_stands_for_the_timestamp_within_bounds(end: str | int, fault: SignatureFault | bool) -> None:
    end = timestamp(time.time() + end) if isinstance(end, int) else end
    parameters = {"Action": "A", "AWSAccessKeyId": ACCESS, "Expires": end, "SignatureMethod": "HmacSHA256",
                  "SignatureVersion": "2"}
    ordered = urllib.parse.urlencode(sorted({**parameters}.items()))
    assert verdict(by_hand(f"GET\n127.0.0.1\n/services/Cloud\n{ordered}", parameters, "sha256")) is fault
    assert verdict(by_boto("2", Expires=end)) is SignatureFault.DUPLICATE


@pytest.mark.parametrize(("name", "fault"), [
    ("AWSAccessKeyId", SignatureFault.MISSING), ("Signature", SignatureFault.MISSING),
    ("Timestamp", SignatureFault.MISSING)])
def test_query_when_a_part_is_missing_then_it_is_named(name: str, fault: SignatureFault) -> None:
    request = by_boto("2")
    query = urllib.parse.urlencode([pair for pair in request.query_pairs if pair[0] != name])
    with pytest.raises(SignatureRefused) as refused:
        ec2_signature(dataclasses.replace(request, query=query), time.time())
    assert (refused.value.fault, refused.value.what) == (fault, name)
    assert EC2_ERRORS[fault] == (400, "MissingParameter")


@pytest.mark.parametrize("change", [{"SignatureVersion": "3"}, {"SignatureMethod": "HmacMD5"}])
def test_query_when_version_or_method_is_unknown_then_it_is_named(change: dict[str, str]) -> None:
    parameters = {"Action": "A", "AWSAccessKeyId": ACCESS, "Timestamp": timestamp(time.time()), **change}
    with pytest.raises(SignatureRefused) as refused:
        ec2_signature(sent(parameters, "x"), time.time())
    assert (refused.value.fault, refused.value.what) == (SignatureFault.UNKNOWN, next(iter(change)))


def test_request_when_nothing_is_signed_then_it_is_said() -> None:
    assert verdict(received("GET", f"{ENDPOINT}/?Action=A", {})) is SignatureFault.UNSIGNED
    assert verdict(received("GET", f"{ENDPOINT}/?Action=A", {"authorization": "Basic x"})) is SignatureFault.UNKNOWN


def test_signature_when_it_is_no_text_of_ours_then_it_is_no_match() -> None:
    request = by_boto("2")
    for value in ("%FF", "%00", "%C3%BC", "x" * 100000):
        query = urllib.parse.urlencode([pair for pair in request.query_pairs if pair[0] != "Signature"])
        assert verdict(dataclasses.replace(request, query=f"{query}&Signature={value}")) is False


@pytest.mark.parametrize(("host", "name"), [
    ("a:80", "a"), ("a", "a"), ("[::1]:8773", "[::1]"), ("[::1]", "[::1]"), ("::1", "::1"), ("a:", "a:")])
def test_host_then_its_port_is_cut(host: str, name: str) -> None:
    assert without_port(host) == name


@pytest.mark.parametrize("raw", ["RAW_URI", "REQUEST_URI", None])
def test_environment_when_a_form_was_sent_then_it_is_a_signed_request(raw: str | None) -> None:
    wanted = by_boto("2", "POST")
    body = urllib.parse.urlencode(wanted.form).encode()
    environ = {"REQUEST_METHOD": "POST", "SCRIPT_NAME": "/services", "PATH_INFO": "/Cloud", "QUERY_STRING": "",
               "CONTENT_TYPE": FORM_TYPE["content-type"], "HTTP_HOST": "127.0.0.1:8773", "HTTP_X_AMZ_A": "\xc3\xbc"}
    environ |= {raw: "/services/Cloud"} if raw else {}
    found = of_environ(environ, body)
    assert (found.path, found.headers["x-amz-a"], found.body_hash) == (
        "/services/Cloud", "ü", hashlib.sha256(body).hexdigest())
    assert verdict(found) is True


def test_environment_when_the_path_is_decoded_then_it_is_encoded_anew() -> None:
    found = of_environ({"REQUEST_METHOD": "GET", "PATH_INFO": "/b/a b+\xc3\xbc\xff~"})
    assert found.path == "/b/a%20b%2B%C3%BC%FF~"


# -- Keystone's own check of the body that asks it

def test_ec2tokens_when_any_version_is_handed_over_then_keystone_finds_the_same() -> None:
    form = urllib.parse.urlencode(ODD).encode()
    requests = [version_0(), by_boto("1"), by_boto("1", "POST"), by_boto("2"), by_boto("2", "POST"),
                by_botocore("SigV4Auth", received("POST", f"{ENDPOINT}/services/Cloud", FORM_TYPE, form), form),
                by_botocore("SigV4Auth", received("GET", f"{ENDPOINT}/a%20b/?a=%2F%C3%BC&b=", {})),
                by_botocore("SigV4QueryAuth", received("GET", f"{ENDPOINT}/services/Cloud?Action=A", {}), expires=60)]
    for request in requests:
        credentials = ec2tokens_body(request, ec2_signature(request, time.time()))["credentials"]
        assert credentials["access"] == ACCESS
        assert Ec2Signer(SECRET).generate(dict(credentials)) == credentials["signature"], request
        assert Ec2Signer("other").generate(dict(credentials)) != credentials["signature"]


def test_ec2tokens_when_version_0_does_not_say_so_then_we_do() -> None:
    request = version_0()
    request = dataclasses.replace(request, query=request.query.replace("&SignatureVersion=0", ""))
    credentials = ec2tokens_body(request, ec2_signature(request, time.time()))["credentials"]
    assert Ec2Signer(SECRET).generate(dict(credentials)) == credentials["signature"]


@pytest.mark.parametrize(("method", "query", "fault"), [
    ("POST", "Action=TerminateInstances", SignatureFault.NOT_COVERED), ("GET", "a=1&a=2", SignatureFault.DUPLICATE)])
def test_ec2tokens_when_keystone_would_not_see_all_then_it_is_refused(method: str, query: str,
                                                                     fault: SignatureFault) -> None:
    request = by_botocore("SigV4Auth", received(method, f"{ENDPOINT}/services/Cloud?{query}", {}))
    found = ec2_signature(request, time.time())
    assert is_signed(found, SECRET)
    with pytest.raises(SignatureRefused) as refused:
        ec2tokens_body(request, found)
    assert refused.value.fault is fault


def test_ec2tokens_when_a_header_is_not_signed_then_keystone_does_not_get_it() -> None:
    request = by_botocore("SigV4QueryAuth", received("GET", f"{ENDPOINT}/?Action=A", {}), expires=60)
    request = dataclasses.replace(request, headers={**request.headers, "authorization": "Basic x", "cookie": "y"})
    body = ec2tokens_body(request, ec2_signature(request, time.time()))
    assert body["credentials"]["headers"] == {"Host": "127.0.0.1:8773"}
    request = by_botocore("SigV4Auth", received("GET", f"{ENDPOINT}/?Action=A", {}))
    request = dataclasses.replace(request, headers={**request.headers, "cookie": "y"})
    body = ec2tokens_body(request, ec2_signature(request, time.time()))
    assert set(body["credentials"]["headers"]) == {"Host", "X-Amz-Date", "Authorization"}
