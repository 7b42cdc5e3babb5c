"""The wheel as an operator gets it: built from a copy of the checkout, unpacked, and used from there."""

from __future__ import annotations

import configparser
import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from nova import version
from tests.unit.configuration.test_command_lines import scripts

TOP = Path(__file__).resolve().parents[2]
SOURCES = ("nova", "alembic", "etc", "setup.cfg", "pyproject.toml", "README.rst", "LICENSE")
OTHER_NAME = "etc/packaging/nova.cfg"
BUILD = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"
DATA = f"nova_iaas-{version.RELEASE}.data/data"
#: Folders of the checkout -> where their files are below the prefix; the others of ``etc`` are in ``share/nova/etc``.
PLACES = {"etc/completion": "share/bash-completion/completions", "etc/man": "share/man/man{section}",
          "etc/nova/rootwrap.d": "etc/nova/rootwrap.d"}
#: Files that tools copy out of ``etc/nova`` below the prefix, as upstream's distribution has them.
COPIED = ("api-paste.ini", "rootwrap.conf")

IN_A_CHECKOUT = {"container", "packaging"}  # folders of ``etc`` from which things are built

#: Runs in a process that sees the unpacked wheel instead of the checkout.
SYNC = """
import sys, sysconfig
site, prefix, database = sys.argv[1:]
sys.path.insert(0, site)
sysconfig.get_path = lambda name, *rest, **more: prefix
import nova.db.schema.migrate as migrate
import nova.db.schema.revisions as revisions
from nova.db.sql.engine import Database
assert migrate.__file__.startswith(site), migrate.__file__
for schema in revisions.SCHEMAS:
    store = Database(f"sqlite:///{database}")
    print(schema, *migrate.sync(schema, store))
    revisions.check(schema, store)
"""


def settings() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(TOP / "setup.cfg")
    return found


def entry_points() -> list[tuple[str, str, str]]:
    """(group, name, module:object) of every entry point."""
    found = []
    for group, lines in settings()["options.entry_points"].items():
        for line in lines.strip().splitlines():
            name, _, target = line.partition("=")
            found.append((group, name.strip(), target.strip()))
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with what is installed here, without the network; the checkout is left as it was."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed here, so no wheel can be built")
    if importlib.util.find_spec("wheel") is None and importlib.util.find_spec("setuptools.command.bdist_wheel") is None:
        pytest.skip("neither wheel nor a setuptools of 70.1 or newer is installed here, so no wheel can be built")
    return built(tmp_path_factory)


def built(folders: pytest.TempPathFactory, **environment: str) -> Path:
    copy, out = folders.mktemp("source"), folders.mktemp("wheel")
    for name in SOURCES:
        path = TOP / name
        if path.is_dir():
            shutil.copytree(path, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, copy / name)
    result = subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=copy, capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": "", **environment}, timeout=120, check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def data(path: Path) -> str:
    """Where the wheel keeps a file of the checkout that is installed below the prefix."""
    return f"{DATA}/share/nova/{path.relative_to(TOP)}"


def place(path: Path) -> str:
    """The same for a file of ``etc``."""
    known = "etc/nova" if path.name in COPIED else PLACES.get(str(path.parent.relative_to(TOP)))
    if known is None:
        return data(path)
    prefix = DATA
    return f"{prefix}/{known.format(section=path.suffix.removeprefix('.'))}/{path.name}"


def shipped() -> list[Path]:
    """The files of ``etc`` that are installed: all but what is used in a checkout."""
    return [path for path in (TOP / "etc").rglob("*")
            if path.is_file() and IN_A_CHECKOUT.isdisjoint(path.relative_to(TOP).parts)]


def test_etc_nova_when_a_tool_copies_all_of_it_to_the_machine_then_no_daemon_reads_options_from_it() -> None:
    generators = {"nova-config-generator.conf", "nova-policy-generator.conf"}
    copied = {path.name for path in (TOP / "etc/nova").iterdir()}
    assert copied == {*COPIED, "rootwrap.d", *generators, "nova.conf.sample", "policy.yaml.sample"}


def migrations() -> list[Path]:
    return [path for path in (TOP / "alembic").rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_wheel_has_every_file_of_the_migrations(names: set[str]) -> None:
    assert migrations()
    assert {data(path) for path in migrations()} - names == set()


def test_wheel_has_every_file_that_an_operator_installs_as_it_stands_in_the_checkout(
        wheel: Path, names: set[str]) -> None:
    assert {place(path) for path in shipped()} - names == set()
    with zipfile.ZipFile(wheel) as archive:
        assert [path.name for path in shipped() if archive.read(place(path)) != path.read_bytes()] == []


def test_wheel_has_no_other_file_below_the_prefix(names: set[str]) -> None:
    known = {*map(place, shipped()), *map(data, migrations())}
    prefix = DATA
    assert {name for name in names if name.startswith(f"{prefix}/") and not name.endswith("/")} - known == set()


def test_wheel_has_every_module_of_the_package_and_nothing_else_of_the_checkout(names: set[str]) -> None:
    modules = {str(path.relative_to(TOP)) for path in (TOP / "nova").rglob("*.py")}
    assert modules - names == set()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.startswith("nova_iaas-")} == {"nova"}


