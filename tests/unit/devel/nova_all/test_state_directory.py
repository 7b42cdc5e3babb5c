"""Where nova-all keeps its files, and ids that are the same each time."""

from __future__ import annotations

import contextlib
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.conf._options import Options
from nova.devel.nova_all import fixed_ids, state_directory
from nova.devel.nova_all.hosts import options_of
from nova.devel.nova_all.state_directory import StateDirectory


@pytest.fixture(autouse=True)
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(state_directory, "IN_MEMORY", tmp_path)
    return tmp_path


def test_home_when_no_folder_is_named_then_it_is_private_and_goes_at_the_end(above: Path) -> None:
    made = StateDirectory(None)
    assert made.path.parent == above and made.path.stat().st_mode & 0o777 == 0o700 and not made.lasting
    made.leave()
    made.leave()
    assert list(above.iterdir()) == []


def test_home_when_a_start_still_creates_files_then_it_goes_nevertheless(above: Path) -> None:
    made, ended = StateDirectory(None), threading.Event()

    def create() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            with contextlib.suppress(OSError):
                (made.path / f"file{number}").write_text("x")

    creating = threading.Thread(target=create)
    creating.start()
    made.leave()
    ended.set()
    creating.join()
    assert not list(above.iterdir())


def test_home_when_a_killed_cloud_left_one_then_it_is_removed_and_a_used_one_stays(above: Path) -> None:
    left, used = above / f"{state_directory.PREFIX}left", StateDirectory(None)
    (left / "deep").mkdir(parents=True)
    StateDirectory(None)
    assert not left.exists() and used.path.exists()


def test_choice_when_another_is_made_for_a_cloud_that_is_there_then_it_cannot_start(tmp_path: Path) -> None:
    first = StateDirectory(tmp_path / "cloud")
    first.check_choice("networking", "neutron")
    first.leave()
    second = StateDirectory(tmp_path / "cloud")
    second.check_choice("networking", "neutron")
    with pytest.raises(errors.service.CannotStart, match="was created with --networking neutron"):
        second.check_choice("networking", "nova")


def test_home_when_memory_is_small_then_it_is_on_a_disk(above: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory
                                                        ) -> None:
    disk = tmp_path_factory.mktemp("disk")
    monkeypatch.setattr(state_directory.tempfile, "gettempdir", lambda: str(disk))
    monkeypatch.setattr(state_directory.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2 ** 26))
    assert StateDirectory(None).path.parent == disk


def test_home_when_a_folder_is_named_then_its_files_stay(tmp_path: Path) -> None:
    made = StateDirectory(tmp_path / "mine" / "cloud")
    secret = made.secret("password")
    made.leave()
    assert StateDirectory(tmp_path / "mine" / "cloud").secret("password") == secret


def test_home_when_another_cloud_has_it_then_cannot_start_names_the_option(tmp_path: Path) -> None:
    first = StateDirectory(tmp_path / "mine")
    with pytest.raises(errors.service.CannotStart, match="--state"):
        StateDirectory(tmp_path / "mine")
    first.leave()
    StateDirectory(tmp_path / "mine")


def test_secret_when_made_then_nobody_else_can_read_it_and_a_said_one_takes_its_place() -> None:
    made = StateDirectory(None)
    first = made.secret("password")
    assert len(first) >= 12 and (made.path / "password").stat().st_mode & 0o777 == 0o600
    assert made.secret("password", "mine") == "mine" == made.secret("password")


def test_starts_when_counted_then_each_has_a_number() -> None:
    made = StateDirectory(None)
    assert [made.count_start() for _ in range(3)] == [0, 1, 2]


# --- ids


def one() -> str:
    return str(uuid.uuid4())


def other() -> str:
    return str(uuid.uuid4())


def test_ids_when_the_seed_is_the_same_then_so_are_they_whoever_else_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", uuid.uuid4)
    fixed_ids.plant("7 0")
    first = [one(), one()]
    fixed_ids.plant("7 0")
    other()
    again = [one(), (other(), one())[1]]
    assert first == again and len(set(first)) == 2
    assert uuid.UUID(first[0]).version == 4
    fixed_ids.plant("8 0")
    assert one() != first[0]


# --- options of one of several hosts


def test_options_of_a_host_when_made_then_it_has_its_own_name_and_directories_and_all_others(tmp_path: Path) -> None:
    source = conf.register(cfg.ConfigOpts())
    source([], default_config_files=[], default_config_dirs=[])
    options = Options.of(source)
    own = options_of(options, "host1", tmp_path)
    assert (own.host, own.state_path, own.instances_path) == (
        "host1", f"{tmp_path}/host1", f"{tmp_path}/host1/instances")
    assert (own.fake, own.my_ip, own.source) == (options.fake, options.my_ip, source) and options.host != "host1"
