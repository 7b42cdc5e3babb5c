"""The image cache of a host: each image is fetched once, checked, prepared for guests' disks, and kept while it is
used.

A ready image is ``<cache>/<sha1 of its id>`` (raw) or ``<cache>/<sha1 of its id>.qcow2``: the name records its format.
``.sizes/<name>`` has its length; a lost or truncated image is fetched again. A file that is being fetched or converted
has a name ending in ``.part``. Only the holder of the image's lock writes it, and one rename makes it ready; leftovers
of a kill are removed at start.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nova import concurrency, errors, failures
from nova.compute.guests import image_format
from nova.model.image.images import Image
from nova.privileged import files, guest_files
from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.virt.image_files import KEPT_SUFFIX, check_size, virtual_bytes

LOG = logging.getLogger(__name__)

PART = ".part"
MOST_REMOVED = 100  # in one sweep
MISSED_SWEEPS = 3  # after so many sweeps without a mark by any host, an image counts as unused
FETCH_TO_USE_S = 600.0  # after a fetch, its guest may not count as using the image for this long
TIMEOUT_S = 2 * 3600  # for another process of this host, or of hosts that share the directory, to finish a fetch


class ImageSource(Protocol):
    """The source of images (``nova.clients.image_proxy.ImageProxy``)."""

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Write the image's data to the new file ``path``, and return its length in bytes. Raises Unavailable,
        image.Corrupt, image.TooLong; OSError from the disk. The caller removes a partial file."""


@dataclass(frozen=True)
class CacheSettings:
    """Settings of the cache. ``directory`` is below ``instances_path``. ``force_raw``: convert qcow2 images to raw
    files, too."""

    directory: Path
    force_raw: bool = True
    minimum_age_s: float = 86400.0
    remove_unused: bool = True
    sweep_interval_s: float = 2400.0  # as the operator sets it: 0 means a minute, negative means never
    spare_bytes: int = 64 << 20  # kept free for the host at the start of a fetch


@dataclass
class _Flight:
    """A fetch in progress; other requests for the same image wait for it and share its result."""

    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


