"""nova-objectstore as a process of its own: killed, stopped, over TLS, by several workers; without Keystone."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.exceptions
import pytest
import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.fakes.console_papers import Authority
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import render
from tests.functional.daemons import Daemon
from tests.functional.s3_tools import MIB, S3Keys, S3User, done, from_elsewhere

pytestmark = pytest.mark.in_turn(7, 10)

LARGE = 3 * MIB


class Store:
    """A daemon with two workers. ``more``: options by section."""

    def __init__(self, folder: Path, cafile: str = "", **more: dict[str, Any]) -> None:
        self.port, self.health, self.folder = free_port(), free_port(), folder / "buckets"
        config = folder / "nova.conf"
        config.write_text(render({
            "DEFAULT": {"state_path": folder, "s3_listen": "127.0.0.1", "s3_listen_port": self.port, "s3_workers": 2,
                        **more.pop("DEFAULT", {})},
            "api": {"auth_strategy": "noauth2"}, "monitoring": {"port": self.health}, **more}))
        self.daemon = Daemon("objectstore", config, folder / "objectstore.log")
        self.cafile = cafile

    def user(self, name: str = "demo") -> S3User:
        return S3User(f"{'https' if self.cafile else 'http'}://127.0.0.1:{self.port}", S3Keys(name, "any"), self.cafile)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def start(**more: Any) -> Store:
        made.append(Store(tmp_path, **more))
        made[-1].daemon.start().ready(2)
        return made[-1]

    yield start
    for one in made:
        one.daemon.kill()


def data_of(number: int) -> bytes:
    """An object's content, which tells whose it is."""
    return hashlib.sha256(str(number).encode()).digest() * (LARGE // 32)


def test_store_when_it_is_killed_amid_puts_then_what_it_acknowledged_is_whole_and_nothing_is_half(
        make: Callable[..., Store]) -> None:
    store = make()
    store.user().boto3().create_bucket(Bucket="bucket")
    acknowledged: list[int] = []
    last: dict[str, int] = {}  # of those that each thread wrote at one key, over and over
    numbers, ending = itertools.count(), threading.Event()

    def put(own: str) -> None:
        s3 = store.user().boto3()
        while not ending.is_set():
            number = next(numbers)
            try:
                for key in (f"once/{number}", own):
                    s3.put_object(Bucket="bucket", Key=key, Body=data_of(number), Metadata={"n": str(number)})
                    if key == own:
                        last[own] = number
                    else:
                        acknowledged.append(number)
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                time.sleep(0.1)  # it is being killed

    threads = [threading.Thread(target=put, args=(f"again/{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            wanted = len(acknowledged) + 10
            wait_until("objects are acknowledged", lambda: len(acknowledged) >= wanted, 30)  # noqa: B023
            store.daemon.kill()
            store.daemon.start().ready(2)
    finally:
        ending.set()
        for thread in threads:
            thread.join(30)
    s3 = store.user().boto3()
    listed = {one["Key"]: one for one in s3.list_objects_v2(Bucket="bucket")["Contents"]}
    assert {f"once/{number}" for number in acknowledged} | set(last) <= set(listed), "acknowledged, and lost"
    for key, one in listed.items():
        found = s3.get_object(Bucket="bucket", Key=key)
        body, number = found["Body"].read(), int(found["Metadata"]["n"])
        assert body == data_of(number) and one["Size"] == LARGE, f"{key} is half"
        assert found["ETag"].strip('"') == hashlib.md5(body).hexdigest()
        assert number >= last.get(key, 0), "an older one came back"
    assert any(store.folder.joinpath("new").iterdir()), "no kill met a put"


def test_store_when_it_was_killed_amid_a_put_then_the_next_start_removes_what_was_left(
        make: Callable[..., Store]) -> None:
    store = make()
    store.user().boto3().create_bucket(Bucket="bucket")
    with socket.create_connection(("127.0.0.1", store.port)) as sock:
        url = store.user().boto3().generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "half"})
        sock.sendall(f"PUT {url.partition(str(store.port))[2]} HTTP/1.1\r\nHost: 127.0.0.1:{store.port}\r\n"
                     f"Content-Length: {LARGE}\r\n\r\n".encode() + b"x" * MIB)
        half = wait_until("it is written", lambda: list(store.folder.joinpath("new").glob("new.*")), 10)
        store.daemon.kill()
    for path in half:
        os.utime(path, (time.time() - 120,) * 2)
    store.daemon.start().ready(2)
    wait_until("it is swept", lambda: not any(store.folder.joinpath("new").iterdir()), 10)
    assert "Contents" not in store.user().boto3().list_objects_v2(Bucket="bucket")


def test_store_when_it_is_stopped_amid_a_put_then_the_put_is_finished(make: Callable[..., Store]) -> None:
    store = make()
    s3 = store.user().boto3()
    s3.create_bucket(Bucket="bucket")
    url = s3.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "late"})

    def pieces() -> Iterator[bytes]:
        yield b"a" * MIB
        assert store.daemon.process
        os.kill(store.daemon.process.pid, signal.SIGTERM)
        time.sleep(1)
        yield b"b" * MIB

    class Slow:
        def __init__(self) -> None:
            self._pieces = pieces()

        def __len__(self) -> int:
            return 2 * MIB

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

    assert requests.put(url, data=Slow(), timeout=20).status_code == 200
    assert store.daemon.wait_end() == 0
    store.daemon.start().ready(2)
    assert s3.get_object(Bucket="bucket", Key="late")["Body"].read() == b"a" * MIB + b"b" * MIB


