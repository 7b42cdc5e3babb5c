"""What requests without a right signature cost the identity service: at most a question each, at a bounded rate."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import pytest

from nova.clients.signed_tokens import SignatureNotTaken, SignedToken
from nova.legacy.signatures import failure_limits
from nova.legacy.signatures.failure_limits import OF_ALL, OF_ONE, SignatureFailures
from nova.legacy.signatures.request import EC2_ERRORS, S3_ERRORS, SignatureFault, SignatureRefused, SignedRequest
from nova.legacy.signatures.signers import KeystoneSigners
from tests.fakes import aws_signers
from tests.fakes.aws_signers import ENDPOINT, by_botocore, received
from tests.unit.legacy.signatures.test_signers import OF_A_PROJECT

GOOD = "good"


class Keystone:
    """Takes what the key ``good`` signed, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def of_s3(self, body: Mapping[str, Any]) -> SignedToken:
        self.asked.append(body["credentials"])
        if body["credentials"]["access"] != GOOD:
            raise SignatureNotTaken
        return SignedToken("token", OF_A_PROJECT["token"])

    of_ec2 = of_s3


def signed(access: str, target: str = "/bucket/key", kind: str = "S3SigV4Auth", peer: str = "192.0.2.1",
           **headers: str) -> SignedRequest:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(aws_signers, "ACCESS", access)
        found = by_botocore(kind, received("GET", ENDPOINT + target, headers))
    return dataclasses.replace(found, peer=peer)


def fault_of(signers: KeystoneSigners, request: SignedRequest, now: float | None = None) -> SignatureFault | None:
    try:
        signers.s3(request, now or time.time())
    except SignatureRefused as refused:
        return refused.fault
    return None


def without(request: SignedRequest, name: str) -> SignedRequest:
    return dataclasses.replace(request, headers={key: one for key, one in request.headers.items() if key != name})


SIGNED_AT = time.time()  # that of the requests below, which may wait long for their tests
BOTO_2 = {"user-agent": "Boto/2.49.0 Python/3.11"}
BOTO_3 = {"user-agent": "Boto3/1.44.8 md/Botocore#1.44.8"}
#: What is wrong -> (the request, the refusal, questions)
BAD: Mapping[str, tuple[SignedRequest, SignatureFault, int]] = {
    "unsigned": (received("GET", f"{ENDPOINT}/bucket/key", {}), SignatureFault.UNSIGNED, 0),
    "another scheme": (received("GET", f"{ENDPOINT}/b", {"authorization": "Basic eDp5"}), SignatureFault.UNKNOWN, 0),
    "malformed v2": (received("GET", f"{ENDPOINT}/b", {"authorization": "AWS x"}), SignatureFault.MALFORMED, 0),
    "malformed v4": (received("GET", f"{ENDPOINT}/b", {"authorization": "AWS4-HMAC-SHA256 x"}),
                     SignatureFault.MISSING, 0),
    "signed twice": (received("GET", f"{ENDPOINT}/b?Signature=x", {"authorization": "AWS4-HMAC-SHA256 x"}),
                     SignatureFault.DUPLICATE, 0),
    "no date": (without(signed("bad"), "x-amz-date"), SignatureFault.MISSING, 0),
    "v4": (signed("bad"), SignatureFault.MISMATCH, 1),
    "v4 with a path that clients write in several ways": (signed("bad", "/b/a+b~c%2Fd$/%C3%BC"),
                                                          SignatureFault.MISMATCH, 1),
    "v4 of boto 2": (signed("bad", "/b/a+b", **BOTO_2), SignatureFault.MISMATCH, 1),
    "v4 presigned": (signed("bad", "/b/a+b", "S3SigV4QueryAuth"), SignatureFault.MISMATCH, 1),
    "v2": (signed("bad", "/b/a+b~c%2Fd$", "HmacV1Auth"), SignatureFault.MISMATCH, 1),
    "v2 of a bucket": (signed("bad", "/bucket", "HmacV1Auth"), SignatureFault.MISMATCH, 1),
    "v2 of a bucket by boto3": (signed("bad", "/bucket", "HmacV1Auth", **BOTO_3), SignatureFault.MISMATCH, 1),
    "v2 with parts of the query encoded": (signed("bad", "/b?uploadId=a%2Fb&response-content-type=a%2Fb", "HmacV1Auth"),
                                           SignatureFault.MISMATCH, 1),
    "v2 presigned": (signed("bad", "/bucket?response-content-type=a%2Fb", "HmacV1QueryAuth"),
                     SignatureFault.MISMATCH, 1),
}


