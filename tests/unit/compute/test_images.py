from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
from keystoneauth1 import session as ksession

from nova import errors
from nova.clients import session
from nova.clients.glance import Glance
from nova.compute.guests import images
from nova.compute.guests.images import CacheSettings, ImageCache
from nova.model.image.images import Image
from nova.privileged.qemu_img import ImageFile, QemuImg, ToolLimits
from nova.virt import image_files
from tests.fakes.glance import DirectImages, FakeGlance
from tests.unit.compute import crafted
from tests.unit.compute.crafted import MIB

pytestmark = pytest.mark.skipif(not shutil.which("qemu-img"), reason="needs qemu-img")


@pytest.fixture
def server():
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def glance(server):
    service = session.ServiceEndpoint("image", "image", (server.url,), retries=1, read_timeout_s=5, retry_wait_s=0.01)
    return DirectImages(Glance(session.Caller(service, session.Credentials(ksession.Session(), None))))


@pytest.fixture
def make_cache(glance, tmp_path):
    def make(source=None, tool=None, in_use=None, **settings):
        cache = ImageCache(source or glance, CacheSettings(tmp_path / "_base", **settings), tool or QemuImg(), in_use)
        cache.open()
        return cache
    return make


@pytest.fixture
def cache(make_cache):
    return make_cache()


def qcow2_data(tmp_path, fill=b"guest data"):
    raw, path = tmp_path / "r", tmp_path / "q"
    raw.write_bytes(fill + bytes(2 * MIB - len(fill)))
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(path)], check=True)
    return path.read_bytes(), raw.read_bytes()


def left_over(tmp_path):
    return sorted(path.name for path in (tmp_path / "_base").iterdir() if path.is_file())


def test_fetch_of_a_raw_image_keeps_it_under_its_hash(server, glance, cache, tmp_path):
    data = b"disk" + bytes(MIB)
    image_id = server.add(data)
    cache.fetch(glance.show(image_id))
    name = hashlib.sha1(image_id.encode()).hexdigest()
    assert cache.path(image_id) == str(tmp_path / "_base" / name)
    assert (tmp_path / "_base" / name).read_bytes() == data
    assert left_over(tmp_path) == [name]
    assert os.stat(cache.path(image_id)).st_mode & 0o077 == 0


def test_fetch_of_a_qcow2_image_makes_it_raw(server, glance, cache, tmp_path):
    data, raw = qcow2_data(tmp_path)
    image_id = server.add(data, disk_format="qcow2")
    cache.fetch(glance.show(image_id))
    assert image_files.format_of(cache.path(image_id)) == "raw"
    with open(cache.path(image_id), "rb") as kept:
        assert kept.read() == raw
    assert os.stat(cache.path(image_id)).st_mode & 0o077 == 0
    assert len(left_over(tmp_path)) == 1


def test_fetch_of_a_qcow2_image_without_force_raw_keeps_it(server, glance, make_cache, tmp_path):
    data, raw = qcow2_data(tmp_path)
    image_id = server.add(data, disk_format="qcow2")
    cache = make_cache(force_raw=False)
    cache.fetch(glance.show(image_id))
    path = cache.path(image_id)
    assert image_files.format_of(path) == "qcow2" and image_files.virtual_bytes(path) == len(raw)


def test_fetch_of_a_ready_image_asks_nobody(server, glance, cache):
    image = glance.show(server.add(bytes(MIB)))
    cache.fetch(image)
    cache.fetch(image)
    assert server.downloads() == 1


def test_fetch_by_many_at_once_downloads_once(server, glance, make_cache):
    image = glance.show(server.add(bytes(MIB)))
    server.knobs.stall_s = 0.1
    caches = [make_cache(), make_cache()]  # two processes of one host, as far as the files can tell
    failures = []

    def fetch(number):
        try:
            caches[number % 2].fetch(image)
        except Exception as error:
            failures.append(error)
    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failures and server.downloads() == 1


