"""Buckets, objects and uploads as files: names, quotas, kills at any instant, two writers at once."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.objectstore import files
from nova.legacy.objectstore.listing import ListingAsked, page_of
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore, PutObject, StoreLimits
from nova.legacy.objectstore.uploads import GivenPart, MultipartUploads

OWNER = "project"


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    made = ObjectStore(tmp_path / "store")
    made.create_bucket(OWNER, "bucket")
    return made


def of(*pieces: bytes, **more: object) -> PutObject:
    return PutObject(iter(pieces), lambda: hashlib.md5(b"".join(pieces)).hexdigest(), **more)


def read(store: ObjectStore, key: str, bucket: str = "bucket") -> bytes:
    return b"".join(store.get(OWNER, bucket, key).pieces())


def code_of(run: Callable[[], object]) -> str:
    with pytest.raises(S3Error) as refused:
        run()
    return refused.value.code


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != ".lock")


def test_object_when_it_is_put_then_it_is_read_back_whole_and_in_parts(store: ObjectStore) -> None:
    record = store.put(OWNER, "bucket", "a/b c/ü", of(b"one", b"two", headers={"content-type": "text/plain"}))
    found = store.get(OWNER, "bucket", "a/b c/ü")
    assert found.record == record and found.record.headers == {"content-type": "text/plain"}
    assert (record.size, record.etag) == (6, hashlib.md5(b"onetwo").hexdigest())
    assert b"".join(found.pieces(2, 3)) == b"etw"
    assert everything(store.new) == []


def test_object_when_it_is_replaced_or_deleted_then_its_readers_have_the_old_one(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "k", of(b"old"))
    first = store.get(OWNER, "bucket", "k")
    store.put(OWNER, "bucket", "k", of(b"new, and longer"))
    second = store.get(OWNER, "bucket", "k")
    store.delete(OWNER, "bucket", "k")
    assert (b"".join(first.pieces()), b"".join(second.pieces())) == (b"old", b"new, and longer")
    assert code_of(lambda: store.get(OWNER, "bucket", "k")) == "NoSuchKey"
    store.delete(OWNER, "bucket", "k")


@pytest.mark.parametrize(("key", "code"), [
    ("", "InvalidArgument"), (".", "InvalidArgument"), ("..", "InvalidArgument"), ("a/../b", "InvalidArgument"),
    ("../../bucket", "InvalidArgument"), ("/..", "InvalidArgument"), ("a\0b", "InvalidArgument"),
    ("a\x1bb", "InvalidArgument"), ("\udcff", "InvalidArgument"), ("a" * 1025, "KeyTooLongError"),
    ("ü" * 513, "KeyTooLongError")])
def test_key_when_it_is_hostile_then_nothing_is_written(store: ObjectStore, key: str, code: str) -> None:
    before = everything(store.buckets.parent)
    for run in (lambda: store.put(OWNER, "bucket", key, of(b"x")), lambda: store.get(OWNER, "bucket", key),
                lambda: store.delete(OWNER, "bucket", key),
                lambda: MultipartUploads(store).start(OWNER, "bucket", key, {})):
        assert code_of(run) == code
    assert everything(store.buckets.parent) == before


@pytest.mark.parametrize("key", ["/etc/passwd", "//", "a//b", "...", "a" * 1024, "a\\..\\b", "-rf", "bucket", "%2e%2e"])
def test_key_when_it_is_odd_then_its_file_is_in_its_bucket(store: ObjectStore, key: str) -> None:
    store.put(OWNER, "bucket", key, of(b"x"))
    made, = (store.buckets / "bucket" / "objects").iterdir()
    assert read(store, key) == b"x" and len(made.name) == 64
    assert [one.key for one in store.list_objects(OWNER, "bucket")[1]] == [key]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "ab", "a" * 64, ".abc", "abc.", "a..b", "a\0b", "äbc",
                                  "abc\n", "-abc", "a b"])
def test_bucket_when_its_name_is_hostile_then_it_is_refused(store: ObjectStore, name: str) -> None:
    assert code_of(lambda: store.create_bucket(OWNER, name)) == "InvalidBucketName"
    assert code_of(lambda: store.put(OWNER, name, "k", of(b"x"))) == "InvalidBucketName"
    assert everything(store.new) == [] and [one.name for one in store.list_buckets(OWNER)] == ["bucket"]


def test_bucket_when_it_is_anothers_then_all_is_denied(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "k", of(b"x"))
    for run in (lambda: store.get("other", "bucket", "k"), lambda: store.put("other", "bucket", "k", of(b"y")),
                lambda: store.delete("other", "bucket", "k"), lambda: store.delete_bucket("other", "bucket"),
                lambda: store.list_objects("other", "bucket"), lambda: store.bucket("other", "bucket"),
                lambda: MultipartUploads(store).start("other", "bucket", "k", {})):
        assert code_of(run) == "AccessDenied"
    assert store.list_buckets("other") == [] and read(store, "k") == b"x"
    assert code_of(lambda: store.create_bucket("other", "bucket")) == "BucketAlreadyExists"
    assert code_of(lambda: store.create_bucket(OWNER, "bucket")) == "BucketAlreadyOwnedByYou"
    assert everything(store.new) == []


def test_bucket_when_it_has_an_object_then_it_is_not_deleted(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "k", of(b"x"))
    assert code_of(lambda: store.delete_bucket(OWNER, "bucket")) == "BucketNotEmpty"
    store.delete(OWNER, "bucket", "k")
    store.delete_bucket(OWNER, "bucket")
    assert code_of(lambda: store.delete_bucket(OWNER, "bucket")) == "NoSuchBucket"
    assert code_of(lambda: store.put(OWNER, "bucket", "k", of(b"x"))) == "NoSuchBucket"
    assert everything(store.buckets) == everything(store.new) == []


def broken() -> Iterator[bytes]:
    yield b"part"
    raise S3Error("IncompleteBody")


def test_put_when_the_body_breaks_off_then_the_old_object_stays_and_nothing_else(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "k", of(b"old"))
    before = everything(store.buckets.parent)
    assert code_of(lambda: store.put(OWNER, "bucket", "k", PutObject(broken(), lambda: ""))) == "IncompleteBody"
    assert read(store, "k") == b"old" and everything(store.buckets.parent) == before


def test_put_when_the_bucket_goes_meanwhile_then_it_is_refused(store: ObjectStore) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x"
        store.delete_bucket(OWNER, "bucket")

    assert code_of(lambda: store.put(OWNER, "bucket", "k", PutObject(pieces(), lambda: ""))) == "NoSuchBucket"
    assert everything(store.buckets) == everything(store.new) == []


def test_put_when_it_must_be_new_then_another_of_its_name_is_a_conflict(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "k", of(b"x", must_be_new=True))
    assert code_of(lambda: store.put(OWNER, "bucket", "k", of(b"y", must_be_new=True))) == "PreconditionFailed"
    assert read(store, "k") == b"x"


KILLED = """
import os, signal, sys
from pathlib import Path
from nova.legacy.objectstore import files
from nova.legacy.objectstore.store import ObjectStore, PutObject
store = ObjectStore(Path(sys.argv[1]))
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "write":
    def pieces():
        yield b"new"
        die()
    given = PutObject(pieces(), lambda: "e")