@pytest.mark.parametrize("case", BAD)
def test_s3_when_a_request_is_bad_then_keystone_is_asked_once_at_most(case: str) -> None:
    request, fault, questions = BAD[case]
    keystone = Keystone()
    assert fault_of(KeystoneSigners(keystone), request, SIGNED_AT) is fault  # type: ignore[arg-type]
    assert len(keystone.asked) == questions


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def flood(signers: KeystoneSigners, count: int, peers: int = 1, access: str = "") -> None:
    for number in range(count):
        assert fault_of(signers, signed(access or f"key{number}", peer=f"198.51.100.{number % peers}")) in (
            SignatureFault.MISMATCH, SignatureFault.TOO_MANY)


@pytest.mark.parametrize("access", ["", "one"], ids=["many keys", "one key"])
def test_flood_when_it_is_of_one_address_then_questions_have_a_rate(access: str) -> None:
    clock, keystone = Clock(), Keystone()
    signers = KeystoneSigners(keystone, wrong=SignatureFailures(clock))  # type: ignore[arg-type]
    flood(signers, 100, access=access)
    assert len(keystone.asked) == OF_ONE.burst
    clock.now += 5
    flood(signers, 100, access=access)
    assert len(keystone.asked) == OF_ONE.burst + 5 * OF_ONE.per_s
    clock.now += 1000
    flood(signers, 100, access=access)
    assert len(keystone.asked) == 2 * OF_ONE.burst + 5 * OF_ONE.per_s


def test_flood_when_it_is_of_many_addresses_then_all_together_have_a_rate() -> None:
    keystone = Keystone()
    signers = KeystoneSigners(keystone, wrong=SignatureFailures(Clock()))  # type: ignore[arg-type]
    flood(signers, 400, peers=200)
    assert len(keystone.asked) == OF_ALL.burst


def test_flood_when_it_goes_on_then_who_signed_well_before_is_asked_about_and_who_is_elsewhere_too() -> None:
    clock, keystone = Clock(), Keystone()
    signers = KeystoneSigners(keystone, wrong=SignatureFailures(clock))  # type: ignore[arg-type]
    known = signed(GOOD, peer="198.51.100.0")
    assert fault_of(signers, known) is None
    flood(signers, 50)
    assert fault_of(signers, known) is None
    assert fault_of(signers, signed(GOOD, peer="192.0.2.9")) is None
    clock.now += failure_limits.KNOWN_S + 1
    flood(signers, 50)
    assert fault_of(signers, known) is SignatureFault.TOO_MANY


def test_flood_when_it_names_the_key_of_somebody_then_that_one_is_not_kept_out_elsewhere() -> None:
    bounds = SignatureFailures(Clock())
    bounds.right("192.0.2.9", "key")
    for _ in range(100):
        bounds.wrong("198.51.100.0", "key")
    bounds.check("192.0.2.9", "key")
    with pytest.raises(SignatureRefused):
        bounds.check("198.51.100.0", "key")


def test_known_sender_when_it_signs_wrongly_from_then_on_then_it_has_a_bound_of_its_own() -> None:
    clock = Clock()
    bounds = SignatureFailures(clock)
    bounds.right("192.0.2.9", "key")
    for _ in range(int(OF_ONE.burst)):
        bounds.check("192.0.2.9", "key")
        bounds.wrong("192.0.2.9", "key")
    with pytest.raises(SignatureRefused) as refused:
        bounds.check("192.0.2.9", "key")
    assert refused.value.fault is SignatureFault.TOO_MANY
    bounds.check("192.0.2.9", "another")
    clock.now += 1 / OF_ONE.per_s
    bounds.check("192.0.2.9", "key")


def test_addresses_when_they_are_of_one_network_of_ipv6_then_they_count_as_one() -> None:
    bounds = SignatureFailures(Clock())
    for number in range(int(OF_ONE.burst)):
        bounds.wrong(f"2001:db8::{number:x}", "key")
    with pytest.raises(SignatureRefused):
        bounds.check("2001:db8::ffff", "other")
    bounds.check("2001:db8:0:1::1", "other")


def test_memory_when_very_many_send_then_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_limits, "MOST_SENDERS", 10)
    bounds = SignatureFailures(Clock())
    for number in range(100):
        bounds.wrong(f"192.0.2.{number}", "key")
        bounds.right(f"198.51.100.{number}", "key")
    assert len(bounds._senders._found) == len(bounds._known) == 10


def test_clients_when_too_many_are_wrong_then_they_are_told_to_wait() -> None:
    for fault in (SignatureFault.TOO_MANY, SignatureFault.REPEATED):
        assert (EC2_ERRORS[fault], S3_ERRORS[fault]) == ((503, "RequestLimitExceeded"), (503, "SlowDown"))
