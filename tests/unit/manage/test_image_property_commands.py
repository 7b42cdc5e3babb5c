"""What a server's record keeps of its image's properties, and who may change it."""

from __future__ import annotations

import pytest

from nova.manage import image_property_commands as commands
from nova.manage.image_property_commands import PropertyRefused
from nova.model.image.images import Image
from tests.fakes.rows import add_servers, server_row


@pytest.fixture
def cell(cloud):
    return cloud.deps.cell


def server(cell, **fields) -> str:
    row = server_row(**{"vm_state": "stopped", "image": Image(id="i", properties={"hw_machine_type": "pc"}), **fields})
    add_servers(cell, row)
    return str(row["uuid"])


def code(act) -> int:
    with pytest.raises(PropertyRefused) as refused:
        act()
    assert str(refused.value)
    return refused.value.code


def test_show_when_it_is_there_then_its_value_else_upstreams_codes(cell) -> None:
    uuid = server(cell)
    assert commands.shown(cell, uuid, "hw_machine_type") == "pc"
    assert code(lambda: commands.shown(cell, uuid, "os_type")) == 3
    assert code(lambda: commands.shown(cell, "nobody", "os_type")) == 2


def test_set_when_the_server_is_off_then_the_others_stay(cell) -> None:
    uuid = server(cell)
    commands.changed(cell, uuid, commands.parsed(["os_type=linux", "hw_disk_bus=virtio"]))
    assert [commands.shown(cell, uuid, name) for name in ("hw_machine_type", "os_type", "hw_disk_bus")] == [
        "pc", "linux", "virtio"]


@pytest.mark.parametrize("fields", [{"vm_state": "active"}, {"vm_state": "error"},
                                    {"vm_state": "stopped", "task_state": "powering-on"}])
def test_set_when_the_server_is_not_off_then_refused_and_nothing_changes(cell, fields) -> None:
    uuid = server(cell, **fields)
    assert code(lambda: commands.changed(cell, uuid, {"os_type": "linux"})) == 3
    assert code(lambda: commands.shown(cell, uuid, "os_type")) == 3


@pytest.mark.parametrize(("word", "wanted"), [("os_type=dos", 5), ("os_type=", 5), ("os_type", 5),
                                             ("colour=red", 4), ("hw_video_ram=much", 5)])
def test_set_when_a_word_is_wrong_then_its_code(word: str, wanted: int) -> None:
    assert code(lambda: commands.parsed([word])) == wanted


@pytest.mark.parametrize(("now", "wanted", "force", "refused"), [
    (None, "q35", False, None), ("pc", "pc-i440fx-7.2", False, None), ("pc-q35-6.0", "q35", False, None),
    ("pc", "q35", False, 4), ("pc", "q35", True, None), ("pc", "toaster", True, 5), ("q35", "pc-i440fx-7.2", False, 4)])
def test_machine_type_when_it_changes_then_another_kind_of_machine_needs_force(now, wanted, force, refused) -> None:
    if refused is None:
        commands.check_machine(now, wanted, force)
    else:
        assert code(lambda: commands.check_machine(now, wanted, force)) == refused


def test_unset_then_living_servers_without_a_machine_type(cell) -> None:
    with_type, without = server(cell), server(cell, image=Image(id="i"))
    booted_otherwise = server(cell, image=None)
    found = commands.without_machine(cell)
    assert {without, booted_otherwise} <= set(found) and with_type not in found
