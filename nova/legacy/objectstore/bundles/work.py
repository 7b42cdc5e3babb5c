"""The steps that create an image from a bundle. After an interruption all steps are repeated from the first."""

from __future__ import annotations

import base64
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from nova import concurrency, errors, failures
from nova.clients.image_data import SeekableFile, Upload
from nova.legacy.objectstore.bundles.jobs import BundleJob
from nova.legacy.objectstore.bundles.manifest import location_of
from nova.legacy.objectstore.bundles.streams import BundleKey, Parts, decrypt, read_key
from nova.legacy.objectstore.bundles.tarball import ExpectedImage, unpack
from nova.legacy.objectstore.bundles.workdirs import WorkFolders
from nova.legacy.objectstore.disk_space import DiskSpace
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.images import Image, NewImage

LOG = logging.getLogger(__name__)

#: Property of an image, and its first and last values.
STATE, PENDING, AVAILABLE = "image_state", "pending", "available"
ACTIVE, SAVING, QUEUED = "active", "saving", "queued"
GIVE_UP_S = 86400.0
UPLOADS = 3  # upload attempts while the image service responds


class BundleImages(Protocol):
    """The calls to the image service, with nova's own credentials (``nova.clients.glance.Glance``)."""

    def create(self, image: NewImage) -> Image:
        """Create an image record without data.

        Raises service.Forbidden, service.Conflict; Unavailable, also if the record may have been created.
        """

    def show(self, image_id: str) -> Image:
        """Return an image. Raises image.NotFound, Unavailable."""

    def update(self, image_id: str, fields: dict[str, object]) -> object:
        """Set custom properties. Raises image.NotFound, Unavailable, service.Forbidden."""

    def send(self, image_id: str, data: Upload) -> None:
        """Upload the data of a queued image.

        Raises image.NotFound; service.Conflict if the image is not queued; service.Invalid or service.Forbidden if the
        data is refused; Unavailable, also if the upload may have succeeded.
        """


class BundleCert(Protocol):
    """The calls to nova-cert."""

    def decrypt_text(self, project_id: str, text: str) -> str:
        """Decrypt base64 text. Raises Unavailable; NotFound or Invalid if the key does not exist or does not match."""


class WorkBounds(NamedTuple):
    """The limits of the work. ``largest``: maximum bytes of an image. ``saving_s``: timeout for an upload that hangs in
    the image service. ``pause_s``: interval of polls and retries. ``least_free``: bytes to keep free on the disk."""

    largest: int
    saving_s: float = 300.0
    pause_s: float = 2.0
    least_free: int = 0


class BundleStep(NamedTuple):
    """A step: its image states, and its function. ``run``: takes the job, and the directory with the previous step's
    file."""

    state: str
    failed: str
    run: Callable[[BundleWork, BundleJob, Path], None]


