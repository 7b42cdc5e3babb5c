"""Images made of bundles: from the registration to the image, every failure, and what is left on the disk."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from nova import errors
from nova.legacy.objectstore.bundles import service as bundles_service
from nova.legacy.objectstore.bundles.jobs import BundleJob
from nova.legacy.objectstore.bundles.service import BundleRules
from nova.legacy.objectstore.disk_space import DiskSpace
from nova.model.image.bundles import BundleFacts, RegisterBundle
from tests.fakes.bundle_world import BUCKET, CLOUD_KEY, KEYS, MOST, OWNER, BundleWorld
from tests.fakes.bundles import Bundle, Keys, bundle, put
from tests.fakes.glance import FakeGlance

pytestmark = pytest.mark.one_in(4)  # one of four runs has each

DATA = bytes(range(256)) * 77


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def world(tmp_path: Path, glance: FakeGlance) -> Iterator[BundleWorld]:
    made = BundleWorld(tmp_path, glance.url)
    yield made
    made.service.stop(2)


def states(glance: FakeGlance, image_id: str) -> tuple[str, str]:
    image = glance.images[image_id]
    return image["status"], image["image_state"]


def test_register_when_all_is_well_then_the_image_has_the_bundles_data(world: BundleWorld, glance: FakeGlance) -> None:
    made = bundle(DATA, KEYS, machine={"architecture": "i386", "kernel_id": "aki-00000001"},
                  mappings=[("ami", "sda1"), ("swap", "sda3")])
    location = world.upload(made, "folder/")
    found = world.service.read_manifest(f"/{location}", OWNER)
    answer = world.service.register_image(RegisterBundle(
        location=f"/{location}", project_id=OWNER, name="a name", description="some words",
        root_device_name="/dev/sda1",
        kernel_image_id="a-kernel", block_device_mapping=[{"device_name": "sdb", "ebs": {"volume_size": 1}}]))
    world.settle()
    image = glance.images[answer.image_id]
    assert glance.data[answer.image_id] == DATA
    assert (found.kernel_id, found.architecture, found.parts) == ("aki-00000001", "i386", len(made.parts))
    assert (found.size, found.name, found.container_format) == (len(DATA), "disk.img", "ami")
    assert image == image | {
        "name": "a name", "owner": OWNER, "visibility": "private", "status": "active", "image_state": "available",
        "disk_format": "ami", "container_format": "ami", "image_location": location,
        "architecture": "i386", "kernel_id": "a-kernel", "root_device_name": "/dev/sda1", "description": "some words"}
    assert json.loads(image["mappings"]) == [{"virtual": "ami", "device": "sda1"},
                                             {"virtual": "swap", "device": "sda3"}]
    assert json.loads(image["block_device_mapping"]) == [{"device_name": "sdb", "ebs": {"volume_size": 1}}]
    assert "ramdisk_id" not in image and world.left() == []
    assert world.images.states == ["downloading", "decrypting", "untarring", "uploading", "available"]
    assert set(world.cert.asked) == {OWNER}


@pytest.mark.parametrize(("machine", "kind"), [({"kernel_id": "true"}, "aki"), ({"ramdisk_id": "true"}, "ari"),
                                               ({}, "ami")])
def test_register_when_the_manifest_says_true_then_the_image_is_a_kernel_or_a_ramdisk(
        world: BundleWorld, glance: FakeGlance, machine: dict[str, str], kind: str) -> None:
    location = world.upload(bundle(DATA, KEYS, machine=machine))
    answer = world.service.register_image(RegisterBundle(location=location, project_id=OWNER, kernel_image_id="k"))
    world.settle()
    image = glance.images[answer.image_id]
    assert answer.container_format == image["container_format"] == image["disk_format"] == kind
    assert ("kernel_id" in image) == (kind == "ami") and image["name"] == location


def test_register_then_the_answer_comes_before_the_work(world: BundleWorld, glance: FakeGlance) -> None:
    go = threading.Event()
    world.images.hooks["update:downloading"] = lambda _image_id: go.wait(10)
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    job, = (world.folder / "jobs").glob("*.json")
    assert states(glance, image_id) == ("queued", "pending") and job.stat().st_mode & 0o777 == 0o600
    go.set()
    world.settle()
    assert states(glance, image_id) == ("active", "available")


@pytest.mark.parametrize("location", ["", "/", "bucket", "bucket/", "//bucket/key", "bucket//key", "images/../key",
                                      "images/a/../../other/key", "../images/key", "images/key\0", "images/a\nb",
                                      "ima/ges\ud800", "/images/./key"])
def test_register_when_the_location_is_malformed_then_it_is_refused(world: BundleWorld, location: str) -> None:
    with pytest.raises(errors.bundle.Location):
        world.register(location)
    with pytest.raises(errors.bundle.Location):
        world.service.read_manifest(location, OWNER)


def test_register_when_the_manifest_is_missing_or_anothers_then_the_error_is_the_same(
        world: BundleWorld, glance: FakeGlance) -> None:
    world.store.create_bucket("another", "theirs")
    theirs = bundle(DATA, KEYS).put(world.store, "another", "theirs")
    for location in (theirs, "theirs/absent", "nobodys/absent", f"{BUCKET}/absent"):
        with pytest.raises(errors.bundle.NotFound) as refused:
            world.register(location)
        assert refused.value.message == f"The manifest {location} could not be found."
    assert glance.images == {} and world.left() == []


def test_register_when_one_owner_has_all_buckets_then_every_project_can(tmp_path: Path, glance: FakeGlance) -> None:
    """As nova-objectstore is where it asks nobody who he is."""
    world = BundleWorld(tmp_path, glance.url, rules=BundleRules(owner=OWNER))
    location = world.upload(bundle(DATA, KEYS))
    assert world.service.read_manifest(location, "another").parts
    answer = world.service.register_image(RegisterBundle(location=location, project_id="another"))
    world.settle()
    assert glance.images[answer.image_id]["owner"] == "another" and set(world.cert.asked) == {"another"}
    assert states(glance, answer.image_id) == ("active", "available")


def test_register_when_parts_are_in_anothers_bucket_then_they_are_not_read(
        world: BundleWorld, glance: FakeGlance) -> None:
    """Nothing in a manifest names a bucket; a name that would is refused before anything is read."""
    world.store.create_bucket("another", "theirs")
    made = bundle(DATA, KEYS)
    made.put(world.store, "another", "theirs")
    manifest = made.manifest.replace(b"disk.img.part.00", b"../theirs/disk.img.part.00")
    put(world.store, OWNER, BUCKET, made.manifest_name, manifest)
    with pytest.raises(errors.bundle.Manifest):
        world.register(f"{BUCKET}/{made.manifest_name}")


def test_register_when_texts_are_too_long_or_odd_then_it_is_refused(world: BundleWorld) -> None:
    location = world.upload(bundle(DATA, KEYS))
    for order in ({"name": "n" * 256}, {"description": "d" * 256}, {"root_device_name": "r" * 256},
                  {"block_device_mapping": ["x" * 65535]}):
        with pytest.raises(errors.bundle.TooLarge):
            world.register(location, **order)
    with pytest.raises(errors.bundle.Architecture):
        world.register(location, architecture="z80")
    assert world.left() == []


def test_register_when_the_image_service_refuses_then_nothing_is_left(world: BundleWorld, glance: FakeGlance) -> None:
    location = world.upload(bundle(DATA, KEYS))
    glance.knobs.fail_next, glance.knobs.fail_status = 1, 403
    with pytest.raises(errors.service.Forbidden):
        world.register(location)
    assert world.left() == [] and glance.images == {}


def test_register_when_the_answer_of_the_image_service_is_lost_then_its_record_is_worked_on(
        world: BundleWorld, glance: FakeGlance) -> None:
    def lost(_image_id: str) -> None:
        raise errors.service.Unavailable(service="image", reason="timeout")
    world.images.after["create"] = lost
    with pytest.raises(errors.Unavailable):
        world.register(world.upload(bundle(DATA, KEYS)))
    image_id, = glance.images
    world.service.look()
    world.settle()
    assert states(glance, image_id) == ("active", "available") and world.left() == []


def test_register_when_the_image_service_never_got_it_then_the_job_ends(world: BundleWorld, glance: FakeGlance) -> None:
    location = world.upload(bundle(DATA, KEYS))
    glance.go_away()
    with pytest.raises(errors.Unavailable):
        world.register(location)
    assert len(world.left()) == 1
    glance.come_back()
    world.service.look()
    world.settle()
    assert world.left() == [] and glance.images == {}


def test_register_when_too_many_wait_then_others_are_refused(world: BundleWorld, monkeypatch: Any) -> None:
    monkeypatch.setattr(bundles_service, "MOST_OF_PROJECT", 2)
    go = threading.Event()
    world.images.hooks["update:downloading"] = lambda _image_id: go.wait(10)
    location = world.upload(bundle(DATA, KEYS))
    world.register(location)
    world.register(location)
    with pytest.raises(errors.bundle.TooMany):
        world.register(location)
    go.set()
    world.settle()
    assert world.register(location)
    world.settle()


def test_register_when_two_projects_do_at_once_then_both_images_are_made_at_once(
        world: BundleWorld, glance: FakeGlance) -> None:
    meet = threading.Barrier(2, timeout=10)
    world.images.hooks["update:untarring"] = lambda _image_id: meet.wait()
    world.store.create_bucket("another", "theirs")
    ids = [world.register(world.upload(bundle(DATA, KEYS))),
           world.service.register_image(RegisterBundle(
               location=bundle(DATA[::-1], KEYS).put(world.store, "another", "theirs"), project_id="another")).image_id]
    world.settle()
    assert [glance.data[one] for one in ids] == [DATA, DATA[::-1]] and world.left() == []


def test_work_when_one_project_has_many_bundles_then_another_is_next_and_of_each_one_at_a_time(
        world: BundleWorld, glance: FakeGlance) -> None:
    world.store.create_bucket("another", "theirs")
    theirs = bundle(DATA, KEYS).put(world.store, "another", "theirs")
    ours, owners = world.upload(bundle(DATA, KEYS)), [OWNER, OWNER, OWNER, "another"]
    go, begun, most, under_way = threading.Event(), list[str](), list[int](), list[str]()

    def begin(image_id: str) -> None:
        owner = glance.images[image_id]["owner"]
        begun.append(owner)
        under_way.append(owner)
        most.append(under_way.count(owner))
        assert go.wait(10)

    world.images.hooks["update:downloading"] = begin
    world.images.after["update:available"] = lambda image_id: under_way.remove(glance.images[image_id]["owner"])
    for owner in owners:
        location = theirs if owner == "another" else ours
        world.service.register_image(RegisterBundle(location=location, project_id=owner))
    deadline = time.monotonic() + 10
    while len(begun) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert begun == [OWNER, "another"]
    go.set()
    world.settle()
    assert sorted(begun) == sorted(owners) and set(most) == {1} and world.left() == []
    assert {image["image_state"] for image in glance.images.values()} == {"available"}


def test_stop_when_jobs_of_a_project_wait_for_their_turn_then_the_next_process_has_them(
        world: BundleWorld, glance: FakeGlance) -> None:
    go, location = threading.Event(), world.upload(bundle(DATA, KEYS))
    world.images.hooks["update:downloading"] = lambda _image_id: go.wait(10)
    ids = [world.register(location) for _ in range(3)]
    stopping = threading.Thread(target=world.service.stop, args=(10,))
    stopping.start()
    go.set()
    stopping.join()
    assert world.service.busy() == 0 and states(glance, ids[2]) == ("queued", "pending")
    again = BundleWorld(world.folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    assert [states(glance, one) for one in ids] == [("active", "available")] * 3 and world.left() == []


def free_resources(world: BundleWorld, monkeypatch: pytest.MonkeyPatch, free: Callable[[Path], int]) -> None:
    """The disk has as much free as ``free`` says of the job's folder."""
    def lacks(room: DiskSpace, size: int = 0) -> bool:
        return free(next((world.folder / "work").iterdir())) < size

    monkeypatch.setattr(DiskSpace, "lacks", lacks)


