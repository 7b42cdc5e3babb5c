"""The image proxy's way to the image service: with real HTTP, as the user."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1 import session as ksession

from nova import errors
from nova.clients.glance import Glance
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.conductor.queries.images import ImageQueries
from nova.model.image.images import ImageQuery
from tests.fakes.glance import FakeGlance


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def images(glance: FakeGlance) -> ImageQueries:
    service = ServiceEndpoint("image", "image", (glance.url,), retries=0)
    deps: Any = SimpleNamespace(images=Glance(Caller(service, Credentials(ksession.Session(), None))))
    return ImageQueries(deps)


@pytest.mark.parametrize("image_id", ["..", "../metadefs/namespaces", "a/file", "", "a?b=c", "x" * 256])
def test_image_when_its_id_is_no_segment_of_a_path_then_missing_and_nobody_is_asked(
        glance: FakeGlance, images: ImageQueries, image_id: str) -> None:
    for ask in (images.get_image, images.delete_image,
                lambda name: images.update_image_properties(name, {"a": "b"}, (), False)):
        with pytest.raises(errors.NotFound):
            ask(image_id)
    assert glance.requests == []


@pytest.mark.parametrize("name", ["name", "visibility", "owner", "id", "min_ram", "locations"])
def test_metadata_when_it_names_a_member_of_the_image_then_invalid_and_it_stays(
        glance: FakeGlance, images: ImageQueries, name: str) -> None:
    image = glance.add()
    before = dict(glance.images[image])
    with pytest.raises(errors.Invalid, match=name):
        images.update_image_properties(image, {name: "x"}, (), False)
    with pytest.raises(errors.Invalid, match=name):
        images.update_image_properties(image, {}, (name,), False)
    assert glance.images[image] == before and glance.requests == []


def test_list_when_the_marker_is_nobodys_then_invalid() -> None:
    def missing(*args: Any, **kwargs: Any) -> Any:
        raise errors.NotFound("no such images")
    proxy = ImageQueries(SimpleNamespace(images=SimpleNamespace(list=missing)))  # type: ignore[arg-type]
    with pytest.raises(errors.Invalid, match="nobody"):
        proxy.list_images(ImageQuery(marker="nobody"))
