"""Our own client of images takes the fake Glance for the real one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from keystoneauth1 import session as ksession

from nova import context, errors
from nova.clients import image_data, session
from nova.clients.glance import Glance
from nova.model.image.images import ImageQuery, NewImage
from tests.unit.devel.served import FakeCloud

DATA = b"some data of an image" * 1000


class Sized:
    """Data that know their length, as nova-imageproxy sends them."""

    def __len__(self) -> int:
        return len(DATA)

    def __iter__(self) -> object:
        return iter([DATA[:100], DATA[100:]])


@pytest.fixture
def glance(cloud: FakeCloud) -> Glance:
    service = session.ServiceEndpoint("image", "image", region_name="RegionOne")
    return Glance(session.Caller(service, session.Credentials(ksession.Session(), cloud.session(
        "nova", "service").auth)))


def test_image_then_it_is_made_filled_read_changed_and_deleted(glance: Glance, tmp_path: Path) -> None:
    glance.check()
    image_id = str(uuid.uuid4())
    new = NewImage(id=image_id, name="one", disk_format="raw", container_format="bare", properties={"a": "b"})
    assert glance.create(new).status == "queued"
    assert glance.create(new).id == image_id  # said again
    with pytest.raises(errors.image.NotActive):
        glance.open(image_id)
    glance.send(image_id, Sized())
    image = glance.show(image_id)
    assert (image.status, image.size_bytes, dict(image.properties)) == ("active", len(DATA), {"a": "b"})
    path = tmp_path / "data"
    image_data.download(glance, image, str(path), None, image_data.Retries(3, 0.01))
    assert path.read_bytes() == DATA
    assert glance.update(image_id, {"min_disk": 3, "c": "d"}).min_disk_gb == 3
    assert glance.update_properties(image_id, {"a": "z"}, delete=("c",)) == {"a": "z"}
    assert [one.id for one in glance.list(ImageQuery(filters={"name": "one"}))] == [image_id]
    glance.delete(image_id)
    with pytest.raises(errors.image.NotFound):
        glance.show(image_id)


def test_show_as_user_then_the_users_token_decides(cloud: FakeCloud, glance: Glance) -> None:
    image_id = str(uuid.uuid4())
    glance.create(NewImage(id=image_id, name="one"))
    with context.entered(context.RequestContext(request_id="req-1", token=cloud.session("demo", "demo").get_token())), \
            pytest.raises(errors.image.NotFound):
        glance.show(image_id, as_user=True)
    with context.entered(context.RequestContext(request_id="req-1", token=cloud.session().get_token())):
        assert glance.show(image_id, as_user=True).id == image_id