IMAGE_SIZE = len(DATA)


@pytest.mark.parametrize(("step", "free"), [
    ("downloading", lambda folder: 0),
    ("decrypting", lambda folder: 0 if (folder / "image.tar.gz").exists() else IMAGE_SIZE),
    ("untarring", lambda folder: IMAGE_SIZE - 1 if (folder / "image.tar.gz").exists() else IMAGE_SIZE),
    ("untarring", lambda folder: 0 if (folder / "image").exists() else IMAGE_SIZE)],
    ids=["join", "decrypt", "before unpacking", "while unpacking"])
def test_work_when_the_disk_has_no_room_then_the_job_waits_for_it_and_leaves_nothing_there(
        world: BundleWorld, glance: FakeGlance, monkeypatch: pytest.MonkeyPatch, caplog: Any, step: str,
        free: Callable[[Path], int]) -> None:
    location = world.upload(bundle(DATA, KEYS))
    with monkeypatch.context() as patched:
        free_resources(world, patched, free)
        image_id = world.register(location)
        world.settle()
    assert states(glance, image_id) == ("queued", step) and "s3_reserved_disk_mb" in caplog.text
    assert [Path(one).suffix for one in world.left()] == [".json"]
    again = BundleWorld(world.folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    assert states(glance, image_id) == ("active", "available") and glance.data[image_id] == DATA


def test_register_when_the_same_is_registered_twice_then_there_are_two_images(
        world: BundleWorld, glance: FakeGlance) -> None:
    location = world.upload(bundle(DATA, KEYS))
    ids = [world.register(location) for _ in range(2)]
    world.settle()
    assert len({*ids}) == 2 and all(glance.data[one] == DATA for one in ids)


def no_part(made: Bundle) -> None:
    made.parts.popitem()


def other_part(made: Bundle) -> None:
    made.parts["disk.img.part.00"] = b"x" * len(made.parts["disk.img.part.00"])


def short_part(made: Bundle) -> None:
    made.parts["disk.img.part.00"] = made.parts["disk.img.part.00"][:-1]


def no_digests(root: Any) -> None:
    """As some tools leave them out: then lengths and padding have to tell."""
    for owner in [root.find("image"), *root.iter("part")]:
        owner.remove(owner.find("digest"))
    root.find("image").remove(root.find("image/bundled_size"))


def one_digest(root: Any) -> None:
    root.find("image/digest").text = "0" * 40


STRANGER = Keys(KEYS.user, rsa.generate_private_key(65537, 2048).public_key())

FAILURES: dict[str, tuple[str, Callable[[], Bundle], Callable[[Bundle], None] | None, str]] = {
    "a part is missing": ("download", lambda: bundle(DATA, KEYS), no_part, "part.0"),
    "a part is another": ("download", lambda: bundle(DATA, KEYS), other_part, "SHA-1"),
    "a part is cut": ("download", lambda: bundle(DATA, KEYS), short_part, "SHA-1"),
    "the sum is wrong": ("download", lambda: bundle(DATA, KEYS, bundled_size=5), None, "and not the 5"),
    "the bundle is huge": ("download", lambda: bundle(DATA, KEYS, packed=b"\x1f\x8b\x08" + bytes(MOST)), None, "bytes"),
    "the key is anothers": ("decrypt", lambda: bundle(DATA, STRANGER), None, "key"),
    "a part is cut and nobody says so": ("decrypt", lambda: bundle(DATA, KEYS, change=no_digests), short_part, "block"),
    "it is no gzip": ("decrypt", lambda: bundle(DATA, KEYS, packed=b"no gzip at all"), None, "not gzip"),
    "the gzip is cut": ("untar", lambda: bundle(DATA, KEYS, packed=gzip.compress(DATA)[:-9]), None, "gzip"),
    "it is no tarball": ("untar", lambda: bundle(DATA, KEYS, tar=b"no tarball" * 999), None, "damaged"),
    "the tarball is empty": ("untar", lambda: bundle(DATA, KEYS, tar=bytes(10240)), None, "no file"),
    "the digest is another": ("untar", lambda: bundle(DATA, KEYS, change=one_digest), None, "digest"),
    "the size is another": ("untar", lambda: bundle(DATA, KEYS, size=5), None, "and not the 5"),
    "the image is too large": ("untar", lambda: bundle(bytes(MOST + 1), KEYS), None, "bytes"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_work_when_the_bundle_is_wrong_then_the_image_failed_and_the_log_says_why(
        world: BundleWorld, glance: FakeGlance, caplog: Any, case: str) -> None:
    step, make, spoil, word = FAILURES[case]
    made = make()
    if spoil is not None:
        spoil(made)
    location = world.upload(made)
    with caplog.at_level(logging.INFO):
        image_id = world.register(location)
        world.settle()
    assert states(glance, image_id) == ("queued", f"failed_{step}") and world.left() == []
    line, = [record for record in caplog.records if record.levelno >= logging.WARNING
             and record.name.startswith("nova.legacy.objectstore")]
    said = line.getMessage()
    assert line.levelno == logging.WARNING
    assert image_id in said and location in said and word in said and f"failed_{step}" in said
    cures = [row.cure for row in vars(errors.bundle).values() if isinstance(row, type)]
    assert any(said.endswith(f". {cure}") for cure in cures if cure != errors.Invalid.cure), "what is to be done"


def test_work_when_the_upload_is_refused_then_the_image_failed(world: BundleWorld, glance: FakeGlance) -> None:
    def refuse(_image_id: str) -> None:
        glance.knobs.fail_next, glance.knobs.fail_status = 1, 413
    world.images.hooks["send"] = refuse
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id) == ("queued", "failed_upload") and world.left() == []


def test_work_when_uploads_break_off_then_it_is_tried_again_and_fails_at_last(
        world: BundleWorld, glance: FakeGlance) -> None:
    tries: list[str] = []

    def refuse(image_id: str) -> None:
        tries.append(image_id)
        glance.knobs.fail_next = 1
    world.images.hooks["send"] = refuse
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id) == ("queued", "failed_upload") and len(tries) == 3 and world.left() == []


def test_work_when_an_uploads_answer_is_lost_then_the_image_is_available(
        world: BundleWorld, glance: FakeGlance) -> None:
    def lost(_image_id: str) -> None:
        raise errors.service.Unavailable(service="image", reason="timeout")
    world.images.after["send"] = lost
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id) == ("active", "available") and glance.data[image_id] == DATA


