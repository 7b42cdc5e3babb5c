"""``etc/container`` as text: tests/fresh builds the images, and runs them. Here is what it must have in common with the
rest of the repository."""

from __future__ import annotations

import configparser
import importlib.util
import json
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from nova.conf.monitoring import PORTS
from nova.rpc import host_rights
from stacklib.packages import PACKAGES

TOP = Path(__file__).resolve().parents[3]
FOLDER = TOP / "etc" / "container"
CLOUD = FOLDER / "cloud"
DAEMONS, WHOLE, SERVICES = FOLDER / "Containerfile", FOLDER / "nova-all.Containerfile", CLOUD / "services.Containerfile"
FILES = (DAEMONS, WHOLE, SERVICES)
INSTALL = (TOP / "doc" / "install.rst").read_text()
PAGE = (TOP / "doc" / "containers.rst").read_text()
#: What compilers need; the environment is made where there are none.
BUILDING = {"gcc", "libc6-dev", "libvirt-dev", "pkg-config", "python3-dev", "python3-venv"}
#: What the daemons need beside the part "nova": libvirt's library, and what makes disks for guests.
BESIDE = {"libvirt-clients", "dosfstools", "e2fsprogs", "python3"}
#: Of the part "nova", whose files alone are taken.
TAKEN_APART = {"novnc"}
#: A container bounds what root may do in it: there is no helper.
AS_ROOT, HELPER = ("nova-compute", "nova-network"), "/var/lib/nova-privileged"
#: The file's name of the release that the install page names first.
BASES = {"12": "debian:bookworm-slim"}


class Instruction(NamedTuple):
    stage: int
    word: str
    text: str


