"""EC2's API under clients that mean no good: what is signed and what is done, parameters of any form, policies."""

from __future__ import annotations

import io
import time
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

import pytest
from defusedxml import ElementTree

from nova.ec2 import app
from nova.ec2.ids import IdCache
from nova.ec2.request import Ec2Site
from nova.model.base import Json
from nova.policies import Policy
from nova.signatures.request import is_signed, signed
from nova.signatures.versions import ec2_signature
from nova.web.signers import NoAuthSigners
from tests.fakes import api, aws_signers
from tests.fakes.conductor import FakeConductor

TODAY, OLD = "2016-11-15", "2010-08-31"


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def code(self) -> str:
        """Of an error; empty where there is none."""
        return ElementTree.fromstring(self.body).findtext("Errors/Error/Code") or ""


class SecretSigners:
    """One key's secret is known, and everybody with it is a member."""

    def ec2(self, request: Json, now: float) -> dict[str, Json]:
        found = ec2_signature(request, now)
        assert is_signed(found, aws_signers.SECRET)
        return {"user_id": "demo", "project_id": "demo", "roles": ("member",), "token": "t"}


class Cloud:
    def __init__(self, policy: Policy | None = None, who: Json = None, objects: Json = None) -> None:
        self.conductor = FakeConductor()
        client = self.conductor.client()
        self.site = Ec2Site(client, policy or api.usual()[1], IdCache(client), objects=objects)
        self.application = app.build(self.site, who or NoAuthSigners())

    def send(self, body: bytes) -> Answer:
        found: list[int] = []
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": "/services/Cloud", "QUERY_STRING": "",
            "RAW_URI": "/services/Cloud", "HTTP_HOST": "127.0.0.1:8773", "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "8773", "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        parts = self.application(environ, lambda status, headers, exc_info=None: found.append(int(status[:3])))
        return Answer(found[0], b"".join(parts))

    def ask(self, action: str, given: Mapping[str, str] | None = None, version: str = TODAY, who: str = "demo:demo"
            ) -> Answer:
        return self.send(urllib.parse.urlencode({
            "Action": action, "Version": version, "AWSAccessKeyId": who, "Signature": "x", "SignatureVersion": "2",
            "SignatureMethod": "HmacSHA256", "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **(given or {})}).encode("utf-8", "surrogateescape"))


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


# -- what is signed is what is done


def test_action_when_it_is_said_again_in_other_capitals_then_nothing_is_done() -> None:
    cloud = Cloud(who=SecretSigners())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pairs = {"Action": "DescribeKeyPairs", "Version": TODAY, "AWSAccessKeyId": aws_signers.ACCESS,
             "SignatureVersion": "0", "Timestamp": now, "Signature": ""}
    request = aws_signers.received("POST", f"{aws_signers.ENDPOINT}/?{urllib.parse.urlencode({**pairs, 'Signature': 'x'})}",
                                   {})
    found = ec2_signature(request, time.time())
    pairs["Signature"] = signed(found, aws_signers.SECRET, found.strings_to_sign[0])
    body = urllib.parse.urlencode(pairs).encode()
    assert cloud.send(body).status == 200
    assert cloud.send(b"action=DeleteKeyPair&KeyName=mine&" + body).code == "InvalidParameterCombination"
    assert cloud.conductor.asked("delete_keypair") == []
