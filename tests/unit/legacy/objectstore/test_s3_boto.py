"""boto 2, the client of S3's first years, over HTTP against the application."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto
import boto.exception
import pytest
from boto.s3.connection import OrdinaryCallingFormat, S3Connection

from nova import http_server
from nova.legacy.objectstore.app import S3Application
from nova.legacy.objectstore.content import Identity
from nova.legacy.objectstore.store import ObjectStore, StoreLimits
from nova.legacy.signatures.request import SignatureFault, SignatureRefused, SignedRequest, is_signed
from nova.legacy.signatures.versions import s3_signature
from tests.fakes.aws_signers import ACCESS, SECRET


def identify(request: SignedRequest) -> Identity:
    found = s3_signature(request, time.time())
    if found.version != "s3v2" or not is_signed(found, SECRET):
        raise SignatureRefused(SignatureFault.MISMATCH)
    return Identity("project", "demo", found)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    sock = http_server.bind("127.0.0.1", 0)
    application = S3Application(ObjectStore(tmp_path, StoreLimits(least_part=4)), identify)
    server = http_server.Server(sock, application)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield sock.getsockname()[1]
    server.stop()
    thread.join(30)


def connected(port: int, secret: str = SECRET) -> S3Connection:
    return boto.connect_s3(ACCESS, secret, is_secure=False, host="127.0.0.1", port=port,
                           calling_format=OrdinaryCallingFormat())


def test_boto_when_it_uploads_a_bundle_then_it_reads_it_back(port: int) -> None:
    s3 = connected(port)
    bucket = s3.create_bucket("bundles")
    key = bucket.new_key("dir/disk.manifest.xml+ü")
    key.set_contents_from_string("<manifest/>")
    assert key.etag == f'"{hashlib.md5(b"<manifest/>").hexdigest()}"'
    found = s3.get_bucket("bundles").get_key("dir/disk.manifest.xml+ü")
    assert found.get_contents_as_string() == b"<manifest/>" and bucket.get_key("absent") is None
    upload = bucket.initiate_multipart_upload("disk.part.0")
    for number, data in ((1, b"one1"), (2, b"two")):
        upload.upload_part_from_file(io.BytesIO(data), number)
    upload.complete_upload()
    assert [(one.name, one.size) for one in bucket.list()] == [("dir/disk.manifest.xml+ü", 11), ("disk.part.0", 7)]
    assert [one.name for one in bucket.list("", "/")] == ["disk.part.0", "dir/"]
    with pytest.raises(boto.exception.S3ResponseError, match="BucketNotEmpty"):
        bucket.delete()
    assert bucket.delete_keys([one.name for one in bucket.list()]).errors == []
    bucket.delete()
    assert s3.get_all_buckets() == []


def test_boto_when_its_secret_is_wrong_then_it_is_told(port: int) -> None:
    with pytest.raises(boto.exception.S3ResponseError, match="SignatureDoesNotMatch"):
        connected(port, "wrong").create_bucket("bundles")