def instructions(path: Path = DAEMONS) -> list[Instruction]:
    """In order, each on one line; stages are counted from 1."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    found, stage = [], 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, text = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, text))
    return found


def texts(word: str, stage: int | None = None, path: Path = DAEMONS) -> list[str]:
    return [one.text for one in instructions(path) if one.word == word and stage in (None, one.stage)]


def packages(stage: int) -> set[str]:
    (line,) = (text for text in texts("RUN", stage) if "apt-get install" in text)
    return set(line.partition("--no-install-recommends ")[2].partition(" &&")[0].split())


def distribution() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(TOP / "setup.cfg")
    return found


def system_files(folder: str) -> str:
    return "".join(path.read_text() for path in sorted((TOP / "etc" / folder).iterdir()))


def compose() -> dict[str, Any]:
    """The services of compose.yaml."""
    return yaml.safe_load((CLOUD / "compose.yaml").read_text())["services"]


@pytest.fixture(scope="module")
def preparing() -> ModuleType:
    """prepare.py, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("prepare", CLOUD / "prepare.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the images

@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_stages_then_each_begins_with_a_base_that_is_the_debian_of_the_install_page(path: Path) -> None:
    (release,) = re.findall(r"^Debian +Python.*\n=[= ]+\n(\d+) ", INSTALL, re.M)
    assert texts("ARG", 0, path) == [f"BASE={BASES[release]}"]
    assert {text.split()[0] for text in texts("FROM", path=path)} == {"${BASE}"}
    assert "://" not in path.read_text().replace("http://127.0.0.1:8774/", "")


def test_packages_then_they_are_those_that_the_stack_installs_for_the_daemons() -> None:
    assert packages(1) == BUILDING
    assert packages(2) == set(PACKAGES["nova"]) - BUILDING - TAKEN_APART | BESIDE
    assert {name for listed in PACKAGES.values() for name in listed} >= packages(1) | packages(2) - {"python3"}


@pytest.mark.parametrize("path", [DAEMONS, WHOLE], ids=lambda path: path.name)
def test_sources_then_they_are_all_that_the_wheel_is_built_from(path: Path) -> None:
    copied = [text.split() for text in texts("COPY", 1, path)]
    assert all(folder == [name] for name, *folder in copied[1:])
    names = {name for words in copied for name in words[:-1]}
    assert names == {"LICENSE", "README.rst", "pyproject.toml", "setup.cfg", "alembic", "etc", "nova"}
    read = {line.split("/")[0] for lines in distribution()["options.data_files"].values()
            for line in lines.strip().splitlines()}
    assert read <= names and all((TOP / name).exists() for name in names)


@pytest.mark.parametrize("path", [DAEMONS, WHOLE], ids=lambda path: path.name)
def test_environment_then_it_is_made_in_the_first_stage_and_copied_to_the_same_place(path: Path) -> None:
    name = distribution()["metadata"]["name"]
    (install,) = (text for text in texts("RUN", 1, path) if "--no-index" in text)
    assert "python3 -m venv --without-pip /opt/nova" in install and name in install
    assert "--from=build /opt/nova /opt/nova" in texts("COPY", 2, path)
    assert not [text for text in texts("RUN", 2, path) if "pip" in text]


def test_libvirt_python_then_it_is_chosen_as_on_the_install_page() -> None:
    (chosen,) = re.findall(r'pip install ("libvirt-python==.*")$', INSTALL, re.M)
    assert any(text.endswith(chosen) for text in texts("RUN", 1))


def test_users_and_folders_then_they_are_those_of_systemd_and_older_than_any_package() -> None:
    first, second = texts("RUN", 2)
    assert "useradd" in first and "apt-get" in second
    users = dict(re.findall(r"--home-dir (\S+) .*?([\w-]+) &&", first))
    sysusers = re.findall(r'^u (\S+) +- ".*" +(\S+)$', system_files("sysusers.d"), re.M)
    assert users == {home: name for name, home in sysusers if name in ("nova", "nova-conductor")}
    assert "--groups nova nova-conductor" in first
    folders = {(mode, owner or "root", group, path)
               for mode, owner, group, path in re.findall(r"install -d -m (\d+)(?: -o (\S+))? -g (\S+) (\S+)", first)}
    tmpfiles = re.findall(r"^d (/\S+) +(\S+) (\S+) +(\S+) ", system_files("tmpfiles.d"), re.M)
    assert folders == {(mode, owner, group, path) for path, mode, owner, group in tmpfiles
                       if path != HELPER and not path.startswith("/run/") and owner in ("root", *users.values())}


def test_daemons_then_the_command_names_one_and_none_is_root_unless_told() -> None:
    assert texts("ENTRYPOINT") == [] and texts("USER") == ["nova"]
    assert texts("CMD") == ['["nova-manage", "version"]']
    assert texts("ENV")[0].startswith("PATH=/opt/nova/bin:")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_health_then_each_image_has_a_check(path: Path) -> None:
    checks = texts("HEALTHCHECK", path=path)
    assert len(checks) == len(texts("CMD", path=path)) + len(texts("ENTRYPOINT", path=path))
    assert all("--timeout=" in check and " CMD [" in check for check in checks)


@pytest.mark.parametrize("command", [text for path in FILES for text in texts("RUN", path=path)],
                         ids=lambda command: command.split()[0])
def test_command_then_the_shell_understands_it(command: str) -> None:
    subprocess.run(["sh", "-n", "-c", command], check=True)


@pytest.mark.parametrize("name", ["database", "enroll"])
def test_script_then_the_shell_understands_it(name: str) -> None:
    subprocess.run(["sh", "-n", str(CLOUD / name)], check=True)


# -- the cloud of compose.yaml

def test_compose_then_each_daemon_has_the_images_user_that_owns_its_files() -> None:
    """A container has the files that are mounted in it: no user of its own keeps others from them."""
    for name, service in compose().items():
        daemon = next((word for word in service.get("command", "").replace('"', "").split()
                       if word in PORTS), None)
        if daemon:
            user = {"nova-conductor": "nova-conductor", **dict.fromkeys(AS_ROOT, "root")}.get(daemon, "nova")
            assert service.get("user", "nova") == user, name


def test_compose_then_no_port_is_open_to_others_and_no_secret_is_in_the_file() -> None:
    ports = [port for service in compose().values() for port in service.get("ports", ())]
    assert len(ports) == 3 and all(port.startswith("127.0.0.1:") for port in ports)
    assert not [name for name, service in compose().items() if "environment" in service]
    assert not re.search("password|secret_key", (CLOUD / "compose.yaml").read_text(), re.I)


def test_compose_then_each_file_that_it_mounts_is_made_for_the_user_who_reads_it(preparing: ModuleType) -> None:
    ids = {"root": preparing.ROOT, "nova": preparing.NOVA, "nova-conductor": preparing.CONDUCTOR,
           "broker": preparing.RABBITMQ, "database": preparing.MYSQL}
    owners = {**{name: {file.owner, file.group} for name, file in preparing.FILES.items()},
              preparing.DEFINITIONS: {preparing.RABBITMQ}}
    for name, service in compose().items():
        reader = ids[name if name in ids else service.get("user", "nova")]
        for volume in service.get("volumes", ()):
            file = re.match(r"\$\{NOVA_FILES:-/etc/nova-cloud}/([^:]+):\S+:ro$", volume)
            # root reads all; nova-conductor is in the group nova
            groups = {reader, preparing.NOVA} if reader == preparing.CONDUCTOR else {reader}
            assert not file or reader == preparing.ROOT or groups & owners[file[1]], (name, volume)


def test_ids_of_users_then_they_are_those_of_the_images(preparing: ModuleType) -> None:
    made = "".join(text for path in (DAEMONS, SERVICES) for text in texts("RUN", path=path))
    users = re.findall(r"--uid (\d+) .*?([\w-]+)(?= &&|useradd|apt-get|$)", made)
    found = {name: int(number) for number, name in users}
    assert {preparing.NOVA, preparing.CONDUCTOR, preparing.RABBITMQ, preparing.MYSQL} == set(found.values())
    assert (found["nova"], found["nova-conductor"]) == (preparing.NOVA, preparing.CONDUCTOR)


def test_prepare_when_it_runs_again_then_passwords_stay(preparing: ModuleType, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    owners: list[tuple[int, int]] = []
    monkeypatch.setattr(preparing.os, "fchown", lambda _fd, *ids: owners.append(ids))
    preparing.prepare(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(written) == {*preparing.FILES, preparing.DEFINITIONS} and (0, preparing.NOVA) in owners
    assert {path.stat().st_mode & 0o7777 for path in tmp_path.iterdir()} == {0o600, 0o640}
    assert not [name for name, text in written.items() if name.endswith(".conf") and re.search(r"\{\w+\}", text)]
    preparing.prepare(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == written


def test_broker_then_hosts_have_the_rights_that_the_command_prints(preparing: ModuleType) -> None:
    found = json.loads(preparing.definitions(preparing.words()))
    rights = {one["user"]: one for one in found["permissions"] if one["user"].startswith("host-")}
    assert set(rights) == {"host-controller", "host-compute1"}
    for host in (preparing.CONTROLLER, preparing.COMPUTE):
        assert host_rights.permissions(host).items() <= rights[f"host-{host}"].items()
        assert rights[f"host-{host}"]["vhost"] == host_rights.VHOST
    assert {one["limits"]["max-channels"] for one in found["users"] if "limits" in one} == {400}


# -- the page

def test_page_then_a_container_has_the_grace_of_its_unit() -> None:
    units = {TOP / "etc" / "systemd" / f"{daemon}.service" for daemon in PORTS}  # nova-privileged is in no container
    (seconds,) = {number for unit in units if unit.exists()
                  for number in re.findall(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.M)}
    assert set(re.findall(r"(?:--stop-timeout|--timeout) (\d+)", PAGE)) == {seconds}
    assert {one["stop_grace_period"] for one in compose().values() if "stop_grace_period" in one} == {f"{seconds}s"}


def test_page_then_its_images_are_those_that_compose_names() -> None:
    tags = set(re.findall(r"--tag (\S+)", PAGE))
    assert {one["image"] for one in compose().values()} <= {f"localhost/{tag}" for tag in tags}