def test_fetch_that_fails_fails_for_all_who_wait(server, glance, cache):
    image = glance.show(server.add(crafted_backing(server), disk_format="qcow2"))
    server.knobs.stall_s = 0.1
    failures = []

    def fetch():
        try:
            cache.fetch(image)
        except errors.image.Unacceptable as error:
            failures.append(error)
    threads = [threading.Thread(target=fetch) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(failures) == 5 and server.downloads() < 5


def crafted_backing(server):
    import tempfile
    from pathlib import Path
    with tempfile.TemporaryDirectory() as folder:
        return crafted.qcow2_with_backing_file(Path(folder) / "q", "/etc/shadow").read_bytes()


def test_fetch_of_a_lying_image_refuses_and_leaves_nothing(server, glance, cache, tmp_path):
    image = glance.show(server.add(crafted_backing(server), disk_format="raw"))
    with pytest.raises(errors.Invalid, match="declared as raw, but its content is qcow2"):
        cache.fetch(image)
    assert left_over(tmp_path) == []
    with pytest.raises(KeyError):
        cache.path(image.id)


def test_fetch_of_a_harmful_image_never_runs_the_tool(server, glance, make_cache):
    class Forbidden:
        def convert(self, *args, **kwargs):
            raise AssertionError("the tool must not see this file")
    image = glance.show(server.add(crafted_backing(server), disk_format="qcow2"))
    with pytest.raises(errors.image.Unacceptable, match="backing file"):
        make_cache(tool=Forbidden()).fetch(image)


def test_fetch_of_a_giant_small_qcow2_refuses_before_converting(server, glance, cache, tmp_path):
    path = crafted.qcow2(tmp_path / "giant", 500 << 40)
    image = glance.show(server.add(path.read_bytes(), disk_format="qcow2"))
    with pytest.raises(errors.image.TooBig, match="needs a disk of 512000 GB; the flavor has 20 GB") as caught:
        cache.fetch(image, 20)
    assert caught.value.code == "image.too_big"
    assert left_over(tmp_path) == []


def test_fetch_of_a_cached_image_for_a_smaller_disk_refuses(server, glance, cache, tmp_path):
    path = crafted.qcow2(tmp_path / "q", 3 << 30)
    image = glance.show(server.add(path.read_bytes(), disk_format="qcow2"))
    cache.fetch(image, 3)
    with pytest.raises(errors.image.TooBig):
        cache.fetch(image, 2)
    cache.fetch(image, 0)


@pytest.mark.parametrize("members", [{"container_format": "ova"}, {"container_format": "docker"},
                                     {"disk_format": "ploop"}, {"disk_format": None}])
def test_fetch_of_an_image_in_an_unknown_wrapping_refuses(server, glance, cache, members):
    with pytest.raises(errors.image.Unacceptable):
        cache.fetch(glance.show(server.add(bytes(MIB), **members)))


def test_fetch_of_an_image_that_is_not_active_refuses(server, glance, cache):
    with pytest.raises(errors.image.NotActive, match="queued"):
        cache.fetch(glance.show(server.add(status="queued")))


def test_fetch_when_the_disk_is_full_of_images_that_nobody_uses_then_the_oldest_go_for_it(server, glance, make_cache,
                                                                                           monkeypatch):
    """A tenant who boots many images once shall not keep others from booting theirs for a day."""
    ids = [server.add(bytes([number]) * MIB) for number in range(4)]
    used: set[str] = {ids[0]}
    cache = make_cache(in_use=lambda: used, sweep_interval_s=60, spare_bytes=0)
    for image_id, age_s in zip(ids[:3], (9000, 8000, 7000), strict=True):
        cache.fetch(glance.show(image_id))
        os.utime(cache.path(image_id), (time.time() - age_s,) * 2)
    directory = os.path.dirname(cache.path(ids[0]))

    def statvfs(_path):  # a disk of three images
        lying = sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory)
                    if os.path.isfile(os.path.join(directory, name)))
        return os.statvfs_result((1, 1, 0, 0, max(0, 3 * MIB - lying), 0, 0, 0, 0, 255))
    monkeypatch.setattr(images.os, "statvfs", statvfs)
    cache.fetch(glance.show(ids[3]))
    assert [one for one in ids if _there(cache, one)] == [ids[0], ids[2], ids[3]]
    used.update(ids)
    with pytest.raises(errors.host.DiskFull):
        cache.fetch(glance.show(server.add(bytes([9]) * MIB)))


def _there(cache, image_id):
    with contextlib.suppress(KeyError):
        return bool(cache.path(image_id))
    return False


def test_fetch_when_the_disk_has_not_the_space_refuses_at_once(server, glance, make_cache, tmp_path):
    image = glance.show(server.add(bytes(MIB)))
    with pytest.raises(errors.host.DiskFull, match="no space left for image"):
        make_cache(spare_bytes=1 << 60).fetch(image)
    assert server.downloads() == 0 and left_over(tmp_path) == []