else:
    given = PutObject([b"new"], lambda: "e")
if sys.argv[2] == "rename":
    os.replace = die
if sys.argv[2] == "seal":
    os.fsync = die
if sys.argv[2] == "after":
    files.sync_folder = die
store.put("project", "bucket", "k", given)
"""


@pytest.mark.parametrize(("where", "found"), [("write", b"old"), ("seal", b"old"), ("rename", b"old"),
                                              ("after", b"new")])
def test_put_when_its_process_is_killed_then_the_object_is_whole_and_leftovers_are_swept(
        store: ObjectStore, where: str, found: bytes) -> None:
    store.put(OWNER, "bucket", "k", of(b"old"))
    ended = subprocess.run([sys.executable, "-c", KILLED, store.buckets.parent, where], check=False,
                           env={**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[2])}, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert read(store, "k") == found
    assert len(everything(store.new)) == (0 if where == "after" else 1)
    assert store.sweep() == 0  # too young to be told from one that was begun a moment ago
    assert store.sweep(young_s=-1) == (0 if where == "after" else 1)
    assert everything(store.new) == [] and read(store, "k") == found


def test_sweep_when_a_write_goes_on_then_it_is_let_be(store: ObjectStore) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one"
        assert store.sweep(young_s=-1) == 0
        yield b"two"

    store.put(OWNER, "bucket", "k", PutObject(pieces(), lambda: "e"))
    assert read(store, "k") == b"onetwo"


def test_sweep_when_a_folder_was_left_then_it_goes(store: ObjectStore) -> None:
    (files.new_folder(store.new) / "objects").mkdir()
    assert store.sweep() == 0 and store.sweep(young_s=-1) == 1 and everything(store.new) == []


def test_put_when_two_write_at_once_then_one_of_both_is_there_whole(store: ObjectStore) -> None:
    barrier, wrong = threading.Barrier(4), []

    def write(letter: bytes) -> None:
        barrier.wait()
        for _ in range(15):
            store.put(OWNER, "bucket", "k", of(*[letter * 5000] * 4))
            found = store.get(OWNER, "bucket", "k")
            content = b"".join(found.pieces())
            if len(set(content)) != 1 or found.record.etag != hashlib.md5(content).hexdigest():
                wrong.append(content)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == [] and len(read(store, "k")) == 20000 and everything(store.new) == []


def test_bucket_when_two_make_it_at_once_then_one_has(store: ObjectStore) -> None:
    barrier, ends = threading.Barrier(2), []

    def make(owner: str) -> None:
        barrier.wait()
        try:
            store.create_bucket(owner, "shared")
            ends.append("made")
        except S3Error as error:
            ends.append(error.code)

    threads = [threading.Thread(target=make, args=(owner,)) for owner in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["BucketAlreadyExists", "made"]


def test_damage_when_a_file_lost_its_record_then_it_is_not_read_for_another(store: ObjectStore) -> None:
    store.put(OWNER, "bucket", "a", of(b"x" * 100))
    store.put(OWNER, "bucket", "b", of(b"y"))
    path = store.object_path("bucket", "a")
    for content in (path.read_bytes()[:-3], b"", b"\xff" * 20, path.read_bytes()[:50]):
        path.write_bytes(content)
        with pytest.raises(files.RecordDamaged):
            store.get(OWNER, "bucket", "a")
        assert [one.key for one in store.list_objects(OWNER, "bucket")[1]] == ["b"]


@pytest.mark.parametrize("limits", [StoreLimits(objects_per_owner=2), StoreLimits(bytes_per_owner=1500)])
def test_quota_when_it_is_used_up_then_no_more_is_stored(tmp_path: Path, limits: StoreLimits) -> None:
    store = ObjectStore(tmp_path, limits)
    for name in ("first", "second"):
        store.create_bucket(OWNER, name)
    store.create_bucket("other", "others")
    store.put(OWNER, "first", "a", of(b"x" * 500))
    store.put(OWNER, "second", "b", of(b"x" * 500))
    assert code_of(lambda: store.put(OWNER, "first", "c", of(b"x" * 500))) == "QuotaExceeded"
    store.put(OWNER, "first", "a", of(b"y" * 500))  # in place of the old one
    store.put("other", "others", "c", of(b"x" * 500))
    store.delete(OWNER, "second", "b")
    store.put(OWNER, "first", "c", of(b"x" * 500))
    assert everything(store.new) == []


def test_quota_when_two_use_it_up_at_once_then_one_is_refused(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path, StoreLimits(objects_per_owner=1))
    store.create_bucket(OWNER, "bucket")
    barrier, ends = threading.Barrier(2), []

    def write(key: str) -> None:
        def pieces() -> Iterator[bytes]:
            yield b"x"
            barrier.wait(30)

        try:
            store.put(OWNER, "bucket", key, PutObject(pieces(), lambda: "e"))
            ends.append("stored")
        except S3Error as error:
            ends.append(error.code)

    threads = [threading.Thread(target=write, args=(key,)) for key in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["QuotaExceeded", "stored"]


def test_quota_when_one_body_is_larger_then_it_is_not_read_to_its_end(tmp_path: Path) -> None:
    store, taken = ObjectStore(tmp_path, StoreLimits(bytes_per_owner=100)), []
    store.create_bucket(OWNER, "bucket")

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"x" * 60

    assert code_of(lambda: store.put(OWNER, "bucket", "k", PutObject(endless(), lambda: "e"))) == "QuotaExceeded"
    assert len(taken) == 2 and everything(store.new) == []
    small = ObjectStore(tmp_path, StoreLimits(longest_object=100))
    assert code_of(lambda: small.put(OWNER, "bucket", "k", PutObject(endless(), lambda: "e"))) == "EntityTooLarge"


# -- listings

KEYS = ["a", "b/1", "b/2", "b/c/3", "d", "e/1", "ü"]


@pytest.mark.parametrize(("asked", "keys", "prefixes", "last"), [
    (ListingAsked(), KEYS, [], None), (ListingAsked("b/"), ["b/1", "b/2", "b/c/3"], [], None),
    (ListingAsked("b/", "/"), ["b/1", "b/2"], ["b/c/"], None),
    (ListingAsked("", "/"), ["a", "d", "ü"], ["b/", "e/"], None),
    (ListingAsked("", "/", "", 2), ["a"], ["b/"], "b/"), (ListingAsked("", "/", "b/", 2), ["d"], ["e/"], "e/"),
    (ListingAsked("", "/", "e/", 2), ["ü"], [], None), (ListingAsked("", "", "b/2"), KEYS[3:], [], None),
    (ListingAsked("", "", "", 0), [], [], None), (ListingAsked("x"), [], [], None),
    (ListingAsked("", "", "", 7), KEYS, [], None), (ListingAsked("", "", "", 6), KEYS[:6], [], "e/1"),
    (ListingAsked("", "/1"), ["a", "b/2", "b/c/3", "d", "ü"], ["b/1", "e/1"], None)])
def test_page_then_it_has_what_was_asked_for(asked: ListingAsked, keys: list[str], prefixes: list[str],
                                            last: str | None) -> None:
    page = page_of(reversed(KEYS), asked)
    assert (page.keys, page.prefixes, page.truncated) == (keys, prefixes, last is not None)
    assert last is None or page.last == last


@settings(max_examples=200, deadline=None)
@given(st.sets(st.text("ab/", min_size=1, max_size=6), max_size=12), st.sampled_from(["", "/", "a", "b/"]),
       st.sampled_from(["", "a", "/", "ab"]), st.integers(1, 4))
def test_page_when_all_are_read_in_turn_then_nothing_is_left_out_or_told_twice(
        keys: set[str], delimiter: str, prefix: str, most: int) -> None:
    whole = page_of(keys, ListingAsked(prefix, delimiter))
    found: list[str] = []
    page = page_of(keys, ListingAsked(prefix, delimiter, "", most))
    while True:
        assert len(page.keys) + len(page.prefixes) <= most
        found += [*page.keys, *page.prefixes]
        if not page.truncated:
            break
        page = page_of(keys, ListingAsked(prefix, delimiter, page.last, most))
    assert sorted(found) == sorted([*whole.keys, *whole.prefixes])
    assert {key for key in keys if key.startswith(prefix)} == {
        key for key in keys if key in whole.keys or key.startswith(tuple(whole.prefixes))}


# -- multipart uploads

@pytest.fixture
def uploads(tmp_path: Path) -> MultipartUploads:
    made = ObjectStore(tmp_path / "uploads", StoreLimits(least_part=4))
    made.create_bucket(OWNER, "bucket")
    return MultipartUploads(made)


def store_of(uploads: MultipartUploads, tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "uploads", StoreLimits(least_part=4))


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def test_upload_when_it_is_completed_then_it_is_one_object(uploads: MultipartUploads, tmp_path: Path) -> None:
    store = store_of(uploads, tmp_path)
    upload = uploads.start(OWNER, "bucket", "k", {"content-type": "a/b"})
    for number, data in ((3, b"lost"), (2, b"two"), (1, b"oneX"), (1, b"one1")):
        uploads.put_part(upload, number, of(data))
    assert [(one.key, one.size) for one in uploads.list_parts(upload)] == [("1", 4), ("2", 3), ("3", 4)]
    assert uploads.list_uploads(OWNER, "bucket") == [upload]
    assert code_of(lambda: store.get(OWNER, "bucket", "k")) == "NoSuchKey"
    record = uploads.complete(upload, [GivenPart(1, md5(b"one1")), GivenPart(2, md5(b"two"))])
    both = hashlib.md5(hashlib.md5(b"one1").digest() + hashlib.md5(b"two").digest()).hexdigest()
    assert (record.etag, record.headers) == (f"{both}-2", {"content-type": "a/b"})
    assert read(store, "k") == b"one1two"
    assert everything(store.uploads) == everything(store.new) == []
    assert code_of(lambda: uploads.complete(upload, [GivenPart(1, "")])) == "NoSuchUpload"
    assert code_of(lambda: uploads.put_part(upload, 1, of(b"x"))) == "NoSuchUpload"


@pytest.mark.parametrize(("parts", "code"), [
    ([], "MalformedXML"), ([(2, b"two2"), (1, b"one1")], "InvalidPartOrder"),
    ([(1, b"one1"), (1, b"one1")], "InvalidPartOrder"), ([(1, b"other")], "InvalidPart"),
    ([(9, b"one1")], "InvalidPart"), ([(4, b"abc"), (5, b"last")], "EntityTooSmall")])
def test_upload_when_its_list_of_parts_is_wrong_then_it_stays(uploads: MultipartUploads,
                                                             parts: list[tuple[int, bytes]], code: str) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    for number, data in ((1, b"one1"), (2, b"two2"), (4, b"abc"), (5, b"last")):
        uploads.put_part(upload, number, of(data))
    given = [GivenPart(number, md5(data)) for number, data in parts]
    assert code_of(lambda: uploads.complete(upload, given)) == code
    assert len(uploads.list_parts(upload)) == 4


def test_upload_when_it_is_aborted_then_nothing_is_left(uploads: MultipartUploads, tmp_path: Path) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    uploads.put_part(upload, 1, of(b"x"))
    uploads.abort(upload)
    uploads.abort(upload)
    store = store_of(uploads, tmp_path)
    assert everything(store.uploads) == everything(store.new) == []
    assert code_of(lambda: uploads.find(OWNER, "bucket", "k", upload.id)) == "NoSuchUpload"


def test_upload_when_it_is_aborted_during_a_part_then_that_is_refused(uploads: MultipartUploads) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})

    def pieces() -> Iterator[bytes]:
        yield b"x"
        uploads.abort(upload)

    assert code_of(lambda: uploads.put_part(upload, 1, PutObject(pieces(), lambda: "e"))) == "NoSuchUpload"


@pytest.mark.parametrize("number", [0, -1, 10001])
def test_upload_when_a_parts_number_is_out_of_bounds_then_it_is_refused(uploads: MultipartUploads,
                                                                       number: int) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    assert code_of(lambda: uploads.put_part(upload, number, of(b"x"))) == "InvalidArgument"


@pytest.mark.parametrize(("owner", "key", "upload_id"), [
    ("other", "k", None), (OWNER, "other", None), (OWNER, "k", "../bucket"), (OWNER, "k", ""), (OWNER, "k", "0" * 32)])
def test_upload_when_it_is_asked_for_by_another_name_then_there_is_none(uploads: MultipartUploads, owner: str, key: str,
                                                                       upload_id: str | None) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    found = upload.id if upload_id is None else upload_id
    assert code_of(lambda: uploads.find(owner, "bucket", key, found)) == "NoSuchUpload"


def test_upload_when_there_is_a_quota_then_its_parts_count_once(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path, StoreLimits(bytes_per_owner=2600, least_part=4))
    store.create_bucket(OWNER, "bucket")
    uploads = MultipartUploads(store)
    upload = uploads.start(OWNER, "bucket", "k", {})
    uploads.put_part(upload, 1, of(b"x" * 1000))
    uploads.put_part(upload, 2, of(b"x" * 1000))
    assert code_of(lambda: uploads.put_part(upload, 3, of(b"x" * 1000))) == "QuotaExceeded"
    uploads.complete(upload, [GivenPart(number, md5(b"x" * 1000)) for number in (1, 2)])
    assert len(read(store, "k")) == 2000


def test_sweep_when_an_upload_goes_on_for_days_then_it_is_let_be(uploads: MultipartUploads, tmp_path: Path) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    uploads.put_part(upload, 1, of(b"x"))
    old = time.time() - 10 ** 6
    for path in store_of(uploads, tmp_path).uploads.rglob("*"):
        os.utime(path, (old, old))
    assert store_of(uploads, tmp_path).sweep() == 0 and len(uploads.list_parts(upload)) == 1


def test_upload_when_its_process_dies_after_the_object_is_made_then_it_may_be_completed_again(
        uploads: MultipartUploads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = uploads.start(OWNER, "bucket", "k", {})
    uploads.put_part(upload, 1, of(b"x"))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(files, "discard", die)
        uploads.complete(upload, [GivenPart(1, md5(b"x"))])
    store = store_of(uploads, tmp_path)
    assert read(store, "k") == b"x"
    uploads.complete(uploads.find(OWNER, "bucket", "k", upload.id), [GivenPart(1, md5(b"x"))])
    assert read(store, "k") == b"x" and everything(store.uploads) == everything(store.new) == []


def test_upload_when_it_is_never_ended_then_it_expires(tmp_path: Path) -> None:
    now = [1000.0]
    store = ObjectStore(tmp_path, clock=lambda: now[0])
    store.create_bucket(OWNER, "bucket")
    uploads = MultipartUploads(store)
    old = uploads.start(OWNER, "bucket", "old", {})
    uploads.put_part(old, 1, of(b"x"))
    now[0] += 100
    young = uploads.start("project", "bucket", "young", {})
    now[0] += 50
    assert uploads.expire(120) == 1
    assert uploads.list_uploads(OWNER, "bucket") == [young] and everything(store.new) == []


def test_upload_when_it_is_aborted_while_it_is_completed_then_there_is_no_object(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket(OWNER, "bucket")
    uploads = MultipartUploads(store)
    upload = uploads.start(OWNER, "bucket", "k", {})
    uploads.put_part(upload, 1, of(b"x"))

    def late() -> float:  # asked for when the parts are read
        uploads.abort(upload)
        return time.time()

    store.clock = late
    assert code_of(lambda: uploads.complete(upload, [GivenPart(1, md5(b"x"))])) == "NoSuchUpload"
    assert code_of(lambda: store.get(OWNER, "bucket", "k")) == "NoSuchKey" and everything(store.new) == []
