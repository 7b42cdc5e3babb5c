"""The RPC service ``objectstore``: reads manifests, registers images, and creates them in the background."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import concurrency, context, errors, failures
from nova.conf._options import Options
from nova.legacy.objectstore.bundles import manifest
from nova.legacy.objectstore.bundles.jobs import BundleJob, HeldJob, JobFolder
from nova.legacy.objectstore.bundles.turns import JobTurns
from nova.legacy.objectstore.bundles.work import (
    GIVE_UP_S,
    PENDING,
    STATE,
    BundleCert,
    BundleImages,
    BundleWork,
    WorkBounds,
)
from nova.legacy.objectstore.bundles.workdirs import WorkFolders
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.bundles import MACHINE, BundleFacts, RegisterBundle, RegisteredImage
from nova.model.image.images import NewImage
from nova.service import PeriodicTask

LOG = logging.getLogger(__name__)

MIB, GIB = 2 ** 20, 2 ** 30
MOST_WAITING, MOST_OF_PROJECT = 500, 50
LOOK_S = 30.0  # interval of the checks for abandoned jobs and for deleted images
FIRST_RETRY_S, LAST_RETRY_S = 30.0, 600.0
LONGEST_NAME, LONGEST_MAPPING = 255, 65535  # characters, the image service's limits


class Stopping(BaseException):
    """The process ends: unfinished work is left as it is, and the next process starts it again."""


class BundleRules(NamedTuple):
    """The operator's settings. ``workers``: bundles processed concurrently. ``owner``: of all buckets; None: each
    project owns its own. ``retry_s``: delay of a job's first retry if a service or resource is unavailable."""

    workers: int = 2
    owner: str | None = None
    retry_s: float = FIRST_RETRY_S


class BundleRetry(NamedTuple):
    """The next retry of a job. ``at``: on the monotonic clock; ``wait_s``: the delay."""

    at: float
    wait_s: float


class BundleService:
    """The service of one process; several may share the directory of jobs. ``rules``: the operator's settings."""

    def __init__(self, store: ObjectStore, images: BundleImages, work: BundleWork, jobs: JobFolder,
                 folders: WorkFolders, rules: BundleRules) -> None:
        self._store, self._images, self._work, self._jobs, self._folders = store, images, work, jobs, folders
        self._rules, self._pool = rules, concurrency.WorkerPool(rules.workers, "bundles")
        self._held: dict[str, HeldJob] = {}
        self._turns = JobTurns()
        self._retries: dict[str, BundleRetry] = {}
        self._lock = threading.Lock()
        self._stopped = False
        self._looking = PeriodicTask(LOOK_S, self.look, "looking for bundles")

    # -- the contract

    def read_manifest(self, location: str, project_id: str) -> BundleFacts:
        """Return the facts in a manifest.

        Raises bundle.Location, bundle.NotFound, bundle.Manifest, bundle.Architecture.
        """
        return manifest.fetch(self._store, self._owner(project_id), manifest.location_of(location)).facts

    def register_image(self, order: RegisterBundle) -> RegisteredImage:
        """Register an image, and start to create it.

        The job is on the disk before the image record exists, so no image stays pending without a job. Raises the
        errors of ``read_manifest``, bundle.TooMany, bundle.TooLarge, bundle.NotKept, and those of the image service.
        """
        location = manifest.location_of(order.location)
        found = manifest.fetch(self._store, self._owner(order.project_id), location)
        image = _record(order, str(location), found.facts)
        self._check_space(order.project_id)
        held = self._kept(BundleJob(
            image.id, order.project_id, self._owner(order.project_id), str(location), time.time(), found))

        def end(error: BaseException) -> None:
            if isinstance(error, errors.Unavailable):
                held.release()  # the record may exist: the job's next run finds out
            else:
                held.done()
        with failures.reported_to(end, on=BaseException):
            self._images.create(image)
        self._submit(held)
        return RegisteredImage(image_id=image.id, container_format=found.facts.container_format)

    def _kept(self, job: BundleJob) -> HeldJob:
        """Write the job to the disk. Raises bundle.NotKept."""
        with failures.replaced(OSError,
                lambda error: errors.bundle.NotKept(reason=error.strerror or type(error).__name__)):
            return self._jobs.add(job)

    def _owner(self, project_id: str) -> str:
        """Return the owner of the buckets with a project's manifests."""
        return self._rules.owner or project_id

    def _check_space(self, project_id: str) -> None:
        """Check the limits of unfinished jobs. Raises bundle.TooMany."""
        every, own = self._jobs.count(project_id)
        if every >= MOST_WAITING or own >= MOST_OF_PROJECT:
            raise errors.bundle.TooMany(count=own)

    # -- in the background

    def start(self) -> None:
        """Remove the files that killed processes left, and continue their jobs."""
        removed = self._folders.sweep()
        if removed:
            LOG.info("Removed %d work directories of bundles, left by killed processes", removed)
        self._jobs.sweep()
        self.look()
        self._looking.start()

    def look(self) -> None:
        """Start the jobs that no process works on, unless their retry is not due yet."""
        for held in self._jobs.waiting():
            retry = self._retries.get(held.job.image_id)
            if self._stopped or (retry is not None and time.monotonic() < retry.at):
                held.release()
            else:
                self._submit(held)

    def stop(self, seconds: float) -> None:
        """Stop all work within ``seconds``; the next process starts it again. May be called twice."""
        self._stopped = True
        self._looking.stop()
        self._pool.shutdown(wait=False)
        self._leave()
        deadline = time.monotonic() + seconds
        while self._held and time.monotonic() < deadline:
            concurrency.sleep(0.02)

    def busy(self) -> int:
        """Return the number of running and waiting jobs of this process."""
        with self._lock:
            return len(self._held)

    def _submit(self, held: HeldJob) -> None:
        with self._lock:
            self._held[held.job.image_id] = held
        self._turns.add(held)
        try:
            self._pool.submit(self._work_on)
        except RuntimeError:  # the pool was shut down meanwhile
            self._leave()

    def _work_on(self) -> None:
        """Run jobs until none can start: a project's next job waits for the worker that runs its current one."""
        while not self._stopped and (held := self._turns.take()) is not None:
            try:
                self._run(held)
            finally:
                self._turns.done(held)

    def _leave(self) -> None:
        """Release the waiting jobs for the next process."""
        for held in self._turns.leave():
            self._end(held)

    def _end(self, held: HeldJob) -> None:
        held.release()
        with self._lock:
            if self._held.get(held.job.image_id) is held:
                del self._held[held.job.image_id]

    def _run(self, held: HeldJob) -> None:
        job = held.job
        try:
            with failures.expected(LOG, "Creation of image %s interrupted; it continues at the next start",
                                   job.image_id, on=Stopping), \
                    context.entered(context.internal()), concurrency.cancellable(self._check(job)):
                self._outcome(held)
        finally:
            self._end(held)

    def _outcome(self, held: HeldJob) -> None:
        job = held.job
        error = failures.failure_of(self._work.run, job)
        if isinstance(error, errors.image.NotFound):
            LOG.info("Image %s was deleted; dropped its job", job.image_id)
        elif error is not None:
            if not isinstance(error, errors.NovaError):
                LOG.error("Unexpected error while creating image %s from bundle %s", job.image_id, job.location,
                          exc_info=error)
                error = errors.Bug()
            if self._has_to_wait(job, error):
                return
        self._retries.pop(job.image_id, None)
        held.done()

    def _has_to_wait(self, job: BundleJob, error: errors.NovaError) -> bool:
        """Return whether the job is retried; otherwise mark its image as failed."""
        said = error.message.rstrip(".")
        if time.time() - job.created < GIVE_UP_S:
            LOG.warning("Creation of image %s from bundle %s postponed for a retry: %s. %s", job.image_id,
                        job.location, said, error.cure)
            self._put_off(job)
            return True
        LOG.error("Creation of image %s from bundle %s given up after a day: %s. Delete the image, and register the "
                  "manifest again", job.image_id, job.location, said)
        self._work.give_up(job)
        return False

    def _put_off(self, job: BundleJob) -> None:
        before = self._retries.get(job.image_id)
        wait_s = self._rules.retry_s if before is None else min(2 * before.wait_s, LAST_RETRY_S)
        self._retries[job.image_id] = BundleRetry(time.monotonic() + wait_s, wait_s)

    def _check(self, job: BundleJob) -> Callable[[], None]:
        """Return a check for long-running work: raises Stopping, and periodically image.NotFound."""
        looked = time.monotonic()

        def check() -> None:
            nonlocal looked
            if self._stopped:
                raise Stopping
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                self._still_there(job.image_id)
        return check

    def _still_there(self, image_id: str) -> None:
        with failures.expected(LOG, "image service unavailable; cannot check whether image %s still exists", image_id,
                on=errors.Unavailable, level=logging.DEBUG):
            self._images.show(image_id)