def test_wheel_has_the_scripts_for_wsgi_servers_with_an_application_each(wheel: Path, names: set[str]) -> None:
    folder = DATA.removesuffix("data") + "scripts"
    with zipfile.ZipFile(wheel) as archive:
        for name in ("nova-api-wsgi", "nova-metadata-wsgi", "nova-placement-wsgi"):
            text = archive.read(f"{folder}/{name}").decode()
            assert text.startswith("#!python") and "import application" in text


def test_wheel_describes_itself_by_the_readme(wheel: Path, names: set[str]) -> None:
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(metadata).decode()
    assert "Description-Content-Type: text/x-rst" in text
    assert (TOP / "README.rst").read_text().splitlines()[0] in text


def test_wheel_outside_a_checkout_brings_databases_to_its_schema(wheel: Path, tmp_path: Path) -> None:
    site, database = tmp_path / "site", tmp_path / "nova.db"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    prefix = site / DATA
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", SYNC, str(site), str(prefix), str(database)],
                            cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""},
                            timeout=120, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["api", "cell"]


@pytest.mark.parametrize(("group", "name", "target"), entry_points(), ids=lambda value: value)
def test_entry_point_then_its_function_is_there(group: str, name: str, target: str) -> None:
    module, _, function = target.partition(":")
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed here: install the requirements of setup.cfg anew")
    assert callable(getattr(importlib.import_module(module), function, None)), f"{group}: {name} = {target}"


def test_every_daemon_has_a_console_script_and_a_unit() -> None:
    scripts = {name for group, name, _ in entry_points() if group == "console_scripts"}
    units = {path.stem for path in (TOP / "etc" / "systemd").glob("*.service")}
    assert units == scripts - {"nova-all", "nova-manage", "nova-policy", "nova-status", "nova-dhcpbridge",
                             "nova-rootwrap", "nova-rootwrap-daemon"}
    for unit in (TOP / "etc" / "systemd").glob("*.service"):
        assert "Type=notify" in unit.read_text().splitlines(), unit.name


def test_release_then_setup_cfg_takes_it_from_the_package_and_the_notes_tell_of_it() -> None:
    assert settings()["metadata"]["version"] == "attr: nova.version.RELEASE"
    assert f"\n{version.RELEASE}\n=====" in (TOP / "doc" / "releases.rst").read_text()


def test_wheel_when_the_other_name_is_asked_for_then_it_is_the_same_under_that_name(
        tmp_path_factory: pytest.TempPathFactory, wheel: Path, names: set[str]) -> None:
    """For tools that install or require a distribution called nova."""
    other = built(tmp_path_factory, DIST_EXTRA_CONFIG=OTHER_NAME)
    assert other.name == wheel.name.replace("nova_iaas-", "nova-", 1)
    with zipfile.ZipFile(other) as archive:
        assert {re.sub(r"^nova-(?=\d)", "nova_iaas-", name) for name in archive.namelist()} == names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel's modules and entry points are."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def oslo(site: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """One of oslo's programs for packagers, which find us by our entry points."""
    return subprocess.run([str(Path(sys.executable).with_name(program)), *words], cwd=site, capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(site)}, timeout=120, check=False)


def test_config_generator_when_given_our_file_then_the_sample_has_our_options_and_the_libraries(
        installed: Path, tmp_path: Path) -> None:
    sample = tmp_path / "nova.conf.sample"
    done = oslo(installed, "oslo-config-generator", "--config-file", str(TOP / "etc/nova/nova-config-generator.conf"),
                "--output-file", str(sample))
    assert done.returncode == 0, done.stderr[-2000:]
    lines = set(sample.read_text().splitlines())
    assert {"[libvirt]", "#my_ip = <host_ipv4>", "[keystone_authtoken]", "[oslo_messaging_rabbit]"} <= lines


def test_policy_generator_when_given_our_file_then_the_sample_has_our_rules(installed: Path, tmp_path: Path) -> None:
    sample = tmp_path / "policy.yaml.sample"
    done = oslo(installed, "oslopolicy-sample-generator", "--config-file",
                str(TOP / "etc/nova/nova-policy-generator.conf"), "--output-file", str(sample))
    assert done.returncode == 0, done.stderr[-2000:]
    assert '#"os_compute_api:servers:index":' in sample.read_text()


@pytest.mark.parametrize(("line", "status"), [("my_ip = 192.0.2.1", 0), ("my_ipp = 192.0.2.1", 1)])
def test_config_validator_when_given_our_file_then_it_finds_a_wrong_name_and_no_other(
        installed: Path, tmp_path: Path, line: str, status: int) -> None:
    """As kolla-ansible's validate-config has it."""
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[DEFAULT]\n{line}\n[database]\nconnection = mysql+pymysql://nova:x@db/nova\n"
                    "[libvirt]\nvirt_type = qemu\n[oslo_messaging_rabbit]\nrabbit_quorum_queue = true\n")
    done = oslo(installed, "oslo-config-validator", "--config-file",
                str(TOP / "etc/nova/nova-config-generator.conf"), "--input-file", str(conf))
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-2000:]


def test_completion_when_a_tool_takes_it_from_tools_then_it_is_the_one_of_etc() -> None:
    """devstack installs it from there; the only exception to the checkout's layout."""
    link = TOP / "tools/nova-manage.bash_completion"
    assert [path.name for path in link.parent.iterdir()] == [link.name]
    assert link.resolve() == TOP / "etc/completion/nova-manage"


def test_scripts_then_each_is_importable_by_its_entry() -> None:
    for entry in scripts().values():
        module: ModuleType = importlib.import_module(entry.split(":")[0])
        assert callable(module.main)
