"""What a project has in the store: a count that is right after kills, and the room that stays free for others."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.legacy.objectstore import files
from nova.legacy.objectstore import usage as usage_module
from nova.legacy.objectstore.disk_space import STRIDE
from nova.legacy.objectstore.names import file_name
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore, PutObject, StoreLimits
from nova.legacy.objectstore.uploads import GivenPart, MultipartUploads
from nova.legacy.objectstore.usage import Usage, usage_in
from nova.privileged.files import locked

OWNER = "project"
LIMITS = StoreLimits(bytes_per_owner=10 ** 6, objects_per_owner=100, least_part=1)
ROOT = str(Path(files.__file__).parents[2])


def of(data: bytes) -> PutObject:
    return PutObject([data], lambda: hashlib.md5(data).hexdigest())


def limited(folder: Path, limits: StoreLimits = LIMITS) -> ObjectStore:
    made = ObjectStore(folder / "store", limits)
    if not made.list_buckets(OWNER):
        made.create_bucket(OWNER, "bucket")
    return made


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return limited(tmp_path)


def code_of(run: Callable[[], object]) -> str:
    with pytest.raises(S3Error) as refused:
        run()
    return refused.value.code


def count_file(store: ObjectStore, owner: str = OWNER) -> Path:
    return store.buckets.parent / "usage" / file_name(owner)


def kept(store: ObjectStore) -> Usage | None:
    """What the count says; None where it is not known."""
    text = count_file(store).read_text()
    return Usage(*map(int, text.strip("[]").split(","))) if text.endswith("]") else None


def there(store: ObjectStore) -> Usage:
    """What files say."""
    objects = [path.stat().st_size for path in store.buckets.glob("*/objects/*")]
    return Usage(len(objects), sum(objects) + sum(path.stat().st_size for path in store.uploads.glob("*/part.*")))


def known(store: ObjectStore) -> Usage:
    """The count, after a write that has to know it."""
    store.put(OWNER, "bucket", "last", of(b"x"))
    found = kept(store)
    assert found is not None
    return found


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files an owner had, each time that all of them were looked at."""
    found: list[int] = []

    def counted(paths: Iterable[Path]) -> Usage:
        listed = list(paths)
        found.append(len(listed))
        return usage_in(listed)

    monkeypatch.setattr(usage_module, "usage_in", counted)
    return found


# -- the count


def test_count_when_objects_and_uploads_come_and_go_then_it_is_what_the_files_are(tmp_path: Path,
                                                                                  walks: list[int]) -> None:
    store = limited(tmp_path)
    uploads = MultipartUploads(store)
    store.put(OWNER, "bucket", "a", of(b"x" * 500))
    steps: list[Callable[[], object]] = [
        lambda: store.put(OWNER, "bucket", "b", of(b"x" * 300)), lambda: store.put(OWNER, "bucket", "a", of(b"y")),
        lambda: store.put(OWNER, "bucket", "a", of(b"z" * 9000)), lambda: store.delete(OWNER, "bucket", "b"),
        lambda: store.delete(OWNER, "bucket", "b"), lambda: store.create_bucket(OWNER, "second"),
        lambda: store.put(OWNER, "second", "c", of(b"c")), lambda: store.delete(OWNER, "second", "c"),
        lambda: store.delete_bucket(OWNER, "second")]
    for step in steps:
        step()
        assert kept(store) == there(store)
    for key, end in (("k", uploads.complete), ("l", lambda upload, _: uploads.abort(upload))):
        upload = uploads.start(OWNER, "bucket", key, {})
        parts = [uploads.put_part(upload, number, of(b"p" * 100)) for number in (1, 2, 1)]
        assert kept(store) == there(store)
        end(upload, [GivenPart(number, parts[0].etag) for number in (1, 2)])
        assert kept(store) == there(store)
    assert walks == [0]


def test_count_when_it_is_known_then_no_write_looks_at_all_files(walks: list[int], store: ObjectStore) -> None:
    for number in range(20):
        store.put(OWNER, "bucket", f"k{number}", of(b"x" * 100))
    store.put("nobody-yet", *made_for(store, "nobody-yet"), of(b"x"))
    assert walks == [0, 0]
    store.limits = store.limits._replace(objects_per_owner=20)
    for _ in range(3):
        assert code_of(lambda: store.put(OWNER, "bucket", "more", of(b"x"))) == "QuotaExceeded"
    assert walks == [0, 0]


