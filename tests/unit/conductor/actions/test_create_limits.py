"""What a create is refused for before anything is kept: files beyond the quota, and images nobody can run."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.model.image.images import Image
from nova.model.quota.quotas import QuotaClass
from tests.fakes.small_cloud import SmallCloud

IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"


def limit(cloud: SmallCloud, **limits: int) -> None:
    cloud.control.update_quota_class(QuotaClass(class_name="default", limits=limits))


def encoded(length: int) -> str:
    return base64.b64encode(b"x" * length).decode()


@pytest.mark.parametrize(("limits", "files", "named"), [
    ({"injected_files": 1}, {"/a": "", "/b": ""}, "too many files"),
    ({"injected_file_path_bytes": 3}, {"/\N{SNOWMAN}": ""}, "path"),
    ({"injected_file_content_bytes": 4}, {"/a": encoded(5)}, "contents")])
def test_create_when_files_exceed_the_quota_then_refused_and_nothing_is_kept(
        cloud: SmallCloud, limits: dict[str, int], files: dict[str, str], named: str) -> None:
    limit(cloud, **limits)
    with pytest.raises(errors.OverQuota, match=named):
        cloud.boot(files=files)
    assert not cloud.open_ledger()


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_create_when_files_just_fit_then_it_is_admitted(cloud: SmallCloud, length: int) -> None:
    limit(cloud, injected_files=1, injected_file_path_bytes=2, injected_file_content_bytes=length)
    assert cloud.ended(cloud.boot(files={"/a": encoded(length)})[0]).vm_state == "active"


def serve(cloud: SmallCloud, **properties: str) -> None:
    image: Any = Image(id=IMAGE, name="tiny", properties=properties)
    cloud.deps.images = SimpleNamespace(show=lambda image_id, as_user=False: image)


def test_create_when_an_image_property_is_wrong_then_invalid_and_nothing_is_kept(cloud: SmallCloud) -> None:
    serve(cloud, hw_disk_bus="floppy")
    with pytest.raises(errors.Invalid, match="hw_disk_bus"):
        cloud.boot(image_id=IMAGE)
    assert not cloud.open_ledger()


def test_create_when_image_properties_fit_then_it_is_admitted(cloud: SmallCloud) -> None:
    serve(cloud, hw_disk_bus="virtio", hw_boot_menu="yes", my_own="anything")
    assert cloud.ended(cloud.boot(image_id=IMAGE)[0]).vm_state == "active"
