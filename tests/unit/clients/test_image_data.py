"""Downloads, from the image service itself: whatever breaks, the file is whole or there is an error."""

from __future__ import annotations

import os

import pytest
from keystoneauth1 import session as ksession

from nova import errors
from nova.clients import image_data, session
from nova.clients.glance import Glance
from nova.clients.image_data import CHUNK_BYTES, Retries
from tests.fakes.glance import FakeGlance

QUICK = Retries(3, 0.01)


@pytest.fixture
def server():
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def glance(server):
    service = session.ServiceEndpoint("image", "image", (server.url,), read_timeout_s=2.0, retry_wait_s=0.01)
    return Glance(session.Caller(service, session.Credentials(ksession.Session(), None)))


def download(glance, image, path):
    return image_data.download(glance, image, str(path), retries=QUICK)


def test_download_writes_a_private_file_with_the_data(server, glance, tmp_path):
    data = os.urandom(3_000_000)
    image = glance.show(server.add(data))
    target = tmp_path / "image"
    assert download(glance, image, target) == len(data)
    assert target.read_bytes() == data
    assert target.stat().st_mode & 0o777 == 0o600


def test_download_that_breaks_off_goes_on_where_it_was(server, glance, tmp_path):
    data = os.urandom(3 * CHUNK_BYTES + 5)
    image = glance.show(server.add(data))
    server.knobs.break_data_after = [CHUNK_BYTES + 100_000, 30_000]
    download(glance, image, tmp_path / "image")
    assert (tmp_path / "image").read_bytes() == data
    ranges = [headers.get("Range") for _m, path, headers in server.requests if path.endswith("/file")]
    assert ranges == [None, f"bytes={CHUNK_BYTES + 100_000}-", f"bytes={CHUNK_BYTES + 130_000}-"]


def test_download_that_breaks_off_often_but_gets_on_is_whole_in_the_end(server, glance, tmp_path):
    data = os.urandom(8 * CHUNK_BYTES)
    image = glance.show(server.add(data))
    server.knobs.break_data_after = [CHUNK_BYTES + 1] * 7
    assert download(glance, image, tmp_path / "image") == len(data)
    assert (tmp_path / "image").read_bytes() == data


def test_download_from_a_service_without_ranges_begins_again(server, glance, tmp_path):
    data = os.urandom(2 * CHUNK_BYTES)
    image = glance.show(server.add(data))
    server.knobs.break_data_after, server.knobs.no_ranges = [CHUNK_BYTES + 10], True
    download(glance, image, tmp_path / "image")
    assert (tmp_path / "image").read_bytes() == data


def test_download_that_always_breaks_is_unavailable(server, glance, tmp_path):
    image = glance.show(server.add(bytes(1000)))
    server.knobs.break_data_after = [0] * 10
    with pytest.raises(errors.Unavailable):
        download(glance, image, tmp_path / "image")
    assert len(server.knobs.break_data_after) == 10 - 1 - QUICK.most


def test_download_of_damaged_data_is_refused(server, glance, tmp_path):
    image = glance.show(server.add(bytes(1000)))
    server.knobs.flip_a_byte = True
    with pytest.raises(errors.image.Corrupt, match="sha512"):
        download(glance, image, tmp_path / "image")


def test_download_longer_than_told_is_refused(server, glance, tmp_path):
    image_id = server.add(bytes(1000))
    image = glance.show(image_id)
    server.data[image_id] = bytes(5000)
    with pytest.raises(errors.image.TooLong):
        download(glance, image, tmp_path / "image")