def test_fetch_when_the_disk_fills_up_leaves_nothing(server, glance, make_cache, tmp_path):
    class FullDisk:
        def download(self, image, path, limit_bytes=None):
            with open(path, "wb") as part:
                part.write(bytes(4096))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    image = glance.show(server.add(bytes(MIB)))
    with pytest.raises(errors.HostRefused, match="no space left"):
        make_cache(FullDisk()).fetch(image)
    assert left_over(tmp_path) == []


REALLY_FULL = """
import resource, signal, sys
from keystoneauth1 import session as ksession
from nova.clients import session
from nova.clients.glance import Glance
from nova.compute.guests.images import CacheSettings, ImageCache
from nova import errors
from tests.fakes.glance import DirectImages
from nova.privileged.qemu_img import ImageFile, QemuImg
from pathlib import Path
url, image_id, folder = sys.argv[1:]
service = session.ServiceEndpoint("image", "image", (url,), retries=0)
glance = DirectImages(Glance(session.Caller(service, session.Credentials(ksession.Session(), None))))
cache = ImageCache(glance, CacheSettings(Path(folder)), QemuImg())
cache.open()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    cache.fetch(glance.show(image_id))
except errors.host.DiskFull as error:
    print(error)
"""


def test_fetch_when_the_system_refuses_to_write_more_leaves_nothing(server, tmp_path):
    image_id = server.add(bytes(2 * MIB))
    done = subprocess.run([sys.executable, "-c", REALLY_FULL, server.url, image_id, str(tmp_path / "_base")],
                          capture_output=True, text=True, timeout=60, check=True)
    assert f"no space left for image {image_id}" in done.stdout
    assert left_over(tmp_path) == []


def test_open_after_a_kill_removes_parts_and_keeps_the_ready(make_cache, tmp_path):
    base = tmp_path / "_base"
    base.mkdir()
    (base / f"{'a' * 40}.fetch.part").write_text("half")
    (base / f"{'a' * 40}.raw.part").write_text("half")
    (base / ("b" * 40)).write_text("ready")
    make_cache()
    assert left_over(tmp_path) == ["b" * 40]


def test_open_while_another_process_fetches_leaves_its_part_alone(make_cache, tmp_path):
    base, key = tmp_path / "_base", "a" * 40
    first = make_cache()
    (base / f"{key}.fetch.part").write_text("half")
    with first._locked(key):
        make_cache()
    assert left_over(tmp_path) == [f"{key}.fetch.part"]


def test_sweep_removes_only_what_is_old_and_unused(server, glance, make_cache, tmp_path):
    cache = make_cache(minimum_age_s=100)
    ids = [server.add(bytes(MIB)) for _ in range(3)]
    for image_id in ids:
        cache.fetch(glance.show(image_id))
    for image_id in ids[:2]:
        os.utime(cache.path(image_id), (time.time() - 1000,) * 2)
    assert cache.sweep({ids[0]}) == (os.path.basename(str(tmp_path / hashlib.sha1(ids[1].encode()).hexdigest())),)
    assert os.path.exists(cache.path(ids[0])) and os.path.exists(cache.path(ids[2]))
    with pytest.raises(KeyError):
        cache.path(ids[1])


def test_sweep_when_removal_is_off_removes_nothing(server, glance, make_cache):
    cache = make_cache(minimum_age_s=0, remove_unused=False)
    image_id = server.add(bytes(MIB))
    cache.fetch(glance.show(image_id))
    assert cache.sweep(()) == () and cache.path(image_id)


def old_image(server, glance, cache):
    image_id = server.add(bytes(MIB))
    cache.fetch(glance.show(image_id))
    os.utime(cache.path(image_id), (time.time() - 5000,) * 2)
    return image_id


@pytest.mark.parametrize("harm", [lambda path: os.truncate(path, 4096), lambda path: os.truncate(path, 2 * MIB),
                                  os.unlink], ids=["cut", "grown", "lost"])
@pytest.mark.parametrize("again", [False, True], ids=["same process", "after a restart"])
def test_fetch_when_a_ready_image_is_lost_or_cut_short_then_it_is_fetched_anew(server, glance, make_cache, harm, again):
    cache, data = make_cache(), b"disk" + bytes(MIB)
    image_id = server.add(data)
    cache.fetch(glance.show(image_id))
    harm(cache.path(image_id))
    cache = make_cache() if again else cache
    cache.fetch(glance.show(image_id))
    with open(cache.path(image_id), "rb") as ready:
        assert ready.read() == data


