"""The services that create images from bundles, without the daemon: a store, the service, nova-cert's key, a Glance."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from keystoneauth1 import session as ksession

from nova import errors
from nova.clients.glance import Glance
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.legacy.objectstore.bundles.jobs import JobFolder
from nova.legacy.objectstore.bundles.service import BundleRules, BundleService
from nova.legacy.objectstore.bundles.work import BundleWork, WorkBounds
from nova.legacy.objectstore.bundles.workdirs import WorkFolders
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.bundles import RegisterBundle
from tests.fakes.bundles import Bundle, Keys

OWNER, BUCKET = "project", "images"
MOST = 2 ** 20  # bytes of an image
KILLED = 9  # exit code of a process that a test kills
#: Generated once, since it takes long, and never changed.
CLOUD_KEY = rsa.generate_private_key(65537, 2048)
KEYS = Keys(rsa.generate_private_key(65537, 2048).public_key(), CLOUD_KEY.public_key())


class FakeCert:
    """A minimal nova-cert. ``error`` is raised while it is set."""

    def __init__(self, key: rsa.RSAPrivateKey = CLOUD_KEY) -> None:
        self.key, self.error, self.asked = key, None, []  # type: rsa.RSAPrivateKey, errors.NovaError | None, list[str]

    def decrypt_text(self, project_id: str, text: str) -> str:
        self.asked.append(project_id)
        if self.error is not None:
            raise self.error
        try:
            return self.key.decrypt(base64.b64decode(text), padding.PKCS1v15()).decode()
        except ValueError:
            raise errors.Invalid("It cannot be decrypted.") from None


def glance_at(url: str) -> Glance:
    service = ServiceEndpoint("image", "image", (url,), retries=0, retry_wait_s=0.01)
    return Glance(Caller(service, Credentials(ksession.Session(requests.Session()), None)))


class HookedImages:
    """Client of the image service. ``hooks``: call (and ``:STATE`` of an update) -> function called before it."""

    def __init__(self, glance: Glance) -> None:
        self.glance = glance
        self.hooks: dict[str, Callable[[str], object]] = {}
        self.after: dict[str, Callable[[str], object]] = {}
        self.states: list[str] = []

    def create(self, image: Any) -> Any:
        return self._call("create", image.id, lambda: self.glance.create(image))

    def show(self, image_id: str) -> Any:
        return self._call("show", image_id, lambda: self.glance.show(image_id))

    def update(self, image_id: str, fields: Any) -> Any:
        self.states.append(fields["image_state"])
        return self._call(f"update:{fields['image_state']}", image_id, lambda: self.glance.update(image_id, fields))

    def send(self, image_id: str, data: Any) -> None:
        self._call("send", image_id, lambda: self.glance.send(image_id, data))

    def _call(self, name: str, image_id: str, run: Callable[[], Any]) -> Any:
        self.hooks.get(name, lambda _image_id: None)(image_id)
        answer = run()
        self.after.get(name, lambda _image_id: None)(image_id)
        return answer


class BundleWorld:
    """Environment of the bundle service. ``folder`` has all data that survives a process."""

    def __init__(self, folder: Path, url: str, cert: Any = None, largest: int = MOST,
                 rules: BundleRules | None = None) -> None:
        self.folder, self.store = folder, ObjectStore(folder / "buckets")
        if not self.store.list_buckets(OWNER):
            self.store.create_bucket(OWNER, BUCKET)
        self.images, self.cert = HookedImages(glance_at(url)), cert or FakeCert()
        self.jobs = JobFolder(folder / "jobs")
        folders = WorkFolders(folder / "work", folder / "jobs/.lock")
        self.work = BundleWork(self.store, self.images, self.cert, folders, WorkBounds(largest, 0.3, 0.01))
        self.service = BundleService(self.store, self.images, self.work, self.jobs, folders,
                                     rules or BundleRules())

    def upload(self, bundle: Bundle, folder: str = "") -> str:
        return bundle.put(self.store, OWNER, BUCKET, folder)

    def register(self, location: str, **order: Any) -> str:
        return self.service.register_image(RegisterBundle(location=location, project_id=OWNER, **order)).image_id

    def settle(self, seconds: float = 10) -> None:
        """Wait until the service is idle."""
        deadline = time.monotonic() + seconds
        while self.service.busy():
            assert time.monotonic() < deadline, "the work does not end"
            time.sleep(0.005)

    def left(self) -> list[str]:
        """Return the files on the disk that are not in the store."""
        return sorted(str(path.relative_to(self.folder)) for name in ("jobs", "work")
                      for path in (self.folder / name).rglob("*") if path.name != ".lock")


def save_key(path: Path) -> None:
    """Save the cloud's key for :func:`register_and_die`."""
    path.write_bytes(CLOUD_KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                             serialization.NoEncryption()))


def register_and_die(folder: str, url: str, location: str, where: str, when: str) -> None:
    """Register a bundle; the process dies, as by SIGKILL, ``before`` or ``after`` the image call ``where``."""
    key: Any = serialization.load_pem_private_key((Path(folder) / "key.pem").read_bytes(), password=None)
    world = BundleWorld(Path(folder), url, FakeCert(key))
    hooks = world.images.hooks if when == "before" else world.images.after
    hooks[where] = lambda _image_id: os._exit(KILLED)
    world.register(location)
    world.settle()
