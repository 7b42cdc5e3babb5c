"""Signatures of calls that change something: each once, in both APIs, however many workers there are."""

from __future__ import annotations

import hashlib
import io
import os
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from nova.cmd import api as api_daemon
from nova.legacy.ec2 import app
from nova.legacy.ec2.actions import ACTIONS, is_reading
from nova.legacy.objectstore.app import S3Application
from nova.legacy.objectstore.content import Identity
from nova.legacy.objectstore.store import ObjectStore
from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused, SignedRequest
from nova.legacy.signatures.signers import NoAuthSigners
from nova.legacy.signatures.taken import REPEAT_S, TakenSignatures
from nova.legacy.signatures.versions import s3_signature
from nova.model.server.servers import CreatedServers, NewServer
from tests.fakes import aws_signers
from tests.unit.legacy.ec2.test_hostile_ec2 import TODAY, Cloud

HERE, ELSEWHERE = "192.0.2.1", "198.51.100.2"
NOW = 1_900_000_000.0


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def signature(value: str = "value", access: str = "key", until: float = NOW + 900) -> Signature:
    return Signature("4", access, value, (), until=until)


def is_taken(run: Callable[[], object]) -> bool:
    try:
        run()
    except SignatureRefused as refused:
        assert refused.fault is SignatureFault.REPEATED
        return False
    return True


@pytest.mark.parametrize(("peer", "after", "is_repeatable", "wanted"), [
    (HERE, 0, True, True), (HERE, REPEAT_S, True, True), (HERE, REPEAT_S + 1, True, False), (HERE, 899, True, False),
    (ELSEWHERE, 0, True, False), (HERE, 0, False, False), (ELSEWHERE, 899, False, False)])
def test_signature_when_it_comes_again_then_for_a_moment_only_and_from_its_first_sender(
        peer: str, after: float, is_repeatable: bool, wanted: bool) -> None:
    clock = Clock()
    taken = TakenSignatures(clock)
    taken.take(signature(), HERE)
    clock.now += after
    assert is_taken(lambda: taken.take(signature(), peer, is_repeatable)) is wanted
    assert is_taken(lambda: taken.take(signature("other"), peer, is_repeatable))
    assert is_taken(lambda: taken.take(signature(access="other"), peer, is_repeatable))


def test_signature_when_it_is_repeated_then_its_moment_does_not_begin_anew() -> None:
    clock = Clock()
    taken = TakenSignatures(clock)
    found = []
    for _ in range(REPEAT_S + 3):
        found.append(is_taken(lambda: taken.take(signature(), HERE)))
        clock.now += 1
    assert found == [True] * (REPEAT_S + 1) + [False] * 2


def test_signature_when_another_worker_took_it_then_it_is_refused_here() -> None:
    taken = TakenSignatures(Clock())
    child = os.fork()
    if not child:
        taken.take(signature(), HERE)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not is_taken(lambda: taken.take(signature(), ELSEWHERE))


def test_workers_when_they_serve_ec2_then_they_share_what_was_taken_and_others_have_none() -> None:
    assert isinstance(api_daemon.taken_signatures([api_daemon.OSAPI, api_daemon.EC2]), TakenSignatures)
    assert api_daemon.taken_signatures([api_daemon.OSAPI, api_daemon.METADATA]) is None


# -- EC2


class Ec2Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def code(self) -> str:
        return ElementTree.fromstring(self.body).findtext("Errors/Error/Code") or ""