def test_store_when_it_speaks_tls_then_todays_clients_upload_and_download(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    files = authority.issue("s3", server=True)
    store = Store(tmp_path, authority.ca, wsgi={"ssl_cert_file": files.cert, "ssl_key_file": files.key})
    store.daemon.start().ready(2)
    try:
        user, data = store.user(), os.urandom(20 * MIB)
        s3 = user.boto3()
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="one", Body=data)  # in chunks, with a trailer
        s3.upload_fileobj(io.BytesIO(data), "bucket", "many")
        for key in ("one", "many"):
            assert s3.get_object(Bucket="bucket", Key=key)["Body"].read() == data
        (tmp_path / "big").write_bytes(data)
        done(user.aws("cp", str(tmp_path / "big"), "s3://bucket/cli"))
        done(user.aws("cp", "s3://bucket/cli", str(tmp_path / "back")))
        assert (tmp_path / "back").read_bytes() == data
    finally:
        store.daemon.kill()


def test_store_when_everybody_is_believed_then_old_tools_need_no_key(make: Callable[..., Store]) -> None:
    store = make(DEFAULT={"s3_believe_all": True})
    url = f"http://127.0.0.1:{store.port}/bucket"
    assert requests.put(url, timeout=10).status_code == 200
    assert requests.put(f"{url}/key", data=b"x", timeout=10).status_code == 200
    s3 = store.user("whoever").boto3()
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == b"x"
    store.user().boto2().get_bucket("bucket").get_key("key").delete()
    assert requests.get(f"{url}/key", timeout=10).status_code == 404


def test_store_when_quotas_are_set_then_two_workers_do_not_pass_them(make: Callable[..., Store]) -> None:
    store = make(DEFAULT={"s3_project_objects": 5, "s3_longest_object": MIB})
    store.user().boto3().create_bucket(Bucket="bucket")
    refused: list[str] = []

    def put(number: int) -> None:
        try:
            store.user().boto3().put_object(Bucket="bucket", Key=str(number), Body=b"x")
        except botocore.exceptions.ClientError as error:
            refused.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=put, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert refused == ["QuotaExceeded"] * 7
    with pytest.raises(botocore.exceptions.ClientError, match="EntityTooLarge"):
        store.user("other").boto3().put_object(Bucket=_bucket(store), Key="long", Body=b"x" * (MIB + 1))


def test_store_when_a_signed_change_is_sent_again_then_no_worker_takes_it(make: Callable[..., Store]) -> None:
    store = make()
    user = store.user()
    user.boto3().create_bucket(Bucket="bucket")
    request = AWSRequest("PUT", f"{user.url}/bucket/key", {}, b"old")
    S3SigV4Auth(Credentials(*user.keys), "s3", "RegionOne").add_auth(request)
    old = requests.Request("PUT", request.url, dict(request.headers), data=b"old").prepare()
    with requests.Session() as client:
        assert client.send(old, timeout=10).status_code == 200
    answers = []
    for _ in range(12):  # each of a connection of its own, which any worker may take
        with from_elsewhere() as thief:
            answers.append(thief.send(old, timeout=10).status_code)
    assert answers == [503] * 12


def test_store_when_a_worker_is_killed_amid_puts_then_the_quota_holds_to_the_object(make: Callable[..., Store]) -> None:
    store = make(DEFAULT={"s3_project_objects": 40, "s3_longest_object": MIB})
    s3 = store.user().boto3()
    s3.create_bucket(Bucket="bucket")
    ending = threading.Event()

    def put(thread: int) -> None:
        own = store.user().boto3()
        for number in itertools.count():
            if ending.is_set():
                return
            try:
                own.put_object(Bucket="bucket", Key=f"{thread}/{number}", Body=b"x")
                own.delete_object(Bucket="bucket", Key=f"{thread}/{number - 8}")
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                time.sleep(0.05)  # it is being killed, or the quota is used up

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            time.sleep(0.7)
            store.daemon.kill()
            store.daemon.start().ready(2)
    finally:
        ending.set()
        for thread in threads:
            thread.join(30)
    there = len(s3.list_objects_v2(Bucket="bucket").get("Contents", []))
    for number in range(40 - there):
        s3.put_object(Bucket="bucket", Key=f"last/{number}", Body=b"x")
    with pytest.raises(botocore.exceptions.ClientError, match="QuotaExceeded"):
        s3.put_object(Bucket="bucket", Key="one more", Body=b"x")


def _bucket(store: Store) -> str:
    store.user("other").boto3().create_bucket(Bucket="others")
    return "others"


def test_store_when_its_health_is_asked_then_it_is_ready_until_its_folder_is_gone(make: Callable[..., Store]) -> None:
    store = make()

    def ready() -> int:
        return requests.get(f"http://127.0.0.1:{store.health}/health/ready", timeout=10).status_code

    assert ready() == 200
    store.user().boto3().create_bucket(Bucket="bucket")
    metrics = requests.get(f"http://127.0.0.1:{store.health}/metrics", timeout=10).text
    assert 'api="s3",route="bucket",status="200"' in metrics
    store.folder.joinpath("new").rmdir()
    wait_until("it is not ready", lambda: ready() == 503, 20, 1)


def test_store_when_it_would_believe_everybody_of_the_network_then_it_does_not_start(tmp_path: Path) -> None:
    store = Store(tmp_path, DEFAULT={"s3_listen": "0.0.0.0"})
    store.daemon.start()
    assert store.daemon.wait_end() == 1 and "noauth2 accepts every caller" in store.daemon.text()
