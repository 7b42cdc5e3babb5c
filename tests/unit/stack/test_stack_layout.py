from __future__ import annotations

from pathlib import Path

import pytest

from stacklib import layout as places
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout


def test_layout_when_the_path_is_too_long_for_sockets_then_refused_with_a_hint():
    with pytest.raises(StackError, match="too long") as caught:
        Layout(Path("/" + "x" * 90), Choices())
    assert "--state" in caught.value.hint


def test_computes_of_a_libvirt_sandbox_then_one_a_room_with_addresses_of_their_own(make_layout):
    layout = make_layout(sandbox=True, hosts=2)
    assert [(c.name, c.room, c.address) for c in layout.computes] == [
        ("host1", "host1", "10.200.0.11"),
        ("host2", "host2", "10.200.0.12"),
    ]
    assert layout.hypervisor_rooms == ("host1", "host2")
    assert layout.addresses["controller"] == layout.address == "10.200.0.1"


def test_computes_of_a_fake_sandbox_then_spread_over_the_rooms_and_no_libvirt(make_layout):
    layout = make_layout(sandbox=True, hosts=2, driver="fake", computes=3)
    assert [(c.name, c.room) for c in layout.computes] == [("fake1", "host1"), ("fake2", "host2"), ("fake3", "host1")]
    assert layout.hypervisor_rooms == ()


def test_plain_layout_then_everything_is_on_loopback_and_one_compute_has_the_machines_name(make_layout):
    layout = make_layout()
    (compute,) = layout.computes
    assert (compute.room, compute.address) == (None, "127.0.0.1")
    assert compute.name == layout.controller_host
    assert layout.url("keystone", "/v3") == "http://127.0.0.1:5000/v3"
    assert layout.addresses == {} and layout.host_rooms == ()


def test_choices_when_saved_and_loaded_then_equal_and_unknown_names_ignored(short_path):
    layout = Layout(short_path, Choices(sandbox=True, hosts=3, demo=False))
    layout.save()
    text = layout.choices_file.read_text().replace("{", '{"later": 1,', 1)
    layout.choices_file.write_text(text)
    assert places.load(short_path) == layout
    assert layout.choices_file.stat().st_mode & 0o777 == 0o600


def test_choices_when_only_the_demo_differs_then_the_same_stack():
    assert Choices().differences(Choices(demo=False)) == []
    assert Choices().differences(Choices(hosts=2, driver="fake")) == ["hosts", "driver"]


def test_find_when_there_are_none_one_and_two_then_error_found_and_asked(short_path, monkeypatch):
    plain, sandbox = short_path / "nova-stack", short_path / "nova-sandbox"
    monkeypatch.setattr(places, "PLAIN_STATE", plain)
    monkeypatch.setattr(places, "SANDBOX_STATE", sandbox)
    with pytest.raises(StackError, match="no stack on this machine"):
        places.find(None, False, "default")
    Layout(sandbox.with_name("nova-sandbox-a"), Choices(sandbox=True, name="a")).save()
    assert places.find(None, False, "default").choices.name == "a"
    assert places.find(None, True, "a").state.name == "nova-sandbox-a"
    Layout(plain, Choices()).save()
    with pytest.raises(StackError, match="several stacks"):
        places.find(None, False, "default")
    with pytest.raises(StackError, match="no stack in"):
        places.find(None, True, "b")


@pytest.mark.parametrize("name", ["", "A", "-a", "a/b", "x" * 21])
def test_sandbox_name_when_it_is_no_name_then_refused(name):
    with pytest.raises(StackError, match="not a name"):
        places.default_state(True, name)


def test_write_private_when_the_file_was_readable_before_then_no_longer(tmp_path):
    path = tmp_path / "deep" / "secret"
    places.write_private(path, "1")
    path.chmod(0o644)
    places.write_private(path, "2")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("2", 0o600)
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_secrets_when_asked_twice_or_by_another_process_then_the_same_and_private(tmp_path):
    from stacklib.secrets import Secrets

    path = tmp_path / "secrets.json"
    first = Secrets(path)
    word, other = first.password("admin"), first.password("nova")
    assert word != other and len(word) == 24 and word.isalnum()
    assert Secrets(path).password("admin") == word
    assert path.stat().st_mode & 0o777 == 0o600


def test_instances_when_storage_is_shared_then_all_hosts_have_one_directory(short_path):
    shared = Layout(short_path, Choices(sandbox=True, hosts=2, shared_storage=True))
    assert shared.instances("host1") == shared.instances("host2")
    apart = Layout(short_path, Choices(sandbox=True, hosts=2))
    assert apart.instances("host1") == apart.nova_state("host1") / "instances" != apart.instances("host2")