class RepeatingCloud(Cloud):
    """Remembers signatures, and is sent the same bytes by whomever."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(time.time())
        self.application = app.build(self.site, NoAuthSigners(), clock=self.clock, taken=TakenSignatures(self.clock))
        image = self.conductor.add_image(status="active", owner="demo")
        self.conductor.add_flavor("1", name="m1.small")
        self.conductor.given(create_servers=self.create)
        self.give("ami", (image.id,))

    def create(self, order: NewServer) -> CreatedServers:
        return CreatedServers(reservation_id="r-1", uuids=(self.conductor.add_server(project_id="demo").uuid,))

    def body(self, action: str, **given: str) -> bytes:
        return urllib.parse.urlencode({
            "Action": action, "Version": TODAY, "AWSAccessKeyId": "demo:demo", "Signature": action,
            "SignatureVersion": "2", "SignatureMethod": "HmacSHA256",
            "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **given}).encode()

    def said(self, body: bytes, peer: str = HERE) -> Ec2Answer:
        found: list[int] = []
        environ = {"REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": "/", "QUERY_STRING": "", "RAW_URI": "/",
                   "HTTP_HOST": "127.0.0.1:8773", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8773",
                   "REMOTE_ADDR": peer, "CONTENT_TYPE": "application/x-www-form-urlencoded",
                   "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        parts = self.application(environ, lambda status, headers, exc_info=None: found.append(int(status[:3])))
        return Ec2Answer(found[0], b"".join(parts))


@pytest.fixture
def cloud() -> RepeatingCloud:
    return RepeatingCloud()


def test_run_instances_when_the_same_bytes_come_three_times_then_it_is_done_once(cloud: RepeatingCloud) -> None:
    body = cloud.body("RunInstances", ImageId="ami-1", MinCount="1", MaxCount="1")
    first, *others = [cloud.said(body, peer) for peer in (HERE, HERE, ELSEWHERE)]
    assert first.status == 200
    assert [(one.status, one.code) for one in others] == [(503, "RequestLimitExceeded")] * 2
    assert len(cloud.conductor.asked("create_servers")) == 1


def test_run_instances_when_it_has_a_token_then_that_tells_a_retry_for_a_moment(cloud: RepeatingCloud) -> None:
    body = cloud.body("RunInstances", ImageId="ami-1", MinCount="1", MaxCount="1", ClientToken="a")
    assert [cloud.said(body).code == "RequestLimitExceeded" for _ in range(2)] == [False, False]
    assert cloud.said(body, ELSEWHERE).code == "RequestLimitExceeded"
    cloud.clock.now += REPEAT_S + 1
    assert cloud.said(body).code == "RequestLimitExceeded"


@pytest.mark.parametrize("action", sorted(one for one in ACTIONS if not is_reading(one)))
def test_change_when_another_address_repeats_it_then_it_is_refused_before_anything_is_asked(
        cloud: RepeatingCloud, action: str) -> None:
    body = cloud.body(action)
    assert cloud.said(body).code != "RequestLimitExceeded"
    cloud.conductor.forget()
    answer = cloud.said(body, ELSEWHERE)
    assert (answer.status, answer.code) == (503, "RequestLimitExceeded") and cloud.conductor.calls == []


@pytest.mark.parametrize("action", sorted(one for one in ACTIONS if is_reading(one)))
def test_look_when_it_is_repeated_by_anybody_then_it_is_answered_as_the_first(cloud: RepeatingCloud, action: str
                                                                             ) -> None:
    body = cloud.body(action)
    first = cloud.said(body)
    cloud.clock.now += 100
    assert cloud.said(body, ELSEWHERE).status == first.status != 503


def test_dry_run_when_it_is_repeated_then_it_is_answered_and_the_run_is_not_taken_by_it(cloud: RepeatingCloud) -> None:
    dry = cloud.body("TerminateInstances", DryRun="true", **{"InstanceId.1": "i-1"})
    assert [cloud.said(dry, peer).code for peer in (HERE, ELSEWHERE)] == [cloud.said(dry).code] * 2


def test_change_when_it_is_not_signed_then_nothing_is_remembered_of_it(cloud: RepeatingCloud) -> None:
    strange = cloud.body("DeleteKeyPair", KeyName="a").replace(b"AWSAccessKeyId=demo%3Ademo", b"AWSAccessKeyId=%3Ademo")
    assert [cloud.said(strange, peer).status for peer in (HERE, ELSEWHERE)] == [401, 401]


# -- S3


class Store:
    def __init__(self, folder: Path) -> None:
        self.clock = Clock(time.time())
        self.store = ObjectStore(folder)
        self.store.create_bucket("project", "bucket")
        self.application = S3Application(self.store, self.identify, TakenSignatures(self.clock))

    def identify(self, request: SignedRequest) -> Identity:
        return Identity("project", "demo", s3_signature(request, time.time()))

    def signed(self, kind: str, method: str, target: str, body: bytes = b"") -> SignedRequest:
        request = aws_signers.received(method, f"{aws_signers.ENDPOINT}{target}", {"content-length": str(len(body))})
        return aws_signers.by_botocore(kind, request, body)

    def send(self, request: SignedRequest, body: bytes = b"", peer: str = HERE) -> tuple[int, str]:
        """(status, code of the error)"""
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method, "SCRIPT_NAME": "", "PATH_INFO": request.path,
            "QUERY_STRING": request.query, "RAW_URI": request.path, "REMOTE_ADDR": peer,
            "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()
               if name != "content-length"}}
        found: list[str] = []
        content = b"".join(self.application(environ, lambda status, headers, exc_info=None: found.append(status)))
        is_error = content.startswith(b"<?xml") and b"<Error>" in content
        return int(found[0][:3]), ElementTree.fromstring(content).findtext("Code", "") if is_error else ""

    def content(self) -> bytes:
        return b"".join(self.store.get("project", "bucket", "key").pieces())


@pytest.fixture
def s3(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.mark.parametrize("kind", ["S3SigV4Auth", "HmacV1Auth"])
def test_put_when_it_is_repeated_later_or_elsewhere_then_the_old_content_does_not_come_back(s3: Store, kind: str
                                                                                           ) -> None:
    old, new = s3.signed(kind, "PUT", "/bucket/key", b"old"), s3.signed(kind, "PUT", "/bucket/key", b"newer")
    assert [s3.send(old, b"old")[0], s3.send(old, b"old")[0]] == [200, 200]
    if old.headers["authorization"] == new.headers["authorization"]:  # version 2 signs neither content nor length
        s3.store.put("project", "bucket", "key", s3_object(b"newer"))
    else:
        assert s3.send(new, b"newer")[0] == 200
    assert s3.send(old, b"old", ELSEWHERE) == (503, "SlowDown")
    s3.clock.now += REPEAT_S + 1
    assert s3.send(old, b"old") == (503, "SlowDown")
    assert s3.content() == b"newer"


def s3_object(data: bytes) -> Any:
    from nova.legacy.objectstore.store import PutObject

    return PutObject([data], lambda: hashlib.md5(data).hexdigest())


@pytest.mark.parametrize(("method", "target"), [("DELETE", "/bucket/key"), ("DELETE", "/bucket"), ("PUT", "/other"),
                                                ("POST", "/bucket/key?uploads"), ("POST", "/bucket?delete")])
def test_change_when_it_is_repeated_elsewhere_then_it_is_refused(s3: Store, method: str, target: str) -> None:
    request = s3.signed("S3SigV4Auth", method, target)
    assert s3.send(request)[0] < 500
    assert s3.send(request, peer=ELSEWHERE) == (503, "SlowDown")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_read_when_it_is_repeated_then_it_is_answered(s3: Store, method: str) -> None:
    s3.store.put("project", "bucket", "key", s3_object(b"data"))
    request = s3.signed("S3SigV4Auth", method, "/bucket/key")
    for peer in (HERE, ELSEWHERE):
        assert s3.send(request, peer=peer)[0] == 200
        s3.clock.now += 100


@pytest.mark.parametrize("kind", ["S3SigV4QueryAuth", "HmacV1QueryAuth"])
def test_put_when_it_is_of_a_presigned_url_then_it_is_taken_until_its_end(s3: Store, kind: str) -> None:
    request = s3.signed(kind, "PUT", "/bucket/key")
    for peer in (HERE, ELSEWHERE):
        assert s3.send(request, b"data", peer)[0] == 200
        s3.clock.now += 100