def made_for(store: ObjectStore, owner: str) -> tuple[str, str]:
    store.create_bucket(owner, f"of-{owner}")
    return f"of-{owner}", "key"


def test_count_when_a_write_over_the_quota_is_the_first_then_files_are_counted_once(
        walks: list[int], store: ObjectStore) -> None:
    store.limits = store.limits._replace(objects_per_owner=0)
    for _ in range(3):
        assert code_of(lambda: store.put(OWNER, "bucket", "k", of(b"x"))) == "QuotaExceeded"
    assert walks == [0]


def test_count_when_there_are_no_quotas_then_files_are_never_counted(tmp_path: Path, walks: list[int]) -> None:
    store = limited(tmp_path, StoreLimits())
    store.put(OWNER, "bucket", "k", of(b"x"))
    store.delete(OWNER, "bucket", "k")
    assert walks == [] and kept(store) is None


KILLED = """
import os, signal, sys
from pathlib import Path
from nova.legacy.objectstore import usage
from nova.legacy.objectstore.store import ObjectStore, PutObject, StoreLimits
from nova.legacy.objectstore.uploads import GivenPart, MultipartUploads
store = ObjectStore(Path(sys.argv[1]), StoreLimits(bytes_per_owner=10 ** 6, objects_per_owner=100, least_part=1))
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
def before_change(): os.replace = os.unlink = Path.unlink = die
def after_change(): usage.UsageChange.end = die
def within_count():
    write = Path.write_bytes
    Path.write_bytes = lambda path, data: (write(path, data[:3]), data and die())
uploads = MultipartUploads(store)
def put(): store.put("project", "bucket", "k", PutObject([b"n" * 900], lambda: "e"))
def delete(): store.delete("project", "bucket", "old")
def part(): uploads.put_part(found(), 2, PutObject([b"n" * 900], lambda: "e"))
def found(): return uploads.list_uploads("project", "bucket")[0]
def complete(): uploads.complete(found(), [GivenPart(1, "0" * 32)])
def abort(): uploads.abort(found())
run = globals()[sys.argv[3]]
if run in (part, complete, abort):
    assert found()
globals()[sys.argv[2]]()
run()
"""


@pytest.mark.parametrize("where", ["before_change", "after_change", "within_count"])
@pytest.mark.parametrize("what", ["put", "delete", "part", "complete", "abort"])
def test_count_when_a_process_is_killed_at_any_instant_then_the_next_one_counts_right(
        store: ObjectStore, where: str, what: str) -> None:
    store.put(OWNER, "bucket", "old", of(b"x" * 700))
    uploads = MultipartUploads(store)
    upload = uploads.start(OWNER, "bucket", "up", {})
    uploads.put_part(upload, 1, PutObject([b"p"], lambda: "0" * 32))
    assert kept(store) == there(store)
    ended = subprocess.run([sys.executable, "-c", KILLED, store.buckets.parent, where, what], check=False,
                           env={**os.environ, "PYTHONPATH": ROOT}, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert kept(store) in (None, there(store))
    assert known(store) == there(store)


RACER = """
import sys
from pathlib import Path
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore, PutObject, StoreLimits
store = ObjectStore(Path(sys.argv[1]), StoreLimits(objects_per_owner=30))
sys.stdin.readline()
for number in range(25):
    try:
        store.put("project", "bucket", f"{sys.argv[2]}{number}", PutObject([b"x"], lambda: "e"))
    except S3Error as error:
        print(error.code)
"""


def test_count_when_two_processes_write_at_once_then_the_quota_holds_to_the_object(store: ObjectStore) -> None:
    racers = [subprocess.Popen([sys.executable, "-c", RACER, store.buckets.parent, name], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ROOT})
              for name in ("a", "b")]
    said = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        said += racer.communicate(timeout=60)[0].split()
    assert said == ["QuotaExceeded"] * 20 and there(store).objects == 30 and kept(store) == there(store)


