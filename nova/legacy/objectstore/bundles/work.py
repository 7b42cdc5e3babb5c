"""The long part of making an image of a bundle: step by step, each of which may be repeated from the first on."""

from __future__ import annotations

import base64
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from nova import concurrency, errors
from nova.clients.image_data import SeekableFile, Upload
from nova.legacy.objectstore.bundles.jobs import BundleJob
from nova.legacy.objectstore.bundles.manifest import location_of
from nova.legacy.objectstore.bundles.streams import BundleKey, Parts, decrypt, read_key
from nova.legacy.objectstore.bundles.tarball import ExpectedImage, unpack
from nova.legacy.objectstore.bundles.workdirs import WorkFolders
from nova.legacy.objectstore.room import DiskRoom
from nova.legacy.objectstore.store import ObjectStore
from nova.model.base import Json
from nova.model.image.images import Image, NewImage

LOG = logging.getLogger(__name__)

#: Property of an image, and its value at the ends.
STATE, PENDING, AVAILABLE = "image_state", "pending", "available"
ACTIVE, SAVING, QUEUED = "active", "saving", "queued"
GIVE_UP_S = 86400.0
UPLOADS = 3  # tries while the image service answers


class BundleImages(Protocol):
    """What is asked of the image service, with our own credentials (``nova.clients.glance.Glance``)."""

    def create(self, image: NewImage) -> Image:
        """A record without data. service.Forbidden, service.Conflict; Unavailable, also when it may be there."""

    def show(self, image_id: str) -> Image:
        """image.NotFound, Unavailable."""

    def update(self, image_id: str, fields: dict[str, object]) -> Json:
        """Set custom properties. image.NotFound, Unavailable, service.Forbidden."""

    def send(self, image_id: str, data: Upload) -> None:
        """image.NotFound; service.Conflict: it is not queued; service.Invalid, service.Forbidden: it is refused;
        Unavailable, also when it may have come through."""


class BundleCert(Protocol):
    """What is asked of nova-cert."""

    def decrypt_text(self, project_id: str, text: str) -> str:
        """Of base64. Unavailable; NotFound, Invalid: there is no such key, or it was another."""


class WorkBounds(NamedTuple):
    """``largest``: bytes of an image. ``saving_s``: how long an upload that hangs in the image service is waited for,
    and ``pause_s`` between two looks or tries. ``least_free``: bytes that stay free on the disk."""

    largest: int
    saving_s: float = 300.0
    pause_s: float = 2.0
    least_free: int = 0


class BundleStep(NamedTuple):
    """``run``: from the job, and its folder, in which the step before has left its file."""

    state: str
    failed: str
    run: Callable[[BundleWork, BundleJob, Path], None]


