"""An environment a release, and the links to the active and to the previous one, wherever it is interrupted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stacklib import venvs
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.releases import Releases
from stacklib.venvs import Builder

OPTIONS = "[options]\ninstall_requires =\n    {needs}\n[options.extras_require]\nmemcached =\n    m\n"


def made(top: Path, name: str, release: str = "0.2.0") -> Path:
    (top / name / "lib/python3.11/site-packages" / f"nova_iaas-{release}.dist-info").mkdir(parents=True)
    return top / name


@pytest.fixture
def there(tmp_path: Path) -> Releases:
    return Releases(tmp_path)


def activate(there: Releases, *names: str) -> None:
    """Each is made, and then active; older ones go."""
    for name in names:
        if not (there.venvs / name).exists():
            made(there.venvs, name)
        there.activate(name)
        there.remove_older()


def test_activate_when_it_is_the_third_then_the_second_is_kept_and_the_first_removed(there):
    activate(there, "nova-1")
    assert (there.active, there.previous) == ("nova-1", "")
    activate(there, "nova-2", "nova-3")
    assert (there.active, there.previous) == ("nova-3", "nova-2")
    assert sorted(path.name for path in there.venvs.iterdir()) == ["nova", "nova-2", "nova-3", "nova.previous"]


def test_activate_when_it_is_active_then_the_previous_one_stays(there):
    activate(there, "nova-1", "nova-2", "nova-2")
    assert (there.active, there.previous) == ("nova-2", "nova-1")


def test_activate_when_a_process_runs_from_an_older_one_then_that_is_kept_until_it_ends(there):
    activate(there, "nova-1")
    program = str(there.venvs / "nova-1" / "bin" / "nova-api")
    script = "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script, program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as runs:
        assert runs.stdout and runs.stdout.readline()  # before it runs, the kernel may show no command of it yet
        activate(there, "nova-2", "nova-3")
        assert (there.venvs / "nova-1").is_dir()
    activate(there, "nova-3")
    assert not (there.venvs / "nova-1").exists()


@pytest.mark.parametrize("link", ["nova.previous", "nova"])
def test_activate_when_it_dies_at_a_rename_then_the_link_leads_where_it_led_and_a_second_one_ends(
        there, monkeypatch, link):
    activate(there, "nova-1")
    real = Path.rename

    def dies(self: Path, target: Path) -> Path:
        if target.name == link:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", dies)
        activate(there, "nova-2")
    assert there.active == "nova-1"
    activate(there, "nova-2")
    assert (there.active, there.previous) == ("nova-2", "nova-1")


def test_directory_of_an_older_release_when_a_release_comes_then_it_is_the_previous_one(there):
    made(there.venvs, "nova", "0.1.0")
    assert there.described(there.active) == "0.1.0 (nova)"
    activate(there, "nova-1")
    assert (there.active, there.previous) == ("nova-1", "nova-former")
    assert there.described(there.previous) == "0.1.0 (nova-former)"
    there.go_back()
    assert (there.venvs / "nova").is_symlink() and there.active == "nova-former"


def test_directory_of_an_older_release_when_its_move_was_the_last_thing_done_then_it_still_is_the_previous_one(there):
    made(there.venvs, "nova-former", "0.1.0")
    activate(there, "nova-1")
    assert (there.active, there.previous) == ("nova-1", "nova-former")


# --- building --------------------------------------------------------------------------------------------------------


#: What uv does with files: a new file for each that it replaces. It is killed before a package is whole where DIES is.
UV = """#!/usr/bin/python3
import sys
from pathlib import Path
words = sys.argv[2:]
here = Path(__file__).parent
with (here / "calls").open("a") as calls:
    print(*(word for word in words if word in ("venv", "pip", "--clear", "--relocatable", "--no-deps")), file=calls)
if words[0] == "venv":
    Path(words[-1]).mkdir(exist_ok=True)
    (Path(words[-1]) / "dependency").write_text("d")
    sys.exit()
package = Path(words[words.index("--python") + 1]).parents[1] / "package"
package.unlink(missing_ok=True)
if (here / "dies").exists():
    sys.exit("killed")
