"""The images of one host: each fetched once, checked, made ready for guests' disks, and kept while it is used.

A ready image is ``<cache>/<sha1 of its id>`` (raw) or ``<cache>/<sha1 of its id>.qcow2``: the name is the record of its
format. How long it is lies in ``.sizes/<name>``: what is lost or cut short is fetched anew. What is being fetched or
converted has a name ending in ``.part``, is written by the holder of the image's lock only, and becomes ready by one
rename; what a kill leaves of it is removed at start.
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

from nova import concurrency, errors
from nova.compute.guests import image_format
from nova.model.image.images import Image
from nova.privileged import files, guest_files
from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.virt.image_files import KEPT_SUFFIX, check_size, virtual_bytes

LOG = logging.getLogger(__name__)

PART = ".part"
MOST_REMOVED = 100  # a sweep
MISSED_SWEEPS = 3  # without a mark of any host an image is used by none
FETCH_TO_USE_S = 600.0  # how long after a fetch the guest it was for may not count as using the image yet
PATIENCE_S = 2 * 3600  # for another process of this host (or of hosts that share the directory) to finish a fetch


class ImageSource(Protocol):
    """Where images come from (``nova.clients.image_proxy.ImageProxy``)."""

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Write the image's data to the new file ``path``; its length in bytes. Unavailable; image.Corrupt,
        image.TooLong; OSError from the disk. The caller removes what a failure leaves."""


@dataclass(frozen=True)
class CacheSettings:
    """``directory`` is below ``instances_path``. ``force_raw``: keep qcow2 images as raw files, too."""

    directory: Path
    force_raw: bool = True
    minimum_age_s: float = 86400.0
    remove_unused: bool = True
    sweep_interval_s: float = 2400.0  # as operators give it: 0 is a minute, negative never
    spare_bytes: int = 64 << 20  # kept free for the host when a fetch begins


@dataclass
class _Flight:
    """A fetch in progress; whoever wants the same image waits for it and shares its end."""

    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