def test_path_when_a_raw_image_was_cut_and_fetched_anew_as_it_is_then_the_whole_one_counts(server, glance, make_cache):
    cache, image_id = make_cache(), server.add(bytes(MIB))
    cache.fetch(glance.show(image_id))
    raw = cache.path(image_id)
    whole = f"{raw}.qcow2"
    shutil.copy(raw, whole)  # as force_raw_images = false keeps it
    os.truncate(raw, 4096)
    assert cache.path(image_id) == whole


def test_fetch_when_an_older_release_made_it_ready_then_it_is_believed(server, glance, make_cache):
    cache, image_id = make_cache(), server.add(bytes(MIB))
    cache.fetch(glance.show(image_id))
    shutil.rmtree(cache._directory / ".sizes")
    server.images.clear()
    cache.fetch(Image(id=image_id, disk_format="raw", container_format="bare", status="active"))


def test_keeps_when_asked_of_paths_then_it_knows_its_own(cache):
    name = hashlib.sha1(b"one").hexdigest()
    assert cache.keeps("one", {str(cache._directory / name)})
    assert cache.keeps("one", {str(cache._directory / f"{name}.qcow2")})
    assert not cache.keeps("two", {str(cache._directory / name)}) and not cache.keeps("one", ())


def test_sweep_when_the_last_guest_went_just_now_then_the_age_counts_from_there(server, glance, make_cache):
    cache = make_cache(minimum_age_s=1000)
    image_id = old_image(server, glance, cache)
    assert cache.sweep({image_id}) == () == cache.sweep(())
    os.utime(cache.path(image_id), (time.time() - 1001,) * 2)
    assert len(cache.sweep(())) == 1 and list((cache._directory / ".sizes").iterdir()) == []


def test_sweep_when_an_image_is_wanted_at_that_very_moment_then_it_stays(server, glance, make_cache, monkeypatch):
    cache = make_cache(minimum_age_s=1000)
    image_id = old_image(server, glance, cache)
    rename, moved = os.rename, []

    def wanted(path, to):
        """Just before it is taken away."""
        if not moved:
            cache.fetch(glance.show(image_id))  # finds it ready, and marks it as used
        moved.append(str(to))
        rename(path, to)
    monkeypatch.setattr(os, "rename", wanted)
    assert cache.sweep(()) == () and os.path.exists(cache.path(image_id))
    assert len(moved) == 2 and moved[1] == cache.path(image_id)
    assert len(left_over(cache._directory.parent)) == 1


def test_sweep_when_the_image_is_being_fetched_again_then_it_is_left_alone(server, glance, make_cache):
    cache = make_cache(minimum_age_s=1000)
    image_id = old_image(server, glance, cache)
    with cache._locked(os.path.basename(cache.path(image_id))):
        assert cache.sweep(()) == ()
    assert len(cache.sweep(())) == 1


def test_sweep_when_it_was_killed_half_way_then_the_next_start_removes_the_rest(server, glance, make_cache, tmp_path):
    cache = make_cache(minimum_age_s=1000)
    path = cache.path(old_image(server, glance, cache))
    os.rename(path, f"{path}.going.part")
    assert cache.sweep(()) == ()
    make_cache()
    assert left_over(tmp_path) == []


def test_sweep_when_there_are_very_many_then_it_takes_them_in_parts(server, glance, make_cache, monkeypatch):
    monkeypatch.setattr(images, "MOST_REMOVED", 2)
    cache = make_cache(minimum_age_s=1000)
    for _ in range(3):
        old_image(server, glance, cache)
    assert [len(cache.sweep(())) for _ in range(3)] == [2, 1, 0]


def test_convert_beyond_its_limits_fails_and_says_so(tmp_path):
    source = crafted.qcow2(tmp_path / "q", 8 * MIB)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", "write -P 7 0 8M", str(source)], check=True, capture_output=True)
    with pytest.raises(errors.host.ImageTool, match="exceeded its limits|File too large"):
        QemuImg().convert(ImageFile(str(source), "qcow2"), ImageFile(str(tmp_path / "r"), "raw"), max_bytes=MIB)
    with pytest.raises(errors.NovaError):
        QemuImg(ToolLimits(memory_mb=16)).convert(ImageFile(str(source), "qcow2"),
                                                  ImageFile(str(tmp_path / "r2"), "raw"))