def test_work_when_an_upload_hangs_in_the_image_service_then_it_is_waited_for_and_fails(
        world: BundleWorld, glance: FakeGlance) -> None:
    location = world.upload(bundle(DATA, KEYS))
    world.images.hooks["update:uploading"] = lambda image_id: glance.images[image_id].update(status="saving")
    ids = [world.register(location)]
    world.settle()
    threads: list[threading.Timer] = []

    def free(image_id: str) -> None:
        glance.images[image_id]["status"] = "saving"
        threads.append(threading.Timer(0.1, lambda: glance.images[image_id].update(status="queued")))
        threads[-1].start()
    world.images.hooks["update:uploading"] = free
    ids.append(world.register(location))
    world.settle()
    assert [states(glance, one)[1] for one in ids] == ["failed_upload", "available"] and world.left() == []


def test_work_when_the_disk_cannot_be_written_then_the_image_failed(
        world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    def full(_image_id: str) -> None:
        folder, = (world.folder / "work").iterdir()
        (folder / "image.tar.gz").mkdir()
    world.images.hooks["update:decrypting"] = full
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id)[1] == "failed_decrypt" and world.left() == []
    assert "image_decryption_dir" in caplog.text


def test_work_when_a_failure_is_unforeseen_then_the_image_failed_and_the_log_has_it(
        world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    def fail(project_id: str, text: str) -> str:
        raise KeyError("odd")
    world.cert.decrypt_text = fail
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id)[1] == "failed_decrypt" and "KeyError" in caplog.text and world.left() == []


