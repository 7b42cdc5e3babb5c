"""S3 of a whole cloud, judged by unmodified clients, with keys of ``openstack ec2 credentials create``'s calls."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import boto.exception
import botocore
import botocore.exceptions
import pytest
import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from keystoneclient.v3 import client

from nova.devel.running import RunningCloud
from tests.functional.s3_tools import MIB, S3Keys, S3User, done, from_elsewhere, refused

pytestmark = pytest.mark.in_turn(1, 10)

ODD = "a dir/ü +key%20?&#.txt"


@pytest.fixture(scope="module")
def cloud() -> Iterator[RunningCloud]:
    with RunningCloud(hosts=1) as running:
        yield running


def user_of(cloud: RunningCloud, user: str, project: str) -> S3User:
    session = cloud.session(user, project)
    made = client.Client(session=session).ec2.create(session.get_user_id(), session.get_project_id())
    return S3User(session.get_endpoint(service_type="s3"), S3Keys(made.access, made.secret))


@pytest.fixture(scope="module")
def demo(cloud: RunningCloud) -> S3User:
    return user_of(cloud, "demo", "demo")


@pytest.fixture(scope="module")
def other(cloud: RunningCloud) -> S3User:
    return user_of(cloud, "admin", "admin")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a large file and an odd name."""
    (tmp_path / "up" / "sub dir").mkdir(parents=True)
    (tmp_path / "up" / "big").write_bytes(os.urandom(20 * MIB))
    (tmp_path / "up" / "sub dir" / "ü +x.txt").write_text("hallo")
    return tmp_path


def is_same(one: Path, other: Path) -> bool:
    return hashlib.md5(one.read_bytes()).digest() == hashlib.md5(other.read_bytes()).digest()


def test_aws_when_it_goes_through_all_its_commands_then_each_does_what_it_says(demo: S3User, files: Path) -> None:
    big, odd = files / "up" / "big", files / "up" / "sub dir" / "ü +x.txt"
    done(demo.aws("mb", "s3://by-aws"))
    assert "by-aws" in done(demo.aws("ls"))
    done(demo.aws("cp", str(big), "s3://by-aws/k/big"))
    done(demo.aws("cp", "s3://by-aws/k/big", str(files / "big")))
    assert is_same(big, files / "big")
    done(demo.aws("cp", str(odd), f"s3://by-aws/{ODD}"))
    done(demo.aws("cp", f"s3://by-aws/{ODD}", str(files / "odd")))
    assert (files / "odd").read_text() == "hallo"
    done(demo.aws("sync", str(files / "up"), "s3://by-aws/all"))
    done(demo.aws("sync", "s3://by-aws/all", str(files / "down")))
    assert is_same(big, files / "down" / "big") and (files / "down" / "sub dir" / "ü +x.txt").read_text() == "hallo"
    assert done(demo.aws("sync", str(files / "up"), "s3://by-aws/all")) == ""
    assert "PRE k/" in done(demo.aws("ls", "s3://by-aws"))
    assert ODD in done(demo.aws("ls", "s3://by-aws", "--recursive"))
    url = done(demo.aws("presign", f"s3://by-aws/{ODD}")).strip()
    assert requests.get(url, timeout=10).text == "hallo"
    assert requests.get(url[:-1] + ("0" if url[-1] != "0" else "1"), timeout=10).status_code == 403
    done(demo.aws("rm", f"s3://by-aws/{ODD}"))
    assert "BucketNotEmpty" in refused(demo.aws("rb", "s3://by-aws"))
    done(demo.aws("rb", "--force", "s3://by-aws"))
    assert "by-aws" not in done(demo.aws("ls"))


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_boto3_when_it_signs_by_either_version_then_objects_come_back_whole(demo: S3User, version: str) -> None:
    s3, bucket, data = demo.boto3(signature_version=version), f"by-boto3-{version}", os.urandom(9 * MIB)
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=ODD, Body=b"hallo", ContentType="text/plain", ContentEncoding="identity",
                  Metadata={"mark": "x"})
    found = s3.get_object(Bucket=bucket, Key=ODD)
    assert found["Body"].read() == b"hallo" and found["Metadata"] == {"mark": "x"}
    assert (found["ContentType"], found["ContentEncoding"]) == ("text/plain", "identity")
    s3.upload_fileobj(io.BytesIO(data), bucket, "big")
    whole = io.BytesIO()
    s3.download_fileobj(bucket, "big", whole)
    assert whole.getvalue() == data
    assert s3.get_object(Bucket=bucket, Key="big", Range="bytes=1-3")["Body"].read() == data[1:4]
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": ODD})
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [ODD, "big", "copy"]
    url = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": ODD}, ExpiresIn=60)
    assert requests.get(url, timeout=10).text == "hallo"
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in (ODD, "big", "copy")]})
    s3.delete_bucket(Bucket=bucket)


