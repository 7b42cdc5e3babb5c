"""The tree of a package's files, as installed on a machine, and its build with dpkg-deb."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

from stacklib.errors import StackError
from stacklib.layout import CHECKOUT

from .control import Release, conffiles, control
from .scripts import scripts
from .table import COMMON, EXAMPLES, Package

ENVIRONMENT = Path("usr/lib/nova")
ALIAS = re.compile(r"^Alias=(.+)$", re.MULTILINE)
UNITS = Path("usr/lib/systemd/system")
DOCUMENTS = Path("usr/share/doc")
#: Packages are a quarter larger than with xz's best level, but need a tenth of the time.
COMPRESSION = ("-Zxz", "-z1")


def complete(package: Package, tree: Path, release: Release) -> None:
    """Lay out all files for dpkg-deb; the tree may already have an environment."""
    tree.mkdir(parents=True, exist_ok=True)
    _lay_out(package, tree)
    make_uniform(tree, release.seconds)
    _describe(package, tree, release)


def pack(package: Package, tree: Path, output: Path, release: Release) -> Path:
    """Build a package and return its file. Raises StackError if dpkg-deb fails."""
    target = output / f"{package.name}_{release.in_names}_{release.architecture_of(package)}.deb"
    done = subprocess.run(["dpkg-deb", "--root-owner-group", *COMPRESSION, "--build", str(tree), str(target)],
                          env={**os.environ, "SOURCE_DATE_EPOCH": str(release.seconds)}, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise StackError(f"dpkg-deb cannot build {package.name}: {done.stderr.strip()}")
    return target


def _lay_out(package: Package, tree: Path) -> None:
    """Lay out the package's own files: programs, man pages, units, examples and documents."""
    for program in package.programs:
        _link(tree / "usr/bin" / program, f"../lib/nova/bin/{program}")
        for page in (CHECKOUT / "etc/man").glob(f"{program}.[18]"):
            _packed(page, tree / f"usr/share/man/man{page.suffix[1:]}/{page.name}.gz")
    for source, target in package.files.items():
        _copy(CHECKOUT / source, tree / target)
    if package.unit:
        unit = CHECKOUT / f"etc/systemd/{package.name}.service"
        _copy(unit, tree / UNITS / unit.name)
        for alias in ALIAS.findall(unit.read_text()):  # other distributions' names work even if it is not enabled
            _link(tree / UNITS / alias, unit.name)
    if package.config:
        _write_example(CHECKOUT / "etc/bounded" / package.config.name, tree / EXAMPLES / package.config.name)
    if package.name != COMMON:
        _link(tree / DOCUMENTS / package.name, COMMON)
        return
    _copy(CHECKOUT / "LICENSE", tree / DOCUMENTS / COMMON / "copyright")
    _packed(CHECKOUT / "doc/releases.rst", tree / DOCUMENTS / COMMON / "changelog.gz")


def make_uniform(tree: Path, seconds: int) -> None:
    """Set the same modes and times for every builder: all users may read files, and only programs are executable."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (seconds, seconds), follow_symlinks=False)


def _describe(package: Package, tree: Path, release: Release) -> None:
    """Write DEBIAN/, and make the folder with passwords readable by root only until it gets its owner."""
    if (tree / "etc/nova").exists():
        (tree / "etc/nova").chmod(0o750)
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    kilobytes = sum(-(-path.stat().st_size // 1024) for path in files)
    about = {"control": control(package, release, kilobytes), "conffiles": conffiles(tree), **scripts(package)}
    (tree / "DEBIAN").mkdir(mode=0o755)
    for name, text in about.items():
        if text:
            (tree / "DEBIAN" / name).write_text(text)
            (tree / "DEBIAN" / name).chmod(0o644 if name in ("control", "conffiles") else 0o755)


def _write_example(source: Path, target: Path) -> None:
    """Write an example in which all options are commented out. Deployment tools have all options in their own
    nova.conf, or add them to this one: active options of bounded mode would override them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(re.sub(r"^(?=[a-z])", "#", source.read_text(), flags=re.M))


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _packed(source: Path, target: Path) -> None:
    """Compress a file by gzip, without a name or a time in it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))
