"""A package's files, laid out as they are to lie on a machine, and dpkg-deb's word on them."""

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
#: A quarter larger than by xz's best, in a tenth of the time.
COMPRESSION = ("-Zxz", "-z1")


def complete(package: Package, tree: Path, release: Release) -> None:
    """Lay out all that dpkg-deb packs: the tree may have an environment already."""
    tree.mkdir(parents=True, exist_ok=True)
    _lay_out(package, tree)
    make_uniform(tree, release.seconds)
    _describe(package, tree, release)


def pack(package: Package, tree: Path, output: Path, release: Release) -> Path:
    """The package's file. StackError: dpkg-deb has complained."""
    target = output / f"{package.name}_{release.in_names}_{release.architecture_of(package)}.deb"
    done = subprocess.run(["dpkg-deb", "--root-owner-group", *COMPRESSION, "--build", str(tree), str(target)],
                          env={**os.environ, "SOURCE_DATE_EPOCH": str(release.seconds)}, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise StackError(f"dpkg-deb does not build {package.name}: {done.stderr.strip()}")
    return target


def _lay_out(package: Package, tree: Path) -> None:
    """All of the package's own files."""
    for program in package.programs:
        _link(tree / "usr/bin" / program, f"../lib/nova/bin/{program}")
        for page in (CHECKOUT / "etc/man").glob(f"{program}.[18]"):
            _packed(page, tree / f"usr/share/man/man{page.suffix[1:]}/{page.name}.gz")
    for source, target in package.files.items():
        _copy(CHECKOUT / source, tree / target)
    if package.unit:
        unit = CHECKOUT / f"etc/systemd/{package.name}.service"
        _copy(unit, tree / UNITS / unit.name)
        for alias in ALIAS.findall(unit.read_text()):  # enabled or not, it has the names of other distributions
            _link(tree / UNITS / alias, unit.name)
    if package.config:
        _write_example(CHECKOUT / "etc/bounded" / package.config.name, tree / EXAMPLES / package.config.name)
    if package.name != COMMON:
        _link(tree / DOCUMENTS / package.name, COMMON)
        return
    _copy(CHECKOUT / "LICENSE", tree / DOCUMENTS / COMMON / "copyright")
    _packed(CHECKOUT / "doc/releases.rst", tree / DOCUMENTS / COMMON / "changelog.gz")


def make_uniform(tree: Path, seconds: int) -> None:
    """The same modes and times whoever builds: all may read, and only programs may be run."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (seconds, seconds), follow_symlinks=False)


def _describe(package: Package, tree: Path, release: Release) -> None:
    """DEBIAN/, and the mode of the folder that has passwords: before it has an owner, root alone may read it."""
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
    """A file that sets nothing until somebody takes a # away. Deployment tools have all options in a nova.conf of
    theirs, or add them to this one: an example of bounded mode would overrule them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(re.sub(r"^(?=[a-z])", "#", source.read_text(), flags=re.M))


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _packed(source: Path, target: Path) -> None:
    """By gzip, without a name or a time in it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))