@pytest.mark.parametrize("v4", [False, True], ids=["v2", "v4"])
def test_boto2_when_it_signs_by_either_version_then_objects_come_back_whole(
        demo: S3User, monkeypatch: pytest.MonkeyPatch, v4: bool) -> None:
    if v4:
        monkeypatch.setenv("S3_USE_SIGV4", "True")
    s3, data = demo.boto2(), os.urandom(6 * MIB)
    bucket = s3.create_bucket(f"by-boto2-{'v4' if v4 else 'v2'}")
    key = bucket.new_key("dir/ü +x.manifest.xml")
    key.set_contents_from_string("<manifest/>")
    found = s3.get_bucket(bucket.name).get_key("dir/ü +x.manifest.xml")
    assert found.get_contents_as_string() == b"<manifest/>" and bucket.get_key("absent") is None
    upload = bucket.initiate_multipart_upload("big")
    upload.upload_part_from_file(io.BytesIO(data), 1)
    upload.upload_part_from_file(io.BytesIO(b"end"), 2)
    upload.complete_upload()
    assert bucket.get_key("big").get_contents_as_string() == data + b"end"
    if not v4:
        assert requests.get(found.generate_url(60), timeout=10).text == "<manifest/>"
    for one in bucket.list():
        one.delete()
    bucket.delete()


@pytest.mark.parametrize("v2", [False, True], ids=["v4", "v2"])
def test_s3cmd_when_it_goes_through_all_its_commands_then_each_does_what_it_says(demo: S3User, files: Path,
                                                                                 v2: bool) -> None:
    bucket, big = f"s3://by-s3cmd-{'v2' if v2 else 'v4'}", files / "up" / "big"
    odd = "ü +x%20.txt"  # of those that it takes as they are: it reads ? and * as patterns

    def s3cmd(*words: str) -> str:
        return done(demo.s3cmd(*words, v2=v2))

    s3cmd("mb", bucket)
    s3cmd("put", str(files / "up" / "sub dir" / "ü +x.txt"), f"{bucket}/{odd}")
    s3cmd("put", "--multipart-chunk-size-mb=5", str(big), f"{bucket}/dir/big")
    s3cmd("get", f"{bucket}/dir/big", str(files / "big"))
    s3cmd("get", f"{bucket}/{odd}", str(files / "odd"))
    assert is_same(big, files / "big") and (files / "odd").read_text() == "hallo"
    assert odd in s3cmd("ls", bucket) and "DIR" in s3cmd("ls", bucket)
    assert "20971520" in s3cmd("info", f"{bucket}/dir/big")
    s3cmd("del", f"{bucket}/{odd}")
    assert "BucketNotEmpty" in refused(demo.s3cmd("rb", bucket, v2=v2))
    s3cmd("del", f"{bucket}/dir/big")
    s3cmd("rb", bucket)