class ImageCache:
    """``in_use``: asks for the ids of the images that guests use; without it none goes before its time."""

    def __init__(self, source: ImageSource, settings: CacheSettings, tool: QemuImg,
                 in_use: Callable[[], Collection[str]] | None = None) -> None:
        self._source, self._settings, self._tool, self._in_use = source, settings, tool, in_use
        self._directory = settings.directory
        self._flights: dict[str, _Flight] = {}
        self._mutex = threading.Lock()

    @property
    def sweep_interval_s(self) -> float:
        """As ``CacheSettings`` has it."""
        return self._settings.sweep_interval_s

    def open(self) -> None:
        """Make the directory and remove what a kill left half done. Once, at start."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._directory.chmod(0o711)  # QEMU's user may open what it is told of, and nobody lists
        for part in self._directory.glob(f"*{PART}"):
            with contextlib.suppress(errors.host.LockBusy), self._locked(part.name.split(".")[0], patience_s=0):
                LOG.info("removing %s, which was never finished", part)
                part.unlink(missing_ok=True)

    def fetch(self, image: Image, max_gb: int | None = None) -> None:
        """Have the image ready. ``max_gb``: the disk it is for (None or 0: any size).

        Invalid (image.unacceptable, image.too_big), Conflict, NotFound: no host can use it. HostRefused: no space
        here. Unavailable: the image service.
        """
        while True:
            flight, mine = self._join(image.id)
            if mine:
                self._fly(flight, image, max_gb)
                break
            flight.done.wait()
            if flight.error is None:
                break
            if not isinstance(flight.error, errors.image.TooBig):  # for the other's disk, but maybe not for this one
                raise flight.error
        if max_gb:
            check_size(image, virtual_bytes(self.path(image.id)), max_gb)

    def path(self, image_id: str) -> str:
        """The ready file; its format is ``image_files.format_of`` its name. KeyError when the image is not here."""
        for ready in self._names(image_id):
            if ready.exists() and self._is_whole(ready):
                return str(ready)
        raise KeyError(image_id)

    def keeps(self, image_id: str, paths: Collection[str]) -> bool:
        """Whether one of these paths is where this image lies when it is ready."""
        return any(str(ready) in paths for ready in self._names(image_id))

    def sweep(self, in_use: Collection[str]) -> tuple[str, ...]:
        """Remove ready images that are not of ``in_use`` (image ids) and old enough; the names of the removed.

        The age counts from the last sweep that found an image in use, or from its last fetch: a kill in the middle
        leaves each image whole or gone.
        """
        if not self._settings.remove_unused or not self._directory.is_dir():
            return ()
        removed: list[str] = []
        for ready in sorted(self._unused(in_use)):
            if len(removed) < MOST_REMOVED and self._remove_if_old(ready, self._settings.minimum_age_s):
                removed.append(ready.name)
        return tuple(removed)

    def _unused(self, in_use: Collection[str]) -> list[Path]:
        """Those that are ready; whoever shares the directory sees by their times that the others are used."""
        for image_id in in_use:
            self._touch(image_id)
        keep = {_key(image_id) for image_id in in_use}
        return [ready for ready in self._directory.iterdir()
                if len(key := ready.name.split(".")[0]) == 40 and not ready.name.endswith(PART) and key not in keep]

    # --- one fetch

    def _join(self, image_id: str) -> tuple[_Flight, bool]:
        with self._mutex:
            if flight := self._flights.get(image_id):
                return flight, False
            flight = self._flights[image_id] = _Flight()
            return flight, True

    def _fly(self, flight: _Flight, image: Image, max_gb: int | None) -> None:
        try:
            self._fetch(image, max_gb)
        except Exception as error:
            flight.error = error
            raise
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
            looked = image_format.look(str(part), image.disk_format, image.id)
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
        """The size first: who dies in between finds no file of that size, and fetches it again."""
        files.write_whole(self._size_file(ready), str(part.stat().st_size), 0o600)
        os.replace(part, ready)

    def _need_space(self, image: Image, size: int) -> None:
        wanted = size + self._settings.spare_bytes
        if self._free_bytes() < wanted:
            self._make_room(wanted)
        if self._free_bytes() < wanted:
            raise errors.host.DiskFull(what=f"image {image.id}", host=os.uname().nodename)

    def _free_bytes(self) -> int:
        free = os.statvfs(self._directory)
        return free.f_bavail * free.f_frsize

    def _make_room(self, wanted: int) -> None:
        """Many images that somebody booted once must not keep others' from coming: those that no guest uses go before
        their time, the one first that was used last. Not what another host that shares the directory may use: each
        marks its own with each of its sweeps."""
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
        """Whether the image is ready; if so it counts as used now."""
        for ready in self._names(image_id):
            with contextlib.suppress(FileNotFoundError):
                if self._is_whole(ready):
                    guest_files.mark_used(ready)
                    return True
        return False

    def _is_whole(self, ready: Path) -> bool:
        """It has the length that it had when it became ready. One that was fetched by an older release is believed."""
        size = ready.stat().st_size
        try:
            wanted = int(self._size_file(ready).read_text())
        except (FileNotFoundError, ValueError):
            return True
        if size != wanted:
            LOG.warning("the cached image %s has %d bytes instead of %d, and is fetched anew", ready.name, size, wanted)
        return size == wanted

    def _size_file(self, ready: Path) -> Path:
        return self._directory / ".sizes" / ready.name

    def _locked(self, key: str, patience_s: float = PATIENCE_S) -> contextlib.AbstractContextManager[None]:
        return files.locked(self._directory / ".locks" / key, patience_s)

    def _remove_if_old(self, ready: Path, age_s: float) -> bool:
        """Taken away by its name first: whoever marks it as used from here on finds that it is not there, and fetches
        it; whoever did so just before gets it back."""
        going, key = ready.with_name(f"{ready.name}.going{PART}"), ready.name.split(".")[0]
        with contextlib.suppress(FileNotFoundError, errors.host.LockBusy), self._locked(key, patience_s=0):
            if not self._is_old(ready, age_s):
                return False
            os.rename(ready, going)
            if not self._is_old(going, age_s):
                os.rename(going, ready)
                return False
            LOG.info("removing the cached image %s, which no guest has used for long", ready.name)
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