class BundleWork:
    """Makes images of bundles. Nothing is kept in it."""

    def __init__(self, store: ObjectStore, images: BundleImages, cert: BundleCert, folders: WorkFolders,
                 bounds: WorkBounds) -> None:
        self._store, self._images, self._cert, self._folders, self.bounds = store, images, cert, folders, bounds
        self.room = DiskRoom(folders.base, bounds.least_free)

    def run(self, job: BundleJob) -> None:
        """The image is available, or failed, and its owner can see it. image.NotFound: it was deleted; there is nothing
        more to do. Unavailable: another time. Other NovaErrors: the image service takes no state of it."""
        if self._images.show(job.image_id).status != ACTIVE:  # else it came to its end, and nobody could say so
            try:
                with self._folders.fresh() as folder:
                    if not all(self._is_done(step, job, folder) for step in STEPS):
                        return
            except OSError as error:
                raise _disk(error) from None
        self._images.update(job.image_id, {STATE: AVAILABLE})
        LOG.info("Image %s of the bundle %s is available", job.image_id, job.location)

    def _is_done(self, step: BundleStep, job: BundleJob, folder: Path) -> bool:
        self._images.update(job.image_id, {STATE: step.state})
        try:
            step.run(self, job, folder)
            return True
        except errors.image.NotFound:
            raise
        except (errors.Unavailable, errors.PeerTooOld) as error:
            if time.time() - job.created < GIVE_UP_S:
                raise
            failure: errors.NovaError = errors.bundle.TooLate(reason=error.message)
        except errors.NovaError as error:
            failure = error
        except OSError as error:
            failure = _disk(error)
        except Exception:
            LOG.exception("A failure that nobody foresaw, with image %s (%s)", job.image_id, step.failed)
            failure = errors.Bug()
        LOG.warning("Image %s could not be made of the bundle %s of project %s (%s): %s. %s", job.image_id,
                    job.location, job.project_id, step.failed, failure.message.rstrip("."), failure.cure)
        self._images.update(job.image_id, {STATE: step.failed})
        return False

    def give_up(self, job: BundleJob) -> None:
        """Let its owner see that it failed, where that can be said."""
        with contextlib.suppress(errors.NovaError):
            self._images.update(job.image_id, {STATE: STEPS[0].failed})

    def download(self, job: BundleJob, folder: Path) -> None:
        """The parts become one file: from then on their bucket is not needed."""
        Parts(self._store, job.bucket_owner, location_of(job.location), job.manifest).join(
            folder / "bundle", self.bounds.largest, self.room)

    def decrypt(self, job: BundleJob, folder: Path) -> None:
        """With the key that nova-cert alone can read."""
        decrypt(folder / "bundle", folder / "image.tar.gz", self._key(job), self.room)
        (folder / "bundle").unlink()

    def _key(self, job: BundleJob) -> BundleKey:
        texts = [base64.b64encode(bytes.fromhex(one)).decode()
                 for one in (job.manifest.encrypted_key, job.manifest.encrypted_iv)]
        try:
            key, iv = (self._cert.decrypt_text(job.project_id, text) for text in texts)
        except (errors.Unavailable, errors.PeerTooOld):
            raise
        except errors.NovaError as error:
            raise errors.bundle.KeyRefused(reason=error.message) from None
        return read_key(key, iv)

    def unpack(self, job: BundleJob, folder: Path) -> None:
        """The tarball's file is the image."""
        unpack(folder / "image.tar.gz", folder / "image", ExpectedImage(
            self.bounds.largest, job.manifest.facts.size, job.manifest.sha1), self.room)
        (folder / "image.tar.gz").unlink()

    def upload(self, job: BundleJob, folder: Path) -> None:
        """Once: the image service takes data of an image that has none, and gives up an upload whose sender has gone
        after a while."""
        reason = ""
        for _ in range(UPLOADS):
            if self._settled(job.image_id) == ACTIVE:
                return
            try:
                with (folder / "image").open("rb") as data:
                    return self._images.send(job.image_id, _WantedUpload(data))
            except (errors.Unavailable, errors.Conflict) as error:  # it may have come through, or another was first
                reason = error.message
            except (errors.Invalid, errors.Forbidden) as error:
                self._images.show(job.image_id)  # 410 is one of them: the image was deleted meanwhile
                raise errors.bundle.Upload(reason=error.message) from None
            concurrency.sleep(self.bounds.pause_s)
        if self._settled(job.image_id) != ACTIVE:
            raise errors.bundle.Upload(reason=reason)

    def _settled(self, image_id: str) -> str:
        """Its status, once no upload of before is under way: active or queued. image.NotFound."""
        deadline = time.monotonic() + self.bounds.saving_s
        while (status := self._images.show(image_id).status) == SAVING and time.monotonic() < deadline:
            concurrency.sleep(self.bounds.pause_s)
            concurrency.check_wanted()
        if status not in (ACTIVE, QUEUED):
            raise errors.bundle.Upload(reason=f"the image is {status} there, and not queued")
        return status


def _disk(error: OSError) -> errors.NovaError:
    return errors.bundle.Disk(reason=error.strerror or type(error).__name__)


class _WantedUpload(Upload):
    """Ends when nobody wants it any more."""

    def __init__(self, file: SeekableFile) -> None:
        super().__init__(file)

    def __iter__(self) -> Iterator[bytes]:
        for piece in super().__iter__():
            concurrency.check_wanted()
            yield piece


STEPS = (
    BundleStep("downloading", "failed_download", BundleWork.download),
    BundleStep("decrypting", "failed_decrypt", BundleWork.decrypt),
    BundleStep("untarring", "failed_untar", BundleWork.unpack),
    BundleStep("uploading", "failed_upload", BundleWork.upload),
)
