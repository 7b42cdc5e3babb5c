"""A process that dies while it makes an image of a bundle: the next one makes it, and nothing is left."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import concurrency
from nova.legacy.objectstore.bundles import service as bundles_service
from nova.model.image.bundles import RegisterBundle
from tests.fakes.bundle_world import KEYS, KILLED, OWNER, BundleWorld, save_key
from tests.fakes.bundles import bundle
from tests.fakes.glance import FakeGlance

pytestmark = pytest.mark.one_in(4)  # one of four runs has each

ROOT = Path(__file__).resolve().parents[3]
DATA = bytes(range(256)) * 99
SCRIPT = "import sys; from tests.fakes.bundle_world import register_and_die; register_and_die(*sys.argv[1:])"
CALLS = ("create", "update:downloading", "update:decrypting", "update:untarring", "update:uploading", "send",
         "update:available")


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


def start_anew(folder: Path, glance: FakeGlance) -> BundleWorld:
    again = BundleWorld(folder, glance.url)
    again.service.start()
    again.settle()
    again.service.stop(1)
    return again


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", CALLS)
def test_kill_when_a_step_is_reached_then_the_next_process_makes_the_image(
        tmp_path: Path, glance: FakeGlance, where: str, when: str) -> None:
    world = BundleWorld(tmp_path, glance.url)
    save_key(tmp_path / "key.pem")
    location = world.upload(bundle(DATA, KEYS))
    died = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), glance.url, location, where, when], cwd=ROOT,
                          timeout=60)
    assert died.returncode == KILLED
    left = world.left()
    assert any(name.startswith("jobs/") for name in left), "it says what is to be done"
    assert any(name.startswith("work/nova-bundle.") for name in left) == (
        where in CALLS[1:6]), "a process that is killed cannot clean up"
    again = start_anew(tmp_path, glance)
    if (where, when) == ("create", "before"):
        assert glance.images == {} and again.images.states == []
    else:
        image_id, = glance.images
        assert glance.images[image_id]["image_state"] == "available" and glance.data[image_id] == DATA
    assert world.left() == []


def test_kill_when_half_of_the_upload_is_sent_then_it_is_sent_again(tmp_path: Path, glance: FakeGlance) -> None:
    """The process dies within its request, and the image service is left with a part of its body."""
    world = BundleWorld(tmp_path, glance.url)
    save_key(tmp_path / "key.pem")
    location = world.upload(bundle(DATA, KEYS))
    dies = (SCRIPT + "\n").replace("register_and_die(*", "\n"
        "from nova.clients.image_data import Upload\nimport os, socket\n"
        "real = socket.socket.sendall\n"
        "def cut(self, data, *more):\n"
        "    if len(data) > 5000:\n"
        "        real(self, data[:5000]); os._exit(9)\n"
        "    return real(self, data, *more)\n"
        "socket.socket.sendall = cut\nregister_and_die(*")
    died = subprocess.run([sys.executable, "-c", dies, str(tmp_path), glance.url, location, "nowhere", "before"],
                          cwd=ROOT, timeout=60)
    assert died.returncode == KILLED and socket.socket is not None
    image_id, = glance.images
    assert any(path.endswith("/file") for _method, path, _headers in glance.requests) or glance.data[image_id] == b""
    start_anew(tmp_path, glance)
    assert glance.data[image_id] == DATA and glance.images[image_id]["image_state"] == "available"
    assert world.left() == []


def test_kill_when_the_image_is_deleted_before_the_next_start_then_the_job_is_dropped(
        tmp_path: Path, glance: FakeGlance) -> None:
    world = BundleWorld(tmp_path, glance.url)
    save_key(tmp_path / "key.pem")
    location = world.upload(bundle(DATA, KEYS))
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), glance.url, location, "update:untarring", "after"],
                   cwd=ROOT, timeout=60)
    glance.images.clear()
    again = start_anew(tmp_path, glance)
    assert again.images.states == [] and world.left() == []


def test_kill_when_the_manifest_is_replaced_meanwhile_then_what_was_registered_is_made(
        tmp_path: Path, glance: FakeGlance) -> None:
    """The owner was answered about the old one. Its parts are there still, under their own names."""
    world = BundleWorld(tmp_path, glance.url)
    location = world.upload(bundle(DATA, KEYS, name="old"))
    world.images.hooks["create"] = lambda _image_id: world.store.delete(OWNER, *location.split("/", 1))
    image_id = world.service.register_image(RegisterBundle(location=location, project_id=OWNER)).image_id
    world.settle()
    assert glance.data[image_id] == DATA
    world.service.stop(1)


def test_start_when_a_job_was_not_written_to_its_end_then_it_is_swept_once_it_is_old(
        tmp_path: Path, glance: FakeGlance) -> None:
    world = BundleWorld(tmp_path, glance.url)
    (tmp_path / "jobs/new.abc").write_text('{"image_id"')
    world.service.start()
    world.service.stop(1)
    assert world.left() == ["jobs/new.abc"], "its writer may be at it"
    world.jobs.sweep(young_s=-1)
    assert world.left() == [] and bundles_service.LOOK_S > 0


@pytest.mark.parametrize("mode", concurrency.MODES)
def test_work_when_threads_are_native_or_green_then_the_image_is_made(tmp_path: Path, mode: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.fakes.bundles_in_mode", mode, str(tmp_path)], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr
