"""`bin/build-debs`: what is in which package, and what dpkg is told of it. The environment is made up."""

from __future__ import annotations

import configparser
import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from deblib import cli, control, environment, trees
from deblib.control import Release
from deblib.scripts import scripts
from deblib.table import BUILDING, COMMON, EXAMPLES, PACKAGES, Package
from nova import version
from stacklib.errors import StackError
from stacklib.packages import PACKAGES as OF_THE_STACK
from stacklib.packages import SINCE_DEBIAN_13

TOP = Path(__file__).resolve().parents[3]
INSTALL = (TOP / "doc" / "install.rst").read_text()
RELEASE = Release(f"10:{version.RELEASE}-1", "amd64", (3, 11), "9.0.0", 1_700_000_000)
SITE = "usr/lib/nova/lib/python3.11/site-packages"
NAMED = {package.name: package for package in PACKAGES}

every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed here")


def setup() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(TOP / "setup.cfg")
    return found


def programs() -> set[str]:
    """All that the wheel puts into ``bin``."""
    scripts_of_ours = setup()["options"]["scripts"].split()
    lines = setup()["options.entry_points"]["console_scripts"].strip().splitlines()
    return {line.partition(" ")[0] for line in lines} | {Path(name).name for name in scripts_of_ours}


def environments(top: Path) -> None:
    """In small what pip makes: programs, a module, a compiled module."""
    for program in programs():
        write(top / COMMON / "usr/lib/nova/bin" / program, f"#!{top / COMMON}/usr/lib/nova/bin/python\n", 0o775)
    write(top / COMMON / "usr/lib/nova/pyvenv.cfg",
          f"home = /usr/bin\ncommand = /usr/bin/python3 -m venv {top / COMMON}/usr/lib/nova\n")
    write(top / COMMON / SITE / "nova/version.py", "RELEASE = ''\n", 0o600)
    write(top / "nova-compute" / SITE / "libvirtmod.so", "compiled", 0o755)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def complete(top: Path) -> dict[str, Path]:
    environments(top)
    for package in PACKAGES:
        trees.complete(package, top / package.name, RELEASE)
    return {package.name: top / package.name for package in PACKAGES}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> the tree that dpkg-deb packs."""
    return complete(tmp_path_factory.mktemp("trees"))


def files(tree: Path) -> list[Path]:
    """What a package brings: files and links, as they lie on a machine."""
    found = (path for path in tree.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(tree) for path in found if path.relative_to(tree).parts[0] != "DEBIAN")


def owners(made: dict[str, Path], name: str) -> list[str]:
    """The packages that have a file at this path."""
    return [package for package, tree in made.items() if Path(name) in files(tree)]


def fields(package: Package, release: Release = RELEASE) -> dict[str, str]:
    lines = control.control(package, release, 12).splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith(" "))


# -- which package has what

@pytest.mark.parametrize("program", sorted(programs()))
def test_program_then_one_package_links_it(made: dict[str, Path], program: str) -> None:
    (owner,) = owners(made, f"usr/bin/{program}")
    link = made[owner] / "usr/bin" / program
    assert os.path.normpath(Path("/usr/bin", os.readlink(link))) == f"/usr/lib/nova/bin/{program}"
    assert (made[COMMON] / f"usr/lib/nova/bin/{program}").exists()


@pytest.mark.parametrize("unit", sorted(path.name for path in (TOP / "etc/systemd").iterdir()))
def test_unit_then_the_package_of_its_name_has_it_and_its_program(made: dict[str, Path], unit: str) -> None:
    name = Path(unit).stem
    assert owners(made, f"usr/lib/systemd/system/{unit}") == [name]
    assert owners(made, f"usr/bin/{name}") == [name]
    assert unit.endswith(".socket") or f"ExecStart=/usr/bin/{name} " in (TOP / "etc/systemd" / unit).read_text()


def test_files_of_etc_then_each_is_in_one_package_as_it_stands_in_the_checkout(made: dict[str, Path]) -> None:
    ours = [path for path in (TOP / "etc").rglob("*")
            if path.is_file() and {"container", "packaging", "bounded"}.isdisjoint(path.relative_to(TOP).parts)]
    inside = [tree / name for tree in made.values() for name in files(tree) if not (tree / name).is_symlink()]
    known = Counter(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                    for path in inside)
    assert ours and {str(path): known[path.read_bytes()] for path in ours} == {str(path): 1 for path in ours}


def test_paths_then_no_two_packages_have_the_same_and_none_is_elsewhere(made: dict[str, Path]) -> None:
    paths = [path for name, tree in made.items() for path in files(tree) if name != "nova-compute-qemu"]
    assert len(paths) == len(set(paths))
    assert {path.parts[:2] for path in paths} <= {("usr", "bin"), ("usr", "lib"), ("usr", "share"), ("etc", "nova"),
                                                  ("etc", "logrotate.d")}


@pytest.mark.parametrize("folder", ["sysusers.d", "tmpfiles.d"])
def test_users_then_a_daemons_come_with_its_package_alone(made: dict[str, Path], folder: str) -> None:
    for path in (TOP / "etc" / folder).iterdir():
        assert owners(made, f"usr/lib/{folder}/{path.name}") == [COMMON if path.stem == "nova" else path.stem]


# -- what dpkg is told

@every_package
def test_control_then_it_is_of_one_version_with_the_others(package: Package) -> None:
    told = fields(package)
    assert told["Package"] == package.name and told["Version"] == RELEASE.version
    assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", package.name) and len(told["Description"]) <= 80
    assert told["Architecture"] == ("amd64" if package.binary else "all")
    if package.name != COMMON:
        assert f"nova-common (= {RELEASE.version})" in told["Depends"].split(", ")
    assert all(line.startswith(" ") and len(line) <= 80 for line in control.ABOUT.splitlines())


def test_control_of_what_is_compiled_then_it_is_for_one_python_and_one_libvirt() -> None:
    assert fields(NAMED[COMMON])["Depends"].startswith("python3 (>= 3.11~), python3 (<< 3.12~), ")
    assert "libvirt0 (>= 9.0.0)" in fields(NAMED["nova-compute"])["Depends"].split(", ")
    assert "libvirt0" not in fields(NAMED[COMMON])["Depends"]


def test_version_then_it_is_newer_than_any_of_a_distribution() -> None:
    assert control.version(3) == f"10:{version.RELEASE}-3"
    assert Release(control.version(3), "all", (3, 11), "9", 0).in_names == f"{version.RELEASE}-3"


def of_the_page(end: str) -> set[str]:
    """The packages of the install command whose line ends so."""
    text = INSTALL.replace("\\\n", " ")
    (line,) = re.findall(rf"^ +apt install --no-install-recommends ([^\n#]*?) *{end}", text, re.M)
    return set(line.split())


def test_depends_then_they_are_those_of_the_install_page_and_of_the_stack() -> None:
    rules = of_the_page("# security groups")
    helper = set(NAMED)
    assert set(NAMED["nova-network"].depends) - helper == of_the_page("# nova-network")
    (compute,) = re.findall(r"^ +apt install --no-install-recommends (python3-venv python3-dev.*)$",
                            INSTALL.replace("\\\n", " "), re.M)
    assert set(NAMED["nova-compute"].depends) - helper == set(compute.split()) - set(BUILDING) | rules
    needed = {name.partition(" |")[0] for package in PACKAGES for name in (*package.depends, *package.recommends)}
    assert needed >= set(OF_THE_STACK["nova"]) - set(BUILDING)
    assert needed - {"systemd"} - helper <= {name for listed in (*OF_THE_STACK.values(), *SINCE_DEBIAN_13.values())
                                    for name in listed}


def test_install_page_then_building_takes_what_it_says_and_each_package_is_in_its_table() -> None:
    text = INSTALL[INSTALL.index("\nDebian packages\n"):INSTALL.index("\nUnder uWSGI or gunicorn\n")]
    (line,) = re.findall(r"^ +apt install --no-install-recommends (.*)$", text, re.M)
    assert set(line.split()) == set(BUILDING)
    first_column = "\n".join(row[:42] for row in text.split("\n===")[2].splitlines())
    table = re.findall(r"(?:python3-)?nova(?:-[a-z0-9-]+)?", first_column)
    assert sorted(table) == sorted(NAMED)


@pytest.mark.parametrize("unit", sorted((TOP / "etc/systemd").iterdir()), ids=lambda unit: unit.stem)
def test_unit_when_another_distribution_calls_it_otherwise_then_its_package_has_that_name_too(
        made: dict[str, Path], unit: Path) -> None:
    for alias in re.findall(r"^Alias=(.*)$", unit.read_text(), re.M):
        link = made[unit.stem] / f"usr/lib/systemd/system/{alias}"
        assert link.is_symlink() and os.readlink(link) == unit.name


@pytest.mark.parametrize(("name", "called"), [("nova-spicehtml5proxy", "nova-spiceproxy")])
def test_package_when_another_distribution_calls_it_otherwise_then_it_provides_that_name(
        name: str, called: str) -> None:
    [package] = [one for one in PACKAGES if one.name == name]
    assert fields(package)["Provides"] == called


@pytest.mark.parametrize(("name", "needs"), [
    ("python3-nova", "nova-api, nova-api-metadata"), ("nova-consoleproxy", "nova-novncproxy"),
    ("nova-compute-kvm", "nova-compute"), ("nova-compute-qemu", "nova-compute")])
def test_package_when_tools_install_it_by_a_name_of_debians_then_it_brings_what_has_another_name_here(
        made: dict[str, Path], name: str, needs: str) -> None:
    told = fields(NAMED[name])
    assert told["Depends"] == f"{COMMON} (= {RELEASE.version}), {needs}"
    hypervisor = name.partition("nova-compute-")[2]
    assert told.get("Conflicts") == told.get("Provides") == ("nova-compute-hypervisor" if hypervisor else None)
    if hypervisor:
        chosen = configparser.ConfigParser()
        chosen.read(made[name] / "etc/nova/nova-compute.conf")
        assert chosen["libvirt"]["virt_type"] == hypervisor


@pytest.mark.parametrize(("name", "replaced"), [
    (COMMON, ["nova-compute"]), ("nova-api", [COMMON]), ("nova-api-metadata", [COMMON, "nova-api"]),
    *((f"nova-{kind}proxy", ["nova-consoleproxy"]) for kind in ("novnc", "spicehtml5", "serial"))])
def test_package_when_debians_has_some_of_its_files_then_it_replaces_those_and_none_of_ours(
        name: str, replaced: list[str]) -> None:
    told = fields(NAMED[name])
    assert told["Replaces"] == told["Conflicts"] == ", ".join(f"{one} (<< 10:0~)" for one in replaced)
    for lower, higher in (("3:99", "10:0~"), ("10:0~", RELEASE.version)):
        subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher], check=True)


def test_rootwrap_when_libraries_are_the_packages_then_their_programs_are_found_before_the_systems() -> None:
    told = configparser.ConfigParser()
    told.read(TOP / "etc/nova/rootwrap.conf")
    assert told["DEFAULT"]["exec_dirs"].split(",")[0] == f"/{trees.ENVIRONMENT}/bin"


@every_package
def test_conffiles_then_they_are_its_files_of_etc_and_none_has_passwords(made: dict[str, Path], package: Package
                                                                         ) -> None:
    tree = made[package.name]
    listed = (tree / "DEBIAN/conffiles").read_text().split() if (tree / "DEBIAN/conffiles").exists() else []
    assert listed == [f"/{path}" for path in files(tree) if path.parts[0] == "etc"]
    assert set(listed) == {f"/{name}" for name in package.files.values() if name.startswith("etc/")}
    if (tree / "etc/nova").exists():
        assert stat.S_IMODE((tree / "etc/nova").stat().st_mode) == 0o750


def test_modes_then_all_may_read_the_rest_and_times_are_the_releases(made: dict[str, Path]) -> None:
    for tree in made.values():
        for path in (tree / name for name in files(tree) if name.parts[0] == "usr"):
            assert path.lstat().st_mtime == RELEASE.seconds
            if not path.is_symlink():
                assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.parent.name == "bin" or
                                                             path.suffix == ".so" else 0o644), path


def test_examples_then_they_set_nothing_so_that_a_tools_nova_conf_alone_counts(made: dict[str, Path]) -> None:
    for package in (one for one in PACKAGES if one.config):
        told = configparser.ConfigParser()
        text = (made[package.name] / EXAMPLES / package.config.name).read_text()
        told.read_string(text)
        assert told.sections() and not any(told.items(section) for section in told.sections())
        assert re.search(r"^#[a-z_]+ = \S*[A-Z_]{5}", text, re.M)  # what to replace is there


def test_examples_then_tools_that_write_the_configuration_run_before_anybody_has_changed_them() -> None:
    given = [word for package in PACKAGES if package.config
             for word in ("--config-file", str(TOP / "etc/bounded" / package.config.name))]
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "nova.manage.main", *given, "version"], cwd=TOP,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(TOP)}, check=False)
    assert (done.returncode, done.stdout) == (0, f"{version.RELEASE}\n"), done.stderr


# -- its scripts: what they do is in test_build_debs_scripts.py

@every_package
def test_scripts_then_the_shell_understands_them_and_they_may_be_run(made: dict[str, Path], package: Package) -> None:
    for name in scripts(package):
        script = made[package.name] / "DEBIAN" / name
        assert stat.S_IMODE(script.stat().st_mode) == 0o755
        subprocess.run(["sh", "-n", str(script)], check=True)


# -- the environment

def test_environment_when_moved_then_it_knows_nothing_of_where_it_was_made(tmp_path: Path) -> None:
    environments(tmp_path)
    tree = tmp_path / COMMON
    for name in ("usr/lib/nova/bin/activate", "usr/lib/nova/share/man/man1/x.1", f"{SITE}/a.dist-info/RECORD",
                 f"{SITE}/a.dist-info/direct_url.json"):
        write(tree / name, f"file://{tmp_path}")
    write(tree / "usr/lib/nova/share/nova/alembic/env.py", "")
    environment.move(tree)
    left = [path for path in tree.rglob("*") if path.is_file()]
    assert [path for path in left if str(tmp_path).encode() in path.read_bytes()] == []
    assert (tree / "usr/lib/nova/bin/nova-api").read_text() == "#!/usr/lib/nova/bin/python\n"
    assert tree / "usr/lib/nova/share/nova/alembic/env.py" in left and not (tree / "usr/lib/nova/share/man").exists()


def test_environment_when_pip_fails_then_its_last_words_and_the_log_are_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "python", "#!/bin/sh\necho no room\nexit 3\n", 0o755)
    monkeypatch.setattr(environment.venvs, "PYTHON", str(tmp_path / "python"))
    with pytest.raises(StackError, match="(?s)no room.*log"):
        environment.Maker(tmp_path, tmp_path / "log").common(tmp_path / "tree")
    assert "no room" in (tmp_path / "log").read_text()


# -- the command

def test_command_when_a_tool_is_missing_then_it_says_how_to_get_it(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "LOG", tmp_path / "log")
    monkeypatch.setattr(cli.packages, "not_installed_of", lambda wanted: ["libvirt-dev"])
    monkeypatch.setattr(cli.tempfile, "tempdir", str(tmp_path))
    assert cli.main(["--output", str(tmp_path / "out")]) == 1
    assert "-> apt-get install libvirt-dev" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_command_when_constraints_are_not_there_then_it_says_so(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "LOG", tmp_path / "log")
    assert cli.main(["--constraints", str(tmp_path / "none")]) == 1
    assert "is not a file" in capsys.readouterr().err


def test_command_when_the_folder_has_another_version_then_it_is_refused_and_the_same_is_written_over(
        tmp_path: Path) -> None:
    write(tmp_path / f"nova-api_{RELEASE.in_names}_all.deb", "")
    cli.check_output(tmp_path, RELEASE)
    write(tmp_path / "nova-api_0.1.0-1_all.deb", "")
    with pytest.raises(StackError, match="another version: nova-api_0.1.0-1_all.deb"):
        cli.check_output(tmp_path, RELEASE)


def test_command_when_interrupted_then_it_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(options: object, work: Path) -> list[Path]:
        write(work / "file", "")
        raise KeyboardInterrupt
    monkeypatch.setattr(cli, "build", interrupted)
    monkeypatch.setattr(cli, "LOG", tmp_path / "log")
    monkeypatch.setattr(cli.tempfile, "tempdir", str(tmp_path))
    assert cli.main([]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("word", ["0", "-1", "new"])
def test_command_when_a_revision_is_no_number_then_it_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([f"--revision={word}"])
    assert "is not a positive number" in capsys.readouterr().err


# -- dpkg-deb

@needs_dpkg
def test_packed_when_made_twice_then_it_is_the_same_and_root_owns_all(made: dict[str, Path], tmp_path: Path) -> None:
    again = complete(tmp_path / "trees")
    for name in (COMMON, "nova-compute", "nova-conductor"):
        packed = []
        for number, tree in enumerate((made[name], again[name])):
            (tmp_path / str(number)).mkdir(exist_ok=True)
            packed.append(trees.pack(NAMED[name], tree, tmp_path / str(number), RELEASE))
        architecture = RELEASE.architecture_of(NAMED[name])
        assert packed[0].name == packed[1].name == f"{name}_{version.RELEASE}-1_{architecture}.deb"
        if name != COMMON:  # its made-up programs name their own tree
            assert packed[0].read_bytes() == packed[1].read_bytes()
        listed = subprocess.run(["dpkg-deb", "--contents", str(packed[0])], capture_output=True, text=True, check=True)
        assert {line.split()[1] for line in listed.stdout.splitlines()} == {"root/root"}


@needs_dpkg
def test_packed_when_dpkg_deb_complains_then_its_words_are_said(tmp_path: Path) -> None:
    write(tmp_path / "tree/DEBIAN/control", "nonsense\n")
    (tmp_path / "tree/DEBIAN").chmod(0o755)
    with pytest.raises(StackError, match="nova-api: .*parsing"):
        trees.pack(NAMED["nova-api"], tmp_path / "tree", tmp_path, RELEASE)
