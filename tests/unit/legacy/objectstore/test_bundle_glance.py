"""Images of bundles at a Glance that asks for tokens, and that has a project's rights and the states of an upload."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import errors
from nova.clients.glance import Glance
from nova.clients.image_data import Upload
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.model.image.bundles import RegisterBundle
from tests.fakes.bundle_world import KEYS, BundleWorld
from tests.fakes.bundles import bundle
from tests.unit.devel.served import FakeCloud, fake_cloud

DATA = bytes(range(256)) * 9000


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[FakeCloud]:
    (tmp_path / "glance").mkdir()
    with fake_cloud(tmp_path / "glance") as made:
        yield made


def client(cloud: FakeCloud, user: str, project: str) -> Glance:
    session = cloud.session(user, project)
    service = ServiceEndpoint("image", "image", (cloud.image_url,), retries=0, retry_wait_s=0.01)
    return Glance(Caller(service, Credentials(session, session.auth)))


class Registration:
    """A bundle of the project demo, and nova-objectstore with an administrator's credentials."""

    def __init__(self, folder: Path, cloud: FakeCloud) -> None:
        self.project_id = cloud.session("demo", "demo").get_project_id()
        self.world = BundleWorld(folder, cloud.image_url)
        self.world.images.glance = client(cloud, "admin", "admin")
        self.world.store.create_bucket(self.project_id, "bundles")
        self.location = bundle(DATA, KEYS, part_bytes=2 ** 20).put(
            self.world.store, self.project_id, "bundles")
        self.world.work.bounds = self.world.work.bounds._replace(largest=len(DATA))

    def __call__(self) -> str:
        return self.world.service.register_image(RegisterBundle(
            location=self.location, project_id=self.project_id, name="bundled")).image_id


@pytest.fixture
def register(tmp_path: Path, cloud: FakeCloud) -> Iterator[Registration]:
    made = Registration(tmp_path, cloud)
    yield made
    made.world.service.stop(2)


def test_register_when_it_is_another_projects_then_the_image_is_that_projects_alone(
        register: Registration, cloud: FakeCloud) -> None:
    image_id = register()
    register.world.settle()
    found = client(cloud, "demo", "demo").show(image_id)
    assert (found.owner, found.visibility, found.status) == (register.project_id, "private", "active")
    assert found.properties["image_state"] == "available" and found.size_bytes == len(DATA)
    assert b"".join(client(cloud, "demo", "demo").open(image_id)) == DATA


def test_register_when_the_credentials_are_no_administrators_then_it_is_refused(
        register: Registration, cloud: FakeCloud) -> None:
    register.world.images.glance = client(cloud, "demo", "demo")
    register.project_id = cloud.session("admin", "admin").get_project_id()
    register.world.store.create_bucket(register.project_id, "others")
    register.location = bundle(DATA, KEYS, part_bytes=2 ** 20).put(register.world.store, register.project_id, "others")
    with pytest.raises(errors.Forbidden):
        register()
    assert register.world.left() == []


def test_work_when_its_owner_deletes_the_image_during_the_upload_then_the_job_ends(
        register: Registration, cloud: FakeCloud) -> None:
    """Glance answers 410 to the upload then."""
    reached, go = threading.Event(), threading.Event()
    real = cloud.glance.state.data.keep

    def keep(image_id, parts):
        reached.set()
        assert go.wait(10)
        return real(image_id, parts)
    cloud.glance.state.data.keep = keep
    image_id = register()
    assert reached.wait(10)
    assert cloud.glance.state.images[image_id]["status"] == "saving"
    client(cloud, "demo", "demo").delete(image_id)
    go.set()
    register.world.settle()
    assert register.world.left() == [] and image_id not in cloud.glance.state.images


def test_work_when_its_owner_uploads_other_data_first_then_they_stay(register: Registration, cloud: FakeCloud) -> None:
    def first(image_id: str) -> None:
        client(cloud, "demo", "demo").send(image_id, Upload(io.BytesIO(b"other data")))
    register.world.images.hooks["send"] = first
    image_id = register()
    register.world.settle()
    found = client(cloud, "demo", "demo").show(image_id)
    assert (found.status, found.size_bytes) == ("active", 10) and found.properties["image_state"] == "available"
    assert register.world.left() == []