source = next(word.partition("[")[0] for word in words if word.endswith("[memcached]"))
package.write_text(Path(source, "nova", "a.py").read_text())
"""


class Uv:
    """The program in the place of uv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "uv").write_text(UV)
        (folder / "uv").chmod(0o755)

    def calls(self) -> list[str]:
        """Since it was asked last."""
        said = (self.folder / "calls").read_text().splitlines()
        (self.folder / "calls").unlink()
        return said

    def die(self) -> None:
        (self.folder / "dies").touch()

    def live(self) -> None:
        (self.folder / "dies").unlink()


@pytest.fixture
def uv(tmp_path) -> Uv:
    return Uv(tmp_path / "venvs" / "uv" / "bin")


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    top = tmp_path / "checkout"
    (top / "nova").mkdir(parents=True)
    (top / "nova" / "a.py").write_text("1")
    (top / "setup.cfg").write_text(OPTIONS.format(needs="a"))
    monkeypatch.setattr(venvs, "CHECKOUT", top)
    return top


@pytest.fixture
def builder(tmp_path, monkeypatch, short_path, uv, checkout) -> Builder:
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    return Builder(Layout(short_path, Choices()), tmp_path / "log")


def test_release_when_the_dependencies_are_the_same_then_a_copy_is_changed_and_the_active_one_is_not(
        builder, checkout, uv):
    assert builder.nova().startswith("built")
    assert uv.calls() == ["venv --clear --relocatable", "pip"]
    first = (builder.layout.venvs / "nova").resolve()
    before = {path.name: path.read_text() for path in first.iterdir()}
    (checkout / "nova" / "a.py").write_text("2")
    name, words = builder.release()
    second = builder.layout.venvs / name
    assert (words, uv.calls()) == ("updated the package", ["pip --no-deps"])
    assert (second / "package").read_text() == "2"
    assert {path.name: path.read_text() for path in first.iterdir()} == before
    assert (first / "dependency").samefile(second / "dependency")
    assert Releases(builder.layout.venvs).active == first.name


def test_release_when_the_dependencies_are_others_then_it_is_made_from_nothing(builder, checkout, uv):
    builder.nova()
    (checkout / "setup.cfg").write_text(OPTIONS.format(needs="b"))
    uv.calls()
    assert builder.release()[1].startswith("built")
    assert uv.calls() == ["venv --clear --relocatable", "pip"]


def test_release_when_its_making_was_interrupted_then_the_active_one_serves_and_it_is_made_again(builder, checkout, uv):
    builder.nova()
    active = Releases(builder.layout.venvs).active
    (checkout / "nova" / "a.py").write_text("2")
    uv.die()
    for _ in range(2):
        with pytest.raises(StackError):
            builder.nova()
        assert Releases(builder.layout.venvs).active == active
        assert (builder.layout.venvs / "nova" / "package").read_text() == "1"
    uv.live()
    assert builder.nova() == "updated the package"
    assert (builder.layout.venvs / "nova" / "package").read_text() == "2"
    assert builder.nova() == "unchanged"



def test_release_when_a_program_of_a_killed_run_still_writes_there_then_it_is_removed_when_that_ends(
        builder, checkout, uv, monkeypatch) -> None:
    builder.nova()
    active = Releases(builder.layout.venvs).active
    (checkout / "nova" / "a.py").write_text("2")
    uv.die()
    with pytest.raises(StackError):
        builder.nova()
    uv.live()
    [left] = [path for path in builder.layout.venvs.glob("nova-*") if path.name != active]
    removes = shutil.rmtree

    def busy(path: Path, ignore_errors: bool = False) -> None:
        if path == left and len(tries) < 2:
            tries.append(path)  # a file was written meanwhile: the directory is not empty
            return
        removes(path, ignore_errors=ignore_errors)
    tries: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", busy)
    assert builder.nova() == "updated the package" and len(tries) == 2
    assert (builder.layout.venvs / "nova" / "package").read_text() == "2"