def of_options(options: Options, store: ObjectStore, images: BundleImages, cert: BundleCert,
               owner: str | None = None) -> BundleService:
    """Build the service from nova.conf. ``owner``: of all buckets, without authentication.

    Raises OSError if a directory cannot be created.
    """
    jobs = JobFolder(Path(options.image_decryption_jobs_dir))
    folders = WorkFolders(Path(options.image_decryption_dir), jobs.folder / ".lock")
    work = BundleWork(store, images, cert, folders, WorkBounds(
        options.image_decryption_largest_gb * GIB, least_free=options.s3_reserved_disk_mb * MIB))
    return BundleService(store, images, work, jobs, folders, BundleRules(options.image_decryption_workers, owner))


def _record(order: RegisterBundle, location: str, facts: BundleFacts) -> NewImage:
    """Return the initial image record. Raises bundle.TooLarge, bundle.Architecture."""
    limits = {"name": (order.name, LONGEST_NAME), "description": (order.description, LONGEST_NAME),
              "root device name": (order.root_device_name, LONGEST_NAME)}
    for what, (text, limit) in limits.items():
        if len(text or "") > limit:
            raise errors.bundle.TooLarge(what=what, limit=limit)
    return NewImage(id=str(uuid.uuid4()), name=order.name or location[:LONGEST_NAME], owner=order.project_id,
                    visibility="private", disk_format=facts.container_format, container_format=facts.container_format,
                    properties=_properties(order, location, facts))


def _properties(order: RegisterBundle, location: str, facts: BundleFacts) -> Mapping[str, str]:
    machine = facts.container_format == MACHINE
    mapping = "" if order.block_device_mapping is None else msgspec.json.encode(order.block_device_mapping).decode()
    if len(mapping) > LONGEST_MAPPING:
        raise errors.bundle.TooLarge(what="block device mapping", limit=LONGEST_MAPPING)
    found = {
        "image_location": location, STATE: PENDING,
        "architecture": manifest.known_architecture(order.architecture or facts.architecture),
        "kernel_id": order.kernel_image_id if machine else None,
        "ramdisk_id": order.ramdisk_image_id if machine else None,
        "mappings": msgspec.json.encode(facts.mappings).decode() if facts.mappings else None,
        "block_device_mapping": mapping, "root_device_name": order.root_device_name, "description": order.description}
    return {name: value for name, value in found.items() if value}
