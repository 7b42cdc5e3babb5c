"""nova-objectstore under clients that mean no good: texts that no XML has, and what costs it more than them."""

from __future__ import annotations

import os
import resource
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nova.legacy.objectstore.app import S3Application
from nova.legacy.objectstore.content import Content, Identity
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore, PutObject, StoreLimits
from tests.unit.legacy.objectstore.test_s3_app import Answer, Service, anybody


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "store", StoreLimits(least_part=1))


@pytest.fixture
def service(store: ObjectStore) -> Service:
    made = Service(S3Application(store, anybody))
    made.call("PUT", "/bucket")
    return made


@pytest.mark.parametrize("text", ["%00", "%1b", "%ff", "%ed%a0%80", "%ef%bf%bf"])
@pytest.mark.parametrize("name", ["prefix", "delimiter", "marker", "encoding-type=url&prefix",
                                  "list-type=2&start-after"])
def test_listing_when_a_parameter_is_no_text_then_it_is_refused_in_xml(service: Service, name: str, text: str) -> None:
    answer = service.call("GET", f"/bucket?{name}={text}")
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_listing_when_the_project_has_an_unprintable_name_then_it_is_xml_all_the_same(store: ObjectStore) -> None:
    service = Service(S3Application(store, lambda request: Identity("project", "a\x08b")))
    assert ElementTree.fromstring(service.call("GET", "/").body).findtext("{*}Owner/{*}DisplayName") == "a?b"


def test_refusal_when_it_names_what_is_no_text_then_it_is_xml_all_the_same(service: Service) -> None:
    assert "(?)" in ElementTree.fromstring(service.call("GET", "/?%80&%80").body).findtext("Message", "")


PARTS = 200


def test_upload_when_it_is_completed_of_many_parts_then_few_of_their_files_are_open_at_a_time(
        service: Service) -> None:
    upload = ElementTree.fromstring(service.call("POST", "/bucket/k?uploads").body).findtext("{*}UploadId")
    etags = [service.call("PUT", f"/bucket/k?uploadId={upload}&partNumber={number}", b"%d," % number).headers["ETag"]
             for number in range(1, PARTS + 1)]
    listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
                     for number, etag in enumerate(etags, 1))
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE), len(os.listdir("/proc/self/fd")) + PARTS // 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        answer = service.call("POST", f"/bucket/k?uploadId={upload}",
                              f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert answer.status == 200
    assert service.call("GET", "/bucket/k").body == b"".join(b"%d," % number for number in range(1, PARTS + 1))


def test_buckets_and_uploads_when_a_project_has_as_many_as_it_may_then_only_other_projects_make_more(tmp_path: Path
                                                                                                     ) -> None:
    limits = StoreLimits(buckets_per_owner=2, uploads_per_owner=2)
    service = Service(S3Application(ObjectStore(tmp_path / "store", limits), anybody))
    assert [service.call("PUT", f"/bucket{number}").status for number in range(2)] == [200, 200]
    assert service.call("PUT", "/bucket2").code == "TooManyBuckets"
    assert service.call("PUT", "/bucket1").code == "BucketAlreadyOwnedByYou"
    assert service.call("PUT", "/bucket2", x_owner="other").status == 200
    assert [service.call("POST", "/bucket1/k?uploads").status for _ in range(2)] == [200, 200]
    assert service.call("POST", "/bucket1/k?uploads").code == "QuotaExceeded"
    assert service.call("POST", "/bucket2/k?uploads", x_owner="other").status == 200


def test_writes_when_many_of_a_project_are_under_way_then_together_they_keep_its_quota(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path / "store", StoreLimits(bytes_per_owner=1000))
    store.create_bucket("project", "bucket")

    def second() -> Iterator[bytes]:
        yield b"1" * 600
        with pytest.raises(S3Error, match="QuotaExceeded"):
            store.put("project", "bucket", "other", PutObject([b"2" * 600], str))
        store.create_bucket("neighbour", "bucket2")
        store.put("neighbour", "bucket2", "other", PutObject([b"3" * 600], str))
    store.put("project", "bucket", "key", PutObject(second(), str))
    store.put("project", "bucket", "key", PutObject([b"4" * 800], str))
    assert b"".join(store.get("project", "bucket", "key").pieces()) == b"4" * 800


def test_requests_when_a_project_has_too_many_under_way_then_others_are_served(
        service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nova.legacy.objectstore.app.MOST_AT_ONCE", 1)
    found: list[Answer] = []
    read = Content.whole

    def slow(content: Content, most: int) -> bytes:
        monkeypatch.setattr(Content, "whole", read)
        found.append(service.call("GET", "/bucket"))
        found.append(service.call("GET", "/", x_owner="other"))
        return content.whole(most)
    monkeypatch.setattr(Content, "whole", slow)
    assert service.call("PUT", "/bucket2").status == 200
    assert [one.status for one in found] == [503, 200] and found[0].code == "SlowDown"
    assert service.call("GET", "/bucket").status == 200


QUERY = st.sampled_from(("prefix", "delimiter", "marker", "max-keys", "list-type", "continuation-token", "start-after",
                         "encoding-type", "uploads", "uploadId", "partNumber", "acl", "location", "delete",
                         "response-content-type", "response-expires", "%61cl"))
HEADERS = st.sampled_from(("range", "if-match", "if-none-match", "if-modified-since", "content-md5", "content-type",
                           "content-encoding", "x-amz-copy-source", "x-amz-meta-a", "x-amz-content-sha256",
                           "x-amz-decoded-content-length", "x-amz-trailer", "x-amz-checksum-sha256", "expires"))
VALUES = st.sampled_from(("", "%00", "%ff", "..", "k", "/bucket/k", "bucket/%00", "1", "0", "-1", "99999999999", "2",
                          "url", "bytes=-5", "bytes=9-1", "*", "Fri, 27 Nov 99999 00:00:00 GMT", "REPLACE", "%0d%0a",
                          "aws-chunked",
                          "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "AAAA", "\xff")
                         ) | st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20)
BODIES = st.sampled_from((b"<Delete><Object><Key>&#xfffe;</Key></Object></Delete>", b"<Delete><Object/></Delete>",
                          b"<?xml version='1.0' encoding='utf-7'?><Delete/>", b"5\r\nhello\r\n0\r\n\r\n", b"<a>" * 3000,
                          b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>"
                          b"</CompleteMultipartUpload>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><Delete/>")
                         ) | st.binary(max_size=40)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(("GET", "PUT", "POST", "HEAD", "DELETE")), st.sampled_from(("/", "/bucket", "/bucket/k", "//k")),
       st.dictionaries(QUERY, VALUES, max_size=3), st.dictionaries(HEADERS, VALUES, max_size=3), BODIES)
def test_request_when_it_is_of_any_kind_then_it_is_answered_in_xml_and_no_failure_of_ours(
        service: Service, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> None:
    service.call("PUT", "/bucket")
    service.call("PUT", "/bucket/k", b"hello world")
    text = "&".join(f"{name}={value}" for name, value in query.items())
    asked = urllib.parse.quote(text, safe="%&=-+;/", encoding="latin-1")
    answer = service.call(method, f"{path}?{asked}", body if method in ("PUT", "POST") else b"", **headers)
    assert answer.status < 500 or answer.status == 501  # what there is none of here
    if answer.body and answer.headers["Content-Type"] == "application/xml" and not answer.body.startswith(b"hello"):
        ElementTree.fromstring(answer.body)