class ImageCache:
    """The image cache. ``in_use``: returns the ids of the images that guests use; without it, no image is removed
    early."""

    def __init__(self, source: ImageSource, settings: CacheSettings, tool: QemuImg,
                 in_use: Callable[[], Collection[str]] | None = None) -> None:
        self._source, self._settings, self._tool, self._in_use = source, settings, tool, in_use
        self._directory = settings.directory
        self._flights: dict[str, _Flight] = {}
        self._mutex = threading.Lock()

    @property
    def sweep_interval_s(self) -> float:
        """Seconds between sweeps, as in ``CacheSettings``."""
        return self._settings.sweep_interval_s

    def open(self) -> None:
        """Create the directory, and remove incomplete files that a kill left. Called once, at start."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._directory.chmod(0o711)  # QEMU's user may open files by name, but no other user may list them
        for part in self._directory.glob(f"*{PART}"):
            with contextlib.suppress(errors.host.LockBusy), self._locked(part.name.split(".")[0], timeout_s=0):
                LOG.info("removing the incomplete image file %s", part)
                part.unlink(missing_ok=True)

    def fetch(self, image: Image, max_gb: int | None = None) -> None:
        """Make the image ready. ``max_gb``: the size of the disk that it is for (None or 0: any size).

        Raises Invalid (image.unacceptable, image.too_big), Conflict, NotFound if no host can use the image; HostRefused
        if there is no space here; Unavailable if the image service failed.
        """
        while True:
            flight, mine = self._join(image.id)
            if mine:
                self._fly(flight, image, max_gb)
                break
            flight.done.wait()
            if flight.error is None:
                break
            if not isinstance(flight.error, errors.image.TooBig):  # for the other disk, but maybe not for this one
                raise flight.error
        if max_gb:
            check_size(image, virtual_bytes(self.path(image.id)), max_gb)

    def path(self, image_id: str) -> str:
        """Return the ready file; ``image_files.format_of`` its name is its format. Raises KeyError if the image is not
        here."""
        for ready in self._names(image_id):
            if ready.exists() and self._is_whole(ready):
                return str(ready)
        raise KeyError(image_id)

    def keeps(self, image_id: str, paths: Collection[str]) -> bool:
        """Return whether one of these paths is the location of this image when it is ready."""
        return any(str(ready) in paths for ready in self._names(image_id))

    def sweep(self, in_use: Collection[str]) -> tuple[str, ...]:
        """Remove ready images that are old enough and not in ``in_use`` (image ids); return the names of the removed
        files.

        The age counts from the last sweep that found the image in use, or from its last fetch. A kill during the sweep
        leaves each image either complete or removed.
        """
        if not self._settings.remove_unused or not self._directory.is_dir():
            return ()
        removed: list[str] = []
        for ready in sorted(self._unused(in_use)):
            if len(removed) < MOST_REMOVED and self._remove_if_old(ready, self._settings.minimum_age_s):
                removed.append(ready.name)
        return tuple(removed)

    def _unused(self, in_use: Collection[str]) -> list[Path]:
        """Return ready images that are not in use. Marks the others as used, for other hosts that share the
        directory."""
        for image_id in in_use:
            self._touch(image_id)
        keep = {_key(image_id) for image_id in in_use}
        return [ready for ready in self._directory.iterdir()
                if len(key := ready.name.split(".")[0]) == 40 and not ready.name.endswith(PART) and key not in keep]

    # --- fetching

    def _join(self, image_id: str) -> tuple[_Flight, bool]:
        with self._mutex:
            if flight := self._flights.get(image_id):
                return flight, False
            flight = self._flights[image_id] = _Flight()
            return flight, True

    def _fly(self, flight: _Flight, image: Image, max_gb: int | None) -> None:
        def keep(error: Exception) -> None:
            flight.error = error
        try:
            with failures.reported_to(keep, on=Exception):
                self._fetch(image, max_gb)
        finally:
            with self._mutex:
                del self._flights[image.id]
            flight.done.set()

    def _fetch(self, image: Image, max_gb: int | None) -> None:
        if self._touch(image.id):
            return
        if image.status != "active":
            raise errors.image.NotActive(image_id=image.id, status=image.status)
        if image.container_format not in image_format.CONTAINERS:
            raise errors.image.Unacceptable(image_id=image.id, reason="its container format "
                                            f"{image.container_format!r} is not supported here")
        key = _key(image.id)
        with self._locked(key):
            if not self._touch(image.id):
                self._get(image, self._directory / f"{key}.fetch{PART}", max_gb)

    def _get(self, image: Image, part: Path, max_gb: int | None) -> None:
        started = time.monotonic()
        part.unlink(missing_ok=True)
        with self._cleaning(part), _disk_errors(f"image {image.id}"):
            self._need_space(image, image.size_bytes)
            self._source.download(image, str(part))
            looked = image_format.inspect_image(str(part), image.disk_format, image.id)
            if max_gb:
                check_size(image, looked.virtual_bytes, max_gb)
            self._make_ready(image, part, looked)
        LOG.info("image %s is ready after %.1f s", image.id, time.monotonic() - started)

    def _make_ready(self, image: Image, part: Path, looked: image_format.Looked) -> None:
        raw, kept = self._names(image.id)
        if looked.disk_format not in image_format.INTERPRETED:
            self._put(part, raw)
        elif looked.disk_format == "qcow2" and not self._settings.force_raw:
            self._put(part, kept)
        else:
            converted = raw.with_name(f"{raw.name}.raw{PART}")
            converted.unlink(missing_ok=True)
            with self._cleaning(converted):
                self._tool.convert(ImageFile(str(part), looked.disk_format), ImageFile(str(converted), "raw"),
                                   max_bytes=looked.virtual_bytes + (1 << 20))
                converted.chmod(0o600)
                concurrency.run_in_thread(_sync, str(converted))
                self._put(converted, raw)

    def _put(self, part: Path, ready: Path) -> None:
        """Publish the file; its size is written first, so that after a crash in between, the sizes differ and it is
        fetched again."""
        files.write_whole(self._size_file(ready), str(part.stat().st_size), 0o600)
        os.replace(part, ready)

    def _need_space(self, image: Image, size: int) -> None:
        wanted = size + self._settings.spare_bytes
        if self._free_bytes() < wanted:
            self._free_space(wanted)
        if self._free_bytes() < wanted:
            raise errors.host.DiskFull(what=f"image {image.id}", host=os.uname().nodename)

    def _free_bytes(self) -> int:
        free = os.statvfs(self._directory)
        return free.f_bavail * free.f_frsize

    def _free_space(self, wanted: int) -> None:
        """Remove unused images before their time, least recently used first, so that many images that were booted once
        do not block new ones. Keeps images that another host with the same directory may use: each host marks its own
        with each sweep."""
        interval_s = self._settings.sweep_interval_s
        if self._in_use is None or not self._settings.remove_unused or interval_s < 0:
            return
        age_s = MISSED_SWEEPS * max(interval_s, 60.0)
        for ready in sorted(self._unused(self._in_use()), key=lambda one: one.stat().st_mtime):
            if self._free_bytes() >= wanted:
                return
            self._remove_if_old(ready, age_s)

    # --- files

    def _names(self, image_id: str) -> tuple[Path, Path]:
        key = _key(image_id)
        return self._directory / key, self._directory / f"{key}{KEPT_SUFFIX}"

    def _touch(self, image_id: str) -> bool:
        """Return whether the image is ready; if so, mark it as used now."""
        for ready in self._names(image_id):
            with contextlib.suppress(FileNotFoundError):
                if self._is_whole(ready):
                    guest_files.mark_used(ready)
                    return True
        return False

    def _is_whole(self, ready: Path) -> bool:
        """True if the file has the length that it had when it became ready. Files of older releases have no recorded
        length, and are accepted."""
        size = ready.stat().st_size
        try:
            wanted = int(self._size_file(ready).read_text())
        except (FileNotFoundError, ValueError):
            return True
        if size != wanted:
            LOG.warning("the cached image %s has %d bytes instead of %d; fetching it again", ready.name, size, wanted)
        return size == wanted

    def _size_file(self, ready: Path) -> Path:
        return self._directory / ".sizes" / ready.name

    def _locked(self, key: str, timeout_s: float = TIMEOUT_S) -> contextlib.AbstractContextManager[None]:
        return files.locked(self._directory / ".locks" / key, timeout_s)

    def _remove_if_old(self, ready: Path, age_s: float) -> bool:
        """Remove the file if it is old enough. It is renamed first: a process that marks it as used after that does not
        find it, and fetches it again. If a process marked it just before, it is renamed back."""
        going, key = ready.with_name(f"{ready.name}.going{PART}"), ready.name.split(".")[0]
        with contextlib.suppress(FileNotFoundError, errors.host.LockBusy), self._locked(key, timeout_s=0):
            if not self._is_old(ready, age_s):
                return False
            os.rename(ready, going)
            if not self._is_old(going, age_s):
                os.rename(going, ready)
                return False
            LOG.info("removing the cached image %s, which no guest has used recently", ready.name)
            concurrency.run_in_thread(going.unlink)
            self._size_file(ready).unlink(missing_ok=True)
            return True
        return False

    def _is_old(self, path: Path, age_s: float) -> bool:
        return time.time() - path.stat().st_mtime >= max(age_s, FETCH_TO_USE_S)

    @contextlib.contextmanager
    def _cleaning(self, path: Path) -> Iterator[None]:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _key(image_id: str) -> str:
    return hashlib.sha1(image_id.encode(), usedforsecurity=False).hexdigest()


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise errors.host.DiskFull(what=what, host=os.uname().nodename) from error
        raise
