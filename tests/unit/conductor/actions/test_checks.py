"""What a server's image and flavor promise it stands in the way of some actions, and what no host could promise is
refused before anything is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions.checks import check_flavor
from nova.db import flavors
from nova.db.models import cell as tables
from nova.model.flavor.flavors import Flavor, NewFlavor
from nova.model.image.images import Image
from nova.model.server.server_orders import RebuildServer, ResizeServer
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import BASE, CASES, OTHER, Case, ready
from tests.fakes.small_cloud import DEMO

TPM, ENCRYPTED = {"hw:tpm_version": "2.0"}, {"hw:mem_encryption": "true"}


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


@pytest.fixture
def moves(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def give(cloud: FailingCloud, uuid: str, specs: dict[str, str]) -> None:
    """The server was made of a flavor with these extra specs, and of an image that goes with them."""
    row = cloud.server(uuid)
    flavor = msgspec.structs.replace(row.flavor, extra_specs=specs)
    for image_id, image in cloud.image_service.images.items():
        properties = {**image.properties, "hw_firmware_type": "uefi"}
        cloud.image_service.images[image_id] = msgspec.structs.replace(image, properties=properties)
    image = row.image and msgspec.structs.replace(row.image, properties={"hw_firmware_type": "uefi"})
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(
        flavor=flavor, image=image))


@pytest.mark.parametrize("case", [case for case in CASES if not case.before], ids=lambda case: case.name)
@pytest.mark.parametrize("specs", [TPM, ENCRYPTED], ids=["tpm", "encrypted"])
def test_action_when_it_would_break_a_promise_then_it_is_refused_and_nothing_is_made(cloud, case: Case, specs):
    uuid = ready(cloud, case)
    give(cloud, uuid, specs)
    row, images = cloud.server(uuid), dict(cloud.image_service.images)
    told = {"rebuild": TPM, "rescue": TPM, "shelve": TPM, "suspend": ENCRYPTED}.get(case.action)
    if told != specs:
        case.start(cloud, uuid)
        assert cloud.settle(uuid).vm_state == case.after
        return
    with pytest.raises(errors.Conflict, match=f"Cannot '{case.action}' instance {uuid}: it has") as caught:
        case.start(cloud, uuid)
    assert caught.value.status == 409
    assert cloud.server(uuid) == row and cloud.image_service.images == images


def test_rebuild_when_the_image_asked_for_the_tpm_then_it_is_refused_although_the_new_image_does_not(cloud):
    uuid = ready(cloud, dataclasses.replace(CASES[0], before=()))
    image = msgspec.structs.replace(cloud.server(uuid).image, properties={"hw_tpm_version": "2.0"})
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(image=image))
    with context.entered(DEMO), pytest.raises(errors.Conflict, match="it has"):
        cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id=OTHER))
    assert cloud.server(uuid).image == image


@pytest.mark.parametrize(("action", "specs", "refused"), [
    ("live-migration", TPM, False), ("live-migration", {**TPM, "hw:tpm_secret_security": "user"}, True),
    ("live-migration", ENCRYPTED, True), ("migrate", TPM, False), ("migrate", ENCRYPTED, False),
    ("resize", TPM, False)])
def test_move_when_the_server_has_a_promise_then_what_keeps_it_may_go_on(moves, action, specs, refused):
    [uuid] = moves.active()
    give(moves, uuid, specs)
    if refused:
        with pytest.raises(errors.Conflict, match="it has"):
            moves.begin(uuid, action)
        assert moves.moves(uuid) == [] and moves.server(uuid).task_state is None
    else:
        moves.begin(uuid, action)
        assert moves.settle(uuid).task_state is None and moves.moves(uuid)


def test_evacuation_when_the_server_has_a_tpm_then_it_is_refused(moves):
    [uuid] = moves.active()
    give(moves, uuid, TPM)
    moves.down("host1")
    with pytest.raises(errors.Conflict, match="virtual TPM"):
        moves.begin(uuid, "evacuate")
    assert moves.moves(uuid) == []


# -- what no host could make


def test_create_when_image_and_flavor_contradict_each_other_then_it_is_invalid():
    flavor = Flavor(flavorid="1", name="f", memory_mb=64, vcpus=1, root_gb=1, extra_specs={"hw:tpm_version": "2.0"})
    image = Image(id="i", properties={"hw_tpm_version": "1.2"})
    order = SimpleNamespace(flavor_id="1", may_zero_disk=False)
    with pytest.raises(errors.Invalid, match="hw_tpm_version=1.2 is not possible: the flavor has hw:tpm_version=2.0"):
        check_flavor(flavor, image, order)
    check_flavor(flavor, Image(id="i", properties={"hw_tpm_version": "2.0"}), order)


def test_rebuild_when_the_new_image_contradicts_the_flavor_then_it_is_invalid_and_the_server_as_it_was(cloud):
    uuid = ready(cloud, dataclasses.replace(CASES[0], before=()))
    give(cloud, uuid, {"hw:pmu": "no"})
    cloud.image_service.add("pmu", properties={"hw_pmu": "yes"})
    before = cloud.server(uuid)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="the flavor has hw:pmu=no"):
        cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id="pmu"))
    assert cloud.server(uuid) == before and before.image_id == BASE


def test_resize_when_the_new_flavor_contradicts_the_image_then_it_is_invalid_and_quota_as_before(moves):
    [uuid] = moves.active()
    image = Image(id="x", properties={"hw_serial_port_count": "4"})
    moves.write("cell", sa.update(tables.servers).values(image=image, image_id="x"))
    counted = moves.counted(uuid)
    moves.api.transact(lambda tx: flavors.insert(tx, NewFlavor(name="ports", flavorid="77", memory_mb=64, vcpus=1,
                                                               root_gb=9)))
    moves.api.transact(lambda tx: flavors.set_specs(tx, "77", {"hw:serial_port_count": "2"}))
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="the flavor allows 2"):
        moves.control.resize_server(ResizeServer(uuid=uuid, flavor_id="77"))
    assert moves.moves(uuid) == [] and moves.counted(uuid) == counted
