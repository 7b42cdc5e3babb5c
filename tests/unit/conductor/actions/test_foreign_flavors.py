"""A private flavor is there for the projects that were given it: to boot, and to resize to (OSSA-2013-019, -024)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import context, errors
from nova.db import flavors
from nova.model.flavor.flavors import NewFlavor
from nova.model.server.server_orders import ResizeServer
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO

PRIVATE = "private"


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    flavor = NewFlavor(name="theirs", flavorid=PRIVATE, memory_mb=64, vcpus=1, root_gb=1, is_public=False)
    made.api.transact(lambda tx: flavors.insert(tx, flavor))
    made.control.change_flavor_access(PRIVATE, "other", True)
    yield made
    made.close()


def resize(cloud: FailingCloud, uuid: str, flavor: str) -> None:
    with context.entered(DEMO):
        cloud.control.resize_server(ResizeServer(uuid=uuid, flavor_id=flavor))


def words_of_refusal(cloud: FailingCloud, uuid: str | None, flavor: str) -> str:
    """What is said of a boot, or of the server's resize, with the flavor's own name left out."""
    with pytest.raises(errors.Invalid) as caught:
        cloud.boot(flavor_id=flavor) if uuid is None else resize(cloud, uuid, flavor)
    return caught.value.message.replace(flavor, "FLAVOR")


def test_boot_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there(cloud: FailingCloud) -> None:
    assert words_of_refusal(cloud, None, PRIVATE) == words_of_refusal(cloud, None, "nothing")
    assert not cloud.open_ledger()


def test_resize_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there(cloud: FailingCloud) -> None:
    [uuid] = cloud.active()
    assert words_of_refusal(cloud, uuid, PRIVATE) == words_of_refusal(cloud, uuid, "nothing")
    assert cloud.server(uuid).task_state is None and cloud.moves(uuid) == []


def test_private_flavor_when_the_project_was_given_it_then_it_boots_and_resizes(cloud: FailingCloud) -> None:
    cloud.control.change_flavor_access(PRIVATE, "demo", True)
    assert cloud.server(cloud.active(flavor_id=PRIVATE)[0]).vm_state == "active"
    [uuid] = cloud.active()
    resize(cloud, uuid, PRIVATE)
    assert cloud.settle(uuid).vm_state == "resized"
