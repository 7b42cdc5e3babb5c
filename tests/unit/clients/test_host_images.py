"""A host of upstream mode, with credentials of its own for the image service."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.clients import host_images
from nova.clients.host_images import HostImages
from nova.clients.image_data import Retries
from tests.fakes.glance import FakeGlance
from tests.unit.clients.test_glance import client_of

DATA = b"an image" * 1000


@pytest.fixture
def server() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def images(server: FakeGlance) -> HostImages:
    return HostImages(client_of(server.url), Retries(2, 0.01))


def test_download_when_there_is_no_ticket_then_the_data_come_all_the_same(
        server: FakeGlance, images: HostImages, tmp_path: Path) -> None:
    image = images.show(server.add(DATA))
    images.hold(())
    assert images.download(image, str(tmp_path / "image")) == len(DATA)
    assert (tmp_path / "image").read_bytes() == DATA and (tmp_path / "image").stat().st_mode & 0o077 == 0


def test_upload_when_it_is_repeated_then_it_is_done_once(server: FakeGlance, images: HostImages) -> None:
    image_id = server.add(status="queued", size=None)
    del server.data[image_id]
    assert images.upload(image_id, io.BytesIO(DATA)) == len(DATA) == images.upload(image_id, io.BytesIO(DATA))
    assert server.data[image_id] == DATA


def test_upload_when_the_image_has_other_data_then_conflict(server: FakeGlance, images: HostImages) -> None:
    with pytest.raises(errors.Conflict):
        images.upload(server.add(b"others"), io.BytesIO(DATA))


def test_upload_when_the_image_was_deleted_then_it_says_which(images: HostImages) -> None:
    with pytest.raises(errors.image.NotFound, match="gone"):
        images.upload("gone", io.BytesIO(DATA))


def options(**values: object) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, value in values.items():
        made.set_override(name, value, group="glance")
    return made


def test_client_when_the_host_has_neither_address_nor_credentials_then_there_is_none() -> None:
    assert host_images.of_host(options()) is None


@pytest.mark.parametrize("name", ["endpoint_override", "api_servers"])
def test_client_when_the_host_has_an_address_then_it_is_asked(server: FakeGlance, name: str) -> None:
    image_id = server.add(DATA)
    found = host_images.of_host(options(**{name: server.url if name == "endpoint_override" else [server.url]}))
    assert found is not None and found.show(image_id).size_bytes == len(DATA)