def test_count_when_the_disk_is_too_full_for_it_then_the_object_is_there_and_the_next_write_counts(
        store: ObjectStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    store.put(OWNER, "bucket", "a", of(b"x" * 100))
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if data and path == count_file(store):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        store.put(OWNER, "bucket", "b", of(b"x" * 100))
    assert kept(store) is None and "Cannot write the object count" in caplog.text
    assert there(store).objects == 2 and known(store) == there(store)


def test_count_when_the_disk_is_full_for_the_objects_name_then_the_next_write_counts(
        store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(OWNER, "bucket", "a", of(b"x" * 100))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(os, "replace", full)
        store.put(OWNER, "bucket", "b", of(b"x" * 100))
    assert there(store).objects == 1 and known(store) == there(store)


def test_count_when_files_went_beside_the_daemon_then_upkeep_has_them_counted_anew(store: ObjectStore) -> None:
    for key in ("a", "b"):
        store.put(OWNER, "bucket", key, of(b"x" * 100))
    store.object_path("bucket", "a").unlink()
    assert kept(store) != there(store)
    store.usage.forget()
    assert known(store) == there(store)


def test_forget_when_a_lock_is_held_then_the_others_are_forgotten(store: ObjectStore, monkeypatch: pytest.MonkeyPatch
                                                                  ) -> None:
    monkeypatch.setattr(usage_module, "FORGET_S", 0.05)
    place = made_for(store, "other")
    for owner, target in ((OWNER, ("bucket", "key")), ("other", place)):
        store.put(owner, *target, of(b"x"))
    with locked(count_file(store)):
        store.usage.forget()
    whole = there(store).size  # of both, which differ by the digits of a time
    assert kept(store).objects == 1 and abs(2 * kept(store).size - whole) < 10
    assert count_file(store, "other").read_bytes() == b""


@pytest.mark.parametrize("text", [b"[1", b"[-1,5]", b"[]", b"{}", b"\xff", b"[1,2,3]"])
def test_count_when_its_file_is_damaged_then_files_are_counted(store: ObjectStore, text: bytes) -> None:
    store.put(OWNER, "bucket", "a", of(b"x" * 100))
    count_file(store).write_bytes(text)
    store.delete(OWNER, "bucket", "a")
    assert known(store) == there(store)


# -- quotas


def test_quota_when_it_was_lowered_then_a_smaller_object_may_take_a_larger_ones_place(tmp_path: Path) -> None:
    store = limited(tmp_path)
    for key in ("a", "b", "c"):
        store.put(OWNER, "bucket", key, of(b"x" * 1000))
    tight = limited(tmp_path, StoreLimits(bytes_per_owner=1500, objects_per_owner=2))
    tight.put(OWNER, "bucket", "a", of(b"y" * 10))
    assert code_of(lambda: tight.put(OWNER, "bucket", "a", of(b"y" * 20))) == "QuotaExceeded"
    assert code_of(lambda: tight.put(OWNER, "bucket", "d", of(b"y"))) == "QuotaExceeded"
    assert kept(tight) == there(tight)


def test_quota_when_an_object_is_deleted_then_another_has_its_room(tmp_path: Path) -> None:
    store = limited(tmp_path, StoreLimits(bytes_per_owner=1300))
    store.put(OWNER, "bucket", "a", of(b"x" * 1000))
    assert code_of(lambda: store.put(OWNER, "bucket", "b", of(b"x" * 1000))) == "QuotaExceeded"
    store.delete(OWNER, "bucket", "a")
    store.put(OWNER, "bucket", "b", of(b"x" * 1000))


def test_quota_when_an_upload_is_completed_over_a_lowered_quota_then_it_ends_as_it_has_the_bytes_already(
        tmp_path: Path) -> None:
    uploads = MultipartUploads(limited(tmp_path))
    upload = uploads.start(OWNER, "bucket", "k", {})
    parts = [uploads.put_part(upload, number, of(b"p" * 1000)) for number in (1, 2)]
    tight = limited(tmp_path, StoreLimits(bytes_per_owner=2100, least_part=1))
    assert there(tight).size > 2100
    MultipartUploads(tight).complete(upload, [GivenPart(int(one.key), one.etag) for one in parts])
    assert kept(tight) == there(tight)


# -- locks


def test_lock_when_one_project_holds_its_own_then_others_write_and_it_waits(
        store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    place = made_for(store, "other")
    monkeypatch.setattr(usage_module, "locked", lambda path: locked(path, 0.2))
    with locked(count_file(store)):
        store.put("other", *place, of(b"x"))
        store.delete("other", *place)
        store.create_bucket("other", "another")
        store.delete_bucket("other", "another")
        for run in (lambda: store.put(OWNER, "bucket", "k", of(b"x")), lambda: store.delete(OWNER, "bucket", "k"),
                    lambda: store.create_bucket(OWNER, "mine"), lambda: store.delete_bucket(OWNER, "bucket")):
            with pytest.raises(errors.host.LockBusy):
                run()


def test_bucket_when_two_owners_name_it_in_the_same_instant_then_the_second_is_refused(
        store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, meet = os.replace, threading.Barrier(2, timeout=20)

    def late(source: Any, target: Any) -> None:
        if Path(target).name == "shared":
            meet.wait()
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    ends: list[str] = []

    def make(owner: str) -> None:
        try:
            ends.append(store.create_bucket(owner, "shared").owner)
        except S3Error as error:
            ends.append(error.code)

    threads = [threading.Thread(target=make, args=(owner,)) for owner in ("one", "two")]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert "BucketAlreadyExists" in ends and {"one", "two"} & {*ends} and not any(store.new.iterdir())


# -- room on the disk


class Disk:
    """The disk has ``free`` bytes, less what is in ``new``."""

    def __init__(self, store: ObjectStore, free: int) -> None:
        self.free, self._new = free, store.new

    def statvfs(self, folder: Path) -> Any:
        written = sum(path.stat().st_size for path in self._new.rglob("*") if path.is_file())
        return os.statvfs_result((1, 1, 0, 0, max(0, self.free - written), 0, 0, 0, 0, 255))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ObjectStore, Disk]]:
    store = limited(tmp_path, StoreLimits(least_free=1000, least_part=1))
    made = Disk(store, 10 ** 9)
    monkeypatch.setattr(os, "statvfs", made.statvfs)
    yield store, made


def test_disk_when_less_is_free_than_stays_free_then_nothing_is_written_and_all_may_be_read_and_removed(
        disk: tuple[ObjectStore, Disk]) -> None:
    store, there = disk
    uploads = MultipartUploads(store)
    store.put(OWNER, "bucket", "k", of(b"data"))
    upload = uploads.start(OWNER, "bucket", "up", {})
    part = uploads.put_part(upload, 1, of(b"p"))
    there.free = 999
    for run in (lambda: store.put(OWNER, "bucket", "k", of(b"new")), lambda: uploads.put_part(upload, 2, of(b"p")),
                lambda: uploads.start(OWNER, "bucket", "more", {}), lambda: store.create_bucket(OWNER, "more"),
                lambda: uploads.complete(upload, [GivenPart(1, part.etag)]),
                lambda: store.put(OWNER, "bucket", "copy", PutObject(
                    store.get(OWNER, "bucket", "k").pieces(), lambda: "e"))):
        assert code_of(run) == "InsufficientStorage"
    assert b"".join(store.get(OWNER, "bucket", "k").pieces()) == b"data" and not any(store.new.iterdir())
    store.delete(OWNER, "bucket", "k")
    uploads.abort(upload)
    there.free = 10 ** 9
    store.put(OWNER, "bucket", "k", of(b"new"))


def test_disk_when_it_has_too_little_room_then_the_log_says_so_once_a_minute(
        disk: tuple[ObjectStore, Disk], caplog: pytest.LogCaptureFixture) -> None:
    store, there = disk
    there.free = 999
    for _ in range(3):
        assert code_of(lambda: store.put(OWNER, "bucket", "k", of(b"new"))) == "InsufficientStorage"
    line, = caplog.messages
    assert "s3_reserved_disk_mb" in line and str(store.buckets.parent) in line


def test_disk_when_a_body_would_fill_it_then_it_is_read_no_further_and_goes(disk: tuple[ObjectStore, Disk]) -> None:
    store, there = disk
    there.free, taken = 3 * STRIDE, []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(STRIDE // 4)
            yield b"x" * taken[-1]

    assert code_of(lambda: store.put(OWNER, "bucket", "k", PutObject(endless(), lambda: "e"))) == "InsufficientStorage"
    assert 2 * STRIDE <= sum(taken) <= 4 * STRIDE and not any(store.new.iterdir())