def test_secret_when_it_is_wrong_then_each_client_is_refused(demo: S3User,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    done(demo.aws("mb", "s3://secrets"))
    wrong, code = demo.wrong(), "SignatureDoesNotMatch"
    assert code in refused(wrong.aws("ls", "s3://secrets"))
    assert code in refused(wrong.s3cmd("ls", "s3://secrets"))
    assert code in refused(wrong.s3cmd("ls", "s3://secrets", v2=True))
    for version in ("s3v4", "s3"):
        with pytest.raises(botocore.exceptions.ClientError, match=code):
            wrong.boto3(signature_version=version).list_objects_v2(Bucket="secrets")
    for environment in ({}, {"S3_USE_SIGV4": "True"}):
        with monkeypatch.context() as patched, pytest.raises(boto.exception.S3ResponseError) as caught:
            patched.setattr(os, "environ", {**os.environ, **environment})
            wrong.boto2().get_bucket("secrets").get_all_keys()
        assert caught.value.status == 403
    with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied"):
        demo.boto3(signature_version=botocore.UNSIGNED).list_objects_v2(Bucket="secrets")
    unknown = demo._replace(keys=S3Keys("nobody", demo.keys.secret))
    assert code in refused(unknown.aws("ls"))


def test_bucket_when_it_is_another_projects_then_nothing_of_it_is_seen_or_written(demo: S3User, other: S3User) -> None:
    own, foreign = demo.boto3(), other.boto3()
    own.create_bucket(Bucket="ours")
    own.put_object(Bucket="ours", Key="key", Body=b"x")
    assert "ours" not in [one["Name"] for one in foreign.list_buckets()["Buckets"]]
    for refuse in (lambda: foreign.list_objects_v2(Bucket="ours"),
                   lambda: foreign.get_object(Bucket="ours", Key="key"),
                   lambda: foreign.put_object(Bucket="ours", Key="key", Body=b"y"),
                   lambda: foreign.delete_object(Bucket="ours", Key="key"),
                   lambda: foreign.delete_bucket(Bucket="ours"),
                   lambda: foreign.create_multipart_upload(Bucket="ours", Key="key"),
                   lambda: foreign.delete_objects(Bucket="ours", Delete={"Objects": [{"Key": "key"}]})):
        with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied|403"):
            refuse()
    foreign.create_bucket(Bucket="theirs")
    with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied"):
        foreign.copy_object(Bucket="theirs", Key="copy", CopySource="ours/key")
    with pytest.raises(botocore.exceptions.ClientError, match="BucketAlreadyExists"):
        foreign.create_bucket(Bucket="ours")
    assert own.get_object(Bucket="ours", Key="key")["Body"].read() == b"x"


def test_user_when_a_reader_then_buckets_are_read_and_not_written(cloud: RunningCloud, demo: S3User) -> None:
    session = cloud.session("admin", "admin")
    keystone = client.Client(session=session)
    project = keystone.projects.find(name="demo")
    reader = keystone.users.create("s3-reader", domain="default", password="a-password")
    keystone.roles.grant(keystone.roles.find(name="reader"), user=reader, project=project)
    made = keystone.ec2.create(reader.id, project.id)
    demo.boto3().create_bucket(Bucket="readable")
    s3 = demo._replace(keys=S3Keys(made.access, made.secret)).boto3()
    assert "readable" in [one["Name"] for one in s3.list_buckets()["Buckets"]]
    with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied"):
        s3.put_object(Bucket="readable", Key="key", Body=b"x")
    keystone.roles.revoke(keystone.roles.find(name="reader"), user=reader, project=project)
    with pytest.raises(botocore.exceptions.ClientError, match="SignatureDoesNotMatch"):
        s3.list_buckets()


def signed_put(user: S3User, target: str, body: bytes) -> requests.PreparedRequest:
    """The bytes that botocore signs, to be sent as often as one likes."""
    request = AWSRequest("PUT", f"{user.url}{target}", {}, body)
    S3SigV4Auth(Credentials(*user.keys), "s3", "RegionOne").add_auth(request)
    return requests.Request("PUT", request.url, dict(request.headers), data=body).prepare()


def test_put_when_its_bytes_are_sent_again_from_elsewhere_then_the_old_content_does_not_come_back(demo: S3User) -> None:
    s3 = demo.boto3()
    s3.create_bucket(Bucket="repeated")
    old = signed_put(demo, "/repeated/key", b"old")
    with requests.Session() as client, from_elsewhere() as thief:
        assert client.send(old, timeout=10).status_code == 200
        s3.put_object(Bucket="repeated", Key="key", Body=b"new")
        answer = thief.send(old, timeout=10)
    assert answer.status_code == 503 and "<Code>SlowDown</Code>" in answer.text
    assert s3.get_object(Bucket="repeated", Key="key")["Body"].read() == b"new"


def test_clients_when_they_say_the_same_many_times_in_a_second_then_none_is_refused(demo: S3User) -> None:
    """Signatures have the resolution of a second: these are the same, and no client here tries again."""
    s3, old = demo.boto3(), demo.boto2()
    old.num_retries = 0
    s3.create_bucket(Bucket="same")
    bucket = old.get_bucket("same")
    for _ in range(5):
        s3.put_object(Bucket="same", Key="key", Body=b"x")
        s3.delete_object(Bucket="same", Key="key")
        bucket.new_key("key").set_contents_from_string("x")
        bucket.delete_key("key")


def test_chunks_when_they_are_signed_then_the_answer_says_that_keystone_cannot_check_them(demo: S3User) -> None:
    """As minio's clients and AWS's SDKs for other languages send them over plain HTTP."""
    class Streaming(S3SigV4Auth):
        def payload(self, request: AWSRequest) -> str:
            return "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"

    demo.boto3().create_bucket(Bucket="chunks")
    body = b"0;chunk-signature=" + b"0" * 64 + b"\r\n\r\n"
    request = AWSRequest("PUT", f"{demo.url}/chunks/key", {"x-amz-decoded-content-length": "0"}, body)
    Streaming(Credentials(*demo.keys), "s3", "RegionOne").add_auth(request)
    answer = requests.put(request.url, data=body, headers=dict(request.headers), timeout=10)
    assert answer.status_code == 501 and "Signatures of chunks" in answer.text
