"""EC2's API as a WSGI application: paths, methods, sizes, signatures, two dialects, and what is logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
import webob
from oslo_config import cfg

from nova import conf, errors
from nova.legacy.ec2 import app
from nova.legacy.ec2.app import LONGEST_BODY
from nova.legacy.signatures.request import SignedRequest
from nova.legacy.signatures.signers import NoAuthSigners
from tests.fakes import aws_signers
from tests.fakes.ec2 import OLD, PATH, TODAY, Ec2Answer, Ec2Client

UNSIGNED = f"Action=DescribeRegions&Version={TODAY}".encode()
ASKED = f"Action=DescribeRegions&Version={TODAY}&AWSAccessKeyId=demo:demo".encode()


@pytest.fixture
def client() -> Ec2Client:
    return Ec2Client()


@pytest.mark.parametrize("path", ["/services/Cloud", "/services/Cloud/", "/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_when_it_comes_to_any_of_the_paths_then_it_is_answered(client: Ec2Client, path: str, method: str
                                                                       ) -> None:
    found = client.post(b"", f"{path}?{ASKED.decode()}", method) if method == "GET" else client.post(ASKED, path)
    assert found.status == 200 and found.headers["Content-Type"] == "text/xml"
    assert found.text("requestId") == found.headers["x-openstack-request-id"] == found.headers["x-amzn-requestid"]
    assert found.tree[0].tag == "requestId" and found.tree.tag == "DescribeRegionsResponse"


def test_parameters_when_they_are_in_both_places_then_they_are_one_request(client: Ec2Client) -> None:
    found = client.post(b"Filter.1.Value.1=none&AWSAccessKeyId=demo:demo",
                        f"{PATH}?Action=DescribeRegions&Version={TODAY}&Filter.1.Name=region-name")
    assert found.status == 200 and len(found.tree.find("regionInfo")) == 0
    twice = client.post(ASKED + b"&RegionName=a", f"{PATH}?RegionName=b")
    assert twice.refusal == (400, "InvalidParameterCombination")


@pytest.mark.parametrize(("path", "method", "wanted"), [
    ("/services", "POST", (404, "InvalidAction")), ("/services/Cloud/more", "POST", (404, "InvalidAction")),
    ("/services/Admin", "GET", (404, "InvalidAction")), (PATH, "PUT", (405, "InvalidAction")),
    (PATH, "DELETE", (405, "InvalidAction")), (PATH, "OPTIONS", (405, "InvalidAction"))])
def test_request_when_its_path_or_method_is_not_served_then_it_is_told_in_xml(
        client: Ec2Client, path: str, method: str, wanted: tuple[int, str]) -> None:
    assert client.post(ASKED, path, method).refusal == wanted


@pytest.mark.parametrize("length", [str(LONGEST_BODY + 1), "9" * 30, "-1", "1e3", "\N{SUPERSCRIPT TWO}".encode().decode(
    "latin-1")])
def test_body_when_its_length_is_too_much_or_none_then_it_is_not_read(client: Ec2Client, length: str) -> None:
    class Unread:
        def read(self, size: int = -1) -> bytes:
            raise AssertionError("it was read")
    found = webob.Request.blank(PATH, method="POST", environ={"CONTENT_LENGTH": length, "wsgi.input": Unread()})
    answer = found.get_response(client.application)
    assert answer.status_int == 413 and "<Code>RequestEntityTooLarge</Code>" in answer.text


def test_body_when_it_is_as_long_as_may_be_then_it_is_read(client: Ec2Client) -> None:
    body = ASKED + b"&RegionName.1="
    assert client.post(body + b"a" * (LONGEST_BODY - len(body))).status == 200


@pytest.mark.parametrize(("body", "wanted"), [
    ("Version=2016-11-15", "MissingParameter"), ("Action=&Version=2016-11-15", "MissingParameter"),
    ("Action=DescribeRegions", "MissingParameter"), ("Action=describeregions&Version=2016-11-15", "InvalidAction"),
    ("Action=<b>&Version=2016-11-15", "InvalidAction"), ("Action=<b>&Version=2014-02-01", "InvalidRequest"),
    ("Action=__class__&Version=2016-11-15", "InvalidAction")])
def test_action_when_it_is_missing_or_none_then_its_code_is_of_the_clients_time(client: Ec2Client, body: str,
                                                                               wanted: str) -> None:
    found = client.post(body.encode() + b"&AWSAccessKeyId=demo:demo")
    assert found.refusal == (400, wanted)


def test_action_when_nobody_signed_then_nothing_is_told_of_it(client: Ec2Client) -> None:
    for action in ("DescribeRegions", "NoSuchAction", ""):
        assert client.post(f"Action={action}&Version={TODAY}".encode()).refusal == (400, "AuthFailure")
    assert client.conductor.calls == []


@pytest.mark.parametrize(("version", "is_old"), [("2009-11-30", True), (OLD, True), ("2014-02-02", False),
                                                 ("2014-10-01", False), (TODAY, False), ("x", False)])
def test_version_when_it_is_said_then_it_chooses_the_dialect(client: Ec2Client, version: str, is_old: bool) -> None:
    client.conductor.add_server()
    found = client.ask("DescribeInstances", version=version)
    one = found.tree.find("reservationSet/item/instancesSet/item")
    assert (one.find("kernelId") is not None) is is_old and (one.find("groupSet") is None) is is_old
    assert f"/doc/{version}/".encode() in found.body


# -- real signatures


def signed(conductor_client: Ec2Client, now: float) -> Any:
    return app.build(conductor_client.site, NoAuthSigners(), clock=lambda: now)


def sent(application: Any, request: SignedRequest, url: str, body: bytes = b"") -> Ec2Answer:
    made = webob.Request.blank(url, method=request.method, headers=dict(request.headers))
    made.body = body
    found = made.get_response(application)
    return Ec2Answer(found.status_int, found.body, dict(found.headers))


def by_v4(client: Ec2Client, now: float, body: bytes = UNSIGNED) -> Ec2Answer:
    """Signed now, and received at ``now``."""
    request = SignedRequest("POST", PATH, "", {"host": "127.0.0.1:8773",
                                               "content-type": "application/x-www-form-urlencoded"})
    made = aws_signers.by_botocore("SigV4Auth", request, body)
    return sent(signed(client, now), made, f"http://127.0.0.1:8773{PATH}", body)


def test_signature_when_it_is_fresh_then_its_access_key_says_who_asks(client: Ec2Client) -> None:
    assert by_v4(client, time.time()).status == 200
    assert by_v4(client, time.time(), ASKED).refusal == (400, "InvalidParameterCombination")  # signed in two ways


@pytest.mark.parametrize("minutes", [-20, 20])
def test_signature_when_it_is_of_another_time_then_it_has_expired(client: Ec2Client, minutes: int) -> None:
    assert by_v4(client, time.time() + 60 * minutes).refusal == (403, "RequestExpired")


def test_keystone_when_it_is_away_then_no_more_is_told(client: Ec2Client) -> None:
    class Away:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def ec2(self, request: SignedRequest, now: float) -> Mapping[str, Any]:
            raise self.error
    for error, status in ((errors.api.SignaturesAway(), 503), (errors.api.IdentityRefuses(reason="secret"), 500)):
        application = app.build(client.site, Away(error))  # type: ignore[arg-type]
        answer = webob.Request.blank(PATH, method="POST").get_response(application)
        assert answer.status_int == error.status and "<Code>AuthFailure</Code>" in answer.text, status
        assert "secret" not in answer.text and "Failure communicating" in answer.text


def test_client_when_it_goes_while_it_sends_then_nothing_is_answered(client: Ec2Client) -> None:
    class Gone:
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError
    request = webob.Request.blank(PATH, method="POST", environ={"CONTENT_LENGTH": "5", "wsgi.input": Gone()})
    with pytest.raises(ConnectionResetError):
        request.get_response(client.application)


# -- what is logged


def test_log_when_a_signature_is_in_the_query_then_it_is_not_in_it(client: Ec2Client,
                                                                      caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        url = f"{PATH}?{urlencode({'Action': 'DescribeRegions', 'Version': TODAY, 'Signature': 'c2VjcmV0'})}"
        client.post(b"AWSAccessKeyId=demo:demo&UserData=c2VjcmV0", url)
        client.ask("CreateKeyPair", {"KeyName": "mine"})
    lines = [record.getMessage() for record in caplog.records]
    access = [record.getMessage() for record in caplog.records if record.name == app.ACCESS_LOG]
    assert len(access) == 2 and f'"POST {PATH}?Action=DescribeRegions" status: 400' in access[0]
    assert f"microversion: {TODAY}" in access[0]
    assert not any(secret in line for line in lines for secret in ("c2VjcmV0", "PRIVATE KEY", "Signature="))


def test_version_when_it_has_lines_then_the_log_has_one(client: Ec2Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, app.ACCESS_LOG):
        found = client.ask("DescribeRegions", version="1\n127.0.0.1 \udcff\x1b")
    assert found.status == 200
    assert "microversion: 1\\n127.0.0.1 \\udcff\\x1b time:" in caplog.records[-1].getMessage()


@pytest.mark.parametrize(("action", "shown"), [
    ("DescribeRegions", "DescribeRegions"), ("Guess\n2026 INFO", r"Guess\n2026 INFO"),
    ("A" * 5000, "A" * app.LONGEST_ACTION)])
def test_log_when_a_request_is_signed_then_it_has_the_action_on_one_line(
        client: Ec2Client, caplog: pytest.LogCaptureFixture, action: str, shown: str) -> None:
    with caplog.at_level(logging.INFO, app.ACCESS_LOG):
        client.ask(action)
    assert f'"POST {PATH}?Action={shown}" status: ' in caplog.records[-1].getMessage()


def test_version_when_it_is_long_then_the_log_has_its_beginning(client: Ec2Client, caplog: pytest.LogCaptureFixture
                                                                ) -> None:
    with caplog.at_level(logging.INFO, app.ACCESS_LOG):
        client.ask("DescribeRegions", version="9" * 5000)
    assert len(caplog.records[-1].getMessage()) < 300


def test_regions_when_they_are_configured_then_wrong_rows_are_refused() -> None:
    assert app._regions(["one=a.example", "two = b.example"]) == {"one": "a.example", "two": "b.example"}
    for row in ("one", "=a", "one=", " = "):
        with pytest.raises(errors.config.RegionList):
            app._regions([row])


def test_regions_when_the_host_is_an_address_of_ipv6_then_it_is_in_brackets() -> None:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    made.set_override("ec2_host", "fd00::1")
    assert app.options_from_conf(made).endpoint == "http://[fd00::1]:8773/services/Cloud"


def test_regions_when_there_are_several_then_each_has_its_address() -> None:
    found = Ec2Client(regions={"one": "a.example", "two": "b.example"}, port=8773).ask("DescribeRegions")
    assert found.texts("regionInfo/item/regionEndpoint") == [
        "http://a.example:8773/services/Cloud", "http://b.example:8773/services/Cloud"]
    assert Ec2Client(regions={"one": "a.example"}).ask(
        "DescribeAvailabilityZones", user="admin:admin").status == 200