class BundleWork:
    """The workflow that creates images from bundles. Stateless between jobs."""

    def __init__(self, store: ObjectStore, images: BundleImages, cert: BundleCert, folders: WorkFolders,
                 bounds: WorkBounds) -> None:
        self._store, self._images, self._cert, self._folders, self.bounds = store, images, cert, folders, bounds
        self.room = DiskSpace(folders.base, bounds.least_free)

    def run(self, job: BundleJob) -> None:
        """Create the image; set its state, visible to its owner, to available or failed.

        Raises image.NotFound if the image was deleted, so that no work is left; Unavailable if the job must be retried
        later; other NovaErrors if the image service refuses to set the state.
        """
        if self._images.show(job.image_id).status != ACTIVE:  # else only the state was not updated
            with failures.replaced(OSError, _disk), self._folders.fresh() as folder:
                if not all(self._is_done(step, job, folder) for step in STEPS):
                    return
        self._images.update(job.image_id, {STATE: AVAILABLE})
        LOG.info("Image %s from bundle %s is available", job.image_id, job.location)

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
        except Exception:  # a bug fails the image, not the service
            LOG.exception("Unexpected error while creating image %s (%s)", job.image_id, step.failed)
            failure = errors.Bug()
        LOG.warning("Image %s could not be created from bundle %s of project %s (%s): %s. %s", job.image_id,
                    job.location, job.project_id, step.failed, failure.message.rstrip("."), failure.cure)
        self._images.update(job.image_id, {STATE: step.failed})
        return False

    def give_up(self, job: BundleJob) -> None:
        """Set the image's state to failed, for its owner; errors are ignored."""
        with contextlib.suppress(errors.NovaError):
            self._images.update(job.image_id, {STATE: STEPS[0].failed})

    def download(self, job: BundleJob, folder: Path) -> None:
        """Join the parts to one file; later steps do not need the bucket."""
        Parts(self._store, job.bucket_owner, location_of(job.location), job.manifest).join(
            folder / "bundle", self.bounds.largest, self.room)

    def decrypt(self, job: BundleJob, folder: Path) -> None:
        """Decrypt the bundle with its key, which only nova-cert can decrypt."""
        decrypt(folder / "bundle", folder / "image.tar.gz", self._key(job), self.room)
        (folder / "bundle").unlink()

    def _key(self, job: BundleJob) -> BundleKey:
        texts = [base64.b64encode(bytes.fromhex(one)).decode()
                 for one in (job.manifest.encrypted_key, job.manifest.encrypted_iv)]
        with failures.replaced(errors.NovaError, lambda error: errors.bundle.KeyRefused(reason=error.message),
                               but=(errors.Unavailable, errors.PeerTooOld)):
            key, iv = (self._cert.decrypt_text(job.project_id, text) for text in texts)
        return read_key(key, iv)

    def unpack(self, job: BundleJob, folder: Path) -> None:
        """Extract the image from the tarball."""
        unpack(folder / "image.tar.gz", folder / "image", ExpectedImage(
            self.bounds.largest, job.manifest.facts.size, job.manifest.sha1), self.room)
        (folder / "image.tar.gz").unlink()

    def upload(self, job: BundleJob, folder: Path) -> None:
        """Upload the image, unless an earlier attempt succeeded.

        The image service accepts data only for an image without data, and aborts a stalled upload after a while.
        """
        reason = ""
        for _ in range(UPLOADS):
            if self._settled(job.image_id) == ACTIVE:
                return
            try:
                with (folder / "image").open("rb") as data:
                    return self._images.send(job.image_id, _WantedUpload(data))
            except (errors.Unavailable, errors.Conflict) as error:  # it may have succeeded, or another was first
                reason = error.message
            except (errors.Invalid, errors.Forbidden) as error:
                self._images.show(job.image_id)  # raises if the image was deleted (410 is one of these errors)
                raise errors.bundle.Upload(reason=error.message) from None
            concurrency.sleep(self.bounds.pause_s)
        if self._settled(job.image_id) != ACTIVE:
            raise errors.bundle.Upload(reason=reason)

    def _settled(self, image_id: str) -> str:
        """Return the image's status, active or queued, after waiting for an earlier upload. Raises image.NotFound."""
        deadline = time.monotonic() + self.bounds.saving_s
        while (status := self._images.show(image_id).status) == SAVING and time.monotonic() < deadline:
            concurrency.sleep(self.bounds.pause_s)
            concurrency.check_cancelled()
        if status not in (ACTIVE, QUEUED):
            raise errors.bundle.Upload(reason=f"the image is {status} there, not queued")
        return status


def _disk(error: OSError) -> errors.NovaError:
    return errors.bundle.Disk(reason=error.strerror or type(error).__name__)


class _WantedUpload(Upload):
    """An upload that ends when its job is canceled."""

    def __init__(self, file: SeekableFile) -> None:
        super().__init__(file)

    def __iter__(self) -> Iterator[bytes]:
        for piece in super().__iter__():
            concurrency.check_cancelled()
            yield piece


STEPS = (
    BundleStep("downloading", "failed_download", BundleWork.download),
    BundleStep("decrypting", "failed_decrypt", BundleWork.decrypt),
    BundleStep("untarring", "failed_untar", BundleWork.unpack),
    BundleStep("uploading", "failed_upload", BundleWork.upload),
)
