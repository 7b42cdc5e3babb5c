"""CreateImage of an instance: what becomes of NoReboot, and of an instance that somebody locked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nova import context, errors
from nova.context import RequestContext
from nova.legacy.ec2.handlers import images
from nova.legacy.ec2.handlers.images import ImageOfInstance
from nova.legacy.ec2.ids import IdCache
from nova.legacy.ec2.request import DryRun, Ec2Request, Ec2Site
from nova.model.server.servers import LockChange
from nova.policies import Policy
from tests.fakes.api import configuration
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, make_templates
from tests.unit.conductor.actions.test_stopped_images import ready

MEMBER = msgspec.structs.replace(DEMO, roles=("member",))
ADMIN = msgspec.structs.replace(DEMO, roles=("admin",), is_admin=True)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[FailingCloud]:
    (folder := tmp_path / "schemas").mkdir()
    made = FailingCloud(tmp_path, make_templates(folder))
    yield made
    made.close()


def create(cloud: FailingCloud, uuid: str, who: RequestContext = MEMBER, dry_run: bool = False, **fields: object
           ) -> str:
    """The image's id, as the image service has it."""
    site = Ec2Site(conductor=cloud.control, policy=Policy(configuration()), ids=IdCache(cloud.control))
    req = Ec2Request(context=who, site=site, version="2016-11-15", dry_run=dry_run)
    with context.entered(who):
        answer = images.create_image(req, ImageOfInstance(instance_id=req.id("i", uuid), name="golden", **fields))
        return req.one_meant("ami", str(answer["imageId"]))


def actions(cloud: FailingCloud, uuid: str) -> list[str]:
    return [one.action for one in cloud.journal(uuid) if one.action != "lock"]


def test_create_image_then_the_instance_is_stopped_and_the_image_has_the_description(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    image_id = create(cloud, uuid, description="as it was")
    cloud.settle(uuid)
    image = cloud.image_service.images[image_id]
    assert (image.name, image.status, image.properties["description"]) == ("golden", "active", "as it was")
    assert actions(cloud, uuid) == ["create", "create_image_stopped"] and cloud.server(uuid).vm_state == "active"


def test_create_image_with_no_reboot_then_the_instance_is_left_alone(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    image_id = create(cloud, uuid, no_reboot=True)
    assert cloud.image_service.images[image_id].status == "active" and actions(cloud, uuid) == ["create"]


def test_create_image_when_it_is_a_dry_run_then_nothing_is_done(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    with pytest.raises(DryRun):
        create(cloud, uuid, dry_run=True)
    assert actions(cloud, uuid) == ["create"] and cloud.image_service.images == {}


def test_create_image_when_the_instance_is_locked_then_only_an_administrator_stops_it(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    with context.entered(DEMO):
        cloud.control.lock_server(LockChange(uuid=uuid, by="owner"))
    with pytest.raises(errors.server.Locked):
        create(cloud, uuid)
    assert actions(cloud, uuid) == ["create"] and cloud.image_service.images == {}
    assert create(cloud, uuid, no_reboot=True) in cloud.image_service.images
    create(cloud, uuid, ADMIN)
    cloud.settle(uuid)
    assert actions(cloud, uuid) == ["create", "create_image_stopped"]
