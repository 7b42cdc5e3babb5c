"""``etc/container/Containerfile``, as text: nothing here builds images."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from stacklib.packages import PACKAGES

TOP = Path(__file__).resolve().parents[3]
FILE = TOP / "etc" / "container" / "Containerfile"
INSTALL = (TOP / "doc" / "install.rst").read_text()
#: What compilers need; the environment is made where there are none.
BUILDING = {"gcc", "libc6-dev", "libvirt-dev", "pkg-config", "python3-dev", "python3-venv"}
#: What the daemons need beside the part "nova": libvirt's library, and mkfs.vfat for config drives.
BESIDE = {"libvirt-clients", "dosfstools"}
#: The file's name of the release that the install page names.
BASES = {"Debian 12": "debian:bookworm-slim"}


class Instruction(NamedTuple):
    stage: int
    word: str
    text: str


def instructions() -> list[Instruction]:
    """In order, each on one line; stages are counted from 1."""
    lines = [line for line in FILE.read_text().splitlines() if line.strip() and not line.startswith("#")]
    found, stage = [], 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, text = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, text))
    return found


def texts(word: str, stage: int | None = None) -> list[str]:
    return [one.text for one in instructions() if one.word == word and stage in (None, one.stage)]


def packages(stage: int) -> set[str]:
    (line,) = (text for text in texts("RUN", stage) if "apt-get install" in text)
    return set(line.partition("--no-install-recommends ")[2].partition(" &&")[0].split())


def distribution() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(TOP / "setup.cfg")
    return found


def system_files(folder: str) -> str:
    return "".join(path.read_text() for path in sorted((TOP / "etc" / folder).iterdir()))


def test_stages_then_each_begins_with_the_debian_of_the_install_page() -> None:
    (release,) = re.findall(r"^Tested: (Debian \d+) ", INSTALL, re.M)
    assert [text.split()[0] for text in texts("FROM")] == [BASES[release]] * 2
    assert "://" not in FILE.read_text()


def test_packages_then_they_are_those_that_the_stack_installs_for_the_daemons() -> None:
    assert packages(1) == BUILDING
    assert packages(2) == set(PACKAGES["nova"]) - BUILDING | BESIDE | {"python3-venv"}
    assert {name for listed in PACKAGES.values() for name in listed} >= packages(1) | packages(2)


def test_sources_then_they_are_all_that_the_wheel_is_built_from() -> None:
    copied = [text.split() for text in texts("COPY", 1)]
    assert all(folder == [name] for name, *folder in copied[1:])
    names = {name for words in copied for name in words[:-1]}
    assert names == {"LICENSE", "README.rst", "pyproject.toml", "setup.cfg", "alembic", "etc", "nova"}
    read = {line.split("/")[0] for lines in distribution()["options.data_files"].values()
            for line in lines.strip().splitlines()}
    assert read <= names and all((TOP / name).exists() for name in names)


def test_wheel_then_the_second_stage_installs_our_distribution_from_the_first_one() -> None:
    name = distribution()["metadata"]["name"]
    (build,) = (text for text in texts("RUN", 1) if "pip wheel" in text)
    (install,) = (text for text in texts("RUN", 2) if "pip install" in text)
    assert "--wheel-dir /wheels '.[memcached]'" in build and texts("COPY", 2) == ["--from=wheels /wheels /wheels"]
    assert f"--no-index --find-links /wheels '{name}[memcached]' libvirt-python" in install
    assert texts("FROM")[0].endswith(" AS wheels")


def test_libvirt_python_then_it_is_chosen_as_on_the_install_page() -> None:
    (chosen,) = re.findall(r'pip install ("libvirt-python==.*")$', INSTALL, re.M)
    assert any(text.endswith(chosen) for text in texts("RUN", 1))


def test_users_and_folders_then_they_are_those_of_systemd() -> None:
    (made,) = (text for text in texts("RUN", 2) if "useradd" in text)
    users = dict(re.findall(r"--home-dir (\S+) .*?([\w-]+) &&", made))
    sysusers = system_files("sysusers.d")
    assert users == {home: name for name, home in re.findall(r'^u (\S+) +- ".*" +(\S+)$', sysusers, re.M)}
    assert "--groups nova nova-conductor" in made
    folders = {(mode, owner or "root", group, path)
               for mode, owner, group, path in re.findall(r"install -d -m (\d+)(?: -o (\S+))? -g (\S+) (\S+)", made)}
    tmpfiles = re.findall(r"^d (/\S+) +(\S+) (\S+) +(\S+) ", system_files("tmpfiles.d"), re.M)
    assert folders == {(mode, owner, group, path) for path, mode, owner, group in tmpfiles
                       if not path.startswith("/run/")}


def test_daemons_then_the_command_names_one_and_none_is_root_unless_told() -> None:
    assert texts("ENTRYPOINT") == [] and texts("USER") == ["nova"]
    assert texts("CMD") == ['["nova-manage", "version"]']
    assert texts("ENV")[0].startswith("PATH=/opt/nova/bin:")


@pytest.mark.parametrize("command", texts("RUN"), ids=lambda command: command.split()[0])
def test_command_then_the_shell_understands_it(command: str) -> None:
    subprocess.run(["sh", "-n", "-c", command], check=True)