@pytest.mark.parametrize("state", ["downloading", "decrypting", "untarring", "uploading", "available"])
def test_work_when_the_image_is_deleted_meanwhile_then_the_job_ends_without_an_error(
        world: BundleWorld, glance: FakeGlance, caplog: Any, state: str) -> None:
    world.images.after[f"update:{state}"] = lambda image_id: glance.images.pop(image_id, None)
    with caplog.at_level(logging.INFO):
        image_id = world.register(world.upload(bundle(DATA, KEYS)))
        world.settle()
    assert world.left() == [] and image_id not in glance.images
    assert [record for record in caplog.records if record.levelno >= logging.WARNING
             and record.name.startswith("nova.legacy.objectstore")] == []


def test_work_when_the_image_is_deleted_during_a_long_step_then_the_job_ends_early(
        world: BundleWorld, glance: FakeGlance, monkeypatch: Any) -> None:
    monkeypatch.setattr(bundles_service, "LOOK_S", -1.0)
    world.images.after["update:untarring"] = lambda image_id: glance.images.pop(image_id)
    world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert world.left() == [] and world.images.states[-1] == "untarring"


@pytest.mark.parametrize("error", [errors.Unavailable("nova-cert does not answer."), errors.PeerTooOld("Too old.")])
def test_work_when_nova_cert_is_away_then_the_job_waits_for_it(
        world: BundleWorld, glance: FakeGlance, caplog: Any, error: errors.NovaError) -> None:
    world.cert.error = error
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id) == ("queued", "decrypting") and len(world.left()) == 1
    assert error.message in caplog.text
    world.cert.error = None
    world.service.look()
    assert states(glance, image_id) == ("queued", "decrypting"), "too early"
    again = BundleWorld(world.folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    assert states(glance, image_id) == ("active", "available") and world.left() == []


def test_look_when_the_time_of_a_job_has_come_then_it_is_tried_again_in_the_same_process(
        tmp_path: Path, glance: FakeGlance) -> None:
    world = BundleWorld(tmp_path, glance.url, rules=BundleRules(retry_s=0.2))
    world.cert.error = errors.Unavailable("nova-cert does not answer.")
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    deadline = time.monotonic() + 10
    while len(world.cert.asked) < 3 and time.monotonic() < deadline:
        world.service.look()
        time.sleep(0.01)
    world.cert.error = None
    while world.left() and time.monotonic() < deadline:
        world.service.look()
        time.sleep(0.01)
    assert states(glance, image_id) == ("active", "available")


def test_work_when_it_waited_for_a_day_then_it_failed(world: BundleWorld, glance: FakeGlance) -> None:
    world.cert.error = errors.Unavailable("nova-cert does not answer.")
    image_id = old_job(world, glance)
    world.service.look()
    world.settle()
    assert states(glance, image_id) == ("queued", "failed_decrypt") and world.left() == []


def test_work_when_the_image_service_takes_no_state_for_a_day_then_the_job_is_given_up(
        world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    old_job(world, glance)
    glance.knobs.token = "another"
    world.service.look()
    world.settle()
    assert world.left() == [] and "given up after a day" in caplog.text


def old_job(world: BundleWorld, glance: FakeGlance) -> str:
    found = world.upload(bundle(DATA, KEYS))
    image_id = glance.add(status="queued", disk_format="ami", container_format="ami", image_state="pending")
    manifest = bundles_service.manifest.fetch(world.store, OWNER, bundles_service.manifest.location_of(found))
    world.jobs.add(BundleJob(image_id, OWNER, OWNER, found, time.time() - 86401, manifest)).release()
    return image_id


def test_work_when_the_image_service_goes_away_then_the_job_is_kept(world: BundleWorld, glance: FakeGlance) -> None:
    world.images.after["update:untarring"] = lambda _image_id: glance.go_away()
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert len(world.left()) == 1
    glance.come_back()
    again = BundleWorld(world.folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    assert states(glance, image_id) == ("active", "available") and glance.data[image_id] == DATA and world.left() == []


def test_work_when_no_folder_can_be_made_then_the_job_waits_and_fails_after_a_day(
        world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    location = world.upload(bundle(DATA, KEYS))
    (world.folder / "work").rmdir()
    young = world.register(location)
    world.settle()
    assert states(glance, young) == ("queued", "pending") and "image_decryption_dir" in caplog.text
    old = old_job(world, glance)
    world.service.look()
    world.settle()
    assert states(glance, old) == ("queued", "failed_download")
    assert [name for name in world.left() if old in name] == [] != [name for name in world.left() if young in name]


def test_work_when_a_failure_outside_of_the_steps_is_unforeseen_then_the_job_waits(
        world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    def fail(_image_id: str) -> None:
        raise KeyError("odd")
    world.images.hooks["update:decrypting"] = fail
    image_id = world.register(world.upload(bundle(DATA, KEYS)))
    world.settle()
    assert states(glance, image_id) == ("queued", "downloading") and "KeyError" in caplog.text
    assert [name.partition("/")[0] for name in world.left()] == ["jobs"]


def test_register_when_no_job_can_be_written_then_nothing_is_made(world: BundleWorld, glance: FakeGlance) -> None:
    location = world.upload(bundle(DATA, KEYS))
    (world.folder / "jobs").rename(world.folder / "gone")
    with pytest.raises(errors.bundle.NotKept):
        world.register(location)
    assert glance.images == {}


def test_stop_when_work_is_under_way_then_the_next_start_goes_on(world: BundleWorld, glance: FakeGlance) -> None:
    reached = threading.Event()

    def wait(_image_id: str) -> None:
        reached.set()
        world.service.stop(0)
    world.images.hooks["update:untarring"] = wait
    location = world.upload(bundle(DATA, KEYS))
    image_id = world.register(location)
    assert reached.wait(10)
    world.service.stop(5)
    assert world.service.busy() == 0 and len(world.left()) == 1
    again = BundleWorld(world.folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    assert states(glance, image_id) == ("active", "available") and world.left() == []


def test_stop_when_jobs_wait_for_a_worker_then_they_are_let_go(tmp_path: Path, glance: FakeGlance) -> None:
    world = BundleWorld(tmp_path, glance.url, rules=BundleRules(workers=1))
    go = threading.Event()
    world.images.hooks["update:downloading"] = lambda _image_id: go.wait(10)
    location = world.upload(bundle(DATA, KEYS))
    for _ in range(3):
        world.register(location)
    stopping = threading.Thread(target=world.service.stop, args=(10,))
    stopping.start()
    go.set()
    stopping.join()
    assert world.service.busy() == 0 and len(list(world.jobs.waiting())) == 3


def test_start_when_two_processes_share_the_jobs_then_each_is_done_once(tmp_path: Path, glance: FakeGlance) -> None:
    first, second = BundleWorld(tmp_path, glance.url), BundleWorld(tmp_path, glance.url)
    reached, go = threading.Event(), threading.Event()
    first.images.hooks["update:untarring"] = lambda _image_id: reached.set() or go.wait(10)
    first.register(first.upload(bundle(DATA, KEYS)))
    assert reached.wait(10)
    second.service.start()
    assert second.service.busy() == 0
    assert any("nova-bundle." in name for name in first.left()), "no other's folder is swept away"
    go.set()
    first.settle()
    second.service.stop(1)
    assert second.images.states == [] and first.left() == []


def test_start_when_a_job_is_damaged_then_others_are_done(world: BundleWorld, glance: FakeGlance, caplog: Any) -> None:
    (world.folder / "jobs/x.json").write_text("{")
    image_id = glance.add(status="queued", disk_format="ami", container_format="ami")
    location = world.upload(bundle(DATA, KEYS))
    found = bundles_service.manifest
    world.jobs.add(BundleJob(image_id, OWNER, OWNER, location, time.time(), found.fetch(
        world.store, OWNER, found.location_of(location)))).release()
    world.service.start()
    world.settle()
    assert states(glance, image_id) == ("active", "available")
    assert world.left() == ["jobs/x.json.damaged"] and "x.json" in caplog.text


def test_start_when_a_stranger_made_a_folder_like_ours_then_it_is_not_followed(world: BundleWorld) -> None:
    other = world.folder / "other"
    other.mkdir()
    (other / "file").write_text("stays")
    (world.folder / "work/nova-bundle.x").symlink_to(other)
    world.service.start()
    assert (other / "file").read_text() == "stays"


def test_log_when_a_bundle_is_worked_on_then_it_has_no_key(world: BundleWorld, caplog: Any) -> None:
    made = bundle(DATA, KEYS)
    numbers = CLOUD_KEY.private_numbers()
    jobs: list[str] = []
    world.images.hooks["update:untarring"] = lambda _image_id: jobs.extend(
        path.read_text() for path in (world.folder / "jobs").glob("*.json"))
    with caplog.at_level(logging.DEBUG):
        world.register(world.upload(made))
        world.settle()
        world.register(world.upload(bundle(DATA, STRANGER)))
        world.settle()
    written = caplog.text + "".join(jobs)
    assert len(jobs) == 1 and "available" in caplog.text and "failed_decrypt" in caplog.text
    for secret in (made.key, made.iv, str(bytes.fromhex(made.key)), hex(numbers.d)[2:], str(numbers.d), "PRIVATE"):
        assert secret not in written


def test_facts_when_they_cross_the_wire_then_they_are_what_was_read(world: BundleWorld) -> None:
    found = world.service.read_manifest(world.upload(bundle(DATA, KEYS, mappings=[("ami", "sda1")])), OWNER)
    assert msgspec.json.decode(msgspec.json.encode(found), type=BundleFacts) == found
